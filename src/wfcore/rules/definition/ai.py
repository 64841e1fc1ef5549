"""The fields of AI steps, and of budgets. AI-9, BU-1."""

from collections.abc import Iterator, Mapping
from decimal import Decimal, InvalidOperation
from typing import Any

from wfcore.model.json import Json
from wfcore.model.workflow import Budget, OnExceeded
from wfcore.rules.definition import json_schema
from wfcore.rules.definition.values import (
    Check,
    Field,
    Findings,
    accepting,
    any_of,
    choice,
    list_of,
    number,
    object_schema,
    record,
    template,
    text,
)
from wfcore.rules.limits import MAX_COST_USD, MAX_FALLBACKS, MAX_NAME, MAX_PROMPT_TOKENS
from wfcore.rules.numbers import cost_text

model: Check = text(
    most=MAX_NAME,
    pattern=r"[a-z][a-z0-9_]*:[!-~]+",
    wanted="provider:model, like openai:gpt-5-mini; the provider in small letters",
)
fallback: Check = list_of(model, least=1, most=MAX_FALLBACKS)
max_tokens: Check = number(1, MAX_PROMPT_TOKENS, whole=True)
temperature: Check = number(0, 2)


def model_problems(values: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The models of `fallback` that the step asks before. AI-11."""
    asked = [values.get("model")]
    for at, name in enumerate(values.get("fallback") or ()):
        if name in asked:
            yield f"fallback[{at}]", f"{name} is asked before; each model is asked once"
        asked.append(name)


_FINEST = 12
"""Decimal places of an amount of money."""


@accepting({"type": "string", "minLength": 1})
def prompt(document: Json, path: str, findings: Findings) -> Any:
    """A template that is not blank."""
    if isinstance(document, str) and not document.strip():
        findings.add(path, "must not be empty")
    return template(document, path, findings)


@accepting({"type": "object"})
def schema(document: Json, path: str, findings: Findings) -> Any:
    """A JSON Schema; a library checks it later."""
    if not isinstance(document, Mapping):
        return findings.wrong(path, "a JSON Schema, an object", document)
    before = len(findings.problems)
    for where, message in json_schema.problems(document):
        findings.add(path + (where if where[:1] in ("", "[") else f".{where}"), message)
    if len(findings.problems) == before:
        findings.schemas.append((path, document))
    return document


@accepting({"type": ["number", "string"]})
def amount(document: Json, path: str, findings: Findings) -> Any:
    """An amount of money, given as a number or as text; the result is text."""
    if isinstance(document, bool) or not isinstance(document, int | float | str):
        return findings.wrong(path, "an amount in USD like 0.50", document)
    try:
        value = Decimal(str(document))
    except InvalidOperation:
        return findings.add(path, "must be an amount in USD like 0.50")
    if not value.is_finite() or not 0 < value <= MAX_COST_USD:
        return findings.add(path, f"must be over 0 and at most {MAX_COST_USD}")
    if value != round(value, _FINEST):
        return findings.add(path, f"has more than {_FINEST} decimal places")
    return cost_text(value)


BUDGET = {
    "maxCostUsd": Field(
        amount, "max_cost_usd", 'An amount in USD, as text like "0.50" or as a number.'
    ),
    "maxTokens": Field(
        max_tokens, "max_tokens", "How many tokens, of prompts and answers together."
    ),
    "onExceeded": Field(
        choice(OnExceeded),
        "on_exceeded",
        "`fail` (default): the next AI step fails; `approve`: people are asked.",
    ),
}


_LIMITS_SOMETHING = any_of({"required": ["maxCostUsd"]}, {"required": ["maxTokens"]})


@accepting({**object_schema(BUDGET), **_LIMITS_SOMETHING})
def budget(document: Json, path: str, findings: Findings) -> Any:
    """A budget, which must limit something."""
    if isinstance(document, Mapping) and not {"maxCostUsd", "maxTokens"} & document.keys():
        findings.add(path, "needs maxCostUsd or maxTokens")
    return record(Budget, BUDGET)(document, path, findings)
