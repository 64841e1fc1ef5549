"""
What a store keeps: `RECORDS`, one row for each kind of record, and the named queries.

**Records.** All kinds are stored in the same way and differ only in their rows: the key, what must
be unique, what is deleted with a record. `View.get` reads a record by its key and `Unit.put` stores
it. The contract suite, the comparison and our stores iterate over `RECORDS`: a new kind needs a
record class, a row here, its queries and, for a SQL store, a migration.

**Compare-and-set.** A record carries its `version`: 0 means "must be new", n means "the stored
version must be n". The stored copy gets the next version; the record that was passed does not
change. The loser of a race gets `Stale` from `commit` at the latest (a later read in the same unit
may also raise it), and none of its unit becomes visible. ST-1. A unit may put a record several
times: each further `put` starts from the version that a read after the previous one returns.

**Queries** answer what a key cannot: lists, due records, records that belong to another one. Inside
a unit they see what the same unit has put. They are grouped by subject, read only, and the same for
a view and a unit. Records are frozen, so a store may return the same object twice.

An execution's `trigger_source`, `concurrency_group`, `redrive_of` and `capabilities` never change:
a store may read them from the new record only. The definition of a revision never changes either:
a store may cache it.

**Logs** (`Event`, `AuditEntry`) are append-only; units never conflict over tallies and deliveries.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Protocol

from attrs import frozen

from wfcore.model.access import Account, ApiKey, Login, LoginLink, Session, Share, by_email
from wfcore.model.approval import Approval, ApprovalHead, ApprovalStatus
from wfcore.model.event import AuditChain, AuditEntry, ChainedEntry, Event
from wfcore.model.execution import (
    Artifact,
    Callback,
    Execution,
    ExecutionStatus,
    Replay,
    TriggerSource,
)
from wfcore.model.node import Node
from wfcore.model.notice import Notice, NoticeStatus
from wfcore.model.page import Page, PageRequest
from wfcore.model.signing import SigningKeys
from wfcore.model.trigger import Timer, Trigger
from wfcore.model.webhook import Delivery, Tally, Webhook
from wfcore.model.workflow import DefinitionSnapshot, Workflow
from wfcore.time import DAY, EpochMs

Owned = tuple[tuple[type[Any], str], ...]


@frozen
class RecordKind:
    """
    One kind of record.

    *name*: as shown by `Stale` and in messages. *key*: the fields that identify a record. *unique*:
    fields whose combination must be unique; a second record with the same values makes `commit`
    raise `Stale`. *owns*: kinds that are deleted with a record, each with the field that refers to
    the owner.
    """

    name: str
    type: type[Any]
    key: tuple[str, ...] = ("id",)
    unique: tuple[str, ...] = ()
    owns: Owned = ()

    def key_of(self, record: Any) -> tuple[Any, ...]:
        """The values of the key."""
        return tuple(getattr(record, name) for name in self.key)


RECORDS = (
    RecordKind("account", Account, unique=("email",)),
    RecordKind("key", ApiKey),
    RecordKind("session", Session),
    RecordKind("login", Login),
    RecordKind("login link", LoginLink),
    RecordKind("signing keys", SigningKeys),
    RecordKind("workflow", Workflow, unique=("owner_id", "name"), owns=((Share, "workflow_id"),)),
    RecordKind("definition", DefinitionSnapshot, key=("workflow_id", "revision")),
    RecordKind("share", Share, key=("workflow_id", "account_id")),
    RecordKind("execution", Execution),
    RecordKind("approval", Approval),
    RecordKind("artifact", Artifact),
    RecordKind("callback", Callback),
    RecordKind("webhook", Webhook, owns=((Tally, "webhook_id"), (Delivery, "webhook_id"))),
    RecordKind("trigger", Trigger, owns=((Timer, "trigger_id"),)),
    RecordKind("timer", Timer),
    RecordKind("notice", Notice),
    RecordKind("node", Node),
    RecordKind("replay", Replay, key=("scope", "key")),
)
"""Every kind of record that is read by its key and stored by its version."""

KIND_OF = {kind.type: kind for kind in RECORDS}


class AccountQueries(Protocol):
    async def by_email(self, email: str) -> Account | None:
        """The account with that email (compared in lower case)."""

    async def list(self, page: PageRequest) -> Page[Account]:
        """All accounts, newest first."""


class KeyQueries(Protocol):
    async def of_account(self, account_id: str) -> Sequence[ApiKey]:
        """All keys of an account, newest first."""


class SessionQueries(Protocol):
    async def of_account(self, account_id: str) -> Sequence[Session]:
        """All stored sessions of an account, including ended ones, newest first."""


@frozen
class Activity:
    """
    What a workflow does, as far as an account sees it (AC-4): `last`, the execution accepted last.
    `hours`: of those accepted in each hour from the asked instant on, `(ended, failed)`; ended are
    COMPLETED and CANCELLED. `waiting`: their open approvals. `next_at`: the next timer. `cost_usd`:
    the sum of `ended_cost` of those of the week that ends with the hours, but `unpriced` ones.
    """

    last: str | None = None
    last_status: ExecutionStatus | None = None
    last_at: EpochMs | None = None
    hours: tuple[tuple[int, int], ...] = ()
    waiting: int = 0
    next_at: EpochMs | None = None
    cost_usd: str = "0"
    unpriced: int = 0


HOURS, WEEK = 24, 7 * DAY
"""What an `Activity` counts, in hours, and what it sums costs of, in ms."""


class WorkflowQueries(Protocol):
    async def activity(
        self, ids: Collection[str], account_id: str | None, since: EpochMs
    ) -> Mapping[str, Activity]:
        """
        Of each existing workflow among *ids*, in one query, of the executions that the account owns
        or whose workflow it owns (None: of all), in the `HOURS` hours from *since* on.
        """

    async def by_name(self, owner_id: str, name: str) -> Workflow | None: ...
    async def visible_to(self, account_id: str, page: PageRequest) -> Page[Workflow]:
        """Workflows that the account owns or that are shared with it, by name, then id."""

    async def list(self, page: PageRequest) -> Page[Workflow]:
        """All workflows, by name, then id."""


class DefinitionQueries(Protocol):
    async def in_use(self) -> Sequence[DefinitionSnapshot]:
        """Every workflow's current one, and those of open executions; by workflow, revision."""


class ShareQueries(Protocol):
    async def of_workflow(self, workflow_id: str) -> Sequence[Share]: ...


@frozen
class ExecutionFilter:
    """
    Which executions a list shows, and in which order. Each field that is set narrows the list.

    `owner_id`: owned by that account. `workflow_id`: of that workflow. `statuses`, `sources`: with
    one of these; empty means any. `since`, `until`: accepted at or after `since` and before
    `until`. `id_end`: with an id that ends in this, among the newest `SEARCHED` executions that the
    other fields leave.
    """

    owner_id: str | None = None
    workflow_id: str | None = None
    statuses: tuple[ExecutionStatus, ...] = ()
    sources: tuple[TriggerSource, ...] = ()
    since: EpochMs | None = None
    until: EpochMs | None = None
    oldest_first: bool = False
    id_end: str | None = None


SEARCHED = 50_000
"""How many executions a search for the end of an id looks at. Decision 147."""


class ExecutionQueries(Protocol):
    async def list(self, where: ExecutionFilter, page: PageRequest) -> Page[Execution]:
        """
        Newest first, unless `where` says otherwise. So that a page stays small whatever went
        in and came out, the rows and their `step_results` carry no `output` and no `items`, and
        no `variables` unless `secrets` names some (masking needs their values). Such records
        must not be `put`.
        """

    async def by_status(self, where: ExecutionFilter, most: int) -> Mapping[ExecutionStatus, int]:
        """
        How many executions fit *where* in each status, whatever its `statuses` and `id_end` say;
        each is counted up to *most*. Every status is there.
        """

    async def grace_over(self, limit: int) -> Sequence[Execution]:
        """
        INTERRUPTED executions whose `due_at` has come by the store's time, oldest first; large
        outputs may be left out.
        """

    async def abandoned(self, limit: int) -> Sequence[Execution]:
        """
        Unfinished executions whose worker is gone: its lease has expired by the store's time, or
        the store knows that its process has ended (see `Store.enlist`). Ordered by id; large
        outputs may be left out.
        """

    async def next_due(self, able: Collection[str] | None = None) -> EpochMs | None:
        """
        The earliest `due_at` of an unclaimed execution that `Store.claim` may return to a worker
        with these capabilities (None: with all). Executions that wait in their concurrency group
        may be left out.
        """

    async def ended_before(self, at: EpochMs, limit: int) -> Sequence[str]:
        """Ids of executions that ended before *at*, oldest first."""

    async def redriven_as(self, id: str) -> str | None:
        """The execution with that `redrive_of`; if there are several, the last one accepted."""


@frozen
class ApprovalFilter:
    """
    Which approvals a list shows: those that *account_id* (with *email*) may see, that is
    owner of the execution, owner of the workflow, named approver, or, where no approvers
    are named, holder of an EDIT share on the workflow. `account_id` None: all.

    Every other field that is set narrows, as in `ExecutionFilter`; `since` and `until` are
    about `created_at`. `waiting`: only PENDING ones that the account may approve and has not
    approved yet, and where it is not `idle`: its stage is asked, and nobody spoke for it. `agreed`:
    only PENDING ones that the account has approved. `soonest`: by `expires_at`, the first to expire
    first, whatever `oldest_first` says.

    The account has approved where an assent carries one of its `identities`. PL-3.
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
    agreed: bool = False
    soonest: bool = False

    @property
    def identities(self) -> tuple[str, str]:
        """What an assent of this person may be recorded under: the account, and its email."""
        return self.account_id or "", by_email(self.email or "")


class ApprovalQueries(Protocol):
    """
    Lists, except those of one execution, are of heads, so that a page stays small however many rows
    are asked about. A store should not read the rows for them, either.
    """

    async def list(self, where: ApprovalFilter, page: PageRequest) -> Page[ApprovalHead]:
        """Heads; newest first, unless `where` says otherwise."""

    async def count(self, where: ApprovalFilter, most: int) -> int:
        """How many fit *where*, up to *most*; a page of them need not count them then."""

    async def of_execution(self, execution_id: str) -> Sequence[Approval]:
        """Whole ones; newest first."""

    async def due(self, now: EpochMs, limit: int) -> Sequence[ApprovalHead]:
        """
        Heads of PENDING approvals with `expires_at` at or before *now*, oldest expiry first.
        """

    async def reminders_due(self, now: EpochMs, limit: int) -> Sequence[ApprovalHead]:
        """Heads of PENDING approvals whose `next_reminder` is at or before *now*, oldest first."""

    async def open(self, most: int) -> tuple[int, EpochMs | None]:
        """How many are PENDING, up to *most*, and when the oldest of them was opened."""

    async def next_deadline(self) -> EpochMs | None:
        """The earliest `expires_at` or `next_reminder` of a PENDING approval."""


class ArtifactQueries(Protocol):
    async def of_execution(self, execution_id: str) -> Sequence[Artifact]:
        """Newest first."""


class CallbackQueries(Protocol):
    async def due(self, limit: int) -> Sequence[Callback]:
        """Callbacks whose `due_at` has come by the store's time, earliest first."""

    async def next_due(self) -> EpochMs | None:
        """The earliest `due_at`."""


class WebhookQueries(Protocol):
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


class TriggerQueries(Protocol):
    async def of_owner(self, owner_id: str, page: PageRequest) -> Page[Trigger]:
        """Triggers of the workflows of one account, newest first."""

    async def list(self, page: PageRequest) -> Page[Trigger]:
        """All triggers, newest first."""

    async def of_workflow(self, workflow_id: str) -> Sequence[Trigger]:
        """Oldest first."""

    async def watching(self, keys: Collection[str]) -> Sequence[Trigger]:
        """The triggers whose `watches` is one of *keys*, oldest first."""


class GroupQueries(Protocol):
    async def unfinished(self, group: str) -> int:
        """The number of executions of *group* that have not ended, including waiting ones."""

    async def held(self, group: str) -> int:
        """The number of those that a worker has claimed at least once."""


class TimerQueries(Protocol):
    async def due(self, now: EpochMs, limit: int) -> Sequence[Timer]:
        """Timers with `due_at` at or before *now*, oldest first."""

    async def next_due(self) -> EpochMs | None:
        """The earliest `due_at` of all."""

    async def next_of(self, trigger_id: str) -> EpochMs | None:
        """The earliest `due_at` of one trigger's timers."""


class NoticeQueries(Protocol):
    async def due(self, limit: int) -> Sequence[Notice]:
        """Those whose `due_at` has come by the store's time, earliest first."""

    async def next_due(self) -> EpochMs | None:
        """The earliest `due_at`."""

    async def at_address(
        self, channel: str, to: str, since: EpochMs, limit: int
    ) -> Sequence[Notice]:
        """
        Those of one address that are due some time, or were attempted at or after *since*; by
        `created_at`, then id.
        """

    async def list(self, statuses: tuple[NoticeStatus, ...], page: PageRequest) -> Page[Notice]:
        """Those with one of *statuses*, or all where none is given; newest first."""


class NodeQueries(Protocol):
    async def list(self) -> Sequence[Node]:
        """All that are stored, also such as are gone, by id."""


class EventQueries(Protocol):
    async def of_execution(self, execution_id: str, after: int, limit: int) -> Sequence[Event]:
        """Events with a number above *after*, in order."""


class AuditQueries(Protocol):
    """Each entry contains the hash of the one committed before it: `rules.audit.chain`. AL-1."""

    async def list(self, since: EpochMs, after_id: str | None, limit: int) -> Sequence[AuditEntry]:
        """Entries from *since* on with an id above *after_id*, oldest first."""

    async def newest(self, before: int | None, limit: int) -> Sequence[tuple[int, AuditEntry]]:
        """Entries with a number below *before* (None: all), each with its number, newest first."""

    async def chain(self) -> AuditChain:
        """Where the chain begins and ends now."""

    async def chained(self, after: int, limit: int) -> Sequence[ChainedEntry]:
        """Entries with a number above *after*, in order, exactly as they are stored."""

    async def of_execution(self, execution_id: str) -> Sequence[ChainedEntry]:
        """The entries with that `execution_id`, in order."""
