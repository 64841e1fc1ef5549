"""The tables of a store in memory, and the desk at which a unit reads and collects."""

from collections.abc import Callable, Hashable, Iterable, Sequence
from operator import attrgetter
from typing import Any, TypeVar

from wfcore.memory.disk import Disk
from wfcore.memory.gate import Gate
from wfcore.memory.overlay import Change, Kind, Overlay, Versioned
from wfcore.model.access import Account, ApiKey, Login, Session, Share
from wfcore.model.approval import Approval
from wfcore.model.artifact import Artifact
from wfcore.model.callback import Callback
from wfcore.model.event import AuditChain, ChainedEntry, Event
from wfcore.model.execution import Execution
from wfcore.model.page import Page, PageCursor, PageRequest
from wfcore.model.replay import Replay
from wfcore.model.trigger import Timer, Trigger
from wfcore.model.webhook import Delivery, Tally, Webhook
from wfcore.model.workflow import DefinitionSnapshot, Workflow
from wfcore.time import EpochMs

R = TypeVar("R")
V = TypeVar("V", bound=Versioned)

ACCOUNTS = Kind[Account]("account")
KEYS = Kind[ApiKey]("key")
SESSIONS = Kind[Session]("session")
LOGINS = Kind[Login]("login")
WORKFLOWS = Kind[Workflow]("workflow")
DEFINITIONS = Kind[DefinitionSnapshot]("definition")
SHARES = Kind[Share]("share")
EXECUTIONS = Kind[Execution]("execution")
LEASES = Kind[EpochMs]("lease")
SERVED = Kind[EpochMs]("served")
APPROVALS = Kind[Approval]("approval")
ARTIFACTS = Kind[Artifact]("artifact")
CALLBACKS = Kind[Callback]("callback")
WEBHOOKS = Kind[Webhook]("webhook")
TALLIES = Kind[Tally]("tally")
DELIVERIES = Kind[Delivery]("delivery")
LIMITS = Kind[int]("limit")
TRIGGERS = Kind[Trigger]("trigger")
TIMERS = Kind[Timer]("timer")
REPLAYS = Kind[Replay]("replay")
EVENTS = Kind[tuple[Event, ...]]("event")
LOGS = Kind[tuple[Event, ...]]("log")
AUDIT = Kind[ChainedEntry]("audit")
CHAIN = Kind[AuditChain]("audit chain")


class UnitOfWork:
    """Where a unit reads and collects. Each read passes the gate, as it would travel."""

    __slots__ = ("_disk", "_gate", "changes", "overlay")

    def __init__(self, disk: Disk, gate: Gate) -> None:
        self._disk = disk
        self._gate = gate
        self.overlay = Overlay(disk)
        self.changes: list[Change] = []

    def __str__(self) -> str:
        """What was collected, in words."""
        changed = (
            f"{name} {key} {_state(row)}".rstrip()
            for name, rows in self.overlay.changes.items()
            for key, row in rows.items()
        )
        return ", ".join(changed)

    async def one(self, kind: Kind[R], key: Hashable) -> R | None:
        return await self._gate(kind.name, key, lambda: self.overlay.get(kind, key))

    async def select(self, kind: Kind[R], holds: Callable[[R], bool]) -> list[R]:
        return await self._gate(
            kind.name, "*", lambda: [one for one in self.overlay.all(kind) if holds(one)]
        )

    async def first(self, kind: Kind[R], holds: Callable[[R], bool]) -> R | None:
        return next(iter(await self.select(kind, holds)), None)

    def collect(self, change: Change) -> None:
        change(self.overlay)
        self.changes.append(change)

    def put(self, kind: Kind[V], key: Hashable, record: V) -> None:
        self.collect(lambda overlay: overlay.put(kind, key, record))

    async def commit(self) -> None:
        """Carry out everything that was collected, or raise `Stale` and change nothing."""
        await self._gate("commit", self, self._settle, writes=True)
        self.changes.clear()

    def _settle(self) -> None:
        settled = Overlay(self._disk, strict=True)
        for change in self.changes:
            change(settled)
        self._disk.settle(settled.changes)


def _state(record: Any) -> str:
    """What is worth telling of a record."""
    if record is None:
        return "deleted"
    if isinstance(record, tuple):
        return f"up to {len(record)}"
    version, status = getattr(record, "version", ""), getattr(record, "status", "")
    return f"v{version} {status}" if version else ""


def newest(records: Iterable[R], at: str = "created_at") -> list[R]:
    """*records*, newest first."""
    return sorted(records, key=lambda r: (getattr(r, at), getattr(r, "id", "")), reverse=True)


def by_id(records: Sequence[R]) -> Sequence[R]:
    """*records* by id."""
    return sorted(records, key=lambda record: record.id)  # type: ignore[attr-defined]


def cut(
    records: Sequence[R], page: PageRequest, key: str = "created_at", ascending: bool = False
) -> Page[R]:
    """One page of *records*, which are ordered by *key* and id."""
    place, cursor = attrgetter(key, "id"), page.after
    total = len(records) if cursor is None else None
    if cursor is not None:
        edge = cursor.key, cursor.id
        records = [r for r in records if (place(r) > edge if ascending else place(r) < edge)]
    rows = tuple(records[page.offset : page.offset + page.size])
    more = len(records) > page.offset + page.size
    return Page(rows, total, page.page, page.size, PageCursor(*place(rows[-1])) if more else None)
