"""The state of a workflow from the command line."""

import pytest

from .conftest import STEP, Call

STATE = """\
name: Sync
state:
  cursor: {type: string, default: ""}
  count: {type: number}
  token: {type: string, secret: true}
"""


@pytest.fixture
def sync(wfcore: Call) -> str:
    """The id of a workflow with state."""
    apply = ("workflow", "apply", "-", "--owner", "ann@example.org", "--json")
    id: str = wfcore(*apply, stdin=f"{STATE}{STEP}\n").json["id"]
    return id


def test_values_are_set_reset_and_shown(wfcore: Call, sync: str) -> None:
    """Text as it is, other types as JSON; a secret from stdin, which is not shown. SV-7."""
    first = wfcore("workflow", "state", "Sync", "--json").json
    empty = {"state": {"cursor": "", "count": None}, "secrets": {"token": False}}
    assert first == {"workflowId": sync, **empty}
    done = wfcore("workflow", "state", "Sync", "cursor=2026=x", "count=7", "--json").json
    assert done["state"] == {"cursor": "2026=x", "count": 7}
    said = wfcore("workflow", "state", "Sync", "--stdin", "token", stdin="t0ken\n")
    assert "t0ken" not in said.out
    assert [line.split() for line in said.out.splitlines()[1:]] == [
        ["cursor", '"2026=x"'],
        ["count", "7"],
        ["token", "(secret)"],
    ]
    reset = ("--reset", "cursor", "--reset", "token")
    last = wfcore("workflow", "state", sync, *reset, "--json").json
    assert (last["state"], last["secrets"]) == ({"cursor": "", "count": 7}, {"token": False})


@pytest.mark.parametrize(
    ("given_words", "expected_error", "expected_status"),
    [
        (("cursr=c",), "state.cursr: is not declared; did you mean cursor?", 1),
        (("count=many",), "state.count: must be a number", 1),
        (("--reset", "nothing"), "state.nothing: is not declared", 1),
        (("cursor",), "name=value", 2),
    ],
)
def test_a_mistake_is_named(
    wfcore: Call, sync: str, given_words: tuple[str, ...], expected_error: str, expected_status: int
) -> None:
    """With the name and what would do; nothing is changed."""
    said = wfcore("workflow", "state", sync, *given_words)
    assert (said.status, expected_error in said.err) == (expected_status, True)


def test_applying_says_what_it_drops_and_refuses_by_line(wfcore: Call, sync: str) -> None:
    """A removed name is a warning; another type is a mistake with its line. SV-5."""
    wfcore("workflow", "state", sync, "cursor=c", "count=7")
    apply = ("workflow", "apply", "-", "--owner", "ann@example.org")
    other = STATE.replace("type: string, default", "type: array, default").replace('""', "[]")
    said = wfcore(*apply, stdin=f"{other}{STEP}\n")
    assert said.status == 1
    assert "stdin:3: state.cursor: its stored value is not an array" in said.err
    fewer = STATE.replace("  count: {type: number}\n", "")
    said = wfcore(*apply, stdin=f"{fewer}{STEP}\n")
    assert said.status == 0
    assert "warning: state no longer declares count; the stored values are dropped" in said.err
    wfcore("workflow", "state", sync, "--reset", "cursor")
    wfcore(*apply, stdin=f"name: Sync\n{STEP}\n")
    wfcore(*apply, stdin=f"{STATE}{STEP}\n")
    wfcore("workflow", "state", sync, "count=1")
    said = wfcore("workflow", "rollback", sync, "--to", "2")
    assert "warning: state no longer declares count; the stored values are dropped" in said.err
    assert "warnings" not in said.out
