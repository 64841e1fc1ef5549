"""Stages, people and rules: nothing is approved without enough of the right voices."""

from collections import Counter
from contextlib import suppress

from hypothesis import given
from hypothesis import strategies as st

from wfcore.errors import AlreadyDecided
from wfcore.model.access import Principal
from wfcore.model.approval import ApprovalStatus, DecisionSource, Group
from wfcore.model.workflow import Stage
from wfcore.rules.approval.machine import BY_RULE, Approve, Decider, decide, names_of, still_wanted
from wfcore.rules.auth.access import is_approver
from wfcore.testing import builders as make
from wfcore.testing.builders import NOW

PEOPLE = [make.account(f"acc_{number}") for number in range(4)]
MAILS = tuple(one.email for one in PEOPLE)
ROWS = ({"id": 1}, {"id": 2})


@st.composite
def staged(draw):
    """An approval of up to three stages, some of which share approvers."""
    names = st.lists(st.sampled_from(MAILS), min_size=1, unique=True).map(tuple)
    stages = draw(st.lists(st.builds(Stage, names, st.integers(1, 2)), max_size=3).map(tuple))
    humans, required = draw(st.integers(0, 2)), draw(st.integers(1, 3))
    group = Group("rows", "Rows", (), ROWS, "id")
    return make.approval(
        stages=stages,
        humans=humans,
        groups=(group,),
        approvers=names_of(stages[:1]) or MAILS,
        required_approvals=max(required, humans),
    )


DEEDS = st.lists(
    st.tuples(st.integers(0, 3), st.sampled_from((None, None, [ROWS[0]], [*ROWS]))), max_size=12
)


@given(staged(), st.booleans(), DEEDS)
def test_nothing_is_approved_without_enough_voices(approval, ruled, deeds):
    """Every stage has its approvals, of its own approvers; each person once; people enough. AP-33,
    AP-35, PL-3."""
    if ruled:
        approval = decide(approval, Approve(), BY_RULE, NOW).record
    for number, edit in deeds:
        who = Principal(PEOPLE[number])
        if approval.status is not ApprovalStatus.PENDING or not is_approver(approval, who, None):
            continue
        decider = Decider(who.email, DecisionSource.API, None, who.account.id)
        with suppress(AlreadyDecided):
            edited = None if edit is None else {"rows": edit}
            approval = decide(approval, Approve(edited), decider, NOW).record
    given = Counter(one.by for one in approval.assents)
    people = [one for one in approval.assents if not one.is_rule]
    assert max(given.values(), default=1) == 1
    assert (approval.status is ApprovalStatus.APPROVED) == (still_wanted(approval) == 0)
    if approval.status is ApprovalStatus.APPROVED:
        assert len(people) >= approval.humans
        for at, stage in enumerate(approval.stages):
            inside = [one for one in approval.assents if one.stage == at]
            assert len(inside) >= stage.required_approvals
        for one in people:
            all_of_them = names_of(approval.stages)
            assert not approval.stages or one.by in all_of_them
        if not approval.stages:
            assert len(approval.assents) >= approval.required_approvals
