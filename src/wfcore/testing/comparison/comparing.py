"""
The comparison of a store with the store in memory: one script for both, every answer compared.

    class MyComparison(StoreComparison):
        async def open(self, folder):
            return await MyStore.open(folder / "my.db", now=self.clock.service_now)

        async def reopen(self, folder):
            return await self.open(folder)

    TestMyStore = MyComparison.TestCase

Hypothesis writes the script: units that read, put, delete and count, side by side and through two
handles, with fresh versions and stale ones; commits, one by one and at once, and units without a
commit; claims, leases, purges; every list. A failing script is shrunk to the shortest script that
still fails. A store whose time cannot be set is compared as well; then no lease ends during a
script.
"""

import asyncio
import tempfile
from collections.abc import Awaitable, Callable, Sequence
from itertools import permutations
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
from wfcore.model.workflow import DefinitionSnapshot, Workflow
from wfcore.ports.store import Slots, Store
from wfcore.testing.comparison.queries import QUERIES, StoreQuery
from wfcore.testing.comparison.records import (
    GOING,
    RECORDS,
    RUNNABLE,
    ids,
    moments,
    words,
    workers,
)
from wfcore.testing.comparison.reference import ClaimCall, CollectedWrite, Reference, key_of
from wfcore.testing.contracts.keeping import collect
from wfcore.testing.fakes import ManualClock
from wfcore.testing.first_failure import BoundedTestCase, tell_first
from wfcore.time import HOUR, DurationMs, EpochMs

LEASES = st.integers(0, 3)
"""The length of a lease in milliseconds: a few steps of the clock."""
HANDLES = {"alone": 0, "left": 0, "first": 0, "w1": 0, "right": 1, "second": 1, "w2": 1}
"""The handle of each unit and worker."""
RACERS = ("left", "right")
LOST = StoreQuery("executions.abandoned", (3,))
"""The query for executions whose lease has ended."""
COMPARED = (LoginLink, Workflow, Webhook, Trigger, Timer)
"""The kinds that are deleted by version. Sessions, logins and shares are deleted in any version."""
VERSIONS = st.sampled_from(("seen", "seen", "seen", "new", "old", "ahead"))
"""The version from which a record is put: the version that the unit sees, or another version."""

_units = st.sampled_from(("first", "second"))
_open_units = st.runner().flatmap(lambda script: st.sampled_from(sorted(script.units)))
_handles = st.sampled_from((0, 1))


@define(eq=False)
class OpenUnit:
    """
    A unit of work in its own task, as in a use case, with the changes that the unit has collected.
    """

    orders: "asyncio.Queue[Any]"
    task: "asyncio.Task[None]"
    began: int
    changes: list[CollectedWrite] = field(factory=list)

    async def do(self, deed: Callable[[Any], Awaitable[Any]]) -> Any:
        """Perform *deed* in the task of the unit."""
        done: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        await self.orders.put((deed, done))
        await asyncio.wait((done, self.task), return_when=asyncio.FIRST_COMPLETED)
        if self.task.done():
            self.task.result()  # a store that broke breaks the script
        return done.result()

    async def commit(self) -> bool:
        """Commit and end the unit; return False if the commit is `Stale`."""
        try:
            await self.do(lambda unit: unit.commit())
        except Stale:
            return False
        finally:
            await self.leave()
        return True

    async def leave(self) -> None:
        """End the task and the unit."""
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
    A Hypothesis state machine that sends one script to a store and to the store in memory.

    Subclasses implement `open`: a new, empty store, with its files (if any) in the given folder and
    with the time of `clock` if it can be set. Subclasses whose medium several processes can share
    also implement `reopen`: a second handle on the store of that folder.

    The first failure is reported at once; then Hypothesis shrinks it for at most half a minute.
    """

    TestCase = BoundedTestCase()

    async def open(self, folder: Path) -> Store:
        raise NotImplementedError(f"{type(self).__name__}.open must give a new, empty store")

    async def reopen(self, folder: Path) -> Store | None:
        """A second handle on the store that `open` made. None: everything uses the first handle."""
        return None

    def __init__(self) -> None:
        super().__init__()
        self._folder = tempfile.TemporaryDirectory()
        self._loop = asyncio.Runner()
        self.clock = ManualClock()
        folder = Path(self._folder.name)
        self.store = self._loop.run(self.open(folder))
        self.second = self._loop.run(self.reopen(folder))
        for worker in ("w1", "w2"):
            self._loop.run(self._handle(worker).enlist(worker))
        self.past = [Reference(self.store.now)]
        self._least_lease = 0 if self._moves(1) else HOUR
        self.units: dict[str, OpenUnit] = {}

    @property
    def _reference(self) -> Reference:
        """The committed rows."""
        return self.past[-1]

    def teardown(self) -> None:
        tell_first(type(self))
        for unit in list(self.units.values()):
            self._loop.run(unit.leave())
        if self.second is not None:
            self._loop.run(self.second.close())
        self._loop.run(self.store.close())
        self._loop.close()
        self._folder.cleanup()

    # Units

    @rule(records=st.lists(RECORDS, min_size=1, max_size=3))
    def keep(self, records: list[Any]) -> None:
        """Let a unit that runs alone write current versions."""
        self._begin("alone")
        for record in records:
            self._put("alone", record, "seen")
        self._commit("alone")

    @rule(record=RECORDS, at=st.integers(0, 1))
    def keep_twice(self, record: Any, at: int) -> None:
        """Store a record twice through one handle. After each time both handles read the record."""
        unit = RACERS[at]
        for _ in range(2):
            self._begin(unit)
            self._put(unit, record, "seen")
            self._commit(unit)
            if hasattr(record, "version"):
                for handle in (1 - at, at):
                    self.read(StoreQuery("get", (type(record), *key_of(record))), handle)

    @rule(record=RECORDS, known=st.booleans(), at_once=st.booleans())
    def race(self, record: Any, known: bool, at_once: bool) -> None:
        """
        Let two units put the same record from the version that both have read: one unit loses.
        """
        if known:
            self.keep([record])
        for unit in RACERS:
            self._begin(unit)
            self._put(unit, record, "seen")
        if at_once:
            self._commit_at_once(RACERS)
        else:
            for unit in RACERS:
                self._commit(unit)

    @rule(unit=_units, record=RECORDS, version=VERSIONS)
    def put(self, unit: str, record: Any, version: str) -> None:
        """Put or append a record."""
        self._begin(unit)
        self._put(unit, record, version)

    @rule(unit=_units, id=ids, status=st.sampled_from(ExecutionStatus))
    def move(self, unit: str, id: str, status: ExecutionStatus) -> None:
        """
        Put an execution with another status. The worker keeps the execution only if it is RUNNING.
        """
        self._begin(unit)
        run = self._seen(unit, Execution, id)
        if run is not None:
            worker = run.worker if status is ExecutionStatus.RUNNING else None
            self._put(unit, evolve(run, status=status, worker=worker), "seen")

    @rule(unit=_units, record=GOING)
    def delete(self, unit: str, record: Any) -> None:
        """Delete a record by key or by the version that the unit sees, or purge an execution."""
        self._begin(unit)
        kind, key = type(record), key_of(record)
        words = f"{kind.__name__} {key}"
        if kind is Execution:
            self._collect(unit, CollectedWrite(f"purge {words}", lambda kept: kept.purge(*key)))
        elif kind in (Session, Login, Share):
            self._collect(
                unit, CollectedWrite(f"discard {words}", lambda kept: kept.discard(kind, *key))
            )
        elif kind in COMPARED:
            gone = evolve(record, version=self._version(unit, record, "seen"))
            words = f"delete {words} of version {gone.version}"
            self._collect(unit, CollectedWrite(words, lambda kept: kept.delete(gone)))

    @rule(unit=_units, webhook=ids, status=st.sampled_from((202, 401)), at=moments)
    def tally(self, unit: str, webhook: str, status: int, at: EpochMs) -> None:
        """Count one webhook answer."""
        self._begin(unit)
        answer = (webhook, "2023-11-14", status, at)
        self._collect(unit, CollectedWrite(f"tally {answer}", lambda kept: kept.tally(*answer)))

    @precondition(lambda self: self.units)
    @rule(unit=_open_units, query=QUERIES)
    def read_in_unit(self, unit: str, query: StoreQuery) -> None:
        """
        Read in a unit, which sees its own writes over a state that existed since the unit began.
        """
        open = self.units[unit]
        states = self.past[open.began :]
        fits = [state.after(open.changes) is not None for state in states]
        try:
            answer = _plain(self._loop.run(open.do(query)))
        except Stale:
            assert not all(fits), f"{query}: Stale, and nobody was faster"
            return
        if any(fits):
            allowed = [_plain(state.read(query, open.changes)) for state in states]
            assert answer in allowed, f"{query}: {answer}, expected {allowed[-1]}"

    @precondition(lambda self: self.units)
    @rule(unit=_open_units, commits=st.sampled_from((True, True, True, False)))
    def end(self, unit: str, commits: bool) -> None:
        """Commit a unit (completely, or `Stale` and no write), or end it without a commit."""
        if commits:
            self._commit(unit)
        else:
            self._loop.run(self.units.pop(unit).leave())

    @precondition(lambda self: len(self.units) == 2)
    @rule()
    def end_at_once(self) -> None:
        """Commit both units at the same time."""
        self._commit_at_once(tuple(self.units))

    # The store

    @rule(query=QUERIES, handle=_handles)
    def read(self, query: StoreQuery, handle: int) -> None:
        """Read in a view of either handle, which sees the committed state."""

        async def read() -> Any:
            async with self._handles[handle].view() as view:
                return await query(view)

        answer, expected = _plain(self._loop.run(read())), _plain(self._reference.read(query))
        assert answer == expected, f"{query}: {answer}, expected {expected}"

    @precondition(lambda self: self._reference.all(Execution))
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
        """
        Let a worker claim due executions: any, or only those of *which* that the worker can run.
        """
        claim = self._new_claim(worker, lease, places, limit, which, able)
        got = self._loop.run(self._perform(claim))
        self.past.append(self._reference.claimed(claim, got))

    @precondition(lambda self: self._reference.all(Execution))
    @rule(places=st.integers(1, 4), limit=st.integers(1, 3))
    def claim_at_once(self, places: int, limit: int) -> None:
        """
        Let two workers claim at the same time; the result is that of one claim after the other.
        """
        claims = [self._new_claim(worker, 3, places, limit) for worker in ("w1", "w2")]

        async def both() -> Sequence[Sequence[Execution]]:
            return await asyncio.gather(*map(self._perform, claims))

        got = list(zip(claims, self._loop.run(both()), strict=True))
        try:
            states = self._claimed(got)
        except AssertionError:
            states = self._claimed(got[::-1])
        self.past += states

    @precondition(lambda self: any(run.worker for run in self._reference.all(Execution)))
    @rule(worker=workers, ids=st.sets(ids), lease=LEASES)
    def extend(self, worker: str, ids: set[str], lease: int) -> None:
        """Let a worker extend its leases."""
        reference, held = self._reference.extended(worker, ids, self._lease(lease))
        kept = self._loop.run(self._handle(worker).extend(worker, ids, self._lease(lease)))
        assert kept == held, f"extended {sorted(kept)}, held are {sorted(held)}"
        self.past.append(reference)

    @rule(by=st.integers(1, 3))
    def pass_time(self, by: int) -> None:
        """Let time pass: leases expire and work becomes due."""
        self._moves(by)

    @rule(run=RUNNABLE, worker=workers, then=st.lists(st.none() | workers, min_size=1, max_size=2))
    def hand_over(self, run: Execution, worker: str, then: list[str | None]) -> None:
        """Let a worker claim an execution and release it. The next holder has no lease yet."""
        self.keep([run])
        self.claim(worker=worker, lease=3, places=4, limit=3, which=None, able=None)
        for holder in then:
            held = self._reference.read(StoreQuery("get", (Execution, run.id)))
            if held is not None:
                self.keep([evolve(held, worker=holder)])
                self.read(LOST, 0)

    # Inside

    @property
    def _handles(self) -> tuple[Store, Store]:
        return self.store, self.second or self.store

    def _handle(self, name: str) -> Store:
        """The handle of a unit or a worker."""
        return self._handles[HANDLES[name]]

    def _moves(self, by: int) -> bool:
        """Advance `clock`; return whether the store uses the time of `clock`."""
        until = self.store.now() + by
        self.clock.advance(by)
        return self.store.now() == until

    def _lease(self, ms: int) -> DurationMs:
        return DurationMs(self._least_lease + ms)

    def _new_claim(
        self,
        worker: str,
        lease: int,
        places: int,
        limit: int,
        which: set[str] | None = None,
        able: set[str] | None = None,
    ) -> ClaimCall:
        now = self.store.now()
        return ClaimCall(worker, now, self._lease(lease), Slots(places), limit, which, able)

    async def _perform(self, claim: ClaimCall) -> Sequence[Execution]:
        return await self._handle(claim.worker).claim(
            claim.worker, claim.lease_ms, claim.slots, claim.limit, ids=claim.ids, able=claim.able
        )

    def _claimed(self, got: Sequence[tuple[ClaimCall, Sequence[Execution]]]) -> list[Reference]:
        """The state after each of the claims, in this order."""
        states = [self._reference]
        for claim, runs in got:
            states.append(states[-1].claimed(claim, runs))
        return states[1:]

    def _begin(self, unit: str) -> None:
        """Open the unit unless it is open."""

        async def begin() -> OpenUnit:
            orders: asyncio.Queue[Any] = asyncio.Queue()
            task = asyncio.create_task(_serve(self._handle(unit), orders))
            return OpenUnit(orders, task, len(self.past) - 1)

        if unit not in self.units:
            self.units[unit] = self._loop.run(begin())

    def _put(self, unit: str, record: Any, version: str) -> None:
        if isinstance(record, DefinitionSnapshot) and self._version(unit, record, "seen"):
            return  # the definition of a revision never changes, so that stores may cache it
        words = f"put {type(record).__name__} {key_of(record)}"
        if hasattr(record, "version"):
            record = evolve(record, version=self._version(unit, record, version))
            words += f" from version {record.version}"
        self._collect(unit, CollectedWrite(words, lambda kept: collect(kept, record)))

    def _collect(self, unit: str, change: CollectedWrite) -> None:
        async def do(kept: Any) -> None:
            change.collect(kept)

        open = self.units[unit]
        self._loop.run(open.do(do))
        open.changes.append(change)

    def _commit(self, unit: str) -> None:
        open = self.units.pop(unit)
        expected = self._reference.after(open.changes)
        stored = self._loop.run(open.commit())
        end = "stored" if stored else "Stale"
        fits = expected is not None
        assert stored == fits, f"{end}, which was not expected: {', '.join(map(str, open.changes))}"
        if expected is not None:
            self.past.append(expected)

    def _commit_at_once(self, names: Sequence[str]) -> None:
        """
        Commit these units at the same time. The outcome must be that of some order of commits. If
        orders with the same outcome differ in the rows, the units commit one after another.
        """
        outcomes: dict[tuple[bool, ...], list[Reference]] = {}
        names = tuple(sorted(names))
        for order in permutations(names):
            stored, states = self._in_order(order)
            if outcomes.setdefault(stored, states)[-1].rows != states[-1].rows:
                for name in names:
                    self._commit(name)
                return
        units = [self.units.pop(name) for name in names]

        async def all() -> Sequence[bool]:
            return await asyncio.gather(*(unit.commit() for unit in units))

        stored = tuple(self._loop.run(all()))
        changes = "; ".join(", ".join(map(str, unit.changes)) for unit in units)
        assert stored in outcomes, f"stored {stored}, expected {[*outcomes]}: {changes}"
        self.past += outcomes[stored][1:]

    def _in_order(self, names: Sequence[str]) -> tuple[tuple[bool, ...], list[Reference]]:
        """
        Whether each unit is stored if they commit in this order, and the state after each commit.
        """
        states, stored = [self._reference], dict.fromkeys(names, False)
        for name in names:
            state = states[-1].after(self.units[name].changes)
            stored[name] = state is not None
            states.append(state or states[-1])
        return tuple(stored[name] for name in sorted(names)), states

    def _seen(self, unit: str, kind: type[Any], *key: Any) -> Any:
        """The record as *unit* sees it if no other unit commits."""
        return self._reference.read(StoreQuery("get", (kind, *key)), self.units[unit].changes)

    def _version(self, unit: str, record: Any, wanted: str) -> int:
        stored: Any = self._seen(unit, type(record), *key_of(record))
        seen = stored.version if stored is not None else 0
        return {"seen": seen, "new": 0, "old": max(seen - 1, 0), "ahead": seen + 1}[wanted]


def _plain(answer: Any) -> Any:
    """The answer with sequences as lists, so that tuples and lists compare as equal."""
    if isinstance(answer, Sequence) and not isinstance(answer, str):
        return list(answer)
    return evolve(answer, rows=tuple(answer.rows)) if isinstance(answer, Page) else answer
