"""
What one execution may hold, and how much of it one turn decides. FL-9, FL-14, EX-33.

Steps that start no process cost nothing but what the service itself spends on them, so nothing
outside slows them down: a loop of `data` steps would be decided from its first round to its last in
one unit of work, while everybody else waits, and a loop around one large value would hold the value
a thousand times. So there are three bounds: on the number of step results, on the sum of what they
hold, and on what a worker decides before it gives the execution back.

The sum is kept with the execution and grows with each fact (`fold_steps.size_after`): adding up
ten thousand results again for each of them would cost more than the steps.
"""

from collections.abc import Mapping

from attrs import define

from wfcore.model.execution import Execution, StepResult
from wfcore.model.workflow import (
    ApprovalStep,
    ChildStep,
    Definition,
    Step,
    lists_of,
    needs_worker,
)
from wfcore.rules.execution.fold_steps import held_by
from wfcore.rules.execution.scope import name_of
from wfcore.rules.limits import MAX_OUTPUTS, MAX_STEP_RESULTS, MAX_STEPS, OUTPUTS_AT_ONCE


def too_many(run: Execution, key: str) -> str | None:
    """Why *key* may have no result, if it has none yet. FL-9."""
    count = len(run.step_results) + len(run.put_aside)
    most = MAX_STEP_RESULTS + (MAX_STEPS if run.failing else 0)
    if count < most or key in run.step_results:
        return None
    return f"the execution has {MAX_STEP_RESULTS} step results; it may not have more"


def too_large(run: Execution, more: int = 0) -> str | None:
    """
    Why the execution may not hold outputs of *more* characters; None: it may. For its `onFailure`
    steps there is as much room again, so that they can still tell of it. FL-14.
    """
    size = run.outputs_size + more
    if size <= _most(run):
        return None
    return (
        f"the outputs of the execution's steps have {size} characters in sum; "
        f"they may have {MAX_OUTPUTS}"
    )


def no_room(run: Execution, step: Step) -> str | None:
    """Why *step* does not begin: it has effects, and whatever it gave could not be kept. FL-14."""
    acts = needs_worker(step) or isinstance(step, ApprovalStep | ChildStep)
    if not acts or run.outputs_size < _most(run):
        return None
    return (
        f"the outputs of the execution's steps have {run.outputs_size} characters in sum already; "
        f"they may have {MAX_OUTPUTS}"
    )


def held(definition: Definition, results: Mapping[str, StepResult]) -> int:
    """
    What *results* hold in sum. The output of a container repeats what its steps gave, and does not
    count again. FL-14.
    """
    containers = {step.name for step in definition.walk() if any(True for _ in lists_of(step))}
    return sum(
        held_by(one, 0 if name_of(key.rpartition("/")[2]) in containers else None)
        for key, one in results.items()
    )


def _most(run: Execution) -> int:
    return MAX_OUTPUTS * (2 if run.failing else 1)


def last_to_end(run: Execution) -> str:
    """The step that ended last."""
    ended = ((one.completed_at or 0, key) for key, one in run.step_results.items())
    return max(enumerate(ended), key=lambda one: (one[1][0], one[0]))[1][1]


@define
class Turn:
    """
    What has been decided since a worker took the execution up, beyond the facts that it brought.

    Over after `most` facts, or once the outputs have grown by `OUTPUTS_AT_ONCE`. EX-33.
    """

    most: int
    began_with: int
    facts: int = 0

    def is_over(self, run: Execution) -> bool:
        """Whether *run*, as far as it has come, is given back now."""
        return self.facts >= self.most or run.outputs_size - self.began_with > OUTPUTS_AT_ONCE
