"""
A plugin of pytest: its tests on every mutant that was drawn, collected once, then in forks.

Everything runs once without a mutant, which shows what test comes to what function, in how many
seconds of CPU time, which are the same on a busy machine. A mutant is tried on those tests that
come to the function it changes, `LONGEST_S` seconds of them in all: first the one that killed it
when it was last tried, then those that kill most of its neighbours for the time they take.

A fork tries `TOGETHER` mutants, one after the other. More than one are for tests that keep nothing
in their process: these run first in this one, so that what they make at their first use is made
once. At its end such a fork tries without a mutant what has killed; if that fails, each mutant is
tried alone. `WORKERS` forks run at once.
"""

import gc
import json
import os
import resource
import shutil
import signal
import sys
import tempfile
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from itertools import accumulate
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis.internal.conjecture import providers
from mutmut.mutation import trampoline

from tests.proofs.mutation.groups import digest
from tests.proofs.mutation.mutants import (
    FOLDER,
    KILLED,
    LATE,
    SURVIVED,
    UNREACHED,
    change,
    diff,
    keep,
    kept,
)
from tests.proofs.mutation.switch import Place, import_anew, install, places

WALL_S = 60
"""Beyond ten times what a test usually takes; of CPU time `LATE_S` beyond three times that."""
EARLY_S = 2
PLAIN = ("--override-ini=addopts=--import-mode=importlib", "-p", "no:cacheprovider")
MEMORY = 4 << 30
SHARE, CERTAIN = 0.3, 2
"""Of mutants a test is thought to kill before it was tried, and on how many it counts as tried."""

Seconds = Mapping[str, float]
"""Of CPU time that tests take, their processes included, by their ids."""

install()
drawing: Any = providers  # or Hypothesis would read all the mutants for constants to draw
drawing._get_local_constants = drawing.Constants


class End(NamedTuple):
    """What came of a mutant, what was tried on it, and which test failed, if one did."""

    mutant: str
    status: str
    tried: Sequence[str] = ()
    killer: str = ""


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool:
    """Instead of running the tests once, run those of each mutant, several at a time."""
    came = {module: kept(module) for module in os.environ["MUTATED"].split()}
    together = int(os.environ["TOGETHER"])
    placed = places(came)
    reached = _reached(session, placed.values(), here=together > 1)
    caches = [one for one in gc.get_objects() if _caches_rules(one)]
    gc.collect()
    gc.freeze()  # or each fork would copy what it only looks at
    killers = {mutant: name for one in came.values() for mutant, name in one["killers"].items()}
    drawn = [mutant for one in came.values() for mutant in one["drawn"]]
    for end in Trials(session, placed, reached, killers, caches).of(drawn, together):
        module = end.mutant.rpartition(".")[0]
        _note(came[module], end)
        keep(module, came[module])
    return True


def _note(came: dict[str, Any], end: End) -> None:
    if end.status == UNREACHED and end.mutant in came["changes"]:
        return  # only by the tests that take part now
    came["status"][end.mutant] = end.status
    came["changes"].pop(end.mutant, None)
    if end.killer:
        came["killers"][end.mutant] = end.killer
    if end.status == SURVIVED:
        came["changes"][end.mutant] = change(end.mutant)
    if end.status in (SURVIVED, UNREACHED):
        print(f"\n{end.status}: {end.mutant}\n{diff(end.mutant)}", flush=True)


def _caches_rules(one: Any) -> bool:
    module = getattr(one, "__module__", None) or ""
    cached = type(one).__name__ == "_lru_cache_wrapper"
    return cached and module.startswith("wfcore") and not module.startswith("wfcore.testing")


def _reached(
    session: pytest.Session, placed: Collection[Place], here: bool
) -> Mapping[str, Seconds]:
    """
    What tests come to a function, in how many seconds. Those that fail do not count. It is kept in
    `REACHED`, and tests of files that are as they were are not watched again, unless there are
    functions that there were not.
    """
    kept = Path(os.environ["REACHED"])
    functions = sorted(place.name for place in placed)
    before, known = json.loads(kept.read_text()) if kept.exists() else ((), {})
    known = known if {*functions} <= {*before} else {}
    digests = {file: digest([Path(file)]) for file in {*map(_file_of, session.items)}}
    same = {file for file, text in digests.items() if file in known and known[file][0] == text}
    new = [one for one in session.items if _file_of(one) not in same]
    fresh = kept.with_suffix(".new")
    watch = partial(_write_reached, session, new, placed, fresh)
    if here:
        with _silence():
            watch()
    else:
        os.waitpid(_forked(watch), 0)
    seen = json.loads(fresh.read_text())
    known |= {file: [digests[file], *seen[file]] for file in {*map(_file_of, new)}}
    kept.write_text(json.dumps((functions, known)))
    reached: dict[str, dict[str, float]] = defaultdict(dict)
    for file in digests:
        print(*(f"fails without a mutant: {one}" for one in known[file][2]), sep="\n", flush=True)
        for name, tests in known[file][1].items():
            reached[name] |= tests
    return reached


def _file_of(item: pytest.Item) -> str:
    return item.nodeid.partition("::")[0]


def _write_reached(
    session: pytest.Session, items: Sequence[pytest.Item], placed: Collection[Place], file: Path
) -> None:
    file.write_text(json.dumps(_watch(session, items, placed)))


def _watch(
    session: pytest.Session, items: Sequence[pytest.Item], placed: Collection[Place]
) -> Mapping[str, tuple[Mapping[str, Seconds], Sequence[str]]]:
    """By file: what its tests come to in how many seconds, and which of them fail."""
    seen: dict[str, tuple[dict[str, dict[str, float]], list[str]]] = {}
    met: set[str] = set()
    for place in placed:
        place.watch(met)
    watched: Any = trampoline
    before = watched.get_mutant_under_test
    watched.get_mutant_under_test = lambda: "stats"  # here only, not in what the tests start
    watched.record_trampoline_hit = lambda name, caller=None: met.add(name)
    for item, following in zip(items, (*items[1:], None), strict=False):  # also for no items
        met.clear()
        failed, began = session.testsfailed, _cpu_s()
        session.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        reached, failing = seen.setdefault(_file_of(item), (defaultdict(dict), []))
        if session.testsfailed == failed:
            for name in met:
                reached[name][item.nodeid] = _cpu_s() - began
        else:
            failing.append(item.nodeid)
    for place in placed:
        place.become()
    watched.get_mutant_under_test = before
    return seen


def _cpu_s() -> float:
    """Of this process and of those that it has waited for."""
    some = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(one.ru_utime + one.ru_stime for one in some)


class Trials:
    """Mutants, tried in forks."""

    def __init__(
        self,
        session: pytest.Session,
        placed: Mapping[str, Place],
        reached: Mapping[str, Seconds],
        killers: Mapping[str, str],
        caches: Sequence[Any],
    ) -> None:
        self._session = session
        self._reached = reached
        self._killers = killers
        self._caches = caches
        self._items = {item.nodeid: item for item in session.items}
        self._places = placed
        self._tries: dict[str, Counter[str]] = defaultdict(Counter)
        self._kills: dict[str, Counter[str]] = defaultdict(Counter)
        self._running: dict[int, Sequence[str]] = {}

    def of(self, mutants: Sequence[str], together: int) -> Iterator[End]:
        """Each with what came of it, as they end."""
        reached = [one for one in mutants if self._is_reached(_function(one))]
        yield from (End(one, UNREACHED) for one in mutants if not self._is_reached(_function(one)))
        self._waiting = deque(
            reached[first : first + together] for first in range(0, len(reached), together)
        )
        while self._waiting or self._running:
            if self._waiting and len(self._running) < int(os.environ.get("WORKERS", 1)):
                some = self._waiting.popleft()
                self._running[_forked(partial(self._try_all, some))] = some
            else:
                yield from self._ended()

    def _is_reached(self, function: str) -> bool:
        place = self._places.get(function)
        return function in self._reached or (place is not None and place.early)

    def _ended(self) -> Iterator[End]:
        pid, status = os.wait()
        with suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)  # what a test of its group has left behind
        some, folder = self._running.pop(pid), _folder(pid)
        ends = [End(*json.loads(line)) for line in _lines(folder / "ends")]
        last = "".join(_lines(folder / "test"))
        shutil.rmtree(folder, ignore_errors=True)
        code = os.waitstatus_to_exitcode(status)
        if code == DIRTY or (code and len(ends) == len(some)):
            self._waiting.extendleft([one] for one in reversed(some))
            return
        if code:
            print(f"ended with {code}: {some[len(ends)]}", flush=True)
            ends.append(End(some[len(ends)], LATE, (last,), last))
            if rest := some[len(ends) :]:
                self._waiting.appendleft([*rest])
        for end in ends:
            self._learn(end)
            yield end

    def _try_all(self, mutants: Sequence[str]) -> None:
        """In a fork: each mutant, its end as a line of a file. A signal ends it if one is late."""
        folder = _folder(os.getpid())
        folder.mkdir()
        os.environ["TMPDIR"] = tempfile.tempdir = str(folder)
        resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
        with _silence(), (folder / "ends").open("w") as ends:
            killed: set[str] = set()
            for mutant in mutants:
                end = self._try(mutant)
                self._learn(end)
                killed |= {end.killer} & self._items.keys()
                print(json.dumps(end), file=ends, flush=True)
            if len(mutants) > 1 and any(self._fails(one, WALL_S) for one in killed):
                os._exit(DIRTY)

    def _try(self, mutant: str) -> End:
        place = self._places.get(_function(mutant))
        os.environ["MUTANT_UNDER_TEST"] = mutant
        if place:
            place.become(mutant.rpartition(".")[2])
        for cache in self._caches:
            cache.cache_clear()
        tried: list[str] = []
        try:
            for name, seconds in self._some(mutant):
                tried.append(name)
                if self._fails(name, seconds):
                    return End(mutant, KILLED, tried, name)
            if place and place.early and (file := self._breaks(mutant)):
                return End(mutant, KILLED, tried, file)
            return End(mutant, SURVIVED, tried)
        finally:
            os.environ["MUTANT_UNDER_TEST"] = ""
            if place:
                place.become()

    def _fails(self, name: str, usual_s: float) -> bool:
        signal.setitimer(signal.ITIMER_PROF, float(os.environ["LATE_S"]) + 3 * usual_s)
        (_folder(os.getpid()) / "test").write_text(f"{name}\n")
        signal.alarm(int(WALL_S + 10 * usual_s))
        self._session.testsfailed = 0
        hook = self._session.config.hook
        hook.pytest_runtest_protocol(item=self._items[name], nextitem=None)
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.alarm(0)
        return self._session.testsfailed > 0

    def _breaks(self, mutant: str) -> str:
        """The test file that fails if modules are imported with the mutant; empty if none does."""
        module = _keys(mutant)[1]
        seconds = {
            name: s
            for function, tests in self._reached.items()
            if function.startswith(f"{module}.")
            for name, s in tests.items()
        }
        names = sorted(seconds, key=lambda one: -self._worth(mutant, one, seconds))
        until = accumulate(seconds[name] for name in names)
        some = [one for one, s in zip(names, until, strict=True) if s <= EARLY_S]
        if not some:
            return ""
        ended = _folder(os.getpid()) / "afresh"
        pid = _forked(partial(_run_afresh, some, ended))
        if os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) >= 0:
            return "".join(_lines(ended))
        return names[0]

    def _some(self, mutant: str) -> Sequence[tuple[str, float]]:
        """The tests to try, those first that are worth their time, with what they usually take."""
        seconds = self._reached.get(_function(mutant), {})
        last = self._killers.get(mutant)
        names = sorted(seconds, key=lambda one: (one != last, -self._worth(mutant, one, seconds)))
        until = accumulate(seconds[name] for name in names)
        longest = float(os.environ["LONGEST_S"])
        some = [one for one, s in zip(names, until, strict=True) if s <= longest] or names[:1]
        return [(one, seconds[one]) for one in some]

    def _worth(self, mutant: str, name: str, seconds: Seconds) -> float:
        """How likely the test is to kill, for the time it takes."""
        share = SHARE
        for key in reversed(_keys(mutant)):
            share = (self._kills[key][name] + CERTAIN * share) / (self._tries[key][name] + CERTAIN)
        return share / (seconds[name] + 0.005)

    def _learn(self, end: End) -> None:
        for key in _keys(end.mutant):
            self._tries[key].update(end.tried)
            self._kills[key].update([end.killer] if end.killer else ())


def _function(mutant: str) -> str:
    return mutant.rpartition("__mutmut_")[0]


def _keys(mutant: str) -> tuple[str, str, str]:
    """Its function, its module, and any."""
    return _function(mutant), mutant.rpartition(".")[0], ""


def _lines(file: Path) -> Sequence[str]:
    """Those that are whole."""
    text = file.read_text() if file.exists() else ""
    return text.rpartition("\n")[0].splitlines()


def _folder(pid: int) -> Path:
    """Its temporary files: short, for paths of sockets."""
    return Path(os.environ["FOLDERS"], f"m{pid}")


def _run_afresh(names: Sequence[str], ended: Path) -> None:
    """Until the first of *names* fails, which is written to a file, with modules imported anew."""
    resource.setrlimit(resource.RLIMIT_CPU, (6 * EARLY_S, 6 * EARLY_S))
    import_anew(FOLDER)
    failed: list[str] = []

    class First:
        def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
            failed.extend([report.nodeid] if report.failed else ())

        def pytest_collectreport(self, report: pytest.CollectReport) -> None:
            failed.extend([report.nodeid] if report.failed else ())

    code = pytest.main(["-x", "-q", "--tb=no", "--assert=plain", *PLAIN, *names], [First()])
    if code in BROKEN_TESTS:
        ended.write_text(f"{[*failed, names[0]][0]}\n")


def _forked(work: Callable[[], object]) -> int:
    sys.stdout.flush()
    pid = os.fork()
    if pid == 0:
        status = BROKEN
        try:
            os.setpgrp()
            work()
            status = 0
        finally:
            sys.stdout.flush()
            os._exit(status)
    return pid


@contextmanager
def _silence() -> Iterator[None]:
    """Nothing of what tests and pytest write."""
    null = os.open(os.devnull, os.O_WRONLY)
    before = [os.dup(one) for one in (1, 2)]
    for one in (1, 2):
        os.dup2(null, one)
    try:
        yield
    finally:
        sys.stdout.flush()
        for one, was in zip((1, 2), before, strict=True):
            os.dup2(was, one)


BROKEN_TESTS = 1, 2, 4  # pytest's: tests fail, or are not collected, or a conftest is not imported
BROKEN, DIRTY = 3, 4
"""How a fork ends in which the rest broke, and one in which a mutant left something behind."""
