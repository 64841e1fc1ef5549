"""
The positions of a definition's steps in a picture. DF-13.

A definition is a tree, so no layout is searched for: steps stand below each other, branches beside
each other, the steps of a loop in a frame around them. A part is as large as its contents, and
centred in its room. Lengths are pixels; x grows to the right, y down.
"""

from collections.abc import Sequence

from attrs import define, field, frozen

from wfcore.model.workflow import (
    AiStep,
    ApprovalStep,
    ChildStep,
    CodeStep,
    DataStep,
    DelayStep,
    LoopStep,
    MailStep,
    ParallelStep,
    Step,
    SwitchStep,
)

BOX_WIDTH, BOX_HEIGHT = 176.0, 46.0
GAP = 26.0
"""The distance between steps below each other, and between branches beside each other."""
MARGIN = 12.0
HEAD = 28.0
"""Room for the title of a frame, and of a fork."""
PAD = 14.0


@frozen
class Box:
    """
    A step; with `frame`, the frame around the steps of a loop. `inside`: the names of the steps
    around it, the outermost first.
    """

    name: str
    kind: str
    x: float
    y: float
    width: float
    height: float
    frame: bool = False
    inside: tuple[str, ...] = ()


@frozen
class Edge:
    """A line down to another point. `to`: the step at its end; None: a point where paths join."""

    x1: float
    y1: float
    x2: float
    y2: float
    to: str | None = None


@frozen
class Label:
    """The name of a parallel step or switch, above the fork; `onFailure`, above its steps."""

    name: str
    x: float
    y: float


@frozen
class Flow:
    """A picture of `width` × `height`, with all its parts."""

    width: float
    height: float
    boxes: tuple[Box, ...]
    edges: tuple[Edge, ...]
    labels: tuple[Label, ...]


def kind_of(step: Step) -> str:
    """The kind of a step in a word: for a code step its language."""
    match step:
        case CodeStep():
            return step.language.value
        case AiStep():
            return "ai"
        case ApprovalStep():
            return "approval"
        case DelayStep():
            return "delay"
        case MailStep():
            return "mail"
        case ChildStep():
            return "workflow"
        case ParallelStep():
            return "parallel"
        case LoopStep():
            return "loop"
        case DataStep():
            return "data"
        case SwitchStep():
            return "switch"


def branches_of(step: ParallelStep | SwitchStep) -> tuple[tuple[Step, ...], ...]:
    """
    The branches that stand side by side. A switch without `else` has an empty branch in its place.
    """
    if isinstance(step, SwitchStep):
        return step.lists
    return tuple(branch.steps for branch in step.branches)


def lay_out(steps: Sequence[Step], on_failure: Sequence[Step] = ()) -> Flow:
    """The picture of *steps*, with the `onFailure` steps below. DF-13."""
    parts = (_size_of_all(steps), _size_of_all(on_failure))
    width = max(width for width, _ in parts)
    drawing, x = _Drawing(), MARGIN + width / 2
    y = drawing.sequence(steps, x, MARGIN, ())
    if on_failure:
        drawing.labels.append(Label("onFailure", x, y + GAP))
        y = drawing.sequence(on_failure, x, y + GAP + HEAD, ())
    return Flow(
        width + 2 * MARGIN,
        y + MARGIN,
        tuple(drawing.boxes),
        tuple(drawing.edges),
        tuple(drawing.labels),
    )


def _size_of_all(steps: Sequence[Step]) -> tuple[float, float]:
    sizes = [_size(step) for step in steps]
    width = max((width for width, _ in sizes), default=BOX_WIDTH)
    return width, sum(height for _, height in sizes) + GAP * max(0, len(sizes) - 1)


def _size(step: Step) -> tuple[float, float]:
    if isinstance(step, LoopStep):
        width, height = _size_of_all(step.steps)
        return width + 2 * PAD, height + HEAD + 2 * PAD
    if isinstance(step, ParallelStep | SwitchStep):
        sizes = [_size_of_all(branch) if branch else (0.0, 0.0) for branch in branches_of(step)]
        width = sum(width for width, _ in sizes) + GAP * (len(sizes) - 1)
        return max(width, BOX_WIDTH), HEAD + max(height for _, height in sizes) + 2 * GAP
    return BOX_WIDTH, BOX_HEIGHT


@define
class _Drawing:
    boxes: list[Box] = field(factory=list)
    edges: list[Edge] = field(factory=list)
    labels: list[Label] = field(factory=list)

    def sequence(self, steps: Sequence[Step], x: float, y: float, inside: tuple[str, ...]) -> float:
        """Draw steps below each other, centred at *x* from *y* on. Returns the y of their end."""
        for number, step in enumerate(steps):
            if number:
                self.edges.append(Edge(x, y, x, y + GAP, step.name))
                y += GAP
            y = self._step(step, x, y, inside)
        return y

    def _step(self, step: Step, x: float, y: float, inside: tuple[str, ...]) -> float:
        width, height = _size(step)
        if isinstance(step, ParallelStep | SwitchStep):
            self._fork(step, x, y, (*inside, step.name))
            return y + height
        is_loop = isinstance(step, LoopStep)
        left = x - width / 2
        self.boxes.append(Box(step.name, kind_of(step), left, y, width, height, is_loop, inside))
        if isinstance(step, LoopStep):
            self.sequence(step.steps, x, y + HEAD + PAD, (*inside, step.name))
        return y + height

    def _fork(
        self, step: ParallelStep | SwitchStep, x: float, y: float, inside: tuple[str, ...]
    ) -> None:
        self.labels.append(Label(step.name, x, y))
        sizes = [_size_of_all(branch) if branch else (0.0, 0.0) for branch in branches_of(step)]
        left = x - (sum(width for width, _ in sizes) + GAP * (len(sizes) - 1)) / 2
        top = y + HEAD
        bottom = top + max(height for _, height in sizes) + 2 * GAP
        for branch, (width, _) in zip(branches_of(step), sizes, strict=True):
            middle = left + width / 2
            self.edges.append(Edge(x, top, middle, top + GAP, branch[0].name if branch else None))
            end = self.sequence(branch, middle, top + GAP, inside)
            self.edges.append(Edge(middle, end, x, bottom))
            left += width + GAP
