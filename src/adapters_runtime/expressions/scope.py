"""The state of an evaluation: the data, a budget, and the two ways to fail."""

import json
from collections.abc import Collection, Mapping, Sequence
from difflib import get_close_matches

from attrs import define, evolve

from wfcore.model.json import MOST_BITS, Json, fits

BUDGET = 4 * 1_048_576
"""Characters and list items that one evaluation may read and make."""

TOO_LONG = f"the number does not fit {MOST_BITS} bits; keep it as text, or use float"


class Faulty(Exception):
    """The text of an expression is wrong; the message says how."""


class Failed(Exception):
    """The expression is correct but the data do not match it; the message says where."""


class Missing(Failed):
    """A name is not in the data. *at* is the node that asked for it."""

    def __init__(self, message: str, at: object) -> None:
        super().__init__(message)
        self.at = at


@define
class Scope:
    """One evaluation: the names it sees and what is left of its budget."""

    names: Mapping[str, Json]
    left: int = BUDGET

    def spend(self, amount: int) -> None:
        """Take *amount* from the budget. Raises `Failed` when it is used up."""
        self.left -= amount
        if self.left < 0:
            raise Failed("the template makes or reads too much data")

    def weigh(self, value: Json) -> Json:
        """*value*, with its length taken from the budget."""
        self.spend(len(value) + 1 if isinstance(value, str | list | tuple | dict) else 1)
        return value

    def read(self, value: Json) -> None:
        """Take all of *value* from the budget, with what lies in it."""
        waiting = [value]
        while waiting:
            part = self.weigh(waiting.pop())
            if isinstance(part, Mapping):
                self.spend(sum(map(len, part)))
                waiting.extend(part.values())
            elif isinstance(part, list | tuple):
                waiting.extend(part)

    def text(self, value: Json) -> str:
        """*value* inside text. Raises `Failed` before it writes more than the budget has left."""
        if not isinstance(value, str):
            evolve(self).read(value)  # of a copy: its JSON, which is longer, is what counts
        return as_text(value)


class Markdown(str):
    """A text whose Markdown the author of a template wants to have its effect."""

    __slots__ = ()


def as_text(value: Json) -> str:
    """A value inside text: texts unchanged, everything else as JSON."""
    if isinstance(value, str):
        return value
    try:
        return json.dumps(
            value, ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=_plain
        )
    except (ValueError, TypeError, RecursionError) as error:
        raise Failed(f"{kind(value)} cannot be written as JSON") from error


def _plain(value: object) -> object:
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Sequence):
        return list(value)
    raise TypeError


def kind(value: Json) -> str:
    """The JSON type of a value, for messages, which never show the value."""
    match value:
        case None:
            return "null"
        case bool():
            return "a boolean"
        case int() | float():
            return "a number"
        case str():
            return "text"
        case Mapping():
            return "an object"
        case _:
            return "a list"


def is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def number(value: object) -> int | float:
    """*value* if it is a number that can be stored as it is. Raises `Failed`."""
    if isinstance(value, int):
        if fits(value):
            return value
        raise Failed(TOO_LONG)
    if isinstance(value, float) and value - value == 0:
        return value
    raise Failed("the result is no number that JSON can hold")


def suggestion(word: str, known: Collection[str]) -> str:
    """
    The end of a message about an unknown *word*: what may have been meant, otherwise what exists.
    """
    close = get_close_matches(word, known, n=1)
    if close:
        return f"did you mean {close[0]}?"
    return f"known: {', '.join(sorted(known))}" if known else "none is known here"
