"""Pictures of the packages and their layers, and of the isolation of steps."""

import re
from collections.abc import Iterator, Mapping, Sequence
from configparser import ConfigParser

from wfdocs.pictures.svg import LINE_H, WIDEST, Box, Label, Line, Picture, Shape, width
from wfdocs.rules import ROOT

PACKAGES: Mapping[str, tuple[str, Sequence[str]]] = {
    "wfserver": ("violet", ("command line, settings;", "puts the parts together")),
    "wfcore_client": ("violet", ("a typed client", "of the HTTP API")),
    "adapters_http": ("blue", ("routes,", "pages,", "OpenAPI")),
    "adapters_store": ("green", ("SQLite,", "files,", "counters")),
    "adapters_runtime": ("amber", ("workers,", "sandbox,", "AI, timers")),
}
RINGS: Mapping[str, str] = {
    "testing": "contracts, fakes, simulator",
    "scenarios": "tests of definitions",
    "usecases": "one unit of work each",
    "memory": "a store in memory",
    "wire": "JSON shapes",
    "ports": "what adapters supply",
    "rules": "pure functions and tables",
    "effects": "what must follow",
    "model": "frozen records",
    "machine": "state machines as data",
    "errors": "one table of refusals",
    "time": "instants",
}
"""The description of each layer; a layer without a row here is a `KeyError` at build."""

_GAP, _ROW_H = 10.0, 26.0


def architecture() -> Picture:
    """The picture of the packages: imports go downwards only, never sideways."""
    outside, inside = contract("outside"), contract("inside")
    shapes: list[Shape] = []
    y = 1.0
    for layer in outside[:-1]:
        height = 32 + LINE_H * max(len(PACKAGES[name][1]) for name in layer)
        shapes += _packages(layer, y, height)
        y += height + 22
        shapes.append(Line(((WIDEST / 2, y - 21), (WIDEST / 2, y - 1)), "edge", arrow=True))
    (core,) = outside[-1]
    shapes += _core(core, inside, y)
    return Picture("architecture", "The packages and what they may import", _told(), tuple(shapes))


def contract(name: str) -> list[list[str]]:
    """The layers of a contract, from the outermost inwards; siblings share a line."""
    linter = ConfigParser()
    linter.read(ROOT / ".importlinter")
    text = linter[f"importlinter:contract:{name}"]["layers"]
    lines = (re.split(r"\s*\|\s*", line.strip()) for line in text.strip().splitlines())
    return [[one.removeprefix("wfcore.") for one in line] for line in lines]


def _packages(names: Sequence[str], y: float, height: float) -> Iterator[Shape]:
    """Boxes beside each other, over the whole width."""
    w = (WIDEST - 10 - _GAP * (len(names) - 1)) / len(names)
    for at, name in enumerate(names):
        tone, about = PACKAGES[name]
        x = 1 + at * (w + _GAP)
        yield Box(x, y, w, height, tone)
        yield Label(x + 10, y + 21, name, "code", tone, bold=True)
        for line, text in enumerate(about):
            yield Label(x + 10, y + 40 + line * LINE_H, text, "small")


def _core(name: str, rings: Sequence[Sequence[str]], y: float) -> Iterator[Shape]:
    """The core as a box around its layers."""
    wide = WIDEST - 10.0
    lines = [ring for layer in rings for ring in layer]
    yield Box(1, y, wide, 40 + _ROW_H * len(lines) + 6 * len(rings) + 4, "ink")
    yield Label(11, y + 22, name, "name", bold=True)
    about = "attrs; cattrs for the wire"
    yield Label(25 + width(name, "name"), y + 22, about, "small", "soft")
    y += 36
    for layer in rings:
        height = _ROW_H * len(layer)
        yield Box(11, y, wide - 20, height, "red" if layer == ["rules"] else "edge")
        for ring in layer:
            yield Label(21, y + 17, ring, "code", "red" if ring == "rules" else "ink", bold=True)
            yield Label(110, y + 17, RINGS[ring], "text", "soft")
            y += _ROW_H
        y += 6


def _told() -> str:
    layers = [*contract("outside")[:-1], *contract("inside")]
    rows = "; ".join(", ".join(layer) for layer in layers)
    return f"Each layer imports only what is below it, and no sibling. From the top: {rows}."


LEVELS: Mapping[str, str] = {
    "namespace": "green",
    "uid": "blue",
    "landlock": "violet",
    "process": "amber",
}
_TABLE = re.compile(r"^## (.+)\n\n\| A step tries to \|.+\n\|[-|]+\n((?:\|.+\n)+)", re.MULTILINE)


def isolation() -> Picture:
    """The picture of the share of attempts that each level of isolation held, by kind."""
    groups = findings()
    column = (WIDEST - 8) / len(LEVELS)
    shapes: list[Shape] = []
    for at, (level, tone) in enumerate(LEVELS.items()):
        shapes.append(Label(1 + at * column, 14, level, "code", tone, bold=True))
    for row, (title, held) in enumerate(groups.items()):
        y = 24 + row * 54
        shapes.append(Label(1, y + 15, title, "text", bold=True))
        for at, (level, tone) in enumerate(LEVELS.items()):
            shapes += _bar(1 + at * column, y + 20, column - 12, tone, *held[level])
    texts = "; ".join(
        f"{title}: {', '.join(f'{level} {n} of {of}' for level, (n, of) in held.items())}"
        for title, held in groups.items()
    )
    title = "How many attempts each level of isolation held"
    return Picture("isolation", title, f"{title}. {texts}.", tuple(shapes))


def findings() -> dict[str, dict[str, tuple[int, int]]]:
    """The attempts that were held and all attempts, by kind and level, from docs/isolation.md."""
    text = (ROOT / "docs/isolation.md").read_text()
    found = {}
    for title, table in _TABLE.findall(text):
        cells = [line.strip("| \n").split(" | ")[1:] for line in table.splitlines()]
        found[title.replace("`", "")] = {
            level: (sum(row[at].startswith("held") for row in cells), len(cells))
            for at, level in enumerate(LEVELS)
        }
    return found


def _bar(x: float, y: float, w: float, tone: str, held: int, of: int) -> Iterator[Shape]:
    """The share that was held, and the numbers above it."""
    yield Label(x, y + 10, f"{held} of {of}", "small", tone if held else "soft")
    yield Box(x, y + 15, w, 8, tone)
    if held:
        yield Box(x, y + 15, w * held / of, 8, tone, solid=True)
