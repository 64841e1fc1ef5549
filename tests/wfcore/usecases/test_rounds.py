"""The loops of the caller and the scheduler: what a round does, and when the next one comes."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager

import pytest

from adapters_runtime.engine import retention, scheduler
from adapters_runtime.engine.outbox import AT_ONCE, LEFT_OVER_S, CallbackLoop
from adapters_runtime.engine.retention import Retention
from adapters_runtime.engine.scheduler import Scheduler
from wfcore.errors import StoreUnavailable
from wfcore.model.execution import CallbackStatus
from wfcore.model.trigger import Refusal
from wfcore.ports.callbacks import CallbackAnswer
from wfcore.rules.callback import DELAYS
from wfcore.time import SECOND
from wfcore.usecases.approvals import expiry
from wfcore.usecases.executions import callbacks
from wfcore.usecases.unit_of_work import DutyFailure
from wfcore.usecases.upkeep.retention import DeletionPiece
from wfcore.usecases.workflows.firing import FiringResult

from .conftest import World, review
from .test_callbacks import owed, stored

LONG_S = 30
SWEEP_S = 1.0
CALLS_S = 2 * SWEEP_S
Posted = tuple[str, Mapping[str, str], bytes]


class HeldCourier:
    """A courier whose calls are answered when the test says so: *answer*, or its error."""

    def __init__(self) -> None:
        self.posted: list[Posted] = []
        self.may_answer = asyncio.Semaphore(0)
        self.answer: CallbackAnswer | Exception = CallbackAnswer(200)

    async def post(self, url: str, headers: Mapping[str, str], body: bytes) -> CallbackAnswer:
        self.posted.append((url, headers, body))
        await self.may_answer.acquire()
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


async def until(holds: Callable[[], object]) -> None:
    async with asyncio.timeout(LONG_S):
        while not holds():  # noqa: ASYNC110 - polls what has no event
            await asyncio.sleep(0.001)


@asynccontextmanager
async def calling(world: World, callback_client: HeldCourier) -> AsyncIterator[CallbackLoop]:
    caller = CallbackLoop(world.services, callback_client)
    task = asyncio.create_task(caller.run())
    try:
        yield caller
    finally:
        caller.loop.stop()
        await task


async def test_a_few_calls_are_made_at_once_and_each_ends_by_itself(world: World) -> None:
    """While all places are taken the rest waits; each answer settles its own and frees a place."""
    ids = [await owed(world, f"p{n}@example.org") for n in range(AT_ONCE + 2)]
    callback_client = HeldCourier()
    async with calling(world, callback_client) as caller:
        await until(lambda: len(callback_client.posted) == AT_ONCE)
        assert (await caller._round(), len(caller._attempts)) == (CALLS_S, AT_ONCE)
        assert caller.loop.oldest_due is not None
        callback_client.may_answer.release()
        await until(lambda: len(callback_client.posted) > AT_ONCE)
        assert (len(callback_client.posted), len(caller._attempts)) == (AT_ONCE + 1, AT_ONCE)
        for _ in range(AT_ONCE + 1):
            callback_client.may_answer.release()
        await until(lambda: caller.loop.oldest_due is None)
    settled = [await stored(world, id) for id in ids]
    assert {one.status for one in settled} == {CallbackStatus.DELIVERED}
    assert {url for url, _, _ in callback_client.posted} == {"https://example.org/told"}
    assert all(headers and body for _, headers, body in callback_client.posted)


async def test_a_call_that_a_stop_breaks_off_is_due_again(world: World) -> None:
    """Who ends with calls on their way ends them, and the next process tries them later."""
    run_id, callback_client = await owed(world), HeldCourier()
    async with calling(world, callback_client) as caller:
        await until(lambda: callback_client.posted)
        (call,) = caller._attempts
    assert call.cancelled()
    callback = await stored(world, run_id)
    assert (callback.status, callback.attempts) == (CallbackStatus.PENDING, 1)
    assert callback.due_at is not None


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (CallbackAnswer(410), "a callback was given up"),
        (CallbackAnswer(postponed="no descriptor was left"), "a callback waits"),
        (RuntimeError("a defect"), "a callback broke down"),
        (StoreUnavailable("away"), None),
        (CallbackAnswer(200), None),
        (CallbackAnswer(503), None),
    ],
)
async def test_of_a_call_that_comes_to_nothing_the_log_tells(
    world: World,
    caplog: pytest.LogCaptureFixture,
    answer: CallbackAnswer | Exception,
    said: str | None,
) -> None:
    """What nobody tries again, and every defect, has a line that names the execution."""
    run_id, callback_client = await owed(world), HeldCourier()
    callback_client.answer = answer
    callback_client.may_answer.release()
    async with calling(world, callback_client) as caller:
        await until(lambda: callback_client.posted and not caller._attempts)
        assert caller.loop.up
    told = [(line.getMessage(), vars(line)["execution_id"]) for line in caplog.records]
    assert told == ([(said, run_id)] if said else [])
    lacking = [vars(line).get("lacking") for line in caplog.records]
    assert lacking == ([getattr(answer, "postponed", None)] if said else [])


async def test_the_caller_sleeps_until_the_next_call_is_due(
    world: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """
    At most as long as two sweeps, for who wrote it may have no hints; what is due and was not
    taken is looked at again in a second.
    """
    caller = CallbackLoop(world.services, HeldCourier())
    assert (await caller._round(), caller.loop.oldest_due) == (CALLS_S, None)
    run_id = await owed(world)
    await callbacks.take_calls(world.services, 1)
    due = (await stored(world, run_id)).due_at
    for left_ms, pause in ((DELAYS[0], CALLS_S), (700, 0.7), (3, 0.005)):
        assert due is not None
        world.clock.advance(due - left_ms - world.services.clock.service_now())
        assert await caller._round() == pause
        assert caller.loop.oldest_due == due

    async def broken(*_: object) -> None:
        raise RuntimeError("a defect")

    world.clock.advance(3)
    monkeypatch.setattr(callbacks, "_take", broken)
    assert await caller._round() == LEFT_OVER_S
    (line,) = caplog.records
    said = "skipped in this maintenance pass"
    assert (line.getMessage(), vars(line)["loop"]) == (said, "callbacks")


async def test_a_sweep_is_followed_by_the_next_at_the_next_deadline(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Within a second it comes to the instant; what was left out waits for the second."""
    before: list[int] = []

    async def keep_leases() -> None:
        before.append(world.clock.now())

    loop = Scheduler(world.services, keep_leases)
    assert (await loop._round(), loop.loop.oldest_due) == (SWEEP_S, None)
    ann = await world.account()
    await world.start(ann, await world.workflow(ann, review(timeout_ms=10 * SECOND)))
    await world.take()
    over = world.clock.now() + 10 * SECOND
    for left_ms, pause in ((10_000, SWEEP_S), (400, 0.4), (2, 0.005)):
        world.clock.advance(over - left_ms - world.clock.now())
        assert await loop._round() == pause
        assert loop.loop.oldest_due == over

    async def broken(*_: object) -> bool:
        raise RuntimeError("a defect")

    with monkeypatch.context() as patch:
        patch.setattr(expiry, "expire", broken)
        world.clock.advance(2)
        assert await loop._round() == SWEEP_S
    assert (await loop._round(), loop.loop.oldest_due) == (SWEEP_S, None)
    assert len(before) == 6


async def test_a_sweep_looks_for_deadlines_only_once_one_is_over(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Until the next deadline a round looks for lost workers and graces alone. EX-11."""
    given: list[bool] = []

    async def sweep(
        services: object, report: object, *, deadlines: bool
    ) -> tuple[FiringResult, ...]:
        given.append(deadlines)
        return ()

    monkeypatch.setattr(scheduler, "sweep", sweep)
    loop, ann = Scheduler(world.services), await world.account()
    await loop._round()
    await world.start(ann, await world.workflow(ann, review(timeout_ms=SECOND)))
    await world.take()
    await loop._round()
    world.clock.advance(SECOND)
    await loop._round()
    assert given == [False, False, True]


async def test_what_a_sweep_came_to_is_told(
    world: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A trigger that started nothing has a line; a duty that failed fails the round."""
    fired = (
        FiringResult("trg_1", "wf_1", "exec_1"),
        FiringResult("trg_2", "wf_2", refusal=Refusal.MAX_RUNS),
    )
    failed: list[DutyFailure] = []

    async def sweep(
        services: object, report: Callable[[DutyFailure], None], *, deadlines: bool
    ) -> tuple[FiringResult, ...]:
        for one in failed:
            report(one)
        return fired

    monkeypatch.setattr(scheduler, "sweep", sweep)
    loop = Scheduler(world.services)
    ann = await world.account()
    await world.start(ann, await world.workflow(ann, review(timeout_ms=SECOND)))
    await world.take()
    world.clock.advance(SECOND)
    assert await loop._round() == 0.005
    (line,) = caplog.records
    assert line.getMessage() == "a trigger started nothing"
    told = {name: vars(line)[name] for name in ("trigger_id", "workflow_id", "reason")}
    assert told == {"trigger_id": "trg_2", "workflow_id": "wf_2", "reason": "MAX_RUNS"}
    failed.append(DutyFailure("executions", "exec_1", RuntimeError("a record")))
    await loop._round()
    failed.append(DutyFailure("duty", "recover", RuntimeError("a duty")))
    with pytest.raises(RuntimeError, match="a duty"):
        await loop._round()
    said = "skipped in this maintenance pass"
    left_out = [line for line in caplog.records if line.getMessage() == said]
    assert {vars(line)["loop"] for line in left_out} == {"scheduler"}


def test_each_loop_is_told_by_its_name(world: World) -> None:
    """Whoever reads what is wrong knows of which loop."""
    caller = CallbackLoop(world.services, HeldCourier())
    loops = (caller.loop, Scheduler(world.services).loop, Retention(world.services).loop)
    said = [loop.trouble(LONG_S) for loop in loops]
    assert said == [f"the {name} does not run" for name in ("callbacks", "scheduler", "retention")]


async def test_how_many_executions_went_is_told_once(
    world: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Several pieces are one line of the log, when nothing is left; nothing is no line."""
    caplog.set_level("INFO", "wfcore.retention")
    pieces = [
        DeletionPiece(2, 0, 0),
        DeletionPiece(3, 0, 0),
        DeletionPiece(0, 0, 0),
        DeletionPiece(0, 0, 0),
    ]

    async def retain(*_: object) -> DeletionPiece:
        return pieces.pop(0)

    monkeypatch.setattr(retention, "delete_expired", retain)
    loop = Retention(world.services)
    pauses = [await loop._round() for _ in range(4)]
    assert pauses[2:] == [retention.INTERVAL_S] * 2
    assert all(retention.LEAST_REST_S <= pause < retention.INTERVAL_S for pause in pauses[:2])
    (line,) = caplog.records
    told = (line.getMessage(), vars(line)["executions"])
    assert told == ("executions over their time are gone", 5)
