"""What a key says of its step: what holds it, what comes before it. Read from the text alone."""

from collections.abc import Iterator, Mapping

from attrs import frozen

from wfcore.model.execution import Execution, StepResult, StepStatus
from wfcore.model.workflow import Definition, LoopStep, ParallelStep, Step, SwitchStep

ENDED_WELL = frozenset({StepStatus.COMPLETED, StepStatus.SKIPPED})
UNDER_WAY = frozenset({StepStatus.RUNNING, StepStatus.AWAITING_APPROVAL})


@frozen
class Origin:
    """Where a step stands: what holds it, in which lane of that, behind which steps."""

    holder: Step | None
    lane: int
    before: tuple[Step, ...]


@frozen
class Lineage:
    """The places of all steps of a definition, by name."""

    steps: Mapping[str, Step]
    origins: Mapping[str, Origin]

    @classmethod
    def of(cls, definition: Definition) -> "Lineage":
        steps: dict[str, Step] = {}
        origins: dict[str, Origin] = {}

        def read(sequence: tuple[Step, ...], holder: Step | None, lane: int) -> None:
            for at, step in enumerate(sequence):
                steps[step.name] = step
                origins[step.name] = Origin(holder, lane, sequence[:at])
                if isinstance(step, ParallelStep):
                    for number, branch in enumerate(step.branches):
                        read(branch.steps, step, number)
                elif isinstance(step, SwitchStep):
                    for number, case in enumerate(step.cases):
                        read(case.steps, step, number)
                    read(step.otherwise, step, len(step.cases))
                elif isinstance(step, LoopStep):
                    read(step.steps, step, 0)

        read(definition.steps, None, 0)
        return cls(steps, origins)

    def step(self, key: str) -> Step:
        return self.steps[key.rpartition(".")[2]]

    def holder(self, key: str) -> str | None:
        """The key of what holds that step; None: nothing does."""
        prefix, _, name = key.rpartition(".")
        holder = self.origins[name].holder
        if holder is None:
            return None
        if isinstance(holder, LoopStep):
            return prefix.rpartition(".")[0]
        return f"{prefix}.{holder.name}" if prefix else holder.name

    def holders(self, key: str) -> Iterator[str]:
        """What holds it, and what holds that, from the inside outwards."""
        while (above := self.holder(key)) is not None:
            yield above
            key = above

    def before(self, key: str) -> tuple[str, ...]:
        """The keys of the steps before it in its sequence."""
        prefix, _, name = key.rpartition(".")
        dot = f"{prefix}." if prefix else ""
        return tuple(dot + step.name for step in self.origins[name].before)

    def lane(self, key: str) -> tuple[int, str]:
        """Which branch or round of its holder it is in."""
        return self.origins[key.rpartition(".")[2]].lane, key.rpartition(".")[0]

    def done_with(self, key: str, result: StepResult | None) -> bool:
        """Whether what comes behind that step may begin."""
        if result is None:
            return False
        tolerated = result.status is StepStatus.FAILED and self.step(key).continue_on_error
        return result.status in ENDED_WELL or tolerated

    def lanes_of(self, key: str, run: Execution) -> list[tuple[str, tuple[Step, ...]]]:
        """The sequences that a step holds: what their keys begin with, and their steps."""
        step, prefix = self.step(key), key.rpartition(".")[0]
        dot = f"{prefix}." if prefix else ""
        if isinstance(step, ParallelStep):
            return [(dot, branch.steps) for branch in step.branches]
        if isinstance(step, SwitchStep):
            chosen = [*(case.steps for case in step.cases), step.otherwise]
            steps = chosen[run.step_results[key].case or 0]
            return [(dot, steps)] if steps else []
        if isinstance(step, LoopStep):
            items = run.step_results[key].items
            output = run.step_results[key].output
            count = len(items if items is not None else output or ())
            return [(f"{key}.{index}.", step.steps) for index in range(count)]
        return []
