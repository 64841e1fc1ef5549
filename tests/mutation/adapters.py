"""
Mutants of the adapters: a sample of each module's, tried on the tests that `adapters.toml` names.

The adapters are many, and their tests slow: they open files, sockets and processes. So a module
gives at most `most` mutants, drawn with a fixed seed, and each is tried only on those tests of its
module that come to the function it changes. A session of pytest is collected for each module, and
forked: once to see what test comes to what function, then for each mutant.

    python -m mutation.adapters [module ...]
"""

import json
import os
import random
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
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from mutmut.mutation import trampoline
from mutmut.mutation.diff_apply import get_diff_for_mutant
from mutmut.mutation.file_mutation import mutate_file_contents

from mutation.page import PAGE, Change, explained

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
NOTICED, SURVIVED, UNREACHED = "noticed", "survived", "unreached"
PATIENCE_S, LONGEST_S = 10, 90
"""Beyond three times what the tests of a mutant usually take; at most. A later one has noticed."""


class Plan(NamedTuple):
    """What a session is to try: a module, and the mutants drawn of it."""

    module: str
    mutants: Sequence[str]


def main() -> int:
    """Try the modules of the table, or those that are named; keep what came of each."""
    table = tomllib.loads(TABLE.read_text())
    chosen = [one for one in table["module"] if one["name"] in sys.argv[1:] or not sys.argv[1:]]
    _copy()
    for one in chosen:
        made = _mutate(one["name"])
        drawn = random.Random(table["seed"]).sample(made, min(table["most"], len(made)))
        _result(one["name"]).write_text(json.dumps({"made": len(made), "drawn": sorted(drawn)}))
    for one in chosen:
        began = time.monotonic()
        _session(one["name"], one["tests"])
        print(_told(one["name"]), f"{time.monotonic() - began:.0f} s", flush=True)
    write_page([one["name"] for one in table["module"]])
    return 0


def write_page(modules: Sequence[str]) -> None:
    """What came of *modules*, in the page; survivors that nobody has explained are printed."""
    rows = ["", "| Module | Mutants | Tried | Noticed | Explained | Left | Reached by no test |"]
    rows.append("|---|---:|---:|---:|---:|---:|---:|")
    for module in modules:
        known = json.loads(_result(module).read_text()) if _result(module).exists() else {}
        status = known.get("status", {})
        if not status:
            rows.append(f"| {module} | | not tried | | | | |")
            continue
        came = Counter(status.values())
        survivors = [Change(*one) for one in known["survivors"]]
        left = [one for one in survivors if one not in explained()]
        print(*(f"not explained: {one.rule}: {one.line}" for one in left), sep="\n")
        why = came[SURVIVED] - len(left)
        counts = (known["made"], len(status), came[NOTICED], why, len(left), came[UNREACHED])
        rows.append(f"| {module} | {' | '.join(map(str, counts))} |")
    head, _, rest = PAGE.read_text().partition(BEGIN)
    PAGE.write_text(head + BEGIN + "\n".join(rows) + "\n\n" + END + rest.partition(END)[2])


def _change(mutant: str, diff: str) -> Change:
    """What *mutant* changes; of several lines the first."""
    module, _, function = mutant.partition(".x")
    lines = (line[1:].strip() for line in diff.splitlines()[2:] if line.startswith("+"))
    name = function.rpartition("__mutmut_")[0].strip("_").replace("ǁ", ".").strip(".")
    return Change(f"{module}.{name}", next(lines, ""))


def _copy() -> None:
    HERE.mkdir(exist_ok=True)
    for name in COPIED:
        shutil.rmtree(HERE / name, ignore_errors=True)
        copy: Callable[..., Any] = shutil.copytree if Path(name).is_dir() else shutil.copy
        copy(name, HERE / name)


def _path(module: str) -> Path:
    return Path("src", *module.split(".")).with_suffix(".py")


def _result(module: str) -> Path:
    return HERE / f"{module}.json"


def _mutate(module: str) -> list[str]:
    """Write the module with all its mutants; their names."""
    mutated = mutate_file_contents(str(_path(module)), _path(module).read_text())
    (HERE / _path(module)).write_text(mutated.code)
    return sorted(f"{module}.{name}" for name in mutated.mutant_names)


def _session(module: str, tests: Sequence[str]) -> None:
    options = ("-q", "--no-header", "--override-ini=addopts=--import-mode=importlib")
    command = (sys.executable, "-m", "pytest", *options, "-p", "mutation.adapters", *tests)
    paths = os.pathsep.join(str((HERE / name).absolute()) for name in ("src", "tests"))
    more = {"PYTHONPATH": paths, "MUTATED": module, "MUTANT_UNDER_TEST": ""}
    subprocess.run(command, cwd=HERE, env={**os.environ, **more}, check=False)


def _told(module: str) -> str:
    known = json.loads(_result(module).read_text())
    statuses = list(known.get("status", {}).values())
    counts = ", ".join(f"{statuses.count(one)} {one}" for one in (NOTICED, SURVIVED, UNREACHED))
    return f"{module}: {known['made']} made, {len(statuses)} tried, {counts};"


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool:
    """Instead of running the tests once, run those of each mutant, two at a time."""
    file = Path(f"{os.environ['MUTATED']}.json")
    known = json.loads(file.read_text())
    reached = _reached(session)
    source = _path(os.environ["MUTATED"]).read_text()
    status: dict[str, str] = {}
    survivors: list[Change] = []
    for mutant, came in _all_tried(session, known["drawn"], reached):
        status[mutant] = came
        if came == SURVIVED:
            diff = get_diff_for_mutant(mutant, source, "")
            survivors.append(_change(mutant, diff))
            print(f"{mutant}\n{diff}", flush=True)
        file.write_text(json.dumps({**known, "status": status, "survivors": survivors}, indent=1))
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
        if len(running) == (os.cpu_count() or 1):
            yield _over(running)
        tests = [items[name] for name in sorted(seconds, key=lambda name: seconds[name])]
        most_s = min(LONGEST_S, int(PATIENCE_S + 3 * sum(seconds.values())))
        running[_forked(partial(_try, session, mutant, tests, most_s))] = mutant
    while running:
        yield _over(running)


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


def _try(session: pytest.Session, mutant: str, tests: Sequence[pytest.Item], most_s: int) -> None:
    """In a process of its own, with a folder of its own: 1 as soon as a test fails, or 0."""
    status = 3
    try:
        signal.alarm(most_s)
        os.environ["MUTANT_UNDER_TEST"] = mutant
        os.environ["TMPDIR"] = tempfile.tempdir = f"/tmp/m{os.getpid()}"
        Path(tempfile.tempdir).mkdir()
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, 1)
        os.dup2(null, 2)
        for test, following in zip(tests, (*tests[1:], None), strict=True):
            session.config.hook.pytest_runtest_protocol(item=test, nextitem=following)
            if session.testsfailed:
                break
        status = 1 if session.testsfailed else 0
    finally:
        os._exit(status)


if __name__ == "__main__":
    sys.exit(main())
