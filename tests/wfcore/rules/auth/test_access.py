"""Who sees what and may do what, over every case there is."""

from itertools import product

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from wfcore.errors import (
    AccountBlocked,
    AuthReason,
    Forbidden,
    NotFound,
    SignInFirst,
    Unauthenticated,
)
from wfcore.model.access import OPERATOR, AccountStatus, Guest, Permission, Principal, Scope
from wfcore.model.approval import ApprovalStatus, Attachment, Group, HistoryEntry
from wfcore.model.workflow import Column, Links
from wfcore.rules.auth.access import (
    includes,
    is_approver,
    permission_on,
    person,
    require_active,
    require_links_open,
    require_operator,
    require_permission,
    require_scope,
    sees_approval,
    sees_execution,
    shown_to,
)
from wfcore.testing import builders
from wfcore.testing.builders import NOW
from wfcore.testing.strategies.values import ACCOUNT_IDS, accounts, api_keys, shares

RISING = [Permission.VIEW, Permission.EXECUTE, Permission.EDIT]
WORKFLOW = builders.workflow(owner_id="acc_1")


@pytest.mark.parametrize(("held", "wanted"), list(product(RISING, RISING)))
def test_each_permission_includes_the_ones_before_it(held, wanted):
    """AC-2: VIEW < EXECUTE < EDIT, over all nine pairs."""
    assert includes(held, wanted) is (RISING.index(held) >= RISING.index(wanted))


@pytest.mark.parametrize(("held", "wanted"), list(product([None, *RISING], RISING)))
def test_a_share_opens_what_it_says(held, wanted):
    """AC-3: without a share the workflow does not exist; below *wanted* it is forbidden."""
    share = held and builders.share("wf_1", "acc_2", permission=held)
    if held is None:
        with pytest.raises(NotFound):
            require_permission(WORKFLOW, "acc_2", share, wanted)
    elif not includes(held, wanted):
        with pytest.raises(Forbidden):
            require_permission(WORKFLOW, "acc_2", share, wanted)
    else:
        assert require_permission(WORKFLOW, "acc_2", share, wanted) is WORKFLOW


@given(shares(), st.sampled_from(RISING))
def test_the_owner_may_everything(share, wanted):
    """AC-3: whatever shares there are."""
    assert permission_on(WORKFLOW, "acc_1", share) is Permission.EDIT
    assert require_permission(WORKFLOW, "acc_1", share, wanted) is WORKFLOW


@given(st.sampled_from(["wf_1", "wf_2"]), st.sampled_from(ACCOUNT_IDS), st.data())
def test_a_share_of_something_else_opens_nothing(workflow_id, account_id, data):
    """AC-3: a share counts for its own workflow and its own account only."""
    share = data.draw(shares(workflow_id))
    fits = share and (share.workflow_id, share.account_id) == ("wf_1", account_id)
    held = permission_on(builders.workflow(owner_id="acc_0"), account_id, share)
    assert held == (share.permission if fits else None)


@given(st.sampled_from(RISING), shares())
def test_missing_and_invisible_are_one_answer(wanted, share):
    """AC-3: nobody learns whether a workflow exists that it cannot see."""
    answers = set()
    for workflow in (None, builders.workflow(owner_id="acc_0")):
        with pytest.raises(NotFound) as refused:
            require_permission(workflow, "acc_9", share, wanted)
        answers.add(str(refused.value))
    assert answers == {"Workflow not found"}


@pytest.mark.parametrize("status", AccountStatus)
def test_only_an_active_account_is_admitted(status):
    """AC-1: disabled and locked ones are told so."""
    account = builders.account(status=status)
    if status is AccountStatus.ACTIVE:
        require_active(account)
    else:
        with pytest.raises(AccountBlocked) as refused:
            require_active(account, "key_1")
        assert (refused.value.account_id, refused.value.key_id) == (account.id, "key_1")


@given(accounts(), st.none() | api_keys(), st.sampled_from(Scope))
def test_a_scope_opens_only_what_it_names(account, key, scope):
    """AU-4: a key needs that very scope; a console session has none."""
    who = Principal(account, key)
    if key is not None and scope in key.scopes:
        require_scope(who, scope)
    else:
        with pytest.raises(Unauthenticated) as refused:
            require_scope(who, scope)
        told = (refused.value.reason, refused.value.account_id, refused.value.key_id)
        assert told == (AuthReason.SCOPE_MISSING, account.id, key.id if key else None)
        assert str(refused.value) == "Unauthorized"


@given(*[st.sampled_from(ACCOUNT_IDS)] * 3)
def test_an_execution_is_seen_by_its_two_owners(owner, workflow_owner, account):
    """AC-4: the one it belongs to and the workflow's; nobody else, whatever they share."""
    run = builders.execution(owner_id=owner, workflow_owner_id=workflow_owner)
    assert sees_execution(run, account) is (account in {owner, workflow_owner})


OWNERS = ["acc_1", "acc_2"]
NAMED = [(), ("acc_1",), (" ACC_1@Example.org ", "acc_9"), ("acc_2",)]
CASES = list(product(NAMED, OWNERS, OWNERS, [None, *RISING]))


def case(approvers, owner, workflow_owner, held):
    """What `acc_1` is asked about: an approval, and its share of the workflow."""
    approval = builders.approval(
        approvers=approvers, owner_id=owner, workflow_owner_id=workflow_owner
    )
    share = held and builders.share("wf_1", "acc_1", permission=held)
    return approval, Principal(builders.account("acc_1")), share


@pytest.mark.parametrize(("approvers", "owner", "workflow_owner", "held"), CASES)
def test_the_approver_rule(approvers, owner, workflow_owner, held):
    """AP-10: the named ones where any is named, else the two owners and those with EDIT."""
    if approvers:
        wanted = approvers in NAMED[1:3]
    else:
        wanted = "acc_1" in (owner, workflow_owner) or held is Permission.EDIT
    assert is_approver(*case(approvers, owner, workflow_owner, held)) is wanted


@pytest.mark.parametrize("has_account", [True, False])
@pytest.mark.parametrize(("approvers", "owner", "workflow_owner", "held"), CASES)
def test_a_guest_is_an_approver_of_one_approval(
    approvers, owner, workflow_owner, held, has_account
):
    """PL-2: by the same rule as the account with that email, and of no other approval."""
    approval, who, share = case(approvers, owner, workflow_owner, held)
    guest = Guest(who.email.upper(), approval.id, who.account_id if has_account else None)
    share = share if has_account else None
    wanted = is_approver(approval, who, share) if has_account else approvers == NAMED[2]
    assert is_approver(approval, guest, share) is wanted
    assert sees_approval(approval, guest, share) is wanted, "owners see theirs, guests do not"
    assert not sees_approval(evolve(approval, id="appr_2"), guest, share)


def test_a_guest_sees_the_outcome_and_no_rows_of_a_closed_approval():
    """PL-4: until then all of it; an account sees all of it for good."""
    group = Group("rows", "Rows", (), ({"id": 1},))
    approval = builders.approval(
        groups=(group,),
        history=(HistoryEntry(NOW, "created"),),
        attachments=(Attachment("art_1", "exec_1", "make", "list.csv", 3, "text/csv", "ab" * 32),),
        fields=(Column("amount", "Amount"),),
        answers={"amount": "3"},
    )
    who, guest = Principal(builders.account()), Guest("acc_1@example.org", "appr_1")
    for status in ApprovalStatus:
        now_is = evolve(approval, status=status)
        shut = evolve(now_is, groups=(), history=(), attachments=(), fields=(), answers={})
        assert shown_to(now_is, who) is shown_to(now_is, OPERATOR) is now_is
        assert shown_to(now_is, guest) == (now_is if status is ApprovalStatus.PENDING else shut)


def test_links_of_a_step_that_wants_a_sign_in_open_nothing():
    """PL-5: guests are sent to sign in; who is signed in may."""
    approval = builders.approval(links=Links.SIGN_IN)
    require_links_open(approval, Principal(builders.account()))
    require_links_open(builders.approval(), Guest("acc_1@example.org", "appr_1"))
    with pytest.raises(SignInFirst, match="sign in"):
        require_links_open(approval, Guest("acc_1@example.org", "appr_1"))


@pytest.mark.parametrize(("approvers", "owner", "workflow_owner", "held"), CASES)
def test_an_approval_is_seen_by_owners_and_approvers(approvers, owner, workflow_owner, held):
    """AC-5: named approvers see it too; owners see it even where others decide."""
    asked = case(approvers, owner, workflow_owner, held)
    owns = "acc_1" in (owner, workflow_owner)
    assert sees_approval(*asked) is (owns or is_approver(*asked))


@pytest.mark.parametrize(
    ("marked", "named", "operates"),
    [
        (False, (), False),
        (True, (), True),
        (False, ("ann@example.org",), True),
        (False, ("bob@example.org",), False),
    ],
)
def test_an_operator_is_marked_or_named(marked, named, operates):
    """AC-7: pages for operators do not exist for anybody else, guests included."""
    account = builders.account(email="Ann@Example.org", operator=marked)
    who = person(account, frozenset({Scope.WORKFLOW_READ}), named)
    assert (who.account, who.scopes, who.operator) == (account, {Scope.WORKFLOW_READ}, operates)
    if operates:
        require_operator(who)
    else:
        for other in (who, Guest("ann@example.org", "appr_1")):
            with pytest.raises(NotFound, match=r"^Page not found$"):
                require_operator(other)
