"""Examples of what owners and operators look after: keys, usage, triggers, audit, notices."""

from collections.abc import Mapping
from typing import Any, Final

from wfcore.model.access import AccountStatus, ApiKey, Permission, Plan, Scope
from wfcore.model.approval import ApprovalStatus, DecisionSource
from wfcore.model.event import AuditEntry, AuditOutcome
from wfcore.model.execution import ExecutionStatus
from wfcore.model.notice import Notice, NoticeKind
from wfcore.model.trigger import Schedule, Shown, Standing, Trigger, TriggerState
from wfcore.time import EpochMs
from wfcore.wire import requests
from wfcore.wire.decisions import GateView
from wfcore.wire.operating import (
    AccountUsageView,
    AuditPage,
    CheckView,
    FireView,
    HourView,
    KeyList,
    LoginLinkView,
    ModelView,
    NoticePage,
    OperatorHealthView,
    OwnTriggerView,
    PersonDetail,
    PersonPage,
    PersonView,
    QuotaView,
    SecretList,
    SecretView,
    SignedInView,
    TriggerList,
    VersionView,
    WindowView,
    WorkflowSummaryPage,
    WorkflowSummaryView,
    audit_view,
    key_view,
    notice_view,
)
from wfcore.wire.workflows import trigger_view

_AT = EpochMs(1_767_225_600_000)
_WORKFLOW, _EXECUTION = "wf_01kdvp0000refunds", "exec_01kdvp000042"
_TEXT = "name: refunds\nsteps:\n  - {name: review, kind: manual_approval}\n"
_KEY = ApiKey("k3yid", "acc_01kdvp000001", "shop", frozenset({Scope.WORKFLOW_EXECUTE}), "", _AT)
_TRIGGER = Trigger("trg_01kdvp000004", _WORKFLOW, _KEY.account_id, Schedule("0 9 * * 1"), _AT)
_SHOWN = Shown(_TRIGGER, Standing(TriggerState.ACTIVE, None, _AT))
_ENTRY = AuditEntry(
    "aud_01kdvp000005", _AT, "key.create", AuditOutcome.ALLOWED, None, _KEY.account_id,
    target=_KEY.id, path="/api/keys", ip="192.0.2.7",
)  # fmt: skip

_NOTICE = notice_view(
    Notice(
        "ntc_0b", NoticeKind.APPROVAL_OPENED, "mail", "ann@a.org", "appr_01kdvp000007", _AT, None
    )
)

_PERSON = PersonView(_KEY.account_id, "ann@example.org", Plan.PRO, AccountStatus.ACTIVE, True, _AT)

OPERATING: Final = (
    _PERSON,
    PersonPage(accounts=[_PERSON], total=1, page=1, size=50),
    PersonDetail(_PERSON, [SignedInView(_AT, _AT)], [key_view(_KEY)]),
    LoginLinkView("https://wf.example.org/in/…"),
    _NOTICE,
    NoticePage(notices=[_NOTICE], total=1, page=1, size=50),
    key_view(_KEY, "wfk_k3yid_…", "whsec_…"),
    KeyList([key_view(_KEY)]),
    trigger_view(_SHOWN),
    VersionView(_WORKFLOW, 3, _TEXT, True),
    AccountUsageView(
        Plan.PRO,
        [QuotaView(_KEY.id, "shop", [WindowView("minute", 3, 60, _AT, _AT + 60_000)], 412)],
        [ModelView(_WORKFLOW, "refunds", "acme:large", 1_500, 25, "0.015", True)],
        _AT,
        False,
    ),
    SecretList([SecretView("BANK_TOKEN", _AT)]),
    OperatorHealthView(
        "0.1.0", None, [CheckView("bubblewrap", True, "0.8.0", None)], {"wfcore_queue": 3.0}, 0
    ),
    TriggerList(
        [OwnTriggerView(_WORKFLOW, "refunds", trigger_view(_SHOWN))],
        [FireView(_AT, _TRIGGER.id, _WORKFLOW)],
    ),
    AuditPage([audit_view(_ENTRY)], 41),
    GateView(
        _EXECUTION, "appr_01kdvp000007", ApprovalStatus.APPROVED, "9f86d081884c7d65",
        {"refunds": [{"id": 1, "amount": 10}]}, "ok", "ann@example.org", DecisionSource.CONSOLE,
        _AT + 60_000, _AT, _AT + 3_600_000, "https://wf.example.org/approvals/appr_01kdvp000007",
    ),
    WorkflowSummaryPage(
        items=[
            WorkflowSummaryView(
                _WORKFLOW, "refunds", _KEY.account_id, Permission.EDIT, 3, _AT, _EXECUTION,
                ExecutionStatus.COMPLETED, _AT, [HourView(12, 1)], 2, _AT, "12.5", 0,
            )
        ],
        total=1, page=1, size=50,
    ),
)  # fmt: skip
"""One of each view, as `openapi_examples` has them of the rest."""

OPERATING_BODIES: Final[Mapping[type, Mapping[str, Any]]] = {
    requests.KeyBody: {"name": "shop", "scopes": ["WORKFLOW_EXECUTE"], "expiresIn": 86_400_000},
    requests.AccountBody: {"plan": "PRO", "status": "ACTIVE"},
    requests.DefinitionBody: {"text": _TEXT, "version": 3},
    requests.RotateBody: {"overlap": 86_400_000},
    requests.GateBody: {
        "message": "Pay these refunds?",
        "groups": [{"name": "refunds", "rowKey": "id", "rows": [{"id": 1, "amount": 10}]}],
        "approvers": ["ann@example.org"],
        "timeout": 3_600_000,
    },
    requests.NoticeTestBody: {"channel": "mail", "to": "ann@example.org"},
}
"""What a client may send of them."""
