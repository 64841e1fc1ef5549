"""
Explanations: why nothing is happening, what happens next, or why an execution ended. XP-1, XP-2.
"""

from collections.abc import Iterator, Sequence

from wfcore.model.approval import Approval
from wfcore.model.execution import Execution, ExecutionStatus, ReasonCode, StatusReason
from wfcore.model.explanation import Line, Why
from wfcore.model.workflow import Definition
from wfcore.rules.execution.interruption import MAX_RESUMES, obstacle
from wfcore.rules.execution.machine import EXECUTION
from wfcore.rules.explain.context import ExplanationContext
from wfcore.rules.explain.queue import in_the_group, in_the_queue
from wfcore.rules.explain.steps import steps
from wfcore.rules.masking import mask_text, secret_values
from wfcore.rules.phrase import phrase
from wfcore.time import EpochMs


def explain(run: Execution, context: ExplanationContext, now: EpochMs) -> tuple[Line, ...]:
    """The explanation of *run*; at least one line. XP-1."""
    if run.status in EXECUTION.final:
        return tuple(ended(run, context.approvals))
    return (*_server(context), *_open(run, context, now))


def is_due(run: Execution, now: EpochMs) -> bool:
    """Whether a worker could claim the execution now. Only then does the queue matter."""
    takes = run.status not in EXECUTION.final and run.status is not ExecutionStatus.INTERRUPTED
    return takes and run.worker is None and run.due_at is not None and run.due_at <= now


def _server(context: ExplanationContext) -> Iterator[Line]:
    if context.serving is False:
        text = phrase("No server is running here; wfcore serve goes on with it.")
        yield Line(Why.NO_SERVER, text)


def _open(run: Execution, context: ExplanationContext, now: EpochMs) -> Iterator[Line]:
    if run.status is ExecutionStatus.INTERRUPTED:
        yield from _interrupted(run, context.definition)
        return
    if is_due(run, now):
        yield from list(in_the_group(run, context.group)) or in_the_queue(run, context.queue)
    if run.failing is not None:
        error = mask_text(run.failing.error, secret_values(run))
        text = phrase("It will fail after its `onFailure` steps: {error}", error=error)
        yield Line(Why.FAILING, text, step_name=run.failing.reason.step_name)
    of_steps = list(steps(run, context))
    yield from of_steps
    if not of_steps and run.worker is not None:
        yield Line(Why.MOVING, phrase("A worker has it and is taking it to its next step."))
    yield from _next(run, context.definition)


def _interrupted(run: Execution, definition: Definition | None) -> Iterator[Line]:
    """The rules EX-11 to EX-14, EX-24 and EX-25 as an answer."""
    step = run.status_reason.step_name if run.status_reason else None
    yield Line(Why.INTERRUPTED, _stopped(step), step_name=step)
    why = obstacle(run, definition)
    if why is None:
        text = phrase(
            "The service takes it up again by itself: resumption {count} of at most {most}.",
            count=run.resumes + 1,
            most=MAX_RESUMES,
        )
        yield Line(Why.WILL_RESUME, text, run.due_at)
        return
    if run.due_at is None:
        text = phrase("It is not resumed: {why}. It counts as failed.", why=why)
    else:
        text = phrase(
            "It is not resumed: {why}. It counts as failed at {until}.", why=why, until=run.due_at
        )
    yield Line(Why.WILL_FAIL, text, run.due_at)
    yield redrive()


def _stopped(step: str | None) -> str:
    if step is None:
        return phrase(
            "The worker stopped while a step was running; how much of it was done is unknown."
        )
    return phrase(
        "The worker stopped while step '{step}' was running; how much of it was done is unknown.",
        step=step,
    )


def _next(run: Execution, definition: Definition | None) -> Iterator[Line]:
    """The first step of the sequence that has not begun."""
    if definition is None:
        return
    for step in definition.on_failure if run.failing else definition.steps:
        if step.name in run.step_results:
            continue
        unless = phrase(", unless its `when` is false") if step.when is not None else ""
        if run.step_results:
            text = phrase("Step '{step}' comes next{unless}.", step=step.name, unless=unless)
        else:
            text = phrase("Step '{step}' begins first{unless}.", step=step.name, unless=unless)
        yield Line(Why.NEXT_STEP, text, step_name=step.name)
        return


def ended(run: Execution, approvals: Sequence[Approval]) -> Iterator[Line]:
    """
    The reason of the end; for an execution that did not complete, also the line about a redrive.
    """
    if run.status is ExecutionStatus.COMPLETED:
        yield Line(Why.COMPLETED, phrase("Every step has ended; the result is there."))
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
    """The line about a redrive, which helps after every end except completion. EX-17."""
    text = phrase("A redrive makes a new execution that begins at the first unfinished step.")
    return Line(Why.CAN_REDRIVE, text)


def _cancelled(run: Execution, approvals: Sequence[Approval]) -> str:
    match run.status_reason:
        case StatusReason(code=ReasonCode.APPROVAL_REJECTED, approval_id=id):
            return _rejected(run, id, approvals)
        case StatusReason(code=ReasonCode.APPROVAL_TIMEOUT, approval_id=id):
            return phrase(
                "Nobody decided approval {approval} in time; that counts as a rejection.",
                approval=id,
            )
        case StatusReason(code=ReasonCode.PARENT_CANCELLED):
            return phrase("The execution that started it has ended, and took it along.")
        case _:
            return phrase("Somebody asked for its end.")


def _rejected(run: Execution, id: str | None, approvals: Sequence[Approval]) -> str:
    approval = next((one for one in approvals if one.id == id), None)
    by = approval.decided_by if approval else None
    comment = mask_text(approval.comment or "", secret_values(run)) if approval else ""
    facts = {"approval": id, "by": by, "comment": comment}
    if by and comment:
        return phrase("Approval {approval} was rejected by {by}: {comment}", **facts)
    if by:
        return phrase("Approval {approval} was rejected by {by}.", **facts)
    if comment:
        return phrase("Approval {approval} was rejected: {comment}", **facts)
    return phrase("Approval {approval} was rejected.", **facts)
