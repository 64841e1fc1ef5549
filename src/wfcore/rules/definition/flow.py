"""
The positions of a definition's steps in a picture. DF-13.

A definition is a tree, so no layout is searched for: steps stand below each other, branches beside
each other, the steps of a loop in a frame around them. A part is as large as its contents, and
centred in its room. Lengths are pixels; x grows to the right, y down.

A picture with many branches runs from left to right instead: it is laid out in the same way with
other lengths, and then turned.
"""

from collections.abc import Sequence

from attrs import define, evolve, field, frozen

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
MARGIN = 12.0
PAD = 14.0
MOST_BESIDE = 4
"""The most steps beside each other in a picture that runs down."""


@frozen
class Lengths:
    """
    The lengths of a picture: `along` and `across` the way of the steps, those of a box; `gap`
    between steps after each other, `beside` between branches; `fork` and `title`, the room for the
    name of a fork and of a frame; `pad` within a frame.
    """

    along: float
    across: float
    gap: float
    beside: float
    fork: float
    title: float
    pad: float


DOWN = Lengths(BOX_HEIGHT, BOX_WIDTH, gap=26, beside=26, fork=28, title=28, pad=PAD)
ACROSS = Lengths(172, 40, gap=30, beside=8, fork=84, title=0, pad=20)


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
    """
    A picture of `width` × `height`, with all its parts. `across`: whether the steps run from left
    to right.
    """

    width: float
    height: float
    boxes: tuple[Box, ...]
    edges: tuple[Edge, ...]
    labels: tuple[Label, ...]
    across: bool = False


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
    width, height, drawing = _drawn(steps, on_failure, DOWN)
    parts = tuple(drawing.boxes), tuple(drawing.edges), tuple(drawing.labels)
    return Flow(width, height, *parts)


def lay_out_for_page(steps: Sequence[Step], on_failure: Sequence[Step] = ()) -> Flow:
    """
    The picture of *steps* for a page: from left to right if more than `MOST_BESIDE` steps would
    stand beside each other.
    """
    flow = lay_out(steps, on_failure)
    most = MOST_BESIDE * BOX_WIDTH + (MOST_BESIDE - 1) * DOWN.beside + 2 * MARGIN
    if flow.width <= most:
        return flow
    height, width, drawing = _drawn(steps, on_failure, ACROSS)
    return Flow(
        width,
        height,
        tuple(evolve(one, x=one.y, y=one.x, width=one.height, height=one.width)
              for one in drawing.boxes),
        tuple(Edge(one.y1, one.x1, one.y2, one.x2, one.to) for one in drawing.edges),
        tuple(Label(one.name, one.y, one.x) for one in drawing.labels),
        across=True,
    )  # fmt: skip


def _drawn(
    steps: Sequence[Step], on_failure: Sequence[Step], lengths: Lengths
) -> tuple[float, float, "_Drawing"]:
    """The size of a picture that runs down, and its parts."""
    drawing = _Drawing(lengths)
    width = max(drawing.size_of_all(part)[0] for part in (steps, on_failure))
    x = MARGIN + width / 2
    y = drawing.sequence(steps, x, MARGIN, ())
    if on_failure:
        drawing.labels.append(Label("onFailure", x, y + lengths.gap))
        y = drawing.sequence(on_failure, x, y + lengths.gap + lengths.fork, ())
    return width + 2 * MARGIN, y + MARGIN, drawing


@define
class _Drawing:
    lengths: Lengths
    boxes: list[Box] = field(factory=list)
    edges: list[Edge] = field(factory=list)
    labels: list[Label] = field(factory=list)

    def size_of_all(self, steps: Sequence[Step]) -> tuple[float, float]:
        """The size of *steps* after each other: across their way, and along it."""
        sizes = [self._size(step) for step in steps]
        across = max((across for across, _ in sizes), default=self.lengths.across)
        along = sum(along for _, along in sizes)
        return across, along + self.lengths.gap * max(0, len(sizes) - 1)

    def _size(self, step: Step) -> tuple[float, float]:
        size = self.lengths
        if isinstance(step, LoopStep):
            across, along = self.size_of_all(step.steps)
            return across + 2 * size.pad, along + size.title + 2 * size.pad
        if isinstance(step, ParallelStep | SwitchStep):
            sizes = self._branch_sizes(step)
            across = sum(across for across, _ in sizes) + size.beside * (len(sizes) - 1)
            along = max(along for _, along in sizes)
            return max(across, size.across), size.fork + along + 2 * size.gap
        return size.across, size.along

    def _branch_sizes(self, step: ParallelStep | SwitchStep) -> list[tuple[float, float]]:
        return [self.size_of_all(one) if one else (0.0, 0.0) for one in branches_of(step)]

    def sequence(self, steps: Sequence[Step], x: float, y: float, inside: tuple[str, ...]) -> float:
        """Draw steps below each other, centred at *x* from *y* on. Returns the y of their end."""
        gap = self.lengths.gap
        for number, step in enumerate(steps):
            if number:
                self.edges.append(Edge(x, y, x, y + gap, step.name))
                y += gap
            y = self._step(step, x, y, inside)
        return y

    def _step(self, step: Step, x: float, y: float, inside: tuple[str, ...]) -> float:
        width, height = self._size(step)
        if isinstance(step, ParallelStep | SwitchStep):
            self._fork(step, x, y, (*inside, step.name))
            return y + height
        is_loop = isinstance(step, LoopStep)
        left = x - width / 2
        self.boxes.append(Box(step.name, kind_of(step), left, y, width, height, is_loop, inside))
        if isinstance(step, LoopStep):
            top = y + self.lengths.title + self.lengths.pad
            self.sequence(step.steps, x, top, (*inside, step.name))
        return y + height

    def _fork(
        self, step: ParallelStep | SwitchStep, x: float, y: float, inside: tuple[str, ...]
    ) -> None:
        self.labels.append(Label(step.name, x, y))
        sizes, size = self._branch_sizes(step), self.lengths
        left = x - (sum(width for width, _ in sizes) + size.beside * (len(sizes) - 1)) / 2
        top = y + size.fork
        bottom = top + max(height for _, height in sizes) + 2 * size.gap
        for branch, (width, _) in zip(branches_of(step), sizes, strict=True):
            middle, first = left + width / 2, top + size.gap
            self.edges.append(Edge(x, top, middle, first, branch[0].name if branch else None))
            end = self.sequence(branch, middle, first, inside)
            self.edges.append(Edge(middle, end, x, bottom))
            left += width + size.beside
