"""
Values in the reader's notation: instants, durations, numbers, sizes and names; and the reading of
such values.
"""

import re
from collections.abc import Callable
from datetime import UTC, datetime
from decimal import ROUND_DOWN, Decimal

from adapters_http.console.language import _, has_comma, orders, signs
from adapters_http.console.words import MONTHS, WEEKDAYS
from adapters_http.json_text import dump_json
from wfcore.errors import InvalidInput
from wfcore.model.json import Json
from wfcore.rules.approval.machine import BY_RULE
from wfcore.rules.approval.typed import cell_text
from wfcore.rules.decimals import Doubtful, decimal_text
from wfcore.rules.visible import visible
from wfcore.rules.written_dates import date_text
from wfcore.time import DAY, HOUR, MINUTE, SECOND, EpochMs


def cell(value: Json) -> str:
    """A value in a table; for fields of a form see `field_text`."""
    if isinstance(value, bool):
        return _("yes") if value else _("no")
    text = cell_text(value)
    if isinstance(value, int | float):
        return _pointed(text.removesuffix(".0"))
    return visible(text)


def person(by: str | None) -> str | None:
    """The author of a decision, for people. AP-35."""
    return _("a rule") if by == BY_RULE.by else by


_LAST_INSTANT = 253_402_300_799_000


def iso(at: EpochMs) -> str:
    """An instant for machines: `2026-11-22T12:00:00Z`."""
    return f"{_datetime(at):%Y-%m-%dT%H:%M:%SZ}"


def utc(at: EpochMs) -> str:
    """An instant in UTC for people."""
    return f"{_datetime(at):%Y-%m-%d %H:%M:%S} UTC"


def _datetime(at: EpochMs) -> datetime:
    return datetime.fromtimestamp(min(at, _LAST_INSTANT) / 1_000, UTC)


def relative(at: EpochMs, now: EpochMs) -> str:
    """
    `in 23 h`, `35 s ago`: an instant in the largest unit that fits, rounded down. `app.js` has the
    same rule.
    """
    away = at - now
    length = _length(abs(away))
    return (_("in {length}") if away > 0 else _("{length} ago")).format(length=length)


def day_or_time(at: EpochMs, now: EpochMs) -> str:
    """`06:15` today, `Sat 09:12` within six days, otherwise `23 Nov`, in UTC. Like `when.js`."""
    then = _datetime(at)
    if abs(at - now) > _SOON_DAYS * DAY:
        return f"{then.day} {MONTHS[str(then.month)]}"
    day = "" if then.date() == _datetime(now).date() else f"{WEEKDAYS[str(then.weekday())]} "
    return f"{day}{then:%H:%M}"


_SOON_DAYS = 6


def initials(email: str) -> str:
    """The initials of a person by the e-mail: `ML` for mara.lindner@example.org."""
    words = [word for word in re.split(r"[^\w]+|_", email.partition("@")[0]) if word]
    return "".join(word[0] for word in words[:2]).upper() or "?"


def took(ms: int) -> str:
    """A duration: `84 ms`, `1.2 s`, `3 min 5 s`, `2 h 4 min`, `3 d 2 h`."""
    if ms < SECOND:
        return _("{count} ms").format(count=ms)
    if ms < 10 * SECOND:
        return _("{count} s").format(count=number(Decimal(ms // 100) / 10))
    if ms < MINUTE:
        return _length(ms)
    size = next(size for size in (DAY, HOUR, MINUTE) if ms >= size)
    rest = ms % size
    return f"{_length(ms)} {_length(rest)}" if rest >= _SMALLER[size] else _length(ms)


_SMALLER = {DAY: HOUR, HOUR: MINUTE, MINUTE: SECOND}


def since(ms: int) -> str:
    """A time since the beginning, in a log: `02:13.311` in minutes, `1:02:13.311` with hours."""
    seconds, rest = divmod(max(ms, 0), SECOND)
    minutes, seconds = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    return (f"{hours}:" if hours else "") + f"{minutes:02}:{seconds:02}.{rest:03}"


def count(number: int, most: int) -> str:
    """A number, or `1,000+` if it is over *most*."""
    return f"{grouped(most)}+" if number > most else grouped(number)


def number(value: Decimal) -> str:
    """A decimal with grouped digits and the reader's decimal sign."""
    return grouped(value, "f")


def amount(value: Decimal) -> str:
    """A total, like `number`, without trailing zeros."""
    text = format(value, "f")
    return number(Decimal(text.rstrip("0").rstrip(".") if "." in text else text))


def grouped(value: int | Decimal, form: str = "") -> str:
    """A number with grouped digits."""
    return _pointed(format(value, f",{form}"))


def _pointed(text: str) -> str:
    """The text of a number with the reader's signs for decimals and groups."""
    return text.translate(_SWAPPED) if has_comma() else text


def field_text(value: Json) -> str:
    """A value in a field: a number has the reader's decimal sign."""
    text = cell_text(value)
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return text.replace(".", signs()[0], 1) if is_number else text


def read_decimal(typed: str) -> str:
    """
    The number that the reader typed, as JSON writes it; any other text is returned unchanged.

    Raises `InvalidInput` for a text that may be two numbers.
    """
    return _only(typed, lambda: decimal_text(typed, signs()))


def read_date(typed: str) -> str:
    """
    The date that the reader typed, as YYYY-MM-DD; any other text is treated as by `read_decimal`.
    """
    return _only(typed, lambda: date_text(typed, orders()))


def _only(typed: str, read: Callable[[], str | None]) -> str:
    """
    The result of *read*, or *typed* if *read* returns None. Raises `InvalidInput` for two possible
    results.
    """
    try:
        text = read()
    except Doubtful as doubt:
        fix = _("is {one} or {other}? Write {one} or {exact}")
        fix = fix.format(one=doubt.one, other=doubt.other, exact=doubt.exact)
        raise InvalidInput("", fix) from None
    return typed if text is None else text


_SWAPPED = str.maketrans(",.", ".,")


def usd(value: str) -> str:
    """An amount of USD, to the cent; a smaller amount as `less than 0.01 USD`."""
    amount = Decimal(value)
    if 0 < amount < _CENT:
        return _("less than {amount} USD").format(amount=number(_CENT))
    return f"{number(amount.quantize(_CENT))} USD"


_CENT = Decimal("0.01")


def size(count: int) -> str:
    """The size of a file: `999 B`, `1.5 kB`, `3.2 MB`, rounded down."""
    if count < 1_000:
        return f"{count} B"
    power = min((len(str(count)) - 1) // 3, len(_UNITS))
    amount = (Decimal(count) / 1_000**power).quantize(Decimal("0.1"), ROUND_DOWN)
    return f"{number(amount)} {_UNITS[power - 1]}"


_UNITS = ("kB", "MB", "GB", "TB")


def short(id: str) -> str:
    """The end of an id, which people compare."""
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


def as_text(value: object) -> str:
    """A value as a person would type it: text unchanged, any other value as JSON."""
    return value if isinstance(value, str) else dump_json(value).decode("utf-8", "replace")
