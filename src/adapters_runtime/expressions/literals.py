"""Values written in an expression."""

import re
from collections.abc import Mapping

from adapters_runtime.expressions.nodes import Literal
from adapters_runtime.expressions.scope import MAX_BITS, Faulty
from adapters_runtime.expressions.tokens import Token
from wfcore.model.json import Json

CONSTANTS: Mapping[str, Json] = {
    "true": True, "True": True, "false": False, "False": False,
    "none": None, "None": None, "null": None,
}  # fmt: skip

_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|.)", re.DOTALL)


def literal(token: Token) -> Literal:
    """The value of a number, a text or a constant. Raises `Faulty`."""
    if token.kind == "string":
        return Literal(_unescaped(token.text[1:-1]))
    if token.kind == "name":
        return Literal(CONSTANTS[token.text])
    return Literal(_number(token))


def _number(token: Token) -> int | float:
    if token.kind == "int" and len(token.text) < MAX_BITS // 4:
        return int(token.text)
    value = float(token.text)
    if token.kind == "int" or value == float("inf"):
        raise Faulty("the number is too large")
    return value


def _unescaped(text: str) -> str:
    found = _ESCAPE.sub(_character, text)
    # Two \u escapes may make one character, as in JSON; half a pair is none.
    try:
        return found.encode("utf-16", "surrogatepass").decode("utf-16")
    except UnicodeDecodeError:
        raise Faulty("a \\u escape is half a character") from None


def _character(match: re.Match[str]) -> str:
    code = match[1]
    if len(code) > 1:
        return chr(int(code[1:], 16))
    if code.isalnum() and code not in _ESCAPES:
        raise Faulty(f"unknown escape \\{code}")
    return _ESCAPES.get(code, code)
