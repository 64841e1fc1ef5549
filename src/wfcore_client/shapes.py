"""
The shapes of what the API returns, and the constants in them.

Written by client/generate.py from wfcore.wire: do not edit.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Self, TypeAlias


class Word(StrEnum):
    """A constant of the API. One that only a newer server knows is kept as it came."""

    @classmethod
    def _missing_(cls, value: object) -> Self | None:
        if not isinstance(value, str):
            return None
        word = str.__new__(cls, value)
        word._name_ = word._value_ = value
        return word


class Purpose(Word):
    STEP = "step"
    BUDGET = "budget"


class ApprovalStatus(Word):
    PENDING = "PENDING"
    APPROVED = "APPROVED"
    REJECTED = "REJECTED"
    REVISED = "REVISED"
    CANCELLED = "CANCELLED"


class DecisionSource(Word):
    API = "api"
    WEBHOOK = "webhook"
    LINK = "link"
    CONSOLE = "console"
    TIMEOUT = "timeout"
    RULE = "rule"


class StageState(Word):
    DONE = "done"
    PRESENT = "present"
    LATER = "later"


@dataclass(frozen=True, kw_only=True)
class StageView:
    """Approvers who are asked after those before, and who of them has approved."""

    title: str
    approvers: Sequence[str]
    required_approvals: int
    approved_by: Sequence[str]
    state: StageState


@dataclass(frozen=True, kw_only=True)
class DelegationView:
    """`to` decides in the place of `by` until that instant."""

    by: str
    to: str
    until: int


@dataclass(frozen=True, kw_only=True)
class ApprovalHead:
    """
    `canDecide`: whether the reader may approve it now, and if not, `whyNot`. These and
    `workflowName` are null where nobody in particular reads.
    """

    id: str
    execution_id: str
    workflow_id: str
    step_name: str
    purpose: Purpose
    status: ApprovalStatus
    approval_message: str
    timeout: int
    created_at: int
    expires_at: int
    decided_at: int | None
    decided_by: str | None
    decision_source: DecisionSource | None
    comment: str | None
    required_approvals: int
    approved_by: Sequence[str]
    allow_self_approval: bool
    reminders: Sequence[int]
    round: int
    revise_to: str | None
    revisions_left: int
    humans: int
    stages: Sequence[StageView]
    delegable: bool
    delegated_to: Sequence[DelegationView]
    approvers: Sequence[str]
    workflow_name: str | None
    can_decide: bool | None
    why_not: str | None


Row: TypeAlias = Mapping[str, Any]
"""A row of a group, by column key."""


@dataclass(frozen=True, kw_only=True)
class GroupView:
    """A group of rows. `items` is empty in lists, `itemsCount` is kept."""

    name: str
    title: str
    items: Sequence[Row]
    items_count: int


class ColumnType(Word):
    STRING = "string"
    NUMBER = "number"
    BOOLEAN = "boolean"
    DATE = "date"
    ENUM = "enum"
    JSON = "json"


@dataclass(frozen=True, kw_only=True)
class ColumnView:
    key: str
    title: str
    type: ColumnType
    editable: bool
    required: bool
    options: Sequence[Any]


@dataclass(frozen=True, kw_only=True)
class GroupDetail(GroupView):
    """A group with its rows and their columns. `allowAdd`: whether reviewers may add rows."""

    columns: Sequence[ColumnView]
    row_key: str | None
    allow_add: bool


@dataclass(frozen=True, kw_only=True)
class AttachmentView:
    """An artifact that belongs to the question; `downloadUrl` opens it for 15 minutes."""

    id: str
    execution_id: str
    step_name: str
    name: str
    size: int
    content_type: str
    sha256: str
    download_url: str | None


@dataclass(frozen=True, kw_only=True)
class FieldView:
    """A field that approvers answer."""

    key: str
    title: str
    type: ColumnType
    required: bool
    options: Sequence[Any]


Answers: TypeAlias = Mapping[str, Any]
"""Answers to an approval's fields, by key."""


@dataclass(frozen=True, kw_only=True)
class HistoryView:
    """Who did what when, with the rows before and after an edit, and the answers given."""

    at: int
    action: str
    by: str | None
    source: DecisionSource | None
    comment: str | None
    rows_before: Mapping[str, Sequence[Row]] | None
    rows_after: Mapping[str, Sequence[Row]] | None
    answers: Answers | None


@dataclass(frozen=True, kw_only=True)
class ApprovalDetail(ApprovalHead):
    """
    An approval with its rows, their columns, and its history. `itemsHash` is another one when
    any row, answer or attachment is another one.
    """

    reviewable_groups: Sequence[GroupDetail]
    attachments: Sequence[AttachmentView]
    fields: Sequence[FieldView]
    answers: Answers
    items_hash: str
    history: Sequence[HistoryView]


@dataclass(frozen=True, kw_only=True)
class ListPage:
    """
    A part of a list. `total` and `page` are absent where it is read on with `after`; `next` is
    the `after` of the rows behind these, absent at the end.
    """

    total: int | None = None
    page: int | None = None
    size: int
    next: str | None = None


@dataclass(frozen=True, kw_only=True)
class ApprovalView(ApprovalHead):
    """An approval as lists show it: the rows are left out."""

    reviewable_groups: Sequence[GroupView]


@dataclass(frozen=True, kw_only=True)
class ApprovalPage(ListPage):
    approvals: Sequence[ApprovalView]


@dataclass(frozen=True, kw_only=True)
class ArtifactView:
    """
    A file of an execution. `downloadUrl` opens it for 15 minutes, as it is. `attempt`: of the step
    that left it; 0 if an older release stored it.
    """

    id: str
    name: str
    path: str
    storage_key: str
    download_url: str
    previewable: bool
    execution_id: str
    step_name: str
    attempt: int
    size: int
    content_type: str
    sha256: str
    created_at: int


@dataclass(frozen=True, kw_only=True)
class ArtifactList:
    artifacts: Sequence[ArtifactView]
    total: int


class CallbackStatus(Word):
    PENDING = "PENDING"
    DELIVERED = "DELIVERED"
    FAILED = "FAILED"


@dataclass(frozen=True, kw_only=True)
class CallbackStateView:
    """
    What became of the callback of an execution: PENDING until it is DELIVERED or given up. `host`:
    of its address, whose path may be a secret. `nextAttemptAt` is null before the end of the
    execution, and once none follows.
    """

    execution_id: str
    host: str
    status: CallbackStatus
    attempts: int
    next_attempt_at: int | None
    last_error: str | None


class DecisionOutcome(Word):
    DECIDED = "decided"
    AGREED = "agreed"
    CHANGED = "changed"
    ALREADY_DECIDED = "already_decided"
    NOT_ALLOWED = "not_allowed"
    NOT_FOUND = "not_found"
    INVALID = "invalid"
    UNAVAILABLE = "unavailable"


@dataclass(frozen=True, kw_only=True)
class DecisionResultView:
    """What came of one decision; `status` of the approval if it counts, `error` if it does not."""

    approval_id: str
    outcome: DecisionOutcome
    status: ApprovalStatus | None
    error: str | None


@dataclass(frozen=True, kw_only=True)
class DecisionResults:
    """One result for each decision, in the order in which they were asked for."""

    results: Sequence[DecisionResultView]


class Verdict(Word):
    APPROVE = "approve"
    REJECT = "reject"
    REVISE = "revise"


@dataclass(frozen=True, kw_only=True)
class DecisionView:
    """The answer of the approval-response endpoint."""

    ok: bool
    approval_id: str
    decision: Verdict


WrittenStep: TypeAlias = Mapping[str, Any]
"""A step as definitions write it."""


class VariableType(Word):
    STRING = "string"
    NUMBER = "number"
    BOOLEAN = "boolean"
    OBJECT = "object"
    ARRAY = "array"


@dataclass(frozen=True, kw_only=True)
class VariableView:
    """A declared variable; the default of a secret one is masked."""

    name: str
    type: VariableType
    required: bool
    secret: bool
    default: Any


@dataclass(frozen=True, kw_only=True)
class DefinitionView:
    """
    The definition that an execution runs by, whatever the workflow says since; `definition`: all
    that was applied.
    """

    execution_id: str
    workflow_id: str
    workflow_version: int
    workflow: Sequence[WrittenStep]
    description: str
    variables: Sequence[VariableView]
    definition: Mapping[str, Any]
    on_failure: Sequence[WrittenStep] | None = None


@dataclass(frozen=True, kw_only=True)
class ExecutionApprovals:
    """All approvals of one execution."""

    approvals: Sequence[ApprovalView]
    total: int


class ExecutionStatus(Word):
    PENDING = "PENDING"
    RUNNING = "RUNNING"
    AWAITING_APPROVAL = "AWAITING_APPROVAL"
    INTERRUPTED = "INTERRUPTED"
    COMPLETED = "COMPLETED"
    FAILED = "FAILED"
    CANCELLED = "CANCELLED"


@dataclass(frozen=True, kw_only=True)
class ExecutionCounts:
    """
    How many executions have each status. Those in `atLeast` are more than their number, up to
    which they were counted.
    """

    counts: Mapping[str, int]
    at_least: Sequence[ExecutionStatus]


class TriggerSource(Word):
    OPEN_API = "open_api"
    WEBHOOK = "webhook"
    MANUAL = "manual"
    SCHEDULE = "schedule"
    DELAYED_COMPLETION = "delayed_completion"
    WORKFLOW = "workflow"


class ReasonCode(Word):
    STEP_FAILED = "STEP_FAILED"
    TIMEOUT = "TIMEOUT"
    CANCEL_REQUESTED = "CANCEL_REQUESTED"
    APPROVAL_REJECTED = "APPROVAL_REJECTED"
    APPROVAL_TIMEOUT = "APPROVAL_TIMEOUT"
    INTERRUPTED = "INTERRUPTED"
    PARENT_CANCELLED = "PARENT_CANCELLED"


@dataclass(frozen=True, kw_only=True)
class StatusReasonView:
    code: ReasonCode
    step_name: str | None
    approval_id: str | None


@dataclass(frozen=True, kw_only=True)
class UsageView:
    """What AI calls consumed. `costUsd` is a decimal string, null when a price is unknown."""

    input_tokens: int
    output_tokens: int
    cost_usd: str | None


@dataclass(frozen=True, kw_only=True)
class StarterView:
    """Whose execution it is, and by which key, webhook or trigger it was started."""

    account_id: str
    email: str | None
    key_id: str | None = None
    key_name: str | None = None
    webhook_id: str | None = None
    trigger_id: str | None = None


@dataclass(frozen=True, kw_only=True)
class ExecutionRow:
    """An execution as lists show it. `completedAt` is absent until the end."""

    execution_id: str
    workflow_id: str
    workflow_name: str
    trigger_source: TriggerSource
    status: ExecutionStatus
    status_reason: StatusReasonView | None
    current_step: str | None
    completed_steps: int
    total_steps: int
    started_at: int
    completed_at: int | None = None
    error: str | None
    usage: UsageView
    redrive_of: str | None
    parent_execution_id: str | None
    workflow_version: int
    started_by: StarterView


@dataclass(frozen=True, kw_only=True)
class ExecutionPage(ListPage):
    items: Sequence[ExecutionRow]


class Why(Word):
    COMPLETED = "COMPLETED"
    FAILED = "FAILED"
    CANCELLED = "CANCELLED"
    INTERRUPTED = "INTERRUPTED"
    NO_SERVER = "NO_SERVER"
    DUE = "DUE"
    PLACES_TAKEN = "PLACES_TAKEN"
    ACCOUNT_SHARE_USED = "ACCOUNT_SHARE_USED"
    LIMIT_REACHED = "LIMIT_REACHED"
    NOBODY_ABLE = "NOBODY_ABLE"
    MOVING = "MOVING"
    STEP_RUNNING = "STEP_RUNNING"
    STEP_RETRYING = "STEP_RETRYING"
    STEP_POSTPONED = "STEP_POSTPONED"
    STEP_DELAYED = "STEP_DELAYED"
    CHILD_RUNNING = "CHILD_RUNNING"
    STEPS_RUNNING = "STEPS_RUNNING"
    AWAITING_APPROVAL = "AWAITING_APPROVAL"
    NEXT_STEP = "NEXT_STEP"
    FAILING = "FAILING"
    WILL_RESUME = "WILL_RESUME"
    WILL_FAIL = "WILL_FAIL"
    CAN_REDRIVE = "CAN_REDRIVE"


@dataclass(frozen=True, kw_only=True)
class LineView:
    """
    One line of an explanation; `until`: when it changes by itself. `approvers`, `given` and
    `required` are there of an open approval; no approvers: whoever owns it or may edit the
    workflow.
    """

    code: Why
    text: str
    until: int | None
    step_name: str | None
    approval_id: str | None
    execution_id: str | None
    approvers: Sequence[str] | None = None
    given: int | None = None
    required: int | None = None


@dataclass(frozen=True, kw_only=True)
class ExplanationView:
    """Why an execution is where it is, and what happens next; the nearest cause first."""

    execution_id: str
    status: ExecutionStatus
    at: int
    lines: Sequence[LineView]


@dataclass(frozen=True, kw_only=True)
class GateView:
    """
    A question to people. Once it is APPROVED, `groups` has the released rows, else null.
    `itemsHash` is the digest of the rows as they stand: of those released, once they are.
    `executionId` is the gate's id; `url`: the page where people decide.
    """

    execution_id: str
    approval_id: str
    status: ApprovalStatus
    items_hash: str
    groups: Mapping[str, Sequence[Row]] | None
    comment: str | None
    decided_by: str | None
    decision_source: DecisionSource | None
    decided_at: int | None
    created_at: int
    expires_at: int
    url: str | None


@dataclass(frozen=True, kw_only=True)
class LogView:
    """Output lines that a step wrote to a stream: one or more, as they were kept."""

    number: int
    at: int
    step: str
    attempt: int
    stream: str
    text: str


@dataclass(frozen=True, kw_only=True)
class LogPage:
    """Output lines in order. `next`: the `after` of those to come; without items: none yet."""

    items: Sequence[LogView]
    next: int


class StepStatus(Word):
    RUNNING = "RUNNING"
    AWAITING_APPROVAL = "AWAITING_APPROVAL"
    COMPLETED = "COMPLETED"
    FAILED = "FAILED"
    SKIPPED = "SKIPPED"
    REJECTED = "REJECTED"
    CANCELLED = "CANCELLED"
    INTERRUPTED = "INTERRUPTED"


@dataclass(frozen=True, kw_only=True)
class RefusedFileView:
    """Something that a step left and that is no artifact."""

    name: str
    reason: str


@dataclass(frozen=True, kw_only=True)
class StepView:
    """
    What is known of one step. `duration` in ms, null until it ends. `executionId` is there
    where the step started an execution; `output` is not where outputs were not asked for.
    """

    status: StepStatus
    output: Any = None
    duration: int | None
    started_at: int
    completed_at: int | None
    error: str | None
    attempts: int
    usage: UsageView | None
    refused_artifacts: Sequence[RefusedFileView]
    execution_id: str | None = None


@dataclass(frozen=True, kw_only=True)
class ResultView:
    """
    The result of an ended execution. `output` is null unless it COMPLETED. `earlierResults` as in
    the status view.
    """

    execution_id: str
    workflow_id: str
    status: ExecutionStatus
    step_results: Mapping[str, StepView]
    earlier_results: Mapping[str, StepView]
    duration: int
    output: Any
    error: str | None
    usage: UsageView
    completed_at: int


@dataclass(frozen=True, kw_only=True)
class StartView:
    """An accepted execution."""

    execution_id: str
    status: ExecutionStatus
    workflow_id: str
    started_at: int


@dataclass(frozen=True, kw_only=True)
class StatusView(ExecutionRow):
    """
    The status view of an execution. `inputs`: over the defaults, secrets masked. `redrivenAs`:
    the last execution that redrives it. `earlierResults`: those of rounds in which people asked for
    changes, as `<round>/<step>`.
    """

    redriven_as: str | None
    inputs: Mapping[str, Any]
    step_results: Mapping[str, StepView]
    earlier_results: Mapping[str, StepView]


@dataclass(frozen=True, kw_only=True)
class TriggerView:
    """An accepted webhook trigger."""

    execution_id: str
    webhook_id: str
    workflow_id: str
    status: ExecutionStatus
    started_at: int


class TriggerKind(Word):
    SCHEDULE = "SCHEDULE"
    DELAYED_COMPLETION = "DELAYED_COMPLETION"


class TriggerState(Word):
    ACTIVE = "ACTIVE"
    EXHAUSTED = "EXHAUSTED"
    PAUSED = "PAUSED"
    BLOCKED = "BLOCKED"


class Refusal(Word):
    PAUSED = "PAUSED"
    MAX_RUNS = "MAX_RUNS"
    CHAIN_TOO_DEEP = "CHAIN_TOO_DEEP"
    PLAN_LIMIT = "PLAN_LIMIT"
    ACCOUNT_BLOCKED = "ACCOUNT_BLOCKED"
    ACCESS_LOST = "ACCESS_LOST"
    LIMIT_REACHED = "LIMIT_REACHED"
    INVALID_INPUT = "INVALID_INPUT"
    MISSED = "MISSED"
    UNREADABLE = "UNREADABLE"


@dataclass(frozen=True, kw_only=True)
class WorkflowTriggerView:
    """
    A trigger. `definition` is what the workflow's definition says of it; `reason` says in words
    why it is not ACTIVE. `lastRefusal`: why it started nothing the last time it did not.
    `lastResult`: how the execution `lastExecutionId` ended; `failures`: how many failed in a row
    until then. `pausedBy`: the account that paused it; absent if its failures did.
    """

    id: str
    kind: TriggerKind
    definition: Mapping[str, Any]
    state: TriggerState
    reason: str | None
    next_run_at: int | None
    last_run_at: int | None
    runs: int
    last_refusal: Refusal | None
    last_refused_at: int | None
    failures: int
    last_result: ExecutionStatus | None = None
    last_execution_id: str | None = None
    paused_at: int | None = None
    paused_by: str | None = None


class OnLimit(Word):
    QUEUE = "queue"
    SKIP = "skip"


@dataclass(frozen=True, kw_only=True)
class ConcurrencyView:
    """How many executions may run at once, of all or of each value of `key`."""

    limit: int
    key: str | None
    on_limit: OnLimit


@dataclass(frozen=True, kw_only=True)
class WorkflowView:
    """
    A workflow. `workflow`: the steps as written; `triggers`: what starts it by itself;
    `definition`: all that was applied, left out in lists.
    """

    id: str
    name: str
    owner_id: str
    workflow: Sequence[WrittenStep]
    description: str
    variables: Sequence[VariableView]
    triggers: Sequence[WorkflowTriggerView]
    concurrency: ConcurrencyView | None
    version: int
    created_at: int
    updated_at: int
    on_failure: Sequence[WrittenStep] | None = None
    definition: Mapping[str, Any] | None = None


@dataclass(frozen=True, kw_only=True)
class WorkflowPage(ListPage):
    items: Sequence[WorkflowView]


class EventKind(Word):
    EXECUTION_PENDING = "execution.pending"
    EXECUTION_RUNNING = "execution.running"
    EXECUTION_AWAITING_APPROVAL = "execution.awaiting_approval"
    EXECUTION_INTERRUPTED = "execution.interrupted"
    EXECUTION_COMPLETED = "execution.completed"
    EXECUTION_FAILED = "execution.failed"
    EXECUTION_CANCELLED = "execution.cancelled"
    FAILURE_STARTED = "failure.started"
    STEP_STARTED = "step.started"
    STEP_COMPLETED = "step.completed"
    STEP_FAILED = "step.failed"
    STEP_SKIPPED = "step.skipped"
    STEP_RETRYING = "step.retrying"
    STEP_POSTPONED = "step.postponed"
    STEP_LOG = "step.log"
    APPROVAL_CREATED = "approval.created"
    APPROVAL_ASSENTED = "approval.assented"
    APPROVAL_DELEGATED = "approval.delegated"
    APPROVAL_ESCALATED = "approval.escalated"
    APPROVAL_REMINDER = "approval.reminder"
    APPROVAL_APPROVED = "approval.approved"
    APPROVAL_REJECTED = "approval.rejected"
    APPROVAL_REVISED = "approval.revised"
    APPROVAL_CANCELLED = "approval.cancelled"
    ARTIFACT_CREATED = "artifact.created"
    NOTICE_FAILED = "notice.failed"


@dataclass(frozen=True, kw_only=True)
class EventView:
    """One line of an execution's numbered event log."""

    execution_id: str
    number: int
    at: int
    kind: EventKind
    data: Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class EndedExecutionView:
    """What a callback tells of the execution: that and how it ended, not what it computed."""

    execution_id: str
    workflow_id: str
    workflow_name: str
    trigger_source: TriggerSource
    status: ExecutionStatus
    status_reason: ReasonCode | None
    error: str | None
    started_at: int
    completed_at: int
    redrive_of: str | None


@dataclass(frozen=True, kw_only=True)
class CallbackView:
    """
    The message to a `callbackUrl`. `type` is the kind of the execution's last event,
    `timestamp` its end in ISO 8601. CB-2.
    """

    type: EventKind
    timestamp: str
    data: EndedExecutionView


FINAL_STATUSES = frozenset(
    {ExecutionStatus.COMPLETED, ExecutionStatus.FAILED, ExecutionStatus.CANCELLED}
)
FINAL_EVENTS = frozenset(EventKind(f"execution.{one.lower()}") for one in FINAL_STATUSES)
