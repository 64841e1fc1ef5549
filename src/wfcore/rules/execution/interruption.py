"""
The death of a worker, and the executions that the service resumes after it. EX-11 to EX-15.

A step that was in flight may have done half of its work, and nobody knows which half. The service
may begin the step again only if no outsider can cause that: for executions started by hand, by a
schedule or by a chain. The promise covers all the work, so a child follows the trigger of the
*root* of its family rather than that of its parent. Whatever the root allows, an author may forbid
the resumption for a step with `onInterrupt: fail`. The trigger of the root is passed down to
children and not read from the parent: retention may have removed the parent, and the rule reads one
record only.
"""

from collections.abc import Sequence

from wfcore.effects import Outcome
from wfcore.model.execution import Execution, ExecutionStatus, StepStatus, TriggerSource
from wfcore.model.workflow import Definition, OnInterrupt
from wfcore.rules.execution import machine as facts
from wfcore.rules.execution.fold import advance
from wfcore.rules.execution.machine import EXECUTION
from wfcore.rules.execution.scope import name_of
from wfcore.rules.phrase import phrase
from wfcore.time import EpochMs, later

RESUMABLE = frozenset(
    {TriggerSource.MANUAL, TriggerSource.SCHEDULE, TriggerSource.DELAYED_COMPLETION}
)
"""The triggers of roots whose families the service resumes."""
MAX_RESUMES = 3


def loss(run: Execution, definition: Definition, now: EpochMs, grace_ms: int) -> facts.Fact:
    """
    The fact for *run* after the loss of its worker. With no step in flight the execution simply
    continues (EX-15); otherwise the execution is interrupted, and is due at once or after the grace
    period. EX-11.
    """
    if not run.in_flight:
        return facts.LeaseReturned()
    resumable = obstacle(run, definition) is None
    return facts.WorkerLost(now if resumable else later(now, grace_ms))


def handed_back(run: Execution, ended: Sequence[facts.Fact], now: EpochMs) -> Outcome[Execution]:
    """The outcome of the facts that *ended* a step; another worker continues. EX-11."""
    outcome = Outcome(run)
    for fact in (*ended, facts.LeaseReturned()):
        back = isinstance(fact, facts.LeaseReturned)
        if back and outcome.record.in_flight:
            break  # other steps run on; with the end of the last one it is given back
        if EXECUTION.allows(outcome.record.status, type(fact)):
            then = advance(outcome.record, fact, now)
            told, effects = outcome.events + then.events, outcome.effects + then.effects
            outcome = Outcome(then.record, told, effects)
    return outcome


def may_resume(run: Execution, definition: Definition) -> bool:
    """Whether the service itself resumes this interrupted execution. EX-12, EX-14, EX-24."""
    return run.status is ExecutionStatus.INTERRUPTED and obstacle(run, definition) is None


def after_grace(run: Execution, definition: Definition) -> facts.Fact:
    """
    The fact for an interrupted execution whose grace is over. EX-12, EX-13. Its `onFailure` steps
    come before the end, unless they have run before: EX-31.
    """
    if may_resume(run, definition):
        return facts.Resumed()
    handled = run.failing is not None or not definition.on_failure
    return facts.GraceOver() if handled else facts.FailingAfterGrace()


def obstacle(run: Execution, definition: Definition | None) -> str | None:
    """
    The reason why the service does not resume *run* after the death of its worker, in words; None
    if the service does. *definition* is None if the caller does not know the definition.
    """
    if (root := run.root_trigger) is TriggerSource.WORKFLOW:
        return phrase("what started the first of the executions above it is not on record")
    if root not in RESUMABLE:
        if run.parent_id is None:
            return phrase(
                "it was started by {source}, so its caller must start it again", source=root
            )
        return phrase(
            "the root of its family was started by {source}, so its caller must start it again",
            source=root,
        )
    if definition is not None and (step := _refused(run, definition)) is not None:
        return phrase(
            "step '{step}' says `onInterrupt: fail`, itself or by its definition", step=step
        )
    if run.resumes >= MAX_RESUMES:
        return phrase("it was resumed {count} times", count=run.resumes)
    return None


def _refused(run: Execution, definition: Definition) -> str | None:
    """
    The first step that was in flight and must not begin again. The step's setting overrides the
    definition's. EX-25.
    """
    for key, result in run.step_results.items():
        if result.in_flight or result.status is StepStatus.INTERRUPTED:
            own = getattr(definition.step(name_of(key)), "on_interrupt", None)
            if (own or definition.on_interrupt) is OnInterrupt.FAIL:
                return key
    return None
