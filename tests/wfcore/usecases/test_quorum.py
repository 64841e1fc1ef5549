"""Several approvers, other eyes, and the rows they saw; over both stores."""

import asyncio

import pytest

from wfcore.errors import AlreadyDecided, Forbidden, ItemsChanged
from wfcore.model.access import OPERATOR, Principal
from wfcore.model.approval import Approval, ApprovalStatus, DecisionSource
from wfcore.model.event import EventKind
from wfcore.model.execution import ExecutionStatus
from wfcore.rules.approval.agreement import items_hash
from wfcore.rules.approval.machine import Approve, Reject
from wfcore.usecases.approvals import approvals, deciding
from wfcore.usecases.approvals.deciding import Decide
from wfcore.usecases.executions import executions

from .conftest import World, code, review

S = ExecutionStatus
ROWS = [{"id": 1, "amount": 10}, {"id": 2, "amount": 20}]
NAMES = ("ann", "bob", "cyd", "dan", "eve")


class Board:
    """People who are all named as approvers of one approval that ann's execution asks."""

    def __init__(self, world: World, people: dict[str, Principal], approval: Approval) -> None:
        self.world, self.people, self.approval = world, people, approval

    async def decide(
        self, name: str | None, decision: Approve | Reject | None = None, **more: object
    ) -> Approval:
        who = self.people[name] if name else OPERATOR
        asked = Decide(
            self.approval.id,
            decision or Approve(),
            DecisionSource.API,
            **more,  # type: ignore[arg-type]
        )
        return await deciding.decide_approval(self.world.services, who, asked)

    async def now(self) -> Approval:
        return await approvals.read_approval(self.world.services, OPERATOR, self.approval.id)

    async def status(self) -> ExecutionStatus:
        run_id = self.approval.execution_id
        return (await executions.read_execution(self.world.services, OPERATOR, run_id)).status

    async def told(self) -> list[tuple[EventKind, object]]:
        _, events = await executions.read_events(
            self.world.services, OPERATOR, self.approval.execution_id, 0
        )
        return [(one.kind, one.data) for one in events if one.kind.value.startswith("approval.")]


async def board(world: World, required: int = 2, **step: object) -> Board:
    people = {name: await world.account(f"{name}@example.org") for name in NAMES}
    named = tuple(who.account.email for who in people.values())
    asks = review(ROWS, required_approvals=required, approvers=named, **step)
    run_id = await world.start(people["ann"], await world.workflow(people["ann"], asks, code("z")))
    await world.take()
    (approval,) = await approvals.approvals_of(world.services, OPERATOR, run_id)
    return Board(world, people, approval)


async def test_the_execution_waits_for_the_last_yes(world: World) -> None:
    """A yes before the last one moves nothing but the event log. AP-15."""
    seats = await board(world, required=3)
    for name in ("ann", "bob"):
        assert (await seats.decide(name)).status is ApprovalStatus.PENDING
        assert await seats.status() is S.AWAITING_APPROVAL
    decided = await seats.decide("cyd")
    assert (decided.status, decided.decided_by) == (ApprovalStatus.APPROVED, "cyd@example.org")
    assert await seats.status() is S.RUNNING
    step = {"step": "review", "approvalId": seats.approval.id}
    assert await seats.told() == [
        (EventKind.APPROVAL_CREATED, step),
        (EventKind.APPROVAL_ASSENTED, {**step, "approvals": 1, "requiredApprovals": 3}),
        (EventKind.APPROVAL_ASSENTED, {**step, "approvals": 2, "requiredApprovals": 3}),
        (EventKind.APPROVAL_APPROVED, step),
    ]


@pytest.mark.parametrize("required", [2, 4])
async def test_of_all_approvers_at_once_exactly_one_completes(world: World, required: int) -> None:
    """All say yes at once, each twice: the required number counts, one completes it. AP-15."""
    seats = await board(world, required)
    answers = await asyncio.gather(
        *(seats.decide(name) for name in NAMES * 2), return_exceptions=True
    )
    won = [answer for answer in answers if isinstance(answer, Approval)]
    assert len(won) == required
    assert all(isinstance(answer, Approval | AlreadyDecided) for answer in answers)
    assert [one.status for one in won].count(ApprovalStatus.APPROVED) == 1
    seen = await seats.now()
    assert len({one.account for one in seen.assents}) == len(seen.assents) == required
    assert len(seen.history) == 1 + required
    kinds = [kind for kind, _ in await seats.told()]
    assert kinds.count(EventKind.APPROVAL_APPROVED) == 1
    assert kinds.count(EventKind.APPROVAL_ASSENTED) == required - 1
    await world.take()


async def test_a_rejection_races_the_last_yes(world: World) -> None:
    """Of a last yes and a rejection at once, one decides; the other is told so. AP-6, AP-15."""
    seats = await board(world)
    await seats.decide("ann")
    answers = await asyncio.gather(
        seats.decide("bob"), seats.decide("cyd", Reject()), return_exceptions=True
    )
    assert sorted(isinstance(answer, Approval) for answer in answers) == [False, True]
    approved = (await seats.now()).status is ApprovalStatus.APPROVED
    assert await seats.status() is (S.RUNNING if approved else S.CANCELLED)


async def test_who_has_approved_may_still_reject(world: World) -> None:
    """A second yes is refused, a no is heard. AP-16."""
    seats = await board(world)
    await seats.decide("ann")
    with pytest.raises(AlreadyDecided):
        await seats.decide("ann")
    assert len((await seats.now()).history) == 2
    assert (await seats.decide("ann", Reject())).status is ApprovalStatus.REJECTED
    assert await seats.status() is S.CANCELLED


async def test_two_who_edit_at_once_do_not_make_a_quorum(world: World) -> None:
    """Two different edits at once: the later one stands alone, and waits for a yes. AP-17."""
    seats = await board(world)
    await asyncio.gather(
        seats.decide("ann", Approve({"rows": [ROWS[0]]})),
        seats.decide("bob", Approve({"rows": [ROWS[1]]})),
    )
    seen = await seats.now()
    assert (seen.status, len(seen.assents)) == (ApprovalStatus.PENDING, 1)
    assert await seats.status() is S.AWAITING_APPROVAL


async def test_the_rows_of_the_last_edit_reach_the_next_step(world: World) -> None:
    """What the quorum agreed to is the step's output. AP-17."""
    seats = await board(world)
    await seats.decide("ann")
    await seats.decide("bob", Approve({"rows": [{"id": 2, "amount": 5}]}))
    await seats.decide("ann")
    _, (job,) = await world.take()
    assert job.context["steps"]["review"]["output"]["groups"] == {"rows": [{"id": 2, "amount": 5}]}


async def test_an_approve_of_other_rows_than_seen_is_refused(world: World) -> None:
    """A yes to rows that somebody has edited meanwhile decides nothing. AP-19."""
    seats = await board(world)
    seen = items_hash(await seats.now())
    await seats.decide("ann", Approve({"rows": [ROWS[1]]}), items_hash=seen)
    with pytest.raises(ItemsChanged):
        await seats.decide("bob", items_hash=seen)
    assert len((await seats.now()).assents) == 1
    fresh = items_hash(await seats.now())
    assert fresh != seen
    assert (await seats.decide("bob", items_hash=fresh)).status is ApprovalStatus.APPROVED


async def test_a_rejection_does_not_ask_what_was_seen(world: World) -> None:
    """Stopping is always open, whatever the rows have become. AP-19."""
    seats = await board(world)
    await seats.decide("ann", Approve({"rows": []}))
    decided = await seats.decide("bob", Reject(), items_hash="0" * 64)
    assert decided.status is ApprovalStatus.REJECTED


async def test_what_is_decided_is_decided_whatever_was_seen(world: World) -> None:
    """An approval that has its decision says so before it speaks of rows. AP-6, AP-19."""
    seats = await board(world, required=1)
    await seats.decide("ann")
    with pytest.raises(AlreadyDecided):
        await seats.decide("bob", items_hash="0" * 64)


@pytest.mark.parametrize("required", [1, 2])
async def test_who_started_it_does_not_approve_it(world: World, required: int) -> None:
    """Named or not, the starter may reject and not approve; the others may. AP-18."""
    seats = await board(world, required, allow_self_approval=False)
    with pytest.raises(Forbidden):
        await seats.decide("ann")
    for name in NAMES[1 : required + 1]:
        decided = await seats.decide(name)
    assert decided.status is ApprovalStatus.APPROVED
    assert (await board_of_two(world, seats)).status is ApprovalStatus.REJECTED


async def board_of_two(world: World, seats: Board) -> Approval:
    """Ann starts the same again and rejects it herself."""
    ann = seats.people["ann"]
    run = await executions.read_execution(world.services, OPERATOR, seats.approval.execution_id)
    await world.take()
    run_id = await world.start(ann, run.workflow_id)
    await world.take()
    (approval,) = await approvals.approvals_of(world.services, OPERATOR, run_id)
    return await Board(world, seats.people, approval).decide("ann", Reject())


async def test_the_operator_is_one_approver_unless_alone(world: World) -> None:
    """At the command line a yes counts once; with `alone` it is enough. AP-15."""
    seats = await board(world, required=3, allow_self_approval=False)
    assert (await seats.decide(None)).status is ApprovalStatus.PENDING
    with pytest.raises(AlreadyDecided):
        await seats.decide(None)
    assert (await seats.decide(None, alone=True)).status is ApprovalStatus.APPROVED


async def test_nobody_else_can_decide_alone(world: World) -> None:
    """`alone` in the mouth of an account is a plain yes. AP-15."""
    seats = await board(world)
    assert (await seats.decide("ann", alone=True)).status is ApprovalStatus.PENDING
