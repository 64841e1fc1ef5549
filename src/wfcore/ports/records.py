"""
Reading and collecting records: one Protocol per kind.

Readers are `async` because a store may have to travel; writers are plain calls because they
only collect: nothing is stored before `Unit.commit`. Inside a unit, a read sees what the same
unit has put. Records are frozen, so a store may hand out the same object twice.

`put` is compare-and-set: version 0 means "must be new", n means "the stored version must be
n". The stored copy's version is one higher; the record given stays as it is. The loser of a
race gets `Stale` from `commit` at the latest (a later read of its unit may say so, too), and
nothing of its unit is visible. One unit may put a record several times: each further `put`
starts from the version that the read after a `put` shows.
"""

from collections.abc import Collection, Sequence
from typing import Protocol

from attrs import frozen

from wfcore.model.access import Account, ApiKey, Login, Session, Share
from wfcore.model.approval import Approval, ApprovalStatus
from wfcore.model.artifact import Artifact
from wfcore.model.callback import Callback
from wfcore.model.event import AuditChain, AuditEntry, ChainedEntry, Event
from wfcore.model.execution import Execution, ExecutionStatus, TriggerSource
from wfcore.model.page import Page, PageRequest
from wfcore.model.replay import Replay
from wfcore.model.trigger import Timer, Trigger
from wfcore.model.webhook import Delivery, Tally, Webhook
from wfcore.model.workflow import DefinitionSnapshot, Workflow
from wfcore.time import EpochMs


class AccountsView(Protocol):
    async def get(self, id: str) -> Account | None: ...
    async def some(self, ids: Collection[str]) -> Sequence[Account]:
        """Those of *ids* that are there, by id, in one question."""

    async def by_email(self, email: str) -> Account | None:
        """The account with that email (compared in lower case)."""

    async def list(self, page: PageRequest) -> Page[Account]:
        """All accounts, newest first."""


class Accounts(AccountsView, Protocol):
    def put(self, record: Account) -> None:
        """Store. An email that another account has makes `commit` raise `Stale`."""


class KeysView(Protocol):
    async def get(self, id: str) -> ApiKey | None: ...
    async def some(self, ids: Collection[str]) -> Sequence[ApiKey]:
        """Those of *ids* that are there, by id, in one question."""

    async def of_account(self, account_id: str) -> Sequence[ApiKey]:
        """All keys of an account, newest first."""


class Keys(KeysView, Protocol):
    def put(self, record: ApiKey) -> None: ...


class SessionsView(Protocol):
    async def get(self, id: str) -> Session | None: ...
    async def of_account(self, account_id: str) -> Sequence[Session]:
        """All sessions of an account that are still stored, ended ones too, newest first."""


class Sessions(SessionsView, Protocol):
    def put(self, record: Session) -> None: ...
    def delete(self, id: str) -> None: ...


class LoginsView(Protocol):
    async def get(self, id: str) -> Login | None: ...


class Logins(LoginsView, Protocol):
    def put(self, record: Login) -> None: ...
    def delete(self, id: str) -> None: ...


class WorkflowsView(Protocol):
    async def get(self, id: str) -> Workflow | None: ...
    async def by_name(self, owner_id: str, name: str) -> Workflow | None: ...
    async def visible_to(self, account_id: str, page: PageRequest) -> Page[Workflow]:
        """Workflows the account owns or has any share of, by name, then id."""

    async def list(self, page: PageRequest) -> Page[Workflow]:
        """All workflows, by name, then id."""


class Workflows(WorkflowsView, Protocol):
    def put(self, record: Workflow) -> None:
        """Store. A name that the owner uses elsewhere makes `commit` raise `Stale`."""

    def delete(self, record: Workflow) -> None:
        """Delete it and its shares (compare-and-set). Definition snapshots stay."""


class DefinitionsView(Protocol):
    async def get(self, workflow_id: str, revision: int) -> DefinitionSnapshot | None: ...
    async def in_use(self) -> Sequence[DefinitionSnapshot]:
        """Every workflow's current one, and those of open executions; by workflow, revision."""


class Definitions(DefinitionsView, Protocol):
    def put(self, record: DefinitionSnapshot) -> None:
        """Store a new snapshot; snapshots never change."""


class SharesView(Protocol):
    async def get(self, workflow_id: str, account_id: str) -> Share | None: ...
    async def of_workflow(self, workflow_id: str) -> Sequence[Share]: ...


class Shares(SharesView, Protocol):
    def put(self, record: Share) -> None: ...
    def delete(self, workflow_id: str, account_id: str) -> None: ...


@frozen
class ExecutionFilter:
    """
    Which executions a list shows, and in which order. Every field that is set narrows.

    `owner_id`: those that belong to the account. `workflow_id`: those of one workflow.
    `statuses`, `sources`: those with one of them; empty: with any. `since`, `until`: accepted
    at or after the one, and before the other.
    """

    owner_id: str | None = None
    workflow_id: str | None = None
    statuses: tuple[ExecutionStatus, ...] = ()
    sources: tuple[TriggerSource, ...] = ()
    since: EpochMs | None = None
    until: EpochMs | None = None
    oldest_first: bool = False


class ExecutionsView(Protocol):
    async def get(self, id: str) -> Execution | None: ...
    async def list(self, where: ExecutionFilter, page: PageRequest) -> Page[Execution]:
        """
        Newest first, unless `where` says otherwise. So that a page stays small whatever went
        in and came out, the rows and their `step_results` carry no `output` and no `items`, and
        no `variables` unless `secrets` names some (masking needs their values). Such records
        must not be `put`.
        """

    async def grace_over(self, now: EpochMs, limit: int) -> Sequence[Execution]:
        """INTERRUPTED executions with `due_at` at or before *now*, oldest first."""

    async def abandoned(self, now: EpochMs, limit: int) -> Sequence[Execution]:
        """
        Unfinished executions whose worker is gone: the lease was over before *now*, or the
        store knows that the worker's process has ended (see `Store.enlist`).
        """

    async def next_due(self) -> EpochMs | None:
        """
        The earliest `due_at` of an execution that nobody holds and `Store.claim` may give. Those
        that wait in their lane may be left out.
        """

    async def ended_before(self, at: EpochMs, limit: int) -> Sequence[str]:
        """Ids of executions that ended before *at*, oldest first."""

    async def redriven_as(self, id: str) -> str | None:
        """The execution with that `redrive_of`; of several the one that was accepted last."""


class Executions(ExecutionsView, Protocol):
    def put(self, record: Execution) -> None:
        """
        Store head and step results. `worker`, `fence`: as in the record; when `worker` is
        None the lease is gone. The lease's end is the store's own, see `Store.claim`.
        """

    def require_abandoned(self, record: Execution, now: EpochMs) -> None:
        """
        `commit` raises `Stale` unless *record*'s worker still holds it then and is gone: its
        lease is over at *now*, or its process has ended. A lease that was extended after
        `abandoned` was read keeps the execution, although `extend` changes no version.
        """

    def purge(self, *ids: str) -> None:
        """
        Delete it with its events, approvals, callback and artifact records. Files are the
        caller's.
        """


@frozen
class ApprovalFilter:
    """
    Which approvals a list shows: those that *account_id* (with *email*) may see, that is
    owner of the execution, owner of the workflow, named approver, or, where no approvers
    are named, holder of an EDIT share on the workflow. `account_id` None: all.

    Every other field that is set narrows, as in `ExecutionFilter`; `since` and `until` are
    about `created_at`. `waiting`: only PENDING ones that the account may approve and has not
    approved yet.
    """

    account_id: str | None = None
    email: str | None = None
    statuses: tuple[ApprovalStatus, ...] = ()
    workflow_id: str | None = None
    execution_id: str | None = None
    since: EpochMs | None = None
    until: EpochMs | None = None
    waiting: bool = False
    oldest_first: bool = False


class ApprovalsView(Protocol):
    async def get(self, id: str) -> Approval | None: ...
    async def list(self, where: ApprovalFilter, page: PageRequest) -> Page[Approval]:
        """Newest first, unless `where` says otherwise."""

    async def of_execution(self, execution_id: str) -> Sequence[Approval]:
        """Newest first."""

    async def due(self, now: EpochMs, limit: int) -> Sequence[Approval]:
        """PENDING approvals with `expires_at` at or before *now*, oldest expiry first."""

    async def reminders_due(self, now: EpochMs, limit: int) -> Sequence[Approval]:
        """PENDING approvals with `remind_at` at or before *now*, oldest first."""

    async def next_deadline(self) -> EpochMs | None:
        """The earliest `expires_at` or `remind_at` of a PENDING approval."""


class Approvals(ApprovalsView, Protocol):
    def put(self, record: Approval) -> None: ...


class ArtifactsView(Protocol):
    async def get(self, id: str) -> Artifact | None: ...
    async def of_execution(self, execution_id: str) -> Sequence[Artifact]:
        """Newest first."""


class Artifacts(ArtifactsView, Protocol):
    def put(self, record: Artifact) -> None: ...


class CallbacksView(Protocol):
    async def get(self, id: str) -> Callback | None: ...
    async def due(self, now: EpochMs, limit: int) -> Sequence[Callback]:
        """Those with `due_at` at or before *now*, earliest first."""

    async def next_due(self) -> EpochMs | None:
        """The earliest `due_at`."""


class Callbacks(CallbacksView, Protocol):
    def put(self, record: Callback) -> None: ...


class WebhooksView(Protocol):
    async def get(self, id: str) -> Webhook | None: ...
    async def of_owner(self, owner_id: str | None, page: PageRequest) -> Page[Webhook]:
        """Newest first; None: of all owners."""

    async def all_of_owner(self, owner_id: str) -> Sequence[Webhook]:
        """Newest first, all of them (their number is limited by plan)."""

    async def of_workflow(self, workflow_id: str) -> Sequence[Webhook]:
        """Newest first."""

    async def tallies(self, webhook_id: str) -> Sequence[Tally]:
        """By date, then status."""

    async def deliveries(self, webhook_id: str) -> Sequence[Delivery]:
        """The last ones, newest first."""


class Webhooks(WebhooksView, Protocol):
    def put(self, record: Webhook) -> None: ...
    def delete(self, record: Webhook) -> None:
        """Delete it, its tallies and its deliveries (compare-and-set)."""

    def tally(self, webhook_id: str, date: str, status: int, at: EpochMs) -> None:
        """Count one answer. Adds without compare-and-set: units never collide over it."""

    def deliver(self, record: Delivery) -> None:
        """
        Add a delivery (its id is new). Of each webhook the newest `DELIVERIES_KEPT` by id stay of
        those that are `authenticated`, and as many of the others. Units never collide over it.
        """


class TriggersView(Protocol):
    async def get(self, id: str) -> Trigger | None: ...
    async def list(self, page: PageRequest) -> Page[Trigger]:
        """All triggers, newest first."""

    async def of_workflow(self, workflow_id: str) -> Sequence[Trigger]:
        """Oldest first."""

    async def watching(self, keys: Collection[str]) -> Sequence[Trigger]:
        """The triggers whose `watches` is one of *keys*, oldest first."""


class Triggers(TriggersView, Protocol):
    def put(self, record: Trigger) -> None: ...
    def delete(self, record: Trigger) -> None:
        """Delete it and its timers (compare-and-set)."""


class LanesView(Protocol):
    async def unfinished(self, lane: str) -> int:
        """How many executions of *lane* have not ended, those that wait included."""

    async def held(self, lane: str) -> int:
        """How many of them were taken by a worker, if only once."""


class Lanes(LanesView, Protocol):
    """
    Executions of one lane run at once up to the limit of their workflow; see `Store.claim`.

    Places are counted from the executions themselves, so that none can be lost.
    """

    def limit(self, workflow_id: str, at_once: int | None) -> None:
        """From this unit on so many of each lane of the workflow run at once (None: all)."""

    def require_room(self, lane: str, at_once: int) -> None:
        """
        `commit` raises `Stale` where, after what this unit has collected so far, *at_once*
        executions of *lane* or more have not ended: of racing units only as many commit as fit.
        """


class TimersView(Protocol):
    async def get(self, id: str) -> Timer | None: ...
    async def due(self, now: EpochMs, limit: int) -> Sequence[Timer]:
        """Timers with `due_at` at or before *now*, oldest first."""

    async def next_due(self) -> EpochMs | None:
        """The earliest `due_at` of all."""

    async def next_of(self, trigger_id: str) -> EpochMs | None:
        """The earliest `due_at` of one trigger's timers."""


class Timers(TimersView, Protocol):
    def put(self, record: Timer) -> None: ...
    def delete(self, record: Timer) -> None:
        """Delete it (compare-and-set): of two units that consume a timer, one commits."""


class ReplaysView(Protocol):
    async def get(self, scope: str, key: str) -> Replay | None: ...


class Replays(ReplaysView, Protocol):
    def put(self, record: Replay) -> None:
        """Store. Version 0 may replace a record older than 24 h; else it must be new."""


class EventsView(Protocol):
    async def of_execution(self, execution_id: str, after: int, limit: int) -> Sequence[Event]:
        """Events with a number above *after*, in order."""


class Events(EventsView, Protocol):
    def append(self, event: Event) -> None:
        """Add an event. A number that exists already makes `commit` raise `Stale`."""


class AuditView(Protocol):
    """
    Entries in a chain: each carries the hash of the one that was committed before it, by
    whichever process. See `rules.audit.chain`. AL-1.
    """

    async def list(self, since: EpochMs, after_id: str | None, limit: int) -> Sequence[AuditEntry]:
        """Entries from *since* on with an id above *after_id*, oldest first."""

    async def chain(self) -> AuditChain:
        """Where the chain begins and ends now."""

    async def chained(self, after: int, limit: int) -> Sequence[ChainedEntry]:
        """Entries with a number above *after*, in order, exactly as they are stored."""

    async def of_execution(self, execution_id: str) -> Sequence[ChainedEntry]:
        """The entries with that `execution_id`, in order."""


class Audit(AuditView, Protocol):
    def append(self, entry: AuditEntry, record: str | None = None) -> None:
        """
        Add an entry at the end of the chain; an id that exists already makes `commit` raise
        `Stale`. *record*: canonical JSON to keep with it, whose hash is in the entry. AL-3.
        """
