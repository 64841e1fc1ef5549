"""Named mistakes in variables, and in what an approval shows and asks for."""

from typing import Any

import pytest

from adapters_runtime.expressions.templates import MiniJinjaTemplates
from wfcore.errors import InvalidDefinition
from wfcore.model.workflow import (
    ApprovalStep,
    Column,
    ColumnType,
    Definition,
    GroupSpec,
    Variable,
    VariableType,
)
from wfcore.rules.definition.check import check_definition

ASK = {"name": "ask", "kind": "manual_approval"}
GROUP = {"name": "g", "rows": []}
NO_ROWS = "must be a template {{ … }} or a list of objects"


def check(document: Any) -> Definition:
    return check_definition(document, MiniJinjaTemplates().problems)


def said(document: Any) -> list[str]:
    with pytest.raises(InvalidDefinition) as caught:
        check(document)
    return str(caught.value).splitlines()


def declaring(variables: Any) -> dict[str, Any]:
    return {"name": "W", "variables": variables, "steps": [ASK]}


def asking(**fields: Any) -> dict[str, Any]:
    return {"name": "W", "steps": [{**ASK, **fields}]}


def showing(**fields: Any) -> dict[str, Any]:
    return asking(groups=[{**GROUP, **fields}])


MISTAKES: list[tuple[Any, list[str]]] = [
    (declaring([]), ["variables: must be an object of declarations by name, not a list"]),
    (
        declaring({"a": {"type": "int", "default": 1}, "b!": {"xyz": 1}}),
        [
            f"variables.a.type: unknown value 'int'; known: {', '.join(VariableType)}",
            'variables["b!"]: must be a name of letters, digits, _, - and .',
            'variables["b!"].xyz: unknown field; '
            "known: type, required, default, secret, description",
        ],
    ),
    (
        declaring({"a": {"description": 1, "type": "boolean", "default": "yes"}}),
        [
            "variables.a.description: must be text, not a number",
            "variables.a.default: must be of the declared type boolean, not text",
        ],
    ),
    (showing(rows=3), [f"steps[0].groups[0].rows: {NO_ROWS}, not a number"]),
    (showing(rows={}), [f"steps[0].groups[0].rows: {NO_ROWS}, not an object"]),
    (showing(rows=[{}, 3]), ["steps[0].groups[0].rows[1]: must be an object, not a number"]),
    (showing(columns=[3]), ["steps[0].groups[0].columns[0]: must be an object, not a number"]),
    (
        showing(columns=[{"kye": "a", "title": 1}]),
        [
            "steps[0].groups[0].columns[0].kye: unknown field; did you mean key? "
            "known: key, title, type, editable, required, options",
            "steps[0].groups[0].columns[0].key: is required",
            "steps[0].groups[0].columns[0].title: must be text, not a number",
        ],
    ),
    (
        showing(columns=[{"key": "a", "type": "enum", "options": ["x", None, [], {}]}]),
        [
            f"steps[0].groups[0].columns[0].options[{at}]: "
            f"must be text, a number, true or false, not {what}"
            for at, what in ((1, "null"), (2, "a list"), (3, "an object"))
        ],
    ),
    (
        showing(columns=[{"key": "a"}, {"key": "b", "editable": False}]),
        [
            "steps[0].groups[0].columns[1].editable: false needs a rowKey in the group, "
            "by which rows are told apart"
        ],
    ),
    (
        showing(rowKey="c", columns=[{"key": "a"}, {"key": "b"}]),
        ["steps[0].groups[0].rowKey: must be the key of a column: a, b"],
    ),
    (
        asking(groups=[3, {"rows": []}]),
        [
            "steps[0].groups[0]: must be an object, not a number",
            "steps[0].groups[1].name: is required",
        ],
    ),
    (
        asking(
            approvers=["a@x.example"], requiredApprovals=2, reminders=["23h", "24h"], timeout="24h"
        ),
        [
            "steps[0].requiredApprovals: is 2, but approvers names 1; nobody else may approve",
            "steps[0].reminders[1]: must be shorter than the step's timeout",
        ],
    ),
]


@pytest.mark.parametrize(("document", "messages"), MISTAKES)
def test_mistakes_are_said_like_this(document: Any, messages: list[str]) -> None:
    """Exactly these, each at its place, whatever else is wrong. DF-1, DF-5, AP-21."""
    assert said(document) == messages


HOW = "How many"


def test_a_variable_is_read() -> None:
    """Text unless its type is said; its description is for people."""
    assert check(
        declaring(
            {
                "a": {},
                "b": {"type": "number", "default": 1, "required": True, "description": HOW},
                "c": {"type": "array", "default": [1], "secret": True},
            }
        )
    ).variables == {
        "a": Variable("a", VariableType.STRING),
        "b": Variable(
            "b", VariableType.NUMBER, required=True, default=1, has_default=True, description=HOW
        ),
        "c": Variable("c", VariableType.ARRAY, default=[1], has_default=True, secret=True),
    }


def test_a_group_is_read() -> None:
    """Titles are names unless said otherwise; any scalar is an option; a key may be free. AP-25."""
    columns = [
        {"key": "a", "title": "A", "type": "enum", "options": ["x", 1, 0.5, True]},
        {"key": "b"},
    ]
    (step,) = check(
        asking(
            groups=[
                {"name": "g", "title": "G", "rows": [{}], "rowKey": "b", "columns": columns},
                {"name": "h", "rows": [], "rowKey": "free", "allowAdd": True},
            ]
        )
    ).steps
    assert isinstance(step, ApprovalStep)
    a = Column("a", "A", ColumnType.ENUM, options=("x", 1, 0.5, True))
    assert step.groups == (
        GroupSpec("g", "G", [{}], row_key="b", columns=(a, Column("b", "b"))),
        GroupSpec("h", "h", [], row_key="free", allow_add=True),
    )


@pytest.mark.parametrize(
    "fields",
    [
        {"approvers": ["a@x.example"]},
        {"requiredApprovals": 100},
        {"approvers": [], "requiredApprovals": 2},
        {"approvers": ["a@x.example", "b@x.example"], "requiredApprovals": 2},
        {"approvers": ["straße@example.org", "STRASSE@example.org"], "requiredApprovals": 2},
        {"reminders": ["86399999ms"]},
        {"reminders": ["1d"], "timeout": "2d"},
    ],
)
def test_a_quorum_that_can_be_reached_and_a_reminder_in_time(fields: dict[str, Any]) -> None:
    """As many as are named, each counted once; within the timeout, also where it is not said."""
    assert check(asking(**fields))
