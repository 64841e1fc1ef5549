"""The store: units of work, views, claims. See `records` for what they hold."""

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, Generic, Protocol, TypeVar

from attrs import frozen

from wfcore.model.event import AuditEntry, Event
from wfcore.model.execution import Execution
from wfcore.model.webhook import Delivery
from wfcore.ports import records
from wfcore.time import HOUR, DurationMs, EpochMs

R = TypeVar("R")
Q = TypeVar("Q", covariant=True)


class View(Protocol):
    """
    A look at the store: records by their keys, and the queries of each subject.

    Read only where it comes from `Store.view`, which never waits for a writer; a `Unit` is one as
    well, and then also sees what it has put itself.
    """

    async def get(self, kind: type[R], *key: str | int) -> R | None:
        """The record of that kind (see `records.RECORDS`) under *key*."""

    async def some(self, kind: type[R], ids: Collection[str]) -> Sequence[R]:
        """Those of *ids* that are there, by id, in one question. For kinds whose key is `id`."""

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
    def events(self) -> records.EventQueries: ...
    @property
    def logs(self) -> records.EventQueries:
        """Output lines that nobody followed, by numbers of their own that may have gaps. EX-28."""

    @property
    def audit(self) -> records.AuditQueries: ...


class Unit(View, Protocol):
    """
    One unit of work: reads, collected writes, one `commit`.

    Reads are `async` because a store may have to travel; writes are plain calls because they only
    collect. Leaving without `commit` leaves no trace. After `commit` returned, everything is
    durable (a power cut does not undo it). A cancelled `commit` has happened wholly or not at all.
    """

    def put(self, record: Any) -> None:
        """
        Store a record of a kind of `RECORDS`, comparing its version.

        An `Execution`: `worker` and `fence` as in the record; when `worker` is None the lease is
        gone. The lease's end is the store's own, see `Store.claim`. A `Replay` of version 0 may
        also replace one that is older than 24 h.
        """

    def delete(self, record: Any) -> None:
        """
        Delete a record, comparing its version, with what its kind `owns`: of two units that
        delete the same record, one commits.
        """

    def discard(self, kind: type[Any], *key: str) -> None:
        """Delete the record under *key*, whatever its version. For kinds that own nothing."""

    def append(self, entry: Event | AuditEntry, record: str | None = None) -> None:
        """
        Add an entry to a log. An event's number, or an audit entry's id, that exists already makes
        `commit` raise `Stale`.

        An audit entry goes to the end of the chain; *record*: canonical JSON to keep with it,
        whose hash is in the entry. AL-3.
        """

    def log(self, line: Event) -> None:
        """Add output lines (see `View.logs`). A number that exists already is `Stale`."""

    def tally(self, webhook_id: str, date: str, status: int, at: EpochMs) -> None:
        """Count one answer of a webhook. Units never collide over it."""

    def deliver(self, record: Delivery) -> None:
        """
        Add a delivery (its id is new). Of each webhook the newest `DELIVERIES_KEPT` by id stay of
        those that are `authenticated`, and as many of the others. Units never collide over it.
        """

    def purge(self, *ids: str) -> None:
        """
        Delete executions with their events, approvals, callbacks and artifact records. Files are
        the caller's.
        """

    def require_abandoned(self, record: Execution) -> None:
        """
        `commit` raises `Stale` unless *record*'s worker still holds it then and is gone: its
        lease is over by the store's time, or its process has ended. A lease that was extended
        after `abandoned` was read keeps the execution, although `extend` changes no version.
        """

    def limit_group(self, workflow_id: str, at_once: int | None) -> None:
        """
        From this unit on so many of each concurrency group of the workflow run at once (None:
        all); see `Store.claim`. Slots are counted from the executions, so that none can be lost.
        """

    def require_room(self, group: str, at_once: int) -> None:
        """
        `commit` raises `Stale` where, after what this unit has collected so far, *at_once*
        executions of *group* or more have not ended: of racing units only as many commit as fit.
        """

    async def commit(self) -> None:
        """
        Store everything that was collected, or nothing.

        Raises:
            Stale: a record changed since it was read, or a unique value is taken.
            StoreUnavailable: the store cannot write now, and nothing was stored; or its
                answer got lost, and everything was. Who tries again must find out which.
        """


class queries(Generic[Q]):
    """
    For authors of stores: an attribute of a unit that holds the queries of one subject,

        accounts = queries(Accounts)

    made by the class over whatever the unit keeps in `_unit`.
    """

    def __init__(self, make: Callable[[Any], Q]) -> None:
        self._make = make

    def __get__(self, unit: Any, owner: type | None = None) -> Q:
        return self._make(unit._unit)


@frozen
class Slots:
    """
    How a worker's places are shared out among accounts. Decision 61.

    The last free one is kept for accounts that hold none, while other accounts have work lately:
    they hold a place of this worker, or were given one, by any worker, less than `lately_ms`
    before. So one account's flood leaves room for the next one's first step, and a service of one
    account uses all its places. Counted from rows in the claiming transaction.
    """

    places: int
    lately_ms: DurationMs = HOUR

    def admits(self, held: int, free: int, *, others_lately: bool) -> bool:
        """Whether an account that holds *held* places may take one of those that are *free*."""
        return free > 0 and (held == 0 or free > 1 or not others_lately)


class Store(Protocol):
    """
    Where everything is kept. One task uses one unit; units of many tasks run at once.

    Driver errors never cross this port: they become `StoreUnavailable`.

    **Time.** Leases end and work becomes due by the store's own time, so that machines whose
    clocks differ agree about both: a lease is a duration, and no caller says what time it is. What
    people set (deadlines of approvals, schedules) is asked for with an instant.
    """

    def now(self) -> EpochMs:
        """
        The store's time, in which use cases write every due time and stamp of work. It never goes
        back within a process.

        A store that others share over a network measures how far the time of its database is from
        a monotonic clock of the process, so that asking costs no journey; it may be off by as much
        as an answer takes. A store on one machine is given the clock of the process, whose
        `Clock.service_now` agrees with that of other processes.
        """

    def unit(self) -> AbstractAsyncContextManager[Unit]:
        """A unit of work."""

    def view(self) -> AbstractAsyncContextManager[View]:
        """A read-only look."""

    async def enlist(self, worker: str) -> None:
        """
        Make *worker* known as alive until this store is closed or its process ends.

        Where the store can tell that a worker's process has ended (a lock that the operating
        system gave back), `abandoned` reports its executions at once; else when the lease is over.
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
        Take up to *limit* due executions for *worker*, atomically.

        Due: PENDING, RUNNING or AWAITING_APPROVAL (the time of something else in it is up),
        `due_at` at or before the store's time, held by nobody. *ids*: only those among them (None:
        any), for a queue that says which one is next. *able*: only those whose `capabilities` are
        all in it (None: the worker is able to do everything).

        The account with the fewest held places comes first, of those with equally few the one
        that was given a place longest ago (they take turns), within an account the earliest
        `due_at`; how many it may take, `Slots` says. Each is returned as stored: `worker` set,
        `fence` and `version` one higher, `due_at` None, leased for *lease_ms* from now on. Of
        racing workers exactly one gets each execution.

        One with a `concurrency_group` that nobody has taken yet (`fence` 0) waits while as many of
        that group as its workflow's limit says were taken and have not ended; within a group the
        earliest `due_at`, then the smallest id comes first. It does not keep any other from being
        taken.
        """

    async def extend(
        self, worker: str, ids: Collection[str], lease_ms: DurationMs
    ) -> Mapping[str, EpochMs | None]:
        """
        Let the leases that *worker* holds of *ids* end *lease_ms* from now; those that it does
        hold, each with its `due_at`.

        Others that it holds run out: it does not know of them, as when a claim's answer got lost.
        """

    async def ping(self) -> None:
        """Read and write reachable? Raises `StoreUnavailable`."""

    async def trim(
        self,
        audit_before: EpochMs,
        replays_before: EpochMs,
        sessions_before: EpochMs,
        deliveries_before: EpochMs,
        limit: int,
    ) -> int:
        """
        Delete up to *limit* old records, the oldest of a kind first; how many went: audit
        entries, idempotency records, deliveries of webhooks, and, by *sessions_before*, sessions
        (when they began), logins (their last failure) and links to sign in.

        Audit entries go in the order in which they were committed, up to the first that is too
        young, and the chain then starts with the last that went. AL-5.
        """

    async def release(self, limit: int) -> int:
        """
        Give up to *limit* bytes that nothing uses any more back to the system, soon enough for
        others to write meanwhile; how many went. 0: there is nothing worth giving back.
        """

    async def close(self) -> None:
        """Finish what was handed in, then release everything. Safe to call twice."""
