"""
Examples for the OpenAPI document: one of each view, body and text; of errors see `errors`.

Views are built as the server builds them, so a changed shape does not compile with an old
example; a test holds each against its schema. They tell one story: a workflow that pays refunds.
"""

from collections.abc import Mapping
from typing import Any, Final

from adapters_http.openapi_operating import OPERATING, OPERATING_BODIES
from wfcore.model.access import AccountStatus, Plan
from wfcore.model.approval import (
    ApprovalStatus,
    DecisionOutcome,
    DecisionSource,
    Purpose,
    Verdict,
)
from wfcore.model.event import EventKind
from wfcore.model.execution import CallbackStatus, ExecutionStatus, StepStatus, TriggerSource
from wfcore.model.explanation import Why
from wfcore.model.trigger import TriggerKind, TriggerState
from wfcore.model.webhook import AuthMode, DeliveryKind, Scheme, WebhookStatus
from wfcore.model.workflow import ColumnType, OnLimit
from wfcore.wire import requests, webhooks
from wfcore.wire.approvals import (
    ApprovalDetail,
    ApprovalPage,
    ApprovalView,
    AttachmentView,
    ColumnView,
    ExecutionApprovals,
    FieldView,
    GroupDetail,
    GroupView,
    HistoryView,
)
from wfcore.wire.common import AccountView, DoneView, HealthView, SessionView
from wfcore.wire.decisions import DecisionResults, DecisionResultView, DecisionView
from wfcore.wire.events import (
    ArtifactList,
    ArtifactView,
    EventView,
    ExplanationView,
    LineView,
    LogPage,
    LogView,
)
from wfcore.wire.executions import (
    CallbackStateView,
    ExecutionCounts,
    ExecutionPage,
    ExecutionRow,
    RefusedFileView,
    ResultView,
    StarterView,
    StartView,
    StatusView,
    StepView,
    UsageView,
)
from wfcore.wire.webhooks import TriggerView
from wfcore.wire.workflows import (
    ConcurrencyView,
    DefinitionView,
    WorkflowPage,
    WorkflowTriggerView,
    WorkflowView,
)

_AT: Final = 1_767_225_600_000
_DAY: Final = 86_400_000
_WORKFLOW, _EXECUTION, _APPROVAL = "wf_01kdvp0000refunds", "exec_01kdvp000042", "appr_01kdvp000007"
_WEBHOOK, _ACCOUNT, _KEY = "wh_01kdvp000003", "acc_01kdvp000001", "key_01kdvp000002"
_ROWS = [{"order": 1, "amount": 100}, {"order": 2, "amount": 200}]
_STEPS = [
    {"name": "find", "kind": "code", "language": "python", "source": "print('[]')"},
    {"name": "review", "kind": "manual_approval", "message": "Refunds of {{ variables.customer }}"},
]
_DOCUMENT = {"name": "refunds", "description": "Finds refunds, asks, pays", "steps": _STEPS}
_WORKFLOW_VIEW = WorkflowView(
    id=_WORKFLOW,
    name="refunds",
    owner_id=_ACCOUNT,
    workflow=_STEPS,
    description="Finds refunds, asks, pays",
    variables=[],
    triggers=[
        WorkflowTriggerView(
            id="trig_01kdvp000001",
            kind=TriggerKind.SCHEDULE,
            definition={"kind": "SCHEDULE", "cron": "0 6 * * *", "timezone": "Europe/Berlin"},
            state=TriggerState.ACTIVE,
            reason=None,
            next_run_at=_AT + _DAY,
            last_run_at=_AT,
            runs=1,
            last_refusal=None,
            last_refused_at=None,
            failures=0,
        )
    ],
    concurrency=ConcurrencyView(1, None, OnLimit.QUEUE),
    version=1,
    created_at=_AT,
    updated_at=_AT,
    definition=_DOCUMENT,
)
_STEP = StepView(
    status=StepStatus.COMPLETED,
    output={"found": _ROWS},
    duration=40,
    started_at=_AT + 10,
    completed_at=_AT + 50,
    error=None,
    attempts=1,
    usage=UsageView(1_200, 80, "0.0042"),
    refused_artifacts=[RefusedFileView("link", "not a regular file")],
)
_USAGE = UsageView(1_200, 80, "0.0042")
_RUN: Mapping[str, Any] = {
    "execution_id": _EXECUTION,
    "workflow_id": _WORKFLOW,
    "workflow_name": "refunds",
    "trigger_source": TriggerSource.OPEN_API,
    "status": ExecutionStatus.AWAITING_APPROVAL,
    "status_reason": None,
    "current_step": "review",
    "completed_steps": 1,
    "total_steps": 3,
    "started_at": _AT,
    "error": None,
    "usage": _USAGE,
    "redrive_of": None,
    "parent_execution_id": None,
    "workflow_version": 1,
    "started_by": StarterView(
        account_id=_ACCOUNT, email="ann@example.org", key_id=_KEY, key_name="shop"
    ),
}
_HEAD: Mapping[str, Any] = {
    "id": _APPROVAL,
    "execution_id": _EXECUTION,
    "workflow_id": _WORKFLOW,
    "step_name": "review",
    "purpose": Purpose.STEP,
    "status": ApprovalStatus.APPROVED,
    "approval_message": "Refunds of Ann",
    "timeout": _DAY,
    "created_at": _AT + 60,
    "expires_at": _AT + 60 + _DAY,
    "decided_at": _AT + 90_000,
    "decided_by": "ann@example.org",
    "decision_source": DecisionSource.API,
    "comment": "the first one was paid already",
    "required_approvals": 1,
    "approved_by": ["ann@example.org"],
    "allow_self_approval": True,
    "reminders": [],
    "round": 1,
    "revise_to": "find",
    "revisions_left": 3,
    "humans": 0,
    "stages": [],
    "delegable": False,
    "delegated_to": [],
    "approvers": ["ann@example.org"],
    "workflow_name": "Refund review",
    "can_decide": False,
    "why_not": "The approval has already been decided",
}
_LISTED = ApprovalView(**_HEAD, reviewable_groups=[GroupView("refunds", "Refunds", [], 2)])
_DETAIL = ApprovalDetail(
    **_HEAD,
    reviewable_groups=[
        GroupDetail(
            "refunds",
            "Refunds",
            _ROWS[1:],
            1,
            [
                ColumnView("order", "Order", ColumnType.NUMBER, False, True, []),
                ColumnView("amount", "Amount", ColumnType.NUMBER, True, True, []),
            ],
            "order",
            False,
        )
    ],
    attachments=[
        AttachmentView(
            id="art_01kdvp000007",
            execution_id=_EXECUTION,
            step_name="find",
            name="refunds.pdf",
            size=18_204,
            content_type="application/pdf",
            sha256="fcde2b2edba56bf408601fb721fe9b5c338d10ee429ea04fae5511b68fbf8fb9",
            download_url=f"/api/executions/{_EXECUTION}/artifacts/art_01kdvp000007/download"
            f"?expires={_AT + 900_000}&signature=5f1d0c9b",
        )
    ],
    fields=[FieldView("reason", "Why is this paid?", ColumnType.STRING, True, [])],
    answers={"reason": "checked by phone"},
    items_hash="9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    history=[
        HistoryView(
            at=_AT + 90_000,
            action="approved",
            by="ann@example.org",
            source=DecisionSource.API,
            comment="the first one was paid already",
            rows_before={"refunds": _ROWS},
            rows_after={"refunds": _ROWS[1:]},
            answers={"reason": "checked by phone"},
        )
    ],
)
_ARTIFACT = ArtifactView(
    id="art_01kdvp000009",
    name="paid.json",
    path="paid.json",
    storage_key=f"{_EXECUTION}/art_01kdvp000009",
    download_url=f"/api/executions/{_EXECUTION}/artifacts/art_01kdvp000009/download"
    f"?expires={_AT + 900_000}&signature=5f1d0c9b",
    previewable=False,
    execution_id=_EXECUTION,
    step_name="pay",
    attempt=1,
    size=31,
    content_type="application/json",
    sha256="2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae",
    created_at=_AT + 91_000,
)
_EVENT = EventView(_EXECUTION, 3, _AT + 10, EventKind.STEP_STARTED, {"step": "find"})
_WEBHOOK_VIEW = webhooks.WebhookView(
    id=_WEBHOOK,
    webhook_id=_WEBHOOK,
    workflow_id=_WORKFLOW,
    name="shop",
    api_key_id=None,
    variable_mapping={"customer": "name"},
    status=WebhookStatus.ACTIVE,
    disabled_reason=None,
    auth_mode=AuthMode.SIGNATURE,
    trigger_url=f"https://wf.example.org/api/webhooks/{_WEBHOOK}/trigger",
    created_at=_AT,
    updated_at=_AT,
    last_triggered_at=None,
    scheme=Scheme.STANDARD,
    old_secret_until=None,
)
_DELIVERY = webhooks.DeliveryView(
    id="dlv_01kdvp000004",
    webhook_id=_WEBHOOK,
    at=_AT,
    kind=DeliveryKind.SENDER,
    status=202,
    authenticated=True,
    reason=None,
    execution_id=_EXECUTION,
    replay_of=None,
    can_replay=True,
)
_ONE: Mapping[str, Any] = {"total": 1, "page": 1, "size": 50}

VIEWS: Final[Mapping[type, object]] = {
    type(one): one
    for one in (
        *OPERATING,
        _WORKFLOW_VIEW,
        _STEP,
        _DETAIL,
        _ARTIFACT,
        _WEBHOOK_VIEW,
        WorkflowPage(items=[_WORKFLOW_VIEW], **_ONE),
        StartView(_EXECUTION, ExecutionStatus.PENDING, _WORKFLOW, _AT),
        ExecutionPage(items=[ExecutionRow(**_RUN)], next="ZXhlYw", size=1),
        ExecutionCounts({"FAILED": 3, "COMPLETED": 1_000}, [ExecutionStatus.COMPLETED]),
        StatusView(
            **_RUN,
            redriven_as=None,
            inputs={"customer": "Ann"},
            step_results={"find": _STEP},
            earlier_results={},
        ),
        CallbackStateView(
            _EXECUTION, "example.org", CallbackStatus.PENDING, 2, _AT + 690_000, "answered 503"
        ),
        DefinitionView(_EXECUTION, _WORKFLOW, 1, _STEPS, "Finds refunds", [], _DOCUMENT),
        ResultView(
            execution_id=_EXECUTION,
            workflow_id=_WORKFLOW,
            status=ExecutionStatus.COMPLETED,
            step_results={"find": _STEP},
            earlier_results={},
            duration=91_000,
            output={"paid": 1},
            error=None,
            usage=_USAGE,
            completed_at=_AT + 91_000,
        ),
        LogPage([LogView(4, _AT + 20, "find", 1, "stdout", "2 found\n")], 4),
        ExplanationView(
            _EXECUTION,
            ExecutionStatus.AWAITING_APPROVAL,
            _AT + 1_000,
            [
                LineView(
                    code=Why.AWAITING_APPROVAL,
                    text='Step "review" waits for a decision',
                    until=_AT + 60 + _DAY,
                    step_name="review",
                    approval_id=_APPROVAL,
                    execution_id=None,
                )
            ],
        ),
        ApprovalPage(approvals=[_LISTED], total=1, page=1, size=20),
        ExecutionApprovals([_LISTED], 1),
        DecisionView(True, _APPROVAL, Verdict.APPROVE),
        DecisionResults(
            [DecisionResultView(_APPROVAL, DecisionOutcome.DECIDED, ApprovalStatus.APPROVED, None)]
        ),
        ArtifactList([_ARTIFACT], 1),
        TriggerView(_EXECUTION, _WEBHOOK, _WORKFLOW, ExecutionStatus.PENDING, _AT),
        webhooks.WebhookPage(webhooks=[_WEBHOOK_VIEW], **_ONE),
        webhooks.WebhookDeleted(True, _WEBHOOK),
        webhooks.StatsView(_WEBHOOK, 3, 2, {"401": 1}, _AT, [webhooks.DayView("2026-01-01", 2, 1)]),
        webhooks.DeliveryPage([_DELIVERY], **_ONE),
        SessionView(AccountView(_ACCOUNT, "ann@example.org", Plan.PRO, AccountStatus.ACTIVE)),
        DoneView(True),
        HealthView("ok", "0.1.0"),
    )
}

BODIES: Final[Mapping[type, Mapping[str, Any]]] = {
    **OPERATING_BODIES,
    requests.NoBody: {},
    requests.StartBody: {
        "inputs": {"customer": "Ann"},
        "enableMonitoring": False,
        "callbackUrl": "https://shop.example.org/ended",
    },
    requests.ApproveBody: {
        "comment": "the first one was paid already",
        "editedItems": {"refunds": _ROWS[1:]},
        "expectedItemsHash": _DETAIL.items_hash,
    },
    requests.RejectBody: {"comment": "not this month"},
    requests.ReviseBody: {"comment": "the second row is paid already"},
    requests.DelegateBody: {"to": "bob@example.org", "until": _AT + 90_000},
    requests.DecisionsBody: {
        "decisions": [
            {
                "approvalId": _APPROVAL,
                "decision": "approve",
                "expectedItemsHash": _DETAIL.items_hash,
            }
        ],
        "comment": "as every month",
    },
    requests.DecisionBody: {"approvalId": _APPROVAL, "decision": "approve", "comment": "ok"},
    requests.WebhookBody: {
        "workflowId": _WORKFLOW,
        "name": "shop",
        "scheme": "standard",
        "variableMapping": {"customer": "name"},
    },
    requests.WebhookChangeBody: {"name": "shop", "status": "DISABLED"},
    requests.TestBody: {"payload": {"name": "Ann"}},
    requests.LoginBody: {"email": "ann@example.org", "password": "correct horse battery staple"},
}
"""What a client may send."""

CALLBACK: Final = {
    "type": "execution.completed",
    "timestamp": "2026-01-01T00:01:31.000+00:00",
    "data": {
        "executionId": _EXECUTION,
        "workflowId": _WORKFLOW,
        "workflowName": "refunds",
        "triggerSource": "open_api",
        "status": "COMPLETED",
        "statusReason": None,
        "error": None,
        "startedAt": _AT,
        "completedAt": _AT + 91_000,
        "redriveOf": None,
    },
}

TEXTS: Final[Mapping[str, str]] = {
    "text/html": "<!doctype html><title>Approve?</title>…",
    "text/plain": "…",
    "text/event-stream": (
        "id: 3\nevent: step.started\n"
        f'data: {{"executionId":"{_EXECUTION}","number":3,"at":{_AT + 10},'
        '"kind":"step.started","data":{"step":"find"}}\n\n'
    ),
}
"""What is not JSON, by its media type."""
