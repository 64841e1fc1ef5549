"""The state of an evaluation, with its data and budget, and the errors of expressions."""

import json
from collections.abc import Collection, Mapping, Sequence

from attrs import define, evolve

from wfcore.model.json import MOST_BITS, Json, fits
from wfcore.rules.suggestions import listed, nearest

BUDGET = 4 * 1_048_576
"""The most characters and list items that one evaluation may read and make."""

TOO_LONG = f"the number does not fit {MOST_BITS} bits; keep it as text, or use float"


class Faulty(Exception):
    """Raised when the text of an expression is wrong; the message says why."""


class EvaluationFailed(Exception):
    """
    Raised when the data do not fit an expression whose text is correct; the message says where.
    """


class Missing(EvaluationFailed):
    """Raised for a name that is not in the data. *at* is the node that needs the name."""

    def __init__(self, message: str, at: object) -> None:
        super().__init__(message)
        self.at = at


@define
class Evaluation:
    """
    One evaluation: the data by name, and the budget that is left. `missing_is_null`: see
    `Templates.render`.
    """

    names: Mapping[str, Json]
    left: int = BUDGET
    missing_is_null: bool = False

    def spend(self, amount: int) -> None:
        """Take *amount* from the budget. Raises `EvaluationFailed` if the budget is too small."""
        self.left -= amount
        if self.left < 0:
            raise EvaluationFailed("the template makes or reads too much data")

    def weigh(self, value: Json) -> Json:
        """Take the length of *value* from the budget, and return *value*."""
        self.spend(len(value) + 1 if isinstance(value, str | list | tuple | dict) else 1)
        return value

    def read(self, value: Json) -> None:
        """Take the length of *value*, and of all values in it, from the budget."""
        waiting = [value]
        while waiting:
            part = self.weigh(waiting.pop())
            if isinstance(part, Mapping):
                self.spend(sum(map(len, part)))
                waiting.extend(part.values())
            elif isinstance(part, list | tuple):
                waiting.extend(part)

    def text(self, value: Json) -> str:
        """
        The form of *value* inside text. Raises `EvaluationFailed` before the text exceeds the
        budget.
        """
        if not isinstance(value, str):
            evolve(self).read(value)  # on a copy: the budget is charged for the JSON, made later
        return as_text(value)


class Markdown(str):
    """A text whose Markdown is not escaped, because the template's author wants that."""

    __slots__ = ()


def as_text(value: Json) -> str:
    """The form of *value* inside text: texts unchanged, all other values as JSON."""
    if isinstance(value, str):
        return value
    try:
        return json.dumps(
            value, ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=_plain
        )
    except (ValueError, TypeError, RecursionError) as error:
        raise EvaluationFailed(f"{kind(value)} cannot be written as JSON") from error


def _plain(value: object) -> object:
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Sequence):
        return list(value)
    raise TypeError


def kind(value: Json) -> str:
    """The JSON type of *value*, for messages, which never show the value."""
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
    """*value*, if it is a number that can be stored unchanged. Raises `EvaluationFailed`."""
    if isinstance(value, int):
        if fits(value):
            return value
        raise EvaluationFailed(TOO_LONG)
    if isinstance(value, float) and value - value == 0:
        return value
    raise EvaluationFailed("the result is no number that JSON can hold")


def suggestion(word: str, known: Collection[str]) -> str:
    """
    The end of a message about an unknown *word*: the most similar known word, or all of them.
    """
    if close := nearest(word, known):
        return f"did you mean {close}?"
    return f"known: {listed(sorted(known))}" if known else "none is known here"
