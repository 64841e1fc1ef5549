"""
The move of all content of one database into another: from SQLite to PostgreSQL, or back.

Both have the same tables, and rows are copied as they are. A sealed cell, too: it is bound to its
table and key, not to its database.

**One service, not two.** The source is locked for writers all the while. The target is marked and
fenced before its first row: no server opens it, and every write but those of the move fails, also
of a process that has it open already. Once all rows are there and were compared, the source is
marked and fenced. Only then mark and fence of the target go. So nobody can begin work on both, and
after a kill in between the same command goes on.

**Resuming needs no notes.** The source is read in the order of its keys, in batches. The rows of
the target between the same keys are compared and, where it differs, replaced. Rows of a broken
attempt are read and kept; later changes are written anew, after all stale rows were deleted: a
unique name may have another owner by now. The check at the end is the same walk once more, which
must find nothing to replace.

**One move, not two.** The move that has the lock reads both marks again, and nothing is written to
a target without one: of two moves at once the later overwrites nothing that the service has done
since the earlier ended.

Not moved: the announcements of processes, and their counts of changes (`LEFT`); counts of quotas,
which begin anew, as after a restore.
"""

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from enum import Enum, StrEnum, auto
from hashlib import sha256
from typing import Any, Protocol

from attrs import frozen

from wfcore.errors import StoreRefused
from wfcore.model.event import AuditEntry
from wfcore.time import EpochMs

Row = tuple[Any, ...]

MOVED: Mapping[str, tuple[str, ...]] = {
    "seal_keys": ("number",),
    "accounts": ("id",),
    "api_keys": ("id",),
    "sessions": ("id",),
    "logins": ("id",),
    "login_links": ("id",),
    "workflows": ("id",),
    "definitions": ("workflow_id", "revision"),
    "shares": ("workflow_id", "account_id"),
    "executions": ("id",),
    "execution_variables": ("execution_id",),
    "step_results": ("execution_id", "position"),
    "events": ("execution_id", "number"),
    "logs": ("execution_id", "number"),
    "approvals": ("id",),
    "approval_details": ("id",),
    "approval_approvers": ("approver", "approval_id"),
    "artifacts": ("id",),
    "callbacks": ("id",),
    "webhooks": ("id",),
    "webhook_tallies": ("webhook_id", "date", "status"),
    "webhook_deliveries": ("webhook_id", "authenticated", "id"),
    "triggers": ("id",),
    "timers": ("id",),
    "notices": ("id",),
    "replays": ("scope", "key"),
    "signing_keys": ("id",),
    "group_limits": ("workflow_id",),
    "group_checks": ("concurrency_group",),
    "served": ("owner_id",),
    "audit": ("number",),
    "audit_chain": ("id",),
}
"""Every table that is moved, with the key whose order both databases agree on."""

LEFT = frozenset(
    {
        *("nodes", "pulse", "changes", "duties", "quotas", "wfcore_schemas", "moving"),
        *("execution_tallies", "tally_notes", "tally_mark", "packing_mark"),
    }
)
FRESH = frozenset({"audit_chain"})
"""The tables that have a row in a new database."""

DERIVED = {("webhook_tallies", "slot"): "0"}
"""The columns that PostgreSQL alone has, with their values in SQLite."""

BATCH_BYTES, BATCH_ROWS = 4 << 20, 1_000
"""The most characters and the most rows of a batch."""


class MoveState(StrEnum):
    """The state of a database while it is moved, and afterwards."""

    FILLING = "filling"
    MOVED = "moved"


@frozen
class Mark:
    """`id`: of the service, as in its audit chain. `other`: the other database, without secrets."""

    state: MoveState
    id: str
    other: str

    def refusal(self, location: str) -> str:
        """The reason why *location* is not opened."""
        if self.state is MoveState.MOVED:
            return f"{location} was moved to {self.other}: work goes on there, and not here"
        return (
            f"{location} is being filled from {self.other}: run wfcore move again, which goes on "
            "where it was broken off"
        )


class Elsewhere(StoreRefused):
    """The service of a database is elsewhere, or not here yet: a backup would make a second one."""


class Walk(Enum):
    """The treatment of rows of the target that differ from the source."""

    CLEAR = auto()
    COPY = auto()
    CHECK = auto()


NODES = "SELECT body FROM nodes"


def living(bodies: Iterable[str], now: EpochMs) -> list[str]:
    """The announcements that still hold: host, process and address."""
    nodes = [json.loads(body) for body in bodies]
    return [
        " ".join(filter(None, (one["host"], f"(process {one['pid']})", one.get("address"))))
        if one.get("pid")
        else one["host"]
        for one in nodes
        if one.get("seen_until", 0) >= now
    ]


def ended(location: str) -> str:
    """The reason why nothing more is moved to *location*."""
    return f"{location} was filled by another move meanwhile; see wfcore serve there"


MARKED = "CREATE TABLE moving (state text NOT NULL, id text NOT NULL, other text NOT NULL)"
MARK = "INSERT INTO moving VALUES (?, ?, ?)"
UNMARKED = "DROP TABLE moving"
READ_MARK = "SELECT state, id, other FROM moving"


@frozen
class KeyRange:
    """Rows behind the key *after* (None: from the first) up to *last* (None: to the end)."""

    table: str
    columns: Sequence[str]
    after: Row | None = None
    last: Row | None = None

    @property
    def where(self) -> tuple[str, Row]:
        """The condition, and its values."""
        key = f"({', '.join(MOVED[self.table])})"
        marks = f"({', '.join('?' * len(MOVED[self.table]))})"
        ends = ((">", self.after), ("<=", self.last))
        parts = [f"{key} {sign} {marks}" for sign, end in ends if end]
        values = (*(self.after or ()), *(self.last or ()))
        return f" WHERE {' AND '.join(parts)}" if parts else "", values


class Side(Protocol):
    """One of the two databases. Every method raises `StoreUnavailable`."""

    location: str

    async def mark(self) -> Mark | None: ...
    async def live(self) -> Sequence[str]:
        """The servers that work on it, as they announced themselves."""

    async def note(self, entry: AuditEntry) -> None:
        """Add an entry to its audit log."""

    async def service_id(self) -> str: ...
    async def columns(self, table: str) -> Sequence[str]:
        """The columns that can be written."""

    async def readable(self, table: str) -> Sequence[str]:
        """The columns that can be written, and the columns that the database derives."""

    def locked(self) -> AbstractAsyncContextManager[None]:
        """A context without other writers; its changes are committed at the end, or undone."""

    def rows(self, table: str, columns: Sequence[str]) -> AsyncIterator[Row]:
        """All rows of *table*, inside `locked`, in the order of the table's key."""

    async def between(self, span: KeyRange) -> list[Row]: ...

    async def replace(self, span: KeyRange, rows: Sequence[Row]) -> None:
        """
        Delete the rows in *span*, and write *rows*, durably and at once. Raises `StoreRefused`
        without a mark.
        """

    def begun(self, mark: Mark) -> AbstractAsyncContextManager[None]:
        """
        Take *mark*, and refuse every write but `replace`; durable at the end, or undone. Inside the
        context there is no other writer.
        """

    async def fence(self, mark: Mark) -> None:
        """Take *mark*, and refuse every later write; inside `locked`."""

    async def end(self) -> None:
        """Lose the mark and the fence; durable."""


@frozen
class MovedTable:
    """
    A table that was moved: the number of its rows, and their SHA-256, which both databases agree
    on.
    """

    table: str
    rows: int
    digest: str


async def move(
    source: Side,
    target: Side,
    report: Callable[[MovedTable], None],
    files: Callable[[AsyncIterator[Row]], Awaitable[None]],
    entry: AuditEntry | None = None,
) -> None:
    """
    Move all of *source* to *target*, or go on with that; *report* hears of each table once it is
    checked. *entry* is added to the audit log, and moved with it. *files* moves what lies beside
    the database: it gets the bodies of all artifacts.

    Raises `StoreRefused` where one of the two is no longer, or not yet, what it has to be;
    `StoreUnavailable`.
    """
    mine = await source.mark()
    if mine is not None and (mine.state is MoveState.FILLING or mine.other != target.location):
        raise StoreRefused(mine.refusal(source.location))
    await require_idle(source)
    service = await source.service_id()
    theirs = await target.mark()
    if theirs is None:
        if mine is not None:
            raise StoreRefused(mine.refusal(source.location))
        async with target.begun(Mark(MoveState.FILLING, service, source.location)):
            await _require_empty(target)
    elif theirs.state is not MoveState.FILLING or theirs.id != service:
        raise StoreRefused(theirs.refusal(target.location))
    if entry is not None and mine is None:
        await source.note(entry)
    async with source.locked():
        await require_idle(source)
        if await source.mark() != mine or await target.mark() is None:
            raise StoreRefused(ended(target.location))
        for walk in (Walk.COPY,) if theirs is None else (Walk.CLEAR, Walk.COPY):
            for table in MOVED:
                await _walked(source, target, table, walk)
        for table in MOVED:
            report(await _walked(source, target, table, Walk.CHECK))
        await files(source.rows("artifacts", ["body"]))
        if mine is None:
            await source.fence(Mark(MoveState.MOVED, service, target.location))
    await target.end()


async def require_idle(side: Side) -> None:
    """Raises `StoreRefused` while a server works there."""
    if live := await side.live():
        raise StoreRefused(
            f"{side.location} is worked on by {', '.join(live)}; stop all servers first "
            "(one that was killed counts for another minute)"
        )


async def _require_empty(target: Side) -> None:
    for table in MOVED:
        columns = await target.columns(table)
        if table not in FRESH and await target.between(KeyRange(table, columns)):
            raise StoreRefused(
                f"{target.location} was left untouched: it holds a service already (there is "
                f"something in {table}); give an empty database"
            )


async def _walked(source: Side, target: Side, table: str, walk: Walk) -> MovedTable:
    """
    Walk through a table. Raises `StoreRefused` if the check finds a difference, that is another
    writer.
    """
    known = await source.readable(table)
    columns = [n for n in await target.columns(table) if n in known or (table, n) in DERIVED]
    key = [columns.index(name) for name in MOVED[table]]
    after: Row | None = None
    count, digest = 0, sha256()
    async for rows in _batches(source.rows(table, columns)):
        last = tuple(rows[-1][place] for place in key) if rows else None
        span = KeyRange(table, columns, after, last)
        if rows != await target.between(span):
            if walk is Walk.CHECK:
                raise StoreRefused(f"{target.location} changed while it was filled, in {table}")
            await target.replace(span, rows if walk is Walk.COPY else [])
        for row in rows:
            digest.update(repr(row).encode())
        count, after = count + len(rows), last or after
    return MovedTable(table, count, digest.hexdigest())


async def _batches(rows: AsyncIterator[Row]) -> AsyncIterator[list[Row]]:
    """*rows* in batches, the last of them empty: behind the last row the target has nothing."""
    batch: list[Row] = []
    size = 0
    async for row in rows:
        batch.append(row)
        size += sum(len(cell) if isinstance(cell, str | bytes) else 8 for cell in row)
        if size >= BATCH_BYTES or len(batch) == BATCH_ROWS:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch
    yield []


def selected(
    table: str, columns: Sequence[str], known: Sequence[str], place: str | None = None
) -> str:
    """The text that reads *columns*, those that are not *known* derived. *place*: what to read."""
    shown = [name if name in known else f"{DERIVED[table, name]} AS {name}" for name in columns]
    return f"SELECT {', '.join(shown)} FROM {place or table}"  # noqa: S608 - names of this package


def ordered(table: str) -> str:
    """The order of the key."""
    return f" ORDER BY {', '.join(MOVED[table])}"
