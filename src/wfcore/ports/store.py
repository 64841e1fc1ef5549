"""The store: units of work, views, claims. See `records` for the contents."""

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol, TypeVar, cast

from attrs import frozen

from wfcore.model.event import AuditEntry, ChainPoint, Event
from wfcore.model.execution import Execution
from wfcore.model.webhook import Delivery
from wfcore.ports import records
from wfcore.time import HOUR, DurationMs, EpochMs

R = TypeVar("R")
Q = TypeVar("Q")


class View(Protocol):
    """
    Read access to the store: records by key, and the queries of each subject.

    A view from `Store.view` is read only and never waits for a writer; a `Unit` is a view that also
    sees its own writes.
    """

    async def get(self, kind: type[R], *key: str | int) -> R | None:
        """The record of *kind* (see `records.RECORDS`) under *key*."""

    async def some(self, kind: type[R], ids: Collection[str]) -> Sequence[R]:
        """
        The existing records among *ids*, ordered by id, in one query. For kinds whose key is `id`.
        """

    @property
    def accounts(self) -> records.AccountQueries: ...
    @property
    def keys(self) -> records.KeyQueries: ...
    @property
    def sessions(self) -> records.SessionQueries: ...
    @property
    def workflows(self) -> records.WorkflowQueries: ...
    @property
    def definitions(self) -> records.DefinitionQueries: ...
    @property
    def shares(self) -> records.ShareQueries: ...
    @property
    def executions(self) -> records.ExecutionQueries: ...
    @property
    def approvals(self) -> records.ApprovalQueries: ...
    @property
    def artifacts(self) -> records.ArtifactQueries: ...
    @property
    def callbacks(self) -> records.CallbackQueries: ...
    @property
    def webhooks(self) -> records.WebhookQueries: ...
    @property
    def groups(self) -> records.GroupQueries: ...
    @property
    def triggers(self) -> records.TriggerQueries: ...
    @property
    def timers(self) -> records.TimerQueries: ...
    @property
    def notices(self) -> records.NoticeQueries: ...
    @property
    def nodes(self) -> records.NodeQueries: ...
    @property
    def events(self) -> records.EventQueries: ...
    @property
    def logs(self) -> records.EventQueries:
        """
        Output lines that nobody followed, with numbers of their own, which may have gaps. EX-28.
        """

    @property
    def audit(self) -> records.AuditQueries: ...


async def head_of(view: View, id: str) -> Execution | None:
    """
    The execution, for callers that need only a part of the execution. A store may offer `head(id)`
    on its views and units, and `filled` beside it. `head` leaves out outputs and items of more than
    a few kilobytes (`leaving_out`), so that its cost does not depend on their size. The execution
    that `head` returns may be `put`, and its results may be given to a new execution of the same
    unit: a value that was not read stays as stored, or is copied, or `put` raises `NotRead`. For
    any other store this is `View.get`. ST-7.
    """
    head: Any = getattr(view, "head", None)
    found: Execution | None = await (view.get(Execution, id) if head is None else head(id))
    return found


async def filled(
    view: View, run: Execution, keys: Collection[str | None] | None = None
) -> Execution:
    """
    The execution *run*, which `head_of` returned, with the omitted values of the steps *keys* (the
    key None: the execution's own output); without *keys*, with all omitted values. Raises `Stale`
    if the stored execution has changed.
    """
    fill: Any = getattr(view, "filled", None)
    found: Execution = run if fill is None else await fill(run, keys)
    return found


async def texts_of(view: View, run: Execution, keys: Collection[str]) -> Mapping[str, bytes]:
    """
    The omitted outputs of the steps *keys* of *run*, which `head_of` returned, as JSON text in
    UTF-8, by key. A store may offer `texts` beside `filled`, which reads large outputs without
    decoding them. Raises `Stale` if the stored execution has changed.
    """
    texts: Any = getattr(view, "texts", None)
    if texts is not None:
        return cast("Mapping[str, bytes]", await texts(run, keys))
    whole = await filled(view, run, set(keys))
    results = {**whole.put_aside, **whole.step_results}
    return {key: json.dumps(results[key].output).encode() for key in keys}


class Unit(View, Protocol):
    """
    A unit of work: reads, collected writes, one `commit`.

    Reads are `async` because a store may be remote; writes are plain calls because a unit only
    collects them. Leaving the unit without `commit` changes nothing. Once `commit` has returned,
    everything is durable, even after a power cut. A cancelled `commit` has been done completely or
    not at all.
    """

    def put(self, record: Any) -> None:
        """
        Store a record of a kind of `RECORDS`, comparing its version.

        For an `Execution`, `worker` and `fence` are stored as given; `worker` None releases the
        lease. The store itself sets the end of a lease, see `Store.claim`. A `Replay` of version 0
        may also replace a `Replay` that is older than 24 h.
        """

    def delete(self, record: Any) -> None:
        """
        Delete a record and all records that its kind `owns`, comparing the version: of two units
        that delete the same record, one commits.
        """

    def discard(self, kind: type[Any], *key: str) -> None:
        """Delete the record under *key*, whatever its version. For kinds with an empty `owns`."""

    def append(self, entry: Event | AuditEntry, record: str | None = None) -> None:
        """
        Add an entry to a log. If an event's number or an audit entry's id exists already, `commit`
        raises `Stale`.

        An audit entry is added to the end of the chain; *record* is canonical JSON, stored with the
        entry; its hash is part of the entry. AL-3.
        """

    def log(self, line: Event) -> None:
        """Add output lines (see `View.logs`). A number that already exists raises `Stale`."""

    def tally(self, webhook_id: str, date: str, status: int, at: EpochMs) -> None:
        """Count one answer of a webhook. Units never conflict over tallies."""

    def deliver(self, record: Delivery) -> None:
        """
        Add a delivery with a new id. For each webhook the newest `DELIVERIES_KEPT` (by id)
        `authenticated` deliveries are kept, and as many unauthenticated deliveries. Units never
        conflict over deliveries.
        """

    def purge(self, *ids: str) -> None:
        """
        Delete executions with their events, approvals, callbacks, notices and artifact records. The
        caller deletes the files.
        """

    def require_abandoned(self, record: Execution) -> None:
        """
        Make `commit` raise `Stale` unless, at that time, *record* is still held by its worker and
        that worker is gone: the lease has expired by the store's time, or the worker's process has
        ended. A lease extended after `abandoned` was read also makes `commit` raise, although
        `extend` does not change the version.
        """

    def limit_group(self, workflow_id: str, at_once: int | None) -> None:
        """
        From this unit on, limit each concurrency group of the workflow to *at_once* running
        executions (None: no limit); see `Store.claim`. Slots are counted from the executions, so no
        slot can be lost.
        """

    def require_room(self, group: str, at_once: int) -> None:
        """
        Make `commit` raise `Stale` if *at_once* or more executions of *group* have not ended; the
        writes of this unit so far count. Of racing units only as many commit as fit.
        """

    async def commit(self) -> None:
        """
        Store all collected writes, or nothing.

        Raises `Stale` if a record changed since it was read or a unique value is taken. Raises
        `StoreUnavailable` if the store could not write, so that nothing was stored, or if the
        store's answer was lost, so that everything was stored. A caller that retries must find out
        which.
        """


def queries(make: Callable[[Any], Q]) -> Q:
    """
    For authors of stores: an attribute of a unit for the queries of one subject, for example
    `accounts = queries(Accounts)`. The class is called with the unit's `_unit`.
    """
    return cast("Q", _Queries(make))  # a checker compares attributes with a port, not descriptors


class _Queries:
    def __init__(self, make: Callable[[Any], Any]) -> None:
        self._make = make

    def __get__(self, unit: Any, owner: type | None = None) -> Any:
        return self._make(unit._unit)


Trimmed = Callable[[ChainPoint], tuple[AuditEntry, str]]
"""Makes the audit entry, and its record, that names the new start of the audit log. AL-9."""


@frozen
class Slots:
    """
    The sharing of a worker's slots among accounts. ST-3, decision 61.

    The last free slot is reserved for accounts that hold no slot, as long as other accounts have
    had work recently: they hold a slot of this worker, or got a slot from any worker less than
    `lately_ms` ago. So one account's flood leaves room for another account's first step, and a
    service with one account uses all its slots. Slots are counted from rows in the claiming
    transaction.
    """

    places: int
    lately_ms: DurationMs = HOUR

    def admits(self, held: int, free: int, *, others_lately: bool) -> bool:
        """
        Whether an account that holds *held* slots may take another slot while *free* slots are
        free.
        """
        return free > 0 and (held == 0 or free > 1 or not others_lately)


class Store(Protocol):
    """
    The store of all records. A unit belongs to one task; units of many tasks run concurrently.

    Driver errors never cross this port: they become `StoreUnavailable`.

    **Time.** Leases expire and work becomes due by the store's own time, so that machines whose
    clocks differ agree on both: a lease is a duration, and no caller passes the current time.
    Deadlines that people set (of approvals, schedules) are queried with an instant.
    """

    def now(self) -> EpochMs:
        """
        The store's time, which use cases write as due times and timestamps. This time never goes
        back within a process.

        A store that is shared over a network measures the offset of its database's clock from a
        monotonic clock of the process, so that asking for the time needs no round trip; the result
        may be wrong by the duration of a round trip. A store on one machine gets the process's
        clock, whose `Clock.service_now` agrees with that of other processes.
        """

    def unit(self) -> AbstractAsyncContextManager[Unit]:
        """A unit of work."""

    def view(self) -> AbstractAsyncContextManager[View]:
        """A read-only view."""

    async def enlist(self, worker: str) -> None:
        """
        Register *worker* as alive until this store is closed or its process ends.

        If the store can detect that a worker's process has ended (the operating system released its
        lock), `abandoned` returns the worker's executions at once; otherwise after the lease has
        expired.
        """

    async def claim(
        self,
        worker: str,
        lease_ms: DurationMs,
        slots: Slots,
        limit: int,
        *,
        ids: Collection[str] | None = None,
        able: Collection[str] | None = None,
    ) -> Sequence[Execution]:
        """
        Claim up to *limit* due executions for *worker*, atomically.

        A due execution is PENDING, RUNNING or AWAITING_APPROVAL (with other work that is due), has
        a `due_at` at or before the store's time, and is claimed by nobody. *ids*: only these
        executions (None: any), for a queue that determines the next execution. *able*: only
        executions whose `capabilities` are all included (None: the worker can do everything).

        Accounts that hold the fewest slots come first, among equals the account whose last slot is
        longest ago (round robin), within an account the earliest `due_at`; `Slots` limits the slots
        of an account. Each execution is returned as stored (large outputs may be left out, see
        `head_of`): `worker` set, `fence` and `version` incremented, `due_at` None, leased for
        *lease_ms* from now. Of racing workers exactly one worker gets each execution.

        An execution with a `concurrency_group` that was never claimed (`fence` 0) waits while its
        group is full: as many of the group as the workflow's limit allows have been claimed and
        have not ended. Within a group the earliest `due_at`, then the smallest id comes first. A
        waiting execution blocks no other execution.
        """

    async def extend(
        self, worker: str, ids: Collection[str], lease_ms: DurationMs
    ) -> Mapping[str, EpochMs | None]:
        """
        Extend the leases that *worker* holds on *ids* to *lease_ms* from now; returns the
        executions whose lease the worker does hold, each with its `due_at`.

        The other leases of the worker expire: the worker does not know of them, for example because
        the answer to a claim was lost. Until then nobody else gets the executions. ST-4.
        """

    async def elect(self, duty: str, lease_ms: DurationMs) -> bool:
        """
        Return whether this handle is to do *duty* for the next *lease_ms*.

        Queries such as `abandoned` return the same rows to every machine; with an election one
        machine works on these rows. An elected handle stays elected as long as the handle calls
        `elect` again before the lease has expired. An election only saves work: every duty is safe
        if two handles do it. A store that one machine uses returns True.
        """

    async def ping(self) -> None:
        """Check that reading and writing work. Raises `StoreUnavailable`."""

    async def trim(
        self,
        audit_before: EpochMs,
        replays_before: EpochMs,
        sessions_before: EpochMs,
        deliveries_before: EpochMs,
        limit: int,
        trimmed: Trimmed | None = None,
    ) -> int:
        """
        Delete up to *limit* old records, oldest first within each kind, and return their number:
        audit entries, idempotency records, webhook deliveries and notices without a `due_at` (both
        by *deliveries_before*), and, by *sessions_before*, sessions (by their start), logins (by
        their last failure) and sign-in links.

        Audit entries are deleted in commit order up to the first entry that is too recent; the
        chain then starts at the last deleted entry. AL-5. In the same transaction the entry that
        *trimmed* makes from that point is added with its record. AL-9.
        """

    async def tally(self, limit: int) -> int:
        """
        Count the ended executions among the next *limit* executions, once, so that the exact totals
        of lists need not count them again; returns the number of records read. 0: there is nothing
        to count, or the store counts in another way.
        """

    async def pack(self, limit: int) -> int:
        """
        Store executions that ended a while ago in less room, among the next *limit* executions;
        returns the number of records read. The records that can be read do not change. 0: there is
        nothing to do, or the store does not pack.
        """

    async def release(self, limit: int) -> int:
        """
        Return up to *limit* unused bytes to the operating system, quickly enough that other
        processes can write in between; returns the number of bytes. 0: there were no bytes worth
        returning.
        """

    async def close(self) -> None:
        """Finish all submitted work, then release everything. Safe to call twice."""
