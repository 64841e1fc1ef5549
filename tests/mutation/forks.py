"""
The tests on every mutant that `mutmut` has made: collected once, then one fork for each mutant.

A plugin of pytest for the folder `mutants` (which `mutmut run` makes, and in which it notes what
test comes to what function): `mutmut` itself starts a session for each mutant, which takes hours;
this takes minutes, on all processors. The statuses go where `mutmut` keeps its own; a
mutant that has one is not tried again.

    python -m mutation.forks [module ...]

Modules that are named (`held_time`) are tried alone.
"""

import gc
import json
import os
import signal
import sys
import tomllib
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import pytest

RESULTS = Path("src/wfcore/rules")
NO_TESTS, TIMED_OUT, BROKEN = 33, 36, 3
PATIENCE_S = 12
"""Beyond three times what the tests of a mutant usually take."""

Tests = Callable[[str], tuple[Sequence[pytest.Item], int]]


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool:
    """Instead of running the tests once, run those of each mutant."""
    noted = json.loads(Path("mutmut-stats.json").read_text())
    by_function, seconds = noted["tests_by_mangled_function_name"], noted["duration_by_test"]
    items = {item.nodeid: item for item in session.items}

    def tests(mutant: str) -> tuple[Sequence[pytest.Item], int]:
        """Those that come to what it changes, quick ones first; how many seconds they may take."""
        names = set(by_function.get(mutant.rpartition("__mutmut_")[0], ())) & items.keys()
        in_order = sorted(names, key=lambda name: (seconds.get(name, 0), name))
        usual_s = sum(seconds.get(name, 0) for name in names)
        return [items[name] for name in in_order], int(PATIENCE_S + 3 * usual_s)

    chosen = {f"{name}.py.meta" for name in sys.argv[1:]}
    files = [file for file in RESULTS.glob("*.meta") if file.name in chosen or not chosen]
    files.sort(key=lambda file: file.stat().st_size)
    gc.collect()
    gc.freeze()
    count = os.cpu_count() or 1
    workers = [_forked(partial(_try_all, session, files[n::count], tests)) for n in range(count)]
    for pid in workers:
        os.waitpid(pid, 0)
    return True


def _forked(work: Callable[[], None]) -> int:
    sys.stdout.flush()
    pid = os.fork()
    if pid == 0:
        try:
            work()
        finally:
            sys.stdout.flush()
            os._exit(0)
    return pid


def _try_all(session: pytest.Session, files: Sequence[Path], tests: Tests) -> None:
    for file in files:
        known = json.loads(file.read_text())
        statuses = known["exit_code_by_key"]
        for mutant in [mutant for mutant, status in statuses.items() if status is None]:
            statuses[mutant] = _status(session, mutant, *tests(mutant))
        file.write_text(json.dumps(known, indent=4))
        print(file.name, flush=True)


def _status(session: pytest.Session, mutant: str, tests: Sequence[pytest.Item], most_s: int) -> int:
    if not tests:
        return NO_TESTS
    pid = _forked(partial(_try, session, mutant, tests, most_s))
    _, status = os.waitpid(pid, 0)
    timed_out = os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGALRM
    return TIMED_OUT if timed_out else os.waitstatus_to_exitcode(status)


def _try(session: pytest.Session, mutant: str, tests: Sequence[pytest.Item], most_s: int) -> None:
    """In a process of its own: 1 as soon as a test fails, 0 where none does."""
    status = BROKEN
    try:
        signal.alarm(most_s)
        os.environ["MUTANT_UNDER_TEST"] = mutant
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


def main() -> int:
    """Run the tests that `[tool.mutmut]` selects on every mutant without a status."""
    chosen = tomllib.loads(Path("pyproject.toml").read_text())["tool"]["mutmut"]
    os.chdir("mutants")
    os.environ["MUTANT_UNDER_TEST"] = ""
    sys.path[:0] = ["src", "tests"]
    options = (*chosen["pytest_add_cli_args"], "-p", "mutation.forks")
    return pytest.main([*options, *chosen["pytest_add_cli_args_test_selection"]])


if __name__ == "__main__":
    sys.exit(main())
