"""How a question is written in each protocol, and asked again in another form where refused."""

import json
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters_runtime.ai.anthropic import Anthropic
from adapters_runtime.ai.dialect import Manner, json_bytes
from adapters_runtime.ai.models import WireModels
from adapters_runtime.ai.openai import OpenAi, first_manner
from adapters_runtime.ai.providers import Provider, ProviderKind
from adapters_runtime.ai.reduced import reduced
from tests.support.model_server import KEY, ModelServer, refuses, sends
from wfcore.ports.models import ModelRefused, ModelRequest
from wfcore.testing.strategies.ai import schemas
from wfcore.testing.strategies.values import json_values

from .conftest import BOTH

SCHEMA = {
    "type": "object",
    "properties": {"label": {"type": "string"}},
    "required": ["label"],
}
CLOSED = {**SCHEMA, "additionalProperties": False}


async def test_chat_completions(models: WireModels, server: ModelServer) -> None:
    """System and user message, limit and temperature, the key as Bearer. AI-1."""
    await models.ask(ModelRequest("local:llama3.1:8b", "Say it", "Be brief.", 50, 0.5))
    (asked,) = server.asked
    assert (asked.method, asked.path) == ("POST", "/v1/chat/completions")
    assert asked.headers["authorization"] == f"Bearer {KEY}"
    assert asked.body == {
        "model": "llama3.1:8b",
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "Say it"},
        ],
        "max_tokens": 50,
        "temperature": 0.5,
    }


async def test_an_answer_in_parts(models: WireModels, server: ModelServer) -> None:
    """The text of all parts of an answer is its text; what is no text in it is left out."""
    parts = [
        {"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}]},
        {"type": "text", "text": '{"n":'},
        {"type": "text", "text": " 1}"},
    ]
    choice = {"index": 0, "message": {"content": parts}, "finish_reason": "stop"}
    used = {"prompt_tokens": 1, "completion_tokens": 2}
    server.will(sends(json.dumps({"choices": [choice], "usage": used}).encode()))
    assert (await models.ask(ModelRequest("local:m", "p"))).text == '{"n": 1}'


async def test_messages(models: WireModels, server: ModelServer) -> None:
    """System apart from the message, a limit always, the key in its own header. AI-1."""
    await models.ask(ModelRequest("anthropic:claude-x", "Say it", "Be brief."))
    (asked,) = server.asked
    assert (asked.method, asked.path) == ("POST", "/v1/messages")
    assert asked.headers["x-api-key"] == KEY
    assert asked.headers["anthropic-version"] == "2023-06-01"
    assert "authorization" not in asked.headers
    assert asked.body == {
        "model": "claude-x",
        "max_tokens": 4096,
        "messages": [{"role": "user", "content": "Say it"}],
        "system": "Be brief.",
    }


async def test_schemas_in_the_providers_own_way(models: WireModels, server: ModelServer) -> None:
    """A simple schema goes by the protocol's own field, closed; the prompt stays as it is."""
    for model in BOTH:
        await models.ask(ModelRequest(model, "Say it", schema=SCHEMA))
    chat, messages = (asked.body for asked in server.asked)
    own = {"name": "answer", "schema": CLOSED, "strict": True}
    assert chat["response_format"] == {"type": "json_schema", "json_schema": own}
    assert messages["output_config"] == {"format": {"type": "json_schema", "schema": CLOSED}}
    assert [asked.prompt for asked in server.asked] == ["Say it", "Say it"]


@pytest.mark.parametrize("model", BOTH)
async def test_what_the_provider_does_not_enforce_is_told_in_words(
    models: WireModels, server: ModelServer, model: str
) -> None:
    """Limits of values are left out of the provider's schema, and stand in the prompt."""
    score = {"type": "integer", "minimum": 0, "maximum": 10}
    schema = {"type": "object", "properties": {"score": score}, "required": ["score"]}
    await models.ask(ModelRequest(model, "Say it", schema=schema))
    (asked,) = server.asked
    assert json.dumps(schema, separators=(",", ":")) in asked.prompt
    assert "minimum" not in json.dumps({**asked.body, "messages": []})


@pytest.mark.parametrize("model", BOTH)
async def test_lists_are_asked_for_in_words(
    models: WireModels, server: ModelServer, model: str
) -> None:
    """Providers answer with objects only; another schema is told in words. AI-2."""
    await models.ask(ModelRequest(model, "Say it", schema={"type": "array", "items": SCHEMA}))
    (asked,) = server.asked
    assert not {"response_format", "output_config"} & asked.body.keys()
    assert "Answer with JSON only" in asked.prompt


@pytest.mark.parametrize(
    ("model", "said"),
    [
        (BOTH[0], "This response_format type is unavailable now"),
        (BOTH[1], "output_config.format: not supported for this model"),
    ],
)
async def test_a_provider_without_schemas(
    models: WireModels, server: ModelServer, model: str, said: str
) -> None:
    """A refusal of the provider's own way leads to words, and is remembered for the model."""
    server.will(refuses(400, said))
    for _ in range(2):
        await models.ask(ModelRequest(model, "Say it", schema=SCHEMA))
    refused, *others = server.asked
    assert {"response_format", "output_config"} & refused.body.keys()
    assert len(others) == 2
    for asked in others:
        assert not {"response_format", "output_config"} & asked.body.keys()
        assert "Answer with JSON only" in asked.prompt


async def test_the_newer_name_of_the_limit(models: WireModels, server: ModelServer) -> None:
    """A refusal that names `max_completion_tokens` is heeded, and remembered."""
    said = "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead."
    server.will(refuses(400, said))
    for _ in range(2):
        await models.ask(ModelRequest(BOTH[0], "Say it", max_tokens=50))
    names = [{"max_tokens", "max_completion_tokens"} & asked.body.keys() for asked in server.asked]
    newer = {"max_completion_tokens"}
    assert names == [{"max_tokens"}, newer, newer]


@pytest.mark.parametrize("model", BOTH)
async def test_a_refusal_is_not_argued_with_for_ever(
    models: WireModels, server: ModelServer, model: str
) -> None:
    """Each other form is tried once; then the refusal stands."""
    for _ in range(9):
        server.will(refuses(400, "max_completion_tokens and json_schema: no"))
    with pytest.raises(ModelRefused):
        await models.ask(ModelRequest(model, "Say it", max_tokens=5, schema=SCHEMA))
    assert len(server.asked) <= 3


@pytest.mark.parametrize(
    ("url", "newer"),
    [
        ("https://api.openai.com/v1", True),
        ("https://eu.api.openai.com/v1", True),
        ("https://mine.openai.azure.com/openai/v1", True),
        ("https://notopenai.com/v1", False),
        ("http://localhost:11434/v1", False),
    ],
)
def test_who_knows_the_newer_name(url: str, newer: bool) -> None:
    """OpenAI's own hosts are asked with the newer name of the limit at first."""
    assert first_manner(Provider("p", ProviderKind.OPENAI, url, "P")).completion_tokens is newer


QUESTIONS = st.builds(
    ModelRequest,
    st.just("p:m"),
    st.text(st.characters()),
    st.text(st.characters()),
    st.none() | st.integers(1, 10**6),
    st.none() | st.floats(0, 2),
    st.none() | schemas(),
)


@given(QUESTIONS, st.booleans(), st.booleans())
def test_every_question_can_be_written(question: ModelRequest, newer: bool, own: bool) -> None:
    """Any text, lone surrogates too, becomes JSON that says it, and no field is null. AI-1."""
    for dialect in (OpenAi(), Anthropic()):
        written = json.loads(json_bytes(dialect.body(question, "m", Manner(newer, own))))
        content = written["messages"][-1]["content"]
        assert content.startswith(_sent(question.prompt))
        assert None not in written.values()
        system = written.get("system", written["messages"][0]["content"])
        assert not question.system or system == _sent(question.system)


def _sent(text: str) -> str:
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


@given(schemas(), json_values())
def test_a_reduced_schema_is_a_schema(schema: dict[str, Any], value: Any) -> None:
    """It is sound JSON Schema, all its objects are closed, and strict means all is required."""
    found = reduced(schema)
    if found is None:
        return
    jsonschema_rs.meta.validate(dict(found.schema))
    jsonschema_rs.is_valid(dict(found.schema), value)
    for part in _objects(found.schema):
        assert part["additionalProperties"] is False
        if found.strict:
            assert set(part["properties"]) == set(part["required"])


CHOICE = {"anyOf": [{"type": "string"}, {"type": "null"}]}
FIELDS = {"type": "object", "properties": {"a": {"type": "string"}}}


def test_a_choice_among_schemas_is_reduced_and_one_beside_fields_is_not() -> None:
    """Fields beside `anyOf` or `$ref` would close what these leave open."""
    found = reduced({"type": "object", "properties": {"a": CHOICE}, "required": ["a"]})
    assert found is not None
    assert found.strict
    for besides in (CHOICE, {"$ref": "#/$defs/b", "$defs": {"b": FIELDS}}):
        assert reduced({**FIELDS, **besides}) is None


@given(schemas(), st.data())
def test_what_fits_a_whole_reduced_schema_fits_the_schema(
    schema: dict[str, Any], data: st.DataObject
) -> None:
    """Closing objects only narrows what may come back. AI-2."""
    found = reduced(schema)
    if found is None or not found.whole:
        return
    value = data.draw(_fitting(found.schema))
    assert jsonschema_rs.is_valid(dict(found.schema), value)
    assert jsonschema_rs.is_valid(schema, value)


def _objects(part: Any) -> list[Any]:
    if isinstance(part, list):
        return [one for inner in part for one in _objects(inner)]
    if not isinstance(part, dict):
        return []
    own = [part] if part.get("type") == "object" else []
    inner = [*part.get("properties", {}).values(), part.get("items"), *part.get("anyOf", [])]
    return own + [one for each in inner for one in _objects(each)]


def _fitting(schema: Any) -> st.SearchStrategy[Any]:
    """Values of the schemas that the strategies make."""
    if "anyOf" in schema:
        return st.one_of([_fitting(one) for one in schema["anyOf"]])
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    match schema["type"]:
        case "object":
            required = set(schema.get("required", ()))
            fields = {name: _fitting(one) for name, one in schema["properties"].items()}
            return st.fixed_dictionaries(
                {name: fields[name] for name in required},
                optional={name: one for name, one in fields.items() if name not in required},
            )
        case "array":
            return st.lists(_fitting(schema["items"]), max_size=2)
        case "integer":
            return st.integers(-5, 5)
        case "number":
            return st.floats(-5, 5)
        case "boolean":
            return st.booleans()
        case _:
            return st.text(max_size=3)
