"""What is shown of a record is what is on record, field by field."""

from collections.abc import Mapping
from typing import Any

import attrs
import pytest
from attrs import evolve

from wfcore.model.access import Scope
from wfcore.model.approval import (
    Approval,
    ApprovalStatus,
    Assent,
    Attachment,
    DecisionOutcome,
    DecisionResult,
    DecisionSource,
    Delegation,
    Group,
    HistoryEntry,
    Purpose,
    Verdict,
)
from wfcore.model.event import EventKind
from wfcore.model.execution import (
    ExecutionStatus,
)
from wfcore.model.explanation import Line, Why
from wfcore.model.notice import NoticeStatus
from wfcore.model.page import Page
from wfcore.model.trigger import (
    Chain,
    Pause,
    Refusal,
    Schedule,
    TriggerRow,
    TriggerStanding,
    TriggerState,
)
from wfcore.model.webhook import AuthMode, DeliveryKind, DisabledReason, Scheme, WebhookStatus
from wfcore.model.workflow import (
    Column,
    ColumnType,
    Concurrency,
    OnLimit,
)
from wfcore.rules.approval.machine import Approve, Reject, Revise
from wfcore.rules.webhooks.webhook import Day, Stats
from wfcore.testing import builders as make
from wfcore.wire import approvals, decisions, events, operating, webhooks, workflows
from wfcore.wire.converter import plain

COLUMN = Column("amount", "Amount", ColumnType.ENUM, False, True, ("a", "b"))
SAME: list[tuple[Any, Any, Mapping[str, Any]]] = [
    (
        make.key(expires_at=1, revoked_at=2, last_used_at=3, previous_until=4),
        lambda one: operating.key_view(one, "text", "secret"),
        {"api_key": "text", "callback_secret": "secret", "scopes": sorted(Scope.ordinary())},
    ),
    (
        make.audit_entry(
            reason="why", account_id="acc_1", key_id="key_1", target="wf_1", path="/", ip="::1",
            request_id="req_1", details={"a": 1}, execution_id="exec_1", record_hash="0" * 64,
        ),
        operating.audit_view,
        {},
    ),
    (
        make.notice(
            status=NoticeStatus.FAILED, due_at=2, execution_id="exec_1", attempts=3,
            attempted_at=4, last_error="down", digest="ntc_2",
        ),
        operating.notice_view,
        {},
    ),
    (make.notice(to=""), operating.notice_view, {"to": None}),
    (
        make.webhook(
            updated_at=5, variable_mapping={"a": "b"}, status=WebhookStatus.DISABLED,
            disabled_reason=DisabledReason.PLAN_LIMIT, scheme=Scheme.GITHUB, old_secret_until=6,
            api_key_id=None, secret_key="hidden", when="{{ 1 }}", headers={"a": "X-A"},
        ),
        lambda one: webhooks.webhook_view(one, "https://here", 7, "shown"),
        {
            "webhook_id": "wh_1", "auth_mode": AuthMode.SIGNATURE, "trigger_url": "https://here",
            "last_triggered_at": 7, "secret_key": "shown",
        },
    ),
    (
        make.webhook(scheme=Scheme.GITHUB),
        lambda one: webhooks.webhook_view(one, "https://here", None),
        {
            "webhook_id": "wh_1", "auth_mode": AuthMode.API_KEY, "trigger_url": "https://here",
            "last_triggered_at": None, "scheme": None, "secret_key": None,
        },
    ),
    (
        make.delivery(
            at=5, kind=DeliveryKind.REPLAY, status=409, authenticated=False, reason="busy",
            execution_id="exec_1", replay_of="dlv_0", ignored=True,
        ),
        webhooks.delivery_view,
        {"can_replay": True},
    ),
    (
        make.artifact(attempt=2, previewable=False),
        lambda one: events.artifact_view(one, "/there"),
        {"download_url": "/there", "path": "exec_1/art_1"},
    ),
    (make.event(2, kind=EventKind.STEP_STARTED, data={"step": "a"}), events.event_view, {}),
    (
        make.event(2, data={"step": "a", "attempt": 3, "stream": "stderr", "text": "b"}),
        events.log_view,
        {"step": "a", "attempt": 3, "stream": "stderr", "text": "b"},
    ),
    (
        make.event(2, data={"step": "a", "stream": "stdout", "text": "b"}),
        events.log_view,
        {"step": "a", "attempt": 1, "stream": "stdout", "text": "b"},
    ),
    (COLUMN, approvals.column_view, {}),
    (COLUMN, approvals.field_view, {}),
    (
        make.trigger(
            runs=2, last_run_at=3, refusal=Refusal.MISSED, refused_at=4, failures=6,
            refusal_detail="why",
            last_result=ExecutionStatus.FAILED, last_execution_id="exec_5",
            spec=Schedule("0 9 * * *", "Europe/Berlin", pause_after=9), pause=Pause(7, "acc_1"),
        ),
        lambda one: workflows.trigger_view(
            TriggerRow(one, TriggerStanding(TriggerState.PAUSED, "why", 8))
        ),
        {
            "definition": {
                "kind": "SCHEDULE", "cron": "0 9 * * *", "timezone": "Europe/Berlin",
                "missed": Schedule("0 9 * * *").missed, "pauseAfter": 9,
            },
            "state": TriggerState.PAUSED, "reason": "why", "next_run_at": 8,
            "last_refusal": Refusal.MISSED, "last_refused_at": 4, "paused_at": 7,
            "last_refusal_detail": "why",
            "paused_by": "acc_1",
        },
    ),
    (
        make.trigger(spec=Chain("source", 30, 4)),
        lambda one: workflows.trigger_view(TriggerRow(one, TriggerStanding(TriggerState.ACTIVE))),
        {
            "definition": {
                "kind": "DELAYED_COMPLETION", "workflow": "source", "delaySeconds": 30,
                "maxRuns": 4, "on": (ExecutionStatus.COMPLETED,),
            },
            "state": TriggerState.ACTIVE, "reason": None, "next_run_at": None,
            "last_refusal": None, "last_refusal_detail": None, "last_refused_at": None,
            "paused_at": None, "paused_by": None,
        },
    ),
    (Concurrency(2, "key", [*OnLimit][-1]), workflows.concurrency_view, {}),
    (
        Stats(11, 6, 2, {"409": 3}, 5, (Day("2026-01-02", 6, 3),)),
        lambda one: webhooks.stats_view("wh_1", one),
        {"webhook_id": "wh_1", "daily": [webhooks.DayView("2026-01-02", 6, 3)]},
    ),
]  # fmt: skip


@pytest.mark.parametrize(("record", "show", "otherwise"), SAME)
def test_a_view_says_what_is_on_record(
    record: Any, show: Any, otherwise: Mapping[str, Any]
) -> None:
    """Each field is the record's of that name, but for those that are made of others."""
    view = show(record)
    names = [one.name for one in attrs.fields(type(view))]
    wanted = {one: otherwise[one] if one in otherwise else getattr(record, one) for one in names}
    assert plain({one: getattr(view, one) for one in names}) == plain(wanted)


def test_views_that_are_made_of_several_records() -> None:
    """Each part is the one that was given."""
    assert plain(webhooks.trigger_view("wh_1", "exec_1", "wf_1", make.NOW)) == {
        "executionId": "exec_1", "webhookId": "wh_1", "workflowId": "wf_1", "status": "PENDING",
        "startedAt": make.NOW,
    }  # fmt: skip
    line = Line(Why.FAILED, "text", 1, "work", "appr_1", "exec_2", ("ann",), 2, 3)
    shown = plain(events.explanation_view(make.execution(), 4, [line, evolve(line, required=None)]))
    assert (shown["executionId"], shown["status"], shown["at"]) == ("exec_1", "PENDING", 4)
    first, second = shown["lines"]
    assert first == {
        "code": Why.FAILED, "text": "text", "until": 1, "stepName": "work", "approvalId": "appr_1",
        "executionId": "exec_2", "approvers": ("ann",), "given": 2, "required": 3,
    }  # fmt: skip
    assert "approvers" not in second
    results = [
        DecisionResult(
            "appr_1", DecisionOutcome.DECIDED, make.approval(status=ApprovalStatus.APPROVED)
        ),
        DecisionResult("appr_2", DecisionOutcome.INVALID, reason="a comment"),
    ]
    assert plain(decisions.decision_results(results)) == {
        "results": [
            {"approvalId": "appr_1", "outcome": "decided", "status": "APPROVED", "error": None},
            {"approvalId": "appr_2", "outcome": "invalid", "status": None, "error": "a comment"},
        ]
    }
    assert plain(decisions.decision_view(make.approval(), Verdict.REJECT)) == {
        "ok": True, "approvalId": "appr_1", "decision": "reject",
    }  # fmt: skip


def test_a_word_on_the_wire_is_a_decision() -> None:
    """With edits and answers where it approves, and without them elsewhere."""
    edited, answers = {"rows": []}, {"why": "so"}
    assert decisions.command(Verdict.APPROVE, edited, answers) == Approve(edited, answers)
    assert decisions.command(Verdict.REJECT, edited, answers) == Reject()
    assert decisions.command(Verdict.REVISE, edited, answers) == Revise()


def approval_with_all() -> Approval:
    """Every field is another one than by default."""
    entry = HistoryEntry(1, "edit", "ann", DecisionSource.API, "why", {}, {"rows": ()}, {"a": 1})
    return make.approval(
        status=ApprovalStatus.APPROVED, approvers=("ann", "bob"), decided_at=2, decided_by="ann",
        groups=(Group("rows", "Rows", (COLUMN,), ({"amount": "a"},), "amount", True),),
        decision_source=DecisionSource.LINK, comment="fine", history=(entry,), humans=1,
        required_approvals=2, allow_self_approval=False, assents=(Assent("bob", "acc_2", 3),),
        reminders=(4, 5), fields=(COLUMN,), answers={"amount": "b"}, round=6, revise_to="draft",
        revisions_left=7, delegable=True, purpose=[*Purpose][-1],
        delegations=(Delegation("ann", "acc_1", "eve", 8),),
        attachments=(Attachment("art_1", "exec_0", "draft", "a.pdf", 9, "application/pdf", "00"),),
    )  # fmt: skip


def test_an_approval_is_shown_with_all_that_it_asks() -> None:
    """Rows, fields, files and history in its own view; in lists the number of rows. AP-13."""
    one = approval_with_all()
    head = approvals.approval_view(one, approvals.Standing("flow", "decided already"))
    renamed = {
        "approval_message": one.message, "timeout": one.timeout_ms, "approved_by": ["bob"],
        "stages": [], "delegated_to": [approvals.DelegationView("ann", "eve", 8)],
        "workflow_name": "flow", "can_decide": False, "why_not": "decided already",
        "reviewable_groups": [approvals.GroupView("rows", "Rows", (), 1)],
    }  # fmt: skip
    for name in (field.name for field in attrs.fields(type(head))):
        wanted = renamed[name] if name in renamed else getattr(one, name)
        assert plain({name: getattr(head, name)}) == plain({name: wanted}), name
    detail = plain(approvals.approval_detail(one, lambda file: f"/{file.artifact_id}"))
    assert (detail["workflowName"], detail["canDecide"], detail["whyNot"]) == (None, None, None)
    column = {
        "key": "amount", "title": "Amount", "type": "enum", "editable": False, "required": True,
        "options": ("a", "b"),
    }  # fmt: skip
    assert detail["reviewableGroups"] == [
        {
            "name": "rows", "title": "Rows", "items": ({"amount": "a"},), "itemsCount": 1,
            "columns": [column], "rowKey": "amount", "allowAdd": True,
        }
    ]  # fmt: skip
    assert detail["attachments"] == [
        {
            "id": "art_1", "executionId": "exec_0", "stepName": "draft", "name": "a.pdf",
            "size": 9, "contentType": "application/pdf", "sha256": "00", "downloadUrl": "/art_1",
        }
    ]  # fmt: skip
    assert detail["history"] == [
        {
            "at": 1, "action": "edit", "by": "ann", "source": "api", "comment": "why",
            "rowsBefore": {}, "rowsAfter": {"rows": ()}, "answers": {"a": 1}, "receipt": None,
        }
    ]  # fmt: skip
    assert detail["answers"] == {"amount": "b"}
    assert approvals.approval_detail(one).attachments[0].download_url is None
    page = Page((one,), 1, 1, 50)
    shown = approvals.approval_page(page, {one.id: approvals.Standing("flow", None)})
    assert (shown.total, shown.approvals[0].can_decide) == (1, True)
