"""Hints between nodes: what one of them stores wakes the others, and what is lost costs a poll."""

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, cast

import pytest

from adapters_runtime.engine import wakeups
from adapters_runtime.engine.wakeups import SharedWakeups
from adapters_store.hints import IDS, ChannelHints, channels, hints_in, texts_of
from adapters_store.postgres.connection import close_pool, lent, open_pool, rows_of
from adapters_store.postgres.hints import UNHEARD, PostgresHints
from adapters_store.postgres.store import PostgresStore
from tests.adapters_store.pooler import OLDEST, pooled
from tests.support.postgres_server import Cluster, emptied
from wfcore import Engine, Execution, FunctionRunner, Principal, Services, start_execution
from wfcore.model.access import OPERATOR, Scope, Unrestricted
from wfcore.model.approval import DecisionSource
from wfcore.model.execution import ExecutionStatus
from wfcore.ports.callbacks import CallbackAnswer
from wfcore.ports.hints import Hint, HintKind
from wfcore.rules.approval.machine import Approve
from wfcore.testing.contracts.wakeups import HintsContract, WakeupContract
from wfcore.time import HOUR
from wfcore.usecases.accounts import keys
from wfcore.usecases.approvals.approvals import approvals_of
from wfcore.usecases.approvals.deciding import Decide, decide_approval
from wfcore.usecases.executions import executions
from wfcore.usecases.executions.executions import (
    cancel_execution,
    read_execution,
    wait_for_rest,
)

from .conftest import NEVER, AddNode, Node, command, opened

LONG_S = 60
LISTENERS = """SELECT pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE datname = current_database() AND application_name = 'wfcore hints'"""


class Functions:
    """Steps that tell when they begin and when they are ended."""

    def __init__(self) -> None:
        self.begun, self.ended, self.go_on = asyncio.Event(), asyncio.Event(), asyncio.Event()

    def runner(self) -> FunctionRunner:
        return FunctionRunner(self.greet, self.wait)

    async def greet(self) -> str:
        return "hello"

    async def wait(self) -> str:
        self.begun.set()
        try:
            await self.go_on.wait()
        finally:
            self.ended.set()
        return "waited"


class Receiver:
    """Where callbacks arrive."""

    def __init__(self) -> None:
        self.told = asyncio.Event()

    async def post(self, url: str, headers: Mapping[str, str], body: bytes) -> CallbackAnswer:
        self.told.set()
        return CallbackAnswer(204)


def hints_of(node: Node) -> PostgresHints:
    return cast("PostgresHints", cast("SharedWakeups", node.services.wakeup).hints)


async def hears(node: Node) -> None:
    """Wait until the node hears what is told, or begin to listen."""
    with node.services.wakeup.follow("nothing"):
        pass
    async with asyncio.timeout(LONG_S):
        await hints_of(node).echo.wait()


@asynccontextmanager
async def two_nodes(
    node: AddNode, functions: Functions, receiver: Receiver | None = None, **policy: int
) -> AsyncIterator[tuple[Node, Node]]:
    """One that only accepts, and one that only works; by themselves they find nothing."""
    accepts, works = await node(**(policy or NEVER)), await node(**(policy or NEVER))
    async with Engine(works.services, functions.runner(), receiver):
        await hears(accepts)
        await hears(works)
        yield accepts, works


class TestSharedWakeups(WakeupContract):
    """The hints within a process are the same where they are passed on, too."""

    @pytest.fixture
    async def wakeup(self, node: AddNode, monkeypatch: pytest.MonkeyPatch) -> SharedWakeups:
        monkeypatch.setattr(wakeups, "POLL_MS", HOUR)
        return cast("SharedWakeups", (await node()).services.wakeup)


class TestPostgresHints(HintsContract):
    """Processes with connections of their own."""

    @pytest.fixture
    async def new_hints(self, node: AddNode) -> Callable[[], PostgresHints]:
        first = hints_of(await node())
        return lambda: PostgresHints(first.pool, first.direct)


class TestChannelHints(HintsContract):
    """Processes of one command."""

    @pytest.fixture
    async def new_hints(self) -> AsyncIterator[Callable[[], ChannelHints]]:
        made = channels(3)
        processes = iter(made)
        yield lambda: ChannelHints(next(processes))
        for end in {end for one in made for end in (one.own, *one.others.values())}:
            end.close()


async def test_another_node_begins_at_once_and_tells_of_the_end(node: AddNode) -> None:
    """What one node accepts another one does, and whoever waits at the first one is woken."""
    async with two_nodes(node, Functions()) as (accepts, _):
        for _ in range(3):
            run = await accepts.start(command("greet"), command("greet", step="again"))
            assert await accepts.rests(run) == "COMPLETED"


async def test_behind_a_pooler_nothing_is_lacking_but_a_way_past_it(
    database: str, tmp_path: Path
) -> None:
    """
    While each transaction gets another connection to the server, what one node accepts another one
    does at once, in its turns, and with what is listened to directly.
    """
    url = await emptied(database)
    async with pooled(url, OLDEST) as (behind, pooler), AsyncExitStack() as open_nodes:
        accepts, works = [
            await open_nodes.enter_async_context(
                opened(behind, tmp_path / "shared", direct=url, **NEVER)
            )
            for _ in range(2)
        ]
        async with Engine(works.services, Functions().runner()):
            await hears(accepts)
            await hears(works)
            steps = command("greet"), command("greet", step="again")
            runs = await asyncio.gather(*(accepts.start(*steps) for _ in range(8)))
            assert {await accepts.rests(run) for run in runs} == {"COMPLETED"}
        assert pooler.moved > len(runs)


async def test_followers_are_woken_by_another_node(
    node: AddNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever follows an execution is woken by the node at which its log grew, not by looking."""
    monkeypatch.setattr(wakeups, "POLL_MS", HOUR)
    first, second = await node(), await node()
    with first.services.wakeup.follow("exec_1") as rest:
        async with asyncio.timeout(LONG_S):
            await hints_of(first).echo.wait()
            second.services.wakeup.events("exec_1")
            await rest(HOUR)


async def test_what_another_node_does_during_a_look_is_not_missed(
    node: AddNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever waits for an end that is told between a look and the wait looks again at once."""
    monkeypatch.setattr(wakeups, "POLL_MS", HOUR)
    first, second = await node(), await node()
    run_id = await first.start(command("greet"))
    await hears(first)
    looks = 0

    async def slow(
        services: Services, who: Principal | Unrestricted, id: str, **how: Any
    ) -> Execution:
        nonlocal looks
        looks += 1
        seen = await read_execution(services, who, id, **how)
        if looks == 1:
            with services.wakeup.follow(id) as rest:
                await cancel_execution(second.services, OPERATOR, id)
                await rest(HOUR)
        return seen

    monkeypatch.setattr(executions, "read_execution", slow)
    async with asyncio.timeout(LONG_S):
        run = await wait_for_rest(first.services, OPERATOR, run_id, HOUR)
    assert (run.status, looks) == (ExecutionStatus.CANCELLED, 2)


async def test_a_decision_goes_on_at_another_node(node: AddNode) -> None:
    """An approval that was given at one node lets the execution go on at the other."""
    async with two_nodes(node, Functions()) as (accepts, _):
        ask = {"name": "ask", "kind": "manual_approval", "approvers": ["ann@example.org"]}
        run = await accepts.start({**ask, "message": "Go on?"}, command("greet"))
        assert await accepts.rests(run) == "AWAITING_APPROVAL"
        (approval,) = await approvals_of(accepts.services, accepts.ann, run)
        decision = Decide(approval.id, Approve(), DecisionSource.API)
        await decide_approval(accepts.services, accepts.ann, decision)
        assert await accepts.rests(run) == "COMPLETED"


async def test_a_step_is_stopped_at_another_node(node: AddNode) -> None:
    """A cancellation ends the step where it runs, long before the next heartbeat. EX-7."""
    functions = Functions()
    policy = NEVER | {"heartbeat_ms": HOUR, "lease_ms": 2 * HOUR}
    async with two_nodes(node, functions, **policy) as (accepts, _), asyncio.timeout(LONG_S):
        run = await accepts.start(command("wait"))
        await functions.begun.wait()
        await cancel_execution(accepts.services, OPERATOR, run)
        await functions.ended.wait()


async def test_a_callback_goes_out_from_another_node(node: AddNode) -> None:
    """The end of an execution at a node without an engine is told by one that has it. CB-1."""
    receiver = Receiver()
    functions = Functions()
    async with two_nodes(node, functions, receiver) as (accepts, _), asyncio.timeout(LONG_S):
        made = await keys.create_key(
            accepts.services, accepts.ann.account.id, "key", Scope.ordinary()
        )
        run = await accepts.start(command("wait"))
        flow = (await read_execution(accepts.services, OPERATOR, run)).workflow_id
        who, url = Principal(accepts.ann.account, made.key), "https://example.org/told"
        told = await start_execution(accepts.services, who, flow, {}, callback_url=url)
        await cancel_execution(accepts.services, OPERATOR, told.execution_id)
        await receiver.told.wait()
        functions.go_on.set()


async def test_a_late_hint_stops_nothing(node: AddNode) -> None:
    """
    A hint to stop that comes late or again, when another lease runs the execution, only makes its
    worker look.
    """
    functions = Functions()
    async with two_nodes(node, functions) as (accepts, works), asyncio.timeout(LONG_S):
        run = await accepts.start(command("wait"))
        await functions.begun.wait()
        heard = asyncio.Event()
        works.services.wakeup.listen(reload=lambda _: heard.set())
        accepts.services.wakeup.stop(run)
        await heard.wait()
        functions.go_on.set()
        assert await accepts.rests(run) == "COMPLETED"


async def test_without_hints_everything_ends_by_polling(
    node: AddNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If every hint between nodes is lost, what one node accepts is found by the next look."""

    async def lost(*_: object) -> None:
        """Nothing is sent."""

    looking = {"poll_ms": 20, "sweep_ms": 20, "heartbeat_ms": 20}
    functions = Functions()
    async with two_nodes(node, functions, **looking) as (accepts, _), asyncio.timeout(LONG_S):
        monkeypatch.setattr(PostgresHints, "tell", lost)
        runs = [await accepts.start(command("greet")) for _ in range(5)]
        assert [await accepts.rests(run) for run in runs] == ["COMPLETED"] * 5
        run = await accepts.start(command("wait"))
        await functions.begun.wait()
        await cancel_execution(accepts.services, OPERATOR, run)
        await functions.ended.wait()


async def test_a_listener_that_was_cut_off_listens_again(
    node: AddNode, server: Cluster, database: str
) -> None:
    """A lost connection is made anew, and hints are heard again."""
    async with two_nodes(node, Functions()) as (accepts, works):
        both = [hints_of(accepts), hints_of(works)]
        for one in both:
            one.echo.clear()
        store = cast("PostgresStore", works.services.store)
        async with lent(store.pool) as connection:
            assert len(await rows_of(connection, LISTENERS)) == 2
        async with asyncio.timeout(LONG_S):
            await asyncio.gather(*(one.echo.wait() for one in both))
        assert await accepts.rests(await accepts.start(command("greet"))) == "COMPLETED"


async def test_a_connection_that_hears_nothing_is_found_out(
    database: str, server: Cluster, caplog: pytest.LogCaptureFixture
) -> None:
    """
    Half open, or behind a pooler that swallows notifications: what a process tells itself does not
    arrive, which is said once, and it goes on trying.
    """
    pool = await open_pool(database)
    hints = PostgresHints(pool, server.url("postgres"), late_s=0.01)
    listening = asyncio.create_task(hints.hear(lambda _: None))
    async with asyncio.timeout(LONG_S):
        while UNHEARD not in caplog.messages:  # noqa: ASYNC110 - the log tells nobody
            await asyncio.sleep(0.005)
    assert not hints.echo.is_set()
    listening.cancel()
    await asyncio.wait((listening,))
    await close_pool(pool)


async def test_a_connection_that_is_quiet_is_tried_and_kept(
    database: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Where nothing was told for a while, the process tells itself something, again and again."""
    real, sent = PostgresHints._send, list[object]()

    async def noted(hints: PostgresHints, told: Collection[str]) -> None:
        sent.append(told)
        await real(hints, told)

    monkeypatch.setattr(PostgresHints, "_send", noted)
    pool = await open_pool(database)
    listening = asyncio.create_task(PostgresHints(pool, database, 0.001).hear(lambda _: None))
    async with asyncio.timeout(LONG_S):
        while len(sent) < 3:  # noqa: ASYNC110 - polls what has no event
            await asyncio.sleep(0.001)
    assert UNHEARD not in caplog.messages
    listening.cancel()
    await asyncio.wait((listening,))
    await close_pool(pool)


async def test_who_accepts_never_waits_for_hints(
    node: AddNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Executions are accepted while hints are not sent at all; then the hints are sent together."""
    told: list[Hint] = []
    go_on, begun = asyncio.Event(), asyncio.Event()

    async def slow(_: PostgresHints, hints: set[Hint]) -> None:
        begun.set()
        await go_on.wait()
        told.extend(hints)

    monkeypatch.setattr(PostgresHints, "tell", slow)
    one = await node()
    runs = [await one.start(command("greet")) for _ in range(10)]
    async with asyncio.timeout(LONG_S):
        await begun.wait()
        assert not told
        go_on.set()
        while sum(hint.kind is HintKind.EVENTS for hint in told) < len(runs):  # noqa: ASYNC110
            await asyncio.sleep(0.005)
    assert sum(hint.kind is HintKind.DUE for hint in told) <= 2


def test_notifications_say_kinds_and_ids_alone() -> None:
    """Many hints fit in few notifications; what another program tells there is ignored."""
    many = {Hint(HintKind.EVENTS, f"exec_{number:026}") for number in range(2 * IDS)}
    texts = list(texts_of({*many, Hint(HintKind.DUE)}))
    assert len(texts) == 3
    assert all(len(text) < 8_000 for text in texts)
    assert {hint for text in texts for hint in hints_in(text)} == {*many, Hint(HintKind.DUE)}
    assert not list(hints_in("something else")) + list(hints_in(""))
