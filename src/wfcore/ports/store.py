"""The store: units of work, views, claims. See `records` for what they hold."""

from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Protocol

from attrs import frozen

from wfcore.model.execution import Execution
from wfcore.ports import records
from wfcore.time import HOUR, DurationMs, EpochMs


class View(Protocol):
    """A read-only look at the store. Never waits for a writer."""

    @property
    def accounts(self) -> records.AccountsView: ...
    @property
    def keys(self) -> records.KeysView: ...
    @property
    def sessions(self) -> records.SessionsView: ...
    @property
    def logins(self) -> records.LoginsView: ...
    @property
    def workflows(self) -> records.WorkflowsView: ...
    @property
    def definitions(self) -> records.DefinitionsView: ...
    @property
    def shares(self) -> records.SharesView: ...
    @property
    def executions(self) -> records.ExecutionsView: ...
    @property
    def approvals(self) -> records.ApprovalsView: ...
    @property
    def artifacts(self) -> records.ArtifactsView: ...
    @property
    def callbacks(self) -> records.CallbacksView: ...
    @property
    def webhooks(self) -> records.WebhooksView: ...
    @property
    def lanes(self) -> records.LanesView: ...
    @property
    def triggers(self) -> records.TriggersView: ...
    @property
    def timers(self) -> records.TimersView: ...
    @property
    def replays(self) -> records.ReplaysView: ...
    @property
    def events(self) -> records.EventsView: ...
    @property
    def logs(self) -> records.EventsView:
        """Output lines that nobody followed, by numbers of their own that may have gaps. EX-28."""

    @property
    def audit(self) -> records.AuditView: ...


class Unit(Protocol):
    """
    One unit of work: reads, collected writes, one `commit`.

    Leaving without `commit` leaves no trace. After `commit` returned, everything is durable
    (a power cut does not undo it). A cancelled `commit` has happened wholly or not at all.
    """

    @property
    def accounts(self) -> records.Accounts: ...
    @property
    def keys(self) -> records.Keys: ...
    @property
    def sessions(self) -> records.Sessions: ...
    @property
    def logins(self) -> records.Logins: ...
    @property
    def workflows(self) -> records.Workflows: ...
    @property
    def definitions(self) -> records.Definitions: ...
    @property
    def shares(self) -> records.Shares: ...
    @property
    def executions(self) -> records.Executions: ...
    @property
    def approvals(self) -> records.Approvals: ...
    @property
    def artifacts(self) -> records.Artifacts: ...
    @property
    def callbacks(self) -> records.Callbacks: ...
    @property
    def webhooks(self) -> records.Webhooks: ...
    @property
    def lanes(self) -> records.Lanes: ...
    @property
    def triggers(self) -> records.Triggers: ...
    @property
    def timers(self) -> records.Timers: ...
    @property
    def replays(self) -> records.Replays: ...
    @property
    def events(self) -> records.Events: ...
    @property
    def logs(self) -> records.Events: ...
    @property
    def audit(self) -> records.Audit: ...

    async def commit(self) -> None:
        """
        Store everything that was collected, or nothing.

        Raises:
            Stale: a record changed since it was read, or a unique value is taken.
            StoreUnavailable: the store cannot write now, and nothing was stored; or its
                answer got lost, and everything was. Who tries again must find out which.
        """


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
        self, worker: str, now: EpochMs, until: EpochMs, slots: Slots, limit: int
    ) -> Sequence[Execution]:
        """
        Take up to *limit* due executions for *worker*, atomically.

        Due: PENDING, RUNNING or AWAITING_APPROVAL (the time of something else in it is up),
        `due_at` at or before *now*, held by nobody. The account with
        the fewest held places comes first, of those with equally few the one that was given a
        place longest ago (they take turns), within an account the earliest `due_at`; how many it
        may take, `Slots` says. Each is
        returned as stored: `worker` set, `fence` and `version` one higher, `due_at` None,
        leased *until*.
        Of racing workers exactly one gets each execution.

        One with a `lane` that nobody has taken yet (`fence` 0) waits while as many of its lane
        as its workflow's limit says were taken and have not ended; within a lane the earliest
        `due_at`, then the smallest id comes first. It does not keep any other from being taken.
        """

    async def extend(
        self, worker: str, ids: Collection[str], until: EpochMs
    ) -> Mapping[str, EpochMs | None]:
        """
        Extend the leases that *worker* holds of *ids*; those that it does hold, each with its
        `due_at`.

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
        (when they began) and logins (their last failure).

        Audit entries go in the order in which they were committed, up to the first that is too
        young, and the chain then starts with the last that went. AL-5.
        """

    async def release(self, limit: int) -> int:
        """
        Give up to *limit* bytes that nothing uses any more back to the system, soon enough for
        others to write meanwhile; how many went. 0: there is nothing worth giving back.
        """

    async def backup(self, path: str) -> None:
        """Write a consistent copy of the database to *path* while everything goes on."""

    async def close(self) -> None:
        """Finish what was handed in, then release everything. Safe to call twice."""
