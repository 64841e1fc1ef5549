"""A definition as a picture: SVG, Mermaid, or an indented text; everything is escaped. DF-13."""

from collections.abc import Iterator, Sequence
from html import escape
from itertools import count

from attrs import define, field

from wfcore.model.workflow import Definition, LoopStep, ParallelStep, Step, SwitchStep
from wfcore.rules.definition.flow import PAD, Box, Edge, Flow, branches_of, kind_of, lay_out

ON_FAILURE = "onFailure"
_LONGEST = 21
"""Characters of a name that fit into a box."""


def svg(definition: Definition) -> str:
    """A whole SVG document, on a ground of its own: legible on light and dark pages."""
    flow = lay_out(definition.steps, definition.on_failure)
    size = f'width="{flow.width:g}" height="{flow.height:g}"'
    view = f'viewBox="0 0 {flow.width:g} {flow.height:g}"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} {view} role="img" '
        'font-family="system-ui, sans-serif" font-size="13">',
        f"<title>{escape(definition.name)}</title>",
        '<rect width="100%" height="100%" rx="8" fill="#fff"/>',
        *_shapes(flow),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _shapes(flow: Flow) -> Iterator[str]:
    for box in sorted(flow.boxes, key=lambda one: (not one.frame, len(one.inside))):
        yield _box(box)
    for edge in flow.edges:
        yield f'<path d="{path(edge)}" fill="none" stroke="#767f8b" stroke-width="1.5"/>'
    for label in flow.labels:
        yield _text(label.x, label.y + 16, label.name, "middle", "#545c66")


def path(edge: Edge) -> str:
    """The path of a line: straight down, or with a bend to another column."""
    if edge.x1 == edge.x2:
        return f"M{edge.x1:g} {edge.y1:g}V{edge.y2:g}"
    y = (edge.y1 + edge.y2) / 2 if edge.to else max(edge.y1, edge.y2 - 13)
    return f"M{edge.x1:g} {edge.y1:g}V{y:g}L{edge.x2:g} {y:g}V{edge.y2:g}"


def _box(box: Box) -> str:
    place = f'x="{box.x:g}" y="{box.y:g}" width="{box.width:g}" height="{box.height:g}" rx="8"'
    if box.frame:
        name = _text(box.x + PAD, box.y + 18, f"{_short(box.name)}: each", "start", "#545c66")
        return f'<rect {place} fill="none" stroke="#767f8b" stroke-dasharray="5 4"/>{name}'
    name = _text(box.x + PAD, box.y + 20, _short(box.name), "start", "#1a1d21")
    kind = _text(box.x + PAD, box.y + 36, box.kind, "start", "#545c66", 11)
    return f'<rect {place} fill="none" stroke="#767f8b"/>{name}{kind}'


def _text(x: float, y: float, text: str, anchor: str, colour: str, size: int = 13) -> str:
    place = f'x="{x:g}" y="{y:g}" text-anchor="{anchor}" fill="{colour}" font-size="{size}"'
    return f"<text {place}>{escape(text)}</text>"


def _short(name: str) -> str:
    return name if len(name) <= _LONGEST else f"{name[: _LONGEST - 1]}…"


def text(definition: Definition) -> Iterator[str]:
    """One line per step, with nested steps indented below it."""
    yield from _lines(definition.steps)
    if definition.on_failure:
        yield f"{ON_FAILURE}:"
        yield from _lines(definition.on_failure, "  ")


def _lines(steps: Sequence[Step], indent: str = "") -> Iterator[str]:
    for step in steps:
        yield f"{indent}{step.name}  {kind_of(step)}"
        if isinstance(step, LoopStep):
            yield from _lines(step.steps, f"{indent}  ")
        elif isinstance(step, ParallelStep):
            for branch in step.branches:
                yield f"{indent}  {branch.name}:"
                yield from _lines(branch.steps, f"{indent}    ")
        elif isinstance(step, SwitchStep):
            whens = (*(case.when for case in step.cases), "else")
            for when, steps in zip(whens, branches_of(step), strict=True):
                if steps:
                    yield f"{indent}  {when}:"
                    yield from _lines(steps, f"{indent}    ")


def mermaid(definition: Definition) -> str:
    """A Mermaid flowchart, as code hosts draw it."""
    chart = _Chart()
    chart.sequence(definition.steps, "  ")
    if definition.on_failure:
        chart.lines.append(f"  subgraph {ON_FAILURE}")
        chart.sequence(definition.on_failure, "    ")
        chart.lines.append("  end")
    return "\n".join(("flowchart TD", *chart.lines)) + "\n"


@define
class _Chart:
    """The lines of a flowchart; each sequence returns where it begins and ends."""

    lines: list[str] = field(factory=list)
    _numbers: "count[int]" = field(factory=count)

    def sequence(self, steps: Sequence[Step], indent: str) -> tuple[list[str], list[str]]:
        first: list[str] = []
        before: list[str] = []
        for step in steps:
            begins, ends = self._step(step, indent)
            self.lines += [f"{indent}{one} --> {other}" for one in before for other in begins]
            first, before = first or begins, ends
        return first, before

    def _step(self, step: Step, indent: str) -> tuple[list[str], list[str]]:
        if isinstance(step, LoopStep):
            self.lines.append(f"{indent}subgraph {self._id()}[{_quoted(step.name)}]")
            found = self.sequence(step.steps, f"{indent}  ")
            self.lines.append(f"{indent}end")
            return found
        if isinstance(step, SwitchStep):
            id = self._id()
            self.lines.append(f"{indent}{id}{{{_quoted(step.name)}}}")
            ends: list[str] = []
            for branch in branches_of(step):
                begins, last = self.sequence(branch, indent)
                self.lines += [f"{indent}{id} --> {one}" for one in begins]
                ends += last if branch else [id]
            return [id], ends
        if isinstance(step, ParallelStep):
            found_all = [self.sequence(branch.steps, indent) for branch in step.branches]
            return [b for bs, _ in found_all for b in bs], [e for _, es in found_all for e in es]
        id = self._id()
        self.lines.append(f"{indent}{id}[{_quoted(step.name, f'<br>{kind_of(step)}')}]")
        return [id], [id]

    def _id(self) -> str:
        return f"n{next(self._numbers)}"


def _quoted(name: str, more: str = "") -> str:
    """A quoted label. Mermaid writes entities with `#` and has none for the single quote."""
    entities = escape(name).replace("&#x27;", "'").replace("&", "#")
    return f'"{entities}{more}"'
