"""
Numbers: the stored number is the number that people see. NU-1, NU-2.

An integer is a literal without point and exponent. An integer below -2**63 or above 2**63 - 1 would
be another number once it was stored, and so would a decimal beyond the doubles (`1e400`). Both are
refused wherever values are stored. Decisions and definitions also refuse a decimal that a double
would change: its value differs from that of the shortest text for the same double
(`1.00000000000000000001`, `1e-400`; `120.00` stays 120). Elsewhere the nearest double is stored.

`values.js` has the same rule and applies it before a page sends. Numbers there are the literals of
JSON, compared as values.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from functools import partial
from math import isfinite, isinf, isnan

from wfcore.errors import InvalidInput, Problem
from wfcore.model.json import MOST_BITS, Json, fits
from wfcore.rules.paths import below

TOO_LONG = f"the number does not fit {MOST_BITS} bits; write it as text"
TOO_LARGE = "the number is beyond those that JSON can hold; write it as text"

_DIGITS = 4_000
"""Python converts integers of more digits only on request."""
_BEYOND = 10**400
"""A stand-in for every number beyond the doubles."""
_DOUBTFUL = re.compile(rb"[0-9]{19}|[eE]\+?[0-9]{3}")
_DOUBTFUL_IF_EXACT = re.compile(rb"[0-9.]{17}|[0-9][eE]")


def _refuse_constant(name: str) -> Json:
    raise ValueError(f"{name} is no number in JSON")


strictly = partial(json.loads, parse_constant=_refuse_constant)
"""JSON as `json` reads it, without NaN and infinity."""


class Rounded(float):
    """The double nearest to a decimal that has another value."""


def kept(text: bytes, quick: Callable[[bytes], Json] = strictly, exact: bool = False) -> Json:
    """
    The value of JSON *text* with each of its numbers unchanged. *quick*: a reader for texts without
    a doubtful number, which are nearly all. *exact*: no decimal is rounded.

    Raises `ValueError` for a text that is not JSON, and `InvalidInput` with the path of a number.
    """
    if not _is_doubtful(text, exact):
        return quick(text)
    value = _as_written(text, exact)
    check_numbers("", value)
    return value


def as_written(text: bytes, quick: Callable[[bytes], Json] = strictly) -> Json:
    """
    As `kept`, except that a number that cannot be stored stays in the value, for `number_problems`
    to find.
    """
    return _as_written(text, False) if _is_doubtful(text, False) else quick(text)


def _is_doubtful(text: bytes, exact: bool) -> bool:
    """Whether *text* may have a number that a quick reader changes, such as one of many digits."""
    pattern = _DOUBTFUL_IF_EXACT if exact else _DOUBTFUL
    if pattern.search(text) is None:
        return False
    return pattern.search(outside_of_strings(text)) is not None


def _as_written(text: bytes, exact: bool) -> Json:
    parse_float = decimal_of if exact else _nearest
    try:
        value: Json = strictly(text.decode(), parse_int=integer_of, parse_float=parse_float)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    json.dumps(value, ensure_ascii=False).encode()  # half a character is no text
    return value


def outside_of_strings(body: bytes) -> bytes:
    """
    The text of valid JSON without its strings: without escapes, every second part between quotes.
    """
    unescaped = body.replace(b"\\\\", b"").replace(b'\\"', b"")
    return b"".join(unescaped.split(b'"')[::2])


def integer_of(literal: str) -> int:
    """The integer of *literal*; for a very long one, a stand-in that does not fit."""
    if len(literal) <= _DIGITS:
        return int(literal)
    return -_BEYOND if literal.startswith("-") else _BEYOND


def _nearest(literal: str) -> float | int:
    """The nearest double, or an integer beyond all doubles if there is no such double."""
    value = float(literal)
    if isfinite(value):
        return value
    return -_BEYOND if value < 0 else _BEYOND


def decimal_of(literal: str) -> float | int:
    """The double nearest to *literal*; `Rounded` if the double is another number. NU-2."""
    value = _nearest(literal)
    return Rounded(value) if isinstance(value, float) and _differs(literal, value) else value


def _differs(literal: str, value: float) -> bool:
    if not re.split("[eE]", literal)[0].strip("-+0."):
        return False
    return value == 0 or Decimal(literal) != Decimal(repr(value))


def number_problem(value: object) -> str | None:
    """
    The reason why storing would change the number *value*; None if storing keeps *value*, or if
    *value* is no number.
    """
    match value:
        case bool():
            return None
        case int():
            if abs(value) >= _BEYOND:
                return TOO_LARGE
            return None if fits(value) else TOO_LONG
        case float():
            if isinstance(value, Rounded):
                return f"the number would become {float(value)!r}; write that, or text"
            if isnan(value):
                return "is no number that JSON can hold"
            return TOO_LARGE if isinf(value) else None
    return None


def number_problems(value: Json, path: str = "") -> Iterator[Problem]:
    """
    The problems of the numbers in *value* that storing would change. *path*: the path of *value*.
    """
    waiting: list[tuple[str, Json]] = [(path, value)]
    while waiting:
        where, part = waiting.pop()
        if isinstance(part, Mapping):
            waiting += [(below(where, key), one) for key, one in reversed([*part.items()])]
        elif isinstance(part, list | tuple):
            waiting += [(below(where, at), one) for at, one in reversed([*enumerate(part)])]
        elif (problem := number_problem(part)) is not None:
            yield Problem(where, problem)


def check_numbers(field: str, value: Json) -> None:
    """Raises `InvalidInput` for the first number in *value* that storing would change."""
    for problem in number_problems(value, field):
        raise InvalidInput(problem.path, problem.message)


def cost_text(cost: Decimal) -> str:
    """A cost in the form of the API: plain digits, no exponent, no trailing zeros."""
    text = f"{cost:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
