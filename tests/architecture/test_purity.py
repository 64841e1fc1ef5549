"""What each ring may import, how long a file may be, and what importing the core costs."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SRC = ROOT / "src"
OURS = sorted(
    path
    for place in ("src", "tests", "bench", "examples")
    for path in (ROOT / place).rglob("*.py")
    if ".venv" not in path.parts  # of bench.peers, if it was run here
)
LONGEST = 400
PURE = ("rules", "effects", "model", "machine", "errors", "time")
WAITING = ("ports", "memory", "usecases")
IMPURE = frozenset(
    {
        *("asyncio", "concurrent", "logging", "multiprocessing", "os", "pathlib", "random"),
        *("secrets", "signal", "socket", "sqlite3", "subprocess", "tempfile", "threading"),
        *("time", "uuid"),
    }
)
ADAPTERS = frozenset({"adapters_http", "adapters_store", "adapters_runtime", "wfserver"})
CLOCKS = frozenset({"now", "utcnow", "today"})


def files(*rings: str) -> list[Path]:
    places = [SRC / "wfcore" / ring for ring in rings]
    return [
        path
        for place in places
        for path in (sorted(place.rglob("*.py")) if place.is_dir() else [place.with_suffix(".py")])
    ]


def imports(path: Path) -> set[str]:
    """Top-level names of everything that *path* imports, at any depth of its code."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            found.add((node.module or "").partition(".")[0])
    return found


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("path", files(*PURE, *WAITING), ids=name)
def test_the_core_reaches_no_clock_chance_or_world(path: Path):
    """Time, ids and secrets are arguments or ports; a use case awaits ports and nothing else."""
    assert not imports(path) & IMPURE


@pytest.mark.parametrize("path", files(*PURE, *WAITING), ids=name)
def test_the_core_asks_no_clock_of_a_date(path: Path):
    """`datetime` is for calendars only: nobody calls `now` or `today` on it."""
    calls = [n.func for n in ast.walk(ast.parse(path.read_text())) if isinstance(n, ast.Call)]
    asked = [call for call in calls if isinstance(call, ast.Attribute) and call.attr in CLOCKS]
    dates = [call for call in asked if isinstance(call.value, ast.Name)]
    assert not [call for call in dates if call.value.id in ("datetime", "date")]


@pytest.mark.parametrize("path", files(*PURE), ids=name)
def test_pure_rings_await_nothing(path: Path):
    """A rule is a plain function."""
    waiting = (ast.AsyncFunctionDef, ast.Await, ast.AsyncFor, ast.AsyncWith)
    assert not [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, waiting)]


@pytest.mark.parametrize("path", files(*PURE, *WAITING, "wire"), ids=name)
def test_the_core_needs_attrs_and_cattrs_only(path: Path):
    """Beyond the standard library; cattrs in `wire` alone."""
    allowed = {"wfcore", "attrs"} | ({"cattrs"} if "wire" in path.parts else set())
    assert not imports(path) - sys.stdlib_module_names - allowed


ONCE = frozenset({"_take", "_recover", "_purge_some"})
"""Units of sweeps: whoever comes too late leaves it to whoever was faster, or to the next sweep."""


@pytest.mark.parametrize("path", files("usecases"), ids=name)
def test_a_unit_of_work_that_lost_a_race_is_repeated(path: Path):
    """Whatever commits a unit of its own is `retried`: losing a race is no failure of the store."""
    functions = [
        one
        for one in ast.walk(ast.parse(path.read_text()))
        if isinstance(one, ast.AsyncFunctionDef)
    ]
    commits = [
        one for one in functions if ".unit()" in (text := ast.unparse(one)) and ".commit(" in text
    ]
    marked = {one.name for one in commits if "retried" in map(ast.unparse, one.decorator_list)}
    assert {one.name for one in commits} - marked <= ONCE


@pytest.mark.parametrize("path", OURS, ids=name)
def test_no_file_is_long(path: Path):
    """One idea, one file: at most 400 lines. What a program writes nobody has to read."""
    text = path.read_text()
    assert len(text.splitlines()) <= LONGEST or "do not edit" in text[:300]


def test_importing_the_core_pulls_in_no_adapter():
    """A library user pays for the core alone: no adapter, no event loop, no test tool."""
    modules = [
        f"wfcore.{path.relative_to(SRC / 'wfcore').with_suffix('')}".replace("/", ".")
        for path in files(*PURE, *WAITING)
        if path.name != "__init__.py"
    ]
    code = f"import sys, {', '.join(modules)}; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert loaded.returncode == 0, loaded.stderr
    unwanted = ADAPTERS | {"asyncio", "sqlite3", "hypothesis", "pytest", "starlette", "uvicorn"}
    assert not unwanted & {module.partition(".")[0] for module in loaded.stdout.split()}


@pytest.mark.parametrize("path", [path for path in OURS if SRC in path.parents], ids=name)
def test_no_cancellation_is_swallowed(path: Path):
    """
    `asyncio.wait_for` loses a cancellation that comes in the same turn as what it waits for, up to
    Python 3.11: a loop that uses it may not end. `asyncio.timeout` does not.
    """
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            assert (node.value.id, node.attr) != ("asyncio", "wait_for"), name(path)
        if isinstance(node, ast.ImportFrom) and node.module == "asyncio":
            assert "wait_for" not in {alias.name for alias in node.names}, name(path)
