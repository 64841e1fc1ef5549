"""Loops: they go on whatever their rounds do, end when they are told to, and say how they are."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest
from attrs import evolve

import wfcore
from adapters_runtime.engine import loops
from adapters_runtime.engine import presence as presence_loop
from adapters_runtime.engine import worker as engine
from adapters_runtime.engine.engine import Engine
from adapters_runtime.engine.loops import FailureLog, Loop, wait_for
from adapters_runtime.engine.presence import NodePresence
from adapters_runtime.engine.wakeups import SharedWakeups, Wakeups
from adapters_runtime.engine.worker import Worker
from adapters_store.memory import MemoryStore
from wfcore import FunctionRunner
from wfcore.errors import StoreUnavailable, Unreadable
from wfcore.model.access import OPERATOR
from wfcore.model.node import Node
from wfcore.ports.hints import Hint, HintKind
from wfcore.rules.backoff import Backoff
from wfcore.testing.fakes import ManualClock
from wfcore.time import EpochMs, later
from wfcore.usecases.nodes import NODE_LEASE_MS, drain_node, list_nodes
from wfcore.usecases.unit_of_work import DutyFailure

from .test_worker import a_scene

LONG_S = 30
NAME = "scheduler"


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """No backoff is worth waiting for here."""
    monkeypatch.setattr(loops, "BACKOFF", Backoff(0.001, 0.004))


@asynccontextmanager
async def at_work(rounds: Callable[[], Awaitable[float]]) -> AsyncIterator[Loop]:
    loop = Loop(NAME, rounds, asyncio.Event())
    task = asyncio.create_task(loop.run())
    async with asyncio.timeout(LONG_S):
        try:
            yield loop
        finally:
            loop.stop()
            await task


async def until(holds: Callable[[], object]) -> None:
    while not holds():  # noqa: ASYNC110 - polls what has no event
        await asyncio.sleep(0.001)


async def test_a_round_that_fails_is_tried_again(caplog: pytest.LogCaptureFixture) -> None:
    """While rounds raise, the loop is down, and logged, once with a traceback; then it is up."""
    caplog.set_level("INFO", "wfcore.loops")
    broken = [True]
    rounds: list[int] = []

    async def one() -> float:
        rounds.append(1)
        if broken:
            raise RuntimeError("a defect")
        return LONG_S

    async with at_work(one) as loop:
        await until(lambda: len(rounds) > 3)
        assert (loop.up, loop.trouble(LONG_S)) == (False, "the scheduler is down (RuntimeError)")
        broken.clear()
        await until(lambda: loop.up)
        assert loop.trouble(LONG_S) is None
    said = [(line.getMessage(), bool(line.exc_info)) for line in caplog.records]
    assert said[0] == ("a loop failed", True)
    assert set(said[1:-1]) == {("a loop failed again", False)}
    assert said[-1] == ("a loop is up again", False)


async def test_hints_do_not_shorten_a_backoff(monkeypatch: pytest.MonkeyPatch) -> None:
    """A loop that fails is not driven round by those who tell it that something is due."""
    monkeypatch.setattr(loops, "BACKOFF", Backoff(LONG_S, LONG_S))
    rounds: list[int] = []

    async def one() -> float:
        rounds.append(1)
        raise StoreUnavailable("locked")

    async with at_work(one) as loop:
        await until(lambda: loop.failure)
        loop.due.set()
        for _ in range(20):
            await asyncio.sleep(0)
        assert rounds == [1]


async def test_what_it_awaited_may_be_cancelled(caplog: pytest.LogCaptureFixture) -> None:
    """A cancellation that is not the loop's own is a failed round, not the end of the loop."""
    rounds: list[int] = []

    async def one() -> float:
        rounds.append(1)
        if len(rounds) == 1:
            raise asyncio.CancelledError
        return LONG_S

    async with at_work(one) as loop:
        await until(lambda: len(rounds) == 2 and loop.up)


async def test_a_round_that_does_not_end_is_seen() -> None:
    """It is stuck as soon as the round has taken longer than the bound; an ended loop is told."""
    never = asyncio.Event()

    async def one() -> float:
        await never.wait()
        return 0

    async with at_work(one) as loop:
        await until(lambda: loop.running)
        assert loop.trouble(LONG_S) is None
        await until(lambda: loop.trouble(0) == "the scheduler is stuck")
        never.set()
    assert loop.trouble(LONG_S) == "the scheduler does not run"


@pytest.mark.parametrize("turns", range(4))
async def test_a_cancellation_in_the_turn_of_the_event_ends_the_wait(turns: int) -> None:
    """Whoever waits for an event and is cancelled as it comes is cancelled, or had it before."""
    event = asyncio.Event()
    waiting = asyncio.create_task(wait_for(event, LONG_S))
    await asyncio.sleep(0)
    event.set()
    for _ in range(turns):
        await asyncio.sleep(0)
    if waiting.cancel():
        with pytest.raises(asyncio.CancelledError):
            await waiting


async def test_a_swallowed_cancellation_does_not_keep_it() -> None:
    """A round that loses the cancellation is the last one: the flag was set before."""

    async def one() -> float:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return LONG_S
        return LONG_S

    loop = Loop(NAME, one, asyncio.Event())
    task = asyncio.create_task(loop.run())
    await asyncio.sleep(0)
    loop.stop()
    task.cancel()
    async with asyncio.timeout(LONG_S):
        await task


async def test_a_failed_round_says_what_failed_and_when_it_is_tried_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """An operator finds loop, error and pause in the log, and of a store what it said."""
    errors = [StoreUnavailable("disk full"), RuntimeError("a defect"), RuntimeError("a defect")]

    async def one() -> float:
        if errors:
            raise errors.pop(0)
        return LONG_S

    caplog.set_level("INFO", "wfcore.loops")
    loop = Loop(NAME, one, asyncio.Event())
    assert [await loop._once() for _ in range(4)] == [0.001, 0.002, 0.004, LONG_S]
    first, second, third, last = (vars(line) for line in caplog.records)
    assert (first["msg"], first["detail"]) == ("store unavailable", "disk full")
    kinds = [(one["loop"], one["error"]) for one in (first, second, third)]
    assert kinds == [(NAME, "StoreUnavailable"), (NAME, "RuntimeError"), (NAME, "RuntimeError")]
    assert [one["again_in_s"] for one in (first, second, third)] == [0.001, 0.002, 0.004]
    assert (last["msg"], last["loop"]) == ("a loop is up again", NAME)


async def test_a_store_that_stays_away_is_one_line_a_minute(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However often a loop tries; its return is a line, and so is the next loss."""
    is_away = True

    async def one() -> float:
        if is_away:
            raise StoreUnavailable("no server")
        return LONG_S

    caplog.set_level("INFO", "wfcore.loops")
    loop = Loop(NAME, one, asyncio.Event())
    for since in (loops.REPEAT_S, loops.REPEAT_S, loops.REPEAT_S, 0, loops.REPEAT_S):
        monkeypatch.setattr(loops, "REPEAT_S", since)
        await loop._once()
    assert [one.message for one in caplog.records] == ["store unavailable"] * 2
    is_away = False
    await loop._once()
    is_away = True
    await loop._once()
    assert [one.message for one in caplog.records[2:]] == [
        "a loop is up again",
        "store unavailable",
    ]


def test_what_was_left_out_is_told_once_while_it_lasts(caplog: pytest.LogCaptureFixture) -> None:
    """
    A record that fails in every round has one line, and another one when it fails anew. Only
    defects have a traceback.
    """
    told = FailureLog(NAME)
    damaged = DutyFailure("executions", "exec_1", Unreadable("executions", "exec_1"))
    broken = DutyFailure("timers", "tmr_1", RuntimeError("a defect"))
    away = DutyFailure("duty", "records", StoreUnavailable(detail="no server"))
    for failed in ((damaged, broken), (damaged, broken), (), (broken,), (away,)):
        told.begin()
        for one in failed:
            told(one)
        assert told.failed == list(failed)
    about = ("msg", "loop", "kind", "id", "error")
    said = [tuple(vars(line)[name] for name in about) for line in caplog.records]
    defect = ("skipped in this maintenance pass", NAME, "timers", "tmr_1", "RuntimeError")
    assert said == [
        ("skipped in this maintenance pass", NAME, "executions", "exec_1", "Unreadable"),
        defect,
        defect,
        ("skipped in this maintenance pass", NAME, "duty", "records", "StoreUnavailable"),
    ]
    assert [bool(line.exc_info) for line in caplog.records] == [False, True, True, False]
    assert vars(caplog.records[-1])["detail"] == "no server"


async def test_what_falls_due_between_two_looks_waits_for_no_poll(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was not there to be claimed, and is past when the next instant is asked for. EX-2."""
    async with a_scene(tmp_path) as scene:
        clock = ManualClock()
        services = evolve(
            scene.services,
            clock=clock,
            store=MemoryStore(now=clock.service_now),
            wakeup=Wakeups(),
        )
        worker, due = Worker(services, scene.runner, "w2"), later(clock.service_now(), 1)

        async def next_due(*_: object) -> EpochMs:
            clock.advance(2)
            return due

        monkeypatch.setattr(engine.worker_usecases, "next_due", next_due)
        assert await worker._round() == 0
        assert await worker._round() == services.policy.poll_ms / 1_000


async def test_a_worker_that_may_take_executions_again_looks_at_once(tmp_path: Path) -> None:
    """It waits for no poll; and draining, told once more, is no news."""
    async with a_scene(tmp_path) as scene:
        worker, woken = Worker(scene.services, scene.runner, "w2"), []
        for draining in (True, True, False, False):
            worker.loop.due.clear()
            worker.set_draining(draining)
            woken.append(worker.loop.due.is_set())
    assert woken == [False, False, True, False]


async def test_of_kept_leases_what_is_due_is_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither what is due later nor what waits for nothing; what was taken away is stopped."""

    async def kept(*_: object) -> dict[str, EpochMs | None]:
        return {"idle": None, "due": now, "later": EpochMs(now + 60_000)}

    async with a_scene(tmp_path) as scene:
        worker, now = Worker(scene.services, scene.runner, "w2"), scene.services.store.now()
        looked, stopped = list[str](), list[str]()
        monkeypatch.setattr(engine.worker_usecases, "heartbeat", kept)
        monkeypatch.setattr(worker, "_reload", looked.append)
        monkeypatch.setattr(worker, "_stop_steps", stopped.append)
        leases = [SimpleNamespace(execution_id=id) for id in ("idle", "due", "later", "lost")]
        monkeypatch.setattr(worker, "_held", leases)
        await worker.keep_leases()
    assert (looked, stopped) == (["due"], ["lost"])


async def test_a_node_announces_itself_and_hears_of_its_draining(tmp_path: Path) -> None:
    """In each round, and a round begins as soon as somebody says something to this node."""
    async with a_scene(tmp_path) as scene:
        services, heard = scene.services, list[bool]()
        presence = NodePresence(services, Node("w9", "here", 1, EpochMs(0)), heard.append)
        await presence._round()
        services.wakeup.reload("exec_1")
        assert not presence.loop.due.is_set()
        await drain_node(services, OPERATOR, "w9")
        assert presence.loop.due.is_set()
        await presence._round()
        assert heard == [False, True]
        assert [one.id for one in await list_nodes(services)] == ["w9"]
        await presence.withdraw()
        assert not await list_nodes(services)


async def test_a_node_hears_of_its_draining_without_a_hint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its next look finds what another process wrote, long before it announces itself again."""
    monkeypatch.setattr(presence_loop, "POLL_S", 0.01)
    async with a_scene(tmp_path) as scene:
        services, heard = scene.services, list[bool]()
        presence = NodePresence(services, Node("w9", "here", 1, EpochMs(0)), heard.append)
        running = asyncio.create_task(presence.run())
        async with asyncio.timeout(LONG_S):
            await until(lambda: False in heard)
            async with services.store.unit() as unit:
                (node,) = await unit.nodes.list()
                unit.put(evolve(node, draining=True))
                await unit.commit()
            await until(lambda: True in heard)
        (told,) = await list_nodes(services)
        assert told.version == node.version + 1
        presence.loop.stop()
        await running


async def test_a_node_announces_itself_again_long_before_it_counts_as_gone(tmp_path: Path) -> None:
    """A look only reads until a third of its time has passed; then it has the whole time again."""
    async with a_scene(tmp_path) as scene:
        services = scene.services
        presence = NodePresence(services, Node("w9", "here", 1, EpochMs(0)), lambda _: None)
        await presence._round()
        await presence._round()
        (node,) = await list_nodes(services)
        assert node.version == 1
        async with services.store.unit() as unit:
            unit.put(
                evolve(node, seen_until=EpochMs(services.store.now() + NODE_LEASE_MS * 2 // 3))
            )
            await unit.commit()
        await presence._round()
        (node,) = await list_nodes(services)
        assert node.seen_until > services.store.now() + NODE_LEASE_MS * 0.9


class NoOthers:
    """`Hints` of a process that is alone: what it tells is kept."""

    def __init__(self) -> None:
        self.told: list[Hint] = []

    async def tell(self, hints: Collection[Hint]) -> None:
        self.told += hints

    async def hear(self, heard: Callable[[Hint], None]) -> None:
        await asyncio.Event().wait()


async def test_whatever_is_told_here_is_passed_on() -> None:
    """Each of what a process may be told reaches the others, with the execution it is about."""
    hints = NoOthers()
    wakeups = SharedWakeups(hints)
    wakeups.runner()
    wakeups.timer()
    wakeups.stop("exec_1")
    wakeups.events("exec_2")
    async with asyncio.timeout(LONG_S):
        await until(lambda: len(hints.told) == 4)
    await wakeups.close()
    assert {(one.kind, one.execution_id) for one in hints.told} == {
        (HintKind.DUE, ""),
        (HintKind.TIMER, ""),
        (HintKind.RELOAD, "exec_1"),
        (HintKind.EVENTS, "exec_2"),
    }


async def test_who_waits_here_is_released_and_nobody_else_told() -> None:
    """A process that ends wakes those who wait in it, whatever they wait for."""
    hints = NoOthers()
    wakeups = SharedWakeups(hints)

    async def follow(id: str) -> None:
        with wakeups.follow(id) as rest:
            await rest(LONG_S * 1_000)

    waiting = [asyncio.create_task(follow(id)) for id in ("exec_1", "exec_2")]
    async with asyncio.timeout(LONG_S):
        await until(lambda: len(wakeups._followers) == 2)
        wakeups.release()
        await asyncio.gather(*waiting)
        assert not wakeups._followers
        await wakeups.close()
    assert not hints.told


async def test_an_engine_ends_though_its_store_does_not_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Others learn from the lease that it is gone; nothing is raised where it was left."""

    async def unavailable(*_: object) -> None:
        raise StoreUnavailable("disk full")

    monkeypatch.setattr(presence_loop, "withdraw_node", unavailable)
    async with Engine(wfcore.in_memory(), FunctionRunner(named={})) as engine:
        pass
    assert not any(part.loop.running for part in engine._parts)
