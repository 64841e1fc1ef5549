"""
Canonical JSON and its hash.

Canonical JSON has sorted keys, no blanks, and escapes for all characters beyond ASCII, so that
every JSON library can write it. What people sign is written by RFC 8785 instead, which other
languages have libraries for.
"""

import hashlib
import json
import re
from collections.abc import Iterator
from decimal import Decimal

from wfcore.model.json import Json


def canonical(value: Json) -> str:
    """The canonical JSON text of *value*."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def digest(text: str) -> str:
    """The SHA-256 of *text* in hexadecimal."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


_OTHERWISE = re.compile(r"(?:^|[\[:,])-?\d+[.e]|[\ud800-\udfff\U00010000-\U0010ffff]")
"""Texts that may hold a decimal, or a key that UTF-16 sorts otherwise. Some hold neither."""


def rfc8785(value: Json) -> str:
    """
    The text of *value* by RFC 8785, except that an integer is written by its decimal digits,
    however large. SR-1.
    """
    text = _plain(value)
    return "".join(_parts(value)) if _OTHERWISE.search(text) else text


def _plain(value: Json) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def _parts(value: Json) -> Iterator[str]:
    match value:
        case dict():
            yield "{"
            for at, key in enumerate(sorted(value, key=_utf16)):
                yield f"{',' if at else ''}{_plain(key)}:"
                yield from _parts(value[key])
            yield "}"
        case list() | tuple():
            yield "["
            for at, item in enumerate(value):
                yield "," if at else ""
                yield from _parts(item)
            yield "]"
        case float():
            yield _decimal(value)
        case _:
            yield _plain(value)


def _utf16(key: str) -> bytes:
    return key.encode("utf-16-be", "surrogatepass")


def _decimal(value: float) -> str:
    """A decimal as JavaScript writes it: the shortest digits that give the same value."""
    sign, digits, exponent = Decimal(repr(value)).normalize().as_tuple()
    assert isinstance(exponent, int)  # NaN and infinity are no JSON
    text, minus = "".join(map(str, digits)), "-" if sign and value else ""
    point = len(text) + exponent
    if len(text) <= point <= 21:
        return minus + text + "0" * (point - len(text))
    if 0 < point <= 21:
        return f"{minus}{text[:point]}.{text[point:]}"
    if -6 < point <= 0:
        return f"{minus}0.{'0' * -point}{text}"
    fraction = f".{text[1:]}" if len(text) > 1 else ""
    return f"{minus}{text[0]}{fraction}e{point - 1:+d}"
