"""Hypothesis strategies for AI steps: schemas, usages, budgets."""

from decimal import Decimal
from functools import cache
from typing import Any

from hypothesis import strategies as st

from wfcore.model.execution import Usage
from wfcore.model.json import JsonObject
from wfcore.model.workflow import Budget, OnExceeded, OnInterrupt
from wfcore.rules.numbers import cost_text

MODELS = ("openai:gpt-5-mini", "anthropic:claude-sonnet-4-5", "local:llama3.1:8b")


@cache
def amounts(least: str = "0") -> st.SearchStrategy[str]:
    """Costs as decimal text, as they are stored."""
    found = st.decimals(Decimal(least), 1_000, allow_nan=False, places=9)
    return found.map(cost_text)


@cache
def usages(priced: bool = False) -> st.SearchStrategy[Usage]:
    """Usages of one call. The cost may be unknown unless *priced*."""
    cost = amounts() if priced else amounts() | st.none()
    counts = st.integers(0, 10_000)
    return st.builds(Usage, counts, counts, cost)


@cache
def interruptions() -> st.SearchStrategy[OnInterrupt | None]:
    """The `onInterrupt` of a code or AI step, or None."""
    return st.sampled_from((None, None, *OnInterrupt))


@cache
def labels() -> st.SearchStrategy[tuple[str, ...]]:
    """Labels that a worker must carry; most steps have no labels."""
    return st.sampled_from(((), (), ("gpu",), ("eu-1", "gpu")))


def budgets() -> st.SearchStrategy[Budget]:
    """Budgets with at least one limit."""
    money, tokens = amounts("0.000000001"), st.integers(1, 20_000)
    limits = st.tuples(money, st.none()) | st.tuples(st.none(), tokens) | st.tuples(money, tokens)
    return st.builds(
        lambda limit, then: Budget(limit[0], limit[1], then), limits, st.sampled_from(OnExceeded)
    )


_SCALARS: tuple[JsonObject, ...] = (
    {"type": "string"},
    {"type": "string", "minLength": 1, "maxLength": 5},
    {"type": "integer", "minimum": 0, "maximum": 10},
    {"type": "number"},
    {"type": "boolean"},
    {"enum": ["low", "high", None, 3]},
    {"type": ["string", "null"], "description": "maybe"},
)


@cache
def schemas() -> st.SearchStrategy[dict[str, Any]]:
    """JSON Schemas of objects, similar to the schemas that people write for answers."""
    return objects(st.recursive(st.sampled_from(_SCALARS), _around, max_leaves=6))


def _around(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    lists = st.builds(lambda items: {"type": "array", "items": items}, inner)
    either = st.builds(lambda one, two: {"anyOf": [one, two]}, inner, inner)
    return lists | either | objects(inner)


@st.composite
def objects(draw: st.DrawFn, inner: st.SearchStrategy[Any]) -> dict[str, Any]:
    """A schema of an object, closed or not, with some of its properties required."""
    names = st.sampled_from(("label", "score", "items", "$ref", "type"))
    properties = draw(st.dictionaries(names, inner, max_size=3))
    required = (
        draw(st.lists(st.sampled_from(sorted(properties)), unique=True)) if properties else []
    )
    closed = draw(st.sampled_from((None, False, True)))
    schema = {"type": "object", "properties": properties, "required": required}
    return schema if closed is None else {**schema, "additionalProperties": closed}
