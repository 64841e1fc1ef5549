"""
The simulated disk: tables of records, changed by whole units, and lost from by power cuts.

A unit collects changes. They are run twice: leniently on its own overlay (so that it reads its
own writes), strictly at the commit, where an expectation that does not hold is `Stale`.
"""

from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Any, Generic, Protocol, TypeVar, cast

from attrs import AttrsInstance, evolve, frozen

from wfcore.errors import Stale
from wfcore.instants import EpochMs
from wfcore.model.access import Account, ApiKey, Login, Session, Share
from wfcore.model.approval import Approval
from wfcore.model.artifact import Artifact
from wfcore.model.event import AuditEntry, Event
from wfcore.model.execution import Execution
from wfcore.model.replay import Replay
from wfcore.model.webhook import Tally, Webhook
from wfcore.model.workflow import DefinitionSnapshot, Workflow


class Versioned(AttrsInstance, Protocol):
    """A record with a version."""

    @property
    def version(self) -> int: ...


R = TypeVar("R")
V = TypeVar("V", bound=Versioned)


@frozen
class Kind(Generic[R]):
    """The name of a table and, through its type, what it holds."""

    name: str


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
WEBHOOKS = Kind[Webhook]("webhook")
TALLIES = Kind[Tally]("tally")
REPLAYS = Kind[Replay]("replay")
EVENTS = Kind[tuple[Event, ...]]("event")
AUDIT = Kind[AuditEntry]("audit")

KINDS: tuple[Kind[Any], ...] = (
    *(ACCOUNTS, KEYS, SESSIONS, LOGINS, WORKFLOWS, DEFINITIONS, SHARES, EXECUTIONS, LEASES),
    *(APPROVALS, ARTIFACTS, WEBHOOKS, TALLIES, REPLAYS, EVENTS, AUDIT),
)

Rows = dict[Hashable, Any]
Changes = dict[str, Rows]
"""By table and key: the new record, None where it is deleted."""

Watch = Callable[[Mapping[str, Rows], Changes], None]
"""Sees the tables as they are and what is about to change."""


def unwatched(tables: Mapping[str, Rows], changes: Changes) -> None:
    """For stores that nobody judges."""


class Disk:
    """
    What all units read and change. Not *durable*: a commit is safe only after the next `sync`.
    """

    def __init__(self, *, durable: bool = True, watch: Watch = unwatched) -> None:
        self.tables: dict[str, Rows] = {kind.name: {} for kind in KINDS}
        self.durable = durable
        self.watch = watch
        self._unsafe: list[Changes] = []

    def settle(self, changes: Changes) -> None:
        """Carry out *changes*, all at once."""
        self.watch(self.tables, changes)
        if not self.durable:
            self._unsafe.append(self._before(changes))
        self._write(changes)

    def sync(self) -> None:
        """Everything so far outlives a power cut."""
        self._unsafe.clear()

    def power_cut(self) -> None:
        """What was not synced is gone, the last first."""
        while self._unsafe:
            self._write(self._unsafe.pop())

    def _before(self, changes: Changes) -> Changes:
        return {
            name: {key: self.tables[name].get(key) for key in rows}
            for name, rows in changes.items()
        }

    def _write(self, changes: Changes) -> None:
        for name, rows in changes.items():
            table = self.tables[name]
            for key, record in rows.items():
                if record is None:
                    table.pop(key, None)
                else:
                    table[key] = record


class Overlay:
    """Changes on top of a disk. Nothing reaches it before `Disk.settle`."""

    __slots__ = ("_strict", "_tables", "changes")

    def __init__(self, disk: Disk, *, strict: bool = False) -> None:
        self._tables = disk.tables
        self._strict = strict
        self.changes: Changes = {}

    def get(self, kind: Kind[R], key: Hashable) -> R | None:
        """The record under *key*, the changed one where there is one."""
        changed = self.changes.get(kind.name)
        if changed is not None and key in changed:
            return cast("R | None", changed[key])
        return cast("R | None", self._tables[kind.name].get(key))

    def all(self, kind: Kind[R]) -> Iterable[R]:
        """Every record of that kind, in the order in which they came."""
        stored = self._tables[kind.name]
        changed = self.changes.get(kind.name)
        if changed is None:
            return cast("Iterable[R]", stored.values())
        merged = {**stored, **changed}
        return cast("Iterable[R]", [one for one in merged.values() if one is not None])

    def set(self, kind: Kind[R], key: Hashable, record: R | None) -> None:
        """Change one record; None deletes it."""
        self.changes.setdefault(kind.name, {})[key] = record

    def put(self, kind: Kind[V], key: Hashable, record: V) -> None:
        """Compare the version and set; the stored copy's version is one higher."""
        stored = self.get(kind, key)
        self.expect(kind, key, (stored.version if stored else 0) == record.version)
        self.set(kind, key, cast("V", evolve(cast("Any", record), version=record.version + 1)))

    def drop(self, kind: Kind[V], key: Hashable, record: V) -> None:
        """Compare the version and delete."""
        stored = self.get(kind, key)
        self.expect(kind, key, stored is not None and stored.version == record.version)
        self.set(kind, key, None)

    def expect(self, kind: Kind[Any], key: Hashable, holds: bool) -> None:
        """Raise `Stale` where this overlay is strict and *holds* is false."""
        if self._strict and not holds:
            raise Stale(kind=kind.name, id=str(key))


Change = Callable[[Overlay], None]
