"""Pictures of a flow: of a definition alone, or of an execution with the results of its steps."""

from collections.abc import Mapping, Sequence
from functools import cached_property

from attrs import frozen

from wfcore.model.execution import StepStatus
from wfcore.model.workflow import Definition, Step
from wfcore.rules.definition.flow import Edge, Flow, kind_of, lay_out
from wfcore.rules.explain.progress import ProgressRow, rows
from wfcore.rules.explain.timeline import Axis, axis, earlier_attempts
from wfcore.usecases.executions.browsing import ExecutionDetail


def first_handler(definition: Definition) -> str | None:
    """The first step of `onFailure`, or None. DF-13."""
    return definition.on_failure[0].name if definition.on_failure else None


@frozen
class PlainRow:
    """A step in the picture of a definition; it looks like the row of a step that has not begun."""

    step: Step
    kind: str
    depth: int
    status: StepStatus | None = None
    loops: tuple[str, ...] = ()
    results: tuple[()] = ()
    took: None = None


@frozen
class PlainPicture:
    """The picture of a definition alone."""

    flow: Flow
    rows: Sequence[PlainRow]
    handler: str | None = None

    @property
    def by_name(self) -> Mapping[str, PlainRow]:
        """The rows by the names of their steps."""
        return {row.step.name: row for row in self.rows}

    def went(self, edge: Edge) -> bool:
        """Whether an execution has taken *edge*; always False."""
        return False


def plain_picture(definition: Definition) -> PlainPicture:
    """The picture of *definition*."""
    flow = lay_out(definition.steps, definition.on_failure)
    depths = {box.name: len(box.inside) for box in flow.boxes}
    rows = [PlainRow(one, kind_of(one), depths.get(one.name, 0)) for one in definition.walk()]
    return PlainPicture(flow, rows, first_handler(definition))


_PASSED = (StepStatus.COMPLETED, StepStatus.SKIPPED)


@frozen
class Picture:
    """
    The flow of an execution with the results of its steps, and the list beside the flow. `handler`:
    the first of the steps that run after a failure.
    """

    flow: Flow
    rows: Sequence[ProgressRow]
    axis: Axis
    handler: str | None

    @cached_property
    def by_name(self) -> Mapping[str, ProgressRow]:
        """The rows by the names of their steps."""
        return {row.step.name: row for row in self.rows}

    def went(self, edge: Edge) -> bool:
        """
        Whether the execution has taken *edge*: it began the step below the edge, or ended the step
        above.
        """
        rows = self.by_name
        if edge.to is not None:
            return rows[edge.to].status is not None
        above = (
            box for box in self.flow.boxes
            if (box.x + box.width / 2, box.y + box.height) == (edge.x1, edge.y1)
        )  # fmt: skip
        return any(rows[box.name].status in _PASSED for box in above)


def picture_of(whole: ExecutionDetail) -> Picture | None:
    run, definition, at = whole.run, whole.definition, whole.explained.at
    if definition is None:
        return None
    time = axis(run, definition, at)
    flow = lay_out(definition.steps, definition.on_failure)
    seen = rows(run, definition, time, at, earlier_attempts(whole.retried))
    return Picture(flow, seen, time, first_handler(definition))
