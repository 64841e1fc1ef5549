"""The tokens of the templates in a text, and the values of literals."""

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from adapters_runtime.expressions.scope import TOO_LONG, Faulty
from wfcore.model.json import Json, fits
from wfcore.rules.numbers import decimal_of, number_problem

MAX_TOKENS = 400
"""The most tokens of an expression, so that its evaluation cannot run out of stack."""

_MOST_DIGITS = 1_000
"""The most digits of an integer. Python refuses to read an integer of several thousand digits."""

LEAST = str(2**63)
"""The digits of the least integer. Without the sign this number does not fit."""

_TOKEN = re.compile(
    r"""(?P<float>[0-9]+(?:\.[0-9]+(?:[eE][-+]?[0-9]+)?|[eE][-+]?[0-9]+))
      | (?P<int>[0-9]+)
      | (?P<name>[A-Za-z_][A-Za-z0-9_]*)
      | (?P<string>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')
      | (?P<op>\*\*|//|==|!=|<=|>=|[-+*/%~<>=|.,:()\[\]{}])""",
    re.VERBOSE | re.DOTALL,
)
_SPACE = re.compile(r"\s*")
_OPENING = re.compile(r"\{[{%#]")


class Token(NamedTuple):
    """A token of an expression. *kind* is float, int, name, string, op or end."""

    kind: str
    text: str


def split(text: str) -> Iterator[str | list[Token]]:
    """
    The plain pieces of *text*, and the tokens of the templates between them, in order.

    Raises `Faulty` for a statement, a comment, or a template that does not end.
    """
    at = 0
    while opening := _OPENING.search(text, at):
        if opening[0] != "{{":
            what = "statements" if opening[0] == "{%" else "comments"
            raise Faulty(f"{what} ({opening[0]}) are not supported; only {{{{ expressions }}}} are")
        if opening.start() > at:
            yield text[at : opening.start()]
        tokens, at = _tokens(text, opening.end())
        yield tokens
    if at < len(text):
        yield text[at:]


def _tokens(text: str, at: int) -> tuple[list[Token], int]:
    if text.startswith("-", at):
        raise Faulty("whitespace control ({{-) is not supported; put a space after {{")
    found: list[Token] = []
    open_brackets = 0
    while True:
        at = _end(_SPACE.match(text, at))
        if not open_brackets and text.startswith("}}", at):
            return [*found, Token("end", "}}")], at + 2
        match = _TOKEN.match(text, at)
        if match is None:
            raise Faulty(_unreadable(text, at))
        found.append(Token(str(match.lastgroup), match[0]))
        open_brackets += (match[0] in "([{") - (match[0] in ")]}")
        if len(found) > MAX_TOKENS:
            raise Faulty(f"the expression is too long: more than {MAX_TOKENS} words")
        at = match.end()


def _end(match: re.Match[str] | None) -> int:
    return match.end() if match else 0


def _unreadable(text: str, at: int) -> str:
    if at >= len(text):
        return "a template is opened with {{ and never closed with }}"
    if text[at] in "\"'":
        return f"a text that begins with {text[at]} does not end"
    return f"unexpected character {text[at]!r}"


CONSTANTS: Mapping[str, Json] = {
    "true": True, "True": True, "false": False, "False": False,
    "none": None, "None": None, "null": None,
}  # fmt: skip

_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|.)", re.DOTALL)


def value_of(token: Token) -> Json:
    """The value of a number, a text or a constant. Raises `Faulty`."""
    if token.kind == "string":
        return _unescaped(token.text[1:-1])
    return CONSTANTS[token.text] if token.kind == "name" else _number(token)


def _number(token: Token) -> int | float:
    if token.kind == "int":
        if len(token.text) > _MOST_DIGITS or not fits(whole := int(token.text)):
            raise Faulty(TOO_LONG)
        return whole
    value = decimal_of(token.text)
    if problem := number_problem(value):
        raise Faulty(problem)
    return value


def _unescaped(text: str) -> str:
    found = _ESCAPE.sub(_character, text)
    # Two \u escapes may make one character, as in JSON. Half a pair is an error.
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
