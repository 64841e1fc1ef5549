"""Groups of the server: who manages them, what definitions make of them; over both stores."""

import asyncio

import pytest
from attrs import evolve

from wfcore.errors import Conflict, InvalidDefinition, InvalidInput, NotFound
from wfcore.model.access import OPERATOR, Principal, SignOnTerms
from wfcore.model.approval import Approval
from wfcore.model.execution import ExecutionStatus
from wfcore.model.review import Escalation, Stage
from wfcore.rules.approval.groups import NO_GROUPS, as_provider_says
from wfcore.rules.limits import MAX_GROUP_MEMBERS, MAX_GROUPS
from wfcore.time import HOUR, DurationMs, EpochMs
from wfcore.usecases.accounts.groups import (
    change_group,
    create_group,
    delete_group,
    list_groups,
    read_group,
)
from wfcore.usecases.approvals.approvals import approvals_of
from wfcore.usecases.audit.auditing import read_audit
from wfcore.usecases.executions import executions
from wfcore.usecases.upkeep.deleting_accounts import delete_account
from wfcore.usecases.workflows.workflows import delete_workflow, doubts

from .conftest import World, review
from .test_people_asked import ANN, BOB, EVE, WHO, opened


async def finance(world: World, *members: str) -> None:
    await create_group(world.services, OPERATOR, "finance", members)


async def test_a_group_of_the_server_stands_for_its_members(world: World) -> None:
    """`group:NAME` of any definition stands for the members as the approval opens. AP-49."""
    ann = await world.account(ANN)
    await finance(world, BOB, EVE)
    first = await opened(world, ann, approvers=("group:finance",))
    assert isinstance(first, Approval)
    assert first.approvers == (BOB, EVE)
    await change_group(world.services, OPERATOR, "finance", [ANN], [BOB])
    late = Escalation(DurationMs(HOUR), ("group:finance",))
    second = await opened(world, ann, stages=(Stage(("group:finance",), 2),), escalate=late)
    assert isinstance(second, Approval)
    assert second.approvers == second.escalate_to == (EVE, ANN)
    third = await opened(world, ann, ["group:finance"], approvers=WHO)
    assert isinstance(third, Approval)
    assert third.approvers == (EVE, ANN)


async def test_members_are_those_at_the_opening(world: World) -> None:
    """An approval that is open keeps its approvers, whatever becomes of the group. AP-49."""
    ann = await world.account(ANN)
    await finance(world, BOB)
    flow = await world.workflow(ann, review((), approvers=("group:finance",)))
    run_id = await world.start(ann, flow)
    await change_group(world.services, OPERATOR, "finance", [EVE], [BOB])
    (found,) = await approvals_of(world.services, OPERATOR, run_id)
    assert found.approvers == (BOB,)


async def test_the_definitions_group_comes_first(world: World) -> None:
    """A definition's group hides the server's of the same name, and apply says so. AP-34, AP-49."""
    ann = await world.account(ANN)
    await finance(world, BOB)
    found = await opened(world, ann, groups={"finance": (EVE,)}, approvers=("group:finance",))
    assert isinstance(found, Approval)
    assert found.approvers == (EVE,)
    async with world.services.store.view() as view:
        (definition,) = {
            one.workflow_id: one.definition for one in await view.definitions.in_use()
        }.values()
    assert await doubts(world.services, definition) == [
        "approverGroups.finance: this server has a group finance, too; here the definition's counts"
    ]
    assert await doubts(world.services, evolve(definition, approver_groups={})) == []


async def test_a_group_that_does_not_exist_is_a_mistake_at_apply(world: World) -> None:
    """A literal group that nobody has is refused by path, with the nearest name. AP-49."""
    ann = await world.account(ANN)
    await finance(world, BOB)
    step = review((), stages=(Stage((ANN,)), Stage(("group:finanse",))))
    with pytest.raises(InvalidDefinition) as refused:
        await world.workflow(ann, step, approver_groups={"board": (EVE,)})
    ((path, message),) = [(one.path, one.message) for one in refused.value.problems]
    assert path == "steps[0].stages[1].approvers[0]"
    assert message == (
        "'finanse' is no group of approverGroups or of this server; "
        "did you mean finance? known: board, finance"
    )
    one = evolve(world.services.policy, one_for_all=True)
    alone = evolve(world, services=evolve(world.services, policy=one))
    assert isinstance(await opened(alone, ann, approvers=("group:finanse",)), Approval)


@pytest.mark.parametrize(
    ("members", "required", "why"),
    [
        ((), 1, "names nobody who can decide"),
        ((BOB,), 2, "names 1 person who can approve, and 2 must"),
    ],
)
async def test_a_group_that_is_too_small_fails_the_step(
    world: World, members: tuple[str, ...], required: int, why: str
) -> None:
    """An empty group, or one with too few members, fails its step by name. AP-42, AP-49."""
    ann = await world.account(ANN)
    await finance(world, *members)
    found = await opened(world, ann, approvers=("group:finance",), required_approvals=required)
    assert isinstance(found, str)
    assert why in found


async def test_members_are_addresses_each_once(world: World) -> None:
    """An id is kept as the account's address, and every spelling is one member. AP-43, AP-49."""
    ann = await world.account(ANN)
    await finance(world, "ANN@example.org", ann.account.id, "x@Bücher.example")
    assert await list_groups(world.services) == {"finance": (ANN, "x@xn--bcher-kva.example")}
    assert await change_group(world.services, OPERATOR, "finance", (), [ann.account.id]) == (
        "x@xn--bcher-kva.example",
    )
    for name in ("nobody", "acc_nothing", "ann@example.org(x)"):
        with pytest.raises(InvalidInput, match=r"add\[0\]"):
            await change_group(world.services, OPERATOR, "finance", [name])
    for name in ("", " a", "a/b", "a:b", "x" * 65, "-a"):
        with pytest.raises(InvalidInput, match="name"):
            await create_group(world.services, OPERATOR, name)
    with pytest.raises(Conflict):
        await create_group(world.services, OPERATOR, "finance")
    for change in (change_group, delete_group):
        with pytest.raises(NotFound):
            await change(world.services, OPERATOR, "legal")
    with pytest.raises(NotFound):
        await read_group(world.services, "legal")


async def test_a_group_in_use_is_not_deleted(world: World) -> None:
    """A group that a workflow names, or an open execution, cannot be deleted. AP-49."""
    ann = await world.account(ANN)
    await finance(world, ANN)
    flow = await world.workflow(ann, review((), approvers=("group:finance",)))
    report = await read_group(world.services, "finance")
    assert report.uses == {flow: "flow"}
    assert [(email, one and one.id) for email, one in report.members] == [(ANN, ann.account.id)]
    with pytest.raises(Conflict, match="flow"):
        await delete_group(world.services, OPERATOR, "finance")
    run_id = await world.start(ann, flow)
    await world.workflow(ann, review((), approvers=(ANN,)))
    with pytest.raises(Conflict, match="flow"):
        await delete_group(world.services, OPERATOR, "finance")
    await executions.cancel_execution(world.services, ann, run_id)
    await delete_group(world.services, OPERATOR, "finance")
    assert await list_groups(world.services) == {}
    await delete_workflow(world.services, OPERATOR, flow)


async def test_who_changed_a_group_is_in_the_audit_log(world: World) -> None:
    """Every change of a group is one entry with its members; no change, no entry. AL-1, AP-49."""
    ann = await world.account(ANN)
    await create_group(world.services, ann, "finance", [BOB])
    await change_group(world.services, ann, "finance", [EVE], [BOB])
    await change_group(world.services, ann, "finance", [EVE], [BOB])
    await delete_group(world.services, ann, "finance")
    entries = await read_audit(world.services, EpochMs(0), None, 100)
    found = [(one.event, one.details) for one in entries if one.target == "finance"]
    assert found == [
        ("group.create", {"members": [BOB]}),
        ("group.change", {"add": [EVE], "remove": [BOB]}),
        ("group.delete", None),
    ]
    assert {one.account_id for one in entries if one.target == "finance"} == {ann.account.id}


async def test_changes_at_the_same_moment_are_all_kept(world: World) -> None:
    """Of many changes at once none is lost. AP-49, ST-1."""
    await finance(world)
    people = [f"p{n}@example.org" for n in range(12)]
    await asyncio.gather(
        *(change_group(world.services, OPERATOR, "finance", [one]) for one in people)
    )
    assert sorted((await list_groups(world.services))["finance"]) == sorted(people)


async def test_a_deleted_account_leaves_its_groups(world: World) -> None:
    """Whoever is deleted is no member any more, and gets no link by a group. AC-9."""
    bob = await world.account(BOB)
    await finance(world, BOB, EVE)
    await delete_account(world.services, bob.account.id)
    assert await list_groups(world.services) == {"finance": (EVE,)}


def test_a_provider_decides_only_the_groups_that_the_settings_name() -> None:
    """Membership follows the provider for named groups alone; full groups stay. AP-50."""
    decided = SignOnTerms(groups={"7f3": "finance", "legal": "legal"}).groups
    before = evolve(NO_GROUPS, members={"board": (ANN,), "legal": (ANN, BOB)})
    after = as_provider_says(before, ANN, {"7f3", "board", "admins"}, decided)
    assert after.members == {"board": (ANN,), "legal": (BOB,), "finance": (ANN,)}
    assert as_provider_says(after, ANN, {"7f3"}, decided) == after
    assert as_provider_says(after, ANN, (), decided).members["finance"] == ()
    assert as_provider_says(NO_GROUPS, ANN, (), decided) == NO_GROUPS
    full = tuple(f"p{n}@example.org" for n in range(MAX_GROUP_MEMBERS))
    crowded = evolve(NO_GROUPS, members={"finance": full})
    assert as_provider_says(crowded, ANN, {"7f3"}, decided) == crowded
    many = evolve(NO_GROUPS, members={f"g{n}": () for n in range(MAX_GROUPS)})
    assert as_provider_says(many, ANN, {"7f3"}, decided) == many


async def test_sizes_are_bounded(world: World) -> None:
    """A group has a bounded number of members. AP-49."""
    full = [f"p{n}@example.org" for n in range(MAX_GROUP_MEMBERS)]
    await finance(world, *full)
    with pytest.raises(InvalidInput, match="at most"):
        await change_group(world.services, OPERATOR, "finance", [ANN])


async def test_an_owner_applies_the_same_definition_with_either_group(world: World) -> None:
    """The definition of one workflow names groups that several workflows share. AP-49."""
    await finance(world, BOB)
    for email in (ANN, EVE):
        who: Principal = await world.account(email)
        flow = await world.workflow(who, review((), approvers=("group:finance",)))
        run_id = await world.start(who, flow)
        run = await executions.read_execution(world.services, OPERATOR, run_id)
        assert run.status is ExecutionStatus.AWAITING_APPROVAL
