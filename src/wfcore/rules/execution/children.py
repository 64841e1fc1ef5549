"""Child executions: the effect of a child's end on its parent. FL-6, FL-9."""

from collections.abc import Sequence

from wfcore.errors import Conflict
from wfcore.model.execution import Execution, ExecutionStatus, ReasonCode, StatusReason, Usage
from wfcore.model.json import JsonObject
from wfcore.model.workflow import Workflow
from wfcore.rules.execution.budget import NOTHING, total
from wfcore.rules.execution.machine import EXECUTION, ChildCompleted, ChildEnded, ChildFailed
from wfcore.rules.limits import MAX_CHILD_DEPTH
from wfcore.rules.masking import mask, secret_values
from wfcore.rules.variables import compact


def waits_for(parent: Execution, child_id: str, step_name: str | None) -> bool:
    """Whether a step of *parent* is still waiting for that execution."""
    result = parent.step_results.get(step_name or "")
    open = EXECUTION.allows(parent.status, ChildEnded)
    return open and result is not None and result.open_child == child_id


def child_end(child: Execution) -> ChildCompleted | ChildFailed:
    """
    The fact about the child's end for the step that started it. FL-6.

    Secrets of the child are masked: the parent does not know them as secrets.
    """
    step = child.parent_step or ""
    if child.status is ExecutionStatus.COMPLETED:
        output = mask(child.output, secret_values(child))
        return ChildCompleted(step, child.id, output, _usage(child))
    error = f"execution {child.id} {_fate(child)}"
    return ChildFailed(step, child.id, error, _usage(child), was_interrupted(child))


def was_interrupted(run: Execution) -> bool:
    """
    Whether *run* failed because a worker died with a step in flight: a step of its own, or of an
    execution that it started. A `retry` in the parent would begin that step again, so the reason is
    passed up and no ancestor retries. EX-26.
    """
    match run.status_reason:
        case StatusReason(code=ReasonCode.INTERRUPTED):
            return True
        case StatusReason(code=ReasonCode.STEP_FAILED, step_name=str(key)):
            return run.step_results[key].reason is ReasonCode.INTERRUPTED
    return False


def given_up(child: Execution) -> ChildFailed:
    """
    The fact for a step that times out while its child, or an execution below it, is interrupted.
    The step is never retried: `retry` would begin the interrupted work again by another way. EX-26.
    """
    error = f"execution {child.id} was interrupted and has not ended in time"
    step = child.parent_step or ""
    return ChildFailed(step, child.id, error, _usage(child), interrupted=True)


def _usage(child: Execution) -> Usage | None:
    """The usage of the execution and of its child executions; None if there was no usage."""
    spent = total(child.every_result)
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


def inherited_secrets(parent: Execution, inputs: JsonObject) -> tuple[str, ...]:
    """
    Names of the inputs that receive a secret of *parent*; they are secret in the child too. SC-1.
    """
    secrets = secret_values(parent)
    return tuple(
        name for name, value in inputs.items() if compact(mask(value, secrets)) != compact(value)
    )


def require_finite(workflow: Workflow, ancestors: Sequence[Execution]) -> None:
    """
    Raises `Conflict` for a workflow that would start itself, directly or through others, without
    end. FL-9.

    *ancestors*: the execution that wants to start it, and all executions above that execution.
    """
    if any(one.workflow_id == workflow.id for one in ancestors):
        names = [*(one.workflow_name for one in reversed(ancestors)), workflow.name]
        raise Conflict(f"workflow '{workflow.name}' would start itself: {' > '.join(names)}")
    if len(ancestors) >= MAX_CHILD_DEPTH:
        raise Conflict(f"executions start one another at most {MAX_CHILD_DEPTH} deep")
