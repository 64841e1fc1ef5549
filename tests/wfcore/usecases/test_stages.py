"""Who must agree: stages one after another, groups of approvers, rules, and people; both stores."""

import pytest
from attrs import evolve

from wfcore.errors import AlreadyDecided, Forbidden, InvalidDefinition, InvalidInput, NotFound
from wfcore.model.access import OPERATOR, Guest, Principal
from wfcore.model.approval import Approval, ApprovalStatus, DecisionSource
from wfcore.model.page import PageRequest
from wfcore.model.workflow import Escalation, Stage, Variable, VariableType
from wfcore.ports.records import ApprovalFilter
from wfcore.rules.approval.machine import Approve, Decider, Delegate, Reject, decide
from wfcore.rules.limits import MAX_HISTORY
from wfcore.time import HOUR, DurationMs, EpochMs, later
from wfcore.usecases.approvals import approvals, deciding
from wfcore.usecases.approvals.deciding import Decide
from wfcore.usecases.approvals.delegating import delegate_approval
from wfcore.usecases.approvals.expiry import remind_due
from wfcore.usecases.audit.auditing import read_audit
from wfcore.usecases.executions import executions

from .conftest import World, code, review

NAMES = ("ann", "bob", "cyd", "dan")
S = ApprovalStatus


class Board:
    """People, and one approval of Ann's execution."""

    def __init__(self, world: World, people: dict[str, Principal], run_id: str) -> None:
        self.world, self.people, self.run_id = world, people, run_id

    async def now(self) -> Approval:
        return (await approvals.approvals_of(self.world.services, OPERATOR, self.run_id))[0]

    async def decide(self, name: str, decision: Approve | Reject | None = None) -> Approval:
        id = (await self.now()).id
        asked = Decide(id, decision or Approve(), DecisionSource.API)
        return await deciding.decide_approval(self.world.services, self.people[name], asked)


def mail(*names: str) -> tuple[str, ...]:
    return tuple(f"{name}@example.org" for name in names)


async def board(world: World, *, rows: tuple[object, ...] = (), **step: object) -> Board:
    people = {name: await world.account(f"{name}@example.org") for name in NAMES}
    groups = {"finance": mail("bob", "cyd")}
    asks = review(rows, **step)  # type: ignore[arg-type]
    flow = await world.workflow(people["ann"], asks, code("z"), approver_groups=groups)
    run_id = await world.start(people["ann"], flow)
    await world.take()
    return Board(world, people, run_id)


TWO = (Stage(("group:finance",)), Stage(mail("dan"), title="Board"))


async def test_stages_are_asked_one_after_another(world: World) -> None:
    """Who is asked later sees nothing before, and decides when those before have. AP-33, AP-34."""
    at = await board(world, stages=TWO)
    assert (await at.now()).approvers == mail("bob", "cyd")
    with pytest.raises(NotFound):
        await at.decide("dan")
    assert (await at.decide("bob")).status is S.PENDING
    with pytest.raises(Forbidden):
        await at.decide("cyd")
    done = await at.decide("dan")
    assert (done.status, [one.stage for one in done.assents]) == (S.APPROVED, [0, 1])


async def test_changed_rows_ask_the_stages_before_again(world: World) -> None:
    """What goes on is what every stage has agreed to. AP-17, AP-33."""
    at = await board(world, rows=({"id": 1}, {"id": 2}), stages=TWO)
    await at.decide("bob")
    changed = await at.decide("dan", Approve({"rows": [{"id": 1}]}))
    assert (changed.status, [one.by for one in changed.assents]) == (S.PENDING, ["dan@example.org"])
    assert (await at.decide("cyd")).status is S.APPROVED


async def test_a_person_is_one_voice_over_all_stages(world: World) -> None:
    """Bob is in both stages: his yes counts in the first. PL-3, AP-33."""
    at = await board(world, stages=(Stage(mail("bob")), Stage(mail("bob", "dan"))))
    await at.decide("bob")
    with pytest.raises(AlreadyDecided):
        await at.decide("bob")
    assert (await at.decide("dan")).status is S.APPROVED


async def test_a_stage_whose_condition_is_false_is_left_out(world: World) -> None:
    """It is decided when the approval opens. AP-33."""
    no = Stage(mail("bob"), when="{{ variables.big }}")
    people = {name: await world.account(f"{name}@example.org") for name in NAMES}
    big = {"big": Variable("big", VariableType.BOOLEAN, has_default=True, default=False)}
    asks = review(stages=(no, Stage(mail("dan"))))
    run_id = await world.start(
        people["ann"], await world.workflow(people["ann"], asks, variables=big)
    )
    await world.take()
    at = Board(world, people, run_id)
    assert (await at.decide("dan")).status is S.APPROVED


async def test_a_rule_approves_at_once_and_is_in_the_records(world: World) -> None:
    """The execution goes on without a pause; history and audit name the rule. AP-35."""
    at = await board(world, auto_approve="{{ execution.id }}")
    one = await at.now()
    assert (one.status, one.decision_source) == (S.APPROVED, DecisionSource.RULE)
    run = await executions.read_execution(world.services, OPERATOR, at.run_id)
    assert (run.status, run.step_results["review"].status) == ("RUNNING", "COMPLETED")
    entries = await read_audit(world.services, EpochMs(0), None, 100)
    assert ("approval.approve", "rule") in {(entry.event, entry.path) for entry in entries}


async def test_a_rule_is_nobody_where_people_are_counted(world: World) -> None:
    """With `humans: 2` two people approve, whatever the rule says. AP-35."""
    at = await board(
        world, auto_approve="{{ execution.id }}", humans=2, approvers=mail("bob", "cyd")
    )
    assert (await at.now()).status is S.PENDING
    assert (await at.decide("bob")).status is S.PENDING
    assert (await at.decide("cyd")).status is S.APPROVED


async def test_a_rule_is_one_of_several_approvals(world: World) -> None:
    """Where two must approve and people are not counted, one person is enough beside it. AP-35."""
    at = await board(
        world, auto_approve="{{ execution.id }}", required_approvals=2, approvers=mail("bob", "cyd")
    )
    assert (await at.decide("bob")).status is S.APPROVED


@pytest.mark.parametrize(
    ("step", "path"),
    [
        ({"stages": TWO, "approvers": mail("ann")}, "approvers"),
        ({"stages": TWO, "required_approvals": 2}, "requiredApprovals"),
        ({"stages": (Stage(mail("ann"), when="{{ execution.id }}"),)}, "stages"),
        ({"stages": (Stage(mail("ann")), Stage(mail("ann")))}, "stages"),
        ({"approvers": ("group:nobody",)}, "approvers[0]"),
        ({"approvers": mail("ann"), "humans": 2}, "requiredApprovals"),
    ],
)
async def test_what_nobody_could_decide_is_refused(
    world: World, step: dict[str, object], path: str
) -> None:
    """The checker names the field. AP-33, AP-34, AP-35."""
    ann = await world.account()
    with pytest.raises(InvalidDefinition) as refused:
        await world.workflow(ann, review(**step), approver_groups={"finance": mail("bob")})  # type: ignore[arg-type]
    assert f"steps[0].{path}" in {one.path for one in refused.value.problems}


async def delegate(at: Board, name: str, to: str, hours: int = 1) -> Approval:
    until = later(at.world.clock.deadline_now(), DurationMs(hours * HOUR))
    id, who = (await at.now()).id, at.people[name]
    to = f"{to}@example.org"
    return await delegate_approval(at.world.services, who, id, to, until, DecisionSource.API)


async def test_the_audit_log_names_who_lets_somebody_else_decide(world: World) -> None:
    """By the account, so that it is found among what that account did. AP-36, AL-1."""
    at = await board(world, approvers=mail("bob"), delegable=True)
    await delegate(at, "bob", "dan")
    entries = await read_audit(world.services, EpochMs(0), None, 100)
    (found,) = (one for one in entries if one.event == "approval.delegate")
    assert found.account_id == at.people["bob"].identity


async def test_a_delegate_decides_in_the_approvers_place(world: World) -> None:
    """The two are one voice; history and event log say who lets whom. AP-36, PL-3."""
    at = await board(world, approvers=mail("bob", "cyd"), required_approvals=2, delegable=True)
    with pytest.raises(NotFound):
        await at.decide("dan")
    asked = await delegate(at, "bob", "dan")
    entry = asked.history[-1]
    assert (entry.action, entry.by, entry.comment) == (
        "delegated",
        *mail("bob"),
        f"to {mail('dan')[0]}",
    )
    assert (await at.decide("dan")).status is S.PENDING
    with pytest.raises(AlreadyDecided):
        await at.decide("bob")
    assert (await at.decide("cyd")).status is S.APPROVED
    _, events = await executions.read_events(world.services, OPERATOR, at.run_id, 0)
    (told,) = (event.data for event in events if event.kind == "approval.delegated")
    (by,), (to,) = mail("bob"), mail("dan")
    assert told == {"step": asked.step_name, "approvalId": asked.id, "by": by, "to": to}


async def test_a_delegation_ends_and_is_not_passed_on(world: World) -> None:
    """After its time it grants nothing; before, the delegate is no approver. AP-36."""
    at = await board(world, approvers=mail("bob"), delegable=True)
    await delegate(at, "bob", "dan")
    with pytest.raises(Forbidden):
        await delegate(at, "dan", "cyd")
    world.clock.advance(HOUR)
    with pytest.raises(Forbidden):
        await at.decide("dan")
    assert (await at.decide("bob")).status is S.APPROVED


async def test_a_new_delegation_takes_the_place_of_the_old(world: World) -> None:
    """Whoever was let decide before is no approver now, and grants no second voice. AP-36."""
    at = await board(world, approvers=mail("bob"), required_approvals=1, delegable=True)
    await delegate(at, "bob", "dan")
    await delegate(at, "bob", "cyd")
    with pytest.raises(NotFound):
        await at.decide("dan")
    assert (await at.now()).approvers == mail("bob")
    assert (await at.decide("cyd")).status is S.APPROVED


async def test_an_approver_is_not_silenced_by_a_delegation(world: World) -> None:
    """Who is let decide and is an approver anyway has a voice of their own. AP-36, PL-3."""
    at = await board(world, approvers=mail("bob", "cyd"), required_approvals=2, delegable=True)
    await delegate(at, "bob", "cyd")
    await delegate(at, "cyd", "bob")
    with pytest.raises(Forbidden):  # the default rule does not apply
        await at.decide("ann")
    assert (await at.decide("cyd")).status is S.PENDING
    assert (await at.decide("bob")).status is S.APPROVED


async def test_a_delegate_may_be_asked_in_their_own_right_later(world: World) -> None:
    """After an escalation to a delegate, the end of the delegation takes nothing away. AP-37."""
    late = Escalation(DurationMs(HOUR), mail("dan"))
    at = await board(world, approvers=mail("bob"), escalate=late, delegable=True)
    await delegate(at, "bob", "dan")
    world.clock.advance(HOUR)
    await remind_due(world.services)
    assert (await at.decide("dan")).status is S.APPROVED


async def test_the_starter_as_a_guest_cannot_let_others(world: World) -> None:
    """By whatever way the starter comes, the delegate is the starter's voice. AP-18, AP-36."""
    at = await board(world, approvers=mail("ann"), delegable=True, allow_self_approval=False)
    ann, one = at.people["ann"], await at.now()
    guest = Guest(ann.email, one.id, ann.account_id)
    until, api = one.expires_at, DecisionSource.API
    await delegate_approval(world.services, guest, one.id, mail("dan")[0], until, api)
    with pytest.raises(Forbidden):
        await at.decide("dan")


@pytest.mark.parametrize("waits", [True, False])
async def test_an_approver_whose_delegate_agreed_is_not_waited_for(
    world: World, waits: bool
) -> None:
    """The list of what waits shows it to neither of the two, that of the agreed to both. AP-36."""
    at = await board(world, approvers=mail("bob", "cyd"), required_approvals=2, delegable=True)
    await delegate(at, "bob", "dan")
    await at.decide("dan")
    where = ApprovalFilter(waiting=waits, agreed=not waits)
    found = {}
    for name in NAMES:
        who = at.people[name]
        page = await approvals.list_approvals(world.services, who, PageRequest(1, 9), where)
        found[name] = page.total
    assert found == {name: int((name == "cyd") is waits and name != "ann") for name in NAMES}


@pytest.mark.parametrize("to", ["", " ", "dan @example.org", "x" * 201, "dan@example.org\n"])
async def test_whom_nobody_can_be_is_let_decide_nothing(world: World, to: str) -> None:
    """Names are as long as in a definition: what looks for them has an index. AP-36."""
    at = await board(world, approvers=mail("bob"), delegable=True)
    one = await at.now()
    ask = delegate_approval(
        world.services, at.people["bob"], one.id, to, one.expires_at, DecisionSource.API
    )
    if to.strip() == mail("dan")[0]:
        assert (await ask).delegations[0].to == to.strip()
    else:
        with pytest.raises(InvalidInput, match="to"):
            await ask


async def test_a_history_ends(world: World) -> None:
    """Of two who must agree one alone could change rows for ever, each time with a copy. AP-12."""
    at = await board(
        world, rows=({"id": 1},), approvers=mail("bob", "cyd"), required_approvals=2, delegable=True
    )
    one = await at.decide("bob")
    one = evolve(one, history=one.history[:1] * MAX_HISTORY)
    bob, cyd = (at.people[name] for name in ("bob", "cyd"))
    by_bob = Decider(bob.email, DecisionSource.API, account=bob.identity)
    for choice in (Approve({"rows": []}), Delegate("dan@example.org", one.expires_at)):
        with pytest.raises(Forbidden, match="too often"):
            decide(one, choice, by_bob, one.created_at)
    by_cyd = evolve(by_bob, by=cyd.email, account=cyd.identity)
    assert decide(one, Approve(), by_cyd, one.created_at).record.status is S.APPROVED
    assert decide(one, Reject(), by_bob, one.created_at).record.status is S.REJECTED


async def test_who_may_not_approve_cannot_let_others(world: World) -> None:
    """The starter's delegate is the starter's voice; not every step is delegable. AP-18, AP-36."""
    at = await board(world, approvers=mail("ann"), delegable=True, allow_self_approval=False)
    await delegate(at, "ann", "dan")
    with pytest.raises(Forbidden):
        await at.decide("dan")
    other = await board_of_others(at)
    with pytest.raises(Forbidden):
        await delegate(other, "ann", "dan")


async def board_of_others(at: Board) -> Board:
    """The same people, and an approval that is not delegable."""
    asks = review(approvers=mail("ann"))
    flow = await at.world.workflow(at.people["ann"], asks, name="other")
    run_id = await at.world.start(at.people["ann"], flow)
    await at.world.take()
    return Board(at.world, at.people, run_id)


async def test_it_is_escalated_once(world: World) -> None:
    """At its time, and not before, others may decide, too; it is due for the scheduler. AP-37."""
    late = Escalation(DurationMs(HOUR), mail("dan"))
    at = await board(world, approvers=mail("bob"), escalate=late)
    world.clock.advance(HOUR - 1)
    assert await remind_due(world.services) == 0
    with pytest.raises(NotFound):
        await at.decide("dan")
    world.clock.advance(1)
    assert [await remind_due(world.services) for _ in range(2)] == [1, 0]
    one = await at.now()
    assert (one.approvers, one.history[-1].action) == (mail("bob", "dan"), "escalated")
    assert (await at.decide("dan")).status is S.APPROVED


async def waiting(at: Board) -> list[str]:
    """In whose inbox it waits."""
    mine, page = ApprovalFilter(waiting=True), PageRequest()
    lists = {
        name: await approvals.list_approvals(at.world.services, who, page, mine)
        for name, who in at.people.items()
    }
    return [name for name, found in lists.items() if found.rows]


async def test_it_waits_for_those_alone_who_are_needed(world: World) -> None:
    """Bob's yes ends the stage of Bob and Cyd: from then on it waits for Dan alone. AP-38."""
    at = await board(world, stages=TWO)
    assert await waiting(at) == ["bob", "cyd"]
    await at.decide("bob")
    assert await waiting(at) == ["dan"]


async def test_it_waits_for_an_approver_or_the_delegate(world: World) -> None:
    """Both may decide; when one has, it waits for neither. AP-36, AP-38."""
    at = await board(world, approvers=mail("bob", "cyd"), required_approvals=2, delegable=True)
    bob, id = at.people["bob"], (await at.now()).id
    await delegate_approval(world.services, bob, id, *mail("dan"), None, DecisionSource.API)
    assert await waiting(at) == ["bob", "cyd", "dan"]
    await at.decide("dan")
    assert await waiting(at) == ["cyd"]


async def test_a_yes_counts_in_the_own_stage(world: World) -> None:
    """
    A rule approved for the first stage, Dan for the second, and of two people one is lacking. Cyd,
    of the first, changes rows: that is no yes of the second, which Dan must give again. AP-33.
    """
    rows = ({"n": 1}, {"n": 2})
    at = await board(world, rows=rows, stages=TWO, auto_approve="{{ execution.id }}", humans=2)
    assert (await at.decide("dan")).status is S.PENDING
    assert (await at.decide("cyd", Approve({"rows": [{"n": 1}]}))).status is S.PENDING
    assert await waiting(at) == ["dan"]
    assert (await at.decide("dan")).status is S.APPROVED
