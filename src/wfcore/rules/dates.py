"""
Dates and times as text for people: the formats of the filter `date`. TM-1.

The directives are a fixed set, independent of the machine and its language: names of months and
days are English.
"""

import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta, tzinfo

MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September",
    "October", "November", "December",
)  # fmt: skip
DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")

DIRECTIVES: Mapping[str, Callable[[datetime], str]] = {
    "Y": lambda at: f"{at.year:04}",
    "m": lambda at: f"{at.month:02}",
    "B": lambda at: MONTHS[at.month - 1],
    "b": lambda at: MONTHS[at.month - 1][:3],
    "d": lambda at: f"{at.day:02}",
    "e": lambda at: f"{at.day}",
    "A": lambda at: DAYS[at.weekday()],
    "a": lambda at: DAYS[at.weekday()][:3],
    "G": lambda at: f"{at.isocalendar().year:04}",
    "V": lambda at: f"{at.isocalendar().week:02}",
    "H": lambda at: f"{at.hour:02}",
    "I": lambda at: f"{at.hour % 12 or 12:02}",
    "p": lambda at: "AM" if at.hour < 12 else "PM",
    "M": lambda at: f"{at.minute:02}",
    "S": lambda at: f"{at.second:02}",
    "z": lambda at: at.strftime("%z")[:5],
    "%": lambda at: "%",
}
"""The text for each letter after `%`, as in C's strftime; `e` has no leading blank."""

_DIRECTIVE = re.compile(r"%(.?)", re.DOTALL)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def format_problem(text: str) -> str | None:
    """The mistake in a format, in words; None for a valid one."""
    for letter in _DIRECTIVE.findall(text):
        if letter not in DIRECTIVES:
            known = " ".join(f"%{one}" for one in DIRECTIVES)
            return f"date knows no %{letter} in a format; it knows {known}"
    return None


def written(at: datetime, text: str) -> str:
    """*at* in a valid format."""
    return _DIRECTIVE.sub(lambda found: DIRECTIVES[found[1]](at), text)


def moment_of(value: int | str, zone: tzinfo) -> datetime:
    """
    The moment of *value*, in *zone*: milliseconds since 1970, or ISO 8601, where a text without an
    offset is a time of *zone*. Raises `ValueError`.
    """
    try:
        if isinstance(value, int):
            return (_EPOCH + timedelta(milliseconds=value)).astimezone(zone)
        at = datetime.fromisoformat(value)
        return at.replace(tzinfo=zone) if at.tzinfo is None else at.astimezone(zone)
    except OverflowError as error:
        raise ValueError(value) from error
