"""A schedule in the reader's words: `Mondays 07:00, Berlin`."""

from collections.abc import Mapping

from adapters_http.console.language import N_, TranslatedTexts, _
from wfcore.model.trigger import Schedule

_DAYS = TranslatedTexts(
    {
        "0": N_("Sundays"),
        "1": N_("Mondays"),
        "2": N_("Tuesdays"),
        "3": N_("Wednesdays"),
        "4": N_("Thursdays"),
        "5": N_("Fridays"),
        "6": N_("Saturdays"),
        "7": N_("Sundays"),
        "1-5": N_("Monday to Friday"),
    }
)
_NAMES: Mapping[str, str] = {
    name: str(number)
    for number, name in enumerate(("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"))
}
_NICKNAMES: Mapping[str, str] = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
}


def in_words(spec: Schedule) -> str:
    """
    The local times of *spec* and the city of its zone; for times that no short sentence says, the
    cron expression itself.
    """
    cron = _NICKNAMES.get(spec.cron.strip(), spec.cron)
    times = _times(cron.split()) or spec.cron
    city = spec.timezone.rpartition("/")[2].replace("_", " ")
    return f"{times}, {city}"


def _times(fields: list[str]) -> str | None:
    if len(fields) != 5 or fields[3] != "*":
        return None
    minute, hour, day, _month, weekday = fields
    if hour == day == weekday == "*":
        return _hourly(minute)
    if not _number(minute, 59):
        return None
    if (day, weekday) == ("*", "*") and (every := _step(hour)):
        return _("every {n} hours, at minute {minute}").format(n=every, minute=int(minute))
    if not _number(hour, 23):
        return None
    days = _days(day, weekday)
    return days and f"{days} {int(hour):02}:{int(minute):02}"


def _hourly(minute: str) -> str | None:
    if every := _step(minute):
        return _("every {n} minutes").format(n=every)
    if minute == "*":
        return _("every minute")
    if not _number(minute, 59):
        return None
    if int(minute) == 0:
        return _("hourly")
    return _("hourly at minute {minute}").format(minute=int(minute))


def _days(day: str, weekday: str) -> str | None:
    if weekday == "*":
        if day == "*":
            return _("daily")
        return _("on day {day} of each month").format(day=int(day)) if _number(day, 31) else None
    if day != "*":
        return None
    if weekday.upper() in ("MON-FRI", "1-5"):
        return _DAYS["1-5"]
    named = [_NAMES.get(one.upper(), one) for one in weekday.split(",")]
    return ", ".join(_DAYS[one] for one in named) if all(one in _DAYS for one in named) else None


def _number(text: str, most: int) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 2 and int(text) <= most


def _step(text: str) -> int | None:
    """The n of `*/n`."""
    head, slash, n = text.partition("/")
    return int(n) if head == "*" and slash and _number(n, 59) and int(n) > 1 else None
