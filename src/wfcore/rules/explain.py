"""
Why nothing is happening, or what happens next, from what the store holds. XP-1, XP-2.

Pure: the use case looks up what bears on the execution, this says it. The most immediate
cause comes first.
"""

from collections.abc import Iterator, Sequence

from attrs import frozen

from wfcore.instants import EpochMs
from wfcore.model.approval import Approval
from wfcore.model.execution import Execution, ExecutionStatus
from wfcore.model.explanation import Line, Why
from wfcore.model.workflow import Definition
from wfcore.rules.execution_machine import EXECUTION
from wfcore.rules.explain_end import ended, redrive
from wfcore.rules.explain_queue import LaneAhead, Queue, in_the_lane, in_the_queue
from wfcore.rules.explain_steps import Known, said, steps
from wfcore.rules.interruption import MAX_RESUMES, obstacle


@frozen
class Around:
    """
    What beside the execution bears on it. What is not known is left at its default.

    `approvals`: its own. `children`: those executions that it started and that the asker sees.
    `serving`: whether a server is there that would do the work.
    """

    definition: Definition | None = None
    approvals: Sequence[Approval] = ()
    children: Sequence[Execution] = ()
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
        yield from _interrupted(run, around.definition)
        return
    if is_due(run, now):
        yield from list(in_the_lane(run, around.lane)) or in_the_queue(run, around.queue)
    told = list(steps(run, Known(around.definition, around.approvals, around.children)))
    yield from told
    if not told and run.worker is not None:
        yield Line(Why.MOVING, "A worker has it and is taking it to its next step.")
    yield from _next(run, around.definition)


def _interrupted(run: Execution, definition: Definition | None) -> Iterator[Line]:
    """EX-11 to EX-14, EX-24 and EX-25, told to whoever wonders."""
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
