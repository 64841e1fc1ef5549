"""What fits a text that a person searches for. The case of letters does not count."""

from collections.abc import Iterator
from itertools import islice

from wfcore.model.execution import Execution
from wfcore.model.json import Json

MOST_VALUES = 200
"""The most values of an execution's inputs that are compared."""


def fits(text: str, *names: str) -> bool:
    """Whether each word of *text* occurs in one of *names*."""
    all_names = "\n".join(names).casefold()
    return all(word in all_names for word in text.casefold().split())


def has_input(run: Execution, text: str) -> bool:
    """Whether an input of *run* that is no secret contains *text*. PG-9."""
    shown = (value for name, value in run.variables.items() if name not in run.secrets)
    wanted = text.casefold()
    values = (one for value in shown for one in _texts(value))
    return any(wanted in one.casefold() for one in islice(values, MOST_VALUES))


def _texts(value: Json) -> Iterator[str]:
    """The texts and numbers in *value*."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for one in value.values():
            yield from _texts(one)
    elif isinstance(value, list):
        for one in value:
            yield from _texts(one)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield str(value)
