"""Named mistakes in AI steps and budgets, and what is said about them."""

from typing import Any

import pytest

from adapters_runtime.ai import schemas
from adapters_runtime.expressions.templates import MiniJinjaTemplates
from wfcore.errors import InvalidDefinition
from wfcore.model.workflow import AiStep, Budget, Definition, OnExceeded
from wfcore.rules.definition.check import check_definition
from wfcore.time import DurationMs

ASK = {"name": "ask", "kind": "ai", "model": "openai:gpt-5-mini", "prompt": "Say it"}


def with_step(**fields: Any) -> dict[str, Any]:
    given = {**ASK, **fields}
    return {"name": "W", "steps": [{k: v for k, v in given.items() if v is not ...}]}


def with_budget(budget: Any) -> dict[str, Any]:
    return {"name": "W", "steps": [ASK], "budget": budget}


def check(document: Any) -> Definition:
    return check_definition(
        document, MiniJinjaTemplates().problems, schema_problems=schemas.problems
    )


MISTAKES: list[tuple[Any, str]] = [
    (with_step(model=...), "steps[0].model: is required"),
    (with_step(prompt=...), "steps[0].prompt: is required"),
    (with_step(prompt=" "), "steps[0].prompt: must not be empty"),
    (
        with_step(model="gpt-5-mini"),
        "steps[0].model: must be provider:model, like openai:gpt-5-mini; "
        "the provider in small letters",
    ),
    (
        with_step(model="OpenAI:gpt"),
        "steps[0].model: must be provider:model, like openai:gpt-5-mini; "
        "the provider in small letters",
    ),
    (
        with_step(prompt="{{ variables.x }}"),
        "steps[0].prompt: unknown name variables.x; none is known here",
    ),
    (with_step(maxTokens=0), "steps[0].maxTokens: must be a whole number from 1 to 100,000,000"),
    (with_step(temperature=2.1), "steps[0].temperature: must be a number from 0 to 2"),
    (
        with_step(fallback=["openai:other", "gpt"]),
        "steps[0].fallback[1]: must be provider:model, like openai:gpt-5-mini; "
        "the provider in small letters",
    ),
    (
        with_step(fallback=["openai:other", "openai:gpt-5-mini"]),
        "steps[0].fallback[1]: openai:gpt-5-mini is asked before; each model is asked once",
    ),
    (with_step(fallback=[]), "steps[0].fallback: must have at least 1 item"),
    (with_step(schema="x"), "steps[0].schema: must be a JSON Schema, an object, not text"),
    (
        with_step(schema={"type": "objct"}),
        "steps[0].schema: is no JSON Schema: ['type']: \"objct\" is not valid under any of the "
        "schemas listed in the 'anyOf' keyword",
    ),
    (
        with_step(schema={"properties": {"a": {"$ref": "http://x/y"}}}),
        'steps[0].schema.properties.a["$ref"]: must lead to a part of this schema, '
        "like #/$defs/name",
    ),
    (
        with_step(schema={"items": {"$ref": "#"}}),
        "steps[0].schema: refers to itself; recursive schemas are not supported",
    ),
    (
        with_step(schema={"$ref": "x"}),
        'steps[0].schema["$ref"]: must lead to a part of this schema, like #/$defs/name',
    ),
    (with_step(prompt=3), "steps[0].prompt: must be text, not a number"),
    (with_step(prompt="a {{ "), "steps[0].prompt: "),
    (with_step(network=True), "steps[0].network: unknown field; known: name, kind, when, "),
    (with_budget({}), "budget: needs maxCostUsd or maxTokens"),
    (with_budget({"maxCostUsd": 0}), "budget.maxCostUsd: must be over 0 and at most 1000000"),
    (with_budget({"maxCostUsd": -1.5}), "budget.maxCostUsd: must be over 0 and at most 1000000"),
    (with_budget({"maxCostUsd": "1e99"}), "budget.maxCostUsd: must be over 0 and at most 1000000"),
    (with_budget({"maxCostUsd": "NaN"}), "budget.maxCostUsd: must be over 0 and at most 1000000"),
    (with_budget({"maxCostUsd": "much"}), "budget.maxCostUsd: must be an amount in USD like 0.50"),
    (with_budget({"maxCostUsd": "inf"}), "budget.maxCostUsd: must be over 0 and at most 1000000"),
    (
        with_budget({"maxCostUsd": "1000000.01"}),
        "budget.maxCostUsd: must be over 0 and at most 1000000",
    ),
    (with_budget(3), "budget: must be an object, not a number"),
    (with_budget({"maxTokens": 0}), "budget.maxTokens: must be a whole number from 1 to "),
    (with_budget({"maxTokens": 1, "x": 1}), "budget.x: unknown field; known: "),
    (
        with_budget({"maxCostUsd": []}),
        "budget.maxCostUsd: must be an amount in USD like 0.50, not a list",
    ),
    (
        with_budget({"maxCostUsd": True}),
        "budget.maxCostUsd: must be an amount in USD like 0.50, not true",
    ),
    (
        with_budget({"maxCostUsd": "0.0000000000001"}),
        "budget.maxCostUsd: has more than 12 decimal places",
    ),
    (
        with_budget({"maxTokens": 5, "onExceeded": "ask"}),
        "budget.onExceeded: unknown value 'ask'; known: fail, approve",
    ),
]


@pytest.mark.parametrize(("document", "message"), MISTAKES)
def test_a_mistake_is_said_like_this(document: Any, message: str) -> None:
    """Each of these mistakes is said once, with its path, alone. AI-9, BU-1, DF-1."""
    with pytest.raises(InvalidDefinition) as caught:
        check(document)
    (said,) = str(caught.value).splitlines()
    assert said == message or (message.endswith(" ") and said.startswith(message))


def test_what_is_left_out() -> None:
    """An AI step has two minutes, the model's own limits, one attempt and no schema. AI-1."""
    (step,) = check(with_step()).steps
    assert step == AiStep("ask", "openai:gpt-5-mini", "Say it")
    assert isinstance(step, AiStep)
    assert step.timeout_ms == DurationMs(120_000)
    assert (step.max_tokens, step.temperature, step.schema, step.system) == (None, None, None, "")
    assert (step.models, step.providers) == (("openai:gpt-5-mini",), ("openai",))


@pytest.mark.parametrize(
    ("written", "kept"),
    [
        (0.5, "0.5"),
        ("0.50", "0.5"),
        (1, "1"),
        ("1e-3", "0.001"),
        (1e-12, "0.000000000001"),
        (1_000_000, "1000000"),
    ],
)
def test_amounts_of_money(written: Any, kept: str) -> None:
    """An amount is a number or the same as text, and keeps every digit. BU-1."""
    budget = check(with_budget({"maxCostUsd": written})).budget
    assert budget == Budget(kept, None, OnExceeded.FAIL)
