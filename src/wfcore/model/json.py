"""JSON values as Python sees them: payloads, outputs and rows."""

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias, Union, cast

from wfcore.errors import InvalidInput

Json: TypeAlias = Union[None, bool, int, float, str, "Sequence[Json]", "Mapping[str, Json]"]
JsonObject: TypeAlias = Mapping[str, Json]

MOST_BITS = 64
"""The bits of an integer, its sign included, that every database and most languages keep. NU-1."""


def fits(value: int) -> bool:
    """Whether *value* has at most `MOST_BITS`: from -2**63 to 2**63 - 1."""
    return -(2**63) <= value < 2**63


def as_json(value: Mapping[str, object]) -> JsonObject:
    """*value*, which is JSON, for type checkers. Its values were checked at the public function."""
    return cast(JsonObject, value)


def json_at(value: Json, *path: str | int) -> Any:
    """
    The value at *path* in JSON, for programs that know its shape; type checkers accept it as any
    type.

        json_at(execution.output, "groups", "refunds", 0, "amount")

    Raises `InvalidInput`, which names the part of the path that is missing.
    """
    found: Any = value
    for at, part in enumerate(path):
        try:
            found = _below(found, part)
        except (KeyError, IndexError):
            so_far = "".join(f"[{one!r}]" for one in path[: at + 1])
            raise InvalidInput(so_far, "there is nothing at this place") from None
    return found


def _below(value: Any, part: Any) -> Any:
    if not isinstance(value, list | tuple if isinstance(part, int) else Mapping):
        raise KeyError(part)
    return value[part]
