"""
Statements that write one row or many, as values: each statement names its table, columns and keys.

`OR FAIL` keeps SQLite from recording how to undo half of a statement of many rows: a transaction in
which a statement failed is rolled back anyway. PostgreSQL writes the same statements in its own
words (`postgres.statements`).
"""
# ruff: noqa: S608 - only constant names of this package are put into the text

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from itertools import chain
from typing import Any

from attrs import field, frozen

Values = tuple[Any, ...]


@frozen(eq=False)
class Later:
    """
    A value that *make* computes when the value is written, outside the event loop. *source*: a
    statement whose row *make* gets as arguments; if there is no such row, the kind and id in
    *stale* are stale.
    """

    make: Callable[..., str]
    source: tuple[str, Values] | None = None
    stale: tuple[str, str] = ("", "")


def has_later(values: Values) -> bool:
    """Whether one of *values* is a `Later`."""
    return any(type(one) is Later for one in values)


Fill = Callable[[Any, Sequence[Values]], Sequence[Values]]
"""
A function from a cursor and the collected values to the values to write. It adds values that only
the transaction knows.
"""

MOST = 64
"""
The most rows of one statement. Each number of rows is a power of two, so that there are few
different texts.
"""


@frozen(eq=False)
class Statement:
    """
    An insertion of rows or, with *keys*, an update of the rows that the keys find. *one*: the text
    for a single row. In the text for many rows, *row* is repeated between *head* and *tail*.

    The values of a row are those of *columns*, *given* and *keys*. *conflict*: the ON CONFLICT
    clause of an insertion. *computed*: the expressions of further columns, which name each value of
    *given* once and in this order, as `{name}`; *given* maps the name to a column of the same type.
    *fill*: completes the values when SQLite writes them.
    """

    table: str
    columns: tuple[str, ...]
    head: str
    row: str
    tail: str
    one: str
    keys: tuple[str, ...] = ()
    given: Mapping[str, str] = field(factory=dict)
    conflict: str = ""
    computed: Mapping[str, str] = field(factory=dict)
    fill: Fill | None = None

    def chunks(self, rows: Sequence[Values]) -> Iterator[tuple[str, Values]]:
        """The texts for *rows* with their values; as few texts as possible."""
        start = 0
        while left := len(rows) - start:
            count = min(MOST, 1 << (left.bit_length() - 1))
            some = rows[start : start + count]
            yield _text(self, count), tuple(chain.from_iterable(some))
            start += count


@cache
def _text(statement: Statement, count: int) -> str:
    """The text for *count* rows."""
    if count == 1:
        return statement.one
    return statement.head + ", ".join([statement.row] * count) + statement.tail


Write = tuple[Statement | str, Values, tuple[str, str] | None]
"""
A `Statement` or the text of another statement, its values, and a kind and id. The record with that
kind and id is stale unless one row was written or, by a text that returns rows, returned.
"""


def insert(
    table: str, columns: Sequence[str], conflict: str = "", fill: Fill | None = None
) -> Statement:
    """The insertion of rows; the same insertions of several units become one statement."""
    head = f"INSERT OR FAIL INTO {table} ({', '.join(columns)}) VALUES "
    row = _marks(columns)
    one = head + row + conflict
    return Statement(table, tuple(columns), head, row, conflict, one, conflict=conflict, fill=fill)


def update(
    table: str,
    columns: Sequence[str],
    keys: Sequence[str],
    given: Mapping[str, str] | None = None,
    **computed: str,
) -> Statement:
    """
    The update of the rows found by *keys*; the same updates of several units become one statement.
    """
    given = given or {}
    count = len(columns) + len(given) + len(keys)

    def parts(new: Sequence[str]) -> tuple[str, str]:
        changed, found = assigned(table, columns, keys, given, computed, new)
        return f"UPDATE OR FAIL {table} SET {changed}", f" WHERE {found}"

    change, where = parts([f"new.column{number}" for number in range(1, count + 1)])
    return Statement(
        table,
        tuple(columns),
        f"{change} FROM (VALUES ",
        _marks(range(count)),
        f") new{where}",
        "".join(parts(["?"] * count)),
        tuple(keys),
        given,
        computed=computed,
    )


def assigned(
    table: str,
    columns: Sequence[str],
    keys: Sequence[str],
    given: Mapping[str, str],
    computed: Mapping[str, str],
    new: Sequence[str],
) -> tuple[str, str]:
    """
    The assignments and the condition of an update. *new*: the texts of the values, in the order of
    the values.
    """
    sets = dict(zip(columns, new, strict=False))
    named = dict(zip(given, new[len(columns) :], strict=False))
    sets |= {name: text.format(**named) for name, text in computed.items()}
    old = zip(keys, new[-len(keys) :], strict=True)
    changed = ", ".join(f"{name} = {value}" for name, value in sets.items())
    return changed, " AND ".join(f"{table}.{name} = {value}" for name, value in old)


def _marks(values: Sequence[object]) -> str:
    return f"({', '.join('?' for _ in values)})"
