"""State: what a step or a person may write, and what a new declaration makes of it."""

from typing import Any

import pytest

from wfcore.errors import InvalidDefinition, InvalidInput
from wfcore.model.json import JsonObject
from wfcore.model.workflow import Variable, VariableType, WorkflowState
from wfcore.rules.definition.written import document_of, read_definition
from wfcore.rules.limits import STATE_BYTES, STATE_VALUE_BYTES
from wfcore.rules.masking import secrets_of
from wfcore.rules.state import merged, redeclared, seen_state, state_rows, written

CURSOR = Variable("cursor", has_default=True, default="")
COUNT = Variable("count", VariableType.NUMBER)
TOKEN = Variable("token", secret=True)
DECLARED = {one.name: one for one in (CURSOR, COUNT, TOKEN)}
EMPTY = WorkflowState("wf_1")


def test_a_name_without_a_value_has_its_default() -> None:
    """Or null without a default; a value of another type counts as none. SV-1."""
    assert seen_state(DECLARED, None).values == {"cursor": "", "count": None, "token": None}
    stored = WorkflowState("wf_1", {"cursor": "c", "count": "text", "gone": 1})
    assert seen_state(DECLARED, stored).values == {"cursor": "c", "count": None, "token": None}


def test_an_object_is_merged_and_null_resets() -> None:
    """Names that are left out stay; the record that was passed does not change. SV-3."""
    first = merged(DECLARED, EMPTY, {"cursor": "a", "count": 1})
    then = merged(DECLARED, first, {"cursor": None, "token": "t"})
    assert then.values == {"count": 1, "token": "t"}
    assert then.secrets == ("token",)
    assert first.values == {"cursor": "a", "count": 1}
    assert merged(DECLARED, then, {"count": 1}) is then


@pytest.mark.parametrize(
    ("given_changes", "expected_refusal"),
    [
        ({"cursr": "x"}, "state.cursr: is not declared; did you mean cursor?"),
        ({"cursor": 1}, "state.cursor: must be a string"),
        ({"count": True}, "state.count: must be a number"),
        ({"cursor": "x" * STATE_VALUE_BYTES}, "state.cursor: has more than 64 KiB as JSON"),
        ({"cursor": "a\0b"}, "state.cursor: must not have NUL characters"),
        ({"count": 2**63}, "state.count: "),
        ({"token": "\n".join("abcd" for _ in range(201))}, "state.token: secrets have at most"),
    ],
)
def test_what_is_not_admitted_is_refused_by_name(
    given_changes: JsonObject, expected_refusal: str
) -> None:
    """A name, a type, a size, or a number that could not be stored. SV-3."""
    with pytest.raises(InvalidInput) as refused:
        merged(DECLARED, EMPTY, given_changes, "state")
    assert str(refused.value).startswith(expected_refusal)


def test_all_values_together_are_bounded() -> None:
    """To 1 MiB of JSON, whatever each of them has. SV-3."""
    names = [f"n{number}" for number in range(STATE_BYTES // (STATE_VALUE_BYTES - 2) + 1)]
    declared = {name: Variable(name) for name in names}
    value = "x" * (STATE_VALUE_BYTES - 2)
    fitting = merged(declared, EMPTY, dict.fromkeys(names[:-2], value), "state")
    with pytest.raises(InvalidInput, match="state: all values have more than 1 MiB as JSON"):
        merged(declared, fitting, dict.fromkeys(names[-2:], value), "state")


def test_secrets_are_masked_except_under_secret_names() -> None:
    """As in outputs: what is secret elsewhere is not stored in clear. SV-6, SC-1."""
    hidden = (secrets_of(["hunter2"]),)
    changes: JsonObject = {"cursor": "after hunter2", "token": "hunter2"}
    found = written(DECLARED, DECLARED, EMPTY, changes, hidden)
    assert found.values == {"cursor": "after ***", "token": "hunter2"}


@pytest.mark.parametrize(
    ("given_newest", "expected_values"),
    [
        ({}, {}),
        ({"cursor": COUNT}, {}),
        ({"cursor": CURSOR}, {"cursor": "c"}),
        ({"token": Variable("token"), "cursor": CURSOR}, {"cursor": "c"}),
    ],
)
def test_an_older_execution_writes_what_the_newest_declaration_admits(
    given_newest: dict[str, Variable], expected_values: JsonObject
) -> None:
    """The rest is left out, a secret that would no longer be one too. SV-4."""
    changes: JsonObject = {"cursor": "c", "token": "t"}
    found = written(DECLARED, given_newest, EMPTY, changes, ())
    assert found.values == expected_values
    with pytest.raises(InvalidInput, match="cursr: is not declared"):
        written(DECLARED, given_newest, EMPTY, {"cursr": "c"}, ())


def test_a_new_declaration_drops_and_refuses_by_name() -> None:
    """Values of removed names are dropped; values that it does not admit are problems. SV-5."""
    stored = WorkflowState("wf_1", {"cursor": "c", "count": 1, "token": "t"}, ("token",))
    found = redeclared(stored, {"cursor": CURSOR})
    assert (found.state.values, found.dropped) == ({"cursor": "c"}, ("count", "token"))
    assert (found.state.secrets, found.problems) == ((), ())
    again = {"cursor": Variable("cursor", VariableType.ARRAY), "token": Variable("token")}
    problems = redeclared(stored, again).problems
    assert [str(one.path) for one in problems] == ["state.cursor", "state.token"]
    assert "its stored value is not an array" in problems[0].message
    assert "its stored value is secret" in problems[1].message
    assert "--reset token" in problems[1].message


def test_a_secret_name_stays_secret_under_an_older_declaration() -> None:
    """Also one that does not say so: the record does. SV-6."""
    stored = WorkflowState("wf_1", {"token": "t"}, ("token",))
    older = {"token": Variable("token"), "cursor": CURSOR}
    seen = seen_state(older, stored)
    assert seen.shown == {"cursor": ""}
    assert seen.secret_texts == ("t",)
    assert [(one.value, one.is_secret) for one in state_rows(older, stored)] == [
        (None, True),
        ("", False),
    ]


def _read(state: Any, value: str = "x") -> Any:
    step = {"name": "a", "kind": "data", "value": value}
    return read_definition({"name": "flow", "state": state, "steps": [step]})


def test_a_declaration_reads_and_writes_back() -> None:
    """With type, default, `secret` and a description. SV-1."""
    state = {
        "cursor": {"default": "", "description": "Where the last execution stopped."},
        "seen": {"type": "object"},
        "token": {"secret": True},
    }
    found = _read(state)
    assert document_of(found)["state"] == state


@pytest.mark.parametrize(
    ("given_state", "expected_path", "expected_message"),
    [
        ([], "state", "must be an object"),
        ({"a b": {}}, 'state["a b"]', "letters"),
        ({"n": {"type": "number", "default": "1"}}, "state.n.default", "of the declared type"),
        ({"n": {"required": True}}, "state.n.required", "unknown field"),
        ({"n": {"tpye": "number"}}, "state.n", "did you mean type"),
        ({"n": {"secret": True, "default": "t"}}, "state.n.default", "must be empty"),
    ],
)
def test_a_mistake_in_a_declaration_has_its_path(
    given_state: Any, expected_path: str, expected_message: str
) -> None:
    """Each is named; a secret's default would stand in the text. SV-1, SV-6."""
    with pytest.raises(InvalidDefinition) as refused:
        _read(given_state)
    (problem,) = refused.value.problems
    assert problem.path.startswith(expected_path)
    assert expected_message in problem.message
