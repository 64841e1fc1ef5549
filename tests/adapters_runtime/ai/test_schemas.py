"""Schemas of answers: which ones are taken, and how answers are held against them."""

import time
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters_runtime.ai.schemas import Misfit, Unfinished, fitting, problems
from wfcore.rules.definition import json_schema
from wfcore.testing.strategies.ai import schemas
from wfcore.testing.strategies.values import json_values

LABEL = {"type": "object", "properties": {"label": {"enum": ["a", "b"]}}, "required": ["label"]}


def chain(links: int, wide: int) -> dict[str, Any]:
    """Definitions that refer to the next one, *wide* times each."""
    defs: dict[str, Any] = {
        f"d{n}": {"allOf": [{"$ref": f"#/$defs/d{n + 1}"}] * wide} for n in range(links)
    }
    return {"$ref": "#/$defs/d0", "$defs": {**defs, f"d{links}": {"type": "string"}}}


@pytest.mark.parametrize(
    "schema",
    [
        LABEL,
        {"$schema": "http://json-schema.org/draft-07/schema#", "definitions": {"a": True}},
        {"properties": {"$ref": {"type": "string"}, "$id": {"type": "string"}}},
        {"enum": [{"$ref": "http://x"}], "default": {"$id": 1}},
        {"$defs": {"a/b": {"type": "string"}}, "items": {"$ref": "#/$defs/a~1b"}},
        {"prefixItems": [{"type": "string"}], "items": {"$ref": "#/prefixItems/0"}},
        chain(5, 3),
    ],
)
def test_schemas_that_are_taken(schema: dict[str, Any]) -> None:
    """References within, names that look like keywords, data that look like schemas. AI-9."""
    assert json_schema.problems(schema) == []
    assert problems(schema) == []


@pytest.mark.parametrize(
    ("schema", "says"),
    [
        ({"type": "strin"}, "['type']: "),
        ({"type": "object", "properties": 3}, "['properties']: "),
        ({"pattern": "("}, "regex"),
        ({"pattern": "(?=a)b"}, "regex"),
    ],
)
def test_what_is_no_json_schema(schema: dict[str, Any], says: str) -> None:
    """A mistake in the schema is found when the definition is applied. AI-9."""
    (message,) = problems(schema)
    assert message.startswith("is no JSON Schema: ")
    assert says in message


@given(json_values())
def test_any_json_as_schema_is_judged(value: Any) -> None:
    """No JSON object makes the checks fail."""
    schema = value if isinstance(value, dict) else {"x": value}
    if not json_schema.problems(schema):
        problems(schema)


@given(schemas(), st.text())
def test_any_text_as_answer_is_judged(schema: dict[str, Any], text: str) -> None:
    """Any text fits or is a misfit; nothing else comes of it."""
    with suppress(Misfit):
        fitting(schema, text)


@pytest.mark.parametrize(
    "text",
    [
        '{"label": "a"}',
        ' {"label":"a"}\n',
        '```json\n{"label":"a"}\n```',
        '<think>\nIs it {"label": "b"}?\n</think>\n\n{"label": "a"}',
        'Is it b?\n</think>\n{"label": "a"}',
        '<thinking>b?</thinking>```json\n{"label":"a"}```',
        'Sure! Here it is:\n\n```json\r\n{\r\n"label": "a"\r\n}\r\n```\r\nShall I go on?',
        '<think>x</think>Here:\n```\n{"label": "a"}\n```',
        '```json\n{"label": "a"}',
        'Here:\n```json\n{"label": "a"}\n',
    ],
)
def test_an_answer_that_fits(text: str) -> None:
    """JSON of the schema is the output, also after thoughts and alone in a code block. AI-2."""
    assert fitting(LABEL, text) == {"label": "a"}


def test_a_text_within_json_is_not_taken_for_thoughts() -> None:
    """JSON that can be read as it stands is read so. AI-2."""
    text = '{"said": "<think>```\\n</think>"}'
    assert fitting({"type": "object"}, text) == {"said": "<think>```\n</think>"}


@pytest.mark.parametrize("text", ["<think>Well, ", '```json\n{"label": "a', "Sure:\n```\n"])
def test_what_does_not_end_is_refused(text: str) -> None:
    """Thoughts or a block without an end: to ask again would cost, and end there again. AI-2."""
    with pytest.raises(Unfinished):
        fitting(LABEL, text)


@pytest.mark.parametrize("number", ["40111222333444555666777", "1e400"])
def test_a_number_that_would_be_another_does_not_fit(number: str) -> None:
    """It is refused with its path, whatever the schema admits. NU-1."""
    with pytest.raises(Misfit, match=r"it is no JSON: rows\[0\]: the number "):
        fitting({"type": "object"}, f'{{"rows": [{number}]}}')


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("Sure! It is a.", "it is no JSON"),
        ('{"label": NaN}', "it is no JSON"),
        ('{"label": "c"}', "['label']: "),
        ("{}", 'the answer: "label" is a required property'),
        ("[" * 100 + "]" * 100, "nested deeper"),
        ('{"label": "' + "x" * 100_000 + '"}', "['label']: "),
    ],
)
def test_an_answer_that_does_not_fit(text: str, says: str) -> None:
    """What is wrong is told with its place, and shortly. AI-2."""
    with pytest.raises(Misfit) as caught:
        fitting(LABEL, text)
    assert says in str(caught.value)
    assert len(str(caught.value)) < 1_000


def test_a_pattern_takes_no_time() -> None:
    """A pattern that would keep a backtracking engine busy for ever is matched at once."""
    began = time.process_time()
    with pytest.raises(Misfit):
        fitting({"type": "string", "pattern": "^(a+)+$"}, '"' + "a" * 50_000 + 'b"')
    assert time.process_time() - began < 5
