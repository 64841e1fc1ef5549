"""
The form of ids: what orders them, and the cell in which they were made. Decision 221.

`exec_` `1a0e8f5c1d2` `000` `k0` `9f3a5c7e1b20`: the time in milliseconds, a number within the
millisecond, the cell, and chance. Time comes first, so that ids order by it whatever their cell, as
do those from before there were cells, which lack these two letters. No cell begins with a
hexadecimal digit: ids of two cells, or of one and none, differ at the same place.

To clients ids are opaque. A router reads the cell, to ask the servers that hold the record.
"""

import re

from wfcore.time import EpochMs

FIRST_CELL = "k0"
CELL_PATTERN = r"[g-z][0-9a-z]"
CELL_AT = 14
"""So many digits of an id, behind its prefix, precede the cell: 11 of time, 3 of a number."""
COUNTS = 1 << 12
"""So many ids of one maker may bear the same millisecond."""
_FORM = rf"[0-9a-f]{{{CELL_AT}}}({CELL_PATTERN})[0-9a-f]{{12,18}}"
_ID = re.compile(rf"(?:[a-z]+_)?{_FORM}", re.ASCII)
_INSIDE = re.compile(rf"(?<![0-9A-Za-z]){_FORM}(?![0-9A-Za-z])", re.ASCII)


def timed_id(prefix: str, at: EpochMs, count: int, cell: str, chance: bytes) -> str:
    """A new id. *count*: less than `COUNTS`; *chance*: six bytes."""
    return f"{prefix}_{at:011x}{count:03x}{cell}{chance.hex()}"


def caused_id(prefix: str, digest: str, cause: str) -> str:
    """
    The id of the one record that *cause* leads to, which names the record it comes from: *digest*,
    hexadecimal digits, with the cell of that record. The setting does not matter, so
    that the same cause gives the same id for ever, also in another cell.
    """
    found = _INSIDE.search(cause)
    cell = found[1] if found else ""
    return f"{prefix}_{digest[:CELL_AT]}{cell}{digest[CELL_AT:]}"


def cell_of(id: str) -> str | None:
    """
    The cell in which *id* was made; of an API key, the id without `wfk_` is enough. None: it is
    from before there were cells, or not made by us.
    """
    found = _ID.fullmatch(id)
    return found[1] if found else None
