"""The published JSON Schema says what the checker says, as far as a schema can. DF-10."""

from collections.abc import Iterator
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wfcore.model.json import Json
from wfcore.model.workflow import Definition
from wfcore.rules.definition.check import definition_schema
from wfcore.rules.definition.steps import KINDS
from wfcore.rules.definition.values import (
    Check,
    Field,
    Findings,
    accepting,
    boolean,
    by_kind,
    list_of,
    number,
    record,
    text,
)
from wfcore.testing.strategies.definition import definitions
from wfcore.testing.strategies.values import json_values
from wfcore.testing.strategies.written import leaves, written

from .test_definition import check, mistakes, replaced


@pytest.fixture(scope="module")
def schema() -> dict[str, Any]:
    return definition_schema()


@pytest.fixture(scope="module")
def validator(schema: dict[str, Any]) -> Any:
    return jsonschema_rs.validator_for(schema)


CODE: dict[str, Json] = {"name": "a", "kind": "code", "language": "bash", "source": "true"}
ASK: dict[str, Json] = {"name": "b", "kind": "manual_approval"}
DOCUMENT: dict[str, Json] = {
    "name": "W",
    "variables": {"n": {"type": "number", "default": 3}},
    "triggers": [{"kind": "SCHEDULE", "cron": "0 9 * * *"}],
    "concurrency": {"limit": 1},
    "budget": {"maxTokens": 10},
    "steps": [
        CODE,
        {**ASK, "groups": [{"name": "g", "rows": "{{ variables.n }}", "columns": [{"key": "k"}]}]},
        {
            "name": "c",
            "kind": "parallel",
            "branches": [{"name": "x", "steps": [{**CODE, "name": "d"}]}],
        },
        {"name": "e", "kind": "loop", "items": [1], "as": "one", "steps": [{**CODE, "name": "f"}]},
        {"name": "g", "kind": "delay", "duration": "5m"},
        {"name": "h", "kind": "ai", "model": "openai:gpt-5", "prompt": "say"},
        {"name": "i", "kind": "workflow", "workflow": "Other"},
    ],
}  # fmt: skip


def test_the_schema_is_one(schema: dict[str, Any], validator: Any) -> None:
    """It is a JSON Schema of draft 7, and accepts a document with every kind of step."""
    assert schema["$schema"] == "http://json-schema.org/draft-07/schema#"
    assert schema["title"] == "A workflow definition of wfcore"  # what an editor shows
    jsonschema_rs.meta.validate(schema)
    check(DOCUMENT)
    validator.validate(DOCUMENT)


@given(definitions())
def test_what_the_checker_accepts_the_schema_accepts(
    validator: Any, definition: Definition
) -> None:
    """No author is told by an editor that a good definition is a bad one."""
    validator.validate(written(definition))


@given(definitions(), st.data())
def test_what_the_schema_refuses_the_checker_refuses(
    validator: Any, definition: Definition, data: st.DataObject
) -> None:
    """A document with one part replaced by any JSON: where the schema objects, so does it."""
    document = written(definition)
    keys = data.draw(st.sampled_from([keys for _, keys in leaves(document)]))
    keys = keys[: data.draw(st.integers(1, len(keys)))]
    changed = replaced(document, keys, data.draw(json_values()))
    assert validator.is_valid(changed) or mistakes(changed)


def agree(one: Check, value: Json) -> bool:
    """Whether a check and its schema say the same of *value*."""
    findings = Findings()
    one(value, "at", findings)
    return jsonschema_rs.is_valid(one.schema, value) != bool(findings.problems)


@given(
    st.integers(0, 3),
    st.none() | st.integers(3, 5),
    st.sampled_from(["", "[ab]+"]),
    st.text("abc", max_size=7) | st.sampled_from([None, True, 3, ["a"], {"a": "b"}]),
)
def test_a_text_and_its_schema_have_the_same_bounds(least, most, pattern, value):
    """A check of text with any bounds and any form refuses just what its schema refuses."""
    assert agree(text(least, most, pattern, "a word of a and b"), value)


@given(
    st.integers(0, 3),
    st.none() | st.integers(3, 5),
    st.lists(st.booleans() | st.just("yes"), max_size=7) | st.sampled_from([None, {}, "[]", 0]),
)
def test_a_list_and_its_schema_have_the_same_bounds(least, most, value):
    """A check of a list with any bounds refuses just what its schema refuses."""
    assert agree(list_of(boolean, least, most), value)


@given(
    st.integers(-2, 2),
    st.integers(2, 5),
    st.booleans(),
    st.integers(-4, 7) | st.sampled_from([0.5, 5.5, None, "3", True, [3]]),
)
def test_a_number_and_its_schema_have_the_same_bounds(least, most, whole, value):
    """A check of a number with any bounds, whole or not, refuses just what its schema refuses."""
    assert agree(number(least, most, whole), value)


@given(
    st.dictionaries(
        st.sampled_from(["a", "b", "c", "d"]), st.booleans() | st.just("yes"), max_size=4
    )
    | st.sampled_from([None, [], "a", 3])
)
def test_an_object_and_its_schema_have_the_same_fields(value):
    """A check of an object refuses just what its schema refuses, forbidden fields included."""
    nothing = accepting(False)(lambda document, path, findings: findings.add(path, "may not be"))
    fields = {
        "a": Field(boolean, "a", required=True),
        "b": Field(boolean, "b"),
        "c": Field(nothing, "c"),
    }
    assert agree(record(dict, fields), value)


@given(st.sampled_from([{"kind": "x", "a": 1}, {"kind": "y", "a": 1}, {"kind": "z"}, {}, []]))
def test_the_kind_of_an_object_chooses_its_schema(value):
    """Of an object with a kind the schema of this kind is asked, and no kind is refused."""
    schema = by_kind({"x": {"properties": {"a": {"const": 1}}}, "y": False})
    assert jsonschema_rs.is_valid(schema, value) == (value == {"kind": "x", "a": 1})


def kinds_of_steps(schema: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for row in schema["definitions"]["step"]["allOf"]:
        yield row["if"]["properties"]["kind"]["const"], row["then"]


def undescribed(schema: Any, path: str = "") -> Iterator[str]:
    """The properties, at whatever depth, that say nothing about themselves."""
    if isinstance(schema, list):
        for at, one in enumerate(schema):
            yield from undescribed(one, f"{path}/{at}")
    elif isinstance(schema, dict):
        if "if" in schema:  # which kind it is
            schema = {"then": schema["then"]}
        for name, one in schema.get("properties", {}).items():
            if set(one) != {"enum"} and not one.get("description", "").endswith("."):
                yield f"{path}/{name}"
        for name, one in schema.items():
            yield from undescribed(one, f"{path}/{name}")


def test_every_field_is_described(schema: dict[str, Any]) -> None:
    """An editor has a sentence to show for each field at every depth."""
    assert list(undescribed(schema)) == []


def test_every_field_of_every_kind_is_there(schema: dict[str, Any]) -> None:
    """The schema has the kinds of the checker's table, and of each the fields that it may have."""
    found = dict(kinds_of_steps(schema))
    assert set(found) == set(KINDS)
    for kind, row in KINDS.items():
        refused = {name for name, field in row.fields.items() if field.check.schema is False}
        assert set(row.fields) - refused <= set(found[kind]["properties"]), kind
        assert not refused & set(found[kind]["properties"]), kind


@pytest.mark.parametrize(
    ("keys", "value"),
    [
        (("nmae",), "W"),
        (("name",), ""),
        (("name",), "a\nb"),
        (("steps",), []),
        (("steps", 0, "kind"), "cod"),
        (("steps", 0, "language"), "pyton"),
        (("steps", 0, "timout"), "3h"),
        (("steps", 0, "timeout"), "3 h"),
        (("steps", 0, "timeout"), 0),
        (("steps", 0, "retry"), {"attempts": 0}),
        (("steps", 0, "continueOnError"), "yes"),
        (("steps", 0, "when"), "no template"),
        (("steps", 0, "requirements"), "requests==1.0"),
        (("steps", 1, "onInterrupt"), "fail"),
        (("steps", 1, "approvers"), "ann@example.org"),
        (("steps", 1, "groups", 0, "rows"), 3),
        (("steps", 1, "groups", 0, "columns", 0, "type"), "text"),
        (("steps", 2, "branches"), []),
        (("steps", 2, "branches", 0, "steps", 0, "sorce"), "x"),
        (("steps", 3, "as"), "a-b"),
        (("steps", 3, "maxParallel"), 0),
        (("steps", 4, "timeout"), "3s"),
        (("steps", 5, "model"), "gpt"),
        (("steps", 6, "inputs"), []),
        (("variables", "n", "type"), "int"),
        (("variables", "a b"), {}),
        (("triggers", 0, "kind"), "CRON"),
        (("triggers", 0, "crom"), "x"),
        (("concurrency", "limit"), 0),
        (("concurrency", "onLimit"), "wait"),
        (("budget",), {}),
    ],
    ids=str,
)  # fmt: skip
def test_an_editor_sees_the_common_mistakes(
    validator: Any, keys: tuple[str | int, ...], value: Json
) -> None:
    """Typing errors, wrong types, unknown values, numbers out of range: both refuse them."""
    changed = replaced(DOCUMENT, keys, value)
    assert not validator.is_valid(changed)
    assert mistakes(changed)


@pytest.mark.parametrize("name", ["name", "kind", "language"])
def test_an_editor_misses_what_must_be_there(validator: Any, name: str) -> None:
    """A required field that is missing is refused by both."""
    step = {key: value for key, value in CODE.items() if key != name}
    changed = replaced(DOCUMENT, ("steps", 0), step)
    assert not validator.is_valid(changed)
    assert mistakes(changed)
