"""
The writes of a unit in as few statements as possible.

In PostgreSQL a `sql.statement.Statement` takes an array for each column, so that one text writes
any number of rows. Several statements become one statement, in which each is a part of the `WITH`.
So a unit that only writes records needs one request to the server, and commits by itself.

All parts of such a statement see the database as it was before. The parts run in the order of their
checks, which is the same for all statements (`_RANK`); rows are sorted. So of two statements that
want the same rows, the second waits for the first, and there is no deadlock. A unit that one
statement cannot express (the same row twice, a condition on rows written before it) becomes several
statements in a transaction.
"""
# ruff: noqa: S608 - only constant names of this package are put into the text

import asyncio
import random
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, cast

from attrs import define, field, frozen

from adapters_store.postgres.connection import Connection, numbered, rows_of
from adapters_store.sql.statement import (
    Later,
    Statement,
    Values,
    Write,
    assigned,
    has_later,
)
from wfcore.errors import Stale

TYPES = """SELECT c.relname::text, a.attname::text,
        format_type(coalesce(nullif(t.typbasetype, 0), t.oid), NULL)
    FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid JOIN pg_type t ON t.oid = a.atttypid
    WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind = 'r' AND a.attnum > 0"""
TALLIES = "webhook_tallies"
SLOTS = 16
"""
The number of rows over which a count is spread, so that writers hardly ever wait for one another.
"""
ADD_UP = """ ON CONFLICT (webhook_id, date, status, slot) DO UPDATE
    SET count = webhook_tallies.count + excluded.count,
    last_at = greatest(webhook_tallies.last_at, excluded.last_at)"""

_RANK = ("executions", "approvals", "timers", "triggers")
"""
The tables whose rows several units change at once; their rows are locked first, in this order.
"""


@frozen
class ArrayText:
    """
    The text of a statement, with `{0}`, `{1}`, … for arrays. *counted*: the statement must write
    all rows.
    """

    text: str
    width: int
    table: str
    counted: bool
    keyed: bool

    @property
    def rank(self) -> tuple[int, str, str]:
        """The place of the text among the parts of a statement."""
        place = _RANK.index(self.table) if self.table in _RANK else len(_RANK)
        return place, self.table, self.text


@define(eq=False)
class Statements:
    """
    The texts for one database. *types*: the type of each column by table and name, as the server
    names the type.
    """

    types: Mapping[tuple[str, str], str]
    _texts: dict[Statement, ArrayText] = field(factory=dict)
    _joined: dict[tuple[ArrayText, ...], str] = field(factory=dict)

    @classmethod
    async def of(cls, connection: Connection) -> "Statements":
        """The texts for the database of *connection*; reads the types of columns."""
        found = await rows_of(connection, TYPES)
        return cls({(table, column): type for table, column, type in found})

    def text(self, statement: Statement) -> ArrayText:
        """The text of *statement*."""
        known = self._texts.get(statement)
        if known is None:
            known = self._texts[statement] = self._made(statement)
        return known

    def _made(self, statement: Statement) -> ArrayText:
        table, columns, conflict = statement.table, statement.columns, statement.conflict
        if table == TALLIES:
            columns, conflict = (*columns, "slot"), ADD_UP
        names = (*columns, *statement.given, *statement.keys)
        types = [self.types[table, statement.given.get(name, name)] for name in names]
        arrays = ", ".join(f"{{{place}}}::{type}[]" for place, type in enumerate(types))
        new = [f"c{place}" for place in range(len(names))]
        rows = f"unnest({arrays}) AS n ({', '.join(new)})"
        if statement.keys:
            text = _updated(statement, new, rows)
        else:
            text = f"INSERT INTO {table} ({', '.join(columns)}) SELECT * FROM {rows}{conflict}"
        counted = not conflict or "WHERE" in conflict
        return ArrayText(f"{text} RETURNING 1", len(names), table, counted, bool(statement.keys))

    def joined(self, texts: tuple[ArrayText, ...]) -> str:
        """One statement that does the work of all *texts*, or has no effect."""
        known = self._joined.get(texts)
        if known is None:
            known = self._joined[texts] = _joined(texts)
        return known


def _updated(statement: Statement, new: Sequence[str], rows: str) -> str:
    one, values = statement, [f"n.{name}" for name in new]
    changed, found = assigned(one.table, one.columns, one.keys, one.given, one.computed, values)
    return f"UPDATE {one.table} SET {changed} FROM {rows} WHERE {found}"


def _joined(texts: Sequence[ArrayText]) -> str:
    parts, checks, first = [], [], 1
    for place, text in enumerate(texts):
        marks = [f"${first + number}" for number in range(text.width)]
        parts.append(f"w{place} AS ({text.text.format(*marks)})")
        if text.counted:
            written = f"(SELECT count(*) FROM w{place})"
            checks.append(f"wfcore_require('{text.table}', cardinality(${first}), {written})")
        first += text.width
    return f"WITH {', '.join(parts)} SELECT {', '.join(checks) or '1'}"


Rows = Mapping[ArrayText, list[Values]]


def arrays_of(rows: Rows) -> tuple[tuple[ArrayText, ...], list[Sequence[Any]]]:
    """The texts in the order of their ranks, and the arrays that the texts take."""
    texts = tuple(sorted(rows, key=lambda text: text.rank))
    arrays: list[Sequence[Any]] = []
    for text in texts:
        found = rows[text]
        if text.table == TALLIES:
            found = _added_up(found)
        if text.keyed and len(found) > 1:
            found = sorted(found, key=lambda values: str(values[-2]))
        arrays += zip(*found, strict=True)
    return texts, arrays


def _added_up(rows: Sequence[Values]) -> list[Values]:
    """The sums of the counts, one row for each sum, all with one random slot."""
    slot = random.randrange(SLOTS)  # noqa: S311 - spreads, hides nothing
    sums: dict[Values, list[int]] = defaultdict(lambda: [0, 0])
    for webhook_id, date, status, count, at in rows:
        found = sums[webhook_id, date, status]
        found[0] += count
        found[1] = max(found[1], at)
    return [(*key, *sum, slot) for key, sum in sorted(sums.items())]


@frozen
class Lock:
    """
    An advisory lock until the end of the transaction. *shared*: other transactions may share the
    lock.
    """

    name: str
    shared: bool = False


LOCKED = "SELECT pg_advisory_xact_lock{0}(hashtextextended('wfcore ' || $1, 0))"


@frozen(eq=False)
class UnitWrites:
    """
    The writes of one unit: in order, after *locks*, and before *audit* (texts and records for the
    chain). `kept`: the records of the unit by table and key, each with the form to cache, if it is
    worth caching.
    """

    writes: Sequence[Write]
    locks: frozenset[Lock] = frozenset()
    audit: Sequence[tuple[str, str | None]] = ()
    kept: Mapping[tuple[str, Values], Any] = field(factory=dict)

    @cached_property
    def alone(self) -> bool:
        """
        Whether the unit needs a transaction of its own: it has locks, audit entries or other
        statements, or writes a record twice.
        """
        rows_only = not any(isinstance(statement, str) for statement, _, _ in self.writes)
        if self.locks or self.audit or not rows_only:
            return True
        found = [stale for _, _, stale in self.writes if stale is not None]
        return len(found) != len(set(found))


async def perform(connection: Connection, statements: Statements, unit: UnitWrites) -> None:
    """
    Carry out all writes but the audit in order, inside a transaction. Raises `Stale`,
    `DriverError`.

    Locks come first: shared locks, then the other locks, each sort by name. So no transaction that
    holds a row waits for a lock, and there is no deadlock. A record that is put again begins
    another statement. The writes between a record's own row and the next record's row belong to
    that record.
    """
    for lock in sorted(unit.locks, key=lambda one: (not one.shared, one.name)):
        await connection.execute(LOCKED.format("_shared" if lock.shared else ""), lock.name)
    rows: dict[ArrayText, list[Values]] = {}
    seen: set[Any] = set()
    record: Any = None
    for statement, values, stale in unit.writes:
        once = stale is None or stale not in seen
        record = record if stale is None else stale
        if isinstance(statement, Statement) and once:
            seen.add(record)
            rows.setdefault(statements.text(statement), []).append(values)
            continue
        await write_rows(connection, statements, rows)
        rows, seen = {}, {record}
        if isinstance(statement, Statement):
            rows[statements.text(statement)] = [values]
            continue
        given = await _made(connection, values)
        if not await connection.fetch(numbered(statement), *given) and stale is not None:
            raise Stale(*stale)
    await write_rows(connection, statements, rows)


async def write_rows(connection: Connection, statements: Statements, rows: Rows) -> None:
    """Write *rows* with one statement. Raises `DriverError`."""
    if rows:
        made = {text: [await _made(connection, one) for one in some] for text, some in rows.items()}
        texts, arrays = arrays_of(made)
        await connection.fetch(statements.joined(texts), *arrays)


async def _made(connection: Connection, values: Values) -> Values:
    """*values* with each `Later` computed in a thread. Raises `Stale`."""
    if not has_later(values):
        return values
    return tuple([await _found(connection, one) for one in values])


async def _found(connection: Connection, value: Any) -> Any:
    if type(value) is not Later:
        return value
    found: Sequence[Any] = ()
    if value.source is not None:
        sql, key = value.source
        rows = await rows_of(connection, numbered(sql), *key)
        if not rows:
            raise Stale(*value.stale)
        found = rows[0]
    return await asyncio.to_thread(value.make, *found)


def together(statements: Statements, units: Iterable[UnitWrites]) -> Rows:
    """The rows of units that are not `alone`."""
    rows: dict[ArrayText, list[Values]] = {}
    for unit in units:
        for statement, values, _ in unit.writes:
            rows.setdefault(statements.text(cast("Statement", statement)), []).append(values)
    return rows
