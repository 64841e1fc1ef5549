"""
How much there is to read: `make trace`.

Printed are the size of each part, names of classes that stand for two things (`two meanings`), and
what four walks through the code cross. Each walk is made once, so that everything is
loaded, and once more over a new store under a profiler that notes every call of a function of ours,
in the event loop and in the store's threads: how many functions it calls, in how many files, and
how often a call goes to another file. That is what somebody has to open who wants to follow it.

What is counted: the product (not `wfcore.testing`, whose fakes stand for clock, ids, passwords and
templates), from the bytes on the socket to the row on disk and back, with cold caches. *Stored* is
what the walk puts into its unit of work: records, events and audit entries. *In* are the shapes
that the inputs of a start take on their way, in order of appearance: JSON objects and typed dicts
by the key that holds them.

With `--files` the files are named; with `--write` the figures go into `docs/how-it-works.md`, and a
test compares them with that page.
"""

import ast
import asyncio
import re
import sys
import tempfile
import threading
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, TypeAlias

from attrs import define, field, fields, has

from adapters_http.app import HttpConfig
from adapters_http.request import Request
from adapters_runtime.code.runner import CodeStepRunner
from adapters_runtime.engine.worker import Worker
from tests.support.http_world import ROWS, World, a_world
from wfcore.model.access import OPERATOR
from wfcore.model.execution import ExecutionStatus
from wfcore.time import HOUR
from wfcore.usecases.approvals.expiry import expire_due
from wfcore.usecases.executions.executions import read_execution

ROOT = Path(__file__).parents[2] / "src"
SRC = str(ROOT)
TESTING = f"{SRC}/wfcore/testing"
PAGE = ROOT.parent / "docs" / "how-it-works.md"
MARKED = re.compile(r"(<!-- walks -->\n).*(<!-- end -->)", re.S)
SMALL = 60
STORES = frozenset({"put", "append", "log", "deliver", "tally"})
"""Methods of a unit of work that store one thing each."""
MARK = "carried-all-the-way"


def part_of(path: Path) -> str:
    """The ring or adapter that a file belongs to: `wfcore.rules`, `adapters_http`."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:2]) if parts[0] == "wfcore" and len(parts) > 1 else parts[0]


def sizes() -> Iterator[tuple[str, int, int, int]]:
    """For each part: files, lines, and files of fewer than `SMALL` lines but `__init__`."""
    found: dict[str, list[tuple[str, int]]] = defaultdict(list)
    for path in sorted(ROOT.rglob("*.py")):
        found[part_of(path)].append((path.name, len(path.read_text().splitlines())))
    for part, files in found.items():
        small = sum(size < SMALL and name != "__init__.py" for name, size in files)
        yield part, len(files), sum(size for _, size in files), small


def ambiguous() -> list[tuple[str, str, list[str]]]:
    """Classes of one name in one part, with the files that have them: one word, two meanings."""
    found: dict[tuple[str, str], set[str]] = defaultdict(set)
    for path, name in _classes():
        found[part_of(path), name.lstrip("_")].add(str(path.relative_to(ROOT)))
    return [(*key, sorted(where)) for key, where in sorted(found.items()) if len(where) > 1]


def shared_names() -> Mapping[str, list[str]]:
    """
    Class names that stand in several files of `src`, with the files. The stores may share names,
    since they are twins; so may the client's generated shapes and its errors, which are the API's.
    """
    found: dict[str, set[str]] = defaultdict(set)
    for path, name in _classes():
        if path.parent.name != "wfcore_client" or path.name not in ("shapes.py", "errors.py"):
            found[name].add(str(path.relative_to(ROOT)))
    twins = ("adapters_store/", "wfcore/memory/")
    return {
        name: sorted(where)
        for name, where in sorted(found.items())
        if len(where) > 1 and not all(one.startswith(twins) for one in where)
    }


def _classes() -> Iterator[tuple[Path, str]]:
    for path in ROOT.rglob("*.py"):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef):
                yield path, node.name


def _is_ours(frame: FrameType) -> bool:
    path = frame.f_code.co_filename
    return path.startswith(SRC) and not path.startswith(TESTING)


@define
class Trace:
    """Calls of ours while it is *on*: how often each function, in which file, from where."""

    on: bool = False
    calls: Counter[CodeType] = field(factory=Counter)
    changes: int = 0
    carriers: dict[str, None] = field(factory=dict)
    _seen: list[FrameType] = field(factory=list)  # kept, so that no identity is used twice
    _known: set[int] = field(factory=set)

    def __call__(self, frame: FrameType, event: str, _: Any) -> None:
        if not self.on or event != "call" or not _is_ours(frame):
            return
        if frame.f_code.co_name.startswith("<") or id(frame) in self._known:
            return  # comprehensions and modules; a coroutine that goes on
        self._known.add(id(frame))
        self._seen.append(frame)
        self.calls[frame.f_code] += 1
        self.changes += self._caller(frame) != frame.f_code.co_filename
        for value in frame.f_locals.values():
            inside = vars(value).values() if isinstance(value, Request) else ()
            for one in (value, *inside):
                self.carriers |= dict.fromkeys(shapes(one))

    @staticmethod
    def _caller(frame: FrameType) -> str | None:
        above = frame.f_back
        while above is not None and not _is_ours(above):
            above = above.f_back
        return above and above.f_code.co_filename

    @property
    def files(self) -> list[str]:
        return sorted({code.co_filename.removeprefix(f"{SRC}/") for code in self.calls})

    @property
    def stored(self) -> int:
        """How many records, events and audit entries went into units of work."""
        names = {f"SqlUnit.{name}" for name in STORES}
        return sum(times for code, times in self.calls.items() if code.co_qualname in names)


def shapes(value: object) -> Iterator[str]:
    """What *value* is if it holds the mark: text, an object by its key, a class of ours."""
    if isinstance(value, bytes | str):
        if MARK in str(value):
            yield "text"
    elif isinstance(value, dict):
        yield from (f"{{{key}}}" for key, inner in value.items() if _holds(inner))
    elif has(type(value)) and any(_holds(getattr(value, f.name, 0)) for f in fields(type(value))):
        yield type(value).__name__


def _holds(inner: object) -> bool:
    return isinstance(inner, Mapping) and MARK in inner.values()


Act: TypeAlias = Callable[[], Awaitable[object]]
Walk: TypeAlias = Callable[[World], AbstractAsyncContextManager[Act]]
"""Prepares a world for an act. The act alone is traced."""


@asynccontextmanager
async def start(world: World) -> AsyncIterator[Act]:
    """A start by API: from the request to the 202."""
    path = f"/api/v1/workflows/{await world.workflow()}/executions"
    yield lambda: world.post(path, {"inputs": {"n": MARK}})


@asynccontextmanager
async def bash(world: World) -> AsyncIterator[Act]:
    """A Bash step: from the claim to the result in the store, in the server's process alone."""
    execution_id = await world.start(await world.workflow())
    ended = asyncio.Event()
    with tempfile.TemporaryDirectory() as folder:
        runner = CodeStepRunner(Path(folder), world.services.files, lambda: "art_1")
        worker = Worker(world.services, runner, "worker")
        worker.on_release = lambda _: ended.set()

        async def act() -> None:
            await worker.take_named([execution_id])
            await ended.wait()

        yield act
        await worker.stop(0)
        await runner.close()
    run = await read_execution(world.services, OPERATOR, execution_id)
    assert run.status is ExecutionStatus.COMPLETED, run.error


@asynccontextmanager
async def approve(world: World) -> AsyncIterator[Act]:
    """An approval with edited rows: from the request to the 200."""
    _, id = await world.paused()
    rows = [{**ROWS[0], "amount": 5}, ROWS[1]]
    body = {"editedItems": {"refunds": rows}, "comment": "fine"}
    yield lambda: world.post(f"/api/v1/approvals/{id}/approve", body)


@asynccontextmanager
async def expire(world: World) -> AsyncIterator[Act]:
    """An approval that nobody decides in time: from the search for due ones to the commit."""
    await world.paused(timeout_ms=HOUR)
    world.clock.advance(HOUR)
    yield lambda: expire_due(world.services)


WALKS: Mapping[str, Walk] = {
    "start by API": start,
    "Bash step": bash,
    "approve with edited rows": approve,
    "expiry of an approval": expire,
}


async def traced(walk: Walk) -> Trace:
    """The calls of *walk* once everything is loaded."""
    trace = Trace()
    threading.setprofile(trace)
    sys.setprofile(trace)
    try:
        for warm in (False, True):
            with tempfile.TemporaryDirectory() as folder:
                async with a_world(Path(folder), HttpConfig()) as world, walk(world) as act:
                    trace.on = warm
                    await act()
                    trace.on = False
    finally:
        sys.setprofile(None)
        threading.setprofile(None)  # type: ignore[arg-type]
    return trace


def table(found: Mapping[str, Trace]) -> str:
    """The figures of every walk; calls in tens, since the loop's turns are not always alike."""
    rows = ["| Walk | Files | Functions | Changes of file | Stored | Changes per stored |"]
    rows.append("|---|---:|---:|---:|---:|---:|")
    for name, trace in found.items():
        calls, changes = round(len(trace.calls), -1), round(trace.changes, -1)
        each = round(trace.changes / trace.stored)
        figures = (len(trace.files), calls, changes, trace.stored, each)
        rows.append(f"| {name} | {' | '.join(map(str, figures))} |")
    carriers = found["start by API"].carriers
    return "\n".join([*rows, "", f"In: {', '.join(carriers)}.", ""])


def main(arguments: list[str]) -> None:
    """Print the tables; with `--files` also what each walk crosses."""
    print(f"| part | files | lines | files under {SMALL} lines |\n|---|---|---|---|")
    for row in sizes():
        print("| " + " | ".join(map(str, row)) + " |")
    found = {name: asyncio.run(traced(walk)) for name, walk in WALKS.items()}
    print(f"\n{table(found)}")
    for name, trace in found.items() if "--files" in arguments else ():
        print(f"{name}:", *(f"    {file}" for file in trace.files), sep="\n")
    if "--write" in arguments:
        PAGE.write_text(MARKED.sub(rf"\g<1>{table(found)}\g<2>", PAGE.read_text()))
    for name, where in shared_names().items():
        print(f"two meanings: {name}: {', '.join(where)}")


if __name__ == "__main__":
    main(sys.argv[1:])
