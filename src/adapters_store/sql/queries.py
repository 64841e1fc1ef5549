"""Lists and lookups as data: the text of each query, with its values."""
# ruff: noqa: S608 - only constant text of this package is put together

import re
from collections.abc import Mapping, Sequence
from enum import StrEnum
from functools import lru_cache
from typing import Any

from attrs import define, field, frozen

from wfcore.model.page import PageRequest
from wfcore.time import EpochMs

_TABLE = re.compile(r"\b(?:FROM|JOIN)\s+(\w+)")


@lru_cache(1_024)
def tables_in(sql: str) -> frozenset[str]:
    """The names that follow FROM or JOIN in *sql*: tables, and named parts of the query."""
    return frozenset(_TABLE.findall(sql))


@frozen
class Query:
    """One SELECT, with its values."""

    sql: str
    values: tuple[Any, ...]

    @property
    def tables(self) -> frozenset[str]:
        """
        The tables that the query reads. A unit that changed one of these tables reads behind its
        own writes.
        """
        return tables_in(self.sql)

    def part(self, limit: int, offset: int) -> "Query":
        """The query for at most *limit* of its rows, from *offset* on."""
        return Query(f"{self.sql} LIMIT ? OFFSET ?", (*self.values, limit, offset))


def query(sql: str, *values: Any) -> Query:
    """The query *sql* with its values."""
    return Query(sql, values)


@define
class Where:
    """Conditions that must all hold, with their values."""

    conditions: list[str] = field(factory=list)
    values: list[Any] = field(factory=list)

    def add(self, condition: str, *values: Any) -> None:
        """Require *condition*, with *values* for its question marks."""
        self.conditions.append(condition)
        self.values += values

    def equal(self, column: str, value: object) -> None:
        """Require that the column has that value; None: any value."""
        if value is not None:
            self.add(f"{column} = ?", value)

    def among(self, column: str, members: Sequence[StrEnum]) -> None:
        """Require that the column has one of *members*; if *members* is empty, any value."""
        if members:
            marks = ", ".join("?" for _ in members)
            self.add(f"{column} IN ({marks})", *(member.value for member in members))

    def within(self, column: str, since: EpochMs | None, until: EpochMs | None) -> None:
        """Require that the column is at or after *since* and before *until*."""
        if since is not None:
            self.add(f"{column} >= ?", since)
        if until is not None:
            self.add(f"{column} < ?", until)

    @property
    def text(self) -> str:
        """The conditions as SQL."""
        return " AND ".join(self.conditions) or "1 = 1"


@frozen
class Listing:
    """
    A list that is shown in pages. *table* has the alias `r`; *order* names two columns of the
    table; *computed* gives the expressions of columns that the table lacks.

    Each row of a page starts with the exact total (NULL after a cursor) and the values of the row
    in the columns *order*; an empty page consists of the total alone. If more rows follow, the
    query returns one row more than requested.
    """

    table: str
    columns: tuple[str, ...] = ("version", "body", "id")
    order: tuple[str, str] = ("created_at", "id")
    descending: bool = True
    computed: Mapping[str, str] = field(factory=dict)

    def page(
        self,
        where: str,
        values: tuple[Any, ...],
        page: PageRequest,
        total: tuple[str, Sequence[Any]] | None = None,
    ) -> Query:
        """
        The query for one page of the rows for which *where* holds. *total*: an expression for the
        number of these rows, with its values; None: the rows are counted.
        """
        columns = ", ".join(f"p.{name}" for name in (*self.order, *self.columns))
        if page.after is None:
            counting = f"(SELECT count(*) FROM {self.table} r WHERE {where})"
            number, counted = total or (counting, values)
            rows = self._rows(where)
            count = f"(SELECT {number} AS total) t"
            sql = f"SELECT t.total, {columns} FROM {count} LEFT JOIN ({rows}) p ON 1 = 1"
            found: tuple[Any, ...] = (*counted, *values)
        else:
            way, (key, id) = "<" if self.descending else ">", self.order
            rows = self._rows(f"({where}) AND (r.{key}, r.{id}) {way} (?, ?)")
            sql = f"SELECT NULL, {columns} FROM ({rows}) p"
            found = (*values, page.after.key, page.after.id)
        sql += f" ORDER BY {self._ordered('p')}"
        return query(sql, *found, page.size + 1, page.offset)

    def _rows(self, where: str) -> str:
        names = dict.fromkeys((*self.columns, *self.order))
        picked = ", ".join(f"{self.computed.get(name, f'r.{name}')} AS {name}" for name in names)
        order = f"ORDER BY {self._ordered('r')} LIMIT ? OFFSET ?"
        return f"SELECT {picked} FROM {self.table} r WHERE {where} {order}"

    def _ordered(self, alias: str) -> str:
        way = " DESC" if self.descending else ""
        return ", ".join(f"{alias}.{name}{way}" for name in self.order)
