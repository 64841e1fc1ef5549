"""The values of a program that are JSON, and what is wrong with the others."""

from collections.abc import Iterator, Mapping

from wfcore.errors import Problem
from wfcore.rules.limits import JSON_DEPTH, KIB, SOURCE_BYTES
from wfcore.rules.numbers import number_problem
from wfcore.rules.paths import below
from wfcore.rules.visible import NO_HALVES, is_text


class Repeated:
    """The value of a key that a JSON object has twice."""


def too_large(most: int) -> str:
    """The problem of a text that has more than *most* characters."""
    return f"is over {most // KIB} KiB"


def json_problems(
    document: object, whole: str = "definition", most: int = SOURCE_BYTES
) -> Iterator[Problem]:
    """
    The parts of *document*, any Python value, that are not JSON, or exceed *most* characters.
    *whole*: the name of the document itself.
    """
    left = most
    waiting: list[tuple[str, object, int]] = [("", document, 1)]
    while waiting:
        path, value, depth = waiting.pop()
        left -= len(value) if isinstance(value, str) else 1
        if left < 0:
            yield Problem(whole, too_large(most))
            return
        if depth > JSON_DEPTH:
            yield Problem(path or whole, f"is nested deeper than {JSON_DEPTH}")
        elif isinstance(value, Mapping):
            for key in value:
                if not isinstance(key, str):
                    yield Problem(path or whole, f"the key {key!r} must be text")
            named = [(below(path, key), one) for key, one in value.items() if isinstance(key, str)]
            waiting += [(where, one, depth + 1) for where, one in reversed(named)]
        elif isinstance(value, list | tuple):
            items = [(below(path, at), item, depth + 1) for at, item in enumerate(value)]
            waiting += reversed(items)
        elif (problem := _scalar_problem(value)) is not None:
            yield Problem(path or whole, problem)


def _scalar_problem(value: object) -> str | None:
    """The reason why *value*, which contains no other values, is not JSON; None if it is JSON."""
    match value:
        case None | bool():
            return None
        case str():
            return None if is_text(value) else NO_HALVES
        case int() | float():
            return number_problem(value)
        case Repeated():
            return "repeats a key of this object"
        case _:
            return f"must be JSON, not {type(value).__name__}"
