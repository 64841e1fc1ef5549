"""
Checks of the arguments that a program passes to a public function: `from wfcore import …`.

A type checker finds the same mistakes earlier, but some programs have no type checker, and no type
checker sees data from elsewhere. The adapters check their own arguments.
"""

import inspect
import re
from collections.abc import Callable, Collection, Mapping
from enum import Enum
from functools import cache, wraps
from types import UnionType
from typing import Any, ParamSpec, TypeVar, Union, Unpack, get_args, get_origin, is_typeddict

from attrs import fields, has

from wfcore.errors import InvalidInput
from wfcore.model.json import Json, JsonObject
from wfcore.rules.visible import NO_HALVES, is_text
from wfcore.time import EpochMs

P = ParamSpec("P")
R = TypeVar("R")
_MADE = {
    "Definition": "; read_definition makes one of a mapping",
    "Principal": "; Principal(account) is one",
}
_AWAIT = "; it was not awaited"
_ANY_SIZE = 2**63
_SECONDS = (10**9, 10**10)
"""Times in seconds, of the years 2001 to 2286. As milliseconds they are in early 1970."""
_JSON = Mapping[str, object]
"""The annotation of JSON that a program hands over, whose values nobody has checked yet."""


def checked(function: Callable[P, R]) -> Callable[P, R]:
    """
    Returns *function* with checks before its first action: `TypeError` for an argument that does
    not match its annotation, and `InvalidInput` for a value that is not JSON if JSON is expected.
    """
    parameters = inspect.signature(function).parameters
    wanted: dict[str, Any] = {}
    for name, one in parameters.items():
        if get_origin(one.annotation) is Unpack:
            wanted |= get_args(one.annotation)[0].__annotations__
        else:
            wanted[name] = one.annotation
    places = [name for name, one in parameters.items() if one.kind is one.POSITIONAL_OR_KEYWORD]

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        for name, value in (*zip(places, args, strict=False), *kwargs.items()):
            if name in wanted:  # of others Python says so
                _check_json(name, value, wanted[name])
                _check(f"{function.__name__}: {name}", value, wanted[name])
        return function(*args, **kwargs)

    return call


def _check(what: str, value: Any, annotation: Any) -> None:
    """
    Raises `TypeError` unless *value* and the fields of a record of wfcore fit their annotations,
    and `InvalidInput` for a text or a time that cannot be meant. *what*: the name of the argument
    in the message.
    """
    if not _fits(value, annotation):
        shown = _shown(annotation)
        cure = next((cure for made, cure in _MADE.items() if made in shown), "")
        cure = _AWAIT if inspect.iscoroutine(value) else cure
        raise TypeError(f"{what} must be of type {shown}, not {_kind(value)}{cure}")
    if isinstance(value, str) and not is_text(value):
        raise InvalidInput(what, NO_HALVES)
    is_time = EpochMs in (annotation, *get_args(annotation)) and isinstance(value, int)
    if is_time and _SECONDS[0] <= value < _SECONDS[1]:
        raise InvalidInput(what, "is a time in seconds; multiply it by 1000")
    kind: Any = type(value)
    for name, wanted in _plain_fields(kind).items():
        part = getattr(value, name)
        if _JSON in (wanted, *get_args(wanted)):
            _check_json(f"{what}.{name}".partition(": ")[2], part, wanted)
        _check(f"{what}.{name}", part, wanted)


@cache
def _plain_fields(kind: type) -> Mapping[str, Any]:
    """
    The fields of a record of wfcore whose types are records, names, texts or numbers. Empty for a
    definition, because a definition has a stricter checker.
    """
    ours = kind.__module__.startswith("wfcore.")
    if not ours or not has(kind) or kind.__name__ == "Definition":
        return {}
    return {one.name: one.type for one in fields(kind) if _is_plain(one.type)}


def _is_plain(annotation: Any) -> bool:
    kind = getattr(annotation, "__supertype__", annotation)
    origin = get_origin(kind)
    if origin is None:
        ours = getattr(kind, "__module__", "").startswith("wfcore.")
        return kind in _PLAIN or (
            ours and isinstance(kind, type) and (has(kind) or issubclass(kind, Enum))
        )
    if origin in (Union, UnionType, tuple, frozenset):
        return all(map(_is_plain, get_args(kind)))
    return origin is Mapping


_PLAIN = (str, int, bool, bytes, type(None), Ellipsis)


def _check_json(name: str, value: object, annotation: Any) -> None:
    if isinstance(value, Mapping):
        from wfcore.rules.json_values import json_problems  # rules without JSON do without it

        for problem in json_problems(value, "", _ANY_SIZE):
            path = problem.path if problem.path[:1] in ("", "[") else f".{problem.path}"
            raise InvalidInput(f"{name}{path}", problem.message)
    elif annotation in (_JSON, JsonObject):  # somebody's data, whose shape no checker knows
        raise InvalidInput(name, f"must be a mapping of names to JSON values, not {_kind(value)}")


def _kind(value: object) -> str:
    kind = type(value).__name__
    if value and isinstance(value, list | tuple | set | frozenset):
        return f"{kind} of {', '.join(sorted({type(item).__name__ for item in value}))}"
    return kind


def _shown(annotation: Any) -> str:
    """The annotation in a program's notation, without modules."""
    text = inspect.formatannotation(annotation).replace(inspect.formatannotation(Json), "Json")
    return re.sub(r"(?:\w+\.)+", "", text)


def _fits(value: object, annotation: Any) -> bool:
    """Whether *value* is of the class, or a collection of the class, that *annotation* names."""
    kind = getattr(annotation, "__supertype__", annotation)
    origin, arguments = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        return any(_fits(value, one) for one in arguments)
    if origin is Mapping or is_typeddict(kind):
        return isinstance(value, Mapping)
    if origin is None:
        if getattr(kind, "_is_protocol", False):
            return value is not None
        return isinstance(value, kind)
    if not isinstance(value, (tuple, list) if origin is tuple else origin):
        return False
    if isinstance(value, Mapping) or not isinstance(value, Collection):
        return True
    return all(_fits(item, arguments[0]) for item in value)
