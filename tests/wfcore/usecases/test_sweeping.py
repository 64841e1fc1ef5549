"""Sweeps: each duty and each record has its own try, and what fails is named."""

from collections.abc import Awaitable, Callable

import pytest

from wfcore.errors import StoreUnavailable
from wfcore.model.access import OPERATOR
from wfcore.model.approval import Approval, ApprovalStatus
from wfcore.model.event import EventKind
from wfcore.model.execution import Execution, TriggerSource
from wfcore.time import DAY, MINUTE
from wfcore.usecases.approvals import approvals, expiry
from wfcore.usecases.executions import executions, worker
from wfcore.usecases.executions.executions import rests
from wfcore.usecases.unit_of_work import DutyFailure
from wfcore.usecases.upkeep import sweeping

from .conftest import World, code, review


def failing(error: Exception) -> Callable[..., Awaitable[int]]:
    """In the place of a use case: it raises *error*."""

    async def remind_due(*_: object) -> int:
        raise error

    return remind_due


async def asking(world: World, count: int) -> list[str]:
    """The ids of so many approvals whose time is over."""
    ann = await world.account()
    workflow = await world.workflow(ann, review())
    asked: list[str] = []
    for _ in range(count):
        run_id = await world.start(ann, workflow)
        await world.take()
        asked += [one.id for one in await approvals.approvals_of(world.services, ann, run_id)]
    world.clock.advance(DAY)
    return asked


async def statuses(world: World, ids: list[str]) -> list[ApprovalStatus]:
    async with world.services.store.view() as view:
        found = [await view.get(Approval, id) for id in ids]
    return [one.status for one in found if one is not None]


async def test_what_cannot_be_swept_is_named(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of everything that fails the report has kind and id, and all else has its turn."""
    (approval_id,) = await asking(world, 1)
    ann = await world.account("bob@example.org")
    workflow = await world.workflow(ann, code("one"))
    late = await world.start(ann, workflow)
    lease, _ = await world.take("slow")
    await worker.hand_back(world.services, lease)
    lost = await world.start(ann, workflow)
    await world.take("gone")
    world.clock.advance(DAY)
    defect = RuntimeError("a defect")
    for module, name in (
        (sweeping, "_recover"),
        (sweeping, "_end_grace"),
        (sweeping, "remind_due"),
        (expiry, "expire"),
    ):
        monkeypatch.setattr(module, name, failing(defect))
    named: list[DutyFailure] = []
    assert await sweeping.sweep(world.services, named.append) == []
    assert {(one.kind, one.id, one.error) for one in named} == {
        ("executions", lost, defect),
        ("executions", late, defect),
        ("approvals", approval_id, defect),
        ("duty", "remind_due", defect),
    }


@pytest.mark.parametrize("count", [1, 2, 3, 4])
async def test_however_many_approvals_are_due_all_are_settled(
    world: World, monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    """One batch after the other, until none is left; how many were is said. AP-4."""
    monkeypatch.setattr(expiry, "BATCH", 2)
    ids = await asking(world, count)
    assert await expiry.expire_due(world.services) == count
    assert await expiry.expire_due(world.services) == 0
    assert await statuses(world, ids) == [ApprovalStatus.REJECTED] * count


async def test_the_step_that_waited_too_long_is_named(world: World) -> None:
    """What the event log says of an expiry is what it says of a rejection by hand. AP-4."""
    (expired,) = await asking(world, 1)
    assert await expiry.expire_all_due(world.services) == 1
    async with world.services.store.view() as view:
        approval = await view.get(Approval, expired)
    assert approval is not None
    _, events = await executions.read_events(world.services, OPERATOR, approval.execution_id, 0)
    (rejected,) = [one for one in events if one.kind is EventKind.APPROVAL_REJECTED]
    assert rejected.data == {"step": "review", "approvalId": expired}


async def test_a_batch_that_cannot_be_settled_ends_the_round(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As many as there are in a batch may be broken: they are tried once in a round."""
    monkeypatch.setattr(expiry, "BATCH", 2)
    ids = await asking(world, 2)
    monkeypatch.setattr(expiry, "expire", failing(RuntimeError("a defect")))
    named: list[DutyFailure] = []
    assert await expiry.expire_due(world.services, named.append) == 0
    assert sorted(one.id for one in named) == sorted(ids)


@pytest.mark.parametrize("error", [StoreUnavailable("disk full"), RuntimeError("a defect")])
async def test_what_cannot_be_settled_can_be_read(
    world: World, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    """A store that cannot write, or an approval that cannot be settled, stops no reader. AP-4."""
    ids = await asking(world, 1)
    async with world.services.store.view() as view:
        approval = await view.get(Approval, ids[0])
        run = await view.get(Execution, approval.execution_id) if approval else None
    assert approval is not None
    assert run is not None
    monkeypatch.setattr(expiry, "expire", failing(error))
    assert await expiry.expire_all_due(world.services) == 0
    if isinstance(error, StoreUnavailable):
        assert not await expiry.expire_if_due(world.services, approval)
        assert not await expiry.expire_due_of(world.services, run)


@pytest.mark.parametrize(
    ("source", "while_interrupted", "in_the_end"),
    [(TriggerSource.MANUAL, False, False), (TriggerSource.OPEN_API, True, True)],
)
async def test_what_the_service_resumes_does_not_rest(
    world: World, source: TriggerSource, while_interrupted: bool, in_the_end: bool
) -> None:
    """Who waits sees no INTERRUPTED that the next sweep takes back. EX-12, EX-13."""

    async def now_rests() -> bool:
        async with world.services.store.view() as view:
            run = await view.get(Execution, run_id)
        assert run is not None
        return rests(run, world.clock.service_now())

    ann = await world.account()
    run_id = await world.start(ann, await world.workflow(ann, code("a")), source=source)
    await world.take()
    world.clock.advance(MINUTE)
    assert await sweeping.recover(world.services) == 1
    assert await now_rests() is while_interrupted
    await sweeping.sweep(world.services)
    assert await now_rests() is in_the_end
