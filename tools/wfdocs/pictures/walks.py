"""
Two walks, drawn from top to bottom: the life of one execution, and the way of one start.

The states of the life are not written here: each moment names a fact, and the machines say where
it leads. The stations of the start are files; a test traces a real start and finds it crossing
them in this order.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

from attrs import frozen

from wfcore.rules.execution.machine import EXECUTION
from wfcore.rules.states import MACHINES
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


@frozen
class Moment:
    """A moment in the life of an execution: the actor, the recorded facts, and a text."""

    who: str
    facts: tuple[str, ...]
    text: str


LIFE = (
    Moment("caller", (), "Starts it. It is on disk before the 202 is sent."),
    Moment("worker", ("Claimed",), "Takes it, with a lease and a fencing number."),
    Moment("worker", ("StepBegun",), "Records that the step begins, then starts its process."),
    Moment("step", (), "Finds suspicious refunds, in its sandbox."),
    Moment("worker", ("StepDone",), "Stores the result in the same transaction as what follows."),
    Moment("worker", ("ApprovalOpened",), "Shows the rows to the reviewers."),
    Moment("worker", ("AwaitingApproval",), "Gives the lease back. Days may pass, and restarts."),
    Moment("reviewer", ("Approved",), "Edits an amount and releases the rows."),
    Moment("worker", ("Claimed",), "Takes it again; perhaps another worker, after a restart."),
    Moment("worker", ("StepBegun",), "Begins the next step, on exactly the released rows."),
    Moment("step", (), "Pays them, and leaves a report."),
    Moment("worker", ("StepDone", "Finished"), "Stores the output. The caller's poll returns."),
)


def life() -> Picture:
    """The picture of an execution's life: actors, recorded facts and states."""
    left = max(width(moment.who, "small") for moment in LIFE) + 12
    shapes: list[Shape] = []
    texts: list[str] = []
    state, y, began = "", 14.0, 14.0
    for moment in LIFE:
        reached = _after(state, moment.facts)
        if reached != state:
            shapes += [_bar(left, began, y - 8, state)] if state else []
            shapes.append(Label(left + 18, y + 12, reached, "name", tone_of(reached)))
            state, began, y = reached, y, y + 26
        shapes += _moment(moment, left, y)
        texts.append(f"{moment.who}: {', '.join(moment.facts)} {moment.text} ({state})")
        y += _height(moment, left) + 10
    shapes.append(_bar(left, began, y - 10, state))
    return Picture("life", "The life of an execution", " ".join(texts), tuple(shapes))


def _after(state: str, facts: Sequence[str]) -> str:
    """The state after *facts*. Raises `LookupError` for a fact that no machine has."""
    for name in facts:
        fact = _fact(name)
        if issubclass(fact, EXECUTION.facts):
            state = str(EXECUTION.target(type(EXECUTION.initial)(state), fact))
    return state or str(EXECUTION.initial)


def _fact(name: str) -> type:
    facts: Iterable[type] = (fact for one in MACHINES.values() for fact in one.facts)
    for fact in facts:
        if fact.__name__ == name:
            return fact
    raise LookupError(name)


def _bar(x: float, top: float, bottom: float, state: str) -> Box:
    return Box(x, top, 8, bottom - top, tone_of(state), solid=True)


def _moment(moment: Moment, left: float, y: float) -> Iterator[Shape]:
    yield Label(left - 8 - width(moment.who, "small"), y + 11, moment.who, "small", "soft")
    lines = _lines(moment, left)
    if moment.facts:
        yield Label(left + 18, y + 11, " + ".join(moment.facts), "code")
        y += LINE_H
    yield from stacked(lines, left + 18, y + 11, tone="ink" if not moment.facts else "soft")


def _lines(moment: Moment, left: float) -> list[str]:
    return wrapped(moment.text, WIDEST - left - 26)


def _height(moment: Moment, left: float) -> float:
    return LINE_H * (len(_lines(moment, left)) + bool(moment.facts))


@frozen
class Station:
    """A file that a start crosses, with the action there."""

    path: str
    text: str

    @property
    def lane(self) -> int:
        """The depth of the file inside the application."""
        return next(at for prefix, at, _ in LANES if self.path.startswith(prefix))

    @property
    def tone(self) -> str:
        """The colour of the file's package."""
        return next(tone for prefix, _, tone in LANES if self.path.startswith(prefix))


LANES = (
    ("adapters_http/", 0, "blue"),
    ("wfcore/wire/", 1, "violet"),
    ("wfcore/usecases/", 1, "violet"),
    ("wfcore/rules/", 2, "red"),
    ("adapters_store/", 3, "green"),
    ("adapters_runtime/", 3, "amber"),
)

START = (
    Station(
        "adapters_http/transport/uvicorn_protocol.py",
        "Reads the request from the socket, within limits of size and time.",
    ),
    Station("adapters_http/dispatch.py", "Finds the row of the route table."),
    Station("wfcore/usecases/accounts/authenticate.py", "Who is it, and may it start anything?"),
    Station("wfcore/rules/auth/api_key.py", "Compares the key in constant time."),
    Station(
        "adapters_store/sqlite/counters.py", "Counts the request against its quota, atomically."
    ),
    Station("adapters_http/request_body.py", "Reads the body, only now."),
    Station("wfcore/wire/converter.py", "Makes a typed request of its JSON."),
    Station("adapters_http/handlers/workflows.py", "Calls the use case."),
    Station("wfcore/usecases/executions/starting.py", "Opens a unit of work; reads the workflow."),
    Station("wfcore/rules/execution/start.py", "Decides: a PENDING execution, or a refusal."),
    Station("wfcore/usecases/unit_of_work.py", "Stages the writes; notifies after the commit."),
    Station("adapters_store/sqlite/unit_of_work.py", "Commits them as one."),
    Station("adapters_store/sqlite/writer.py", "One transaction, flushed to disk with its peers."),
    Station("adapters_runtime/engine/wakeups.py", "Tells a worker; a lost hint costs a poll."),
    Station("adapters_http/dispatch.py", "Sends the 202."),
)


def start() -> Picture:
    """The picture of a start's way through the files: inwards to the rules and out to the disk."""
    step, left, y = 22.0, 92.0, 16.0
    texts: list[Shape] = []
    dots: list[Dot] = []
    for station in START:
        lines = wrapped(station.text, WIDEST - left - 8)
        texts.append(Label(left, y, station.path, "code", station.tone))
        texts += stacked(lines, left, y + LINE_H)
        dots.append(Dot(9 + station.lane * step, y - 4, tone=station.tone))
        y += LINE_H * (len(lines) + 1) + 12
    way = [_joined(here, there) for here, there in pairwise(dots)]
    about = " ".join(f"{station.path}: {station.text}" for station in START)
    title = "The way of a start through the code"
    return Picture("start", title, about, (*way, *dots, *texts))


def _joined(here: Dot, there: Dot) -> Line:
    """Down, across just above the next station, and down to it."""
    bend = there.y - 14
    return Line(((here.x, here.y), (here.x, bend), (there.x, bend), (there.x, there.y)))
