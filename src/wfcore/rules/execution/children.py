"""Executions that start one another: what one's end means for the other. FL-6, FL-9."""

from collections.abc import Sequence

from wfcore.errors import Conflict
from wfcore.model.execution import Execution, ExecutionStatus, ReasonCode, StatusReason
from wfcore.model.json import JsonObject
from wfcore.model.usage import Usage
from wfcore.model.workflow import Workflow
from wfcore.rules.execution.machine import EXECUTION, ChildCompleted, ChildEnded, ChildFailed
from wfcore.rules.execution.usage import NOTHING, total
from wfcore.rules.limits import MAX_CHILD_DEPTH
from wfcore.rules.masking import mask, secret_values
from wfcore.rules.variables import compact


def waits_for(parent: Execution, child_id: str, step_name: str | None) -> bool:
    """Whether a step of *parent* still waits for that execution."""
    result = parent.step_results.get(step_name or "")
    open = EXECUTION.allows(parent.status, ChildEnded)
    return open and result is not None and result.open_child == child_id


def child_end(child: Execution) -> ChildCompleted | ChildFailed:
    """
    What an ended execution is for the step that started it. FL-6.

    Its secrets stay with it: nobody knows them as secrets in the parent.
    """
    step = child.parent_step or ""
    if child.status is ExecutionStatus.COMPLETED:
        output = mask(child.output, secret_values(child))
        return ChildCompleted(step, child.id, output, _usage(child))
    error = f"execution {child.id} {_fate(child)}"
    return ChildFailed(step, child.id, error, _usage(child), was_interrupted(child))


def was_interrupted(run: Execution) -> bool:
    """
    Whether *run* failed because a worker died with a step in flight, its own or one of the
    executions that it started. A parent's `retry` would begin that step again, so the reason
    is handed up, and nobody tries again. EX-26.
    """
    match run.status_reason:
        case StatusReason(code=ReasonCode.INTERRUPTED):
            return True
        case StatusReason(code=ReasonCode.STEP_FAILED, step_name=str(key)):
            return run.step_results[key].reason is ReasonCode.INTERRUPTED
    return False


def given_up(child: Execution) -> ChildFailed:
    """
    What the time of a step means that is up while the execution it started, or one further down,
    is interrupted: `retry` would begin that work again by another way. EX-26.
    """
    error = f"execution {child.id} was interrupted and has not ended in time"
    step = child.parent_step or ""
    return ChildFailed(step, child.id, error, _usage(child), interrupted=True)


def _usage(child: Execution) -> Usage | None:
    """What it consumed, those that it started included; None: nothing did."""
    spent = total(child.step_results.values())
    return None if spent == NOTHING else spent


def _fate(child: Execution) -> str:
    if child.status is ExecutionStatus.FAILED:
        return f"failed: {child.error}"
    match child.status_reason.code if child.status_reason else None:
        case ReasonCode.APPROVAL_REJECTED:
            return "was cancelled: an approval was rejected"
        case ReasonCode.APPROVAL_TIMEOUT:
            return "was cancelled: nobody decided an approval in time"
        case _:
            return "was cancelled"


def told_secrets(parent: Execution, inputs: JsonObject) -> frozenset[str]:
    """Names of the inputs in which a secret of *parent* is passed on: secrets there, too. SC-1."""
    secrets = secret_values(parent)
    return frozenset(
        name for name, value in inputs.items() if compact(mask(value, secrets)) != compact(value)
    )


def require_finite(workflow: Workflow, ancestors: Sequence[Execution]) -> None:
    """
    A workflow that starts itself, by whichever way, would do so without end. FL-9.

    *ancestors* are the execution that wants to start it, and those that started that one.
    Raises `Conflict`.
    """
    if any(one.workflow_id == workflow.id for one in ancestors):
        names = [*(one.workflow_name for one in reversed(ancestors)), workflow.name]
        raise Conflict(f"workflow '{workflow.name}' would start itself: {' > '.join(names)}")
    if len(ancestors) >= MAX_CHILD_DEPTH:
        raise Conflict(f"executions start one another at most {MAX_CHILD_DEPTH} deep")
