"""
A state machine drawn like a map of lines.

The states stand in one column, in the order of their enumeration, ends last. Each state that can
be reached from another one has a lane of its own on the right; whatever leads there joins that
lane and enters the state at its name. A fact stands above the line it takes, beside the state in
which it can happen. Facts that leave a state as it is are listed inside its box.

So nothing has to be searched for and nothing can overlap: the column holds the boxes, the next one
the facts, the rest the lanes, and every line has a height or a lane to itself.
"""

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any

from attrs import frozen

from wfcore.machine import Machine
from wfcore.rules import states
from wfdocs.pictures.svg import (
    LINE_H,
    WIDEST,
    Box,
    Dot,
    Label,
    Line,
    Picture,
    Shape,
    stacked,
    tone_of,
    width,
    wrapped,
)

TOP, GAP, TITLE_H, LANE_W = 26, 16, 30, 13
_PADDING = 10
_STAYS = "stays so when"


@frozen
class Place:
    """A state with its box, the facts it keeps to itself, and its ways out by target."""

    state: str
    box: Box
    inside: Sequence[str]
    ways: Sequence[tuple[str, Sequence[str]]]

    @property
    def entry(self) -> float:
        """The height of the name, where lines come in."""
        return self.box.y + TITLE_H / 2

    def exits(self) -> Iterator[tuple[str, Sequence[str], float]]:
        """The target, facts and line height of each way out."""
        y = self.box.y + TITLE_H
        for target, facts in self.ways:
            y += LINE_H * len(facts) + 5
            yield target, facts, y


def draw(machine: Machine[Any]) -> Picture:
    """The machine as a picture."""
    places = list(_placed(machine))
    shapes: list[Shape] = [*_start(places, str(machine.initial))]
    for place in places:
        shapes += _state(place)
    left = places[0].box.w + 12
    lanes = _lanes(places, left + _widest(places) + 8)
    for place in places:
        shapes += _arrows(place, places, lanes, left)
    name = machine.name
    title = f"The states of {'an' if name[0] in 'aeiou' else 'a'} {name}"
    return Picture(name, title, _in_words(machine), tuple(shapes))


def _placed(machine: Machine[Any]) -> Iterator[Place]:
    """The states from top to bottom."""
    ends = states.ends(machine)
    order = [*(state for state in machine.states if state not in ends), *ends]
    stays = [f"{row.fact.__name__}," for row in machine.rows if row.state is row.target]
    names = [str(state) for state in order]
    above = [(_STAYS, "small")] if stays else []
    texts = [*((one, "name") for one in names), *((one, "code") for one in stays), *above]
    wide = max(width(text, font) for text, font in texts)
    y = float(TOP)
    for state in order:
        inside, ways = _ways(machine, state, wide)
        left = TITLE_H + (LINE_H * (len(inside) + 1) + 6 if inside else 0)
        right = TITLE_H + sum(LINE_H * len(facts) + 5 for _, facts in ways) + (4 if ways else 0)
        tone = tone_of(str(state))
        box = Box(1, y, wide + 2 * _PADDING, max(left, right), tone, double=state in ends)
        yield Place(str(state), box, inside, ways)
        y += box.h + GAP


def _ways(
    machine: Machine[Any], state: Any, room: float
) -> tuple[list[str], list[tuple[str, list[str]]]]:
    """The facts that leave *state* unchanged, as lines; and its ways out."""
    rows = [row for row in machine.rows if row.state is state]
    stays = [row.fact.__name__ for row in rows if row.target is state]
    out = sorted(
        (row for row in rows if row.target is not state),
        key=lambda row: machine.states.index(row.target),
    )
    groups = groupby(out, key=lambda row: str(row.target))
    ways = [(target, [row.fact.__name__ for row in found]) for target, found in groups]
    return wrapped(", ".join(stays), room, "code") if stays else [], ways


def _start(places: Sequence[Place], initial: str) -> Iterator[Dot | Line]:
    """A dot, and an arrow into the state in which a record begins."""
    box = next(place.box for place in places if place.state == initial)
    yield Dot(24, box.y - 18)
    yield Line(((24, box.y - 18), (24, box.y)), "ink", arrow=True)


def _state(place: Place) -> Iterator[Box | Label]:
    """The box with its name and what stays inside it."""
    box, x = place.box, place.box.x + _PADDING
    yield box
    yield Label(x, box.y + 20, place.state, "name", box.tone)
    if place.inside:
        yield Label(x, box.y + TITLE_H + 11, _STAYS, "small", "soft")
        yield from stacked(place.inside, x, box.y + TITLE_H + LINE_H + 11, "code")


def _widest(places: Sequence[Place]) -> float:
    facts = [fact for place in places for _, group in place.ways for fact in group]
    return max((width(fact, "code") for fact in facts), default=0)


def _lanes(places: Sequence[Place], x: float) -> dict[str, float]:
    """
    Where the line into each state runs; those with the shortest way are nearest.

    Lines that never pass each other share a lane, and many lanes are closer together.
    """
    spans: dict[str, list[float]] = {}
    for place in places:
        for target, _, y in place.exits():
            spans.setdefault(target, [_entry(places, target)]).append(y)
    order = sorted(spans, key=lambda one: (max(spans[one]) - min(spans[one]), one))
    lanes: list[list[str]] = []
    for target in order:
        free = (lane for lane in lanes if not any(_meet(spans[target], spans[o]) for o in lane))
        lane = next(free, None)
        if lane is None:
            lanes.append(lane := [])
        lane.append(target)
    apart = min(LANE_W, (WIDEST - 10 - x) / max(1, len(lanes) - 1))
    return {target: x + at * apart for at, lane in enumerate(lanes) for target in lane}


def _meet(one: Sequence[float], other: Sequence[float]) -> bool:
    """Whether two stretches of a lane touch, or nearly."""
    return min(one) < max(other) + GAP and min(other) < max(one) + GAP


def _arrows(
    place: Place, places: Sequence[Place], lanes: dict[str, float], left: float
) -> Iterator[Label | Line]:
    """The facts that lead out of a state, and the line that each group of them takes."""
    edge = place.box.x + place.box.w
    for target, facts, y in place.exits():
        goal = next(one.box for one in places if one.state == target)
        entry, lane = _entry(places, target), lanes[target]
        points = ((edge, y), (lane, y), (lane, entry), (edge, entry))
        yield Line(points, goal.tone, arrow=True)
        first = y - 4 - LINE_H * (len(facts) - 1)
        yield from stacked(facts, left, first, "code", goal.tone)


def _entry(places: Sequence[Place], state: str) -> float:
    return next(place.entry for place in places if place.state == state)


def _in_words(machine: Machine[Any]) -> str:
    """The arrows of the machine in words."""
    rows = sorted(machine.rows, key=lambda row: machine.states.index(row.state))
    texts = [f"{row.fact.__name__} leads from {row.state} to {row.target}" for row in rows]
    return f"{states.sentence(machine)}. {'. '.join(texts)}."
