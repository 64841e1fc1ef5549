"""
The contents of a store: `RECORDS`, one row for each kind of record, and the named queries.

**Records.** All kinds are stored in the same way and differ only in their rows: the key, the unique
fields, and the kinds that are deleted with a record. `View.get` reads a record by its key and
`Unit.put` stores it. The contract suite, the comparison and our stores iterate over `RECORDS`: a
new kind needs a record class, a row here, its queries and, for a SQL store, a migration.

**Compare-and-set.** A record carries its `version`: 0 means "must be new", n means "the stored
version must be n". The stored copy gets the next version; the record that was passed does not
change. The loser of a race gets `Stale` from `commit` at the latest (a later read in the same unit
may also raise `Stale`), and nothing of the loser's unit becomes visible. ST-1. A unit may put a
record several times: each further `put` starts from the version that a read after the previous one
returns.

**Queries** find records without a key: lists, due records, records that belong to another record.
Inside a unit, queries see the records that the same unit has put. Queries are grouped by subject,
only read, and are the same for a view and a unit. Records are frozen, so a store may return the
same object twice.

An execution's `trigger_source`, `trigger`, `reference`, `concurrency_group`, `redrive_of` and
`capabilities` never change: a store may read them from the new record only. The definition of a
revision never changes either: a store may cache it.

**Logs** (`Event`, `AuditEntry`) are append-only; units never conflict over tallies and deliveries.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Protocol

from attrs import frozen

from wfcore.model.access import (
    Account,
    ApiKey,
    Login,
    LoginLink,
    PeopleGroups,
    Session,
    Share,
    by_email,
)
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
from wfcore.model.workflow import DefinitionSnapshot, Workflow, WorkflowState
from wfcore.time import DAY, HOUR, DurationMs, EpochMs

Owned = tuple[tuple[type[Any], str], ...]


@frozen
class RecordKind:
    """
    A kind of record.

    *name*: the name in `Stale` and in messages. *key*: the fields that identify a record. *unique*:
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
    RecordKind("groups of people", PeopleGroups),
    RecordKind(
        "workflow",
        Workflow,
        unique=("owner_id", "name"),
        owns=((Share, "workflow_id"), (WorkflowState, "workflow_id")),
    ),
    RecordKind("state", WorkflowState, key=("workflow_id",)),
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
    """Queries for accounts."""

    async def by_email(self, email: str) -> Account | None:
        """The account with that email (compared in lower case)."""

    async def list(self, page: PageRequest) -> Page[Account]:
        """All accounts, newest first."""


class KeyQueries(Protocol):
    """Queries for API keys."""

    async def of_account(self, account_id: str) -> Sequence[ApiKey]:
        """All keys of an account, newest first."""


class SessionQueries(Protocol):
    """Queries for sessions."""

    async def of_account(self, account_id: str) -> Sequence[Session]:
        """All stored sessions of an account, newest first. Ended sessions are included."""


@frozen
class Activity:
    """
    The activity of a workflow, as far as an account sees it (AC-4). `last`: the execution accepted
    last. `ends`: one pair `(ended, failed)` for each span from the requested instant on, of the
    executions accepted in that span; `ended` counts COMPLETED and CANCELLED. `waiting`: the number
    of open approvals. `next_at`: the instant of the next timer. `cost_usd`: the sum of `ended_cost`
    of the executions of the week that ends with the spans. `unpriced`: the number of these
    executions without a known cost.
    """

    last: str | None = None
    last_status: ExecutionStatus | None = None
    last_at: EpochMs | None = None
    ends: tuple[tuple[int, int], ...] = ()
    waiting: int = 0
    next_at: EpochMs | None = None
    cost_usd: str = "0"
    unpriced: int = 0


HOURS, WEEK = 24, 7 * DAY
"""The hours that an `Activity` counts by default, and the length in ms of the week of its costs."""


@frozen
class LatestExecution:
    """One of the executions of a workflow that were accepted last. `completed_at`: its end."""

    id: str
    status: ExecutionStatus
    accepted_at: EpochMs
    completed_at: EpochMs | None = None


class WorkflowQueries(Protocol):
    """Queries for workflows."""

    async def activity(
        self,
        ids: Collection[str],
        account_id: str | None,
        since: EpochMs,
        span: DurationMs = HOUR,
        spans: int = HOURS,
    ) -> Mapping[str, Activity]:
        """
        The activity of each existing workflow among *ids*, in one query, in *spans* spans of *span*
        ms from *since* on: hours, or days. Counted are the executions that the account owns or
        whose workflow the account owns (None: all).
        """

    async def latest(
        self, ids: Collection[str], account_id: str | None, most: int
    ) -> Mapping[str, Sequence[LatestExecution]]:
        """
        The executions of each workflow among *ids* that were accepted last, at most *most* of each,
        newest first; in one query. The account sees the executions that `activity` counts.
        Workflows without executions are left out.
        """

    async def by_name(self, owner_id: str, name: str) -> Workflow | None: ...
    async def visible_to(self, account_id: str, page: PageRequest) -> Page[Workflow]:
        """Workflows that the account owns or that are shared with the account, by name, then id."""

    async def list(self, page: PageRequest) -> Page[Workflow]:
        """All workflows, by name, then id."""


class DefinitionQueries(Protocol):
    """Queries for stored versions of definitions."""

    async def in_use(self) -> Sequence[DefinitionSnapshot]:
        """
        The current definition of every workflow and the definitions of open executions, by
        workflow, then revision.
        """


class ShareQueries(Protocol):
    """Queries for shares of workflows."""

    async def of_workflow(self, workflow_id: str) -> Sequence[Share]: ...


@frozen
class ExecutionFilter:
    """
    The executions that a list shows, and their order. Each field that is set narrows the list.

    `owner_id`: executions of that account. `workflow_id`: executions of that workflow. `statuses`,
    `sources`: executions with a listed status or source; empty: any. `since`, `until`: executions
    accepted at or after `since` and before `until`. `id_end`: executions whose id ends in this
    text, among the newest `SEARCHED` executions that match the other fields. `reference`:
    executions with exactly this reference. EX-38.
    """

    owner_id: str | None = None
    workflow_id: str | None = None
    statuses: tuple[ExecutionStatus, ...] = ()
    sources: tuple[TriggerSource, ...] = ()
    since: EpochMs | None = None
    until: EpochMs | None = None
    oldest_first: bool = False
    id_end: str | None = None
    reference: str | None = None


SEARCHED = 50_000
"""The number of executions that a search for the end of an id reads. Decision 147."""


class ExecutionQueries(Protocol):
    """Queries for executions."""

    async def list(self, where: ExecutionFilter, page: PageRequest) -> Page[Execution]:
        """
        The executions that fit *where*, newest first unless *where* says otherwise. To keep a page
        small, the rows carry no `trigger`, and neither they nor their `step_results` carry `output`
        or `items`; they carry `variables` only if `secrets` names some (masking needs their
        values). Such records must not be `put`.
        """

    async def by_status(self, where: ExecutionFilter, most: int) -> Mapping[ExecutionStatus, int]:
        """
        The number of executions in each status that fit *where*, ignoring its `statuses` and
        `id_end`. Each number is counted up to *most*. Every status is present.
        """

    async def durations(
        self, owner_id: str, since: EpochMs, span: DurationMs, spans: int, most: int
    ) -> Mapping[int, Sequence[DurationMs]]:
        """
        How long executions of the account took, in *spans* spans of *span* ms from *since* on: by
        the number of the span, the durations of the newest *most* executions that were accepted in
        it and have COMPLETED, the shortest first. Spans without such executions are left out.
        """

    async def grace_over(self, limit: int) -> Sequence[Execution]:
        """
        INTERRUPTED executions whose `due_at` has come by the store's time, oldest first; large
        outputs may be left out.
        """

    async def abandoned(self, limit: int) -> Sequence[Execution]:
        """
        Unfinished executions whose worker is gone: the lease has expired by the store's time, or
        the store knows that the worker's process has ended (see `Store.enlist`). Ordered by id;
        large outputs may be left out.
        """

    async def next_due(self, able: Collection[str] | None = None) -> EpochMs | None:
        """
        The earliest `due_at` of an unclaimed execution that `Store.claim` may return to a worker
        with these capabilities (None: all capabilities). Executions that wait in their concurrency
        group may be left out.
        """

    async def ended_before(self, at: EpochMs, limit: int) -> Sequence[str]:
        """Ids of executions that ended before *at*, oldest first."""

    async def redriven_as(self, id: str) -> str | None:
        """
        The id of the execution with that `redrive_of`; of several, the execution accepted last.
        """


@frozen
class ApprovalFilter:
    """
    The approvals that a list shows. *account_id* (with *email*): approvals that this account may
    see as owner of the execution, as owner of the workflow, as named approver or, if no approvers
    are named, as holder of an EDIT share on the workflow; None: all approvals.

    Every other field that is set narrows the list, as in `ExecutionFilter`; `since` and `until`
    apply to `created_at`. `waiting`: only PENDING approvals that the account may approve, has not
    approved yet, and in which the account is not `idle`: the account's stage has begun, and nobody
    has approved for the account. `agreed`: only PENDING approvals that the account has approved.
    `soonest`: order by `expires_at`, the first to expire first, whatever `oldest_first` says.

    The account has approved if an assent carries one of the account's `identities`. PL-3.
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
        """
        The identities under which an assent of this person may be recorded: account and email.
        """
        return self.account_id or "", by_email(self.email or "")


class ApprovalQueries(Protocol):
    """
    Queries for approvals. Lists contain heads, so that a page stays small however many rows an
    approval has; a store should not read the rows for a head. `of_execution` alone returns whole
    approvals.
    """

    async def list(self, where: ApprovalFilter, page: PageRequest) -> Page[ApprovalHead]:
        """Heads, newest first unless *where* says otherwise."""

    async def count(self, where: ApprovalFilter, most: int) -> int:
        """
        The number of approvals that fit *where*, up to *most*. A caller with this number can
        request pages without a count.
        """

    async def of_execution(self, execution_id: str) -> Sequence[Approval]:
        """Whole approvals of the execution, newest first."""

    async def due(self, now: EpochMs, limit: int) -> Sequence[ApprovalHead]:
        """
        Heads of PENDING approvals with `expires_at` at or before *now*, oldest expiry first.
        """

    async def reminders_due(self, now: EpochMs, limit: int) -> Sequence[ApprovalHead]:
        """Heads of PENDING approvals whose `next_reminder` is at or before *now*, oldest first."""

    async def open(self, most: int) -> tuple[int, EpochMs | None]:
        """
        The number of PENDING approvals, up to *most*, and the instant at which the oldest was
        opened.
        """

    async def next_deadline(self) -> EpochMs | None:
        """The earliest `expires_at` or `next_reminder` of a PENDING approval."""


class ArtifactQueries(Protocol):
    """Queries for artifacts."""

    async def of_execution(self, execution_id: str) -> Sequence[Artifact]:
        """The artifacts of the execution, newest first."""


class CallbackQueries(Protocol):
    """Queries for callbacks."""

    async def due(self, limit: int) -> Sequence[Callback]:
        """Callbacks whose `due_at` has come by the store's time, earliest first."""

    async def next_due(self) -> EpochMs | None:
        """The earliest `due_at` of a callback."""


class WebhookQueries(Protocol):
    """Queries for webhooks and their deliveries."""

    async def of_owner(self, owner_id: str | None, page: PageRequest) -> Page[Webhook]:
        """A page of the owner's webhooks, newest first; None: webhooks of all owners."""

    async def all_of_owner(self, owner_id: str) -> Sequence[Webhook]:
        """All webhooks of the owner, newest first (the plan limits their number)."""

    async def of_workflow(self, workflow_id: str) -> Sequence[Webhook]:
        """The webhooks of the workflow, newest first."""

    async def tallies(self, webhook_id: str) -> Sequence[Tally]:
        """The tallies of the webhook, by date, then status."""

    async def deliveries(self, webhook_id: str) -> Sequence[Delivery]:
        """The last deliveries to the webhook, newest first."""


class TriggerQueries(Protocol):
    """Queries for triggers."""

    async def of_owner(self, owner_id: str, page: PageRequest) -> Page[Trigger]:
        """Triggers of the workflows of one account, newest first."""

    async def list(self, page: PageRequest) -> Page[Trigger]:
        """All triggers, newest first."""

    async def of_workflow(self, workflow_id: str) -> Sequence[Trigger]:
        """The triggers of the workflow, oldest first."""

    async def of_workflows(self, ids: Collection[str]) -> Sequence[Trigger]:
        """The triggers of the workflows *ids*, oldest first; in one query."""

    async def watching(self, keys: Collection[str]) -> Sequence[Trigger]:
        """The triggers whose `watches` is one of *keys*, oldest first."""


class GroupQueries(Protocol):
    """Queries for concurrency groups."""

    async def unfinished(self, group: str) -> int:
        """The number of executions of *group* that have not ended; waiting executions count."""

    async def held(self, group: str) -> int:
        """
        The number of unfinished executions of *group* that a worker has claimed at least once.
        """


class TimerQueries(Protocol):
    """Queries for timers."""

    async def due(self, now: EpochMs, limit: int) -> Sequence[Timer]:
        """Timers with `due_at` at or before *now*, oldest first."""

    async def next_due(self) -> EpochMs | None:
        """The earliest `due_at` of all timers."""

    async def next_of(self, trigger_id: str) -> EpochMs | None:
        """The earliest `due_at` of one trigger's timers."""


class NoticeQueries(Protocol):
    """Queries for notices."""

    async def due(self, limit: int) -> Sequence[Notice]:
        """Notices whose `due_at` has come by the store's time, earliest first."""

    async def next_due(self) -> EpochMs | None:
        """The earliest `due_at` of a notice."""

    async def at_address(
        self, channel: str, to: str, since: EpochMs, limit: int
    ) -> Sequence[Notice]:
        """
        Notices to one address that still have a `due_at` or were attempted at or after *since*; by
        `created_at`, then id.
        """

    async def list(self, statuses: tuple[NoticeStatus, ...], page: PageRequest) -> Page[Notice]:
        """Notices with one of *statuses* (empty: all notices), newest first."""


class NodeQueries(Protocol):
    """Queries for nodes."""

    async def list(self) -> Sequence[Node]:
        """All stored nodes, by id. Nodes that are gone are included."""


class EventQueries(Protocol):
    """Queries for events of executions."""

    async def of_execution(self, execution_id: str, after: int, limit: int) -> Sequence[Event]:
        """Events with a number above *after*, in order."""


class AuditQueries(Protocol):
    """
    Queries for the audit log. Each entry contains the hash of the entry committed before:
    `rules.audit.chain`. AL-1.
    """

    async def list(self, since: EpochMs, after_id: str | None, limit: int) -> Sequence[AuditEntry]:
        """Entries from *since* on with an id above *after_id*, oldest first."""

    async def newest(self, before: int | None, limit: int) -> Sequence[tuple[int, AuditEntry]]:
        """Entries with a number below *before* (None: all), each with its number, newest first."""

    async def chain(self) -> AuditChain:
        """The present start and end of the chain."""

    async def chained(self, after: int, limit: int) -> Sequence[ChainedEntry]:
        """Entries with a number above *after*, in order, exactly as they are stored."""

    async def of_execution(self, execution_id: str) -> Sequence[ChainedEntry]:
        """The entries with that `execution_id`, in order."""
