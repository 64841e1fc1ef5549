"""
The move of all content of one database into another: from SQLite to PostgreSQL, or back.

Both databases have the same tables, and rows are copied as they are. A sealed cell is copied as it
is, too: the cell is bound to its table and key, not to its database.

**One service, not two.** The source is locked for writers during the whole move. The target is
marked and fenced before its first row is written: no server opens the target, and every write
except those of the move fails, even in a process that already has the target open. Once all rows
are copied and compared, the source is marked and fenced. Only then are the mark and the fence of
the target removed. So nobody can begin work on both databases, and after a kill the same command
continues the move.

**Resuming needs no notes.** The source is read in the order of its keys, in batches. The rows of
the target between the same keys are compared, and replaced if they differ. Rows of an attempt that
was broken off are kept if they are still the same. Stale rows are all deleted before any row is
written anew: a unique name may have another owner by now. The check at the end repeats the walk,
and must find no difference.

**One move, not two.** The move that has the lock reads both marks again, and writes nothing to a
target without a mark. So of two simultaneous moves, the later move overwrites nothing that the
service has done since the earlier move ended.

The tables in `LEFT` are not moved: the announcements of processes, the counts of changes, and the
counts of quotas, which begin anew, as after a restore.
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
    "workflow_states": ("workflow_id",),
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
    "people_groups": ("id",),
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
    """
    The mark that a move sets on a database. `id`: the id of the service, from the audit chain.
    `other`: the location of the other database, without secrets.
    """

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
    """
    Raised if the service of a database was moved elsewhere, or has not fully arrived: a backup of
    the database would make a second service.
    """


class Walk(Enum):
    """The treatment of rows of the target that differ from the source."""

    CLEAR = auto()
    COPY = auto()
    CHECK = auto()


NODES = "SELECT body FROM nodes"


def living(bodies: Iterable[str], now: EpochMs) -> list[str]:
    """The processes whose announcements are still valid: host, process id and address of each."""
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
    """
    The rows after the key *after* (None: from the first row) up to the key *last* (None: to the
    last row).
    """

    table: str
    columns: Sequence[str]
    after: Row | None = None
    last: Row | None = None

    @property
    def where(self) -> tuple[str, Row]:
        """The condition as SQL, and its values."""
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
        """The servers that work on the database, as they announced themselves."""

    async def note(self, entry: AuditEntry) -> None:
        """Add an entry to the audit log."""

    async def service_id(self) -> str: ...
    async def columns(self, table: str) -> Sequence[str]:
        """The columns that can be written."""

    async def readable(self, table: str) -> Sequence[str]:
        """The columns that can be written, and the columns that the database derives."""

    def locked(self) -> AbstractAsyncContextManager[None]:
        """
        A context without other writers; its changes are committed at the end, or undone after an
        error.
        """

    def rows(self, table: str, columns: Sequence[str]) -> AsyncIterator[Row]:
        """All rows of *table*, inside `locked`, in the order of the table's key."""

    async def between(self, span: KeyRange) -> list[Row]: ...

    async def replace(self, span: KeyRange, rows: Sequence[Row]) -> None:
        """
        Delete the rows in *span* and write *rows*, durably in one transaction. Raises
        `StoreRefused` if the database has no mark.
        """

    def begun(self, mark: Mark) -> AbstractAsyncContextManager[None]:
        """
        A context that sets *mark*, and a fence against every write except `replace`: durable at the
        end, or undone after an error. Inside the context there is no other writer.
        """

    async def fence(self, mark: Mark) -> None:
        """Set *mark*, and refuse every later write; called inside `locked`."""

    async def end(self) -> None:
        """Remove the mark and the fence, durably."""


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
    Move all of *source* to *target*, or continue a move that was broken off. *report* is called for
    each table, once the table is checked. *entry* is added to the audit log of *source*, and moved
    with the log. *files* moves the content of artifacts, which is not in the database; *files* is
    called with the bodies of all artifacts.

    Raises `StoreRefused` if one of the two databases is no longer, or not yet, in the right state;
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
    """Raises `StoreRefused` if a server works on the database."""
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
    Walk through a table. Raises `StoreRefused` if the check finds a difference, which means that
    there is another writer.
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
    """
    *rows* in batches. The last batch is empty: it stands for the range after the last row, where
    the target must have no rows.
    """
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
    """
    The SELECT of *columns*; a column that is not *known* has its value in `DERIVED`. *place*: the
    text after FROM, instead of *table*.
    """
    shown = [name if name in known else f"{DERIVED[table, name]} AS {name}" for name in columns]
    return f"SELECT {', '.join(shown)} FROM {place or table}"  # noqa: S608 - names of this package


def ordered(table: str) -> str:
    """The ORDER BY for the key of *table*."""
    return f" ORDER BY {', '.join(MOVED[table])}"
