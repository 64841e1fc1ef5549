"""Executions and the results of their steps on the wire; secrets are masked."""

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from attrs import define, field

from wfcore.errors import NotFound
from wfcore.model.execution import (
    Awaits,
    Callback,
    CallbackStatus,
    Execution,
    ExecutionStatus,
    ReasonCode,
    StatusReason,
    StepResult,
    StepStatus,
    TriggerSource,
    Usage,
)
from wfcore.model.page import Page
from wfcore.rules.execution.budget import total
from wfcore.rules.execution.redrive import RedrivePlan, StepFate
from wfcore.rules.masking import MASK, NO_SECRETS, Secrets, mask, mask_text, secret_values
from wfcore.wire.common import ABSENT, EXECUTIONS, NO_NAMES, ListPage, Names, shown_of
from wfcore.wire.requests import DefinitionChoice

_NOW_RUNNING = frozenset({StepStatus.RUNNING, StepStatus.AWAITING_APPROVAL})


@define(eq=False)
class UsageView:
    """What AI calls consumed. `costUsd` is a decimal string, null when a price is unknown."""

    input_tokens: int
    output_tokens: int
    cost_usd: str | None


@define(eq=False)
class RefusedFileView:
    """Something that a step left and that is no artifact."""

    name: str
    reason: str


@define(eq=False)
class StepView:
    """
    What is known of one step. `duration` in ms, null until it ends. `executionId` is there
    where the step started an execution, `model` where one of several models answered; `output` is
    not where outputs were not asked for.
    """

    status: StepStatus
    output: Any = field(default=None, kw_only=True)
    duration: int | None
    started_at: int
    completed_at: int | None
    error: str | None
    attempts: int
    usage: UsageView | None
    refused_artifacts: Sequence[RefusedFileView]
    execution_id: str | None = field(default=None, metadata={"absent": True})
    model: str | None = field(default=None, kw_only=True, metadata={"absent": True})


@define(eq=False, kw_only=True)
class StarterView:
    """Whose execution it is, and by which key, webhook or trigger it was started."""

    account_id: str
    email: str | None
    key_id: str | None = field(default=None, metadata={"absent": True})
    key_name: str | None = field(default=None, metadata={"absent": True})
    webhook_id: str | None = field(default=None, metadata={"absent": True})
    trigger_id: str | None = field(default=None, metadata={"absent": True})


@define(eq=False)
class StatusReasonView:
    code: ReasonCode
    step_name: str | None
    approval_id: str | None


@define(eq=False, kw_only=True)
class ExecutionRow:
    """
    An execution as lists show it. `completedAt` is absent until the end. `reference`: the text by
    which people find it.
    """

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
    reference: str | None
    parent_execution_id: str | None
    workflow_version: int
    started_by: StarterView


@define(eq=False, kw_only=True)
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


@define(eq=False, kw_only=True)
class ExecutionPage(ListPage):
    items: Sequence[ExecutionRow]


@define(eq=False)
class ExecutionCounts:
    """
    How many executions have each status. Those in `atLeast` are more than their number, up to
    which they were counted.
    """

    counts: Mapping[str, int]
    at_least: Sequence[ExecutionStatus]


@define(eq=False)
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


@define(eq=False)
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


@define(eq=False)
class StartView:
    """An accepted execution."""

    execution_id: str
    status: ExecutionStatus
    workflow_id: str
    started_at: int


@define(eq=False)
class PlannedStepView:
    """
    `plan`: `kept` results are taken over; an approval that is `asked` again was open before;
    what runs `again` had begun `begun` times in this line of redrives; a `new` step has never
    begun; the definition no longer has a step that is `gone`.
    """

    step: str
    plan: StepFate
    begun: int


@define(eq=False)
class RedrivePlanView:
    """
    What a redrive would do. `from`: the first step that runs, null if none is left; `version`: of
    the workflow, that runs; `changes`: fields that it says differently.
    """

    digest: str
    from_: str | None
    definition: DefinitionChoice
    version: int
    steps: Sequence[PlannedStepView]
    changes: Sequence[str]


def redrive_plan_view(
    plan: RedrivePlan, digest: str, newest: bool, version: int
) -> RedrivePlanView:
    """The view of a plan; *version*: the revision that runs."""
    return RedrivePlanView(
        digest,
        plan.start,
        DefinitionChoice.NEWEST if newest else DefinitionChoice.SAME,
        version,
        [PlannedStepView(one.key, one.fate, one.begun) for one in plan.steps],
        plan.changes,
    )


def status_view(
    run: Execution,
    names: Names = NO_NAMES,
    redriven_as: str | None = None,
    *,
    outputs: bool = True,
) -> StatusView:
    """
    The status view, with the results of the steps that started or were skipped; *outputs*: with
    what they gave.
    """
    secrets = secret_values(run)
    return StatusView(
        **_row(run, secrets, names),
        redriven_as=redriven_as,
        inputs=inputs_of(run, secrets),
        step_results=_steps(run.step_results, secrets, outputs),
        earlier_results=_steps(run.put_aside, secrets, outputs),
    )


def inputs_of(run: Execution, secrets: Secrets) -> Mapping[str, Any]:
    """The inputs over the defaults, secrets masked."""
    return {
        name: MASK if name in run.secrets else mask(value, secrets)
        for name, value in run.variables.items()
    }


def execution_row(run: Execution, names: Names = NO_NAMES) -> ExecutionRow:
    """The status view without inputs and step results, for lists."""
    secrets = secret_values(run) if run.error else NO_SECRETS
    return ExecutionRow(**_row(run, secrets, names))


def callback_state_view(run: Execution, callback: Callback) -> CallbackStateView:
    """The callback of that execution, without what in its address may be secret. CB-5."""
    return CallbackStateView(
        execution_id=run.id,
        host=urlsplit(callback.url).netloc,
        status=callback.status,
        attempts=callback.attempts,
        next_attempt_at=callback.due_at,
        last_error=_masked(callback.last_error, secret_values(run)),
    )


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
    """The fields that both views show."""
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
        "usage": _usage(total(run.every_result)),
        "redrive_of": run.redrive_of,
        "reference": run.reference,
        "parent_execution_id": run.parent_id,
    }


def execution_page(found: Page[Execution], names: Names = NO_NAMES) -> ExecutionPage:
    """One page of executions."""
    rows = [execution_row(run, names) for run in found.rows]
    return ExecutionPage(items=rows, **shown_of(found, EXECUTIONS))


def execution_counts(found: Mapping[ExecutionStatus, int], most: int) -> ExecutionCounts:
    """Counts of which each was made up to one more than *most*."""
    counts = {status.value: min(count, most) for status, count in found.items()}
    return ExecutionCounts(counts, [status for status, count in found.items() if count > most])


def result_view(run: Execution, *, outputs: bool = True) -> ResultView:
    """The result of an execution that has ended; *outputs*: with what its steps gave."""
    secrets = secret_values(run)
    completed_at = run.completed_at or run.accepted_at
    completed = run.status is ExecutionStatus.COMPLETED
    return ResultView(
        execution_id=run.id,
        workflow_id=run.workflow_id,
        status=run.status,
        step_results=_steps(run.step_results, secrets, outputs),
        earlier_results=_steps(run.put_aside, secrets, outputs),
        duration=completed_at - run.accepted_at,
        output=mask(run.output, secrets) if completed else None,
        error=_masked(run.error, secrets),
        usage=_usage(total(run.every_result)),
        completed_at=completed_at,
    )


def _current(run: Execution) -> str | None:
    """The first step that runs or waits, ignoring steps that only contain others. EX-22."""
    holder = None
    for name, result in run.step_results.items():
        if result.status in _NOW_RUNNING:
            if result.awaits is not Awaits.STEPS:
                return name
            holder = holder or name
    return holder


def _reason(reason: StatusReason | None) -> StatusReasonView | None:
    if reason is None:
        return None
    return StatusReasonView(reason.code, reason.step_name, reason.approval_id)


def _steps(
    results: Mapping[str, StepResult], secrets: Secrets, outputs: bool
) -> Mapping[str, StepView]:
    return {name: _step(result, secrets, outputs) for name, result in results.items()}


def step_view(run: Execution, key: str) -> StepView:
    """The result of one step. Raises `NotFound` for one that has neither begun nor been skipped."""
    result = run.step_results.get(key)
    if result is None:
        raise NotFound("Step")
    return _step(result, secret_values(run))


def _step(result: StepResult, secrets: Secrets, outputs: bool = True) -> StepView:
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
        output=mask(result.output, secrets) if outputs else None,
        model=result.model,
    )


def _masked(text: str | None, secrets: Secrets) -> str | None:
    return mask_text(text, secrets) if secrets and text else text


def _usage(usage: Usage) -> UsageView:
    return UsageView(usage.input_tokens, usage.output_tokens, usage.cost_usd)
