"""
The operators, in tables by precedence.

Data that an operator reads or makes is taken from the budget: a short template may compare long
data many times.
"""

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from adapters_runtime.expressions.scope import (
    Evaluation,
    EvaluationFailed,
    is_number,
    kind,
    number,
)
from wfcore.model.json import Json

Operator: TypeAlias = Callable[[Evaluation, Json, Json], Json]


def _arithmetic(sign: str, apply: Callable[[Any, Any], Any]) -> Operator:
    def operate(scope: Evaluation, left: Json, right: Json) -> Json:
        if not (is_number(left) and is_number(right)):
            raise EvaluationFailed(f"{sign} wants two numbers, not {kind(left)} and {kind(right)}")
        try:
            return number(apply(left, right))
        except ZeroDivisionError:
            raise EvaluationFailed("division by zero") from None
        except OverflowError:
            raise EvaluationFailed("the result is no number that JSON can hold") from None

    return operate


def _divide(left: Any, right: Any) -> Any:
    """The quotient, as an integer if it is whole."""
    if isinstance(left, int) and isinstance(right, int) and right and left % right == 0:
        return left // right
    return left / right


_add_numbers = _arithmetic("+", lambda left, right: left + right)


def _add(scope: Evaluation, left: Json, right: Json) -> Json:
    if isinstance(left, str) and isinstance(right, str):
        return left + right
    if isinstance(left, list | tuple) and isinstance(right, list | tuple):
        return [*left, *right]
    return _add_numbers(scope, left, right)


def negate(value: Json) -> Json:
    """`-value`."""
    if not is_number(value):
        raise EvaluationFailed(f"- wants a number, not {kind(value)}")
    return number(-value)  # type: ignore[operator]


def _ordered(sign: str, apply: Callable[[Any, Any], bool]) -> Operator:
    def compare(scope: Evaluation, left: Json, right: Json) -> Json:
        if isinstance(left, str) and isinstance(right, str):
            scope.spend(min(len(left), len(right)))
        elif not (is_number(left) and is_number(right)):
            raise EvaluationFailed(
                f"{sign} compares two numbers or two texts, not {kind(left)} and {kind(right)}"
            )
        return apply(left, right)

    return compare


def _equal(scope: Evaluation, left: Json, right: Json) -> bool:
    """Whether *left* and *right* are equal. Values of different lengths are not read."""
    if _length(left) == _length(right):
        scope.read(left)
    return left == right


def _length(value: Json) -> int:
    return len(value) if isinstance(value, str | list | tuple | Mapping) else 0


def contains(scope: Evaluation, value: Json, inside: Json) -> bool:
    """Whether *value* is an item of a list, a key of an object or a part of a text."""
    if isinstance(inside, str):
        scope.spend(len(inside))
        return isinstance(value, str) and value in inside
    if isinstance(inside, Mapping):
        return isinstance(value, str) and value in inside
    if isinstance(inside, list | tuple):
        scope.spend(len(inside))
        return any(_equal(scope, item, value) for item in inside)
    raise EvaluationFailed(f"`in` looks into a list, an object or a text, not into {kind(inside)}")


def order(scope: Evaluation, value: Json) -> tuple[Any, ...]:
    """
    The sort key of *value* for `min`, `max` and `sort`, in minijinja's order: null, booleans,
    numbers, texts, lists. Raises `EvaluationFailed` for an object, since its keys have no order.
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
            raise EvaluationFailed("objects have no order")
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
