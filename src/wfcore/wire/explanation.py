"""The shape of an explanation on the wire, and how it comes about."""

from collections.abc import Iterable, Sequence

from attrs import define

from wfcore.model.execution import Execution, ExecutionStatus
from wfcore.model.explanation import Line, Why


@define(eq=False)
class LineView:
    """One line of an explanation; `until`: when it changes by itself."""

    code: Why
    text: str
    until: int | None
    step_name: str | None
    approval_id: str | None
    execution_id: str | None


@define(eq=False)
class ExplanationView:
    """Why an execution is where it is, and what happens next; the nearest cause first."""

    execution_id: str
    status: ExecutionStatus
    at: int
    lines: Sequence[LineView]


def explanation_view(run: Execution, at: int, lines: Iterable[Line]) -> ExplanationView:
    """The state of *run* with the lines that explain it."""
    return ExplanationView(run.id, run.status, at, [_line(one) for one in lines])


def _line(one: Line) -> LineView:
    return LineView(one.code, one.text, one.until, one.step_name, one.approval_id, one.execution_id)
