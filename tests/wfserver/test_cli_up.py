"""`wfcore up`, `serve` and `try`: a running server, and commands beside it."""

import json
import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import click
import pytest

from wfcore.model.workflow import Language
from wfcore.ports.runtime import LanguageState
from wfserver.terminal.welcome import _language_lines

from .conftest import Call, Running, document, end, environment, program, said_until, start


def _ask(up: Running, path: str, key: str, method: str = "GET") -> tuple[int, Any]:
    data = b"{}" if method == "POST" else None
    headers = {"X-API-Key": key, "Content-Type": "application/json"}
    request = urllib.request.Request(up.url + path, data, headers, method=method)
    try:
        with urllib.request.urlopen(request, timeout=60) as response:
            return response.status, json.load(response)
    except urllib.error.HTTPError as refused:
        with refused:
            return refused.code, json.load(refused)


@pytest.fixture
def beside(up: Running, call: Call) -> Call:
    """The command line on the data folder of the running server."""
    return lambda *arguments, **more: call("--data", str(up.data), *arguments, **more)


def test_it_answers_when_it_says_so(up: Running) -> None:
    """What `up` printed is true: the key opens the API, where the sample is."""
    status, listed = _ask(up, "/api/v1/workflows", up.said["apiKey"])
    assert status == 200
    assert [(one["id"], one["name"]) for one in listed["items"]] == [
        (up.said["sampleId"], "Refund review")
    ]


def test_its_link_leads_to_the_console(up: Running) -> None:
    """The link that `up` printed shows whom it signs in, and `/` is the way in. SE-7."""
    with urllib.request.urlopen(up.said["console"], timeout=60) as response:
        assert "Continue as you@example.org" in response.read().decode()
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(up.url, timeout=60)
    with refused.value as page:
        assert (page.code, "Sign in" in page.read().decode()) == (401, True)


def test_what_it_makes_is_private(up: Running) -> None:
    """The key is kept in DIR/first.key, mode 600, in a folder of mode 700."""
    file = Path(up.said["keyFile"])
    assert file == up.data / "first.key"
    assert file.read_text() == up.said["apiKey"] + "\n"
    assert file.stat().st_mode & 0o777 == 0o600
    assert up.data.stat().st_mode & 0o777 == 0o700


def test_try_runs_the_sample(up: Running) -> None:
    """`try --yes`, as a process of its own, starts, approves and shows the result."""
    said = program("--data", str(up.data), "try", "--yes")
    assert said.status == 0, said.err
    assert 'COMPLETED {"paid": 5, "total": "358.45"}' in said.out
    assert "A-1003,Alan Turing,95.00" in said.out


def test_what_try_prints_can_be_pasted(up: Running) -> None:
    """The curl commands at the end of `try` do the same once more."""
    if shutil.which("curl") is None:
        assert not os.environ.get("CI"), "curl is missing"
        pytest.skip("curl is missing")
    said = program("--data", str(up.data), "try", "--yes")
    commands = said.out.partition("The same by hand\n")[2]
    pasted = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", commands],
        capture_output=True,
        text=True,
        env=environment(),
        timeout=60,
    )
    assert pasted.returncode == 0, pasted.stderr
    assert '"output":{"paid":5,"total":"358.45"}' in pasted.stdout
    assert pasted.stdout.endswith("A-1009,Niklaus Wirth,80.00\n")


def test_try_asks_and_sends_edited_rows(
    up: Running, beside: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows that the API refuses are asked for again; what was left is what is paid."""
    answers = iter(["e", "A-1003 amount 1", "drop A-1009", "", "y"])
    monkeypatch.setattr("wfserver.terminal.review._prompt", lambda *_: next(answers))
    said = beside("try")
    assert said.status == 0, said.err
    assert 'COMPLETED {"paid": 4, "total": "184.45"}' in said.out


def test_try_may_be_rejected(up: Running, beside: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    """Answering no ends it CANCELLED, which is what was asked for: exit status 0."""
    monkeypatch.setattr("wfserver.terminal.review._prompt", lambda *_: "n")
    said = beside("try")
    assert said.status == 0, said.err
    assert "CANCELLED" in said.out


def test_try_says_what_waits_where_nobody_answers(
    up: Running, beside: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At the end of input it is aborted; the approval that is left open is named."""

    def end_of_input(*_: object) -> str:
        raise click.Abort

    monkeypatch.setattr("wfserver.terminal.review._prompt", end_of_input)
    said = beside("try")
    assert said.status == 1
    waits, aborted = said.err.splitlines()[-2:]
    assert waits.startswith("appr_")
    assert "wfcore approval approve appr_" in waits
    assert aborted == "error: aborted"


def test_try_json_is_one_document(up: Running, beside: Call) -> None:
    """With --json nothing is asked, and stdout is the result with its artifacts."""
    said = beside("try", "--json")
    assert said.json["result"]["status"] == "COMPLETED"
    assert [one["name"] for one in said.json["artifacts"]] == ["refunds.csv"]


def test_a_start_beside_the_server_is_done_by_it(up: Running, beside: Call) -> None:
    """`execution start --wait` rests at the approval; `approve` beside lets it go on."""
    waiting = beside("execution", "start", "Refund review", "--wait", "--json")
    assert (waiting.status, waiting.json["status"]) == (0, "AWAITING_APPROVAL")
    id = waiting.json["executionId"]
    pending = beside("approval", "list", "--status", "PENDING", "--json").json["items"]
    asked = next(one for one in pending if one["executionId"] == id)
    assert asked["reviewableGroups"][0]["items"] == []
    shown = beside("approval", "show", asked["id"])
    assert "Edsger Dijkstra" in shown.out
    decided = beside("approval", "approve", asked["id"], "--comment", "fine", "--json").json
    assert (decided["status"], decided["comment"]) == ("APPROVED", "fine")
    path = f"/api/v1/executions/{id}/result?wait=50"
    status, result = _ask(up, path, up.said["apiKey"])
    assert (status, result["output"]["paid"]) == (200, 5)
    again = beside("approval", "reject", asked["id"])
    assert again.status == 1


def test_a_wait_that_ends_at_an_approval_names_the_next_command(up: Running, beside: Call) -> None:
    """The id of the approval and the command that decides it, which then does."""
    said = beside("execution", "start", "Refund review", "--wait")
    last = said.out.splitlines()[-1]
    assert last.startswith("next: wfcore approval approve appr_"), said.out
    command = last.removeprefix("next: wfcore ").partition("   ")[0].split()
    assert beside(*command).out == f"{command[-1]} is APPROVED\n"


def test_a_rejection_beside_the_server_ends_it(up: Running, beside: Call) -> None:
    """`approval reject` ends the execution CANCELLED; waiting for it again says so with 1."""
    id = beside("execution", "start", "Refund review", "--wait", "--json").json["executionId"]
    pending = beside("approval", "list", "--status", "PENDING", "--json").json["items"]
    asked = next(one["id"] for one in pending if one["executionId"] == id)
    assert beside("approval", "reject", asked).out == f"{asked} is REJECTED\n"
    shown = beside("execution", "show", id, "--json").json
    assert shown["statusReason"]["code"] == "APPROVAL_REJECTED"


def test_keys_hold_from_the_next_request_on(up: Running, beside: Call) -> None:
    """The running server knows a new key at once, and refuses a revoked one at once."""
    made = beside(
        *("key", "create", "--account", "you@example.org", "--name", "n"),
        *("--scope", "WORKFLOW_READ", "--json"),
    ).json
    assert _ask(up, "/api/v1/workflows", made["apiKey"])[0] == 200
    assert _ask(up, "/api/v1/executions", made["apiKey"])[0] == 401
    listed = beside("key", "list", "--account", "you@example.org", "--json").json["items"]
    assert next(one for one in listed if one["id"] == made["id"])["lastUsedAt"] is not None
    beside("key", "revoke", made["id"])
    assert _ask(up, "/api/v1/workflows", made["apiKey"]) == (401, {"error": "Unauthorized"})
    denied = [one for one in beside("audit", "--json").json["items"] if one["reason"]]
    assert tuple(one["reason"] for one in denied[-2:]) == ("scope_missing", "revoked")


def test_a_locked_account_is_refused_at_once(up: Running, beside: Call) -> None:
    """An account that is locked beside the server gets 403 with its next request."""
    beside("account", "create", "bob@example.org")
    made = beside(
        *("key", "create", "--account", "bob@example.org", "--name", "n"),
        *("--scope", "WORKFLOW_READ", "--json"),
    ).json
    assert _ask(up, "/api/v1/workflows", made["apiKey"])[0] == 200
    beside("account", "set", "bob@example.org", "--status", "LOCKED")
    assert _ask(up, "/api/v1/workflows", made["apiKey"])[0] == 403


def test_a_webhook_works_at_once(up: Running, beside: Call) -> None:
    """The trigger URL that `webhook create` prints is the server's, and is open."""
    made = beside(
        "webhook", "create", "--workflow", "Refund review", "--name", "w", "--open", "--json"
    ).json
    assert made["triggerUrl"].startswith(up.url)
    path = made["triggerUrl"].removeprefix(up.url)
    assert _ask(up, path, "", "POST")[0] == 202
    beside("webhook", "set", made["id"], "--status", "DISABLED")
    assert _ask(up, path, "", "POST")[0] == 409
    listed = beside("webhook", "list", "--json").json["items"]
    assert next(one for one in listed if one["id"] == made["id"])["lastTriggeredAt"] is not None
    beside("webhook", "delete", made["id"])
    assert _ask(up, path, "", "POST")[0] == 404


def test_the_audit_log_is_followed(up: Running, beside: Call) -> None:
    """`audit --follow` shows what another process does, as it does it."""
    command = [sys.executable, "-m", "wfserver", "--data", str(up.data), "audit", "--follow"]
    with subprocess.Popen(
        [*command, "--json"], stdout=subprocess.PIPE, text=True, env=environment()
    ) as follower:
        try:
            assert follower.stdout is not None
            follower.stdout.readline()
            email = "followed@example.org"
            id = beside("account", "create", email, "--json").json["id"]
            seen = (json.loads(line) for line in follower.stdout)
            assert any((one["event"], one["target"]) == ("account.create", id) for one in seen)
        finally:
            follower.kill()


def test_a_backup_is_taken_beside_the_server(up: Running, beside: Call, tmp_path: Path) -> None:
    """While it serves, `backup` writes an archive that restores."""
    assert beside("try", "--json").status == 0
    file = tmp_path / "all.tar"
    assert beside("backup", str(file)).status == 0
    again = tmp_path / "again"
    assert program("--data", str(again), "restore", str(file)).status == 0
    assert beside("doctor").status == 0
    assert len(list((again / "artifacts").glob("*/*"))) > 0


def test_a_taken_port_is_an_error_with_its_cure(up: Running, call: Call, tmp_path: Path) -> None:
    """A port in use is named with what to do, before anything is made."""
    port = up.url.rpartition(":")[2]
    for command in ("up", "serve"):
        said = call("--data", str(tmp_path / "new"), command, "--port", port)
        assert said.status == 1
        assert said.err == (
            f"error: port {port} of 127.0.0.1 is taken; free it, or choose one with --port\n"
        )
    assert not (tmp_path / "new").exists()


def test_try_without_a_server_says_what_to_do(call: Call, tmp_path: Path) -> None:
    """`try` where no server runs, or where it was killed, says to start one."""
    said = call("--data", str(tmp_path), "try", "--yes")
    assert said.status == 1
    assert "wfcore up" in said.err
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    (tmp_path / "server.json").write_text(json.dumps({"url": f"http://127.0.0.1:{port}"}))
    (tmp_path / "first.key").write_text("wfk_x_y")
    said = call("--data", str(tmp_path), "try", "--yes")
    assert said.status == 1
    assert f"nobody answers at http://127.0.0.1:{port}" in said.err


def test_a_second_up_uses_what_is_there(tmp_path: Path) -> None:
    """On the same folder `up` makes nothing again and shows no key; it leaves no note behind."""
    said = []
    for _ in range(2):
        process = start("up", "--port", "0", "--json", data=tmp_path / "data")
        try:
            said.append(document(process, tmp_path / "data"))
            assert (tmp_path / "data" / "server.json").exists()
        finally:
            assert end(process) == 0
        assert not (tmp_path / "data" / "server.json").exists()
    first, second = said
    assert "apiKey" in first
    assert "apiKey" not in second
    for name in ("accountId", "sampleId", "keyFile", "data"):
        assert first[name] == second[name]


def test_what_up_prints_can_be_pasted(tmp_path: Path) -> None:
    """Without a terminal it is plain text with every fact, and its commands do what they say."""
    if shutil.which("curl") is None:
        assert not os.environ.get("CI"), "curl is missing"
        pytest.skip("curl is missing")
    data = tmp_path / "data"
    process = start("up", "--port", "0", data=data)
    try:
        text = said_until(process, lambda line: line.startswith("Ctrl-C"), data)
        assert "\x1b" not in text
        head, _, commands = text.partition("\n# ")
        for needed in ("data ", "languages ", "isolation ", "account ", "key ", "sample "):
            assert f"\n{needed}" in head
        script = "# " + commands.rpartition("\n\n")[0].replace(" try\n", " try --yes\n")
        pasted = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", script],
            capture_output=True,
            text=True,
            env=environment(),
            timeout=60,
        )
    finally:
        end(process)
    assert pasted.returncode == 0, pasted.stderr
    assert 'COMPLETED {"paid": 5' in pasted.stdout
    assert re.search(r'"status":"PENDING","workflowId":"wf_', pasted.stdout)
    assert re.search(r'"approvals":\[', pasted.stdout)


def test_an_account_with_keys_gets_no_further_one(
    call: Call, wfcore: Call, data: Path, applied: str
) -> None:
    """On a store in use `up` makes neither account, key nor sample, and says how to get a key."""
    wfcore(
        *("key", "create", "--account", "ann@example.org", "--name", "n"),
        *("--scope", "WORKFLOW_READ"),
    )
    process = start("up", "--port", "0", "--json", data=data)
    try:
        said = document(process, data)
    finally:
        end(process)
    assert (said["email"], said["keyFile"], said["sampleId"]) == ("ann@example.org", None, None)
    assert not (data / "first.key").exists()


def test_serve_says_where(tmp_path: Path) -> None:
    """`serve --json` prints its URL and store once it answers, and ends cleanly."""
    data = tmp_path / "data"
    process = start("serve", "--port", "0", "--json", data=data)
    try:
        said = document(process, data)
        assert said["store"] == str(data / "wfcore.db")
        with urllib.request.urlopen(f"{said['url']}/healthz", timeout=60) as response:
            assert response.status == 200
    finally:
        assert end(process) == 0


def test_the_commands_to_paste_are_quoted(tmp_path: Path) -> None:
    """A data folder with a blank and a quote in its name gives commands that work."""
    data = tmp_path / "my 'data'"
    process = start("up", "--port", "0", data=data)
    try:
        text = said_until(process, lambda line: line.rstrip().endswith(" try"), data)
    finally:
        end(process)
    assert shlex.split(text.splitlines()[-1])[-2:] == [str(data), "try"]


@pytest.mark.parametrize(("path", "said"), [("/opt/bun", "(Bun 1.4)"), ("/usr/bin/node", "1.4")])
def test_a_version_of_bun_is_not_taken_for_one_of_javascript(path: str, said: str) -> None:
    """Where Bun runs JavaScript, its name stands before its version."""
    state = LanguageState(Language.JAVASCRIPT, True, path, "1.4.2")
    assert list(_language_lines({state.language: state})) == [f"javascript {said}"]
