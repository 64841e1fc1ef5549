"""The tables of a store in memory, and the reads and collected changes of a unit."""

from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from operator import attrgetter
from typing import Any, TypeVar

from wfcore.memory.disk import Medium, SchedulingPoint
from wfcore.memory.overlay import Change, Overlay, Table
from wfcore.model.access import Account, ApiKey, Login, LoginLink, PeopleGroups, Session, Share
from wfcore.model.approval import Approval
from wfcore.model.event import AuditChain, ChainedEntry, Event
from wfcore.model.execution import Artifact, Callback, Execution, ExecutionStatus, Replay
from wfcore.model.node import Node
from wfcore.model.notice import Notice
from wfcore.model.page import Page, PageCursor, PageRequest
from wfcore.model.signing import SigningKeys
from wfcore.model.trigger import Timer, Trigger
from wfcore.model.webhook import Delivery, Tally, Webhook
from wfcore.model.workflow import DefinitionSnapshot, Workflow, WorkflowState
from wfcore.ports.records import RECORDS, RecordKind
from wfcore.rules.audit.chain import BEGINNING
from wfcore.time import EpochMs, Now

R = TypeVar("R")


_TABLES: Mapping[type[Any], Table[Any]] = {
    **{kind.type: Table(kind.name) for kind in RECORDS},
    Tally: Table("tally"),
    Delivery: Table("delivery"),
}
"""The table of each class of records."""


def table_of(kind: type[R]) -> Table[R]:
    """The table of a class of records."""
    return _TABLES[kind]


def key_in(kind: RecordKind, record: Any) -> Hashable:
    """The key of *record* in its table: a single value as is, several values as a tuple."""
    key = kind.key_of(record)
    return key if key[1:] else key[0]


ACCOUNTS = table_of(Account)
KEYS = table_of(ApiKey)
SESSIONS = table_of(Session)
LOGINS = table_of(Login)
LOGIN_LINKS = table_of(LoginLink)
SIGNING_KEYS = table_of(SigningKeys)
PEOPLE_GROUPS = table_of(PeopleGroups)
WORKFLOWS = table_of(Workflow)
DEFINITIONS = table_of(DefinitionSnapshot)
STATES = table_of(WorkflowState)
SHARES = table_of(Share)
EXECUTIONS = table_of(Execution)
APPROVALS = table_of(Approval)
ARTIFACTS = table_of(Artifact)
CALLBACKS = table_of(Callback)
WEBHOOKS = table_of(Webhook)
TALLIES = table_of(Tally)
DELIVERIES = table_of(Delivery)
TRIGGERS = table_of(Trigger)
TIMERS = table_of(Timer)
NOTICES = table_of(Notice)
NODES = table_of(Node)
REPLAYS = table_of(Replay)

# What is no record: logs, and what the store itself knows of executions and accounts.
LEASES = Table[EpochMs]("lease")
SERVED = Table[EpochMs]("served")
LIMITS = Table[int]("limit")
EVENTS = Table[tuple[Event, ...]]("event")
LOGS = Table[tuple[Event, ...]]("log")
AUDIT = Table[ChainedEntry]("audit")
CHAIN = Table[AuditChain]("audit chain")

ROWS: Mapping[str, Any] = {
    **{table.name: kind for kind, table in _TABLES.items()},
    **dict.fromkeys([LEASES.name, SERVED.name, LIMITS.name], int),
    **dict.fromkeys([EVENTS.name, LOGS.name], tuple[Event, ...]),
    AUDIT.name: ChainedEntry,
    CHAIN.name: AuditChain,
}
"""The name of every table, with the type of its rows; `encode_record` knows all of these types."""

FINISHED = (ExecutionStatus.COMPLETED, ExecutionStatus.FAILED, ExecutionStatus.CANCELLED)


NO_CHAIN = AuditChain("memory", BEGINNING, BEGINNING)


def audit_chain(overlay: Overlay) -> AuditChain:
    """The only chain of a store in memory."""
    return overlay.get(CHAIN, "") or NO_CHAIN


class UnitOfWork:
    """
    The reads and collected writes of one unit. Each read passes the scheduling point, like a
    request to a server, and sees the writes collected before the read.
    """

    __slots__ = ("_gate", "_overlay", "_seen", "changes", "ended", "medium", "now")

    def __init__(
        self, medium: Medium, gate: SchedulingPoint, now: Now, ended: Collection[str] = ()
    ) -> None:
        self.medium = medium
        self._gate = gate
        self.now = now
        self.ended = ended  # workers of which is known that their process has died
        self.changes: list[Change] = []
        self._overlay = Overlay(medium)
        self._seen = 0  # so many of the changes are in the overlay

    @property
    def overlay(self) -> Overlay:
        """The tables with the changes of this unit. For use only inside the scheduling point."""
        for change in self.changes[self._seen :]:
            change(self._overlay)
        self._seen = len(self.changes)
        return self._overlay

    def __str__(self) -> str:
        """The collected changes, in words."""
        changed = (
            f"{name} {key} {_state(row)}".rstrip()
            for name, rows in self.overlay.changes.items()
            for key, row in rows.items()
        )
        return ", ".join(changed)

    async def ask(self, name: str, about: object, apply: Callable[[], R]) -> R:
        """
        Returns the result of *apply*, which runs at the scheduling point; *name* and *about*
        describe *apply* in words. For queries on the `medium` itself while `changes` is empty.
        """
        return await self._gate(name, about, apply)

    async def one(self, kind: Table[R], key: Hashable) -> R | None:
        return await self.ask(kind.name, key, lambda: self.overlay.get(kind, key))

    async def select(self, kind: Table[R], holds: Callable[[R], bool]) -> list[R]:
        return await self.ask(
            kind.name, "*", lambda: [one for one in self.overlay.all(kind) if holds(one)]
        )

    async def first(self, kind: Table[R], holds: Callable[[R], bool]) -> R | None:
        return next(iter(await self.select(kind, holds)), None)

    def collect(self, change: Change) -> None:
        self.changes.append(change)

    async def commit(self) -> None:
        """Carry out all collected changes, or raise `Stale` and change nothing."""
        await self._gate("commit", self, self._settle, writes=True)
        self.changes.clear()
        self._overlay, self._seen = Overlay(self.medium), 0

    def _settle(self) -> None:
        settled = Overlay(self.medium, strict=True)
        for change in self.changes:
            change(settled)
        self.medium.settle(settled.changes)


def _state(record: Any) -> str:
    """The state of a record in a few words."""
    if record is None:
        return "deleted"
    if isinstance(record, tuple):
        return f"up to {len(record)}"
    version, status = getattr(record, "version", ""), getattr(record, "status", "")
    return f"v{version} {status}" if version else ""


def newest(records: Iterable[R], at: str = "created_at") -> list[R]:
    """Returns *records*, newest first."""
    return sorted(records, key=lambda r: (getattr(r, at), getattr(r, "id", "")), reverse=True)


def by_id(records: Sequence[R]) -> Sequence[R]:
    """Returns *records*, ordered by id."""
    return sorted(records, key=lambda record: record.id)  # type: ignore[attr-defined]


def cut(
    records: Sequence[R], page: PageRequest, key: str = "created_at", ascending: bool = False
) -> Page[R]:
    """One page of *records*, which must be ordered by *key* and id."""
    place, cursor = attrgetter(key, "id"), page.after
    total = len(records) if cursor is None else None
    if cursor is not None:
        edge = cursor.key, cursor.id
        records = [r for r in records if (place(r) > edge if ascending else place(r) < edge)]
    rows = tuple(records[page.offset : page.offset + page.size])
    more = len(records) > page.offset + page.size
    return Page(rows, total, page.page, page.size, PageCursor(*place(rows[-1])) if more else None)
