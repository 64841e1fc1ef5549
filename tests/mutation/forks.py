"""
A plugin of pytest: its tests on every mutant that was drawn, collected once, then one fork each.

One fork runs everything without a mutant and notes what test comes to what function, in how many
seconds of CPU time, which are the same on a busy machine. A mutant is tried on those tests that
come to the function it changes, `LONGEST_S` seconds of them in all: first those that killed another
mutant of it, then of its module, then the quickest of each file. `WORKERS` are tried at once.
"""

import gc
import json
import os
import shutil
import signal
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import accumulate, zip_longest
from pathlib import Path
from typing import Any

import pytest
from mutmut.mutation import trampoline

from mutation.mutants import KILLED, SURVIVED, UNREACHED, change, diff, keep, kept

CPU_S, WALL_S = 4, 20
"""Beyond three times what a test usually takes. One that takes longer has noticed."""

Seconds = Mapping[str, float]
"""Of CPU time that tests take, their processes included, by their ids."""


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool:
    """Instead of running the tests once, run those of each mutant, several at a time."""
    came = {module: kept(module) for module in os.environ["MUTATED"].split()}
    reached = _reached(session)
    gc.collect()
    gc.freeze()  # or each fork would copy what it only looks at
    drawn = [mutant for one in came.values() for mutant in one["drawn"]]
    for mutant, status in Trials(session, reached).of(drawn):
        module = mutant.rpartition(".")[0]
        if status == UNREACHED and mutant in came[module]["changes"]:
            continue  # only by the tests that take part now
        came[module]["status"][mutant] = status
        came[module]["changes"].pop(mutant, None)
        if status == SURVIVED:
            came[module]["changes"][mutant] = change(mutant)
        if status != KILLED:
            print(f"\n{status}: {mutant}\n{diff(mutant)}", flush=True)
        keep(module, came[module])
    return True


def _reached(session: pytest.Session) -> Mapping[str, Seconds]:
    """What tests come to a function, in how many seconds. Those that fail do not count."""
    found, kept = tempfile.mkstemp()
    os.close(found)
    os.waitpid(_forked(partial(_watch, session, Path(kept))), 0)
    reached: Mapping[str, Seconds] = json.loads(Path(kept).read_text())
    Path(kept).unlink()
    return reached


def _watch(session: pytest.Session, kept: Path) -> None:
    met: set[str] = set()
    watched: Any = trampoline
    watched.get_mutant_under_test = lambda: "stats"  # here only, not in what the tests start
    watched.record_trampoline_hit = lambda name, caller=None: met.add(name)
    reached: dict[str, dict[str, float]] = defaultdict(dict)
    for item, following in zip(session.items, (*session.items[1:], None), strict=True):
        met.clear()
        failed, began = session.testsfailed, _cpu_s()
        session.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        if session.testsfailed == failed:
            for name in met:
                reached[name][item.nodeid] = _cpu_s() - began
        else:
            print("fails without a mutant:", item.nodeid, flush=True)
    kept.write_text(json.dumps(reached))


def _cpu_s() -> float:
    """Of this process and of those that it has waited for."""
    return sum(os.times()[:4])


class Trials:
    """Mutants, each tried in a process of its own."""

    def __init__(self, session: pytest.Session, reached: Mapping[str, Seconds]) -> None:
        self._session = session
        self._reached = reached
        self._items = {item.nodeid: item for item in session.items}
        self._kills: dict[str, Counter[str]] = defaultdict(Counter)
        self._running: dict[int, str] = {}

    def of(self, mutants: Sequence[str]) -> Iterator[tuple[str, str]]:
        """Each with what came of it, as they end."""
        for mutant in mutants:
            seconds = self._reached.get(mutant.rpartition("__mutmut_")[0])
            if not seconds:
                yield mutant, UNREACHED
                continue
            if len(self._running) >= int(os.environ.get("WORKERS", os.cpu_count() or 1)):
                yield self._ended()
            tests = [(self._items[name], seconds[name]) for name in self._some(mutant, seconds)]
            self._running[_forked(partial(_try, self._session, mutant, tests))] = mutant
        while self._running:
            yield self._ended()

    def _some(self, mutant: str, seconds: Seconds) -> Sequence[str]:
        of_function, of_module = (self._kills[key] for key in _keys(mutant))
        names = sorted(_quickest_of_each_file(seconds), key=lambda name: -of_module[name])
        names.sort(key=lambda name: -of_function[name])
        until = accumulate(seconds[name] for name in names)
        longest = float(os.environ["LONGEST_S"])
        return [one for one, s in zip(names, until, strict=True) if s <= longest] or names[:1]

    def _ended(self) -> tuple[str, str]:
        pid, status = os.wait()
        with suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)  # what a test of its group has left behind
        mutant, folder = self._running.pop(pid), _folder(pid)
        with suppress(FileNotFoundError):
            for key in _keys(mutant):
                self._kills[key][(folder / "killer").read_text()] += 1
        shutil.rmtree(folder, ignore_errors=True)
        return mutant, SURVIVED if status == 0 else KILLED


def _keys(mutant: str) -> tuple[str, str]:
    """Its function and its module."""
    return mutant.rpartition("__mutmut_")[0], mutant.rpartition(".")[0]


def _quickest_of_each_file(seconds: Seconds) -> Sequence[str]:
    """The quickest of each file, then the next ones."""
    by_file: dict[str, list[str]] = defaultdict(list)
    for name in sorted(seconds, key=lambda name: seconds[name]):
        by_file[name.partition("::")[0]].append(name)
    return [one for some in zip_longest(*by_file.values()) for one in some if one is not None]


def _folder(pid: int) -> Path:
    """Its temporary files: short, for paths of sockets."""
    return Path(f"/tmp/m{pid}")


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


def _try(session: pytest.Session, mutant: str, tests: Sequence[tuple[pytest.Item, float]]) -> None:
    """1 as soon as a test fails, 0 if none does; a signal if one takes too long."""
    status, folder = 3, _folder(os.getpid())
    try:
        folder.mkdir()
        os.environ["MUTANT_UNDER_TEST"] = mutant
        os.environ["TMPDIR"] = tempfile.tempdir = str(folder)
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, 1)
        os.dup2(null, 2)
        following = [test for test, _ in tests[1:]]
        for (test, usual_s), after in zip(tests, (*following, None), strict=True):
            signal.setitimer(signal.ITIMER_PROF, CPU_S + 3 * usual_s)
            signal.alarm(int(WALL_S + 3 * usual_s))
            session.config.hook.pytest_runtest_protocol(item=test, nextitem=after)
            if session.testsfailed:
                (folder / "killer").write_text(test.nodeid)
                break
        status = 1 if session.testsfailed else 0
    finally:
        os._exit(status)
