"""
The shapes of what the API answers: one attrs class each. Spec: resources; contract §2, §3, §6.

Names are snake case here and camel case on the wire (`converter`). A field without a value is
null, unless it is marked `ABSENT`: then it is left out. Not frozen, because a frozen class
costs five times as much to build, and these live for microseconds.
"""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final, TypeAlias

from attrs import define, field

from wfcore.model.access import AccountStatus, Plan
from wfcore.model.approval import ApprovalStatus, DecisionSource, Purpose, Verdict
from wfcore.model.event import EventKind
from wfcore.model.execution import ExecutionStatus, ReasonCode, TriggerSource
from wfcore.model.json import JsonObject
from wfcore.model.workflow import ColumnType, VariableType
from wfcore.wire.requests import Row
from wfcore.wire.results import StepView, UsageView
from wfcore.wire.starts import ConcurrencyView, StarterView, WorkflowTriggerView

WrittenStep: TypeAlias = Annotated[JsonObject, "WrittenStep", "A step as definitions write it"]

ABSENT: Final = {"absent": True}
"""Field metadata: left out while it is None."""


@define(eq=False)
class VariableView:
    """A declared variable; the default of a secret one is masked."""

    name: str
    type: VariableType
    required: bool
    secret: bool
    default: Any


@define(eq=False)
class WorkflowView:
    """A workflow. `workflow`: the steps as written; `triggers`: what starts it by itself."""

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


@define(eq=False)
class DefinitionView:
    """The definition that an execution runs by, whatever the workflow says since."""

    execution_id: str
    workflow_id: str
    workflow_version: int
    workflow: Sequence[WrittenStep]
    description: str
    variables: Sequence[VariableView]


@define(eq=False, kw_only=True)
class ListPage:
    """
    A part of a list. `total` and `page` are absent where it is read on with `after`; `next` is
    the `after` of the rows behind these, absent at the end.
    """

    total: int | None = field(default=None, metadata=ABSENT)
    page: int | None = field(default=None, metadata=ABSENT)
    size: int
    next: str | None = field(default=None, metadata=ABSENT)


@define(eq=False, kw_only=True)
class WorkflowPage(ListPage):
    items: Sequence[WorkflowView]


@define(eq=False)
class StatusReasonView:
    code: ReasonCode
    step_name: str | None
    approval_id: str | None


@define(eq=False, kw_only=True)
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
    completed_at: int | None = field(default=None, metadata=ABSENT)
    error: str | None
    usage: UsageView
    redrive_of: str | None
    parent_execution_id: str | None
    workflow_version: int
    started_by: StarterView


@define(eq=False, kw_only=True)
class StatusView(ExecutionRow):
    """
    The status view of an execution. `inputs`: over the defaults, secrets masked. `redrivenAs`:
    the last execution that redrives it.
    """

    redriven_as: str | None
    inputs: Mapping[str, Any]
    step_results: Mapping[str, StepView]


@define(eq=False, kw_only=True)
class ExecutionPage(ListPage):
    items: Sequence[ExecutionRow]


@define(eq=False)
class ResultView:
    """The result of an ended execution. `output` is null unless it COMPLETED."""

    execution_id: str
    workflow_id: str
    status: ExecutionStatus
    step_results: Mapping[str, StepView]
    duration: int
    output: Any
    error: str | None
    usage: UsageView
    completed_at: int


@define(eq=False)
class StartView:
    """An accepted execution."""

    execution_id: str
    status: ExecutionStatus
    workflow_id: str
    started_at: int


@define(eq=False)
class TriggerView:
    """An accepted webhook trigger."""

    execution_id: str
    webhook_id: str
    workflow_id: str
    status: ExecutionStatus
    started_at: int


@define(eq=False)
class ColumnView:
    key: str
    title: str
    type: ColumnType
    editable: bool
    required: bool
    options: Sequence[Any]


@define(eq=False)
class GroupView:
    """A group of rows. `items` is empty in lists, `itemsCount` is kept."""

    name: str
    title: str
    items: Sequence[Row]
    items_count: int


@define(eq=False)
class GroupDetail(GroupView):
    """A group with its rows and their columns. `allowAdd`: whether reviewers may add rows."""

    columns: Sequence[ColumnView]
    row_key: str | None
    allow_add: bool


@define(eq=False)
class HistoryView:
    """Who did what when; the rows before and after where they were edited."""

    at: int
    action: str
    by: str | None
    source: DecisionSource | None
    comment: str | None
    rows_before: Mapping[str, Sequence[Row]] | None
    rows_after: Mapping[str, Sequence[Row]] | None


@define(eq=False, kw_only=True)
class ApprovalHead:
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


@define(eq=False, kw_only=True)
class ApprovalView(ApprovalHead):
    """An approval as lists show it: the rows are left out."""

    reviewable_groups: Sequence[GroupView]


@define(eq=False, kw_only=True)
class ApprovalDetail(ApprovalHead):
    """
    An approval with its rows, their columns, and its history. `itemsHash` is another one when
    any row is another one.
    """

    reviewable_groups: Sequence[GroupDetail]
    items_hash: str
    history: Sequence[HistoryView]


@define(eq=False, kw_only=True)
class ApprovalPage(ListPage):
    approvals: Sequence[ApprovalView]


@define(eq=False)
class ExecutionApprovals:
    """All approvals of one execution."""

    approvals: Sequence[ApprovalView]
    total: int


@define(eq=False)
class DecisionView:
    """The answer of the approval-response endpoint."""

    ok: bool
    approval_id: str
    decision: Verdict


@define(eq=False)
class ArtifactView:
    """A file of an execution. `downloadUrl` opens it for 15 minutes, as it is."""

    id: str
    name: str
    path: str
    storage_key: str
    download_url: str
    previewable: bool
    execution_id: str
    step_name: str
    size: int
    content_type: str
    sha256: str
    created_at: int


@define(eq=False)
class ArtifactList:
    artifacts: Sequence[ArtifactView]
    total: int


@define(eq=False)
class AccountView:
    id: str
    email: str
    plan: Plan
    status: AccountStatus


@define(eq=False)
class SessionView:
    """Who is signed in at the console."""

    account: AccountView


@define(eq=False)
class DoneView:
    """It is done; there is nothing more to say."""

    ok: bool


@define(eq=False)
class EventView:
    """One line of an execution's numbered event log."""

    execution_id: str
    number: int
    at: int
    kind: EventKind
    data: Mapping[str, Any]


@define(eq=False)
class LogView:
    """Output lines that a step wrote to a stream: one or more, as they were kept."""

    number: int
    at: int
    step: str
    attempt: int
    stream: str
    text: str


@define(eq=False)
class LogPage:
    """Output lines in order. `next`: the `after` of those to come; without items: none yet."""

    items: Sequence[LogView]
    next: int


@define(eq=False)
class HealthView:
    status: str
    version: str


@define(eq=False)
class ErrorView:
    error: str


@define(eq=False)
class RateLimitedView:
    """A full quota window (`minute` or `day`)."""

    error: str
    window: str
    limit: int
    retry_after_seconds: int
