"""Time zones by name, from the IANA database of this machine or of the package `tzdata`."""

import re
from datetime import tzinfo
from functools import lru_cache

_NO_ZONES = re.compile(r"localtime|posixrules|Factory|(?:right|posix)/.*")
"""Names in the database that are no zones, the machine's own zone, or zones with leap seconds."""


@lru_cache(maxsize=100)
def zone(name: str) -> tzinfo:
    """The zone *name*. Raises `ValueError`."""
    from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, OSError) as error:
        raise ValueError(name) from error


def zone_problem(name: str) -> str | None:
    """Why *name* cannot be written as the name of a zone, or None if it can."""
    try:
        if not _NO_ZONES.fullmatch(name):
            zone(name)
            return None
    except ValueError:
        pass
    from difflib import get_close_matches
    from zoneinfo import available_timezones

    known = (one for one in available_timezones() if not _NO_ZONES.fullmatch(one))
    close = get_close_matches(name, known, n=1)
    meant = f"; did you mean {close[0]}?" if close else ""
    return f"{name!r} is no time zone like Europe/Berlin{meant}"
