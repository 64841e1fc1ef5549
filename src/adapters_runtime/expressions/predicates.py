"""What may stand behind `is`."""

from collections.abc import Callable, Mapping

from adapters_runtime.expressions.operators import COMPARISONS, contains
from adapters_runtime.expressions.scope import Failed, is_number, kind
from wfcore.model.json import Json


def _compares(sign: str) -> Callable[[Json, Json], bool]:
    def compare(value: Json, other: Json) -> bool:
        return bool(COMPARISONS[sign](value, other))

    return compare


def _remainder(value: Json) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise Failed(f"odd and even want a whole number, not {kind(value)}")
    return value % 2


def _is_integer(value: Json) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _starting_with(value: Json, part: Json) -> bool:
    return isinstance(value, str) and isinstance(part, str) and value.startswith(part)


def _ending_with(value: Json, part: Json) -> bool:
    return isinstance(value, str) and isinstance(part, str) and value.endswith(part)


_EQUAL, _UNEQUAL = _compares("=="), _compares("!=")

PREDICATES: Mapping[str, Callable[..., bool]] = {
    "none": lambda value: value is None,
    "true": lambda value: value is True,
    "false": lambda value: value is False,
    "boolean": lambda value: isinstance(value, bool),
    "number": is_number,
    "integer": _is_integer,
    "float": lambda value: isinstance(value, float),
    "string": lambda value: isinstance(value, str),
    "sequence": lambda value: isinstance(value, list | tuple),
    "mapping": lambda value: isinstance(value, Mapping),
    "odd": lambda value: _remainder(value) == 1,
    "even": lambda value: _remainder(value) == 0,
    "in": lambda value, inside: contains(inside, value),
    "containing": lambda value, part: contains(value, part),
    "startingwith": _starting_with,
    "endingwith": _ending_with,
    "eq": _EQUAL,
    "equalto": _EQUAL,
    "ne": _UNEQUAL,
    "lt": _compares("<"),
    "le": _compares("<="),
    "gt": _compares(">"),
    "ge": _compares(">="),
    "lessthan": _compares("<"),
    "greaterthan": _compares(">"),
}
