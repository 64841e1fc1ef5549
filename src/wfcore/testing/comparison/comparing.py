"""
A store beside plain dicts: the same script for both, every answer compared.

    class MyComparison(StoreComparison):
        async def open(self, folder):
            return await MyStore.open(folder / "my.db", now=self.clock.service_now)

    TestMyStore = MyComparison.TestCase

Hypothesis writes the script: units that read, put, delete and count, side by side, with fresh
versions and stale ones; commits and units left without; claims, leases, purges; every list.
What fails is shrunk to the shortest script that still does. A store that cannot be given its
time is compared as well; then no lease of a script ends.
"""

import asyncio
import tempfile
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

from attrs import define, evolve, field
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule

from wfcore.errors import Stale
from wfcore.model.access import Login, LoginLink, Session, Share
from wfcore.model.execution import Execution, ExecutionStatus
from wfcore.model.page import Page
from wfcore.model.trigger import Timer, Trigger
from wfcore.model.webhook import Webhook
from wfcore.model.workflow import Workflow
from wfcore.ports.store import Slots, Store
from wfcore.testing.comparison.answers import abandoned
from wfcore.testing.comparison.model import (
    Change,
    Count,
    Delete,
    Purge,
    Put,
    State,
    after,
    claimed,
    key_of,
)
from wfcore.testing.comparison.records import (
    GOING,
    RECORDS,
    RUNNABLE,
    ids,
    moments,
    words,
    workers,
)
from wfcore.testing.comparison.reporting import BoundedTestCase, tell_first
from wfcore.testing.comparison.requests import ASKS, Ask
from wfcore.testing.contracts.keeping import collect
from wfcore.testing.fakes import ManualClock
from wfcore.time import HOUR, DurationMs, EpochMs, later

LEASES = st.integers(0, 3)
"""How long leases are, in milliseconds: as long as a few steps of the clock."""
RACERS = ("left", "right")
LOST = Ask(
    "executions.abandoned",
    lambda view: view.executions.abandoned(3),
    lambda state: abandoned(state, 3),
)
"""Whose worker has let the lease end: what depends on leases."""
COMPARED = (LoginLink, Workflow, Webhook, Trigger, Timer)
"""What is deleted by version; sessions, logins and shares are deleted whatever they are."""
VERSIONS = st.sampled_from(("seen", "seen", "seen", "new", "old", "ahead"))
"""From which version a record is put: the one that the unit sees, or another."""

_units = st.sampled_from(("first", "second"))
_open_units = st.runner().flatmap(lambda script: st.sampled_from(sorted(script.units)))


@define(eq=False)
class OpenUnit:
    """A unit of work in a task of its own, as in a use case, and what it has collected so far."""

    orders: "asyncio.Queue[Any]"
    task: "asyncio.Task[None]"
    began: int
    changes: list[Change] = field(factory=list)

    async def do(self, deed: Callable[[Any], Awaitable[Any]]) -> Any:
        """Let the unit's own task do it."""
        done: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        await self.orders.put((deed, done))
        await asyncio.wait((done, self.task), return_when=asyncio.FIRST_COMPLETED)
        if self.task.done():
            self.task.result()  # a store that broke breaks the script
        return done.result()

    async def leave(self) -> None:
        """End the task, and with it the unit."""
        await self.orders.put(None)
        await self.task


async def _serve(store: Store, orders: "asyncio.Queue[Any]") -> None:
    async with store.unit() as unit:
        while (order := await orders.get()) is not None:
            deed, done = order
            try:
                done.set_result(await deed(unit))
            except Stale as stale:
                done.set_exception(stale)


class StoreComparison(RuleBasedStateMachine):
    """
    Subclasses implement `open`: a new, empty store, whose files (if any) are in the given folder
    and whose time is that of `clock` if it can be injected.

    The first failure is reported at once; then Hypothesis shrinks it for at most half a minute.
    """

    TestCase = BoundedTestCase()

    async def open(self, folder: Path) -> Store:
        raise NotImplementedError(f"{type(self).__name__}.open must give a new, empty store")

    def __init__(self) -> None:
        super().__init__()
        self._folder = tempfile.TemporaryDirectory()
        self._loop = asyncio.Runner()
        self.clock = ManualClock()
        self.store = self._loop.run(self.open(Path(self._folder.name)))
        for worker in ("w1", "w2"):
            self._loop.run(self.store.enlist(worker))
        self.past = [State(self.store.now)]
        self._least_lease = 0 if self._moves(1) else HOUR
        self.units: dict[str, OpenUnit] = {}

    @property
    def state(self) -> State:
        """The committed state."""
        return self.past[-1]

    def teardown(self) -> None:
        tell_first(type(self))
        for unit in list(self.units.values()):
            self._loop.run(unit.leave())
        self._loop.run(self.store.close())
        self._loop.close()
        self._folder.cleanup()

    # Units

    @rule(records=st.lists(RECORDS, min_size=1, max_size=3))
    def keep(self, records: list[Any]) -> None:
        """A unit that runs alone and writes current versions."""
        self._begin("alone")
        for record in records:
            self._put("alone", record, "seen")
        self._commit("alone")

    @rule(record=RECORDS, known=st.booleans())
    def race(self, record: Any, known: bool) -> None:
        """Two units put the same record from the version that both have read: one of them loses."""
        if known:
            self.keep([record])
        for unit in RACERS:
            self._begin(unit)
            self._put(unit, record, "seen")
        for unit in RACERS:
            self._commit(unit)

    @rule(unit=_units, record=RECORDS, version=VERSIONS)
    def put(self, unit: str, record: Any, version: str) -> None:
        """Put or append a record."""
        self._begin(unit)
        self._put(unit, record, version)

    @rule(unit=_units, id=ids, status=st.sampled_from(ExecutionStatus))
    def move(self, unit: str, id: str, status: ExecutionStatus) -> None:
        """Put an execution with another status; its worker keeps it while it is RUNNING."""
        self._begin(unit)
        run = self._seen(unit).get(Execution, id)
        if run is not None:
            worker = run.worker if status is ExecutionStatus.RUNNING else None
            self._put(unit, evolve(run, status=status, worker=worker), "seen")

    @rule(unit=_units, record=GOING)
    def delete(self, unit: str, record: Any) -> None:
        """Delete by key or by the version that the unit sees, or purge."""
        self._begin(unit)
        kind, key = type(record), key_of(record)
        if kind is Execution:
            self._collect(unit, Purge(*key), lambda kept: kept.purge(*key))
        elif kind in (Session, Login, Share):
            self._collect(unit, Delete(kind, key), lambda kept: kept.discard(kind, *key))
        elif kind in COMPARED:
            gone = evolve(record, version=self._version(unit, record, "seen"))
            self._collect(unit, Delete(kind, key, gone.version), lambda kept: kept.delete(gone))

    @rule(unit=_units, webhook=ids, status=st.sampled_from((202, 401)), at=moments)
    def tally(self, unit: str, webhook: str, status: int, at: EpochMs) -> None:
        """Count one webhook answer."""
        self._begin(unit)
        said = (webhook, "2023-11-14", status, at)
        self._collect(unit, Count(*said), lambda kept: kept.tally(*said))

    @precondition(lambda self: self.units)
    @rule(unit=_open_units, ask=ASKS)
    def ask_unit(self, unit: str, ask: Ask) -> None:
        """A unit sees its own writes over a state that existed at some time since it began."""
        open = self.units[unit]
        states = [after(state, open.changes) for state in self.past[open.began :]]
        try:
            answer = _plain(self._loop.run(open.do(ask.ask)))
        except Stale:
            assert not all(fits for _, fits in states), f"{ask}: Stale, and nobody was faster"
            return
        if any(fits for _, fits in states):
            allowed = [_plain(ask.answer(state)) for state, _ in states]
            assert answer in allowed, f"{ask}: {answer}, expected {allowed[-1]}"

    @precondition(lambda self: self.units)
    @rule(unit=_open_units, commits=st.sampled_from((True, True, True, False)))
    def end(self, unit: str, commits: bool) -> None:
        """Commit a unit (all of it, or `Stale` and nothing), or leave it (nothing)."""
        if commits:
            self._commit(unit)
        else:
            self._loop.run(self.units.pop(unit).leave())

    # The store

    @rule(ask=ASKS)
    def ask(self, ask: Ask) -> None:
        """A view sees the committed state."""

        async def look() -> Any:
            async with self.store.view() as view:
                return await ask.ask(view)

        answer, expected = _plain(self._loop.run(look())), _plain(ask.answer(self.state))
        assert answer == expected, f"{ask}: {answer}, expected {expected}"

    @precondition(lambda self: self.state.all(Execution))
    @rule(
        worker=workers,
        lease=LEASES,
        places=st.integers(1, 4),
        limit=st.integers(1, 3),
        which=st.none() | st.sets(ids),
        able=st.none() | st.sets(words),
    )
    def claim(
        self,
        worker: str,
        lease: int,
        places: int,
        limit: int,
        which: set[str] | None,
        able: set[str] | None,
    ) -> None:
        """A worker claims due executions: any, or only some that it is able to run."""
        slots, lease_ms, now = Slots(places), self._lease(lease), self.store.now()
        deed = self.store.claim(worker, lease_ms, slots, limit, ids=which, able=able)
        got = self._loop.run(deed)
        state, _ = after(self.state, ())
        claimed(state, worker, now, later(now, lease_ms), slots, limit, got, which, able)
        self.past.append(state)

    @precondition(lambda self: any(run.worker for run in self.state.all(Execution)))
    @rule(worker=workers, ids=st.sets(ids), lease=LEASES)
    def extend(self, worker: str, ids: set[str], lease: int) -> None:
        """A worker extends its leases."""
        until = later(self.store.now(), self._lease(lease))
        kept = self._loop.run(self.store.extend(worker, ids, self._lease(lease)))
        state, _ = after(self.state, ())
        mine = (run for run in state.all(Execution) if run.worker == worker and run.id in ids)
        held = {run.id: run.due_at for run in mine}
        assert kept == held, f"extended {sorted(kept)}, held are {sorted(held)}"
        state.leases.update(dict.fromkeys(held, until))
        self.past.append(state)

    @rule(by=st.integers(1, 3))
    def pass_time(self, by: int) -> None:
        """Time passes: leases expire and work becomes due."""
        self._moves(by)

    @rule(run=RUNNABLE, worker=workers, then=st.lists(st.none() | workers, min_size=1, max_size=2))
    def hand_over(self, run: Execution, worker: str, then: list[str | None]) -> None:
        """A worker claims an execution and releases it; the next holder has no lease yet."""
        self.keep([run])
        self.claim(worker=worker, lease=3, places=4, limit=3, which=None, able=None)
        for holder in then:
            held = self.state.get(Execution, run.id)
            if held is not None:
                self.keep([evolve(held, worker=holder)])
                self.ask(LOST)

    # Inside

    def _moves(self, by: int) -> bool:
        """Whether the store uses the time of `clock`, which can be advanced."""
        until = self.store.now() + by
        self.clock.advance(by)
        return self.store.now() == until

    def _lease(self, ms: int) -> DurationMs:
        return DurationMs(self._least_lease + ms)

    def _begin(self, unit: str) -> None:
        """Open that unit unless it is open."""

        async def begin() -> OpenUnit:
            orders: asyncio.Queue[Any] = asyncio.Queue()
            task = asyncio.create_task(_serve(self.store, orders))
            return OpenUnit(orders, task, len(self.past) - 1)

        if unit not in self.units:
            self.units[unit] = self._loop.run(begin())

    def _put(self, unit: str, record: Any, version: str) -> None:
        if hasattr(record, "version"):
            record = evolve(record, version=self._version(unit, record, version))
        self._collect(unit, Put(record), lambda kept: collect(kept, record))

    def _collect(self, unit: str, change: Change, deed: Callable[[Any], None]) -> None:
        async def do(kept: Any) -> None:
            deed(kept)

        open = self.units[unit]
        self._loop.run(open.do(do))
        open.changes.append(change)

    def _commit(self, unit: str) -> None:
        open = self.units.pop(unit)
        state, fits = after(self.state, open.changes)

        async def commit() -> bool:
            try:
                await open.do(lambda kept: kept.commit())
            except Stale:
                return False
            finally:
                await open.leave()
            return True

        stored = self._loop.run(commit())
        end = "stored" if stored else "Stale"
        assert stored == fits, f"{end}, which was not expected: {', '.join(map(str, open.changes))}"
        if stored:
            self.past.append(state)

    def _seen(self, unit: str) -> State:
        """What the unit sees if nobody else commits."""
        return after(self.state, self.units[unit].changes)[0]

    def _version(self, unit: str, record: Any, wanted: str) -> int:
        stored: Any = self._seen(unit).get(type(record), *key_of(record))
        seen = stored.version if stored is not None else 0
        return {"seen": seen, "new": 0, "old": max(seen - 1, 0), "ahead": seen + 1}[wanted]


def _plain(answer: Any) -> Any:
    """Sequences as lists, so that tuples and lists compare as equal."""
    if isinstance(answer, Sequence) and not isinstance(answer, str):
        return list(answer)
    return evolve(answer, rows=tuple(answer.rows)) if isinstance(answer, Page) else answer
