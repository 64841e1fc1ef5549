"""
The filters after `|`, with checks of their arguments.

Each function takes the scope, the value and the arguments. The filters are those that
`docs/definitions.md` names, and no further filters are added: code steps are for everything else.
"""

import inspect
import json
from collections.abc import Callable, Mapping, Sequence
from datetime import tzinfo
from decimal import ROUND_HALF_UP, Context, Decimal
from functools import partial
from typing import Any

from adapters_runtime import zones
from adapters_runtime.expressions import nodes
from adapters_runtime.expressions.nodes import Literal, Node
from adapters_runtime.expressions.operators import order
from adapters_runtime.expressions.scope import (
    Evaluation,
    EvaluationFailed,
    Faulty,
    Markdown,
    Missing,
    is_number,
    kind,
    number,
    suggestion,
)
from adapters_runtime.zones import zone_problem
from wfcore.model.json import Json
from wfcore.rules.dates import format_problem, moment_of, written


def filtered(of: Node, name: str, args: tuple[Node, ...], named: Mapping[str, Node]) -> Node:
    """The node of `of | name(args)`. Raises `Faulty`."""
    if name == "default":
        return _default(of, args, named)
    if name not in FILTERS:
        raise Faulty(f"there is no filter {name!r}; {suggestion(name, {*FILTERS, 'default'})}")
    try:
        bound = inspect.signature(FILTERS[name]).bind(None, None, *args, **named)
    except TypeError as error:
        raise Faulty(f"filter {name}: {error}") from None
    for argument, require in REQUIREMENTS.get(name, {}).items():
        if isinstance(given := bound.arguments.get(argument), Literal):
            _require_literal(require, given)
    return nodes.Filter(of, FILTERS[name], args, named)


def _require_literal(require: Callable[[Json], object], given: Literal) -> None:
    """Raises `Faulty` for an argument that is wrong whatever the data."""
    try:
        require(given.content)
    except EvaluationFailed as error:
        raise Faulty(str(error)) from None


def _default(of: Node, args: tuple[Node, ...], named: Mapping[str, Node]) -> Node:
    if named or not 1 <= len(args) <= 2:
        raise Faulty("filter default: takes a value, and true to replace false values too")
    return nodes.Default(of, args[0], args[1] if len(args) == 2 else Literal(False))


def _text(value: Json) -> str:
    if isinstance(value, str):
        return value
    raise EvaluationFailed(f"this filter wants text, not {kind(value)}")


def _list(value: Json) -> list[Json]:
    """The items of a list, the keys of an object, the characters of a text."""
    if isinstance(value, list | tuple | str | Mapping):
        return list(value)
    raise EvaluationFailed(f"this filter wants a list, not {kind(value)}")


def _number(value: Json) -> Any:
    if is_number(value):
        return value
    raise EvaluationFailed(f"this filter wants numbers, not {kind(value)}")


def _texts(change: Callable[[str], Json]) -> Callable[[Evaluation, Json], Json]:
    """A filter of text without arguments."""
    return lambda scope, value: change(_text(value))


_NOT_GIVEN = object()


def _at(value: Json, path: Sequence[str], default: Any = _NOT_GIVEN) -> Json:
    """The value at *path*, or *default*. Raises `Missing` without a default."""
    for key in path:
        if not isinstance(value, Mapping) or key not in value:
            if default is _NOT_GIVEN:
                raise Missing(f"{'.'.join(path)} is not there in an item of the list", path)
            found: Json = default
            return found
        value = value[key]
    return value


def _path(dotted: Json) -> Sequence[str]:
    return _text(dotted).split(".")


def _end(index: int) -> Callable[[Evaluation, Json], Json]:
    def end(scope: Evaluation, value: Json) -> Json:
        items = _list(value)
        if not items:
            raise Missing("the list is empty", items)
        return items[index]

    return end


def _length(scope: Evaluation, value: Json) -> Json:
    if isinstance(value, list | tuple | str | Mapping):
        return len(value)
    raise EvaluationFailed(f"{kind(value)} has no length")


def _join(scope: Evaluation, value: Json, separator: Json = "") -> Json:
    between, texts = _text(separator), list[str]()
    for item in _list(value):
        texts.append(scope.text(item))
        scope.spend(len(texts[-1]) + len(between))
    return between.join(texts)


def _replace(scope: Evaluation, value: Json, old: Json, new: Json) -> Json:
    text, old, new = _text(value), _text(old), _text(new)
    scope.spend(text.count(old) * len(new))
    return text.replace(old, new)


def _split(scope: Evaluation, value: Json, separator: Json = None) -> Json:
    return [*_text(value).split(_separator(separator))]


def _separator(value: Json) -> str | None:
    if value == "":
        raise EvaluationFailed("split wants a separator that is not empty")
    return None if value is None else _text(value)


def _int(scope: Evaluation, value: Json) -> Json:
    if isinstance(value, bool | int):
        return number(int(value))
    try:
        return number(_whole(value) if isinstance(value, str) else int(_number(value)))
    except (ValueError, OverflowError):
        raise EvaluationFailed("int wants a number or a text with a number in it") from None


def _whole(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        return int(float(text))


def _float(scope: Evaluation, value: Json) -> Json:
    try:
        return number(float(value if isinstance(value, bool | str) else _number(value)))
    except (ValueError, OverflowError):
        raise EvaluationFailed("float wants a number or a text with a number in it") from None


def _round(scope: Evaluation, value: Json, precision: Json = 0) -> Json:
    return number(round(_number(value), _precision(precision) or None))


def _precision(value: Json) -> int:
    if type(value) is not int or abs(value) > 30:
        raise EvaluationFailed("round wants a precision between -30 and 30")
    return value


def _number_text(
    scope: Evaluation, value: Json, decimals: Json, thousands: Json = ",", point: Json = "."
) -> Json:
    """The number as text. A half in its decimal form is rounded away from zero: 2.675 is 2.68."""
    places = Decimal(1).scaleb(-_decimals(decimals))
    if thousands not in _THOUSANDS or point not in _POINTS or thousands == point:
        raise EvaluationFailed(
            "number wants two different marks: for thousands , . ' blank or none; . or ,"
        )
    exact = Decimal(repr(_number(value))).quantize(places, ROUND_HALF_UP, _DIGITS)
    marks = {",": str(thousands), ".": str(point)}
    return "".join(marks.get(one, one) for one in f"{exact or abs(exact):,f}")


def _decimals(value: Json) -> int:
    if type(value) is not int or not 0 <= value <= 20:
        raise EvaluationFailed("number wants 0 to 20 decimals")
    return value


_DIGITS = Context(prec=400)
"""More digits than the greatest double has, with its decimals."""
_THOUSANDS = (",", ".", "'", " ", "\u00a0", "\u202f", "")
_POINTS = (".", ",")


def _date(scope: Evaluation, value: Json, format: Json, zone: Json = "UTC") -> Json:
    """The moment as text. TM-1."""
    text, where = _format(format), _zone(zone)
    if not isinstance(value, int | str) or isinstance(value, bool):
        raise EvaluationFailed(f"date wants ISO 8601 or milliseconds since 1970, not {kind(value)}")
    try:
        return written(moment_of(value, where), text)
    except ValueError:
        raise EvaluationFailed(
            "date wants ISO 8601 like 2026-03-01T09:30Z, or milliseconds"
        ) from None


def _format(value: Json) -> str:
    if problem := format_problem(_text(value)):
        raise EvaluationFailed(problem)
    return _text(value)


def _zone(value: Json) -> tzinfo:
    if problem := zone_problem(_text(value)):
        raise EvaluationFailed(problem)
    return zones.zone(_text(value))


def _sum(scope: Evaluation, value: Json) -> Json:
    try:
        return number(sum(_number(item) for item in _list(value)))
    except OverflowError:
        raise EvaluationFailed("the sum is no number that JSON can hold") from None


def _tojson(scope: Evaluation, value: Json) -> Json:
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str) else scope.text(value)


def _sort(scope: Evaluation, value: Json, reverse: Json = False, attribute: Json = None) -> Json:
    """The sorted list. Texts are compared without case."""
    path = () if attribute is None else _path(attribute)

    def rank(item: Json) -> Any:
        key = _at(item, path)
        return order(scope, key.lower() if isinstance(key, str) else key)

    return sorted(_list(value), key=rank, reverse=bool(reverse))


def _most(choose: Callable[..., Json]) -> Callable[[Evaluation, Json], Json]:
    def most(scope: Evaluation, value: Json) -> Json:
        items = _list(value)
        if not items:
            raise Missing("the list is empty", items)
        return choose(items, key=partial(order, scope))

    return most


def _unique(scope: Evaluation, value: Json) -> Json:
    found: dict[tuple[bool, Any], Json] = {}
    for item in _list(value):
        scope.read(item)
        same = _written(scope, item) if isinstance(item, list | tuple | Mapping) else item
        found.setdefault((isinstance(item, bool | list | tuple | Mapping), same), item)
    return list(found.values())


_TO_WRITE = 16
"""The budget for writing a value as JSON, which takes as long as reading so many values."""


def _written(scope: Evaluation, value: Json) -> str:
    scope.spend(_TO_WRITE)
    return json.dumps(value, sort_keys=True)


def _map(scope: Evaluation, value: Json, *, attribute: Json, default: Any = _NOT_GIVEN) -> Json:
    """The value at the dotted path *attribute* of each item, or *default* where it is missing."""
    path = _path(attribute)
    return [_at(item, path, default) for item in _list(value)]


FILTERS: Mapping[str, Callable[..., Json]] = {
    "date": _date,
    "first": _end(0),
    "float": _float,
    "int": _int,
    "join": _join,
    "last": _end(-1),
    "length": _length,
    "lower": _texts(str.lower),
    "markdown": lambda scope, value: Markdown(scope.text(value)),
    "map": _map,
    "max": _most(max),
    "min": _most(min),
    "number": _number_text,
    "replace": _replace,
    "round": _round,
    "sort": _sort,
    "split": _split,
    "sum": _sum,
    "tojson": _tojson,
    "trim": _texts(str.strip),
    "unique": _unique,
    "upper": _texts(str.upper),
}
"""The filters by name, except `default`, which must not fail for a missing value."""

REQUIREMENTS: Mapping[str, Mapping[str, Callable[[Json], object]]] = {
    "date": {"format": _format, "zone": _zone},
    "number": {"decimals": _decimals},
    "round": {"precision": _precision},
    "split": {"separator": _separator},
}
"""
The checks by filter and argument. The checks raise `EvaluationFailed` for values that are always
wrong.
"""
