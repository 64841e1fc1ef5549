"""
What the operators do, and their precedence. What one reads of its operands is taken from the
budget, as what it makes is: a short template may compare long data many times.
"""

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from adapters_runtime.expressions.scope import Failed, Scope, is_number, kind, number
from wfcore.model.json import Json

Operator: TypeAlias = Callable[[Scope, Json, Json], Json]


def _arithmetic(sign: str, apply: Callable[[Any, Any], Any]) -> Operator:
    def operate(scope: Scope, left: Json, right: Json) -> Json:
        if not (is_number(left) and is_number(right)):
            raise Failed(f"{sign} wants two numbers, not {kind(left)} and {kind(right)}")
        try:
            return number(apply(left, right))
        except ZeroDivisionError:
            raise Failed("division by zero") from None
        except OverflowError:
            raise Failed("the result is no number that JSON can hold") from None

    return operate


def _divide(left: Any, right: Any) -> Any:
    """True division; a whole result is an integer."""
    if isinstance(left, int) and isinstance(right, int) and right and left % right == 0:
        return left // right
    return left / right


_add_numbers = _arithmetic("+", lambda left, right: left + right)


def _add(scope: Scope, left: Json, right: Json) -> Json:
    if isinstance(left, str) and isinstance(right, str):
        return left + right
    if isinstance(left, list | tuple) and isinstance(right, list | tuple):
        return [*left, *right]
    return _add_numbers(scope, left, right)


def negate(value: Json) -> Json:
    """`-value`."""
    if not is_number(value):
        raise Failed(f"- wants a number, not {kind(value)}")
    return number(-value)  # type: ignore[operator]


def _ordered(sign: str, apply: Callable[[Any, Any], bool]) -> Operator:
    def compare(scope: Scope, left: Json, right: Json) -> Json:
        if isinstance(left, str) and isinstance(right, str):
            scope.spend(min(len(left), len(right)))
        elif not (is_number(left) and is_number(right)):
            raise Failed(
                f"{sign} compares two numbers or two texts, not {kind(left)} and {kind(right)}"
            )
        return apply(left, right)

    return compare


def _equal(scope: Scope, left: Json, right: Json) -> bool:
    """Whether the two are the same. What differs in length is not read."""
    if _length(left) == _length(right):
        scope.read(left)
    return left == right


def _length(value: Json) -> int:
    return len(value) if isinstance(value, str | list | tuple | Mapping) else 0


def contains(scope: Scope, value: Json, inside: Json) -> bool:
    """Whether *value* is an item of a list, a key of an object or a part of a text."""
    if isinstance(inside, str):
        scope.spend(len(inside))
        return isinstance(value, str) and value in inside
    if isinstance(inside, Mapping):
        return isinstance(value, str) and value in inside
    if isinstance(inside, list | tuple):
        scope.spend(len(inside))
        return any(_equal(scope, item, value) for item in inside)
    raise Failed(f"`in` looks into a list, an object or a text, not into {kind(inside)}")


def order(scope: Scope, value: Json) -> tuple[Any, ...]:
    """
    The place of *value* in `min`, `max` and `sort`, as minijinja has it: null, booleans, numbers,
    texts, lists. Raises `Failed` for an object: its keys have no order in JSON.
    """
    match value:
        case None:
            return (0,)
        case bool():
            return (1, value)
        case int() | float():
            return (2, value)
        case str():
            scope.spend(len(value))
            return (3, value)
        case Mapping():
            raise Failed("objects have no order")
        case _:
            scope.spend(len(value))
            return (4, [order(scope, item) for item in value])


COMPARISONS: Mapping[str, Operator] = {
    "==": _equal,
    "!=": lambda scope, left, right: not _equal(scope, left, right),
    "<": _ordered("<", lambda left, right: left < right),
    "<=": _ordered("<=", lambda left, right: left <= right),
    ">": _ordered(">", lambda left, right: left > right),
    ">=": _ordered(">=", lambda left, right: left >= right),
    "in": contains,
    "not in": lambda scope, left, right: not contains(scope, left, right),
}

SUMS: Mapping[str, Operator] = {
    "+": _add,
    "-": _arithmetic("-", lambda left, right: left - right),
}

PRODUCTS: Mapping[str, Operator] = {
    "*": _arithmetic("*", lambda left, right: left * right),
    "/": _arithmetic("/", _divide),
    "//": _arithmetic("//", lambda left, right: left // right),
    "%": _arithmetic("%", lambda left, right: left % right),
}
