"""
Statements that write one row or many, and how the writes of many units become few of them.

Every statement releases the interpreter's lock and has to win it back, so that a batch of many
small ones costs more in waiting than in work. `OR FAIL` keeps SQLite from recording how to undo
half of a statement of many rows: a transaction in which one failed is rolled back anyway.
"""
# ruff: noqa: S608 - only constant names of this package are put into the text

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from itertools import chain
from typing import Any, Generic, TypeVar

from attrs import define, field, frozen

from adapters_store.sqlite.connection import Cursor
from wfcore.errors import Stale

T = TypeVar("T")
Values = tuple[Any, ...]
Write = tuple[str, Values, tuple[str, str] | None]
"""
A statement, its values, and the kind and id that are stale unless it wrote one row or, being a
`SELECT`, found one.
"""


@frozen(eq=False)
class Later:
    """
    A value that is made where it is written, aside of the event loop: of the row that *source*
    finds if there is one; without it the kind and id are *stale*.
    """

    make: Callable[..., str]
    source: tuple[str, Values] | None = None
    stale: tuple[str, str] = ("", "")


Fill = Callable[[Cursor, Sequence[Values]], Sequence[Values]]
"""Makes of collected values those that are written: for what only the transaction knows."""

MOST = 64
"""
Rows of one statement, and items of a batch. A power of two, as all numbers of rows are, so that
texts are few.
"""


@frozen
class Rows:
    """
    A statement over rows: *row* repeated between the other parts. *one*: the cheaper form for a
    single row. *fill*: completes the values, in the order of the rows.
    """

    head: str
    row: str
    tail: str = ""
    one: str | None = None
    fill: Fill | None = None

    def text(self, count: int) -> str:
        """The statement for *count* rows."""
        if count == 1 and self.one is not None:
            return self.one
        return self.head + ", ".join([self.row] * count) + self.tail

    def chunks(self, rows: Sequence[Values]) -> Iterator[tuple[str, Values]]:
        """Statements with their values, as few as possible for *rows*."""
        start = 0
        while left := len(rows) - start:
            count = min(MOST, 1 << (left.bit_length() - 1))
            some = rows[start : start + count]
            yield _text(self, count), tuple(chain.from_iterable(some))
            start += count


_text = cache(Rows.text)


@frozen
class Shape:
    """
    What `insert` (no *keys*) or `update` was asked for: for a store that says it in other words.
    """

    table: str
    columns: tuple[str, ...]
    keys: tuple[str, ...] = ()
    given: Mapping[str, str] = field(factory=dict)
    conflict: str = ""
    computed: Mapping[str, str] = field(factory=dict)


_ROWS: dict[str, Rows] = {}
SHAPES: dict[str, Shape] = {}
"""Both by the text for one row."""


def insert(table: str, columns: Sequence[str], conflict: str = "", fill: Fill | None = None) -> str:
    """The text that inserts one row; units that write alike insert theirs together."""
    head = f"INSERT OR FAIL INTO {table} ({', '.join(columns)}) VALUES "
    rows = Rows(head, _marks(columns), conflict, fill=fill)
    return _known(rows, Shape(table, tuple(columns), conflict=conflict))


def update(
    table: str,
    columns: Sequence[str],
    keys: Sequence[str],
    given: Mapping[str, str] | None = None,
    **computed: str,
) -> str:
    """
    The text that updates the row found by *keys*; units that write alike update together.

    Values: those of *columns*, then of *given*, then of *keys*. *computed* are further columns,
    whose expressions name each value of *given* once and in this order, as `{name}`; *given* maps
    the name to a column of the same type.
    """
    given = given or {}
    count = len(columns) + len(given) + len(keys)

    def parts(new: Sequence[str]) -> tuple[str, str]:
        sets = dict(zip(columns, new, strict=False))
        named = dict(zip(given, new[len(columns) :], strict=False))
        sets |= {name: text.format(**named) for name, text in computed.items()}
        changed = ", ".join(f"{name} = {value}" for name, value in sets.items())
        old = zip(keys, new[-len(keys) :], strict=True)
        found = " AND ".join(f"{table}.{name} = {value}" for name, value in old)
        return f"UPDATE OR FAIL {table} SET {changed}", f" WHERE {found}"

    change, where = parts([f"new.column{number}" for number in range(1, count + 1)])
    rows = Rows(
        f"{change} FROM (VALUES ",
        _marks(range(count)),
        f") new{where}",
        "".join(parts(["?"] * count)),
    )
    shape = Shape(table, tuple(columns), tuple(keys), given, computed=computed)
    return _known(rows, shape)


def _marks(values: Sequence[object]) -> str:
    return f"({', '.join('?' for _ in values)})"


def _known(rows: Rows, shape: Shape) -> str:
    _ROWS[rows.text(1)] = rows
    SHAPES[rows.text(1)] = shape
    return rows.text(1)


def perform(cursor: Cursor, writes: Sequence[Write]) -> None:
    """Do every write in order. Raises `Stale` at the first that matched no row."""
    for sql, values, stale in writes:
        cursor.execute(sql, _filled(cursor, sql, [values])[0])
        asks = cursor.description is not None
        if stale is not None and not (cursor.fetchone() if asks else cursor.rowcount == 1):
            raise Stale(*stale)


LIGHT = 1 << 20
"""Bytes of a record that is held beside the cache."""


@define(eq=False)
class Known:
    """
    A decoded record, its row if that is what is compared, and the approximate bytes of both.

    `seen`: the state of the database (see `Reads.state`) in which it was last found current.
    `head`: the part of `size` that the next change replaces; 0 if it was read and that is unknown.
    `bare`: the record without its large values, if it has any that were read, with the same sizes.
    """

    version: int
    record: Any
    size: int
    row: Values | Sequence[Any] | None = None
    seen: int | None = None
    head: int = 0
    bare: Any = None
    bare_size: int = 0
    bare_head: int = 0

    @property
    def least(self) -> Any:
        """The record without large values."""
        return self.record if self.bare is None else self.bare

    @property
    def light(self) -> Any:
        """The record as it may be held for long: with large values only if they are few."""
        return self.record if self.size <= LIGHT else self.least

    @property
    def rest(self) -> int:
        """The part of `size` that stays with the next change."""
        return self.size - self.head

    @property
    def bare_rest(self) -> int:
        """The same of `bare`."""
        return self.rest if self.bare is None else self.bare_size - self.bare_head

    @property
    def alone(self) -> "Known":
        """What is known without large values."""
        if self.bare is None:
            return self
        return Known(self.version, self.bare, self.bare_size, None, self.seen, self.bare_head)


@define(eq=False)
class Writes:
    """
    A job for the writer: what one unit writes, in order. `pending`: its records by table and key
    (None: deleted), each with what is known of it if it is worth caching.
    """

    writes: Sequence[Write]
    pending: Mapping[tuple[str, Values], tuple[Any, Known | None]] = field(factory=dict)

    def __call__(self, cursor: Cursor) -> None:
        perform(cursor, self.writes)


def perform_together(cursor: Cursor, units: Sequence[Writes]) -> bool:
    """
    Perform the writes of *units*, with one statement for rows that are written alike.

    Only statements made by `insert` and `update` change places with others: they affect others'
    rows only by being stale. Returns whether all were such, so that nothing but records was
    written. Raises `Stale` if some unit is, without saying which.
    """
    alike: dict[str, list[Write]] = {}
    records_only = True
    for unit in units:
        if all(sql in _ROWS for sql, _, _ in unit.writes):
            for write in unit.writes:
                alike.setdefault(write[0], []).append(write)
        else:
            records_only = False
            _perform_alike(cursor, alike)
            perform(cursor, unit.writes)
    _perform_alike(cursor, alike)
    return records_only


def _perform_alike(cursor: Cursor, alike: dict[str, list[Write]]) -> None:
    for sql, writes in alike.items():
        touched = 0
        rows = _filled(cursor, sql, [values for _, values, _ in writes])
        for text, values in _ROWS[sql].chunks(rows):
            touched += cursor.execute(text, values).rowcount
        stale = writes[0][2]
        if stale is not None and touched != len(writes):
            raise Stale(*stale)
    alike.clear()


def _filled(cursor: Cursor, sql: str, rows: Sequence[Values]) -> Sequence[Values]:
    known = _ROWS.get(sql)
    if known is not None and known.fill is not None:
        return known.fill(cursor, rows)
    return [_made(cursor, values) if has_later(values) else values for values in rows]


def has_later(values: Values) -> bool:
    """Whether one of *values* is still to be made."""
    return any(type(one) is Later for one in values)


def _made(cursor: Cursor, values: Values) -> Values:
    """*values* with those in them that were still to be made. Raises `Stale`."""
    return tuple(_found(cursor, one) if type(one) is Later else one for one in values)


def _found(cursor: Cursor, later: Later) -> str:
    found = cursor.execute(*later.source).fetchone() if later.source else ()
    if found is None:
        raise Stale(*later.stale)
    return later.make(*found)


LONGEST_S = 0.01


@define(eq=False)
class Batcher(Generic[T]):
    """
    Collects what the turns of an event loop bring, so that much of it is done at once: a batch for
    a database costs much for itself and little for each item.

    Delivers once *quiet_turns* in a row brought nothing more, at the latest when there are `MOST`
    items or the first one has waited `LONGEST_S`. An idle turn takes some microseconds.
    """

    deliver: Callable[[list[T]], None]
    quiet_turns: int
    _items: list[T] = field(factory=list)
    _before: int = 0
    _quiet: int = 0
    _by: float = 0.0

    def add(self, item: T) -> None:
        """Wait with *item* for more. Called from the event loop."""
        if not self._items:
            loop = asyncio.get_running_loop()
            self._before = self._quiet = 0
            self._by = loop.time() + LONGEST_S
            loop.call_soon(self._look, loop)
        self._items.append(item)

    def _look(self, loop: asyncio.AbstractEventLoop) -> None:
        count = len(self._items)
        self._quiet = self._quiet + 1 if count == self._before else 0
        self._before = count
        if self._quiet < self.quiet_turns and count < MOST and loop.time() < self._by:
            loop.call_soon(self._look, loop)
        else:
            self.flush()

    def flush(self) -> None:
        """Deliver what was collected, now."""
        if self._items:
            items, self._items = self._items, []
            self.deliver(items)
