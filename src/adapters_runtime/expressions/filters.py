"""What may stand behind `|`. Each function takes the scope, the value, and the arguments."""

import json
import re
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import quote

from adapters_runtime.expressions.predicates import PREDICATES
from adapters_runtime.expressions.scope import (
    Failed,
    Missing,
    Scope,
    as_text,
    is_number,
    kind,
    number,
)
from wfcore.model.json import Json

_WORD = re.compile(r"[^\s\-(\[{<]+")


def _text(value: Json) -> str:
    if isinstance(value, str):
        return value
    raise Failed(f"this filter wants text, not {kind(value)}")


def _list(value: Json) -> list[Json]:
    """The items of a list, the keys of an object, the characters of a text."""
    if isinstance(value, list | tuple | str | Mapping):
        return list(value)
    raise Failed(f"this filter wants a list, not {kind(value)}")


def _number(value: Json) -> Any:
    if is_number(value):
        return value
    raise Failed(f"this filter wants numbers, not {kind(value)}")


def _texts(change: Callable[[str], Json]) -> Callable[[Scope, Json], Json]:
    """A filter of text without arguments."""
    return lambda scope, value: change(_text(value))


def _at(value: Json, path: Json) -> Json:
    """What a dotted path leads to. Raises `Missing`."""
    for key in _text(path).split("."):
        if not isinstance(value, Mapping) or key not in value:
            raise Missing(f"{path} is not there in an item of the list", path)
        value = value[key]
    return value


def _first(scope: Scope, value: Json) -> Json:
    return _end(_list(value), 0)


def _last(scope: Scope, value: Json) -> Json:
    return _end(_list(value), -1)


def _end(items: list[Json], index: int) -> Json:
    if not items:
        raise Missing("the list is empty", items)
    return items[index]


def _length(scope: Scope, value: Json) -> Json:
    if isinstance(value, list | tuple | str | Mapping):
        return len(value)
    raise Failed(f"{kind(value)} has no length")


def _items(scope: Scope, value: Json) -> Json:
    if isinstance(value, Mapping):
        return [[key, item] for key, item in value.items()]
    raise Failed(f"items wants an object, not {kind(value)}")


def _join(scope: Scope, value: Json, d: Json = "") -> Json:
    between, texts = _text(d), [as_text(item) for item in _list(value)]
    scope.spend(sum(map(len, texts)) + len(between) * len(texts))
    return between.join(texts)


def _replace(scope: Scope, value: Json, old: Json, new: Json) -> Json:
    text, old, new = _text(value), _text(old), _text(new)
    scope.spend(text.count(old) * len(new))
    return text.replace(old, new)


def _split(scope: Scope, value: Json, separator: Json = None) -> Json:
    if separator == "":
        raise Failed("split wants a separator that is not empty")
    return [*_text(value).split(None if separator is None else _text(separator))]


def _trim(scope: Scope, value: Json, characters: Json = None) -> Json:
    return _text(value).strip(None if characters is None else _text(characters))


def _int(scope: Scope, value: Json) -> Json:
    if isinstance(value, bool | int):
        return int(value)
    try:
        return _whole(_text(value)) if isinstance(value, str) else int(_number(value))
    except (ValueError, OverflowError):
        raise Failed("int wants a number or a text with a number in it") from None


def _whole(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        return int(float(text))


def _float(scope: Scope, value: Json) -> Json:
    try:
        return number(float(value if isinstance(value, bool | str) else _number(value)))
    except (ValueError, OverflowError):
        raise Failed("float wants a number or a text with a number in it") from None


def _round(scope: Scope, value: Json, precision: Json = 0) -> Json:
    if type(precision) is not int or abs(precision) > 30:
        raise Failed("round wants a precision between -30 and 30")
    return number(round(_number(value), precision or None))


def _sum(scope: Scope, value: Json) -> Json:
    try:
        return number(sum(_number(item) for item in _list(value)))
    except OverflowError:
        raise Failed("the sum is no number that JSON can hold") from None


def _tojson(scope: Scope, value: Json) -> Json:
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str) else as_text(value)


def _rank(value: Json, case_sensitive: Json) -> Any:
    return value.lower() if isinstance(value, str) and not case_sensitive else value


def _sort(
    scope: Scope,
    value: Json,
    reverse: Json = False,
    case_sensitive: Json = False,
    attribute: Json = None,
) -> Json:
    def rank(item: Json) -> Any:
        return _rank(item if attribute is None else _at(item, attribute), case_sensitive)

    return _comparing(lambda: sorted(_list(value), key=rank, reverse=bool(reverse)))


def _most(choose: Callable[..., Any]) -> Callable[[Scope, Json], Json]:
    def most(scope: Scope, value: Json) -> Json:
        items = _list(value)
        return _comparing(lambda: choose(items)) if items else _end(items, 0)

    return most


def _comparing(work: Callable[[], Json]) -> Json:
    try:
        return work()
    except TypeError:
        raise Failed("values of different types have no order") from None


def _unique(scope: Scope, value: Json) -> Json:
    found: dict[tuple[bool, Any], Json] = {}
    for item in _list(value):
        same = json.dumps(item, sort_keys=True) if isinstance(item, list | Mapping) else item
        found.setdefault((isinstance(item, bool | list | Mapping), same), item)
    return list(found.values())


def _reverse(scope: Scope, value: Json) -> Json:
    return value[::-1] if isinstance(value, str) else _list(value)[::-1]


def _map(scope: Scope, value: Json, name: str | None = None, /, *args: Json, **named: Json) -> Json:
    """`map('filter', …)`, or `map(attribute='a.b', default=…)`."""
    if name is not None:
        apply = FILTERS[name]
        return [scope.weigh(apply(scope, item, *args, **named)) for item in _list(value)]
    if "attribute" not in named or named.keys() - {"attribute", "default"}:
        raise Failed("map wants the name of a filter, or attribute= and maybe default=")
    return [_pick(item, named) for item in _list(value)]


def _pick(item: Json, named: Mapping[str, Json]) -> Json:
    try:
        return _at(item, named["attribute"])
    except Missing:
        if "default" not in named:
            raise
        return named["default"]


def _fits(scope: Scope, item: Json, test: str | None, args: tuple[Json, ...]) -> bool:
    if test is None:
        return bool(item)
    for arg in args:  # `in` and `eq` may look through all of it, for each item
        scope.weigh(arg)
    return PREDICATES[test](item, *args)


def _choosing(keep: bool) -> Callable[..., Json]:
    def choose(scope: Scope, value: Json, test: str | None = None, /, *args: Json) -> Json:
        return [item for item in _list(value) if _fits(scope, item, test, args) is keep]

    return choose


def _choosing_by(keep: bool) -> Callable[..., Json]:
    def fits(
        scope: Scope, item: Json, path: Json, test: str | None, args: tuple[Json, ...]
    ) -> bool:
        try:
            return _fits(scope, _at(item, path), test, args)
        except Missing:
            return False

    def choose(
        scope: Scope, value: Json, path: Json, test: str | None = None, /, *args: Json
    ) -> Json:
        return [item for item in _list(value) if fits(scope, item, path, test, args) is keep]

    return choose


FILTERS: Mapping[str, Callable[..., Json]] = {
    "abs": lambda scope, value: abs(_number(value)),
    "bool": lambda scope, value: bool(value),
    "capitalize": _texts(str.capitalize),
    "count": _length,
    "first": _first,
    "float": _float,
    "int": _int,
    "items": _items,
    "join": _join,
    "last": _last,
    "length": _length,
    "lines": _texts(lambda text: [*text.splitlines()]),
    "list": lambda scope, value: _list(value),
    "lower": _texts(str.lower),
    "map": _map,
    "max": _most(max),
    "min": _most(min),
    "reject": _choosing(False),
    "rejectattr": _choosing_by(False),
    "replace": _replace,
    "reverse": _reverse,
    "round": _round,
    "select": _choosing(True),
    "selectattr": _choosing_by(True),
    "sort": _sort,
    "split": _split,
    "string": lambda scope, value: as_text(value),
    "sum": _sum,
    "title": _texts(lambda text: _WORD.sub(lambda word: word[0].capitalize(), text)),
    "tojson": _tojson,
    "trim": _trim,
    "unique": _unique,
    "upper": _texts(str.upper),
    "urlencode": _texts(lambda text: quote(text, safe="/", errors="replace")),
}
