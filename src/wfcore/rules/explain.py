"""
Why nothing is happening, or what happens next, from what the store holds. XP-1, XP-2.

Pure: the use case looks up what bears on the execution, this says it. The most immediate
cause comes first.
"""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

from attrs import frozen

from wfcore.instants import EpochMs, later
from wfcore.model.approval import Approval, ApprovalStatus
from wfcore.model.execution import Awaits, Execution, ExecutionStatus, StepResult, StepStatus
from wfcore.model.explanation import Line, Why
from wfcore.model.workflow import AiStep, CodeStep, Definition
from wfcore.rules.execution import MAX_RESUMES, RESUMABLE, may_resume
from wfcore.rules.execution_machine import EXECUTION
from wfcore.rules.explain_end import ended, redrive
from wfcore.rules.explain_queue import LaneAhead, Queue, in_the_lane, in_the_queue
from wfcore.rules.scope import name_of
from wfcore.rules.secrecy import mask_text, secret_values


@frozen
class Around:
    """
    What beside the execution bears on it. What is not known is left at its default.

    `approvals`: its own. `serving`: whether a server is there that would do the work.
    """

    definition: Definition | None = None
    approvals: Sequence[Approval] = ()
    queue: Queue | None = None
    lane: LaneAhead | None = None
    serving: bool | None = None


def explain(run: Execution, around: Around, now: EpochMs) -> tuple[Line, ...]:
    """What there is to say of *run*; at least one line. XP-1."""
    if run.status in EXECUTION.final:
        return tuple(ended(run, around.approvals))
    return (*_server(around), *_open(run, around, now))


def is_due(run: Execution, now: EpochMs) -> bool:
    """Whether a worker could take it now. Only then does the queue matter."""
    takes = run.status not in EXECUTION.final and run.status is not ExecutionStatus.INTERRUPTED
    return takes and run.worker is None and run.due_at is not None and run.due_at <= now


def _server(around: Around) -> Iterator[Line]:
    if around.serving is False:
        yield Line(Why.NO_SERVER, "No server is running here; wfcore serve goes on with it.")


def _open(run: Execution, around: Around, now: EpochMs) -> Iterator[Line]:
    if run.status is ExecutionStatus.INTERRUPTED:
        yield from _interrupted(run)
        return
    if is_due(run, now):
        yield from list(in_the_lane(run, around.lane)) or in_the_queue(run, around.queue)
    steps = list(_steps(run, around))
    yield from steps
    if not steps and run.worker is not None:
        yield Line(Why.MOVING, "A worker has it and is taking it to its next step.")
    yield from _next(run, around.definition)


def _steps(run: Execution, around: Around) -> Iterator[Line]:
    """A line for each step that has begun and has not ended."""
    for name, result in run.step_results.items():
        if result.status is StepStatus.AWAITING_APPROVAL:
            yield _approval(name, result, around.approvals)
        elif result.status is StepStatus.RUNNING and result.retry_at is not None:
            yield _retrying(run, name, result)
        elif result.status is StepStatus.RUNNING:
            yield from _running(name, result, around)


def _running(name: str, result: StepResult, around: Around) -> Iterator[Line]:
    """What runs, or what is waited for instead; what holds steps is told of by those."""
    match result.awaits:
        case None:
            yield _working(name, result, around)
        case Awaits.TIME:
            end = said(result.until) if result.until is not None else "its end"
            yield Line(Why.STEP_DELAYED, f"Step '{name}' waits until {end}.", result.until, name)
        case Awaits.CHILD:
            text = f"Step '{name}' waits for the end of execution {result.child_id}."
            yield Line(Why.CHILD_RUNNING, text, result.until, name, execution_id=result.child_id)


def _working(name: str, result: StepResult, around: Around) -> Line:
    step = _timed(around.definition, name)
    since = f"Step '{name}' is running, attempt {result.attempts}"
    if step is None or result.attempts > 1:  # only the first attempt's beginning is on record
        return Line(Why.STEP_RUNNING, f"{since}.", step_name=name)
    until = later(result.started_at, step.timeout_ms)
    text = f"{since}, since {said(result.started_at)}; its timeout ends it at {said(until)}."
    return Line(Why.STEP_RUNNING, text, until, step_name=name)


def _retrying(run: Execution, name: str, result: StepResult) -> Line:
    assert result.retry_at is not None
    if result.error is None:
        text = f"More budget was approved; step '{name}' starts at {said(result.retry_at)}."
        return Line(Why.STEP_RETRYING, text, result.retry_at, step_name=name)
    error = mask_text(result.error or "", secret_values(run))
    text = (
        f"Attempt {result.attempts} of step '{name}' failed ({error}); "
        f"the next one starts at {said(result.retry_at)}."
    )
    return Line(Why.STEP_RETRYING, text, result.retry_at, step_name=name)


def _approval(name: str, result: StepResult, approvals: Sequence[Approval]) -> Line:
    found = (one for one in approvals if one.id == result.approval_id)
    approval = next((one for one in found if one.status is ApprovalStatus.PENDING), None)
    text = f"Step '{name}' waits for a decision on approval {result.approval_id}"
    if approval is None:
        return Line(Why.AWAITING_APPROVAL, f"{text}.", None, name, result.approval_id)
    text += (
        f" by {_approvers(approval)}{_so_far(approval)}. Without one it counts as rejected at "
        f"{said(approval.expires_at)}, and the execution is CANCELLED."
    )
    return Line(Why.AWAITING_APPROVAL, text, approval.expires_at, name, approval.id)


def _approvers(approval: Approval) -> str:
    """Who may decide, in words. AP-10."""
    if approval.approvers:
        return " or ".join(approval.approvers)
    return "the workflow's owner, the execution's owner or somebody with EDIT on the workflow"


def _so_far(approval: Approval) -> str:
    """How many approvals are there, where several are needed. AP-15, AP-18."""
    words = "" if approval.allow_self_approval else ", but not by who started it"
    if approval.required_approvals == 1:
        return words
    names = "".join(f" ({one.by})" for one in approval.assents)
    count = f"{len(approval.assents)} of {approval.required_approvals} approvals are there{names}"
    return f"{words}; {count}"


def _interrupted(run: Execution) -> Iterator[Line]:
    """EX-11 to EX-14, told to whoever wonders."""
    step = run.status_reason.step_name if run.status_reason else None
    what = f"step '{step}'" if step else "a step"
    text = f"The worker stopped while {what} was running; how much of it was done is unknown."
    yield Line(Why.INTERRUPTED, text, step_name=step)
    if may_resume(run):
        count = f"{run.resumes + 1} of at most {MAX_RESUMES}"
        text = f"The service takes it up again by itself: resumption {count}."
        yield Line(Why.WILL_RESUME, text, run.due_at)
        return
    used = run.trigger_source in RESUMABLE
    why = (
        f"it was resumed {run.resumes} times"
        if used
        else f"what came by {run.trigger_source} is its caller's to repeat"
    )
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


def _timed(definition: Definition | None, name: str) -> CodeStep | AiStep | None:
    try:
        step = definition.step(name_of(name)) if definition else None
    except KeyError:
        return None
    return step if isinstance(step, CodeStep | AiStep) else None


def said(at: EpochMs) -> str:
    """An instant in words, in UTC and to the second."""
    return f"{datetime.fromtimestamp(at // 1_000, UTC):%Y-%m-%d %H:%M:%SZ}"
