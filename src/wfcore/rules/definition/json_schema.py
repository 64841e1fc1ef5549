"""
JSON Schemas for AI answers that a definition may use. AI-9.

Checking an answer must be fast for every schema, and must not load anything. So references stay
within the schema and are never circular, and the schema with all references expanded has a bounded
size. A library checks whether the schema is valid in all other respects.
"""

from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import unquote

from attrs import define, field

from wfcore.model.json import Json, JsonObject
from wfcore.rules.limits import JSON_DEPTH, MAX_SCHEMA_PARTS
from wfcore.rules.paths import below

DIALECTS = frozenset(
    {
        "http://json-schema.org/draft-07/schema",
        "https://json-schema.org/draft/2019-09/schema",
        "https://json-schema.org/draft/2020-12/schema",
    }
)
"""
The values of `$schema`, without a final `#`. Without `$schema`, the last of these values applies.
"""

NAMED = frozenset({"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"})
"""Keywords whose value has a schema under each name."""
MAX_DEPTH = 2 * JSON_DEPTH
_DATA = frozenset({"enum", "const", "default", "examples"})
_REFUSED = frozenset({"$id", "$anchor", "$dynamicRef", "$dynamicAnchor"})
_REFUSED |= {"$recursiveRef", "$recursiveAnchor", "$vocabulary"}
_REFUSED |= {"unevaluatedProperties", "unevaluatedItems"}


def problems(schema: JsonObject) -> list[tuple[str, str]]:
    """The reasons why *schema* cannot be used: (path below it, message)."""
    examination = _Examination(schema)
    examination.at(schema, "")
    if not examination.found:
        try:
            examination.size(schema)
        except _TooMuch as reason:
            examination.found.append(("", str(reason)))
    return examination.found


def parts(schema: Json) -> Iterator[tuple[tuple[str | int, ...], Json]]:
    """The subschemas directly inside a schema, each with the keys that lead to it."""
    if isinstance(schema, list | tuple):
        for at, one in enumerate(schema):
            yield (at,), one
    elif isinstance(schema, Mapping):
        for key, value in schema.items():
            if key in NAMED and isinstance(value, Mapping):
                yield from (((key, name), one) for name, one in value.items())
            elif key not in _DATA:
                yield (key,), value


class _TooMuch(Exception):
    """Raised when checks against a schema would take too long; the message says why."""


_OPEN = 0
"""
The size recorded for a part while it is being measured. A part that is met with this size contains
itself.
"""


@define
class _Examination:
    """Examines a whole schema. Sizes are measured with references expanded."""

    root: JsonObject
    found: list[tuple[str, str]] = field(factory=list)
    sizes: dict[int, int] = field(factory=dict)

    def at(self, part: Json, path: str, depth: int = 0) -> None:
        if depth > JSON_DEPTH:
            self.found.append((path, f"is nested deeper than {JSON_DEPTH}"))
            return
        if isinstance(part, Mapping):
            self._keywords(part, path)
        for keys, inner in parts(part):
            place = path
            for key in keys:
                place = below(place, key)
            self.at(inner, place, depth + 1)

    def _keywords(self, part: JsonObject, path: str) -> None:
        for keyword in _REFUSED & part.keys():
            self.found.append((below(path, keyword), "is not supported in an answer's schema"))
        dialect = part.get("$schema")
        if isinstance(dialect, str) and dialect.removesuffix("#") not in DIALECTS:
            known = "draft-07, 2019-09 and 2020-12"
            self.found.append((below(path, "$schema"), f"is unknown; known: {known}"))
        reference = part.get("$ref")
        if isinstance(reference, str) and self._target(reference) is None:
            message = "must lead to a part of this schema, like #/$defs/name"
            self.found.append((below(path, "$ref"), message))

    def _target(self, reference: str) -> Json:
        """The part that a reference points to; None if there is none."""
        if not reference.startswith("#") or reference[1:2] not in ("", "/"):
            return None
        found: Any = self.root
        for key in unquote(reference[1:]).split("/")[1:]:
            key = key.replace("~1", "/").replace("~0", "~")
            if isinstance(found, Mapping):
                found = found.get(key)
            elif isinstance(found, list | tuple) and key.isdecimal() and int(key) < len(found):
                found = found[int(key)]
            else:
                return None
        return found if isinstance(found, Mapping | bool) else None

    def size(self, part: Json, depth: int = 0) -> int:
        """The number of parts of *part* with references expanded. Raises `_TooMuch`."""
        if not isinstance(part, Mapping | list | tuple):
            return 1
        known = self.sizes.get(id(part))
        if known == _OPEN:
            raise _TooMuch("refers to itself; recursive schemas are not supported")
        if depth > MAX_DEPTH:
            raise _TooMuch(f"is nested deeper than {MAX_DEPTH} with its references")
        if known is None:
            self.sizes[id(part)] = _OPEN
            known = 1 + sum(self.size(one, depth + 1) for one in self._inner(part))
            self.sizes[id(part)] = known
        if known > MAX_SCHEMA_PARTS:
            raise _TooMuch(f"has over {MAX_SCHEMA_PARTS} parts with its references")
        return known

    def _inner(self, part: Json) -> Iterator[Json]:
        yield from (one for _, one in parts(part))
        reference = part.get("$ref") if isinstance(part, Mapping) else None
        if isinstance(reference, str):
            yield self._target(reference)
