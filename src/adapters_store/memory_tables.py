"""The tables of a store in memory, and the desk at which a unit reads and collects."""

import asyncio
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import TypeVar

from attrs import field, frozen

from adapters_store.overlay import Change, Kind, Overlay, Versioned
from wfcore.instants import EpochMs
from wfcore.model.access import Account, ApiKey, Login, Session, Share
from wfcore.model.approval import Approval
from wfcore.model.artifact import Artifact
from wfcore.model.callback import Callback
from wfcore.model.event import AuditEntry, Event
from wfcore.model.execution import Execution
from wfcore.model.page import Page, PageRequest
from wfcore.model.replay import Replay
from wfcore.model.webhook import Tally, Webhook
from wfcore.model.workflow import DefinitionSnapshot, Workflow

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
APPROVALS = Kind[Approval]("approval")
ARTIFACTS = Kind[Artifact]("artifact")
CALLBACKS = Kind[Callback]("callback")
WEBHOOKS = Kind[Webhook]("webhook")
TALLIES = Kind[Tally]("tally")
REPLAYS = Kind[Replay]("replay")
EVENTS = Kind[tuple[Event, ...]]("event")
AUDIT = Kind[AuditEntry]("audit")


@frozen
class Desk:
    """
    Where a unit reads and collects. Each read lets others run first, as a real store would.
    """

    overlay: Overlay
    changes: list[Change] = field(factory=list)

    async def one(self, kind: Kind[R], key: Hashable) -> R | None:
        await asyncio.sleep(0)
        return self.overlay.get(kind, key)

    async def select(self, kind: Kind[R], holds: Callable[[R], bool]) -> list[R]:
        await asyncio.sleep(0)
        return [record for record in self.overlay.all(kind) if holds(record)]

    async def first(self, kind: Kind[R], holds: Callable[[R], bool]) -> R | None:
        return next(iter(await self.select(kind, holds)), None)

    def collect(self, change: Change) -> None:
        change(self.overlay)
        self.changes.append(change)

    def put(self, kind: Kind[V], key: Hashable, record: V) -> None:
        self.collect(lambda overlay: overlay.put(kind, key, record))


def newest(records: Iterable[R], at: str = "created_at") -> list[R]:
    """*records*, newest first."""
    return sorted(records, key=lambda r: (getattr(r, at), getattr(r, "id", "")), reverse=True)


def cut(records: Sequence[R], page: PageRequest) -> Page[R]:
    """One page of *records*."""
    rows = tuple(records[page.offset : page.offset + page.size])
    return Page(rows, len(records), page.page, page.size)
