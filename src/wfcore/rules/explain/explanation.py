"""Why nothing is happening, what happens next, or why an execution ended. XP-1, XP-2."""

from collections.abc import Iterator, Sequence

from attrs import frozen

from wfcore.model.approval import Approval
from wfcore.model.execution import Execution, ExecutionStatus, ReasonCode, StatusReason
from wfcore.model.explanation import Line, Why
from wfcore.model.workflow import Definition
from wfcore.rules.execution.interruption import MAX_RESUMES, obstacle
from wfcore.rules.execution.machine import EXECUTION
from wfcore.rules.explain.queue import GroupAhead, Queue, in_the_group, in_the_queue
from wfcore.rules.explain.steps import Known, said, steps
from wfcore.rules.masking import mask_text, secret_values
from wfcore.time import EpochMs


@frozen
class Around:
    """
    What else bears on the execution. Anything unknown is left at its default.

    `approvals`: its own. `children`: the executions that it started and that the caller sees.
    `serving`: whether a server is running that would do the work.
    """

    definition: Definition | None = None
    approvals: Sequence[Approval] = ()
    children: Sequence[Execution] = ()
    queue: Queue | None = None
    group: GroupAhead | None = None
    serving: bool | None = None


def explain(run: Execution, around: Around, now: EpochMs) -> tuple[Line, ...]:
    """What there is to say about *run*; at least one line. XP-1."""
    if run.status in EXECUTION.final:
        return tuple(ended(run, around.approvals))
    return (*_server(around), *_open(run, around, now))


def is_due(run: Execution, now: EpochMs) -> bool:
    """Whether a worker could claim it now. Only then does the queue matter."""
    takes = run.status not in EXECUTION.final and run.status is not ExecutionStatus.INTERRUPTED
    return takes and run.worker is None and run.due_at is not None and run.due_at <= now


def _server(around: Around) -> Iterator[Line]:
    if around.serving is False:
        yield Line(Why.NO_SERVER, "No server is running here; wfcore serve goes on with it.")


def _open(run: Execution, around: Around, now: EpochMs) -> Iterator[Line]:
    if run.status is ExecutionStatus.INTERRUPTED:
        yield from _interrupted(run, around.definition)
        return
    if is_due(run, now):
        yield from list(in_the_group(run, around.group)) or in_the_queue(run, around.queue)
    told = list(steps(run, Known(around.definition, around.approvals, around.children)))
    yield from told
    if not told and run.worker is not None:
        yield Line(Why.MOVING, "A worker has it and is taking it to its next step.")
    yield from _next(run, around.definition)


def _interrupted(run: Execution, definition: Definition | None) -> Iterator[Line]:
    """EX-11 to EX-14, EX-24 and EX-25, in the words of an answer."""
    step = run.status_reason.step_name if run.status_reason else None
    what = f"step '{step}'" if step else "a step"
    text = f"The worker stopped while {what} was running; how much of it was done is unknown."
    yield Line(Why.INTERRUPTED, text, step_name=step)
    why = obstacle(run, definition)
    if why is None:
        count = f"{run.resumes + 1} of at most {MAX_RESUMES}"
        text = f"The service takes it up again by itself: resumption {count}."
        yield Line(Why.WILL_RESUME, text, run.due_at)
        return
    when = f" at {said(run.due_at)}" if run.due_at is not None else ""
    yield Line(Why.WILL_FAIL, f"It is not resumed: {why}. It is FAILED{when}.", run.due_at)
    yield redrive()


def _next(run: Execution, definition: Definition | None) -> Iterator[Line]:
    """The first step of the sequence that has not begun."""
    for step in definition.steps if definition else ():
        if step.name in run.step_results:
            continue
        unless = ", unless its `when` is false" if step.when is not None else ""
        first = "begins first" if not run.step_results else "comes next"
        yield Line(Why.NEXT_STEP, f"Step '{step.name}' {first}{unless}.", step_name=step.name)
        return


def ended(run: Execution, approvals: Sequence[Approval]) -> Iterator[Line]:
    """The reason, and for an execution that did not complete, that it can be redriven."""
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
    """What helps after any end other than completion. EX-17."""
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
