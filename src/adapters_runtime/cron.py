"""Cron expressions and time zones: the next time that an expression names, by `cronsim`."""

import re
from collections.abc import Mapping
from datetime import datetime, tzinfo

from adapters_runtime.zones import zone, zone_problem

FIELDS: Mapping[str, tuple[int, int]] = {
    "minute": (0, 59),
    "hour": (0, 23),
    "day of month": (1, 31),
    "month": (1, 12),
    "day of week": (0, 6),
}
"""The fields of a cron line, each with its least and greatest value."""
_STEPPED = re.compile(r"(?:\*|(?P<low>[0-9]+)(?:-(?P<high>[0-9]+))?)/(?P<step>[0-9]+)")
_ANY_DAY = datetime(2000, 1, 1)


class CronCalendar:
    """The calendar with cron lines of five fields and the zones of the IANA database."""

    def problems(self, cron: str, timezone: str) -> Mapping[str, str]:
        found: dict[str, str] = {}
        if problem := _cron_problem(cron):
            found["cron"] = problem
        if problem := zone_problem(timezone):
            found["timezone"] = problem
        return found

    def next_local(self, cron: str, after: datetime) -> datetime | None:
        from cronsim import CronSim  # of the extra `server`

        # Without a zone: the core has the rule for daylight saving, not cronsim.
        return next(CronSim(cron, after), None)

    def zone(self, name: str) -> tzinfo:
        return zone(name)


def _cron_problem(cron: str) -> str | None:
    from cronsim import CronSim, CronSimError

    if len(cron.split()) != len(FIELDS):
        return f"must have five fields: {', '.join(FIELDS)}"
    try:
        if next(CronSim(cron, _ANY_DAY), None) is None:
            return "names a time that never comes"
    except CronSimError as error:
        return f"cannot be read: {error}"
    return next(filter(None, map(_step_problem, FIELDS, cron.split())), None)


def _step_problem(field: str, text: str) -> str | None:
    """
    The message on a step that leaves only the first value, or None: `*/90` of minutes would mean
    every hour.
    """
    for part in text.split(","):
        found = _STEPPED.fullmatch(part)
        if found is None:
            continue
        least, most = FIELDS[field]
        low, high = int(found["low"] or least), int(found["high"] or most)
        if low < high and int(found["step"]) > high - low:
            return f"{part} as {field} means {low} alone: the values end at {high}; write {low}"
    return None
