"""A sample record of each kind, with every field set and with awkward values."""

from typing import Any

from wfcore.model.access import AccountStatus, Permission, SavedView, Scope, SpentNonce, Tier
from wfcore.model.approval import (
    ApprovalStatus,
    Assent,
    DecisionSource,
    Group,
    HistoryEntry,
    Purpose,
)
from wfcore.model.execution import (
    Awaits,
    CallbackStatus,
    ExecutionStatus,
    ReasonCode,
    StatusReason,
    StepStatus,
    TriggerSource,
    Usage,
)
from wfcore.model.json import Json
from wfcore.model.notice import NoticeStatus
from wfcore.model.passkey import Passkey, SignedReceipt
from wfcore.model.trigger import Chain, Missed, Refusal, Schedule
from wfcore.model.webhook import DisabledReason, WebhookStatus
from wfcore.model.workflow import (
    AiStep,
    ApprovalStep,
    Assurance,
    Branch,
    Budget,
    ChildStep,
    Column,
    ColumnType,
    Concurrency,
    DelayStep,
    GroupSpec,
    Language,
    Links,
    LoopStep,
    OnExceeded,
    OnInterrupt,
    OnLimit,
    ParallelStep,
    Retry,
    Variable,
    VariableType,
)
from wfcore.ports.records import KIND_OF
from wfcore.testing import builders as make
from wfcore.testing.builders import NOW
from wfcore.time import DurationMs, EpochMs

AWKWARD: Json = {
    "": None,
    "nul": "a\u0000b",
    "text": 'ü 雪 🎈 "quoted" \\ \n',
    "numbers": [0, -1, 2**53 + 1, 1.5, 1e300, True, False],
    "deep": {"list": [[], {}, [{"a": [1]}]]},
}
"""JSON that a careless conversion would change."""

COLUMNS = (
    Column("id", "Order", ColumnType.STRING, editable=False, required=True),
    Column("kind", "Kind", ColumnType.ENUM, options=("a", 1, None)),
)

ACCOUNT = make.account(
    plan=Tier.ENTERPRISE,
    status=AccountStatus.LOCKED,
    password_hash="$argon2id$v=19$x",  # noqa: S106 - a sample, no password
    operator=True,
    passkeys=(Passkey("id", "laptop", "MF", -7, "example.org", NOW, 2**32 - 1, EpochMs(NOW + 1)),),
    passkey_required=True,
    spent_nonces=(SpentNonce("0" * 64, EpochMs(NOW + 2)),),
    views=(SavedView("failed", "status=FAILED"),),
    zone="Europe/Berlin",
)
KEY = make.key(
    scopes=frozenset({Scope.APPROVAL_RESPOND, Scope.WORKFLOW_READ}),
    expires_at=EpochMs(NOW + 1),
    revoked_at=EpochMs(NOW + 2),
    previous_hash="1" * 64,
    previous_until=EpochMs(NOW + 3),
    last_used_at=EpochMs(NOW + 4),
)
LOGIN = make.login(failures=(EpochMs(NOW), EpochMs(NOW + 1)), locked_until=EpochMs(NOW + 9))
LOGIN_LINK = make.login_link(epoch=2)
SESSION = make.session(last_seen_at=EpochMs(NOW + 5))
SHARE = make.share(permission=Permission.EXECUTE)
WORKFLOW = make.workflow(name="Rückgaben 🎈", revision=7)
SNAPSHOT = make.snapshot(
    revision=7,
    definition=make.definition(
        make.code_step(
            "fetch",
            language=Language.COMMAND,
            command=("curl", "{{ variables.url }}"),
            network=True,
            when="{{ true }}",
            retry=Retry(3, DurationMs(2_000), 2.5),
            continue_on_error=True,
            requirements=("numpy==2.1.0",),
            packages=("@scope/name@1.0.0",),
            on_interrupt=OnInterrupt.RESUME,
        ),
        ApprovalStep(
            "review",
            message="Look at {{ steps.fetch.output }}",
            timeout_ms=DurationMs(5),
            approvers=("ann@example.org", "acc_9"),
            groups=(
                GroupSpec("refunds", "Refunds", "{{ steps.fetch.output.rows }}", COLUMNS, "id"),
                GroupSpec("fixed", "Fixed", [{"id": 1}, AWKWARD]),
            ),
            required_approvals=2,
            allow_self_approval=False,
            reminders=(DurationMs(4), DurationMs(1)),
            links=Links.SIGN_IN,
            notify=(),
        ),
        AiStep(
            "ask",
            "local:llama3.1:8b",
            "Say {{ variables.url }}",
            system="Be brief.",
            max_tokens=7,
            temperature=0.5,
            schema={"type": "object", "default": AWKWARD},
            retry=Retry(2),
            on_interrupt=OnInterrupt.FAIL,
        ),
        ParallelStep(
            "both",
            (
                Branch("calm", (DelayStep("rest", DurationMs(7)),)),
                Branch(
                    "busy",
                    (
                        LoopStep("each", [AWKWARD], "item", (make.code_step("one"),), 3),
                        ChildStep("other", "Other flow", {"a": AWKWARD}, DurationMs(9)),
                    ),
                ),
            ),
            max_parallel=2,
            timeout_ms=DurationMs(11),
            when="{{ true }}",
        ),
        variables={
            "url": Variable("url", required=True, secret=True),
            "data": Variable("data", VariableType.OBJECT, has_default=True, default=AWKWARD),
        },
        output={"all": "{{ steps.fetch.output }}", "awkward": AWKWARD},
        has_output=True,
        description="What it does",
        triggers=(
            Schedule("0 9 * * *", inputs={"url": "{{ trigger.scheduledAt }}"}),
            Chain("Other", 5, on=(ExecutionStatus.COMPLETED, ExecutionStatus.FAILED)),
        ),
        budget=Budget("0.000001", 100, OnExceeded.APPROVE),
        on_interrupt=OnInterrupt.FAIL,
        notify_on_failure=("mail",),
        concurrency=Concurrency(2, "{{ variables.url }}", OnLimit.SKIP),
    ),
)
EXECUTION = make.execution(
    trigger_source=TriggerSource.DELAYED_COMPLETION,
    status=ExecutionStatus.FAILED,
    variables={"data": AWKWARD, "url": "https://example.org"},
    trigger={"executionId": "exec_6", "status": "COMPLETED", "output": AWKWARD},
    step_results={
        "fetch": make.step_result(
            output=AWKWARD, attempts=3, usage=Usage(10, 20, "0.000012"), error="once"
        ),
        'odd "name" \\': make.step_result(
            StepStatus.AWAITING_APPROVAL, approval_id="appr_1", retry_at=EpochMs(NOW + 9)
        ),
        "quiet": make.step_result(StepStatus.SKIPPED, usage=Usage(1, 2, None), steps=3),
        "each": make.step_result(
            StepStatus.RUNNING,
            awaits=Awaits.STEPS,
            until=EpochMs(NOW + 8),
            items=[AWKWARD, '"items":', {"items": [1]}],
            error='says "items":[] of itself',
        ),
        "each.0.other": make.step_result(
            StepStatus.FAILED, child_id="exec_9", reason=ReasonCode.TIMEOUT
        ),
    },
    status_reason=StatusReason(ReasonCode.STEP_FAILED, "fetch", "appr_1"),
    error="step fetch: exit status 1",
    output=AWKWARD,
    completed_at=EpochMs(NOW + 10),
    due_at=EpochMs(NOW + 11),
    worker="worker-1",
    fence=3,
    events=12,
    resumes=2,
    monitored=True,
    redrive_of="exec_0",
    reference="Order 7 – Ünal",
    parent_id="exec_7",
    parent_step="each.1.sub",
    key_id="key_1",
    webhook_id="wh_1",
    callback_url="https://example.org/told?t=1",
    secrets=("url",),
    granted=Usage(5, 6, "0.1"),
    concurrency_group="wf_1:0",
    chain_depth=4,
    root_source=TriggerSource.SCHEDULE,
    capabilities=("language:command", "network"),
)
RECEIPT = SignedReceipt(
    {"answers": {"limit": 2**53 + 1}, "comment": None}, ("0" * 64,), "MF", -7, NOW, "AA", "e3", "ME"
)
APPROVAL = make.approval(
    status=ApprovalStatus.APPROVED,
    approvers=("ann@example.org", "acc_9"),
    groups=(
        Group("refunds", "Refunds", COLUMNS, ({"id": 1}, {"id": 2, "awkward": AWKWARD}), "id"),
        Group("none", "Nothing", (), ()),
    ),
    decided_at=EpochMs(NOW + 1),
    decided_by="acc_9",
    decision_source=DecisionSource.LINK,
    comment="fine",
    history=(
        HistoryEntry(NOW, "created"),
        HistoryEntry(
            EpochMs(NOW + 1),
            "approved",
            "acc_9",
            DecisionSource.LINK,
            "fine",
            {"refunds": ({"id": 1}, {"id": 2})},
            {"refunds": ({"id": 1, "amount": 1.5},)},
        ),
    ),
    required_approvals=2,
    allow_self_approval=False,
    assents=(
        Assent("ann@example.org", "mailto:ann@example.org", NOW),
        Assent("", "acc_9", EpochMs(NOW + 1), receipt=RECEIPT),
    ),
    reminders=(EpochMs(NOW + 1), EpochMs(NOW + 2)),
    reminded=1,
    purpose=Purpose.BUDGET,
    links=Links.SIGN_IN,
    notify=("mail", "finance"),
    assurance=Assurance.PASSKEY,
)
ARTIFACT = make.artifact(name="../Bericht ü.html", size=2**40, previewable=False)
CALLBACK = make.callback(
    status=CallbackStatus.FAILED, attempts=10, due_at=None, last_error="answered 500"
)
NOTICE = make.notice(
    to="jürgen@example.org",
    execution_id="exec_1",
    about={"ü": [1, None]},
    status=NoticeStatus.FAILED,
    due_at=None,
    attempts=5,
    attempted_at=EpochMs(NOW + 1),
    sending=True,
    last_error="451 ü",
    gathered=("ntc_2",),
    digest="ntc_3",
)
WEBHOOK = make.webhook(
    secret_key="whs",  # noqa: S106 - a sample, no secret
    variable_mapping={"order": "id"},
    status=WebhookStatus.DISABLED,
    disabled_reason=DisabledReason.PLAN_LIMIT,
)
TRIGGER = make.trigger(
    spec=Chain("Rückgaben 🎈", 60, 10),
    watches="name:acc_1:Rückgaben 🎈",
    runs=9,
    last_run_at=EpochMs(NOW + 1),
    refusal=Refusal.LIMIT_REACHED,
    refused_at=EpochMs(NOW + 2),
)
SCHEDULE = make.trigger(spec=Schedule("0 9 * * 1-5", "Europe/Berlin", Missed.ONCE))
TIMER = make.timer("trg_1<exec_1", cause="exec_1", depth=3)
SIGNING_KEYS = make.signing_keys("new" * 14, "old" * 14, retired=("0a1b2c3d",))
STATE = make.workflow_state(
    values={"ü": [1, None, 2**53], "token": "t" * 70_000}, secrets=("token",)
)
PEOPLE_GROUPS = make.people_groups(members={"Recht 🎈": ("ann@example.org",), "empty": ()})
NODE = make.node(able=("label:gpu", "language:lua"), draining=True)
REPLAY = make.replay(key="k" * 255)

CHANGING = (
    ACCOUNT,
    KEY,
    SESSION,
    LOGIN,
    LOGIN_LINK,
    SHARE,
    WORKFLOW,
    STATE,
    EXECUTION,
    APPROVAL,
    ARTIFACT,
    CALLBACK,
    WEBHOOK,
    TRIGGER,
    TIMER,
    NOTICE,
    NODE,
    SIGNING_KEYS,
    PEOPLE_GROUPS,
    REPLAY,
)
"""Records that may be put again."""

RECORDS = (*CHANGING, SNAPSHOT, SCHEDULE)


def identity(record: Any) -> tuple[Any, ...]:
    """The key of *record* as `View.get` takes it."""
    return KIND_OF[type(record)].key_of(record)
