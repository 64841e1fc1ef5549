"""Decisions on approvals: one wins, rows are exact, time counts by itself."""

import asyncio
import re
from typing import Any

import pytest
from attrs import evolve

from wfcore.errors import AlreadyDecided, Forbidden, InvalidInput, NotFound, WfError
from wfcore.model.access import OPERATOR, Permission, Principal, Unrestricted
from wfcore.model.approval import Approval, ApprovalStatus, DecisionOutcome, DecisionSource
from wfcore.model.execution import ExecutionStatus, ReasonCode
from wfcore.model.page import PageRequest
from wfcore.model.workflow import ApprovalStep, Variable
from wfcore.ports.records import ApprovalFilter
from wfcore.rules.approval.agreement import items_hash
from wfcore.rules.approval.machine import Approve, Reject
from wfcore.rules.limits import MAX_DECISIONS
from wfcore.time import DAY
from wfcore.usecases.approvals import approvals, deciding
from wfcore.usecases.approvals.deciding import Decide
from wfcore.usecases.approvals.several import decide_several
from wfcore.usecases.executions import executions
from wfcore.usecases.upkeep import sweeping
from wfcore.usecases.workflows import workflows

from .conftest import World, code, review

S = ExecutionStatus
S_REJECTED = ApprovalStatus.REJECTED
ROWS = [{"id": 1, "amount": 10}, {"id": 2, "amount": 20}]


async def waiting(world: World, who: Principal, **more: object) -> Approval:
    """An open approval over ROWS, of an execution with a step after it."""
    workflow = await world.workflow(who, review(ROWS, **more), code("after"))
    run_id = await world.start(who, workflow)
    await world.take()
    (approval,) = await approvals.approvals_of(world.services, who, run_id)
    return approval


async def decide(
    world: World, who: Principal | Unrestricted, approval: Approval, decision: Approve | Reject
) -> Approval:
    asked = Decide(approval.id, decision, DecisionSource.API, "because")
    return await deciding.decide_approval(world.services, who, asked)


async def test_approved_rows_reach_the_next_step_as_they_were(world: World) -> None:
    """Without `editedItems` the original rows are released. AP-7."""
    ann = await world.account()
    approval = await waiting(world, ann)
    decided = await decide(world, ann, approval, Approve())
    assert (decided.status, decided.decided_by) == (ApprovalStatus.APPROVED, "ann@example.org")
    _, (job,) = await world.take()
    output = job.context["steps"]["review"]["output"]
    assert output["groups"] == {"rows": ROWS}
    assert (output["decision"], output["comment"]) == ("approve", "because")


async def test_only_the_rows_submitted_are_released(world: World) -> None:
    """With `editedItems` exactly its rows go on, and the history shows both. AP-8."""
    ann = await world.account()
    approval = await waiting(world, ann)
    edited = [{"id": 2, "amount": 5}]
    decided = await decide(world, ann, approval, Approve({"rows": edited}))
    _, (job,) = await world.take()
    assert job.context["steps"]["review"]["output"]["groups"] == {"rows": edited}
    assert decided.history[-1].rows_before == {"rows": tuple(ROWS)}
    assert decided.history[-1].rows_after == {"rows": tuple(edited)}


async def test_a_mistake_in_the_rows_decides_nothing(world: World) -> None:
    """An unknown group is refused and the approval stays open. AP-9."""
    ann = await world.account()
    approval = await waiting(world, ann)
    with pytest.raises(InvalidInput):
        await decide(world, ann, approval, Approve({"rwos": []}))
    assert await approvals.read_approval(world.services, ann, approval.id) == approval


@pytest.mark.parametrize("racers", [50])
async def test_of_racing_decisions_exactly_one_wins(world: World, racers: int) -> None:
    """Fifty approvals and rejections at once: one is recorded, the others are told so. AP-6."""
    ann = await world.account()
    approval = await waiting(world, ann)
    attempts = [
        decide(world, ann, approval, Approve() if n % 2 else Reject()) for n in range(racers)
    ]
    answers = await asyncio.gather(*attempts, return_exceptions=True)
    won = [answer for answer in answers if isinstance(answer, Approval)]
    assert len(won) == 1
    assert all(isinstance(answer, Approval | AlreadyDecided) for answer in answers)
    stored = await approvals.read_approval(world.services, ann, approval.id)
    assert stored.status is won[0].status
    run = await executions.read_execution(world.services, ann, approval.execution_id)
    approved = stored.status is ApprovalStatus.APPROVED
    assert run.status is (S.RUNNING if approved else S.CANCELLED)


async def test_a_rejection_stops_the_execution(world: World) -> None:
    """Rejected: CANCELLED with its reason, and no later step runs. AP-3, EX-6."""
    ann = await world.account()
    approval = await waiting(world, ann)
    await decide(world, ann, approval, Reject())
    run = await executions.read_execution(world.services, ann, approval.execution_id)
    assert run.status is S.CANCELLED
    assert run.status_reason is not None
    assert run.status_reason.code is ReasonCode.APPROVAL_REJECTED
    assert "after" not in run.step_results


async def test_an_expired_approval_counts_as_rejected_before_any_timer(world: World) -> None:
    """From `expiresAt` on nobody can decide, and every view shows the rejection. AP-4."""
    ann = await world.account()
    approval = await waiting(world, ann)
    world.clock.advance(DAY - 1)
    seen = await approvals.read_approval(world.services, ann, approval.id)
    assert seen.status is ApprovalStatus.PENDING
    world.clock.advance(1)
    with pytest.raises(AlreadyDecided):
        await decide(world, ann, approval, Approve())
    seen = await approvals.read_approval(world.services, ann, approval.id)
    assert (seen.status, seen.decision_source) == (ApprovalStatus.REJECTED, DecisionSource.TIMEOUT)
    run = await executions.read_execution(world.services, ann, approval.execution_id)
    assert run.status_reason is not None
    assert run.status_reason.code is ReasonCode.APPROVAL_TIMEOUT


async def test_a_decision_that_comes_too_late_records_the_expiry(world: World) -> None:
    """It is refused whatever rows its author saw, and the timeout is on record after it. AP-4."""
    ann = await world.account()
    approval = await waiting(world, ann)
    world.clock.advance(DAY)
    asked = Decide(approval.id, Approve(), DecisionSource.API, items_hash="of other rows")
    with pytest.raises(AlreadyDecided):
        await deciding.decide_approval(world.services, ann, asked)
    async with world.services.store.view() as view:
        stored = await view.get(Approval, approval.id)
    assert stored is not None
    assert (stored.status, stored.decision_source) == (S_REJECTED, DecisionSource.TIMEOUT)


async def test_a_decision_reads_its_approval_once(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One unit of work reads the approval, decides and stores it: nobody gets in between. AP-6."""
    ann = await world.account()
    approval = await waiting(world, ann)
    read: list[tuple[object, ...]] = []
    store = world.services.store
    for kind in {type(store.unit()), type(store.view())}:
        get = kind.get

        async def counted(self: object, *wanted: object, get: Any = get) -> object:
            read.append(wanted)
            return await get(self, *wanted)

        monkeypatch.setattr(kind, "get", counted)
    await decide(world, ann, approval, Approve())
    assert read.count((Approval, approval.id)) == 1


async def test_lists_and_executions_show_an_expiry_too(world: World) -> None:
    """A list by status and a poll settle what is due before they answer. AP-4."""
    ann = await world.account()
    approval = await waiting(world, ann)
    world.clock.advance(DAY)
    open_ones = await approvals.list_approvals(
        world.services, ann, PageRequest(), ApprovalFilter(statuses=(ApprovalStatus.PENDING,))
    )
    assert open_ones.total == 0
    listed = await executions.list_executions(world.services, ann, PageRequest())
    assert [run.status for run in listed.rows] == [S.CANCELLED]
    assert listed.rows[0].id == approval.execution_id


async def test_a_poll_alone_settles_an_expiry(world: World) -> None:
    """Reading the execution is enough to see it end. AP-4."""
    ann = await world.account()
    approval = await waiting(world, ann)
    world.clock.advance(DAY)
    run = await executions.read_execution(world.services, ann, approval.execution_id)
    assert run.status is S.CANCELLED


async def test_a_decision_and_an_expiry_never_both_happen(world: World) -> None:
    """A sweep that races fifty decisions at the last moment changes nothing twice. AP-6."""
    ann = await world.account()
    approval = await waiting(world, ann)
    racing = [decide(world, ann, approval, Approve()) for _ in range(50)]
    world.clock.advance(DAY)
    answers = await asyncio.gather(sweeping.sweep(world.services), *racing, return_exceptions=True)
    assert all(isinstance(answer, AlreadyDecided) for answer in answers[1:])
    seen = await approvals.read_approval(world.services, ann, approval.id)
    assert len(seen.history) == 2


async def test_who_is_no_approver_sees_but_may_not_decide(world: World) -> None:
    """The owner of an execution whose step names other approvers gets `Forbidden`. AP-10."""
    ann = await world.account()
    bob = await world.account("bob@example.org")
    approval = await waiting(world, ann, approvers=("BOB@example.org",))
    with pytest.raises(Forbidden):
        await decide(world, ann, approval, Approve())
    assert (await decide(world, bob, approval, Approve())).decided_by == "bob@example.org"


async def test_strangers_do_not_see_it(world: World) -> None:
    """To others the approval does not exist, in every view. AC-5."""
    ann = await world.account()
    eve = await world.account("eve@example.org")
    approval = await waiting(world, ann)
    deeds = (
        approvals.read_approval(world.services, eve, approval.id),
        approvals.approvals_of(world.services, eve, approval.execution_id),
        decide(world, eve, approval, Approve()),
    )
    for deed in deeds:
        with pytest.raises(NotFound):
            await deed
    listed = await approvals.list_approvals(world.services, eve, PageRequest())
    assert listed.total == 0


async def test_an_edit_share_makes_an_approver(world: World) -> None:
    """Where no approvers are named, EDIT on the workflow is enough; EXECUTE is not. AP-10."""
    ann = await world.account()
    bob = await world.account("bob@example.org")
    approval = await waiting(world, ann)
    for permission in (Permission.EXECUTE, Permission.EDIT):
        await workflows.share_workflow(
            world.services, OPERATOR, approval.workflow_id, bob.account.id, permission
        )
        if permission is Permission.EXECUTE:
            with pytest.raises(WfError):
                await decide(world, bob, approval, Approve())
    assert (await decide(world, bob, approval, Approve())).status is ApprovalStatus.APPROVED


async def test_a_secret_never_reaches_a_reviewer(world: World) -> None:
    """The value of a secret variable is masked in the message that people read."""
    ann = await world.account()
    token = Variable("token", secret=True, has_default=True, default="hunter2hunter2")
    step = ApprovalStep("review", "{{ variables.token }}")
    workflow = await world.workflow(ann, step, variables={"token": token})
    run_id = await world.start(ann, workflow)
    await world.take()
    (approval,) = await approvals.approvals_of(world.services, ann, run_id)
    assert approval.message == "***"


async def test_several_decisions_are_plain_or_none_is_made(world: World) -> None:
    """Not too many, each approval once, and what is approved was seen. AP-39."""
    ann = await world.account()
    one = await waiting(world, ann)
    seen = Decide(one.id, Approve(), DecisionSource.API, items_hash=items_hash(one))
    for asked, wrong in (
        ([seen] * (MAX_DECISIONS + 1), "decisions: at most 50 at once"),
        ([seen, seen], "decisions[1].approvalId: stands twice; say it once"),
        ([evolve(seen, items_hash=None)], "decisions[0].expectedItemsHash: is required to approve"),
    ):
        with pytest.raises(InvalidInput, match=f"^{re.escape(wrong)}"):
            await decide_several(world.services, ann, asked)
    (made,) = await decide_several(world.services, ann, [seen])
    assert (made.approval_id, made.outcome) == (one.id, DecisionOutcome.DECIDED)
