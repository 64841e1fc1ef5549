"""What pages say of times and numbers; `_` marks every text that is to be translated."""

from datetime import UTC, datetime
from gettext import NullTranslations

from wfcore.time import DAY, HOUR, MINUTE, SECOND, EpochMs

CATALOGUE = NullTranslations()
"""The one catalogue of pages: English, until there are others."""
_ = CATALOGUE.gettext
_LAST_INSTANT = 253_402_300_799_000


def iso(at: EpochMs) -> str:
    """An instant for machines: `2026-11-22T12:00:00Z`."""
    return f"{_datetime(at):%Y-%m-%dT%H:%M:%SZ}"


def utc(at: EpochMs) -> str:
    """An instant for people who want no other zone."""
    return f"{_datetime(at):%Y-%m-%d %H:%M:%S} UTC"


def _datetime(at: EpochMs) -> datetime:
    return datetime.fromtimestamp(min(at, _LAST_INSTANT) / 1_000, UTC)


def relative(at: EpochMs, now: EpochMs) -> str:
    """`in 23 h`, `35 s ago`: the largest unit that fits, rounded down. `app.js` says the same."""
    away = at - now
    length = _length(abs(away))
    return (_("in {length}") if away > 0 else _("{length} ago")).format(length=length)


def took(ms: int) -> str:
    """How long something was: `84 ms`, `1.2 s`, `3 min 5 s`, `2 h 4 min`, `3 d 2 h`."""
    if ms < SECOND:
        return _("{count} ms").format(count=ms)
    if ms < 10 * SECOND:
        return _("{count} s").format(count=f"{ms // 100 / 10:.1f}")
    if ms < MINUTE:
        return _length(ms)
    size = next(size for size in (DAY, HOUR, MINUTE) if ms >= size)
    rest = ms % size
    return f"{_length(ms)} {_length(rest)}" if rest >= _SMALLER[size] else _length(ms)


_SMALLER = {DAY: HOUR, HOUR: MINUTE, MINUTE: SECOND}

STATUSES = {
    "PENDING": _("Pending"),
    "RUNNING": _("Running"),
    "AWAITING_APPROVAL": _("Awaiting approval"),
    "INTERRUPTED": _("Interrupted"),
    "COMPLETED": _("Completed"),
    "FAILED": _("Failed"),
    "CANCELLED": _("Cancelled"),
    "SKIPPED": _("Skipped"),
    "REJECTED": _("Rejected"),
}
"""What pages call the status of an execution or a step."""
MARKS = {
    "PENDING": "○",
    "RUNNING": "●",
    "AWAITING_APPROVAL": "‖",
    "INTERRUPTED": "!",
    "COMPLETED": "✓",
    "FAILED": "✕",
    "CANCELLED": "–",
    "SKIPPED": "»",
    "REJECTED": "✕",
}
"""Beside the colour, a sign that says the same."""
SOURCES = {
    "open_api": _("API"),
    "webhook": _("Webhook"),
    "manual": _("Console"),
    "schedule": _("Schedule"),
    "delayed_completion": _("After another one"),
    "workflow": _("Another execution"),
}
"""What started an execution."""


def count(number: int, most: int) -> str:
    """A number, or what is certain of it: `1,000+`."""
    return f"{most:,}+" if number > most else f"{number:,}"


def short(id: str) -> str:
    """The end of an id, which is what people compare."""
    return f"…{id[-6:]}"


def _length(ms: int) -> str:
    for size, text in (
        (DAY, _("{count} d")),
        (HOUR, _("{count} h")),
        (MINUTE, _("{count} min")),
    ):
        if ms >= size:
            return text.format(count=ms // size)
    return _("{count} s").format(count=ms // SECOND)
