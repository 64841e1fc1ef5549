"""
Mutants of what runs at the edges: a sample of each module's, tried on the tests of its group.

The adapters are many, and their tests slow: they open files, sockets and processes. So a module
gives at most `most` mutants, drawn with a fixed seed. `adapters.toml` names groups of modules and
the tests that are to notice their mutants. A session of pytest is collected for each group, and
forked: once to see what test comes to what function, then for each mutant, which is tried on those
tests that come to the function it changes: the quickest of each file, then the next ones, at most
`LONGEST_S` of them.

    python -m mutation.adapters [--left] [module ...] [tests/... ...]

Modules that are named are tried alone, tests that are named take part alone. `--left` tries again
only what was left of the last run, which is for new tests, and takes the time for more of them; a
module that has changed since must be tried anew.
"""

import ast
import gc
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from difflib import unified_diff
from functools import cache, partial
from itertools import accumulate, zip_longest
from pathlib import Path
from typing import Any

import pytest
from mutmut.mutation import trampoline
from mutmut.mutation.file_mutation import mutate_file_contents

from mutation.page import PAGE, Change, explained, reasons

HERE = Path("mutants-adapters")
BEGIN = "<!-- what follows is written by `make mutation-adapters` -->\n"
END = "<!-- until here -->\n"
TABLE = Path("tests/mutation/adapters.toml")
COPIED = (
    "src",
    "tests",
    "docs",
    "examples",
    "Makefile",
    "README.md",
    "CHANGELOG.md",
    "pyproject.toml",
)
NOTICED, SURVIVED, UNREACHED, SAME = "noticed", "survived", "unreached", "same"
SQL = re.compile(
    r"\b(SELECT|INSERT|UPDATE|DELETE|PRAGMA|BEGIN|COMMIT|ROLLBACK|RELEASE|SAVEPOINT)\b"
)
WRAPPED = re.compile(
    r"^(@(?:retried|contextmanager|asynccontextmanager))\n((?:async )?def \w+\()", re.MULTILINE
)
LEFT = "--left" in sys.argv
LONGEST_S = float(os.environ.get("LONGEST_S", 12 if LEFT else 4))
"""Of tests for one mutant."""
PATIENCE_S = 8
"""Beyond three times what a test usually takes. One that is later has noticed."""


def main() -> int:
    """Try the modules of the table, or those that are named; keep what came of each."""
    table = tomllib.loads(TABLE.read_text())
    tests = [one for one in sys.argv[1:] if one.startswith("tests/")]
    named = [one for one in sys.argv[1:] if one != "--left" and one not in tests]
    HERE.mkdir(exist_ok=True)
    for group in table["group"]:
        most = group.get("most", table["most"])
        chosen = [one for one in group["modules"] if one in named or not named]
        _copy()
        some = [one for one in chosen if _draw(one, table["seed"], most)]
        if some:
            began = time.monotonic()
            _session(some, tests or group["tests"])
            print(*map(_told, some), f"{time.monotonic() - began:.0f} s", sep="\n", flush=True)
    write_page([one for group in table["group"] for one in group["modules"]])
    return 0


def _draw(module: str, seed: int, most: int) -> bool:
    """Write the module with its mutants, and which of them to try; whether there are any."""
    made = _mutate(module)
    if LEFT:
        known = _known(module) | {"made": len(made)}
        drawn = [one for one, came in known["status"].items() if _is_left(known, one, came)]
    else:
        drawn = sorted(random.Random(seed).sample(made, min(most, len(made))))
        same = {one: SAME for one in drawn if _is_same(_diff(one, HERE))}
        known = {"made": len(made), "status": same, "survivors": {}}
        drawn = [one for one in drawn if one not in same]
    _result(module).write_text(json.dumps({**known, "drawn": drawn}))
    return bool(drawn)


def _diff(mutant: str, folder: Path) -> str:
    """What it changes in its function, line by line."""
    module, _, name = mutant.rpartition(".")
    functions = _functions(folder / _path(module))
    before = functions[name.rpartition("_mutmut_")[0] + "_mutmut_orig"]
    return "\n".join(list(unified_diff(before, functions[name], "", "", lineterm=""))[2:])


@cache
def _functions(path: Path) -> Mapping[str, Sequence[str]]:
    """The lines of each function in a mutated module, under the name that it had."""
    text = path.read_text()
    lines = text.splitlines()
    found: dict[str, Sequence[str]] = {}
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and "__mutmut_" in node.name:
            name = node.name.rpartition("__mutmut_")[0].rpartition("ǁ")[2].removeprefix("x_")
            first = lines[node.lineno - 1].replace(node.name, name)
            found[node.name] = [first, *lines[node.lineno : node.end_lineno]]
    return found


def _is_same(diff: str) -> bool:
    """Whether only the case of a text of SQL is another, which is the same statement."""
    lines = [line for line in diff.splitlines() if line.startswith(("+", "-"))]
    cased = {line[1:].casefold() for line in lines}
    return len(lines) == 2 and len(cased) == 1 and SQL.search(lines[0]) is not None


def _is_left(known: Mapping[str, Any], mutant: str, came: str) -> bool:
    change = known["survivors"].get(mutant)
    return came == UNREACHED or (came == SURVIVED and Change(*change) not in explained())


def write_page(modules: Sequence[str]) -> None:
    """What came of *modules*, in the page; survivors that nobody has explained are printed."""
    rows = ["| Module | Mutants | Tried | Noticed | Explained | Left | Reached by no test |"]
    rows.append("|---|---:|---:|---:|---:|---:|---:|")
    survivors: list[Change] = []
    total: Counter[str] = Counter()
    tried = [module for module in modules if _known(module)["status"]]
    for module in tried:
        known = _known(module)
        survivors += (found := [Change(*one) for one in known["survivors"].values()])
        counts = _counts(known, found)
        total.update(counts)
        rows.append(f"| {module} | {' | '.join(map(str, counts.values()))} |")
    rows.append(f"| **all** | {' | '.join(f'**{count}**' for count in total.values())} |")
    why = explained()
    print(*(f"not explained: {one}" for one in survivors if one not in why), sep="\n")
    told = reasons(sorted({*survivors} & why.keys()), why).partition("\n\n")[2]
    untried = ", ".join(f"`{module}`" for module in modules if module not in tried) or "none"
    head, _, rest = PAGE.read_text().partition(BEGIN)
    text = "\n".join(("", *rows, "", f"Not tried: {untried}.", "", "What survives:", "", told))
    PAGE.write_text(head + BEGIN + text + END + rest.partition(END)[2])


def _counts(known: Mapping[str, Any], survivors: Sequence[Change]) -> Mapping[str, int]:
    came = Counter(known["status"].values())
    left = sum(one not in explained() for one in survivors)
    return {
        "made": known["made"],
        "tried": came.total(),
        NOTICED: came[NOTICED],
        "explained": len(survivors) - left + came[SAME],
        "left": left,
        UNREACHED: came[UNREACHED],
    }


def _change(mutant: str, diff: str) -> Change:
    """What *mutant* changes; of several lines the first."""
    module, _, function = mutant.removeprefix("wfcore.rules.").partition(".x")
    lines = (line[1:].strip() for line in diff.splitlines() if line.startswith("+"))
    name = function.rpartition("__mutmut_")[0].strip("_").replace("ǁ", ".").strip(".")
    return Change(f"{module}.{name}", next(lines, ""))


def _copy() -> None:
    for name in COPIED:
        shutil.rmtree(HERE / name, ignore_errors=True)
        copy: Callable[..., Any] = shutil.copytree if Path(name).is_dir() else shutil.copy
        copy(name, HERE / name)


def _path(module: str) -> Path:
    return Path("src", *module.split(".")).with_suffix(".py")


def _result(module: str) -> Path:
    return HERE / f"{module}.json"


def _known(module: str) -> dict[str, Any]:
    empty: dict[str, Any] = {"made": 0, "status": {}, "survivors": {}}
    return json.loads(_result(module).read_text()) if _result(module).exists() else empty


def _mutate(module: str) -> list[str]:
    """Write the module with all its mutants; their names."""
    text = _path(module).read_text()
    mutated = mutate_file_contents(str(_path(module)), WRAPPED.sub(r"\2", text))
    code = mutated.code
    for wrapper, head in WRAPPED.findall(text):  # `mutmut` leaves out what is decorated
        inner = rf"^((?:@_mutmut_mutated.*\n)?{re.escape(head)})"
        code = re.sub(inner, rf"{wrapper}\n\1", code, count=1, flags=re.MULTILINE)
    (HERE / _path(module)).write_text(code)
    return sorted(f"{module}.{name}" for name in mutated.mutant_names)


def _session(modules: Sequence[str], tests: Sequence[str]) -> None:
    options = ("-q", "--no-header", "--override-ini=addopts=--import-mode=importlib")
    command = (sys.executable, "-m", "pytest", *options, "-p", "mutation.adapters", *tests)
    paths = os.pathsep.join(str((HERE / name).absolute()) for name in ("src", "tests"))
    more = {"PYTHONPATH": paths, "MUTATED": " ".join(modules), "LONGEST_S": str(LONGEST_S)}
    subprocess.run(
        command, cwd=HERE, env={**os.environ, **more, "MUTANT_UNDER_TEST": ""}, check=False
    )


def _told(module: str) -> str:
    known = _known(module)
    counts = Counter(known["status"].values())
    return f"{module}: {known['made']} made, {dict(counts)}"


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool:
    """Instead of running the tests once, run those of each mutant, several at a time."""
    modules = os.environ["MUTATED"].split()
    files = {module: Path(f"{module}.json") for module in modules}
    known = {module: json.loads(file.read_text()) for module, file in files.items()}
    drawn = [mutant for one in known.values() for mutant in one["drawn"]]
    reached = _reached(session)
    gc.collect()
    gc.freeze()  # or each fork would copy what it only looks at
    for mutant, came in _all_tried(session, drawn, reached):
        module = mutant.rpartition(".")[0]
        if came == UNREACHED and mutant in known[module]["survivors"]:
            continue  # only by those that take part now
        known[module]["survivors"].pop(mutant, None)
        known[module]["status"][mutant] = came
        if came == SURVIVED:
            diff = _diff(mutant, Path())
            known[module]["survivors"][mutant] = _change(mutant, diff)
            print(f"\n{mutant}\n{diff}", flush=True)
        elif came == UNREACHED:
            print(f"\nreached by no test: {mutant}", flush=True)
        files[module].write_text(json.dumps(known[module], indent=1))
    return True


def _reached(session: pytest.Session) -> Mapping[str, Mapping[str, float]]:
    """What tests come to a function, in how many seconds. Those that fail do not count."""
    found, kept = tempfile.mkstemp()
    os.close(found)
    os.waitpid(_forked(partial(_watch, session, Path(kept))), 0)
    reached: Mapping[str, Mapping[str, float]] = json.loads(Path(kept).read_text())
    Path(kept).unlink()
    return reached


def _watch(session: pytest.Session, kept: Path) -> None:
    met: set[str] = set()
    watched: Any = trampoline
    watched.get_mutant_under_test = lambda: "stats"  # here only, not in what the tests start
    watched.record_trampoline_hit = lambda name, caller=None: met.add(name)
    reached: dict[str, dict[str, float]] = {}
    for item, following in zip(session.items, (*session.items[1:], None), strict=True):
        met.clear()
        failed, began = session.testsfailed, time.monotonic()
        session.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        if session.testsfailed == failed:
            for name in met:
                reached.setdefault(name, {})[item.nodeid] = time.monotonic() - began
        else:
            print("fails without a mutant:", item.nodeid, flush=True)
    kept.write_text(json.dumps(reached))


def _all_tried(
    session: pytest.Session, mutants: Sequence[str], reached: Mapping[str, Mapping[str, float]]
) -> Iterator[tuple[str, str]]:
    items = {item.nodeid: item for item in session.items}
    running: dict[int, str] = {}
    for mutant in mutants:
        seconds = reached.get(mutant.rpartition("__mutmut_")[0], {})
        if not seconds:
            yield mutant, UNREACHED
            continue
        if len(running) >= int(os.environ.get("WORKERS", os.cpu_count() or 1)):
            yield _over(running)
        running[_forked(partial(_try, session, mutant, _some(seconds, items)))] = mutant
    while running:
        yield _over(running)


def _some(
    seconds: Mapping[str, float], items: Mapping[str, pytest.Item]
) -> Sequence[tuple[pytest.Item, int]]:
    """The quickest of each file first, at most `LONGEST_S`; each with how long it may take."""
    by_file: dict[str, list[str]] = {}
    for name in sorted(seconds, key=lambda name: seconds[name]):
        by_file.setdefault(name.partition("::")[0], []).append(name)
    names = [one for some in zip_longest(*by_file.values()) for one in some if one is not None]
    until = accumulate(seconds[name] for name in names)
    some = [name for name, s in zip(names, until, strict=True) if s <= LONGEST_S] or names[:1]
    return [(items[name], int(PATIENCE_S + 3 * seconds[name])) for name in some]


def _over(running: dict[int, str]) -> tuple[str, str]:
    pid, status = os.wait()
    with suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)  # what a test of its group has left behind
    shutil.rmtree(f"/tmp/m{pid}", ignore_errors=True)
    return running.pop(pid), SURVIVED if status == 0 else NOTICED


def _forked(work: Callable[[], None]) -> int:
    sys.stdout.flush()
    pid = os.fork()
    if pid == 0:
        try:
            os.setpgrp()
            work()
        finally:
            sys.stdout.flush()
            os._exit(0)
    return pid


def _try(session: pytest.Session, mutant: str, tests: Sequence[tuple[pytest.Item, int]]) -> None:
    """In a process of its own, with a folder of its own: 1 as soon as a test fails, or 0."""
    status = 3
    try:
        os.environ["MUTANT_UNDER_TEST"] = mutant
        os.environ["TMPDIR"] = tempfile.tempdir = f"/tmp/m{os.getpid()}"
        Path(tempfile.tempdir).mkdir()
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, 1)
        os.dup2(null, 2)
        for (test, most_s), following in zip(tests, (*tests[1:], (None, 0)), strict=True):
            signal.alarm(most_s)
            session.config.hook.pytest_runtest_protocol(item=test, nextitem=following[0])
            if session.testsfailed:
                break
        status = 1 if session.testsfailed else 0
    finally:
        os._exit(status)


if __name__ == "__main__":
    sys.exit(main())
