"""
What follows when a worker dies: which executions the service takes up again. EX-11 to EX-15.

A step that was in flight may have done half of its work, and nobody knows which half. Beginning
it again is the service's to decide only where nobody outside is there to decide it: for what
was started by hand, by a schedule or by a chain. The promise reaches as far as the work does,
so a child asks what started the *root* of its family, not that its parent started it. Whatever
the root says, an author may refuse for a step with `onInterrupt: fail`. Decision 63.
"""

from wfcore.model.execution import Execution, ExecutionStatus, StepStatus, TriggerSource
from wfcore.model.workflow import Definition, OnInterrupt
from wfcore.rules.execution import machine as facts
from wfcore.rules.execution.scope import name_of
from wfcore.time import EpochMs, later

RESUMABLE = frozenset(
    {TriggerSource.MANUAL, TriggerSource.SCHEDULE, TriggerSource.DELAYED_COMPLETION}
)
"""What starts the roots of families that the service resumes."""
MAX_RESUMES = 3


def loss(run: Execution, definition: Definition, now: EpochMs, grace_ms: int) -> facts.Fact:
    """
    What the loss of its worker means: with nothing in flight it simply goes on (EX-15), else
    it is interrupted, and looked at again at once or after the grace. EX-11.
    """
    if not run.in_flight:
        return facts.LeaseReturned()
    resumable = obstacle(run, definition) is None
    return facts.WorkerLost(now if resumable else later(now, grace_ms))


def may_resume(run: Execution, definition: Definition) -> bool:
    """Whether the service itself takes up an interrupted execution again. EX-12, EX-14, EX-24."""
    return run.status is ExecutionStatus.INTERRUPTED and obstacle(run, definition) is None


def obstacle(run: Execution, definition: Definition | None) -> str | None:
    """
    Why the service does not resume *run* after a worker's death, in words; None: it does.
    *definition* None: what it says is not known here, as to somebody who only asks.
    """
    if (root := run.root_trigger) is TriggerSource.WORKFLOW:
        return "what started the first of the executions above it is not on record"
    if root not in RESUMABLE:
        family = " (the first of its family)" if run.parent_id is not None else ""
        return f"what came by {root}{family} is its caller's to repeat"
    if definition is not None and (step := _refused(run, definition)) is not None:
        return f"step '{step}' says `onInterrupt: fail`, itself or by its definition"
    return f"it was resumed {run.resumes} times" if run.resumes >= MAX_RESUMES else None


def _refused(run: Execution, definition: Definition) -> str | None:
    """The first step that was in flight and must not begin again. The step's word wins. EX-25."""
    for key, result in run.step_results.items():
        if result.in_flight or result.status is StepStatus.INTERRUPTED:
            own = getattr(definition.step(name_of(key)), "on_interrupt", None)
            if (own or definition.on_interrupt) is OnInterrupt.FAIL:
                return key
    return None
