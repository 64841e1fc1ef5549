"""
JSON Schema (2020-12) derived from the wire classes, for OpenAPI.

It is written for code generators: every class, enum and kind of row is a component of its own, a
nullable primitive is a list of types, and free-form objects are marked as such.
"""

import inspect
from collections.abc import Mapping, Sequence
from enum import Enum
from types import NoneType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin

import attrs

from wfcore.model.access import Tier
from wfcore.model.json import JsonObject
from wfcore.rules.limits import MAX_COMMENT
from wfcore.rules.states import MACHINES, sentence
from wfcore.wire.converter import LARGEST_NUMBER, wire_name
from wfcore.wire.requests import Comment

Schema = dict[str, Any]
_FREE: Schema = {"type": "object", "additionalProperties": True}
_PRIMITIVES: Mapping[Any, Schema] = {
    Any: {},
    str: {"type": "string"},
    bool: {"type": "boolean"},
    int: {"type": "integer", "format": "int64"},
    NoneType: {"type": "null"},
    Comment: {"type": "string", "maxLength": MAX_COMMENT},
}
_STATES: Mapping[type, str] = {
    type(machine.initial): f"{sentence(machine)}." for machine in MACHINES.values()
}
"""What the tables of states say of each status."""


_NAMES: Mapping[type, str] = {Tier: "Plan"}
"""Names in the API that are not those of the class."""
_PREFIX = "#/components/schemas/"


class Schemas:
    """Collects the schemas of all classes that are referred to, by name."""

    def __init__(self) -> None:
        self.found: dict[str, Schema] = {}

    def ref(self, shape: type[Any], *, closed: bool = False) -> Schema:
        """A reference to the schema of *shape*. *closed*: additional fields are refused."""
        name = shape.__name__
        if name not in self.found:
            self.found[name] = {}
            self.found[name] = self._object(shape, closed)
        return {"$ref": _PREFIX + name}

    def _object(self, shape: type[Any], closed: bool) -> Schema:
        fields = attrs.fields(shape)
        schema: Schema = {
            "type": "object",
            "properties": {wire_name(one.name): self._field(one, closed) for one in fields},
            "required": [wire_name(one.name) for one in fields if one.default is attrs.NOTHING],
        }
        if shape.__dict__.get("__doc__"):
            schema["description"] = inspect.cleandoc(shape.__doc__ or "").replace("\n", " ")
        if not schema["required"]:
            del schema["required"]
        if closed:
            schema["additionalProperties"] = False
        return schema

    def _field(self, one: "attrs.Attribute[Any]", closed: bool) -> Schema:
        never_null = one.metadata.get("absent") or one.metadata.get("not_null")
        if never_null and NoneType in get_args(one.type):
            return self.of(_not_none(one.type), closed)
        return self.of(one.type, closed)

    def of(self, annotation: Any, closed: bool = False) -> Schema:
        """The schema of one annotation."""
        if isinstance(annotation, type) and issubclass(annotation, Enum):
            return self._enum(annotation)
        if annotation is int and closed:
            return _PRIMITIVES[int] | {"maximum": LARGEST_NUMBER}
        if annotation in _PRIMITIVES:
            return dict(_PRIMITIVES[annotation])
        if attrs.has(annotation):
            return self.ref(annotation, closed=closed)
        return self._generic(annotation, get_origin(annotation), get_args(annotation), closed)

    def _enum(self, kind: type[Enum]) -> Schema:
        described = {"description": _STATES[kind]} if kind in _STATES else {}
        name = _NAMES.get(kind, kind.__name__)
        self.found[name] = {
            "type": "string",
            "enum": [member.value for member in kind],
            **described,
        }
        return {"$ref": _PREFIX + name}

    def _generic(self, annotation: Any, origin: Any, args: tuple[Any, ...], closed: bool) -> Schema:
        if origin is Annotated:
            name, about = args[1:]
            self.found[name] = _FREE | {"description": about}
            return {"$ref": _PREFIX + name}
        if origin in (Union, UnionType):
            return _nullable(self.of(_not_none(annotation), closed))
        if origin is Sequence:
            return {"type": "array", "items": self.of(args[0], closed)}
        if annotation == JsonObject or (origin is Mapping and args[1] is Any):
            return dict(_FREE)
        if origin is Mapping:
            return {"type": "object", "additionalProperties": self.of(args[1], closed)}
        raise TypeError(f"no schema for {annotation}")


def _not_none(annotation: Any) -> Any:
    """The X of `X | None`; the wire classes use no other unions."""
    (kind,) = (one for one in get_args(annotation) if one is not NoneType)
    return kind


def _nullable(schema: Schema) -> Schema:
    if "type" in schema:
        return schema | {"type": [schema["type"], "null"]}
    return {"anyOf": [schema, {"type": "null"}]}
