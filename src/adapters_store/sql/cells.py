"""
Cells: the JSON text of a column, sealed where it is secret.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import orjson
from attrs import define, frozen

from adapters_store.sql.statement import Later
from wfcore.ports.system import Sealer


def text_of(value: Any) -> str:
    """
    The JSON text of *value*; works also for values that orjson refuses (integers beyond 64 bits,
    lone surrogates).
    """
    try:
        return orjson.dumps(value).decode()
    except TypeError:
        return json.dumps(value)


OBJECT, LIST, MEMBER, NAME, WIDE = 192, 64, 40, 32, 4
"""
The bytes of memory of an object, a list, a part after a comma, a part after a colon, and a
character of a text that is not all ASCII: measured with `tracemalloc`, rounded up.
"""


def cost_of(text: str) -> int:
    """
    The approximate bytes of memory for the value of a JSON text, rarely too few. A text of many
    small objects takes twenty times its length, a long string no more than its length.
    """
    width = 1 if text.isascii() else WIDE
    return (
        len(text) * width
        + text.count("{") * OBJECT
        + text.count("[") * LIST
        + text.count(",") * MEMBER
        + text.count(":") * NAME
    )


def value_of(text: str) -> Any:
    """The inverse of `text_of`."""
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return json.loads(text)


MARK = "~"


EMPTY = ("{}", "null")
"""Cells without content, which are not sealed."""


class InClear(ValueError):
    """Raised for a cell in clear that this service would have sealed."""

    def __init__(self) -> None:
        super().__init__("it is in clear, and the service would have sealed it")


@frozen
class SealedTable:
    """
    The sealed columns of a table, and its primary key. `bound`: the part of the key to which a cell
    is bound; None: the whole key.
    """

    columns: tuple[str, ...] = ("body",)
    key: tuple[str, ...] = ("id",)
    bound: tuple[str, ...] | None = None


SEALED: Mapping[str, SealedTable] = {
    "accounts": SealedTable(),
    "api_keys": SealedTable(),
    "approvals": SealedTable(),
    "approval_details": SealedTable(),
    "audit": SealedTable(("record",)),
    "callbacks": SealedTable(),
    "definitions": SealedTable(key=("workflow_id", "revision")),
    "events": SealedTable(("data",), ("execution_id", "number")),
    "execution_variables": SealedTable(("body", "cause"), ("execution_id",)),
    "notices": SealedTable(),
    "people_groups": SealedTable(),
    "logs": SealedTable(("data",), ("execution_id", "number")),
    "executions": SealedTable(("callback_url", "output")),
    "login_links": SealedTable(),
    "replays": SealedTable(key=("scope", "key")),
    "sessions": SealedTable(),
    "signing_keys": SealedTable(),
    "step_results": SealedTable(("output", "items"), ("execution_id", "position")),
    "webhook_deliveries": SealedTable(key=("webhook_id", "authenticated", "id"), bound=("id",)),
    "webhooks": SealedTable(),
    "workflow_states": SealedTable(key=("workflow_id",)),
}


def place_of(table: str, column: str, key: Iterable[Any]) -> str:
    """
    The place to which a cell is bound; a cell that was moved to another row or column cannot be
    opened.
    """
    return f"{table}.{column}/{'/'.join(map(str, key))}"


def sealed(sealer: Sealer | None, text: str, table: str, column: str, *key: Any) -> str:
    """*text* as the cell of *table*, *column* and *key* stores it."""
    if sealer is None or table not in SEALED or text in EMPTY:
        return text
    return MARK + sealer.seal(text, place_of(table, column, key))


ASIDE = 64 << 10
"""
The most characters of a cell that is sealed, opened or decoded in the event loop; a larger cell is
left to a thread.
"""


def sealed_later(
    sealer: Sealer | None, text: str, table: str, column: str, *key: Any
) -> str | Later:
    """`sealed` for a cell that may be large; a large cell is sealed when it is written."""
    if sealer is None or len(text) <= ASIDE:
        return sealed(sealer, text, table, column, *key)
    return Later(partial(sealed, sealer, text, table, column, *key))


@define(eq=False)
class Cells:
    """Opens the cells of one row. `cost`: the approximate bytes of the opened values."""

    sealer: Sealer | None
    table: str
    key: tuple[Any, ...]
    cost: int = 0

    def opened(self, cell: str, column: str, table: str | None = None, *more: Any) -> str:
        """
        The text of *cell*. For a cell of another table whose row belongs to this row, *table* is
        that table, and *more* is the rest of that row's key. Raises `ValueError` if the cell cannot
        be opened, `InClear` if the cell is in clear but should be sealed.
        """
        if not cell.startswith(MARK):
            if cell not in EMPTY and (table or self.table) in SEALED:
                self.require_no_key()
            return cell
        if self.sealer is None:
            raise ValueError("it is sealed, and there is no key")
        place = place_of(table or self.table, column, (*self.key, *more))
        text = self.sealer.open(cell[len(MARK) :], place)
        self.cost += cost_of(text)
        return text

    def require_no_key(self) -> None:
        """Raises `InClear` if there is a sealer."""
        if self.sealer is not None:
            raise InClear


Row = Sequence[Any]


Key = tuple[Any, ...]
