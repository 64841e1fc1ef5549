"""Pictures of a flow: of a definition alone, or of an execution with the results of its steps."""

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property

from attrs import frozen

from adapters_http.console.formats import took
from wfcore.model.execution import StepStatus
from wfcore.model.workflow import Definition, Step
from wfcore.rules.definition.flow import Box, Edge, Flow, kind_of, lay_out_for_page
from wfcore.rules.explain.progress import ProgressRow, rows
from wfcore.rules.explain.timeline import Axis, axis, earlier_attempts, ticks
from wfcore.usecases.executions.browsing import ExecutionDetail

KINDS = {
    "ai": "ai",
    "approval": "approval",
    "data": "data",
    "delay": "delay",
    "mail": "mail",
    "parallel": "parallel",
    "loop": "loop",
    "switch": "switch",
    "workflow": "child",
}
"""The icons of steps by their kind; a code step, whose kind is its language, has `code`."""


def path_of(edge: Edge, across: bool) -> str:
    """The path of *edge*: straight, or curved where it leaves a fork or joins one."""
    if across:
        turned = Edge(edge.y1, edge.x1, edge.y2, edge.x2, edge.to)
        return _path(turned, lambda x, y: f"{y:g} {x:g}")
    return _path(edge, lambda x, y: f"{x:g} {y:g}")


def _path(edge: Edge, at: Callable[[float, float], str]) -> str:
    begin, end = at(edge.x1, edge.y1), at(edge.x2, edge.y2)
    if edge.x1 == edge.x2:
        return f"M{begin}L{end}"
    if edge.to:
        middle = (edge.y1 + edge.y2) / 2
        return f"M{begin}C{at(edge.x1, middle)} {at(edge.x2, middle)} {end}"
    turn = max(edge.y2 - _JOIN, edge.y1)
    return f"M{begin}L{at(edge.x1, turn)}C{at(edge.x1, edge.y2)} {at(edge.x2, turn)} {end}"


_JOIN = 26


def _end(box: Box, across: bool) -> tuple[float, float]:
    """The point at which the line to the next step leaves *box*."""
    if across:
        return box.x + box.width, box.y + box.height / 2
    return box.x + box.width / 2, box.y + box.height


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
    plain: bool = True

    @property
    def by_name(self) -> Mapping[str, PlainRow]:
        """The rows by the names of their steps."""
        return {row.step.name: row for row in self.rows}

    def went(self, edge: Edge) -> bool:
        """Whether an execution has taken *edge*; always False."""
        return False


def plain_picture(definition: Definition) -> PlainPicture:
    """The picture of *definition*."""
    flow = lay_out_for_page(definition.steps, definition.on_failure)
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
    plain: bool = False

    @cached_property
    def by_name(self) -> Mapping[str, ProgressRow]:
        """The rows by the names of their steps."""
        return {row.step.name: row for row in self.rows}

    @property
    def ticks(self) -> Sequence[tuple[float, str]]:
        """The marks of the axis, each with the time since the beginning: `0`, `+1 min 30 s`."""
        return [
            (place, f"+{took(length)}" if length else "0") for place, length in ticks(self.axis)
        ]

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
            if _end(box, self.flow.across) == (edge.x1, edge.y1)
        )  # fmt: skip
        return any(rows[box.name].status in _PASSED for box in above)


def picture_of(whole: ExecutionDetail) -> Picture | None:
    run, definition, at = whole.run, whole.definition, whole.explained.at
    if definition is None:
        return None
    time = axis(run, definition, at)
    flow = lay_out_for_page(definition.steps, definition.on_failure)
    seen = rows(run, definition, time, at, earlier_attempts(whole.retried))
    return Picture(flow, seen, time, first_handler(definition))
