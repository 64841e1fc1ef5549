"""Durations as people write them."""

import re
from decimal import Decimal

from wfcore.time import DAY, HOUR, MINUTE, SECOND, DurationMs

MAX_DURATION = DurationMs(365 * DAY)

_UNITS = {"ms": 1, "s": SECOND, "m": MINUTE, "h": HOUR, "d": DAY}
WRITTEN = re.compile(r"([0-9]{1,15}(?:\.[0-9]{1,15})?)(ms|s|m|h|d)")


def parse_duration(written: str | int, *, zero: bool = False) -> DurationMs:
    """
    `500ms`, `30s`, `1.5m`, `24h`, `7d`; a bare integer is milliseconds. *zero*: 0 is allowed.

    Raises `ValueError` with a message for the author: another form, a negative duration, one over
    365 days, or a fraction of a millisecond.
    """
    ms = written if isinstance(written, int) else _in_ms(written)
    if ms != int(ms):
        raise ValueError("must be a whole number of milliseconds")
    if zero and ms == 0:
        return DurationMs(0)
    if not 0 < ms <= MAX_DURATION:
        raise ValueError("must be more than 0 and at most 365d")
    return DurationMs(int(ms))


def _in_ms(written: str) -> Decimal:
    match = WRITTEN.fullmatch(written)
    if match is None:
        raise ValueError(
            "must be a duration: a number with ms, s, m, h or d (like 30s), "
            "or a whole number of milliseconds"
        )
    return Decimal(match[1]) * _UNITS[match[2]]
