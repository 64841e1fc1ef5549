"""
The reduction of a schema to a form that constrained decoding accepts.

Providers enforce the structure of an answer only for simple schemas whose objects are closed. So an
open object is closed unless the schema says otherwise, which only narrows the possible answers, and
limits on values are left out: the prompt has them, and every answer is checked here anyway.
"""

from collections.abc import Mapping
from typing import Any

from attrs import frozen

from wfcore.model.json import Json, JsonObject
from wfcore.rules.definition.json_schema import NAMED, parts

_STRUCTURE = frozenset(
    {
        *("type", "properties", "required", "additionalProperties", "items", "enum", "const"),
        *("anyOf", "$ref", "$defs", "definitions", "title", "description"),
    }
)
_LEFT_OUT = frozenset(
    {
        *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
        *("minLength", "maxLength", "pattern", "format", "default", "examples", "$comment"),
        *("minItems", "maxItems", "uniqueItems", "minProperties", "maxProperties"),
        *("$schema", "deprecated", "readOnly", "writeOnly"),
    }
)


@frozen
class ReducedSchema:
    """A reduced schema. `strict`: every property is required. `whole`: nothing was left out."""

    schema: JsonObject
    strict: bool
    whole: bool


def is_object(schema: JsonObject) -> bool:
    """Whether answers are objects at the top level, as every provider requires."""
    return schema.get("type") == "object"


def reduced(schema: JsonObject) -> ReducedSchema | None:
    """*schema* in the form that providers enforce, or None if *schema* is not simple enough."""
    if not is_object(schema) or not _simple(schema):
        return None
    closed = _closed(schema)
    return ReducedSchema(closed, _strict(closed), not _has(schema, _LEFT_OUT))


def _simple(part: Json) -> bool:
    if isinstance(part, Mapping):
        if not part.keys() <= _STRUCTURE | _LEFT_OUT:
            return False
        if part.get("additionalProperties", False) is not False:
            return False
        if {"anyOf", "$ref"} & part.keys() and "properties" in part:
            return False
        if part.get("type") == "object" and "properties" not in part:
            return False
    return all(_simple(inner) for inner in _schemas(part))


def _schemas(part: Json) -> list[Json]:
    return [inner for _, inner in parts(part) if isinstance(inner, Mapping | list | tuple)]


def _closed(part: Any) -> Any:
    if isinstance(part, list | tuple):
        return [_closed(one) for one in part]
    if not isinstance(part, Mapping):
        return part
    kept = {
        key: {name: _closed(one) for name, one in value.items()}
        if key in NAMED and isinstance(value, Mapping)
        else value
        if key in ("enum", "const")
        else _closed(value)
        for key, value in part.items()
        if key not in _LEFT_OUT
    }
    return {**kept, "additionalProperties": False} if "properties" in kept else kept


def _strict(part: Json) -> bool:
    if isinstance(part, Mapping):
        properties, required = part.get("properties"), part.get("required", ())
        if isinstance(properties, Mapping) and not properties.keys() <= {*_texts(required)}:
            return False
    return all(_strict(inner) for inner in _schemas(part))


def _texts(value: Json) -> list[str]:
    return [one for one in value if isinstance(one, str)] if isinstance(value, list | tuple) else []


def _has(part: Json, keywords: frozenset[str]) -> bool:
    if isinstance(part, Mapping) and keywords & part.keys():
        return True
    return any(_has(inner, keywords) for inner in _schemas(part))
