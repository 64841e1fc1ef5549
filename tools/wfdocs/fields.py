"""The fields of definitions as a table, from the JSON Schema for editors."""

from collections.abc import Iterator
from typing import Any

from wfcore.rules.definition.check import definition_schema
from wfcore.rules.definition.steps import KINDS
from wfdocs.markdown import code, table

TOP, STEP = "top", "step"
MORE = {
    "triggers": "definitions.md#triggers",
    "state": "definitions.md#state",
    "concurrency": "definitions.md#limits-on-concurrency",
    "reference": "definitions.md#reference",
    "onInterrupt": "definitions.md#control-flow",
    "branches": "definitions.md#control-flow",
    "items": "definitions.md#control-flow",
    "budget": "ai-steps.md#budgets",
    "links": "howto/sign-in.md#personal-links",
    "attachments": "definitions.md#approvals",
    "onRevise": "definitions.md#approvals",
    "stages": "definitions.md#stages-groups-and-rules",
    "autoApprove": "definitions.md#stages-groups-and-rules",
    "approverGroups": "definitions.md#stages-groups-and-rules",
    "notify": "howto/notices.md",
    "model": "ai-steps.md",
    "secrets": "code-steps.md#secrets",
    "packages": "code-steps.md#packages",
    "runtime": "code-steps.md#languages",
    "requirements": "code-steps.md#packages",
}
"""Links to more about a field."""

Row = tuple[str, str, str]
"""The place of a field, its name, and its schema."""


def fields(only: str = "") -> str:
    """The table of all fields, or of the fields of *only*: a kind of step, or an object."""
    places: dict[tuple[str, str], list[str]] = {}
    for where, name, what in _rows():
        places.setdefault((name, what), []).append(where)
    if only:
        found = [(_named(name), what) for (name, what), at in places.items() if at == [only]]
        return table(("Field", "What"), found)
    return table(
        ("Field", "Where", "What"),
        [(_named(name), _within(at), what) for (name, what), at in places.items()],
    )


def _named(name: str) -> str:
    return f"[{code(name)}]({MORE[name]})" if name in MORE else code(name)


def _within(places: list[str]) -> str:
    """The kinds of steps, or one word for all kinds; then the objects."""
    if set(KINDS) <= set(places):
        places = [STEP, *(one for one in places if one not in KINDS)]
    return ", ".join(dict.fromkeys(places))


def _rows() -> Iterator[Row]:
    schema = definition_schema()
    yield from _of(schema, TOP)
    for kind, step in _kinds(schema["definitions"]["step"]):
        yield from _of(step, kind)


def _kinds(schema: Any) -> Iterator[tuple[str, Any]]:
    for row in schema["allOf"]:
        yield row["if"]["properties"]["kind"]["const"], row["then"]


def _of(schema: Any, where: str) -> Iterator[Row]:
    """The fields of an object, and then those of the objects in it."""
    properties = schema["properties"]
    for name, one in properties.items():
        yield where, name, one["description"]
    for name, one in properties.items():
        for inner in (one, one.get("items"), one.get("additionalProperties")):
            if isinstance(inner, dict) and "allOf" in inner:
                for kind, trigger in _kinds(inner):
                    yield from _of(trigger, kind)
            elif isinstance(inner, dict) and "properties" in inner:
                yield from _of(inner, code(name))
