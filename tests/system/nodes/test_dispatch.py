"""
A dispatch between nodes: it delivers what is due, and without it everything ends all the same.

The nodes find nothing by looking, unless a test says so: what ends was delivered, or hinted at.
"""

import asyncio
from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from adapters_runtime.engine.dispatching import PollSchedule, dispatching
from adapters_store.postgres.hints import PostgresHints
from wfcore import Engine, FunctionRunner, Services, apply_workflow, start_execution
from wfcore.model.access import OPERATOR
from wfcore.ports.queue import DispatchQueue, DueDelivery, DueExecution
from wfcore.ports.store import Slots
from wfcore.rules.definition.written import read_definition
from wfcore.testing.contracts.dispatch import taken
from wfcore.testing.dispatch import MemoryDispatch, SharedQueue
from wfcore.time import HOUR, DurationMs, EpochMs
from wfcore.usecases.executions import worker as running
from wfcore.usecases.executions.executions import cancel_execution, read_execution
from wfcore.usecases.services import Policy

from .conftest import AddNode, Node, command
from .test_hints import Functions, hears

LONG_S = 60
KEEP_S = 2  # long enough that a busy machine extends it in time
NEVER = {"poll_ms": HOUR, "sweep_ms": HOUR, "reconcile_ms": HOUR}
COMMAND = "language:command"


@asynccontextmanager
async def told(node: Node, dispatch: DispatchQueue) -> AsyncIterator[Node]:
    """*node*, which tells *dispatch* what it makes due."""
    async with dispatching(node.services, dispatch) as services, asyncio.timeout(LONG_S):
        while not dispatch.up:  # noqa: ASYNC110
            await asyncio.sleep(0.001)
        yield evolve(node, services=services)


@asynccontextmanager
async def at_work(
    node: Node, dispatch: DispatchQueue, runner: FunctionRunner, able: Collection[str] | None = None
) -> AsyncIterator[Node]:
    """*node* with an engine that takes what *dispatch* delivers, once it has looked and sleeps."""
    async with (
        told(node, dispatch) as node,
        Engine(node.services, runner, able=able, dispatch=dispatch) as engine,
    ):
        loop = engine._worker.loop
        while loop.due.is_set() or loop._busy_since is not None or not loop.running:  # noqa: ASYNC110
            await asyncio.sleep(0.001)
        yield node


@asynccontextmanager
async def a_pair(
    node: AddNode, queue: SharedQueue, runner: FunctionRunner, **policy: int
) -> AsyncIterator[tuple[Node, Node]]:
    """One that only accepts, and one that works; they share a queue."""
    accepts, works = await node(**(policy or NEVER)), await node(**(policy or NEVER))
    async with (
        told(accepts, MemoryDispatch(queue)) as accepts,
        at_work(works, MemoryDispatch(queue), runner) as works,
    ):
        yield accepts, works


async def started(node: Node, **definition: Any) -> str:
    """The id of an execution of that definition, which is applied once."""
    flow = read_definition({"name": "Flow", **definition})
    workflow = await apply_workflow(node.services, node.ann.account.id, flow)
    return (await start_execution(node.services, node.ann, workflow.id, {})).execution_id


async def empty(queue: SharedQueue) -> None:
    """Wait until every message is settled."""
    async with asyncio.timeout(LONG_S):
        while queue.messages:  # noqa: ASYNC110
            await asyncio.sleep(0.001)


class Looks:
    """Counts the claims of workers: by name, and of anything."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.named, self.open = 0, 0
        real = running.claim

        async def claim(services: Services, worker: str, limit: int, **which: Any) -> Any:
            if which.get("ids") is None:
                self.open += 1
            else:
                self.named += 1
            return await real(services, worker, limit, **which)

        monkeypatch.setattr(running, "claim", claim)


async def test_what_is_due_is_delivered_and_claimed_by_name(
    node: AddNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody looks: each execution is claimed by its id, and its message settled afterwards."""
    queue, looks = SharedQueue(KEEP_S), Looks(monkeypatch)
    async with a_pair(node, queue, Functions().runner()) as (accepts, _):
        assert await accepts.rests(await accepts.start(command("greet"))) == "COMPLETED"
        before = looks.open
        for _ in range(3):
            assert await accepts.rests(await accepts.start(command("greet"))) == "COMPLETED"
        await empty(queue)
        assert (looks.open, looks.named) == (before, 4)


async def test_a_message_is_kept_until_the_execution_is_let_go_of(node: AddNode) -> None:
    """While a step runs its message is neither settled nor delivered to anybody else."""
    queue, functions = SharedQueue(KEEP_S), Functions()
    async with a_pair(node, queue, functions.runner()) as (accepts, _):
        run = await accepts.start(command("wait"))
        await functions.begun.wait()
        (message,) = queue.messages.values()
        kept_until = message.at
        while message.at == kept_until:  # noqa: ASYNC110
            await asyncio.sleep(0.001)
        assert message.tries == 1
        functions.go_on.set()
        assert await accepts.rests(run) == "COMPLETED"
        await empty(queue)


async def test_what_is_due_later_is_delivered_then(
    node: AddNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a delay the execution is delivered once more; nobody looked for it."""
    queue, looks = SharedQueue(KEEP_S), Looks(monkeypatch)
    pause = {"name": "pause", "kind": "delay", "duration": "100ms"}
    async with a_pair(node, queue, Functions().runner()) as (accepts, _):
        run = await accepts.start(command("greet"), pause, command("greet", "again"))
        assert await accepts.rests(run) == "COMPLETED"
        assert looks.named >= 2


class Losing(MemoryDispatch):
    """Says that it took everything, and has nothing."""

    async def tell(self, due: Collection[DueExecution]) -> bool:
        return True


class Failing(MemoryDispatch):
    """Is up, and does not take anything."""

    async def tell(self, due: Collection[DueExecution]) -> bool:
        return False


async def test_lost_messages_cost_time_alone(node: AddNode) -> None:
    """If everything that was told is lost, it is found as soon as somebody looks."""
    looking = {"poll_ms": 20, "sweep_ms": HOUR, "reconcile_ms": 20}
    accepts, works = await node(**NEVER), await node(**looking)
    async with (
        told(accepts, Losing()) as accepts,
        at_work(works, Losing(), Functions().runner()),
    ):
        runs = [await accepts.start(command("greet"), command("greet", "b")) for _ in range(3)]
        assert [await accepts.rests(run) for run in runs] == ["COMPLETED"] * 3


async def test_what_cannot_be_told_is_hinted(node: AddNode) -> None:
    """Whoever cannot tell the dispatch makes the workers look at once."""
    accepts, works = await node(**NEVER), await node(**NEVER)
    async with (
        told(accepts, Failing()) as accepts,
        at_work(works, MemoryDispatch(), Functions().runner()) as works,
    ):
        await hears(accepts)
        await hears(works)
        assert await accepts.rests(await accepts.start(command("greet"))) == "COMPLETED"


async def test_unplugged_and_plugged_in_again(
    node: AddNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    While the dispatch is away workers look and are told by hints; once it is back, what is due is
    delivered again, and what was accepted by others meanwhile is looked for.
    """
    queue = SharedQueue(KEEP_S)
    accepts, works = await node(**NEVER), await node(**NEVER)
    ours, theirs = MemoryDispatch(queue), MemoryDispatch(queue)
    async with (
        told(accepts, ours) as accepts,
        at_work(works, theirs, Functions().runner()) as works,
    ):
        await hears(accepts)
        await hears(works)
        looks = Looks(monkeypatch)
        assert await accepts.rests(await accepts.start(command("greet"))) == "COMPLETED"
        assert looks.named
        ours.connect(False)
        theirs.connect(False)
        looks.named = 0
        assert await accepts.rests(await accepts.start(command("greet"))) == "COMPLETED"
        assert (looks.named, bool(looks.open)) == (0, True)
        ours.connect(True)
        theirs.connect(True)
        assert await accepts.rests(await accepts.start(command("greet"))) == "COMPLETED"
        await empty(queue)


async def test_unplugged_and_unheard_the_next_look_finds_everything(
    node: AddNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    While the dispatch is away and every hint between nodes is lost, what one node accepts waits for
    a look at most, by the pace of a node without a dispatch; plugged in again it is delivered.
    """

    async def lost(*_: object) -> None:
        """Nothing is sent."""

    queue = SharedQueue(KEEP_S)
    looking = {"poll_ms": 20, "sweep_ms": HOUR, "reconcile_ms": HOUR}
    accepts, works = await node(**NEVER), await node(**looking)
    ours, theirs = MemoryDispatch(queue), MemoryDispatch(queue)
    async with (
        told(accepts, ours) as accepts,
        told(works, theirs) as works,
        Engine(works.services, Functions().runner(), dispatch=theirs),
    ):
        monkeypatch.setattr(PostgresHints, "tell", lost)
        for up in (True, False, True):
            ours.connect(up)
            theirs.connect(up)
            runs = [await accepts.start(command("greet"), command("greet", "b")) for _ in range(3)]
            assert [await accepts.rests(run) for run in runs] == ["COMPLETED"] * 3
        await empty(queue)


@given(
    poll_ms=st.integers(1, 10_000),
    reconcile_ms=st.integers(1, 100_000),
    due=st.none() | st.integers(0, 1_000_000),
    asked=st.integers(0, 1_000_000),
    later=st.integers(0, 1_000),
    up=st.booleans(),
)
def test_the_next_look_is_never_further_away_than_the_policy_says(
    poll_ms: int, reconcile_ms: int, due: int | None, asked: int, later: int, up: bool
) -> None:
    """Whatever is stored: the pace of looks, or that of reconciling while a dispatch delivers."""
    policy = Policy(poll_ms=DurationMs(poll_ms), reconcile_ms=DurationMs(reconcile_ms))
    dispatch = MemoryDispatch()
    dispatch.connect(up)
    found = None if due is None else EpochMs(due)
    looking = PollSchedule(policy, dispatch)
    pause = looking.pause_ms(found, EpochMs(asked), EpochMs(asked + later))
    assert 0 <= pause <= max(poll_ms, reconcile_ms if up else 0)


async def test_a_place_in_a_group_that_gets_free_is_taken(node: AddNode) -> None:
    """What had to wait for its group, and was delivered in vain, begins once the group has room."""
    queue, functions = SharedQueue(KEEP_S), Functions()
    one = {"concurrency": {"limit": 1}}
    async with a_pair(node, queue, functions.runner()) as (accepts, _):
        first = await started(accepts, steps=[command("wait")], **one)
        await functions.begun.wait()
        second = await started(accepts, steps=[command("wait")], **one)
        while len(queue.messages) > 1:  # noqa: ASYNC110 - it was delivered in vain
            await asyncio.sleep(0.001)
        assert (await read_execution(accepts.services, OPERATOR, second)).status == "PENDING"
        functions.go_on.set()
        assert [await accepts.rests(run) for run in (first, second)] == ["COMPLETED"] * 2


async def test_a_place_that_a_person_frees_is_taken(node: AddNode) -> None:
    """The same where no worker holds what ends: somebody cancels what waits for an approval."""
    queue = SharedQueue(KEEP_S)
    asks = {"name": "ask", "kind": "manual_approval", "message": "?"}
    more = {"concurrency": {"limit": 1}, "steps": [command("greet"), asks]}
    async with a_pair(node, queue, Functions().runner()) as (accepts, works):
        await hears(accepts)
        await hears(works)
        first = await started(accepts, **more)
        assert await accepts.rests(first) == "AWAITING_APPROVAL"
        second = await started(accepts, **more)
        await empty(queue)
        await cancel_execution(accepts.services, OPERATOR, first)
        assert await accepts.rests(second) == "AWAITING_APPROVAL"


async def test_a_message_that_comes_again_finds_a_dead_worker(node: AddNode) -> None:
    """
    A worker took an execution and died. Its message is delivered again, and that alone makes the
    sweep find the execution, which goes on here.
    """
    queue = SharedQueue(KEEP_S)
    accepts, works = await node(**NEVER), await node(**NEVER)
    async with told(accepts, MemoryDispatch(queue)) as accepts:
        run = await accepts.start(command("greet"))
        ghost = MemoryDispatch(queue)
        ghost.connect(True)
        await taken(ghost, 1)
        claimed = await accepts.services.store.claim("ghost", DurationMs(200), Slots(8), 1)
        assert [one.id for one in claimed] == [run]
        async with at_work(works, MemoryDispatch(queue), Functions().runner()):
            assert await accepts.rests(run) == "COMPLETED"


class Blind(MemoryDispatch):
    """Delivers to anybody, able or not."""

    async def take(self, limit: int, able: Collection[str] | None = None) -> Sequence[DueDelivery]:
        return await super().take(limit)


async def test_who_cannot_do_it_puts_it_back(node: AddNode) -> None:
    """A worker that gets what it cannot run leaves it to another one, which then gets it."""
    queue = SharedQueue(KEEP_S)
    accepts, cannot, can = [await node(**NEVER) for _ in range(3)]
    functions = Functions()
    async with told(accepts, Blind(queue)) as accepts:
        async with at_work(cannot, Blind(queue), functions.runner(), able=()):
            run = await accepts.start(command("greet"))
            while all(one.tries < 2 for one in queue.messages.values()):  # noqa: ASYNC110
                await asyncio.sleep(0.001)
            assert (await read_execution(accepts.services, OPERATOR, run)).status == "PENDING"
        async with at_work(can, Blind(queue), functions.runner(), able=(COMMAND,)):
            assert await accepts.rests(run) == "COMPLETED"


async def test_what_is_over_is_settled(node: AddNode) -> None:
    """Messages of what has ended, and of what never was, are settled without harm."""
    queue = SharedQueue(KEEP_S)
    async with a_pair(node, queue, Functions().runner()) as (accepts, _):
        run = await accepts.start(command("greet"))
        assert await accepts.rests(run) == "COMPLETED"
        other = MemoryDispatch(queue)
        other.connect(True)
        await other.tell([DueExecution(run, "again"), DueExecution("exec_unknown", "unknown")])
        await empty(queue)
