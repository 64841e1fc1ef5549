"""
Strategies derived from the fields of a class: by name where the name says more than the type.

Constraints between fields (an end is not before its start) belong to `values_of`.
"""

import builtins
from collections import abc
from collections.abc import Callable, Mapping
from enum import Enum
from functools import cache
from types import NoneType, UnionType
from typing import Any, TypeVar, Union, get_args, get_origin

import attrs
from hypothesis import strategies as st

from wfcore.model.execution import aside_key
from wfcore.model.json import Json, JsonObject
from wfcore.testing.builders import NOW
from wfcore.testing.strategies.values import (
    ACCOUNT_IDS,
    PEOPLE,
    json_values,
    payloads,
    scalars,
    texts,
)
from wfcore.time import DAY, DurationMs, EpochMs, later

Strategy = st.SearchStrategy[Any]

HEX = "0123456789abcdef"


@cache
def digests() -> st.SearchStrategy[str]:
    """
    SHA-256 digests as hex text. Each digest is drawn as one number, because 64 letters would be
    slow.
    """
    return st.integers(0, 16**64 - 1).map(lambda number: f"{number:064x}")


@cache
def names() -> st.SearchStrategy[str]:
    """Names: non-blank text."""
    return texts(1).map(lambda text: text if text.strip() else "blank")


@cache
def ids(prefix: str) -> st.SearchStrategy[str]:
    """Ids from a small pool, so that records refer to one another."""
    return st.sampled_from([f"{prefix}_{number}" for number in (1, 2, 3)])


_accounts = st.sampled_from(ACCOUNT_IDS)
_BY_NAME: Mapping[str, Strategy] = {
    **dict.fromkeys(("account_id", "owner_id", "workflow_owner_id", "decided_by"), _accounts),
    **dict.fromkeys(("secret_hash", "previous_hash", "sha256", "fingerprint"), digests()),
    **dict.fromkeys(("name", "title", "workflow_name", "key", "step_name"), names()),
    **dict.fromkeys(("number", "count", "attempts", "page"), st.integers(1, 99)),
    "workflow_id": ids("wf"),
    "execution_id": ids("exec"),
    "approval_id": ids("appr"),
    "webhook_id": ids("wh"),
    "key_id": ids("key"),
    "api_key_id": ids("key"),
    "redrive_of": ids("exec"),
    "worker": ids("worker"),
    "email": _accounts.map(lambda id: f"{id}@example.org"),
    "approvers": st.lists(st.sampled_from(PEOPLE), max_size=2).map(tuple),
    "revision": st.integers(1, 9),
    "size": st.integers(0, 2**40),
    "version": st.just(0),
}
"""Strategies by field name, the same for every record."""

_step_keys = texts(1).map(lambda text: text.replace("/", "-"))
_aside_keys = st.builds(aside_key, st.integers(1, 9), _step_keys)
_KEYS = {"step_results": _step_keys, "put_aside": _aside_keys}
"""The strategies for the keys of some mappings. A step's name contains no slash."""

_PREFIXES = {
    "Account": "acc",
    "ApiKey": "key",
    "Approval": "appr",
    "Artifact": "art",
    "AuditEntry": "aud",
    "Execution": "exec",
    "Workflow": "wf",
}
_BY_TYPE: Mapping[Any, Callable[[], Strategy]] = {
    str: texts,
    bool: st.booleans,
    int: lambda: st.integers(0, 99),
    float: lambda: st.floats(0, 100),
    EpochMs: lambda: st.integers(0, 30 * DAY).map(lambda by: later(NOW, by)),
    DurationMs: lambda: st.integers(1, 30 * DAY).map(DurationMs),
    Any: json_values,
}


Values = Callable[[type], Strategy]
"""A function that returns the strategy for a field whose type is an attrs class."""


def derived(kind: type, values: Values, **given: Strategy) -> Strategy:
    """
    Values of the attrs class *kind*: fields from *given*, all other fields by name or type.

    A field with a default is left out half of the time, and always when an example is fully shrunk.
    """
    needed: dict[str, Strategy] = {}
    optional: dict[str, Strategy] = {}
    for one in attrs.fields(kind):
        found = given[one.name] if one.name in given else _of_field(kind, one, values)
        kept = needed if one.default is attrs.NOTHING or one.name in given else optional
        kept[one.alias or one.name] = found
    return st.fixed_dictionaries(needed, optional=optional).map(lambda fields: kind(**fields))


def told(record: Any) -> Strategy:
    """
    A strategy for *record* alone. A failing test shows *record* as a call of its class without the
    fields that have their defaults, so that people can read it.
    """
    said = {
        one.alias or one.name: st.just(getattr(record, one.name))
        for one in attrs.fields(type(record))
        if getattr(record, one.name) != _usual(one)
    }
    return st.builds(type(record), **said)


def _usual(field: "attrs.Attribute[Any]") -> Any:
    made = getattr(field.default, "factory", None)
    return field.default if made is None else made()


def _of_field(kind: type, one: "attrs.Attribute[Any]", values: Values) -> Strategy:
    if one.name == "id":
        return ids(_PREFIXES.get(kind.__name__, kind.__name__.lower()))
    named = _BY_NAME.get(one.name)
    arguments = get_args(one.type)
    if named is None or any(map(attrs.has, arguments)):
        return of_type(one.type, values, f"{kind.__name__}.{one.name}")
    return st.none() | named if NoneType in arguments and one.default is not None else named


def of_type(annotation: Any, values: Values, where: str) -> Strategy:
    """Values of an annotated type. Raises `TypeError` for a type without a strategy."""
    if annotation == Json:
        return json_values()
    if annotation == JsonObject:
        return payloads()
    if annotation in _BY_TYPE:
        return _BY_TYPE[annotation]()
    if isinstance(annotation, TypeVar):
        return scalars()
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return st.sampled_from(annotation)
    if isinstance(annotation, type) and attrs.has(annotation):
        return values(annotation)
    return _generic(annotation, values, where)


def _generic(annotation: Any, values: Values, where: str) -> Strategy:
    args = [one for one in get_args(annotation) if one not in (NoneType, Ellipsis)]
    match get_origin(annotation):
        case origin if origin in (Union, UnionType):
            kinds = [of_type(one, values, where) for one in args]
            return (
                st.one_of(st.none(), *kinds)
                if NoneType in get_args(annotation)
                else st.one_of(kinds)
            )
        case builtins.tuple:
            return st.lists(of_type(args[0], values, where), max_size=2).map(tuple)
        case builtins.frozenset:
            return st.frozensets(of_type(args[0], values, where))
        case abc.Sequence:
            return st.lists(of_type(args[0], values, where), max_size=2)
        case abc.Mapping:
            keys = _KEYS.get(where.rpartition(".")[2], texts(1))
            return st.dictionaries(keys, of_type(args[1], values, where), max_size=2)
    raise TypeError(
        f"{where}: what are values of {annotation}? Say so in wfcore.testing.strategies.records"
    )
