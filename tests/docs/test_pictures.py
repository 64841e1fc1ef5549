"""The pictures of the documentation: true to their tables, legible, the same on every machine."""

import os
import re
import subprocess
import sys
import threading
import xml.etree.ElementTree as ET
from collections.abc import Iterator, Mapping
from itertools import combinations, pairwise
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from adapters_http.config import HttpConfig
from tests.support.http_world import a_world
from wfcore.rules.states import MACHINES
from wfdocs import pictures
from wfdocs.pictures import layers, machines, svg, walks
from wfdocs.pictures.svg import Box, Label, Line, Picture

from .pages import DOCS, ROOT

PAGES = [ROOT / "README.md", *DOCS.glob("*.md"), *DOCS.glob("*/*.md")]
LIGHT_PAGES, DARK_PAGES = ("#ffffff", "#f8f9fb"), ("#131416", "#0d1117")
every_picture = pytest.mark.parametrize("name", pictures.PICTURES)
every_machine = pytest.mark.parametrize("name", MACHINES)


def overlap(a: Box, b: Box) -> bool:
    return a.x < b.x + b.w and b.x < a.x + a.w and a.y < b.y + b.h and b.y < a.y + a.h


def within(a: Box, b: Box) -> bool:
    return a.x >= b.x and a.y >= b.y and a.x + a.w <= b.x + b.w and a.y + a.h <= b.y + b.h


def drawn(name: str) -> Picture:
    return pictures.PICTURES[name]()


def boxes(picture: Picture) -> list[Box]:
    return [one for one in picture.shapes if isinstance(one, Box)]


def labels(picture: Picture) -> list[Label]:
    return [one for one in picture.shapes if isinstance(one, Label)]


def strokes(picture: Picture) -> Iterator[Box]:
    """Every straight piece of every line, as the thin rectangle that it covers."""
    for line in (one for one in picture.shapes if isinstance(one, Line)):
        for (ax, ay), (bx, by) in pairwise(line.points):
            yield Box(min(ax, bx), min(ay, by), abs(ax - bx) + 0.1, abs(ay - by) + 0.1)


@every_picture
def test_boxes_lie_beside_or_inside_each_other(name: str) -> None:
    """No two boxes share only a part of themselves."""
    for a, b in combinations(boxes(drawn(name)), 2):
        assert not overlap(a, b) or within(a, b) or within(b, a), (a, b)


@every_picture
def test_text_fits(name: str) -> None:
    """No text crosses another text, the edge of a box, a line, or the edge of the picture."""
    picture = drawn(name)
    extents = [(one.text, one.extent) for one in labels(picture)]
    for (said, a), (other, b) in combinations(extents, 2):
        assert not overlap(a, b), (said, other)
    for said, a in extents:
        assert all(within(a, box) for box in boxes(picture) if overlap(a, box)), said
        assert not any(overlap(a, stroke) for stroke in strokes(picture)), said
        assert within(a, Box(0, 0, picture.width, picture.height)), said


@every_picture
def test_a_phone_shows_the_whole_picture(name: str) -> None:
    """It is as narrow as every picture must be, and no text is tiny."""
    assert drawn(name).width <= svg.WIDEST
    assert min(size for size, _ in svg.FONTS.values()) >= 12


@every_machine
def test_every_state_and_every_row_is_drawn(name: str) -> None:
    """Each state has its box; each row leads from its state's box into its target's."""
    machine, picture = MACHINES[name], drawn(name)
    named = {one.text: one for one in labels(picture) if one.font == "name"}
    assert set(named) == set(map(str, machine.states))
    at = {
        state: next(box for box in boxes(picture) if within(label.extent, box))
        for state, label in named.items()
    }
    ways = {(a, b, fact) for a, b, facts in _read(picture, at) for fact in facts}
    stays = {
        (state, state, fact)
        for state, box in at.items()
        for label in labels(picture)
        if label.font == "code" and within(label.extent, box)
        for fact in re.findall(r"\w+", label.text)
    }
    rows = {(str(row.state), str(row.target), row.fact.__name__) for row in machine.rows}
    assert ways | stays == rows
    assert {state for state, box in at.items() if box.double} == set(map(str, machine.final))


def _read(picture: Picture, at: Mapping[str, Box]) -> Iterator[tuple[str, str, set[str]]]:
    """Source, target and facts of every line between states, by nothing but where it lies."""
    lines = [one for one in picture.shapes if isinstance(one, Line) and len(one.points) == 4]
    for line in lines:
        (_, y), (_, end) = line.points[0], line.points[-1]
        source = next(state for state, box in at.items() if box.y < y <= box.y + box.h)
        target = next(state for state, box in at.items() if box.y < end <= box.y + box.h)
        above = max((o.points[0][1] for o in lines if o.points[0][1] < y), default=0)
        outside = [one for one in labels(picture) if one.x > at[source].x + at[source].w]
        top = max(above, at[source].y)
        yield source, target, {one.text for one in outside if top < one.y <= y}


@every_picture
def test_somebody_who_sees_nothing_is_told(name: str) -> None:
    """A title and a description belong to the picture, under names that no other one has."""
    root = ET.fromstring(svg.render(drawn(name)))
    space = "{http://www.w3.org/2000/svg}"
    title, about = root.find(f"{space}title"), root.find(f"{space}desc")
    assert title is not None
    assert about is not None
    assert root.get("role") == "img"
    assert root.get("aria-labelledby") == f"{title.get('id')} {about.get('id')}"
    assert title.get("id") == f"{name}-title"
    assert len(about.text or "") > 60


@every_picture
def test_a_picture_loads_and_runs_nothing(name: str) -> None:
    """No script, no reference to anything, no style that asks for a file."""
    text = svg.render(drawn(name)).replace('xmlns="http://www.w3.org/2000/svg"', "")
    assert not re.search(r"<script|href|url\(|@import|https?:|\bon\w+=", text)


def test_colours_are_told_apart_from_their_ground() -> None:
    """Text has a contrast of 4.5, edges of 3, on light and dark pages and on boxes."""
    for tones, papers in ((svg.LIGHT, LIGHT_PAGES), (svg.DARK, DARK_PAGES)):
        for ground in (*papers, tones["box"]):
            for tone in ("ink", *svg.TONES):
                least = 3 if tone == "edge" else 4.5
                assert contrast(tones[tone], ground) >= least, (tone, ground)


def contrast(a: str, b: str) -> float:
    """The ratio that WCAG 2 defines."""
    high, low = sorted((luminance(a), luminance(b)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def luminance(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@pytest.mark.parametrize("seed", ["0", "4242"])
def test_pictures_and_tables_are_fresh_on_every_machine(seed: str) -> None:
    """`make tables` writes what is kept, byte for byte, in whatever order sets and hashes come."""
    run = subprocess.run(
        [sys.executable, str(DOCS / "fill.py"), "--check"],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONHASHSEED": seed},
    )
    assert run.returncode == 0, f"{run.stdout}{run.stderr}: run `make tables`"


def test_every_picture_is_shown_and_every_shown_one_exists() -> None:
    """Pages and README refer to each picture that is kept, and to no other."""
    shown = {
        Path(found).stem
        for page in PAGES
        for found in re.findall(r"!\[[^\]]+\]\(([^)]*pictures/[\w-]+\.svg)\)", page.read_text())
        if (page.parent / found).is_file()
    }
    kept = {path.stem for path in (DOCS / "pictures").iterdir()}
    files = (ROOT / "examples" / "workflows").glob("*.yaml")
    flows = {f"flow-{one.stem}" for one in files if not one.name.endswith(".test.yaml")}
    assert shown == kept == {*pictures.PICTURES, *flows}


def test_a_built_page_holds_its_pictures() -> None:
    """The image becomes the drawing itself; other text and other images stay."""
    page = "before\n\n![A life](../pictures/life.svg)\n\n![x](other.png)\n"
    made = pictures.inlined(page)
    assert made.startswith("before\n\n```{raw} html\n<figure")
    assert svg.render(walks.life()) in made
    assert "![x](other.png)" in made


def test_the_architecture_shows_every_layer_of_the_contracts() -> None:
    """Each package and each ring that import-linter holds is drawn, in its order."""
    said = [one.text for one in labels(layers.architecture())]
    named = [
        name for part in ("outside", "inside") for row in layers.contract(part) for name in row
    ]
    assert len(named) > 10
    assert [text for text in said if text in named] == named


def test_isolation_is_counted_from_the_findings() -> None:
    """Every group of probes on the page has its bars, with the page's numbers."""
    page = (DOCS / "isolation.md").read_text()
    held = dict.fromkeys(layers.LEVELS, 0)
    for found in layers.findings().values():
        for level, (count, _) in found.items():
            held[level] += count
    rows = [line for line in page.splitlines() if re.search(r"\| (held|–)", line)]
    columns = [[cell.startswith("held") for cell in row.split(" | ")[1:]] for row in rows]
    assert list(held.values()) == [sum(column) for column in zip(*columns, strict=True)]


def test_the_life_of_an_execution_ends() -> None:
    """Each fact of it is in a table, and leads on until the execution is complete."""
    names = [one.text for one in labels(walks.life()) if one.font == "name"]
    assert names[0] == "PENDING"
    assert names[-1] == "COMPLETED"


async def test_a_start_goes_the_way_that_is_drawn(tmp_path: Path) -> None:
    """Traced through a real server and store, a start crosses the stations in their order."""
    crossed: list[str] = []

    def watch(frame: FrameType, event: str, _: Any) -> None:
        path = frame.f_code.co_filename.partition("/src/")[2]
        if event == "call" and path and crossed[-1:] != [path]:
            crossed.append(path)

    threading.setprofile(watch)  # the store's writer is a thread of its own
    try:
        async with a_world(tmp_path, HttpConfig()) as world:
            workflow = await world.workflow()
            crossed.clear()
            sys.setprofile(watch)
            await world.start(workflow)
            sys.setprofile(None)
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    way = iter(list(crossed))
    for station in walks.START:
        assert station.path in way, f"not crossed, or not in this order: {station.path}"


def test_a_word_that_does_not_fit_is_refused() -> None:
    """A layout never draws text over its edge."""
    assert svg.wrapped("a few words", svg.width("a few wor")) == ["a few", "words"]
    with pytest.raises(ValueError, match="wider"):
        svg.wrapped("Donaudampfschifffahrt", 20)


def test_a_machine_without_ends_or_loops_is_drawn() -> None:
    """The layout asks nothing of a machine but rows."""
    assert {box.double for box in boxes(machines.draw(MACHINES["webhook"]))} == {False}
