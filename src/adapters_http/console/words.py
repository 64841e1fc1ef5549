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


def _length(ms: int) -> str:
    for size, text in (
        (DAY, _("{count} d")),
        (HOUR, _("{count} h")),
        (MINUTE, _("{count} min")),
    ):
        if ms >= size:
            return text.format(count=ms // size)
    return _("{count} s").format(count=ms // SECOND)
