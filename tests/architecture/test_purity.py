"""What each ring may import, how long a file may be, and what importing the core costs."""

import ast
import subprocess
import sys
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
SRC = ROOT / "src"
OURS = sorted(
    path
    for place in ("src", "tests", "bench", "examples")
    for path in (ROOT / place).rglob("*.py")
    if ".venv" not in path.parts  # of bench.peers, if it was run here
)
LONGEST = {ast.Module: 400, ast.FunctionDef: 60, ast.AsyncFunctionDef: 60}
"""The most lines of code that a file or a function has."""
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


@cache
def text_of(path: Path) -> str:
    return path.read_text()


@cache
def nodes(path: Path) -> tuple[ast.AST, ...]:
    """Everything in the syntax tree of *path*, at any depth."""
    return tuple(ast.walk(ast.parse(text_of(path))))


@cache
def imports(path: Path) -> frozenset[str]:
    """Top-level names of everything that *path* imports, at any depth of its code."""
    found: set[str] = set()
    for node in nodes(path):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            found.add((node.module or "").partition(".")[0])
    return frozenset(found)


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def test_the_core_reaches_no_clock_chance_or_world():
    """Time, ids and secrets are arguments or ports; a use case awaits ports and nothing else."""
    for path in files(*PURE, *WAITING):
        assert not imports(path) & IMPURE, name(path)


def test_the_core_asks_no_clock_of_a_date():
    """`datetime` is for calendars only: nobody calls `now` or `today` on it."""
    for path in files(*PURE, *WAITING):
        calls = [node.func for node in nodes(path) if isinstance(node, ast.Call)]
        asked = [call for call in calls if isinstance(call, ast.Attribute) and call.attr in CLOCKS]
        dates = [call for call in asked if isinstance(call.value, ast.Name)]
        assert not [call for call in dates if call.value.id in ("datetime", "date")], name(path)


def test_pure_rings_await_nothing():
    """A rule is a plain function."""
    waiting = (ast.AsyncFunctionDef, ast.Await, ast.AsyncFor, ast.AsyncWith)
    for path in files(*PURE):
        assert not [node for node in nodes(path) if isinstance(node, waiting)], name(path)


def test_the_core_needs_attrs_and_cattrs_only():
    """Beyond the standard library; cattrs in `wire` alone."""
    for path in files(*PURE, *WAITING, "wire"):
        allowed = {"wfcore", "attrs"} | ({"cattrs"} if "wire" in path.parts else set())
        assert not imports(path) - sys.stdlib_module_names - allowed, name(path)


ONCE = frozenset({"_take", "take_notice", "_recover", "_purge_some"})
"""Units of sweeps: whoever comes too late leaves it to whoever was faster, or to the next sweep."""


def test_a_unit_of_work_that_lost_a_race_is_repeated():
    """Whatever commits a unit of its own is `retried`: losing a race is no failure of the store."""
    for path in files("usecases"):
        functions = [one for one in nodes(path) if isinstance(one, ast.AsyncFunctionDef)]
        commits = [
            one
            for one in functions
            if ".unit()" in (text := ast.unparse(one)) and ".commit(" in text
        ]
        marked = {one.name for one in commits if "retried" in map(ast.unparse, one.decorator_list)}
        assert {one.name for one in commits} - marked <= ONCE, name(path)


def lines_of_code(path: Path, within: ast.AST) -> int:
    """How many lines of *within* a reader has to follow: no docstring, import, comment or blank."""
    code: set[int] = set()
    for node in ast.walk(within):
        if isinstance(node, ast.stmt) and not isinstance(node, ast.Import | ast.ImportFrom):
            text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
            inner = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
            last = node.body[0].lineno - 1 if inner else node.end_lineno or node.lineno
            code |= set() if text else set(range(node.lineno, max(last, node.lineno) + 1))
    text_lines = text_of(path).splitlines()
    return sum(bool(line := text_lines[at - 1].strip()) and line[0] != "#" for at in code)


def test_nothing_is_long():
    """A file has at most 400 lines of code, a function 60. What a program writes does not count."""
    long = [
        (name(path), getattr(node, "name", ""), lines)
        for path in OURS
        if "do not edit" not in text_of(path)[:300]
        for node in nodes(path)
        if (most := LONGEST.get(type(node))) and (lines := lines_of_code(path, node)) > most
    ]
    assert not long


def test_every_ring_has_files():
    """None of the rings that are judged here is judged by no file."""
    for ring in (*PURE, *WAITING, "wire"):
        assert files(ring), ring
        assert all(path.exists() for path in files(ring)), ring


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


def test_no_cancellation_is_swallowed():
    """
    `asyncio.wait_for` loses a cancellation that comes in the same turn as what it waits for, up to
    Python 3.11: a loop that uses it may not end. `asyncio.timeout` does not.
    """
    for path in OURS:
        for node in nodes(path) if SRC in path.parents else ():
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                assert (node.value.id, node.attr) != ("asyncio", "wait_for"), name(path)
            if isinstance(node, ast.ImportFrom) and node.module == "asyncio":
                assert "wait_for" not in {alias.name for alias in node.names}, name(path)
