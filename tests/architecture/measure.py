"""
How much there is to read: `make trace`.

Printed are the size of each part, names of classes that stand for two things in one ring (none
should), and what three requests cross on their way. Each of these is made once, so that
everything is loaded, and once more over a new store under a profiler that notes every call of a
function of ours, in the event loop and in the store's threads: how many calls it makes, of how
many functions in how many files, and how often a call goes to another file. That is what
somebody has to open who wants to follow it. With `--files` the files are named.
"""

import ast
import asyncio
import sys
import tempfile
import threading
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Iterator, Mapping
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

from attrs import define, field

from adapters_http.app import HttpConfig
from http_world import ROWS, World, a_world
from wfcore.time import HOUR
from wfcore.usecases.upkeep.sweeping import sweep

ROOT = Path(__file__).parents[2] / "src"
SRC = str(ROOT)
TESTING = f"{SRC}/wfcore/testing"
SMALL = 60


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
    for path in ROOT.rglob("*.py"):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef):
                name = node.name.lstrip("_")
                found[part_of(path), name].add(str(path.relative_to(ROOT)))
    return [(*key, sorted(where)) for key, where in sorted(found.items()) if len(where) > 1]


def _is_ours(frame: FrameType) -> bool:
    path = frame.f_code.co_filename
    return path.startswith(SRC) and not path.startswith(TESTING)


@define
class Trace:
    """Calls of ours while it is *on*: how often each function, in which file, from where."""

    on: bool = False
    calls: Counter[CodeType] = field(factory=Counter)
    changes: int = 0
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

    @staticmethod
    def _caller(frame: FrameType) -> str | None:
        above = frame.f_back
        while above is not None and not _is_ours(above):
            above = above.f_back
        return above and above.f_code.co_filename

    @property
    def files(self) -> list[str]:
        return sorted({code.co_filename.removeprefix(f"{SRC}/") for code in self.calls})


async def start(world: World) -> Callable[[], Awaitable[object]]:
    """A start by API: from the request to the 202."""
    path = f"/api/v1/workflows/{await world.workflow()}/executions"
    return lambda: world.post(path, {"inputs": {"n": 1}})


async def approve(world: World) -> Callable[[], Awaitable[object]]:
    """An approval with edited rows: from the request to the 200."""
    _, id = await world.paused()
    rows = [{**ROWS[0], "amount": 5}, ROWS[1]]
    body = {"editedItems": {"refunds": rows}, "comment": "fine"}
    return lambda: world.post(f"/api/v1/approvals/{id}/approve", body)


async def expire(world: World) -> Callable[[], Awaitable[object]]:
    """An approval that nobody decides in time: one sweep."""
    await world.paused(timeout_ms=HOUR)
    world.clock.advance(HOUR)
    return lambda: sweep(world.services)


WALKS: Mapping[str, Callable[[World], Awaitable[Callable[[], Awaitable[object]]]]] = {
    "start by API": start,
    "approve with edited rows": approve,
    "expiry of an approval": expire,
}


async def traced(walk: Callable[[World], Awaitable[Callable[[], Awaitable[object]]]]) -> Trace:
    """What *walk* crosses once everything is loaded."""
    trace = Trace()
    threading.setprofile(trace)
    sys.setprofile(trace)
    try:
        for warm in (False, True):
            with tempfile.TemporaryDirectory() as folder:
                async with a_world(Path(folder), HttpConfig()) as world:
                    go = await walk(world)
                    trace.on = warm
                    await go()
                    trace.on = False
    finally:
        sys.setprofile(None)
        threading.setprofile(None)  # type: ignore[arg-type]
    return trace


def main(arguments: list[str]) -> None:
    """Print the tables; with `--files` also what each walk crosses."""
    print(f"| part | files | lines | files under {SMALL} lines |\n|---|---|---|---|")
    for row in sizes():
        print("| " + " | ".join(map(str, row)) + " |")
    print("\n| walk | calls | functions | files | changes of file |\n|---|---|---|---|---|")
    for name, walk in WALKS.items():
        trace = asyncio.run(traced(walk))
        calls = sum(trace.calls.values())
        print(f"| {name} | {calls} | {len(trace.calls)} | {len(trace.files)} | {trace.changes} |")
        if "--files" in arguments:
            print(*(f"    {file}" for file in trace.files), sep="\n")
    for part, name, where in ambiguous():
        print(f"two meanings in {part}: {name}: {', '.join(where)}")


if __name__ == "__main__":
    main(sys.argv[1:])
