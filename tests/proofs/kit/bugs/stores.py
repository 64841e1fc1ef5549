"""Bugs in stores, counters and files."""

import asyncio
from collections import Counter
from contextlib import nullcontext
from pathlib import Path
from typing import Any
from unittest import mock

from attrs import evolve

from adapters_store.memory import MemoryCounters, MemoryStore
from adapters_store.sqlite import claims
from adapters_store.sqlite import writer as sql_writer
from adapters_store.sqlite.store import SqliteStore
from adapters_store.sqlite.unit import SqliteUnit
from tests.proofs.kit.bugs.catching import Bug, patched, promise, walk
from tests.wfcore.testing.careless import (
    RolledBack,
    Uncommitted,
    Unversioned,
    comparison,
    working,
)
from tests.wfcore.testing.test_comparison import SqliteComparison
from wfcore.memory import runs, writes
from wfcore.memory import store as memory_store
from wfcore.memory.overlay import Overlay
from wfcore.memory.tables import ACCOUNTS, EVENTS, EXECUTIONS, UnitOfWork
from wfcore.model.access import Account
from wfcore.model.execution import Execution
from wfcore.ports.store import Slots
from wfcore.rules.auth import rate_limit
from wfcore.testing.contracts import CountersContract, FilesContract, StoreContract
from wfcore.testing.fakes import ManualClock
from wfcore.testing.fakes_running import DictFiles


def in_memory(clock: ManualClock) -> MemoryStore:
    return MemoryStore(now=clock.service_now)


def beside(store: MemoryStore, clock: ManualClock) -> MemoryStore:
    return MemoryStore(store.disk, now=clock.service_now)


def passing(clock: ManualClock) -> Any:
    async def elapse(ms: int) -> None:
        clock.advance(ms)

    return elapse


def stores(test: str, store: Any = in_memory, another: Any = beside) -> Any:
    handles = {"store": store, "another": another, "elapse": passing}
    return promise(StoreContract, test, clock=ManualClock, **handles)


def counting(test: str) -> Any:
    return promise(CountersContract, test, counters=MemoryCounters)


async def sqlite(folder: Path, clock: ManualClock) -> SqliteStore:
    return await SqliteStore.open(folder / "wfcore.db", now=clock.service_now)


def sql_stores(test: str) -> Any:
    return stores(test, sqlite, sqlite)


def uncommitted(self: MemoryStore) -> RolledBack:
    """READ UNCOMMITTED."""
    return RolledBack(Uncommitted(self.disk, self._gate, self._now, self.ended))


def put_whatever(self: Overlay, kind: Any, key: Any, record: Any) -> None:
    """No version is compared."""
    self.set(kind, key, evolve(record, version=record.version + 1))


def put_over_anything(self: Overlay, kind: Any, key: Any, record: Any) -> None:
    """A new record replaces the one that is there."""
    stored = self.get(kind, key)
    if record.version:
        self.expect(kind, key, stored is not None and stored.version == record.version)
    self.set(kind, key, evolve(record, version=record.version + 1))


def settle_one_by_one(self: UnitOfWork) -> None:
    """What stands before the loser stays stored."""
    for change in self.changes:
        settled = Overlay(self.medium, strict=True)
        change(settled)
        self.medium.settle(settled.changes)


def collect_at_once(self: UnitOfWork, change: Any) -> None:
    """A write is stored before anybody commits."""
    change(self.overlay)
    self.medium.settle(self.overlay.changes)


def committed_only(self: UnitOfWork) -> Overlay:
    """A unit does not see what it has put."""
    return Overlay(self.medium)


def account_again(record: Any) -> Any:
    """An email that another account has is no obstacle."""
    if not isinstance(record, Account):
        return PUT(record)
    return lambda overlay: overlay.put(ACCOUNTS, record.id, record)


PUT = writes.put


async def due_after(self: Any, now: Any, limit: int) -> Any:
    return await DUE(self, now - 1, limit)


DUE = runs.Approvals.due


def short(rows: Any, page: Any, *order: Any, **more: Any) -> Any:
    found = CUT(rows, page, *order, **more)
    return evolve(found, total=len(found.rows))


CUT = runs.cut


def same_fence(run: Any, worker: str) -> Any:
    return evolve(TAKEN(run, worker), fence=run.fence)


TAKEN = memory_store._taken


async def claim_in_two_steps(
    self: MemoryStore, worker: str, lease_ms: Any, slots: Any, limit: int, **_: Any
) -> Any:
    """Between looking for what is due and taking it, others look."""
    late: list[Any] = []
    with mock.patch.object(self.disk, "settle", late.append):
        taken = self._claim(worker, self.now(), lease_ms, slots, limit, lambda run: True)
    await asyncio.sleep(0)
    for changes in late:
        self.disk.settle(changes)
    return taken


class Blind(Counter):  # type: ignore[type-arg]
    """Who holds how many places is not looked at."""

    def __getitem__(self, key: object) -> int:
        return 0


def put_with_worker(record: Any) -> Any:
    """A place that was given back stays taken."""

    def change(overlay: Overlay) -> None:
        stored = overlay.get(EXECUTIONS, record.id) if isinstance(record, Execution) else None
        held = stored is not None and record.worker is None
        PUT(evolve(record, worker=stored.worker) if held and stored else record)(overlay)

    return change


def require_no_end(*_: Any) -> Any:
    """Whether the lease is still over is not looked at."""
    return lambda overlay: None


def purge_the_head(ids: Any) -> Any:
    def change(overlay: Overlay) -> None:
        for id in ids:
            overlay.set(EXECUTIONS, id, None)

    return change


def append_over(event: Any) -> Any:
    def change(overlay: Overlay) -> None:
        log = overlay.get(EVENTS, event.execution_id) or ()
        others = (one for one in log if one.number != event.number)
        overlay.set(EVENTS, event.execution_id, (*others, event))

    return change


def perform_blindly(cursor: Any, units: Any) -> bool:
    """How many rows a write has touched is not looked at."""
    for unit in units:
        for what, values, _ in unit.writes:
            cursor.execute(what if isinstance(what, str) else what.one, values)
    return True


def one_too_many(windows: Any, counts: Any) -> tuple[str, ...]:
    return tuple(
        window.kind
        for window, count in zip(windows, counts, strict=True)
        if window.limit is not None and count > window.limit
    )


def counts_refusals(self: Any, subject: str, windows: Any) -> Any:
    """A request that one window refuses is counted in the others."""
    taken = TAKE(self, subject, windows)
    if not taken.admitted:
        for window in windows:
            if window.kind not in taken.full:
                TAKE(self, subject, (window,))
    return taken


TAKE = rate_limit.Ledger.take


def forgets(self: Any, subject: str, windows: Any) -> Any:
    """What lies before the latest window is forgotten, so a clock set back grants anew."""
    for key in list(self.counts):
        if any(key[2] != window.start for window in windows):
            del self.counts[key]
    return TAKE(self, subject, windows)


async def inclusive(self: Any, storage_key: str, start: int, end: int) -> Any:
    async for chunk in READ(self, storage_key, start, end + 1):
        yield chunk


READ = DictFiles.read
EACH_TO_ONE = "test_of_many_workers_each_execution_goes_to_one"
KEPT = "test_a_flood_leaves_the_last_place"
EXTENDED = "test_a_lease_that_was_extended_in_time_keeps_its_execution"
UNIQUE = "test_an_email_is_unique"
BUGS = (
    Bug(
        "an update is lost",
        patched(Overlay, "put", put_whatever),
        stores("test_a_lost_update_is_stale"),
    ),
    Bug(
        "an update is lost, compared",
        nullcontext,
        walk(comparison(working(Unversioned))),
    ),
    Bug(
        "an update is lost in SQLite",
        patched(sql_writer, "perform_together", perform_blindly),
        sql_stores("test_a_lost_update_is_stale"),
    ),
    Bug(
        "an update is lost in SQLite, compared",
        patched(sql_writer, "perform_together", perform_blindly),
        walk(SqliteComparison),
    ),
    Bug(
        "a new record replaces an old one",
        patched(Overlay, "put", put_over_anything),
        stores("test_a_new_record_must_be_new"),
    ),
    Bug(
        "half of a stale unit is stored",
        patched(UnitOfWork, "_settle", settle_one_by_one),
        stores("test_a_stale_record_takes_the_whole_unit_down"),
    ),
    Bug(
        "a unit without commit leaves traces",
        patched(UnitOfWork, "collect", collect_at_once),
        stores("test_nothing_is_visible_without_commit"),
    ),
    Bug(
        "another handle reads what a unit has not committed",
        patched(MemoryStore, "unit", uncommitted),
        stores("test_another_handle_reads_nothing_of_an_open_unit"),
    ),
    Bug(
        "another handle lists what a unit has not committed",
        patched(MemoryStore, "unit", uncommitted),
        stores("test_another_handle_lists_nothing_of_an_open_unit"),
    ),
    Bug(
        "a unit does not see its own writes",
        patched(UnitOfWork, "overlay", property(committed_only)),
        stores("test_a_unit_reads_its_own_writes_and_may_write_twice"),
    ),
    Bug("an email is given twice", patched(writes, "put", account_again), stores(UNIQUE)),
    Bug(
        "an event number is given twice",
        patched(writes, "log_event", append_over),
        stores("test_an_event_number_is_given_once"),
    ),
    Bug(
        "expired approvals are found a millisecond late",
        patched(runs.Approvals, "due", due_after),
        stores("test_approvals_by_status_and_expiry"),
    ),
    Bug(
        "a list knows only its own page",
        patched(runs, "cut", short),
        stores("test_pages_cut_the_list_and_know_the_total"),
    ),
    Bug(
        "strangers see approvals",
        patched(runs, "shown", lambda *_: True),
        stores("test_approvals_are_visible_to_those_who_may_see_them"),
    ),
    Bug(
        "a claim gives no new fencing number",
        patched(memory_store, "_taken", same_fence),
        stores("test_a_claim_takes_what_is_due_and_says_what_it_stored"),
    ),
    Bug(
        "two workers get the same execution",
        patched(memory_store.MemoryStore, "claim", claim_in_two_steps),
        stores(EACH_TO_ONE),
    ),
    Bug(
        "an extended lease is lost all the same",
        patched(writes, "require_abandoned", require_no_end),
        stores(EXTENDED),
    ),
    Bug(
        "an extended lease is lost all the same in SQLite",
        patched(SqliteUnit, "require_abandoned", require_no_end),
        sql_stores(EXTENDED),
    ),
    Bug(
        "a flood takes every place",
        patched(memory_store, "Counter", Blind),
        stores("test_two_floods_leave_the_last_place"),
    ),
    Bug(
        "no place is kept for others",
        patched(Slots, "admits", lambda self, held, free, *, others_lately: free > 0),
        stores(KEPT),
    ),
    Bug(
        "a place is kept for nobody",
        patched(Slots, "admits", lambda self, held, free, **_: free > 0 and (not held or free > 1)),
        stores("test_an_account_alone_takes_every_place"),
    ),
    Bug(
        "nobody notes who was served in SQLite",
        patched(claims, "SERVE", "SELECT ?, ?"),
        sql_stores(KEPT),
    ),
    Bug(
        "a flood takes every turn",
        patched(memory_store, "_turn", lambda run, held, served: (held[run.owner_id], run.due_at)),
        stores("test_accounts_take_turns_at_one_place"),
    ),
    Bug(
        "a slot is leaked",
        patched(writes, "put", put_with_worker),
        stores("test_releasing_frees_the_place"),
    ),
    Bug(
        "more of a concurrency group run at once than may",
        patched(memory_store, "waiting_in_groups", lambda *_: frozenset()),
        stores("test_no_more_are_taken_than_the_limit_allows"),
    ),
    Bug(
        "a purge leaves the log",
        patched(writes, "purge", purge_the_head),
        stores("test_purging_takes_all_that_belongs_to_an_execution"),
    ),
    Bug(
        "one request over the quota",
        patched(rate_limit, "full_of", one_too_many),
        counting("test_exactly_the_limit_is_admitted"),
    ),
    Bug(
        "a refusal counts",
        patched(rate_limit.Ledger, "take", counts_refusals),
        counting("test_a_refusal_counts_nowhere"),
    ),
    Bug(
        "a clock set back grants anew",
        patched(rate_limit.Ledger, "take", forgets),
        counting("test_a_clock_set_back_grants_nothing"),
    ),
    Bug(
        "a range is a byte too long",
        patched(DictFiles, "read", inclusive),
        promise(FilesContract, "test_a_range_is_read", files=DictFiles),
    ),
)
