"""
Records as JSON text and back.

What writes and reads a record is generated with the first one: a starting server needs none.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import cache
from typing import Any, NamedTuple, TypeVar, cast, get_args

import attrs
import orjson
from cattrs import Converter, override
from cattrs.gen import make_dict_structure_fn, make_dict_unstructure_fn
from cattrs.strategies import configure_tagged_union

from wfcore.model.json import Json, JsonObject
from wfcore.model.trigger import TriggerSpec
from wfcore.model.workflow import Step

R = TypeVar("R")

_AS_IT_IS = (Json, JsonObject)


def _make_converter() -> Converter:
    converter = Converter(
        detailed_validation=False,
        unstruct_collection_overrides={AbstractSet: sorted},
    )
    converter.register_structure_hook_func(_is_json, lambda value, _: value)
    converter.register_unstructure_hook_func(_is_json, lambda value: value)
    converter.register_unstructure_hook_factory(attrs.has, lambda cls: _writer_of(converter, cls))
    converter.register_unstructure_hook_func(_is_step, lambda step: _tagged(converter, step))
    converter.register_structure_hook_func(
        _is_step, lambda data, _: converter.structure(data, _STEPS[data["_type"]])
    )
    configure_tagged_union(TriggerSpec, converter)
    return converter


def _is_step(wanted: Any) -> bool:
    """Steps hold steps, so that inside of them the type is only a name."""
    return wanted in (Step, "Step")


_STEPS: Mapping[str, type[Any]] = {kind.__name__: kind for kind in get_args(Step)}


def _tagged(converter: Converter, step: Step) -> dict[str, Any]:
    """A step as plain data, with the name of its type."""
    return {**converter.unstructure(step, type(step)), "_type": type(step).__name__}


def _is_json(wanted: Any) -> bool:
    return wanted in _AS_IT_IS


def _writer_of(converter: Converter, cls: Any) -> Callable[[Any], dict[str, Any]]:
    """Leave out what is None by default; every other default is written, as it may change."""
    without_none = {
        field.name: override(omit_if_default=True)
        for field in attrs.fields(cls)
        if field.default is None
    }
    return make_dict_unstructure_fn(cls, converter, **without_none)  # type: ignore[arg-type]


CONVERTER = _make_converter()


def text_of(value: Any) -> str:
    """JSON text; also of what orjson refuses (integers beyond 64 bits, lone surrogates)."""
    try:
        return orjson.dumps(value).decode()
    except TypeError:
        return json.dumps(value)


OBJECT, LIST, MEMBER, NAME, WIDE = 192, 64, 40, 32, 4
"""
Bytes that an object, a list, what follows a comma and what follows a colon take up, and how many a
character does where one is not ASCII: measured with `tracemalloc`, rounded up.
"""


class Size(NamedTuple):
    """About how many bytes a record takes up: what each change writes anew, and the rest."""

    head: int
    rest: int


def cost_of(text: str) -> int:
    """
    About how many bytes the value of a JSON text takes up in memory: hardly ever less. A text of
    many small objects takes up twenty times its length, a long string no more than its length.
    """
    width = 1 if text.isascii() else WIDE
    return (
        len(text) * width
        + text.count("{") * OBJECT
        + text.count("[") * LIST
        + text.count(",") * MEMBER
        + text.count(":") * NAME
    )


def value_of(text: str) -> Any:
    """What `text_of` was given."""
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return json.loads(text)


def writer_of(cls: type[R], leaving_out: Sequence[str]) -> Callable[[R], dict[str, Any]]:
    """A function from a record to plain data without the fields *leaving_out*."""
    made = cache(lambda: _made_writer(cls, leaving_out))
    return lambda record: made()(record)


STORED_AS: Mapping[str, str] = {"concurrency_group": "lane"}
"""Fields that have another name in what is stored, which is as old as the release that wrote it."""


def _made_writer(cls: type[R], leaving_out: Sequence[str]) -> Callable[[R], dict[str, Any]]:
    kept: dict[str, Any] = {
        field.name: override(omit=True)
        if field.name in leaving_out
        else override(omit_if_default=field.default is None, rename=STORED_AS.get(field.name))
        for field in attrs.fields(cast("type[attrs.AttrsInstance]", cls))
    }
    return cast(
        "Callable[[R], dict[str, Any]]",
        make_dict_unstructure_fn(cls, CONVERTER, **kept),
    )


def reader_of(cls: type[R]) -> Callable[[Mapping[str, Any]], R]:
    """A function from plain data to a record."""
    hook = cache(lambda: _made_reader(cls))
    return lambda data: hook()(data, cls)


def _made_reader(cls: type[R]) -> Callable[[Mapping[str, Any], Any], R]:
    names = {field.name for field in attrs.fields(cast("type[attrs.AttrsInstance]", cls))}
    renamed: Any = {name: override(rename=STORED_AS[name]) for name in names & STORED_AS.keys()}
    found = make_dict_structure_fn(cls, CONVERTER, **renamed) if renamed else None
    return found or CONVERTER.get_structure_hook(cls)
