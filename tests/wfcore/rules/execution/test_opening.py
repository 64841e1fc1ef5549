"""What a manual approval asks, as its step says: groups, rows, message, reminders. AP-1."""

import pytest
from attrs import evolve
from hypothesis import example, given
from hypothesis import strategies as st

from wfcore.effects import OpenApproval, Outcome, WakeRunner
from wfcore.errors import TemplateFailed
from wfcore.model.approval import Approval, ApprovalStatus, Assent, Group, HistoryEntry, Purpose
from wfcore.model.workflow import ApprovalStep, Escalation, GroupSpec, Stage
from wfcore.rules.approval.released_rows import released_rows
from wfcore.rules.execution.open_approval import (
    as_text,
    ask_for_budget,
    by_the_calendar,
    open_approval,
)
from wfcore.rules.limits import MAX_APPROVAL_ROWS
from wfcore.testing import builders
from wfcore.testing.builders import NOW
from wfcore.testing.strategies.values import approvals, groups, json_values
from wfcore.time import DAY, DurationMs, later


def opened(rows, row_key="id", message="Please") -> Approval:
    spec = GroupSpec("rows", "Rows", rows, row_key=row_key)
    step = ApprovalStep("review", message, groups=(spec,))
    return open_approval(builders.execution(), step, "review", "appr_1", NOW, lambda value: value)


@given(approvals(), st.integers(2, 10**10), st.booleans(), st.integers(1, 3))
def test_an_approval_opens_pending_until_its_timeout(asked, timeout_ms, self_approval, required):
    """AP-1: PENDING, `expiresAt` = `createdAt` + `timeout`, everything as its step says."""
    run = builders.execution("exec_9", workflow_id="wf_7", workflow_owner_id="o1", owner_id="o2")
    groups = tuple(evolve(group, row_key=None, allow_add=True) for group in asked.groups)
    step = ApprovalStep(
        "review",
        "Please",
        DurationMs(timeout_ms),
        asked.approvers,
        tuple(
            GroupSpec(one.name, one.title, [*one.items], one.columns, allow_add=True)
            for one in groups
        ),
        required_approvals=required,
        allow_self_approval=self_approval,
        reminders=(DurationMs(timeout_ms), DurationMs(1)),
    )
    assert open_approval(run, step, "rounds.1.review", "appr_9", NOW, lambda value: value) == (
        Approval(
            "appr_9",
            "exec_9",
            "wf_7",
            "o1",
            "o2",
            "rounds.1.review",
            ApprovalStatus.PENDING,
            "Please",
            DurationMs(timeout_ms),
            NOW,
            later(NOW, timeout_ms),
            tuple(dict.fromkeys(asked.approvers)),
            groups,
            history=(HistoryEntry(NOW, "created"),),
            required_approvals=required,
            allow_self_approval=self_approval,
            reminders=(later(NOW, timeout_ms - 1),),
        )
    )


def test_a_group_holds_ten_thousand_rows():
    """LM-7: one more would be refused."""
    most = ({},) * MAX_APPROVAL_ROWS
    assert opened(most, row_key=None).groups[0].items == most


def test_a_row_key_is_kept():
    """AP-1: the rows can be pointed at after a restart as well."""
    assert opened([{"id": 1}]).groups == (Group("rows", "Rows", (), ({"id": 1},), "id"),)


def test_a_group_that_takes_more_rows_says_so():
    """AP-1, AP-9: or every added row would be refused."""
    spec = GroupSpec("rows", "Rows", [], allow_add=True)
    step = ApprovalStep("review", groups=(spec,))
    run = builders.execution()
    asked = open_approval(run, step, "review", "appr_1", NOW, lambda value: value)
    assert asked.groups == (Group("rows", "Rows", (), (), None, True),)


@pytest.mark.parametrize(
    ("stages", "required", "humans", "in_all"),
    [((), 2, 1, 2), ((), 1, 3, 3), ((1, 2), 1, 0, 3), ((1, 1), 1, 4, 4)],
)
def test_how_many_will_have_approved(stages, required, humans, in_all):
    """What people read while stages and people are counted. AP-33, AP-35."""
    asked = tuple(Stage(("ann",), one) for one in stages)
    step = ApprovalStep("r", required_approvals=required, humans=humans, stages=asked)
    run = builders.execution()
    opened = open_approval(run, step, "r", "appr_1", NOW, lambda value: value)
    assert opened.required_approvals == in_all


def test_a_question_for_more_budget():
    """BU-2: open for a day, to the default approvers, about the budget and nothing else."""
    run = builders.execution("exec_9", workflow_id="wf_7", workflow_owner_id="o1", owner_id="o2")
    assert ask_for_budget(run, "think", "it is spent", "appr_9", NOW) == Approval(
        "appr_9",
        "exec_9",
        "wf_7",
        "o1",
        "o2",
        "think",
        ApprovalStatus.PENDING,
        "think: it is spent. Approving allows as much again; rejecting cancels.",
        DAY,
        NOW,
        later(NOW, DAY),
        history=(HistoryEntry(NOW, "created"),),
        purpose=Purpose.BUDGET,
    )


@given(st.text("abcxyz", min_size=4), st.text("0123"))
def test_an_approval_shows_no_secret(secret, other):
    """SC-1: its message and rows are masked, and go on as the reviewer saw them."""
    run = builders.execution(variables={"token": secret}, secrets=("token",))
    rows = [{"id": other, "seen": f"with {secret}", "nested": {"list": [secret]}}]
    step = ApprovalStep("review", f"Use {secret}?", groups=(GroupSpec("rows", "Rows", rows),))
    new = open_approval(run, step, "review", "appr_1", NOW, lambda value: value)
    assert new.message == "Use ***?"
    assert new.groups[0].items == ({"id": other, "seen": "with ***", "nested": {"list": ["***"]}},)


@given(json_values().filter(lambda rows: not isinstance(rows, list)))
def test_rows_must_render_to_a_list(rows):
    """AP-1: anything else fails the step."""
    with pytest.raises(TemplateFailed):
        opened(rows)


@given(groups(), st.sampled_from([None, "text", 7, [], {"name": "no key"}, {"id": None}]))
def test_a_row_that_nobody_could_point_at_fails_the_step(group, row):
    """AP-1: no object, or without its row key."""
    with pytest.raises(TemplateFailed):
        opened([*group.items, row])


@pytest.mark.parametrize(
    "twin", [(1, 1), (1, 1.0), ("a", "a"), ({"a": 1, "b": 2}, {"b": 2, "a": 1})]
)
def test_two_rows_of_one_key_fail_the_step(twin):
    """AP-1: equal keys cannot be told apart, however they are written."""
    with pytest.raises(TemplateFailed):
        opened([{"id": key} for key in twin])


def test_keys_of_different_types_are_different_keys():
    """AP-1: 1, "1" and true name three rows, and each can be released."""
    rows = [{"id": 1}, {"id": "1"}, {"id": True}]
    approval = opened(rows)
    assert released_rows(approval, {"rows": rows})["rows"] == tuple(rows)


@pytest.mark.parametrize(
    ("value", "text"),
    [("a", "a"), (7, "7"), (True, "true"), (None, "null"), ({"a": "b"}, '{"a":"b"}')],
)
def test_a_message_that_rendered_to_no_text_is_json(value, text):
    """AP-1: a reviewer never sees how Python writes a value."""
    assert as_text(value) == text
    assert opened([], message=value).message == text


@given(approvals(), st.integers(-10 * DAY, 10 * DAY), st.booleans(), st.booleans())
@example(builders.approval(), 1, True, True)
@example(builders.approval(), 1, False, False)
def test_an_approval_opens_by_the_clock_that_deadlines_have(asked, by_ms, ruled, escalates):
    """AP-1, EX-30: every instant of it is moved alike, and nothing else of what happened."""
    opens = asked.created_at
    asked = evolve(
        asked,
        reminders=(later(opens, 1), later(opens, 2)),
        history=(HistoryEntry(opens, "opened"),),
        **({"assents": (Assent("rule", "rule", opens),), "decided_at": opens} if ruled else {}),
        escalate_at=later(opens, 3) if escalates else None,
    )
    before = Outcome(builders.execution(), effects=(WakeRunner(), OpenApproval(asked)))
    moved = by_the_calendar(before, by_ms)
    opened = evolve(
        asked,
        created_at=later(opens, by_ms),
        expires_at=later(asked.expires_at, by_ms),
        reminders=tuple(later(at, by_ms) for at in asked.reminders),
        history=tuple(evolve(entry, at=later(entry.at, by_ms)) for entry in asked.history),
        assents=tuple(evolve(one, at=later(one.at, by_ms)) for one in asked.assents),
        decided_at=later(opens, by_ms) if ruled else None,
        escalate_at=later(opens, 3 + by_ms) if escalates else None,
    )
    assert moved == evolve(before, effects=(WakeRunner(), OpenApproval(opened)))
    assert by_the_calendar(before, 0) is before


def test_stages_and_escalations_open_with_the_members_of_groups():
    """A stage whose condition is false is left out; the others have none any more. AP-33, AP-37."""
    stages = (Stage(("group:board", "ann"), 2, when="yes"), Stage(("bob",), when="no"))
    late = Escalation(DurationMs(5), ("group:board", "eve"))
    step = ApprovalStep("r", stages=stages, escalate=late)
    people = {"board": ("dan", "ann")}
    run = builders.execution()
    fill = {"yes": True, "no": False}.get
    opened = open_approval(
        run, step, "r", "appr_1", NOW, lambda value: fill(value, value), None, people
    )
    assert opened.stages == (Stage(("dan", "ann"), 2),)
    assert opened.approvers == ("dan", "ann")
    assert (opened.escalate_to, opened.escalate_at) == (("dan", "ann", "eve"), later(NOW, 5))
