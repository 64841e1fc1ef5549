"""From records to the shapes of the wire. Pure; secrets are masked here."""

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from wfcore.errors import NotFound
from wfcore.model.access import Account
from wfcore.model.approval import Approval, Group, HistoryEntry, Verdict
from wfcore.model.event import Event
from wfcore.model.execution import (
    Artifact,
    Awaits,
    Execution,
    ExecutionStatus,
    StatusReason,
    StepResult,
    StepStatus,
    Usage,
)
from wfcore.model.page import Page
from wfcore.model.trigger import Shown
from wfcore.model.workflow import Column, Definition, Variable, Workflow
from wfcore.rules.approval.machine import items_hash
from wfcore.rules.execution.budget import total
from wfcore.rules.masking import MASK, Secrets, mask, mask_text, secret_values
from wfcore.rules.paging import cursor_text
from wfcore.wire import shapes
from wfcore.wire.results import RefusedFileView, StepView, UsageView
from wfcore.wire.starts import StarterView, concurrency_view, trigger_view

Names: TypeAlias = Mapping[str, str]
"""What people call accounts and keys, by id: emails and names."""
NO_NAMES: Names = {}

EXECUTIONS, APPROVALS, WORKFLOWS, WEBHOOKS = "executions", "approvals", "workflows", "webhooks"
"""Lists that are read on by cursor, as their cursors name them."""

_NOW_RUNNING = frozenset({StepStatus.RUNNING, StepStatus.AWAITING_APPROVAL})


def workflow_view(
    workflow: Workflow, definition: Definition, triggers: Sequence[Shown] = ()
) -> shapes.WorkflowView:
    """A workflow with its current definition."""
    return shapes.WorkflowView(
        id=workflow.id,
        name=workflow.name,
        owner_id=workflow.owner_id,
        workflow=definition.steps_as_written,
        description=definition.description,
        variables=[_variable(one) for one in definition.variables.values()],
        triggers=[trigger_view(one) for one in triggers],
        concurrency=concurrency_view(definition.concurrency),
        version=workflow.revision,
        created_at=workflow.created_at,
        updated_at=workflow.updated_at,
    )


def _variable(one: Variable) -> shapes.VariableView:
    default = MASK if one.secret and one.has_default else one.default
    return shapes.VariableView(one.name, one.type, one.required, one.secret, default)


def definition_view(run: Execution, definition: Definition) -> shapes.DefinitionView:
    """The definition of an execution; defaults of secret variables are masked."""
    return shapes.DefinitionView(
        run.id,
        run.workflow_id,
        run.revision,
        definition.steps_as_written,
        definition.description,
        [_variable(one) for one in definition.variables.values()],
    )


def status_view(
    run: Execution, names: Names = NO_NAMES, redriven_as: str | None = None
) -> shapes.StatusView:
    """The status view, with the results of the steps that started or were skipped."""
    secrets = secret_values(run)
    return shapes.StatusView(
        **_row(run, secrets, names),
        redriven_as=redriven_as,
        inputs=_inputs(run, secrets),
        step_results=_steps(run.step_results, secrets),
    )


def _inputs(run: Execution, secrets: Secrets) -> Mapping[str, Any]:
    return {
        name: MASK if name in run.secrets else mask(value, secrets)
        for name, value in run.variables.items()
    }


def execution_row(run: Execution, names: Names = NO_NAMES) -> shapes.ExecutionRow:
    """The status view without inputs and step results, for lists."""
    return shapes.ExecutionRow(**_row(run, secret_values(run), names))


def _starter(run: Execution, names: Names) -> StarterView:
    return StarterView(
        account_id=run.owner_id,
        email=names.get(run.owner_id),
        key_id=run.key_id,
        key_name=names.get(run.key_id) if run.key_id else None,
        webhook_id=run.webhook_id,
        trigger_id=run.trigger_id,
    )


def _row(run: Execution, secrets: Secrets, names: Names) -> dict[str, Any]:
    """What both show of an execution, by field."""
    return {
        "workflow_version": run.revision,
        "started_by": _starter(run, names),
        "execution_id": run.id,
        "workflow_id": run.workflow_id,
        "workflow_name": run.workflow_name,
        "trigger_source": run.trigger_source,
        "status": run.status,
        "status_reason": _reason(run.status_reason),
        "current_step": _current(run),
        "completed_steps": run.completed_steps,
        "total_steps": run.total_steps,
        "started_at": run.accepted_at,
        "completed_at": run.completed_at,
        "error": _masked(run.error, secrets),
        "usage": _usage(total(run.step_results.values())),
        "redrive_of": run.redrive_of,
        "parent_execution_id": run.parent_id,
    }


def execution_page(found: Page[Execution], names: Names = NO_NAMES) -> shapes.ExecutionPage:
    """One page of executions."""
    rows = [execution_row(run, names) for run in found.rows]
    return shapes.ExecutionPage(items=rows, **shown_of(found, EXECUTIONS))


def shown_of(found: Page[Any], list: str) -> dict[str, Any]:
    """What every `ListPage` says of a page of that *list*, by field."""
    after = found.total is None
    return {
        "total": found.total,
        "page": None if after else found.page,
        "size": found.size,
        "next": cursor_text(list, found.next) if found.next else None,
    }


def result_view(run: Execution) -> shapes.ResultView:
    """The result of an execution that has ended."""
    secrets = secret_values(run)
    completed_at = run.completed_at or run.accepted_at
    completed = run.status is ExecutionStatus.COMPLETED
    return shapes.ResultView(
        execution_id=run.id,
        workflow_id=run.workflow_id,
        status=run.status,
        step_results=_steps(run.step_results, secrets),
        duration=completed_at - run.accepted_at,
        output=mask(run.output, secrets) if completed else None,
        error=_masked(run.error, secrets),
        usage=_usage(total(run.step_results.values())),
        completed_at=completed_at,
    )


def _current(run: Execution) -> str | None:
    """The first step that runs or waits; what only holds it is not meant. EX-22."""
    holder = None
    for name, result in run.step_results.items():
        if result.status in _NOW_RUNNING:
            if result.awaits is not Awaits.STEPS:
                return name
            holder = holder or name
    return holder


def _reason(reason: StatusReason | None) -> shapes.StatusReasonView | None:
    if reason is None:
        return None
    return shapes.StatusReasonView(reason.code, reason.step_name, reason.approval_id)


def _steps(results: Mapping[str, StepResult], secrets: Secrets) -> Mapping[str, StepView]:
    return {name: _step(result, secrets) for name, result in results.items()}


def step_view(run: Execution, key: str) -> StepView:
    """The result of one step. Raises `NotFound` for one that has neither begun nor been skipped."""
    result = run.step_results.get(key)
    if result is None:
        raise NotFound("Step")
    return _step(result, secret_values(run))


def _step(result: StepResult, secrets: Secrets) -> StepView:
    usage = result.usage
    return StepView(
        result.status,
        result.duration_ms,
        result.started_at,
        result.completed_at,
        _masked(result.error, secrets),
        result.attempts,
        _usage(usage) if usage is not None else None,
        [
            RefusedFileView(_masked(file.name, secrets) or "", file.reason)
            for file in result.refused
        ],
        result.child_id,
        output=mask(result.output, secrets),
    )


def _masked(text: str | None, secrets: Secrets) -> str | None:
    return mask_text(text, secrets) if secrets and text else text


def _usage(usage: Usage) -> UsageView:
    return UsageView(usage.input_tokens, usage.output_tokens, usage.cost_usd)


def approval_view(approval: Approval) -> shapes.ApprovalView:
    """An approval without its rows; their number is kept. AP-13."""
    groups = [
        shapes.GroupView(group.name, group.title, (), len(group.items)) for group in approval.groups
    ]
    return shapes.ApprovalView(**_head(approval), reviewable_groups=groups)


def approval_detail(approval: Approval) -> shapes.ApprovalDetail:
    """An approval with rows, columns and history."""
    return shapes.ApprovalDetail(
        **_head(approval),
        reviewable_groups=[_group(group) for group in approval.groups],
        items_hash=items_hash(approval),
        history=[_history(entry) for entry in approval.history],
    )


def _head(approval: Approval) -> dict[str, Any]:
    return {
        "id": approval.id,
        "execution_id": approval.execution_id,
        "workflow_id": approval.workflow_id,
        "step_name": approval.step_name,
        "purpose": approval.purpose,
        "status": approval.status,
        "approval_message": approval.message,
        "timeout": approval.timeout_ms,
        "created_at": approval.created_at,
        "expires_at": approval.expires_at,
        "decided_at": approval.decided_at,
        "decided_by": approval.decided_by,
        "decision_source": approval.decision_source,
        "comment": approval.comment,
        "required_approvals": approval.required_approvals,
        "approved_by": [one.by for one in approval.assents],
        "allow_self_approval": approval.allow_self_approval,
        "reminders": approval.reminders,
    }


def _group(group: Group) -> shapes.GroupDetail:
    columns = [column_view(column) for column in group.columns]
    return shapes.GroupDetail(
        group.name,
        group.title,
        group.items,
        len(group.items),
        columns,
        group.row_key,
        group.allow_add,
    )


def column_view(column: Column) -> shapes.ColumnView:
    """A column of a group."""
    return shapes.ColumnView(
        column.key, column.title, column.type, column.editable, column.required, column.options
    )


def _history(entry: HistoryEntry) -> shapes.HistoryView:
    return shapes.HistoryView(
        entry.at,
        entry.action,
        entry.by,
        entry.source,
        entry.comment,
        entry.rows_before,
        entry.rows_after,
    )


def approval_page(found: Page[Approval]) -> shapes.ApprovalPage:
    """One page of approvals, without their rows."""
    rows = [approval_view(approval) for approval in found.rows]
    return shapes.ApprovalPage(approvals=rows, **shown_of(found, APPROVALS))


def execution_approvals(approvals: Sequence[Approval]) -> shapes.ExecutionApprovals:
    """All approvals of one execution, without their rows."""
    return shapes.ExecutionApprovals([approval_view(one) for one in approvals], len(approvals))


def decision_view(approval: Approval, verdict: Verdict) -> shapes.DecisionView:
    """The answer of the approval-response endpoint."""
    return shapes.DecisionView(True, approval.id, verdict)


def artifact_view(artifact: Artifact, download_url: str) -> shapes.ArtifactView:
    """An artifact with a link to its content."""
    return shapes.ArtifactView(
        id=artifact.id,
        name=artifact.name,
        path=artifact.storage_key,
        storage_key=artifact.storage_key,
        download_url=download_url,
        previewable=artifact.previewable,
        execution_id=artifact.execution_id,
        step_name=artifact.step_name,
        size=artifact.size,
        content_type=artifact.content_type,
        sha256=artifact.sha256,
        created_at=artifact.created_at,
    )


def account_view(account: Account) -> shapes.AccountView:
    """An account, without anything secret."""
    return shapes.AccountView(account.id, account.email, account.plan, account.status)


def event_view(event: Event) -> shapes.EventView:
    """One event of an execution's log."""
    return shapes.EventView(event.execution_id, event.number, event.at, event.kind, event.data)


def log_view(event: Event) -> shapes.LogView:
    """Output lines as one row; an older release did not keep the attempt."""
    data: Any = event.data
    attempt = data.get("attempt", 1)
    text, stream = data["text"], data["stream"]
    return shapes.LogView(event.number, event.at, data["step"], attempt, stream, text)
