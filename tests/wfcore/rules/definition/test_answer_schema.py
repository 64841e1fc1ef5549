"""Which JSON Schemas a definition may have for answers. AI-9."""

from typing import Any

import pytest

from wfcore.rules.definition.json_schema import DIALECTS, MAX_DEPTH, parts, problems
from wfcore.rules.limits import JSON_DEPTH, MAX_SCHEMA_PARTS

LEADS = "must lead to a part of this schema, like #/$defs/name"
DIALECT = "is unknown; known: draft-07, 2019-09 and 2020-12"
UNSUPPORTED = "is not supported in an answer's schema"
ITSELF = "refers to itself; recursive schemas are not supported"
PARTS = {
    "title": "a title",
    "$defs": {"a/b": {}, "c~d": True, "e f": {}, "~1": {}, "deep": {"items": [{}, {"x": {}}]}},
}


def nested(depth: int, within: dict[str, Any] | None = None) -> dict[str, Any]:
    """A schema, else the empty one, so many times in `items`."""
    schema = within or {}
    for _ in range(depth):
        schema = {"items": schema}
    return schema


def linked(depth: int) -> dict[str, Any]:
    """Three definitions that lead one to the next; with them, the last ends at *depth*."""
    a, b = (nested(40, {"$ref": f"#/$defs/{name}"}) for name in "bc")
    return {"$defs": {"a": a, "b": b, "c": nested(depth - 83)}}


def wide(references: int) -> dict[str, Any]:
    """A schema of 99 parts, referred to so often, each reference two parts more."""
    leaf = {"allOf": [{}] * 97}
    return {"$defs": {"leaf": leaf}, "anyOf": [{"$ref": "#/$defs/leaf"}] * references}


@pytest.mark.parametrize(
    "reference",
    [
        "#",
        "#/$defs/a~1b",
        "#/$defs/c~0d",
        "#/$defs/e%20f",
        "#/%24defs/~01",
        "#/$defs/deep",
        "#/$defs/deep/items/0",
        "#/$defs/deep/items/1/x",
    ],
)
def test_a_reference_may_lead_to_any_part(reference: str) -> None:
    """By a JSON pointer, with what it and a URL escape, through objects and lists. AI-9."""
    schema = {"$defs": {**PARTS["$defs"], "it": {"$ref": reference}}}  # type: ignore[dict-item]
    assert problems(schema) == ([("", ITSELF)] if reference == "#" else [])


@pytest.mark.parametrize(
    "reference",
    [
        "",
        "http://127.0.0.1:9/x",
        "file:///etc/passwd",
        "/$defs/deep",
        "#name",
        "#$defs/deep",
        "#/none",
        "#/none/x",
        "#/title",
        "#/title/0",
        "#/$defs/a/b",
        "#/$defs/deep/items",
        "#/$defs/deep/items/2",
        "#/$defs/deep/items/-1",
        "#/$defs/deep/items/x",
        "#/$defs/deep/",
    ],
)
def test_a_reference_leads_nowhere_else(reference: str) -> None:
    """Not out of the schema, not to what is no schema in it: told once, where it stands. AI-9."""
    schema = {**PARTS, "properties": {"a b": {"not": {"$ref": reference}}}}
    assert problems(schema) == [('properties["a b"].not["$ref"]', LEADS)]


REFUSED: list[tuple[dict[str, Any], str, str]] = [
    ({"$schema": "http://evil/x"}, '["$schema"]', DIALECT),
    ({"allOf": [{}, {"$schema": "x#"}]}, 'allOf[1]["$schema"]', DIALECT),
    ({"$id": "http://evil/x"}, '["$id"]', UNSUPPORTED),
    ({"properties": {"a": {"$dynamicRef": "#x"}}}, 'properties.a["$dynamicRef"]', UNSUPPORTED),
    ({"patternProperties": {"a": {"$anchor": "x"}}}, 'patternProperties.a["$anchor"]', UNSUPPORTED),
    ({"unevaluatedProperties": False}, "unevaluatedProperties", UNSUPPORTED),
    ({"properties": [{"unevaluatedItems": {}}]}, "properties[0].unevaluatedItems", UNSUPPORTED),
    ({"properties": {"child": {"$ref": "#"}}}, "", ITSELF),
    ({"$defs": {"a": {"items": {"$ref": "#/$defs/a"}}}}, "", ITSELF),
    ({"allOf": [{"$ref": "#"}, {"$ref": "#/none"}]}, 'allOf[1]["$ref"]', LEADS),
]


@pytest.mark.parametrize(("schema", "path", "message"), REFUSED)
def test_a_schema_that_is_not_taken(schema: dict[str, Any], path: str, message: str) -> None:
    """Its only mistake is told at its place; whether it is endless, once all else is well. AI-9."""
    assert problems(schema) == [(path, message)]


def test_each_mistake_is_told() -> None:
    """However many, of whatever kind: each at its place. AI-9."""
    schema = {"$ref": "x", "$schema": "y", "$id": "z", "$anchor": "a", "items": {"$ref": "#b"}}
    assert sorted(problems(schema)) == [
        ('["$anchor"]', UNSUPPORTED),
        ('["$id"]', UNSUPPORTED),
        ('["$ref"]', LEADS),
        ('["$schema"]', DIALECT),
        ('items["$ref"]', LEADS),
    ]


@pytest.mark.parametrize(
    "schema",
    [
        *({"$schema": dialect} for dialect in sorted(DIALECTS)),
        *({"$schema": f"{dialect}#"} for dialect in sorted(DIALECTS)),
        {"properties": {"$ref": {"type": "string"}, "$id": {"type": "string"}}},
        {"enum": [{"$ref": "http://x"}], "const": {"$id": 1}, "default": {"$id": 1}},
        {"examples": [{"$anchor": "x"}], "title": "x", "$ref": 3, "$schema": 4},
    ],
)
def test_a_schema_that_is_taken(schema: dict[str, Any]) -> None:
    """The dialects, names that look like keywords, data that look like schemas. AI-9."""
    assert problems(schema) == []


LARGEST = (MAX_SCHEMA_PARTS - 101) // 101
"""References to the 99 parts: besides there are the root, `anyOf`, and the parts themselves."""


@pytest.mark.parametrize(
    ("schema", "larger", "path", "message"),
    [
        (
            nested(JSON_DEPTH),
            nested(JSON_DEPTH + 1),
            ".".join(["items"] * (JSON_DEPTH + 1)),
            f"is nested deeper than {JSON_DEPTH}",
        ),
        (
            linked(MAX_DEPTH),
            linked(MAX_DEPTH + 1),
            "",
            f"is nested deeper than {MAX_DEPTH} with its references",
        ),
        (
            {"anyOf": [{}] * (MAX_SCHEMA_PARTS - 2)},
            {"anyOf": [{}] * (MAX_SCHEMA_PARTS - 1)},
            "",
            f"has over {MAX_SCHEMA_PARTS} parts with its references",
        ),
        (
            {**wide(LARGEST), "oneOf": [True] * (MAX_SCHEMA_PARTS - 102 - 101 * LARGEST)},
            {**wide(LARGEST), "oneOf": [True] * (MAX_SCHEMA_PARTS - 101 - 101 * LARGEST)},
            "",
            f"has over {MAX_SCHEMA_PARTS} parts with its references",
        ),
    ],
)
def test_how_large_a_schema_may_be(
    schema: dict[str, Any], larger: dict[str, Any], path: str, message: str
) -> None:
    """The largest is taken, and one step more is told. AI-9."""
    assert problems(schema) == []
    assert problems(larger) == [(path, message)]


def test_endless_work_is_refused_at_once() -> None:
    """A million parts in twenty definitions, or thousands of levels, are counted in no time."""
    double = {f"d{n}": {"allOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 2} for n in range(20)}
    ((path, message),) = problems({"$ref": "#/$defs/d0", "$defs": {**double, "d20": {}}})
    assert (path, message) == ("", f"has over {MAX_SCHEMA_PARTS} parts with its references")
    leaf = {"allOf": [{}] * (MAX_SCHEMA_PARTS - 4)}
    ((_, again),) = problems(
        {"$defs": {"leaf": leaf}, "anyOf": [{"$ref": "#/$defs/leaf"}] * 30_000}
    )
    assert again == message
    ((_, message),) = problems(nested(5_000))
    assert message == f"is nested deeper than {JSON_DEPTH}"


def test_the_parts_of_a_schema() -> None:
    """Those in lists and under names and keywords, each with its keys; no data."""
    schema = {
        "type": "object",
        "properties": {"a": 1, "enum": 2},
        "allOf": [3],
        "enum": [4],
        "dependentSchemas": [5],
    }
    assert list(parts(schema)) == [
        (("type",), "object"),
        (("properties", "a"), 1),
        (("properties", "enum"), 2),
        (("allOf",), [3]),
        (("dependentSchemas",), [5]),
    ]
    assert list(parts(["a", {}])) == [((0,), "a"), ((1,), {})]
    assert list(parts("text")) == []
