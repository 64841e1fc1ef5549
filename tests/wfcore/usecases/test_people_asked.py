"""Who counts among the people that an approval names, as it opens; over both stores."""

from typing import Any

import pytest
from attrs import evolve

from wfcore.errors import InvalidDefinition, InvalidInput
from wfcore.model.access import OPERATOR, AccountStatus, Permission, Principal
from wfcore.model.approval import Approval, DecisionSource
from wfcore.model.execution import ExecutionStatus
from wfcore.model.review import Escalation, Stage
from wfcore.model.workflow import Variable, VariableType
from wfcore.time import HOUR, DurationMs
from wfcore.usecases.accounts import accounts
from wfcore.usecases.approvals import approvals, deciding
from wfcore.usecases.approvals.delegating import delegate_approval
from wfcore.usecases.executions import executions, starting
from wfcore.usecases.workflows import workflows

from .conftest import World, review

ANN, BOB, EVE = "ann@example.org", "bob@example.org", "eve@evil.example"
WHO = ("{{ variables.who }}",)
_TYPES = {str: VariableType.STRING, list: VariableType.ARRAY, int: VariableType.NUMBER}


async def opened(
    world: World, ann: Principal, who: Any = "", groups: Any = None, **step: Any
) -> Approval | str:
    """The approval that opens for *ann*, or the error of the execution that failed instead."""
    flow = await world.workflow(
        ann,
        review((), **step),
        variables={"who": Variable("who", _TYPES[type(who)])},
        approver_groups=groups or {},
        name=f"flow {hash((str(step), str(who)))}",
    )
    run_id = (await starting.start_execution(world.services, ann, flow, {"who": who})).execution_id
    run = await executions.read_execution(world.services, OPERATOR, run_id)
    if run.status is ExecutionStatus.FAILED:
        return run.error or ""
    return (await approvals.approvals_of(world.services, OPERATOR, run_id))[0]


def trusting(world: World, *outsiders: str) -> World:
    policy = evolve(world.services.policy, gate_approvers=frozenset(outsiders))
    return evolve(world, services=evolve(world.services, policy=policy))


@pytest.mark.parametrize(
    ("who", "named"),
    [
        (BOB, (BOB,)),
        ([BOB, ANN, EVE], (BOB, ANN)),
        ("BOB@Example.org", ("BOB@Example.org",)),
        ("group:board", (EVE,)),
        (["group:board", BOB], (EVE, BOB)),
    ],
)
async def test_a_template_names_people(world: World, who: Any, named: tuple[str, ...]) -> None:
    """A text or a list of data names active accounts, and groups of the definition. AP-41."""
    ann, _ = await world.account(ANN), await world.account(BOB)
    found = await opened(world, ann, who, {"board": (EVE,)}, approvers=WHO)
    assert isinstance(found, Approval), found
    assert found.approvers == named


@pytest.mark.parametrize(
    ("who", "why"),
    [
        (EVE, "template 'approvers': names nobody who can decide"),
        ([], "template 'approvers': names nobody who can decide"),
        ("acc_nothing", "template 'approvers': names nobody who can decide"),
        ("notanemail", "gives 'notanemail', which is not an email address or an account id"),
        ("bob@example.org(x)", "which is not an email address or an account id"),
        ("", "which is not an email address or an account id"),
        (7, "must give text, or a list of texts"),
        ([BOB, {"to": EVE}], "must give text, or a list of texts"),
        ("group:nobody", "'group:nobody' is no group of approverGroups or of this server"),
        ([BOB] * 201, "gives 201 names; at most 200"),
    ],
)
async def test_data_that_names_nobody_fails_the_step(world: World, who: Any, why: str) -> None:
    """A step whose template names nobody who counts fails by name, and asks nobody. AP-41."""
    ann, _ = await world.account(ANN), await world.account(BOB)
    found = await opened(world, ann, who, approvers=WHO)
    assert isinstance(found, str), found.approvers
    assert why in found
    assert "review" in found


@pytest.mark.parametrize("trusted", [EVE, "@evil.example"])
async def test_the_operator_trusts_addresses_and_domains(world: World, trusted: str) -> None:
    """Data may name whom the operator trusts, by address or domain, and nobody below it. AP-41."""
    ann, world = await world.account(ANN), trusting(world, trusted)
    found = await opened(world, ann, ["EVE@evil.example", "x@sub.evil.example"], approvers=WHO)
    assert isinstance(found, Approval)
    assert found.approvers == ("EVE@evil.example",)


async def test_what_the_author_wrote_is_their_word(world: World) -> None:
    """A literal address needs no account; a disabled account decides nothing. AP-41, AP-42."""
    ann, bob = await world.account(ANN), await world.account(BOB)
    found = await opened(world, ann, approvers=(EVE, BOB))
    assert isinstance(found, Approval)
    assert found.approvers == (EVE, BOB)
    await accounts.set_account(
        world.services, OPERATOR, bob.account.id, status=AccountStatus.DISABLED
    )
    for step in ({"approvers": (BOB,)}, {"approvers": WHO}):
        lost = await opened(world, ann, BOB, **step)
        assert isinstance(lost, str)
        assert "names nobody who can decide" in lost


async def test_one_person_by_address_and_id_is_one(world: World) -> None:
    """Two names of one person are one voice, so a quorum of two fails as it opens. AP-42."""
    ann, bob = await world.account(ANN), await world.account(BOB)
    twice = (BOB, bob.account.id)
    found = await opened(world, ann, approvers=twice, required_approvals=2)
    assert isinstance(found, str)
    assert "'approvers': names 1 person who can approve, and 2 must" in found
    assert isinstance(
        await opened(world, ann, approvers=(*twice, ANN), required_approvals=2), Approval
    )


async def test_stages_need_different_people(world: World) -> None:
    """Nobody fills places in two stages, whichever way their people are spread. AP-33, AP-42."""
    ann, bob = await world.account(ANN), await world.account(BOB)
    id = bob.account.id
    bad = (Stage((BOB, EVE)), Stage((id,)), Stage((EVE,)))
    found = await opened(world, ann, stages=bad)
    assert isinstance(found, str)
    assert "'stages': names 2 different people" in found
    good = (Stage((BOB, EVE, ANN)), Stage((id,)), Stage((EVE,)))
    assert isinstance(await opened(world, ann, stages=good), Approval)


async def test_who_may_edit_is_counted_without_names(world: World) -> None:
    """Without approvers a quorum needs enough owners and accounts with EDIT. AP-10, AP-42."""
    ann, bob = await world.account(ANN), await world.account(BOB)
    flow = await world.workflow(ann, review((), required_approvals=2))
    first = await executions.read_execution(world.services, OPERATOR, await world.start(ann, flow))
    assert first.status is ExecutionStatus.FAILED
    await workflows.share_workflow(world.services, OPERATOR, flow, bob.account.id, Permission.EDIT)
    second = await executions.read_execution(world.services, OPERATOR, await world.start(ann, flow))
    assert second.status is ExecutionStatus.AWAITING_APPROVAL


async def test_ids_of_no_account_are_mistakes(world: World) -> None:
    """An id that is no account's is named by its path when a definition is applied. AP-43."""
    ann = await world.account(ANN)
    late = Escalation(DurationMs(HOUR), ("acc_nothing",))
    step = review((), stages=(Stage((ANN,)), Stage((ann.account.id, "acc_lost"))), escalate=late)
    with pytest.raises(InvalidDefinition) as refused:
        await world.workflow(ann, step, approver_groups={"board": ("acc_none",)})
    assert {one.path: one.message for one in refused.value.problems} == {
        "steps[0].stages[1].approvers[1]": "there is no account 'acc_lost'",
        "steps[0].escalate.to[0]": "there is no account 'acc_nothing'",
        "approverGroups.board[0]": "there is no account 'acc_none'",
    }


@pytest.mark.parametrize(
    "to", ["bob@example.org(x)", "acc_nothing", "notanemail", "ANN@example.org", "self"]
)
async def test_delegates_are_somebody_else(world: World, to: str) -> None:
    """A delegate is one mailbox or account, and not the approver by another name. AP-36, AP-43."""
    ann = await world.account(ANN)
    found = await opened(world, ann, approvers=(ANN, BOB), delegable=True)
    assert isinstance(found, Approval)
    to = ann.account.id if to == "self" else to
    with pytest.raises(InvalidInput, match="to"):
        await delegate_approval(world.services, ann, found.id, to, None, DecisionSource.API)


async def test_an_approver_with_a_domain_of_any_script_decides(world: World) -> None:
    """An approver written in letters and an account in A-labels are one person. AP-43."""
    ann = await world.account("ann@xn--bcher-kva.example")
    found = await opened(world, ann, approvers=("Ann@Bücher.example",), required_approvals=1)
    assert isinstance(found, Approval)
    asked = deciding.Decide(found.id, approvals.Approve(), DecisionSource.API)
    done = await deciding.decide_approval(world.services, ann, asked)
    assert done.status == "APPROVED"
