"""
A picture as data, and its SVG.

A layout places boxes, labels and lines; `render` writes them down. Nothing is measured in a
browser: text is at most as wide as `width` says in every common font, so what fits here fits on
the page. The same bytes go into the built pages (inline, where they follow the theme switch) and
into files (where they follow the reader's system), so colours are CSS variables of the picture.

Units are pixels of a phone: no picture is wider than `WIDEST`, and nothing is smaller than 12 px.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape

from attrs import frozen

WIDEST = 440
LINE_H = 15

LIGHT: Mapping[str, str] = {
    "ink": "#1f2328",
    "soft": "#57606a",
    "box": "#f6f8fa",
    "edge": "#7a828b",
    "blue": "#0a56b5",
    "green": "#116b2c",
    "red": "#b01c2e",
    "amber": "#855200",
    "violet": "#6639ba",
}
DARK: Mapping[str, str] = {
    "ink": "#e6edf3",
    "soft": "#a5afba",
    "box": "#1e242c",
    "edge": "#7d8691",
    "blue": "#6cb6ff",
    "green": "#6bc46d",
    "red": "#ff8a80",
    "amber": "#e0b04a",
    "violet": "#bd9bf5",
}
"""The colours of each tone on a white and on a black page; tests check the contrast."""

_OF_STATES = {
    "COMPLETED": "green",
    "APPROVED": "green",
    "DONE": "green",
    "FAILED": "red",
    "REJECTED": "red",
    "INTERRUPTED": "amber",
    "DISABLED": "amber",
    "CHILD_FAILED": "amber",
    "WAITING_FOR_RETRY": "amber",
    "AWAITING_APPROVAL": "violet",
    "DELAYED": "violet",
    "WAITING_FOR_CHILD": "violet",
    "WAITING_FOR_STEPS": "violet",
    "CANCELLED": "soft",
    "SKIPPED": "soft",
}

TONES = tuple(name for name in LIGHT if name not in ("ink", "box"))

FONTS: Mapping[str, tuple[int, bool]] = {
    "text": (13, False),
    "small": (12, False),
    "code": (12, True),
    "name": (13, True),
}
"""The size in pixels of each kind of text, and whether its letters are equally wide."""

_NARROW, _SLIM, _WIDE = "ijlI|.,:;'! ", 'ftr()[]{}/-"`·', "mwMW@%…—→↻✓"


@frozen
class Box:
    """A rectangle. A `double` edge marks an end; a `solid` one is filled with its tone."""

    x: float
    y: float
    w: float
    h: float
    tone: str = "edge"
    double: bool = False
    solid: bool = False


@frozen
class Label:
    """One line of text whose baseline begins at (x, y)."""

    x: float
    y: float
    text: str
    font: str = "text"
    tone: str = "ink"
    bold: bool = False

    @property
    def w(self) -> float:
        """The width of the label."""
        return width(self.text, self.font) * (1.08 if self.bold and self.font == "text" else 1)

    @property
    def extent(self) -> Box:
        """The rectangle of the label."""
        size = FONTS[self.font][0]
        return Box(self.x, self.y - 0.8 * size, self.w, size)


@frozen
class Line:
    """A path along right angles, with round corners; `arrow` puts a head at its end."""

    points: Sequence[tuple[float, float]]
    tone: str = "edge"
    arrow: bool = False
    thick: float = 1.5


@frozen
class Dot:
    """A filled circle."""

    x: float
    y: float
    r: float = 5
    tone: str = "ink"


Shape = Box | Label | Line | Dot


@frozen
class Picture:
    """Boxes, labels and lines, with a description in words."""

    name: str
    title: str
    about: str
    shapes: tuple[Shape, ...]

    @property
    def width(self) -> int:
        """The width, up to the right edge of all parts."""
        return round(max(x for shape in self.shapes for x, _ in _corners(shape)) + 8)

    @property
    def height(self) -> int:
        """The height, down to the lowest edge."""
        return round(max(y for shape in self.shapes for _, y in _corners(shape)) + 8)


def tone_of(state: str) -> str:
    """Green is well, red has failed, amber is in trouble, violet waits; blue goes on."""
    return _OF_STATES.get(state, "blue")


def width(text: str, font: str = "text") -> float:
    """The greatest width of *text* in common fonts, in pixels."""
    size, mono = FONTS[font]
    return size * (0.61 * len(text) if mono else sum(map(_em, text)))


def _em(letter: str) -> float:
    """The greatest width of a letter in common fonts (DejaVu Sans, Verdana)."""
    if letter in _NARROW:
        return 0.34
    if letter in _SLIM:
        return 0.43
    return 1.0 if letter in _WIDE else 0.79 if letter.isupper() else 0.645


def wrapped(text: str, room: float, font: str = "text") -> list[str]:
    """*text* in lines of at most *room* pixels. Raises `ValueError` for a word that is wider."""
    lines = [""]
    for word in text.split():
        longer = f"{lines[-1]} {word}".strip()
        if width(word, font) > room:
            raise ValueError(f"{word!r} is wider than {room}")
        lines[-1:] = [longer] if width(longer, font) <= room else [lines[-1], word]
    return lines


def stacked(
    lines: Iterable[str], x: float, y: float, font: str = "text", tone: str = "ink"
) -> list[Label]:
    """A label for each line, the first one's baseline at *y*."""
    return [Label(x, y + at * LINE_H, line, font, tone) for at, line in enumerate(lines)]


def render(picture: Picture) -> str:
    """The picture as SVG."""
    w, h, name = picture.width, picture.height, picture.name
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" class="wf-picture" role="img" '
            f'aria-labelledby="{name}-title {name}-about" '
            f'viewBox="0 0 {w} {h}" width="{w}" height="{h}">',
            f'<title id="{name}-title">{escape(picture.title)}</title>',
            f'<desc id="{name}-about">{escape(picture.about)}</desc>',
            f"<style>{_STYLE}</style>",
            *(line for shape in picture.shapes for line in _drawn(shape)),
            "</svg>\n",
        ]
    )


def _drawn(shape: Shape) -> Iterator[str]:
    match shape:
        case Box():
            yield from _box(shape)
        case Label(x, y, text, font, tone, bold):
            kinds = f"{font} t-{tone}{' b' if bold else ''}"
            yield f'<text x="{x:g}" y="{y:g}" class="{kinds}">{escape(text)}</text>'
        case Line():
            yield f'<path d="{_path(shape.points)}" class="s-{shape.tone}" {_thick(shape)}/>'
            if shape.arrow:
                yield f'<path d="{_head(shape)}" class="t-{shape.tone}"/>'
        case Dot(x, y, r, tone):
            yield f'<circle cx="{x:g}" cy="{y:g}" r="{r:g}" class="t-{tone}"/>'


def _box(box: Box) -> Iterator[str]:
    ground = f"t-{box.tone}" if box.solid else "ground"
    for inset in (0, 3) if box.double else (0,):
        x, y, w, h = box.x + inset, box.y + inset, box.w - 2 * inset, box.h - 2 * inset
        yield (
            f'<rect x="{x:g}" y="{y:g}" width="{w:g}" height="{h:g}" rx="{6 - inset}" '
            f'class="{ground} s-{box.tone}"/>'
        )


def _thick(line: Line) -> str:
    return f'stroke-width="{line.thick:g}" fill="none"'


def _path(points: Sequence[tuple[float, float]], radius: float = 6) -> str:
    """Straight lines whose corners are round."""
    (x, y), *rest = points
    parts = [f"M{x:g} {y:g}"]
    for (ax, ay), (bx, by), (cx, cy) in zip(points, points[1:], points[2:], strict=False):
        r = min(radius, abs(ax - bx) + abs(ay - by), abs(bx - cx) + abs(by - cy))
        (fx, fy), (tx, ty) = _toward(bx, by, ax, ay, r), _toward(bx, by, cx, cy, r)
        parts.append(f"L{fx:g} {fy:g}Q{bx:g} {by:g} {tx:g} {ty:g}")
    return "".join([*parts, f"L{rest[-1][0]:g} {rest[-1][1]:g}"])


def _toward(x: float, y: float, to_x: float, to_y: float, by: float) -> tuple[float, float]:
    length = max(abs(to_x - x), abs(to_y - y)) or 1
    return x + (to_x - x) / length * by, y + (to_y - y) / length * by


def _head(line: Line) -> str:
    """A triangle at the end of a line."""
    (ax, ay), (x, y) = line.points[-2:]
    (bx, by), size = _toward(x, y, ax, ay, 8), 4
    across = (0, size) if ay == y else (size, 0)
    sides = ((bx + across[0], by + across[1]), (bx - across[0], by - across[1]))
    return f"M{x:g} {y:g}" + "".join(f"L{sx:g} {sy:g}" for sx, sy in sides) + "Z"


def _corners(shape: Shape) -> Iterable[tuple[float, float]]:
    match shape:
        case Box(x, y, w, h):
            return ((x, y), (x + w, y + h))
        case Label():
            return _corners(shape.extent)
        case Dot(x, y, r):
            return ((x - r, y - r), (x + r, y + r))
        case _:
            return shape.points


def _variables(tones: Mapping[str, str]) -> str:
    return "".join(f"--wf-{name}:{colour};" for name, colour in tones.items())


def _style() -> str:
    """Colours by the reader's system; the theme switch of the built pages overrules it."""
    fonts = "".join(
        f".wf-picture .{name}{{font-size:{size}px;font-family:{_MONO if mono else _SANS}}}"
        for name, (size, mono) in FONTS.items()
    )
    tones = "".join(
        f".wf-picture .{kind}-{one}{{{what}:var(--wf-{one})}}"
        for kind, what in (("t", "fill"), ("s", "stroke"))
        for one in ("ink", *TONES)
    )
    dark = _variables(DARK)
    return (
        f".wf-picture{{{_variables(LIGHT)}max-width:100%;height:auto}}"
        f"@media(prefers-color-scheme:dark){{.wf-picture{{{dark}}}}}"
        f"body[data-theme=light] .wf-picture{{{_variables(LIGHT)}}}"
        f"body[data-theme=dark] .wf-picture{{{dark}}}"
        f".wf-picture .ground{{fill:var(--wf-box)}}.wf-picture .b,.wf-picture .name"
        f"{{font-weight:600}}{fonts}{tones}"
    )


_SANS = "system-ui,-apple-system,'Segoe UI',Roboto,'DejaVu Sans',sans-serif"
_MONO = "ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace"
_STYLE = _style()
