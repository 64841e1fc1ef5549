"""
Few statements for the writes of many units.

Every statement releases the interpreter's lock and has to win it back, so that a batch of many
small statements costs more in waiting than in work.
"""

from collections.abc import Mapping, Sequence
from typing import Any, cast

from attrs import define, field

from adapters_store.sql.cache import KnownRecord
from adapters_store.sql.statement import Later, Statement, Values, Write, has_later
from adapters_store.sqlite.connection import Cursor
from wfcore.errors import Stale


def perform(cursor: Cursor, writes: Sequence[Write]) -> None:
    """Do every write in order. Raises `Stale` at the first write that matched no row."""
    for statement, values, stale in writes:
        if isinstance(statement, str):
            cursor.execute(statement, _made(cursor, values))
        else:
            cursor.execute(statement.one, _filled(cursor, statement, [values])[0])
        returns_rows = cursor.description is not None
        if stale is not None and not (cursor.fetchone() if returns_rows else cursor.rowcount == 1):
            raise Stale(*stale)


@define(eq=False)
class Writes:
    """
    A job for the writer: the writes of one unit, in order. `pending`: the records of the unit by
    table and key (None: deleted), each with the form to cache, if it is worth caching.
    """

    writes: Sequence[Write]
    pending: Mapping[tuple[str, Values], tuple[Any, KnownRecord | None]] = field(factory=dict)

    def __call__(self, cursor: Cursor) -> None:
        perform(cursor, self.writes)


def perform_together(cursor: Cursor, units: Sequence[Writes]) -> bool:
    """
    Perform the writes of *units*, with one statement for all writes of the same statement.

    Only a `Statement` changes places with other writes: it affects rows of others only by being
    stale. Returns whether only records were written. Raises `Stale` if a unit is stale, without the
    name of that unit.
    """
    alike: dict[Statement, list[Write]] = {}
    records_only = True
    for unit in units:
        if any(isinstance(statement, str) for statement, _, _ in unit.writes):
            records_only = False
            _perform_alike(cursor, alike)
            perform(cursor, unit.writes)
            continue
        for write in unit.writes:
            alike.setdefault(cast("Statement", write[0]), []).append(write)
    _perform_alike(cursor, alike)
    return records_only


def _perform_alike(cursor: Cursor, alike: dict[Statement, list[Write]]) -> None:
    for statement, writes in alike.items():
        touched = 0
        rows = _filled(cursor, statement, [values for _, values, _ in writes])
        for text, values in statement.chunks(rows):
            touched += cursor.execute(text, values).rowcount
        stale = writes[0][2]
        if stale is not None and touched != len(writes):
            raise Stale(*stale)
    alike.clear()


def _filled(cursor: Cursor, statement: Statement, rows: Sequence[Values]) -> Sequence[Values]:
    if statement.fill is not None:
        return statement.fill(cursor, rows)
    return [_made(cursor, values) for values in rows]


def _made(cursor: Cursor, values: Values) -> Values:
    """*values* with each `Later` computed. Raises `Stale`."""
    if not has_later(values):
        return values
    return tuple(_found(cursor, one) if type(one) is Later else one for one in values)


def _found(cursor: Cursor, later: Later) -> str:
    found = cursor.execute(*later.source).fetchone() if later.source else ()
    if found is None:
        raise Stale(*later.stale)
    return later.make(*found)
