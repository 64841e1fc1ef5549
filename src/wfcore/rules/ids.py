"""
The form of ids: their order, and the cell that made them. Decision 221.

`exec_` `1a0e8f5c1d2` `000` `k0` `9f3a5c7e1b20`: the time in milliseconds, a number within the
millisecond, the cell, and randomness. Time comes first, so that ids are ordered by time in every
cell. Ids from before there were cells lack the two letters of the cell and fit into the same order.
No cell begins with a hexadecimal digit, so ids of two cells, or with and without a cell, differ at
the same place.

To clients, ids are opaque. A router reads the cell to find the servers that hold the record.
"""

import re

from wfcore.time import EpochMs

FIRST_CELL = "k0"
CELL_PATTERN = r"[g-z][0-9a-z]"
CELL_AT = 14
"""The number of an id's digits between its prefix and the cell: 11 of time, 3 of a number."""
COUNTS = 1 << 12
"""The most ids that one maker gives in the same millisecond."""
_FORM = rf"[0-9a-f]{{{CELL_AT}}}({CELL_PATTERN})[0-9a-f]{{12,18}}"
_ID = re.compile(rf"(?:[a-z]+_)?{_FORM}", re.ASCII)
_INSIDE = re.compile(rf"(?<![0-9A-Za-z]){_FORM}(?![0-9A-Za-z])", re.ASCII)


def timed_id(prefix: str, at: EpochMs, count: int, cell: str, chance: bytes) -> str:
    """A new id. *count*: less than `COUNTS`. *chance*: six random bytes."""
    return f"{prefix}_{at:011x}{count:03x}{cell}{chance.hex()}"


def caused_id(prefix: str, digest: str, cause: str) -> str:
    """
    The id of the one record that follows from the record *cause*: *digest*, hexadecimal digits,
    with the cell of *cause*. The same cause gives the same id for ever, in every cell.
    """
    found = _INSIDE.search(cause)
    cell = found[1] if found else ""
    return f"{prefix}_{digest[:CELL_AT]}{cell}{digest[CELL_AT:]}"


def cell_of(id: str) -> str | None:
    """
    The cell in which *id* was made; None for an id without a cell, or of another origin. For an API
    key, the id without `wfk_` is enough.
    """
    found = _ID.fullmatch(id)
    return found[1] if found else None
