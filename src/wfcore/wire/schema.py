"""JSON Schema (2020-12) from the attrs classes of the wire, for OpenAPI."""

import inspect
from collections.abc import Mapping, Sequence
from enum import Enum
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin

import attrs

from wfcore.rules.limits import MAX_COMMENT
from wfcore.rules.states import MACHINES, sentence
from wfcore.wire.converter import wire_name
from wfcore.wire.requests import Comment

Schema = dict[str, Any]
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


class Schemas:
    """Collects the schemas of all classes that are referred to, by name."""

    def __init__(self, prefix: str = "#/components/schemas/") -> None:
        self._prefix = prefix
        self.found: dict[str, Schema] = {}

    def ref(self, shape: type[Any], *, closed: bool = False) -> Schema:
        """A reference to the schema of *shape*. *closed*: further fields are refused."""
        name = shape.__name__
        if name not in self.found:
            self.found[name] = {}
            self.found[name] = self._object(shape, closed)
        return {"$ref": self._prefix + name}

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
        kinds = [kind for kind in get_args(one.type) if kind is not NoneType]
        if never_null and len(kinds) == 1:
            return self.of(kinds[0], closed)
        return self.of(one.type, closed)

    def of(self, annotation: Any, closed: bool = False) -> Schema:
        """The schema of one annotation."""
        if isinstance(annotation, type) and issubclass(annotation, Enum):
            found = {"type": "string", "enum": [member.value for member in annotation]}
            return found | ({"description": _STATES[annotation]} if annotation in _STATES else {})
        if annotation in _PRIMITIVES:
            return dict(_PRIMITIVES[annotation])
        if attrs.has(annotation):
            return self.ref(annotation, closed=closed)
        return self._generic(get_origin(annotation), get_args(annotation), closed)

    def _generic(self, origin: Any, args: tuple[Any, ...], closed: bool) -> Schema:
        if origin in (Union, UnionType):
            return {"anyOf": [self.of(one, closed) for one in args]}
        if origin is Sequence:
            return {"type": "array", "items": self.of(args[0], closed)}
        if origin is Mapping:
            values = {} if closed else self.of(args[1])
            return {"type": "object", **({"additionalProperties": values} if values else {})}
        raise TypeError(f"no schema for {origin}{args}")
