"""
What a program hands to a use case, or to what makes services ready for it, looked at where it
comes in: `from wfcore import …`.

A type checker says the same earlier, but not everybody runs one, and what comes from somebody
else's data no checker sees. The adapters check what they pass on themselves. Decision 181.
"""

import inspect
import re
from collections.abc import Callable, Collection, Mapping
from functools import wraps
from types import UnionType
from typing import Any, ParamSpec, TypeVar, Union, get_args, get_origin

from wfcore.errors import InvalidInput
from wfcore.rules.definition.written import json_problems

P = ParamSpec("P")
R = TypeVar("R")
_MADE = {
    "Definition": "; Definition.from_mapping makes one of a mapping",
    "Principal": "; Principal(account) is one",
}
_ANY_SIZE = 2**63


def checked(use_case: Callable[P, R]) -> Callable[P, R]:
    """
    *use_case*, which raises `TypeError` for an argument that is not what its annotation says, and
    `InvalidInput` for one that is no JSON where JSON is wanted: nothing was done then.
    """
    wanted = {name: one.annotation for name, one in inspect.signature(use_case).parameters.items()}

    @wraps(use_case)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        for name, value in (*zip(wanted, args, strict=False), *kwargs.items()):
            if name in wanted:  # of others Python says so
                _check(f"{use_case.__name__}: {name}", value, wanted[name])
                _check_json(name, value)
        return use_case(*args, **kwargs)

    return call


def _check(what: str, value: object, annotation: Any) -> None:
    if not _fits(value, annotation):
        shown = _shown(annotation)
        cure = next((cure for made, cure in _MADE.items() if made in shown), "")
        raise TypeError(f"{what} must be of type {shown}, not {_kind(value)}{cure}")


def _check_json(name: str, value: object) -> None:
    if isinstance(value, Mapping):
        for problem in json_problems({name: value}, name, _ANY_SIZE):
            raise InvalidInput(problem.path, problem.message)


def _kind(value: object) -> str:
    kind = type(value).__name__
    if value and isinstance(value, list | tuple | set | frozenset):
        return f"{kind} of {', '.join(sorted({type(item).__name__ for item in value}))}"
    return kind


def _shown(annotation: Any) -> str:
    """As it is written in a program, without modules."""
    return re.sub(r"(?:\w+\.)+", "", inspect.formatannotation(annotation))


def _fits(value: object, annotation: Any) -> bool:
    """Whether *value* is of the class, or a collection of the class, that *annotation* names."""
    kind = getattr(annotation, "__supertype__", annotation)
    origin, arguments = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        return any(_fits(value, one) for one in arguments)
    if origin is None:
        return getattr(kind, "_is_protocol", False) or isinstance(value, kind)
    if not isinstance(value, origin):
        return False
    if isinstance(value, Mapping) or not isinstance(value, Collection):
        return True
    return all(_fits(item, arguments[0]) for item in value)
