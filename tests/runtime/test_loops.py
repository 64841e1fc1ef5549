"""Loops: they go on whatever their rounds do, end when they are told to, and say how they are."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest

from adapters_runtime.engine import loops
from adapters_runtime.engine.loops import FailureLog, Loop, wait_for
from wfcore.errors import StoreUnavailable, Unreadable
from wfcore.rules.backoff import Backoff
from wfcore.usecases.unit_of_work import Unswept

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


def test_what_was_left_out_is_told_once_while_it_lasts(caplog: pytest.LogCaptureFixture) -> None:
    """A record that fails in every round has one line, and another one when it fails anew."""
    told = FailureLog(NAME)
    damaged = Unswept("executions", "exec_1", Unreadable("executions", "exec_1"))
    broken = Unswept("timers", "tmr_1", RuntimeError("a defect"))
    for failed in ((damaged, broken), (damaged, broken), (), (broken,)):
        told.begin()
        for one in failed:
            told(one)
        assert told.failed == list(failed)
    about = ("msg", "loop", "kind", "id", "error")
    said = [tuple(vars(line)[name] for name in about) for line in caplog.records]
    defect = ("left out of a round", NAME, "timers", "tmr_1", "RuntimeError")
    assert said == [
        ("left out of a round", NAME, "executions", "exec_1", "Unreadable"),
        defect,
        defect,
    ]
    assert [bool(line.exc_info) for line in caplog.records] == [False, True, True]
