"""Executions and the audit log from the command line, without a server."""

import json
import os
import subprocess
import sys
from io import StringIO
from pathlib import Path
from unittest.mock import ANY

import pytest
from rich.console import Console

from wfserver.commands.execution import _at
from wfserver.terminal.progress import Progress

from .conftest import STEP, Call

TYPED = f"""\
name: Typed
variables:
  count: {{type: number, required: true}}
  tags: {{type: array, default: []}}
{STEP}
"""


def _apply(wfcore: Call, text: str) -> str:
    said = wfcore("workflow", "apply", "-", "--owner", "ann@example.org", "--json", stdin=text)
    return str(said.json["id"])


def test_executions_have_references(wfcore: Call, applied: str) -> None:
    """Given at the start, shown, and what a list is narrowed to. EX-38."""
    for reference in ("Order 7", "Order 77"):
        wfcore("execution", "start", "Greet", "--reference", reference)
    found = wfcore("execution", "list", "--reference", "Order 7", "--json").json["items"]
    assert [one["reference"] for one in found] == ["Order 7"]
    assert "Order 7" in wfcore("execution", "show", found[0]["executionId"]).out


def test_a_start_is_accepted_and_waits_for_the_server(wfcore: Call, applied: str) -> None:
    """`start` answers the start response; the execution is PENDING with source manual."""
    started = wfcore("execution", "start", "Greet", "--json").json
    assert started == {**started, "status": "PENDING", "workflowId": applied}
    shown = wfcore("execution", "show", started["executionId"], "--json").json
    assert shown["triggerSource"] == "manual"
    assert (shown["status"], shown["stepResults"]) == ("PENDING", {})


def test_inputs_are_read_as_declared(wfcore: Call) -> None:
    """Values are JSON where the variable is no string; a wrong or missing one is named."""
    id = _apply(wfcore, TYPED)
    good = wfcore("execution", "start", id, "-i", "count=3", "-i", 'tags=["a"]', "-i", "free=1")
    assert good.status == 0
    wrong = wfcore("execution", "start", id, "-i", "count=many")
    assert (wrong.status, wrong.err) == (1, "error: inputs.count: must be a number\n")
    missing = wfcore("execution", "start", id)
    assert (missing.status, missing.err) == (1, "error: inputs.count: is required\n")


def test_an_input_that_is_no_variable_is_warned_of(wfcore: Call) -> None:
    """It is handed on, as rule VM-4 has it; on stderr, so that programs still read the answer."""
    id = _apply(wfcore, TYPED)
    said = wfcore("execution", "start", id, "-i", "count=3", "-i", "typo=1", "--json")
    assert said.json["status"] == "PENDING"
    assert said.err == "warning: the workflow has no variable typo\n"
    assert not wfcore("execution", "start", id, "-i", "count=3").err


def test_an_unknown_workflow_is_named(wfcore: Call) -> None:
    """A workflow that is not there is named, with what shows the others."""
    said = wfcore("execution", "start", "Nothing")
    assert said.status == 1
    assert "'Nothing'" in said.err
    assert "wfcore workflow list" in said.err


def test_logs_of_no_step_are_refused(wfcore: Call, applied: str) -> None:
    """A key that no step can have is named as missing; a step that has not begun has no lines."""
    id = wfcore("execution", "start", applied, "--json").json["executionId"]
    assert wfcore("execution", "logs", id, "--step", "a").status == 0
    said = wfcore("execution", "logs", id, "--step", "b")
    assert (said.status, said.err) == (1, "error: Step not found\n")


def test_watching_says_what_comes_next(wfcore: Call, applied: str) -> None:
    """What was cancelled ends with exit status 1; with --json its events are one document."""
    id = wfcore("execution", "start", applied, "--json").json["executionId"]
    wfcore("execution", "cancel", id)
    said = wfcore("execution", "watch", id)
    assert (said.status, said.out) == (1, f"{id} is CANCELLED\n")
    kinds = [one["kind"] for one in wfcore("execution", "watch", id, "--json").json["items"]]
    assert kinds[-1] == "execution.cancelled"


def test_cancel_ends_it_once(wfcore: Call, applied: str) -> None:
    """`cancel` answers the status view; again it is an error that says the state."""
    id = wfcore("execution", "start", applied, "--json").json["executionId"]
    cancelled = wfcore("execution", "cancel", id, "--json").json
    assert cancelled["status"] == "CANCELLED"
    assert cancelled["statusReason"]["code"] == "CANCEL_REQUESTED"
    again = wfcore("execution", "cancel", id)
    assert (again.status, again.err) == (1, "error: The execution is CANCELLED\n")


def test_redrive_starts_a_new_one(wfcore: Call, applied: str) -> None:
    """`redrive` of an ended execution answers a new one that names the old one."""
    id = wfcore("execution", "start", applied, "--json").json["executionId"]
    assert wfcore("execution", "redrive", id).status == 1
    wfcore("execution", "cancel", id)
    started = wfcore("execution", "redrive", id, "--json").json
    shown = wfcore("execution", "show", started["executionId"], "--json").json
    assert (shown["redriveOf"], shown["triggerSource"]) == (id, "manual")
    assert wfcore("execution", "show", id, "--json").json["redrivenAs"] == started["executionId"]
    assert f"redriven as  {started['executionId']}" in wfcore("execution", "show", id).out


def test_a_dry_run_shows_the_plan(wfcore: Call, applied: str) -> None:
    """`--dry-run` starts nothing; the same options without it carry the plan out. EX-35."""
    id = wfcore("execution", "start", applied, "--json").json["executionId"]
    wfcore("execution", "cancel", id)
    said = wfcore("execution", "redrive", id, "--dry-run")
    (step,) = wfcore("execution", "redrive", id, "--dry-run", "--json").json["steps"]
    assert (said.status, step["plan"], step["begun"]) == (0, "new", 0)
    assert f"begins at {step['step']}, version 1" in said.out
    assert wfcore("execution", "list", "--json").json["total"] == 1
    wrong = wfcore("execution", "redrive", id, "--from", "nothing")
    assert (wrong.status, "from" in wrong.err) == (1, True)
    began = wfcore("execution", "redrive", id, "--from", step["step"], "--newest", "--json")
    assert began.json["executionId"]
    assert wfcore("execution", "redrive", "--workflow", "Greet", "--dry-run").status == 2


def test_lists_are_filtered(wfcore: Call, applied: str) -> None:
    """`list` narrows by workflow and by status, and its rows carry no step results."""
    other = _apply(wfcore, TYPED)
    wfcore("execution", "start", other, "-i", "count=1")
    id = wfcore("execution", "start", applied, "--json").json["executionId"]
    wfcore("execution", "cancel", id)
    assert wfcore("execution", "list", "--json").json["total"] == 2
    mine = wfcore("execution", "list", "--workflow", "Greet", "--json").json
    assert [row["executionId"] for row in mine["items"]] == [id]
    assert "stepResults" not in mine["items"][0]
    assert wfcore("execution", "list", "--status", "pending", "--json").json["total"] == 1


@pytest.mark.parametrize("verb", ["show", "cancel", "redrive"])
def test_an_unknown_execution_is_not_found(wfcore: Call, verb: str) -> None:
    """An execution that is not there is an error of its own."""
    said = wfcore("execution", verb, "exec_0")
    assert (said.status, said.err) == (1, "error: Execution not found\n")


@pytest.mark.parametrize("verb", ["show", "approve", "reject"])
def test_an_unknown_approval_is_not_found(wfcore: Call, verb: str) -> None:
    """An approval that is not there is an error of its own."""
    said = wfcore("approval", verb, "appr_0")
    assert (said.status, said.err) == (1, "error: Approval not found\n")


def test_the_audit_log_tells_what_the_operator_did(wfcore: Call, applied: str) -> None:
    """`audit` lists the operator's deeds oldest first, marked as done at the command line."""
    wfcore("account", "set", "ann@example.org", "--plan", "TEAM")
    listed = wfcore("audit", "--json").json
    assert listed["total"] == len(listed["items"])
    events = [entry["event"] for entry in listed["items"]]
    assert events == ["account.create", "workflow.apply", "account.set"]
    assert {entry["path"] for entry in listed["items"]} == {"command line"}
    assert {entry["outcome"] for entry in listed["items"]} == {"allowed"}
    assert set(listed["items"][0]) == {
        *("id", "at", "event", "outcome", "reason", "accountId", "keyId"),
        *("target", "path", "ip", "requestId", "details", "executionId", "recordHash"),
    }


@pytest.mark.parametrize(
    "since", ["1h", "2020-01-01", "2020-01-01T00:00:00+01:00", "1577836800000"]
)
def test_the_audit_log_begins_when_asked(wfcore: Call, since: str) -> None:
    """`--since` takes a length of time, an ISO instant, or epoch milliseconds."""
    assert wfcore("audit", "--since", since, "--json").json["total"] == 1


def test_the_audit_log_leaves_out_what_was_before(wfcore: Call) -> None:
    """Entries before `--since` are not shown."""
    entry = wfcore("audit", "--json").json["items"][0]
    assert wfcore("audit", "--since", str(entry["at"]), "--json").json["total"] == 1
    assert wfcore("audit", "--since", str(entry["at"] + 1), "--json").json["total"] == 0


def test_control_characters_of_users_do_not_reach_the_terminal(wfcore: Call) -> None:
    """A name with escape sequences is refused, and the refusal shows none; inputs are escaped."""
    steps = [{"name": "a", "kind": "code", "language": "command", "command": ["echo"]}]
    text = json.dumps({"name": "a\x1b]0;owned\x07", "steps": steps})
    refused = wfcore("workflow", "apply", "-", "--owner", "ann@example.org", stdin=text)
    assert "name: must be text without control characters" in refused.err
    _apply(wfcore, json.dumps({"name": "shown", "steps": steps}))
    hostile = "x=a\x1b]0;owned\x07"
    id = wfcore("execution", "start", "shown", "-i", hostile, "--json").json["executionId"]
    for said in (refused, wfcore("execution", "show", id), wfcore("execution", "list")):
        assert "\x1b" not in said.out + said.err
        assert "\x07" not in said.out + said.err


def test_explain_says_that_no_server_is_there(wfcore: Call, applied: str, data: Path) -> None:
    """XP-1: a pending execution without a server says so; one that was killed counts as gone."""
    id = wfcore("execution", "start", applied, "--json").json["executionId"]
    said = wfcore("execution", "explain", id, "--json").json
    assert (said["executionId"], said["status"]) == (id, "PENDING")
    assert [line["code"] for line in said["lines"]] == ["NO_SERVER", "DUE", "NEXT_STEP"]
    note = data / "server.json"
    with subprocess.Popen([sys.executable, "-c", ""]) as ended:
        ended.wait()
    note.write_text(json.dumps({"url": "http://127.0.0.1:1", "pid": ended.pid}))
    assert wfcore("execution", "explain", id, "--json").json == {**said, "at": ANY}
    note.write_text(json.dumps({"url": "http://127.0.0.1:1", "pid": os.getpid()}))
    text = wfcore("execution", "explain", id).out
    assert text == ("PENDING\n- It is due: a worker takes it at once.\n- Step 'a' begins first.\n")


def test_explain_of_what_is_not_there_fails(wfcore: Call) -> None:
    """An unknown id is an error that says so."""
    said = wfcore("execution", "explain", "exec_0")
    assert (said.status, said.err) == (1, "error: Execution not found\n")


@pytest.mark.parametrize("verb", ["start", "redrive"])
def test_waiting_has_an_end(wfcore: Call, applied: str, verb: str) -> None:
    """With `--timeout` it says how far the execution is and exits with 1; it goes on. EX-17."""
    what = applied
    if verb == "redrive":
        what = wfcore("execution", "start", applied, "--json").json["executionId"]
        wfcore("execution", "cancel", what)
    said = wfcore("execution", verb, what, "--wait", "--timeout", "100ms", "--json")
    assert (said.status, said.json["status"]) == (1, "PENDING")
    assert "not finished after 100 ms" in said.err
    id = said.json["executionId"]
    assert wfcore("execution", "show", id, "--json").json["status"] == "PENDING"


def test_a_timeout_without_waiting_is_a_mistake(wfcore: Call, applied: str) -> None:
    """`--timeout` alone is refused, and nothing is started."""
    said = wfcore("execution", "start", applied, "--timeout", "1s")
    assert (said.status, said.err.startswith("error: --timeout goes with --wait")) == (2, True)
    assert wfcore("execution", "list", "--json").json["total"] == 0


def test_a_full_workflow_is_told_by_its_limit(wfcore: Call) -> None:
    """With `onLimit: skip` a start by hand is refused while one has not ended. CC-4."""
    id = _apply(wfcore, f"name: One\nconcurrency: {{limit: 1, onLimit: skip}}\n{STEP}")
    assert wfcore("execution", "start", id).status == 0
    said = wfcore("execution", "start", id)
    message = "The workflow allows 1 execution at once, and as many have not ended"
    assert (said.status, said.err) == (1, f"error: {message}\n")
    assert wfcore("execution", "list", "--json").json["total"] == 1


def test_a_loop_says_how_many_rounds_have_begun() -> None:
    """While it is waited for or shown, and beside the step that runs while it is watched."""
    shown = {"currentStep": "each.320.work", "rounds": [321, 500]}
    assert _at(shown) == "each.320.work, 321 of 500 rounds"
    assert _at({"currentStep": "work", "rounds": None}) == "work"
    progress = Progress(Console(file=StringIO()))
    begun = [("each", 3), ("each.0.work", None), ("each.0.in", 1), ("each.0.in.0.a", None),
             ("each.1.work", None), ("after", None)]  # fmt: skip
    assert [progress._rounds(*one) for one in begun] == [
        "", "1 of 3 rounds", "1 of 3 rounds", "1 of 1 round", "2 of 3 rounds", ""
    ]  # fmt: skip
