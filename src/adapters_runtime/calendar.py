"""Cron expressions by cronsim, time zones by zoneinfo. Satisfies `wfcore.ports.system.Calendar`."""

from collections.abc import Mapping
from datetime import datetime, tzinfo
from difflib import get_close_matches
from functools import lru_cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

from cronsim import CronSim, CronSimError

FIELDS = ("minute", "hour", "day of month", "month", "day of week")
_ANY_DAY = datetime(2000, 1, 1)


class CronCalendar:
    """The calendar that everybody knows: five fields of cron, names of the IANA database."""

    def problems(self, cron: str, timezone: str) -> Mapping[str, str]:
        found: dict[str, str] = {}
        if problem := _cron_problem(cron):
            found["cron"] = problem
        try:
            self.zone(timezone)
        except ValueError:
            close = get_close_matches(timezone, available_timezones(), n=1)
            meant = f"; did you mean {close[0]}?" if close else ""
            found["timezone"] = f"{timezone!r} is no time zone like Europe/Berlin{meant}"
        return found

    def next_local(self, cron: str, after: datetime) -> datetime | None:
        # Without a zone cronsim leaves daylight saving alone: that rule is the core's.
        return next(CronSim(cron, after), None)

    @lru_cache(maxsize=100)  # noqa: B019 - of one object that lives as long as its process
    def zone(self, name: str) -> tzinfo:
        try:
            return ZoneInfo(name)
        except (ZoneInfoNotFoundError, OSError) as error:
            raise ValueError(name) from error


def _cron_problem(cron: str) -> str | None:
    if len(cron.split()) != len(FIELDS):
        return f"must have five fields: {', '.join(FIELDS)}"
    try:
        if next(CronSim(cron, _ANY_DAY), None) is None:
            return "names a time that never comes"
    except CronSimError as error:
        return f"cannot be read: {error}"
    return None
