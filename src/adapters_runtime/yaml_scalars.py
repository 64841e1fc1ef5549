"""Plain scalars by the YAML 1.2 core schema: `no`, `on` and `1:30` are text, `0o17` is 15."""

import re

from wfcore.model.json import Json

_CONSTANTS: dict[str, Json] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_INTEGER = re.compile(r"[-+]?[0-9]+")
_OCTAL = re.compile(r"0o[0-7]+")
_HEXADECIMAL = re.compile(r"0x[0-9a-fA-F]+")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_NO_JSON = re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)")
_LONGEST_NUMBER = 1_000


def plain_scalar(text: str) -> Json:
    """
    What an unquoted *text* means.

    Raises `ValueError`, fit for the author's eyes, for a number that JSON or 64 bits cannot hold.
    """
    if text in _CONSTANTS:
        return _CONSTANTS[text]
    if _NO_JSON.fullmatch(text):
        raise ValueError(f"{text} is no number in JSON; quote it if it is text")
    for form, base in ((_INTEGER, 10), (_OCTAL, 8), (_HEXADECIMAL, 16)):
        if form.fullmatch(text):
            return _integer(text, base)
    return _float(text) if _FLOAT.fullmatch(text) else text


def _integer(text: str, base: int) -> int:
    digits = text if base == 10 else text[2:]
    value = int(digits, base) if len(digits) <= _LONGEST_NUMBER else 2**64
    if not -(2**63) <= value < 2**64:
        raise ValueError("the number does not fit 64 bits; quote it if it is text")
    return value


def _float(text: str) -> float:
    value = float(text)
    if value - value != 0:
        raise ValueError("the number is too large; quote it if it is text")
    return value
