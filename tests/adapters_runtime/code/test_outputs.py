"""What a step is given, and strict JSON: what it may say, and what counts as text."""

import json
from types import SimpleNamespace
from typing import Any

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from adapters_runtime.code.environment import CannotRun, command, passed_on, variables
from adapters_runtime.code.outputs import MOST_LEVELS, UnusableOutput, counted, output_of, parse
from adapters_runtime.sandbox.client import Ended
from wfcore.ports.runtime import StepEnd
from wfcore.rules.execution.fold_steps import size_of
from wfcore.testing.contracts.steps import job

values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@given(values)
def test_every_json_value_survives(value: Any) -> None:
    """What a step writes as JSON is what comes out."""
    assert parse(json.dumps(value).encode()) == value


@pytest.mark.parametrize("kind", ['{"a":%s}', "[%s]", "[1, %s, 2]"])
def test_levels(kind: str) -> None:
    """Exactly 64 levels are accepted."""

    def nested(levels: int) -> bytes:
        text = "1"
        for _ in range(levels):
            text = kind % text
        return text.encode()

    parse(nested(MOST_LEVELS))
    for levels in (MOST_LEVELS + 1, 900, 100_000):
        with pytest.raises(ValueError):
            parse(nested(levels))


@pytest.mark.parametrize(
    "text",
    [b"", b" ", b"NaN", b"Infinity", b"1e999", b"[1,]", b"1 2", b"\xff", b'"\\ud800"',
     "\N{BYTE ORDER MARK}1".encode(), "1".encode("utf-16")],
)  # fmt: skip
def test_no_json(text: bytes) -> None:
    """What only looks like JSON is none."""
    with pytest.raises(ValueError):
        parse(text)


@given(st.dictionaries(st.text(), st.lists(st.text() | st.integers(-(2**63), 2**63 - 1))))
def test_a_size_is_what_the_rules_count(value: Any) -> None:
    """A runner that has counted an output says what the rules would say. FL-14."""
    assert counted(StepEnd(value)).size == size_of(value)
    assert counted(StepEnd(error="failed")).size is None


@pytest.mark.parametrize("number", ["40111222333444555666777", "9223372036854775808", "-1e400"])
def test_a_number_that_would_be_another_is_no_output(number: str) -> None:
    """The file fails the step with the path; stdout that is one such number stays text. NU-1."""
    with pytest.raises(ValueError, match=r"rows\[1\].no: the number "):
        parse(f'{{"rows": [1, {{"no": {number}}}]}}'.encode())
    ended = Ended(stdout=f"{number}\n".encode(), exit=0)
    assert output_of(ended) == number
    with pytest.raises(UnusableOutput, match="WF_OUTPUT is not valid JSON: the number "):
        output_of(evolve(ended, output=number.encode()))


@pytest.mark.parametrize(
    ("left", "says"),
    [
        (b"", "WF_OUTPUT is empty"),
        (b" \n", "WF_OUTPUT is empty"),
        (b"\xef\xbb\xbf1", "WF_OUTPUT begins with a byte order mark; write JSON as UTF-8"),
        ("1".encode("utf-16"), "WF_OUTPUT begins with a byte order mark"),
    ],
)
def test_an_output_that_is_none_is_named(left: bytes, says: str) -> None:
    """An empty file and a byte order mark in words of their own. CS-5."""
    with pytest.raises(UnusableOutput, match=says):
        output_of(Ended(output=left, exit=0))


def test_of_the_server_s_environment_a_step_sees_three_variables() -> None:
    """Where programs are, the language and the time zone, each with a default but the last. CS-4"""
    usual = {"PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8"}
    for empty in ({}, {"PATH": "", "LANG": "", "TZ": "", "WFCORE_SEAL_KEY": "k", "HOME": "/root"}):
        assert passed_on(empty) == usual
    own = {"PATH": "/opt/bin", "LANG": "C.utf8", "TZ": "Europe/Berlin"}
    assert passed_on({**own, "AWS_SECRET_ACCESS_KEY": "k"}) == own


@pytest.mark.parametrize(
    ("value", "says"),
    [("a\0b", "contains a NUL character"), ("ä" * 65_534, "is too long for an environment")],
)
def test_a_variable_that_no_process_could_have_is_named(value: str, says: str) -> None:
    """The step fails with its name, and not with what the kernel says; its value is not shown."""
    folder: Any = SimpleNamespace(
        **dict.fromkeys(("home", "tmp", "context", "output", "state"), "/x")
    )
    folder.artifacts = "/x"
    asked = job(":")
    fits = {"WF_VAR_A": "ä" * 65_531}  # with the name and the sign the longest that there is
    assert variables(folder, evolve(asked, environment=fits), {})["WF_VAR_A"] == fits["WF_VAR_A"]
    with pytest.raises(CannotRun, match=f"^the value of WF_VAR_A {says}"):
        variables(folder, evolve(asked, environment={"WF_VAR_A": value}), {})


def test_what_no_environment_holds_as_a_whole_is_left_to_the_context() -> None:
    """The largest inputs first, and no secret: secrets that do not fit fail the step by name."""
    names = ("home", "tmp", "context", "output", "state", "artifacts", "files")
    folder: Any = SimpleNamespace(**dict.fromkeys(names, "/x"))
    inputs = {f"WF_VAR_{number}": "x" * 100_000 for number in range(100)}
    given = evolve(job(":"), environment={**inputs, "WF_VAR_small": "1"})
    found = variables(folder, given, {})
    assert found["WF_VAR_small"] == "1"
    assert 0 < len(inputs.keys() & found.keys()) < len(inputs)
    secrets = {f"WF_SECRET_{number}": "x" * 100_000 for number in range(100)}
    with pytest.raises(CannotRun, match=r"than a process can have; .* of WF_SECRET_"):
        variables(folder, evolve(given, environment=secrets), {})


def test_an_argument_that_no_process_could_have_is_named() -> None:
    """By its number, one alone and the largest of all."""
    with pytest.raises(CannotRun, match="argument 2 of the command is over"):
        command(("echo", "a", "x" * 131_072), "/usr/bin:/bin")
    many = ("echo", *["x" * 100_000] * 40, "y" * 120_000, *["x" * 100_000] * 30)
    with pytest.raises(CannotRun, match="the largest is argument 41"):
        command(many, "/usr/bin:/bin")


def test_a_command_is_looked_up_where_the_step_looks() -> None:
    """On the step's path alone; what cannot be run says why."""
    assert command(("sh", "-c", ":"), "/bin")[1:] == ["-c", ":"]
    for argv, says in (
        ((), "the command is empty"),
        (("sh", "a\0"), "an argument of the command contains a NUL character"),
        (("sh",), "the command 'sh' was not found on PATH"),
    ):
        with pytest.raises(CannotRun, match=f"^{says}$"):
            command(argv, "/nowhere")
