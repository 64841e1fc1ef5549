"""Where walks through trees should come to: every end of every kind of step, and odd turns."""

from tests.wfcore.rules.execution.lineage import Lineage
from tests.wfcore.rules.execution.walker import Walk
from wfcore.model.execution import Awaits, StepStatus
from wfcore.model.execution import ExecutionStatus as S
from wfcore.model.workflow import (
    ApprovalStep,
    ChildStep,
    CodeStep,
    DataStep,
    DelayStep,
    LoopStep,
    ParallelStep,
    SwitchStep,
)
from wfcore.rules.execution.machine import EXECUTION


def results_of(walk: Walk):
    return [(key, one) for stage in walk.stages for key, one in stage.after.step_results.items()]


REACHED = {
    **{
        f"ends {status}": lambda w, s=status: w.run.status is s
        for status in sorted(EXECUTION.final)
    },
    **{
        f"{kind.__name__} {status}": lambda w, k=kind, s=status: any(
            isinstance(Lineage.of(w.definition).step(key), k) and one.status is s
            for key, one in w.run.step_results.items()
        )
        for kind in (ParallelStep, LoopStep, ChildStep, DelayStep, CodeStep, ApprovalStep)
        for status in (StepStatus.COMPLETED, StepStatus.SKIPPED, StepStatus.CANCELLED)
    },
    **{
        f"{kind.__name__} {status}": lambda w, k=kind, s=status: any(
            isinstance(Lineage.of(w.definition).step(key), k) and one.status is s
            for key, one in w.run.step_results.items()
        )
        for kind in (DataStep, SwitchStep)
        for status in (StepStatus.COMPLETED, StepStatus.SKIPPED, StepStatus.FAILED)
    },
    "a switch with an else that holds": lambda w: any(
        isinstance(step, SwitchStep) and one.case == len(step.cases)
        for key, one in w.run.step_results.items()
        for step in [Lineage.of(w.definition).step(key)]
    ),
    **{
        f"{kind.__name__} fails": lambda w, k=kind: any(
            isinstance(Lineage.of(w.definition).step(key), k) and one.status is StepStatus.FAILED
            for key, one in w.run.step_results.items()
        )
        for kind in (ParallelStep, LoopStep, ChildStep, CodeStep, ApprovalStep)
    },
    "runs out of time as a container": lambda w: any(
        (one.error or "").startswith("ran into its timeout of 0.7 s")
        and isinstance(Lineage.of(w.definition).step(key), ParallelStep | LoopStep)
        for key, one in w.run.step_results.items()
    ),
    "goes on behind a failed container": lambda w: (
        w.run.status is S.COMPLETED
        and any(
            isinstance(Lineage.of(w.definition).step(key), ParallelStep | LoopStep)
            and one.status is StepStatus.FAILED
            for key, one in w.run.step_results.items()
        )
    ),
    "approves while something runs": lambda w: any(
        stage.did == "approve" and stage.before.status is S.RUNNING and stage.before.in_flight
        for stage in w.stages
    ),
    "approves what is interrupted": lambda w: any(
        stage.did == "approve" and stage.before.status is S.INTERRUPTED for stage in w.stages
    ),
    "asks two at once": lambda w: any(
        sum(one.status is StepStatus.AWAITING_APPROVAL for one in stage.after.step_results.values())
        > 1
        for stage in w.stages
    ),
    "looks again in time": lambda w: any(stage.did == "look" for stage in w.stages),
    "wakes an approval that is due": lambda w: any(
        stage.did == "claim" and stage.before.status is S.AWAITING_APPROVAL for stage in w.stages
    ),
    "tries a child again": lambda w: any(
        one.child_id and one.attempts > 1 for _, one in results_of(w)
    ),
    "has a loop in a loop": lambda w: any(
        key.count(".") == 4 for key, _ in w.run.step_results.items()
    ),
    "rests for a child alone": lambda w: any(
        stage.after.status is S.RUNNING and not stage.after.worker and not stage.after.due_at
        for stage in w.stages
    ),
    "delays beside a process": lambda w: any(
        stage.after.in_flight
        and any(one.awaits is Awaits.TIME for one in stage.after.step_results.values())
        for stage in w.stages
    ),
}
