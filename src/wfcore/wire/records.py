"""
For authors of stores: records as plain data and as JSON text, and back.

`encode_record` and `decode_record` need only the core. A store that keeps some fields in columns of
their own, or uses a faster JSON library, uses `writer_of` and `reader_of`. The code that converts a
kind of record is generated on first use, so it does not slow down the start of a server.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import cache
from typing import Any, TypeVar, cast, get_args

import attrs
from cattrs import Converter, override
from cattrs.gen import make_dict_unstructure_fn
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
    """Steps contain steps, so a nested annotation is only the name of the type."""
    return wanted in (Step, "Step")


_STEPS: Mapping[str, type[Any]] = {kind.__name__: kind for kind in get_args(Step)}


def _tagged(converter: Converter, step: Step) -> dict[str, Any]:
    """A step as plain data, with the name of its type."""
    return {**converter.unstructure(step), "_type": type(step).__name__}


def _is_json(wanted: Any) -> bool:
    return wanted in _AS_IT_IS


def _writer_of(converter: Converter, cls: Any) -> Callable[[Any], dict[str, Any]]:
    """
    Omits nothing (None, zero, False, an empty tuple) where that is the default. Other defaults are
    written, because they may change.
    """
    without_nothing = {
        field.name: override(omit_if_default=True)
        for field in attrs.fields(cls)
        if _is_nothing(field.default)
    }
    return make_dict_unstructure_fn(cls, converter, **without_nothing)  # type: ignore[arg-type]


def _is_nothing(default: Any) -> bool:
    return default is None or (isinstance(default, int | tuple) and not default)


_CONVERTER = _make_converter()


def encode_record(record: Any) -> str:
    """A record, an entry of a log, a tuple of them, or a number, as JSON text."""
    return json.dumps(_plain(record))


def _plain(record: Any) -> Any:
    if isinstance(record, tuple):
        return [*map(_plain, record)]
    return record if isinstance(record, int) else writer_of(type(record))(record)


def decode_record(kind: type[R], text: str) -> R:
    """The inverse of `encode_record` for a record of that *kind*."""
    return reader_of(kind)(json.loads(text))


def writer_of(cls: type[R], leaving_out: Sequence[str] = ()) -> Callable[[R], dict[str, Any]]:
    """A function that turns a record into plain data without the fields *leaving_out*."""
    made = cache(lambda: _made_writer(cast("Any", cls), tuple(leaving_out)))
    return lambda record: made()(record)


@cache
def _made_writer(cls: Any, leaving_out: tuple[str, ...]) -> Callable[[Any], dict[str, Any]]:
    kept: dict[str, Any] = {
        field.name: override(omit=True)
        if field.name in leaving_out
        else override(omit_if_default=_is_nothing(field.default))
        for field in attrs.fields(cast("type[attrs.AttrsInstance]", cls))
    }
    return cast(
        "Callable[[R], dict[str, Any]]",
        make_dict_unstructure_fn(cls, _CONVERTER, **kept),
    )


def reader_of(cls: type[R]) -> Callable[[Mapping[str, Any]], R]:
    """A function that turns plain data into a record."""
    hook = cache(lambda: _made_reader(cast("Any", cls)))
    return lambda data: hook()(data, cls)


@cache
def _made_reader(cls: Any) -> Callable[[Mapping[str, Any], Any], R]:
    return _CONVERTER.get_structure_hook(cls)
