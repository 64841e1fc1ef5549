"""Why an execution has ended, and what can be done about it. XP-1."""

from collections.abc import Iterator, Sequence

from wfcore.model.approval import Approval
from wfcore.model.execution import Execution, ExecutionStatus, ReasonCode, StatusReason
from wfcore.model.explanation import Line, Why
from wfcore.rules.secrecy import mask_text, secret_values


def ended(run: Execution, approvals: Sequence[Approval]) -> Iterator[Line]:
    """The reason; for what did not complete, that it can be started again."""
    if run.status is ExecutionStatus.COMPLETED:
        yield Line(Why.COMPLETED, "Every step has ended; the result is there.")
        return
    step = run.status_reason.step_name if run.status_reason else None
    if run.status is ExecutionStatus.FAILED:
        error = mask_text(run.error or "It failed", secret_values(run))
        yield Line(Why.FAILED, error, step_name=step)
    else:
        id = run.status_reason.approval_id if run.status_reason else None
        yield Line(Why.CANCELLED, _cancelled(run, approvals), None, step, id)
    yield redrive()


def redrive() -> Line:
    """What helps after any end but completion. EX-17."""
    text = "A redrive makes a new execution that begins at the first unfinished step."
    return Line(Why.CAN_REDRIVE, text)


def _cancelled(run: Execution, approvals: Sequence[Approval]) -> str:
    match run.status_reason:
        case StatusReason(code=ReasonCode.APPROVAL_REJECTED, approval_id=id):
            return _rejected(run, id, approvals)
        case StatusReason(code=ReasonCode.APPROVAL_TIMEOUT, approval_id=id):
            return f"Nobody decided approval {id} in time; that counts as a rejection."
        case StatusReason(code=ReasonCode.PARENT_CANCELLED):
            return "The execution that started it has ended, and took it along."
        case _:
            return "Somebody asked for its end."


def _rejected(run: Execution, id: str | None, approvals: Sequence[Approval]) -> str:
    approval = next((one for one in approvals if one.id == id), None)
    by = f" by {approval.decided_by}" if approval and approval.decided_by else ""
    comment = mask_text(approval.comment or "", secret_values(run)) if approval else ""
    why = f": {comment}" if comment else "."
    return f"Approval {id} was rejected{by}{why}"
