"""The command line against a server elsewhere: nothing of its data folder is read here."""

import json
from pathlib import Path
from typing import Any

import attrs
import pytest

from tests.system.scenarios.process import hourly
from wfcore import __version__
from wfcore.model.workflow import Language
from wfcore.usecases.administration.operations import OPERATIONS
from wfcore.usecases.administration.operator import parameters_of
from wfcore.wire.converter import wire_name
from wfserver.definitions.read import interpreters
from wfserver.terminal.http_client import Api, ServerRefused

from .conftest import STEP, Call, Running, Said, program, up

__all__ = ["up"]

ASKS = "steps: [{name: ask, kind: manual_approval, message: Go on}]"


@pytest.fixture(scope="module")
def key(up: Running) -> str:
    """A key of scope ADMIN of the account that `up` made, made beside the server's data."""
    said = program("--data", str(up.data), "account", "list", "--json").json
    (account,) = said["items"]
    made = ("key", "create", "--account", account["id"], "--name", "ci", "--scope", "ADMIN")
    return str(program("--data", str(up.data), *made, "--json").json["apiKey"])


@pytest.fixture
def far(call: Call, up: Running, key: str, monkeypatch: pytest.MonkeyPatch) -> Call:
    """The command line in an empty folder, with the server's URL."""

    def far(*arguments: str, stdin: str = "") -> Said:
        monkeypatch.setenv("WFCORE_KEY", key)
        said = call("--url", up.url, *arguments, stdin=stdin)
        assert not Path("wfcore-data").exists()
        return said

    return far


def test_people_keys_and_workflows_are_managed_from_elsewhere(far: Call) -> None:
    """Accounts, keys, secrets, sessions, workflows, webhooks: as on the host, by --url. AC-8."""
    bob = far("account", "create", "bob@example.org", "--plan", "PRO", "--json").json
    assert far("account", "set", bob["id"], "--plan", "TEAM", "--json").json["plan"] == "TEAM"
    assert "bob@example.org" in far("account", "list").out
    made = far(
        *["key", "create", "--account", "bob@example.org", "--name", "erp", "--json"], *SCOPE
    ).json
    assert far("key", "rotate", made["id"], "--json").json["apiKey"] != made["apiKey"]
    assert far("key", "revoke", made["id"]).status == 0
    assert "revoked" in far("key", "list", "--account", bob["id"]).out
    assert far("secret", "set", "TOKEN", "--account", bob["id"], stdin="s3cr3t").status == 0
    listed = far("secret", "list", "--account", bob["id"], "--json")
    assert [one["name"] for one in listed.json["items"]] == ["TOKEN"]
    assert "s3cr3t" not in listed.out
    assert "/in/" in far("login", bob["id"]).out
    assert far("session", "list", bob["id"], "--json").json["total"] == 0
    applied = far(
        "workflow", "apply", "-", "--owner", bob["id"], "--json", stdin=f"name: Far\n{STEP}"
    )
    hook = far("webhook", "create", "--workflow", "Far", "--name", "h", "--open", "--json").json
    assert hook["workflowId"] == applied.json["id"]
    assert hook["triggerUrl"].startswith("http")
    assert hook["id"] in far("webhook", "list").out
    assert far("webhook", "delete", hook["id"]).status == 0
    assert far("workflow", "show", "Far", "--json").json["ownerId"] == bob["id"]
    assert far("workflow", "delete", "Far").status == 0


SCOPE = ("--scope", "WORKFLOW_READ")


def test_work_is_started_watched_and_decided_from_elsewhere(far: Call, up: Running) -> None:
    """Executions, their logs, approvals, audit and evidence: as on the host, by --url. AC-8."""
    far("account", "create", "eve@example.org", "--plan", "PRO")
    text = f"name: Ask\n{ASKS}"
    far("workflow", "apply", "-", "--owner", "eve@example.org", stdin=text)
    waiting = far("execution", "start", "Ask", "--wait", "--json")
    assert waiting.status == 0, waiting
    assert (waiting.status, waiting.json["status"]) == (0, "AWAITING_APPROVAL")
    id = waiting.json["executionId"]
    (asked,) = far("approval", "list", "--execution", id, "--json").json["items"]
    assert far("approval", "approve", asked["id"], "--comment", "fine").status == 0
    assert far("approval", "show", asked["id"], "--json").json["comment"] == "fine"
    assert far("execution", "logs", id, "--follow", "--json").json == {"items": []}
    watched = far("execution", "watch", id)
    assert (watched.status, watched.out.splitlines()[-1]) == (0, f"{id} is COMPLETED")
    assert far("execution", "show", id, "--json").json["status"] == "COMPLETED"
    assert far("execution", "explain", id).status == 0
    assert id in far("execution", "list", "--workflow", "Ask").out
    assert far("audit", "verify").status == 0
    (node,) = far("nodes", "list", "--json").json["items"]
    assert (node["state"], node["role"], node["version"]) == ("taking", "all", __version__)
    assert (up.url, node["pid"] > 1, bool(node["host"])) == (
        f"http://{node['address']}",
        True,
        True,
    )
    assert node["startedAt"] <= node["seenAt"]
    heads = far("nodes", "list").out.splitlines()[0].split()
    assert {"state", "role", "host", "seen", "version", "address"} <= {*heads}
    here = {one.value for one, state in interpreters().states().items() if state.available}
    listed = {one.removeprefix("language:").partition(":")[0] for one in node["able"]}
    assert listed & {*Language} == here
    assert far("notice", "list", "--json").status == 0
    assert far("trigger", "list", "--json").status == 0
    assert far("evidence", id).status == 0
    assert far("evidence", "verify", f"{id}.evidence.json").status == 0


def test_files_are_fetched_from_elsewhere(far: Call) -> None:
    """An artifact by its name or id, whole, into a new file or to stdout; no other is replaced."""
    far("account", "create", "fay@example.org", "--plan", "PRO")
    command = 'printf "a\\tb" > "$WF_ARTIFACTS/my report.tsv"'
    step = {"name": "a", "kind": "code", "language": "bash", "source": command}
    text = json.dumps({"name": "Leaves", "steps": [step]})
    far("workflow", "apply", "-", "--owner", "fay@example.org", stdin=text)
    id = far("execution", "start", "Leaves", "--wait", "--json").json["executionId"]
    (listed,) = far("artifact", "list", id, "--json").json["items"]
    assert (listed["name"], listed["size"]) == ("my report.tsv", 3)
    said = far("artifact", "get", id, "my report.tsv")
    assert (said.status, said.out) == (0, "my report.tsv: 3 bytes\n"), said.err
    assert Path("my report.tsv").read_bytes() == b"a\tb"
    assert "exists already" in far("artifact", "get", id, listed["id"]).err
    assert far("artifact", "get", id, listed["id"], "--output", "x").status == 0
    assert "Artifact not found" in far("artifact", "get", id, "other").err
    assert not Path("other").exists()


def test_what_is_done_from_elsewhere_is_noted_as_the_operators(far: Call, key: str) -> None:
    """The audit log names account and key of whoever administers, whoever's it is. AC-8."""
    far("account", "create", "dan@example.org")
    entries = far("audit", "--since", "1h", "--json").json["items"]
    (mine,) = [one for one in entries if one["keyId"] == key.split("_")[1]][-1:]
    assert (mine["event"], mine["path"]) == ("account.create", "/api/admin/account.create")
    assert mine["accountId"] is not None


def test_an_admin_key_makes_no_other(far: Call) -> None:
    """ADMIN is made and rotated on the host alone. AC-8."""
    account = far("account", "list", "--json").json["items"][-1]["id"]
    asked = ("--account", account, "--name", "x", "--scope", "ADMIN")
    refused = far("key", "create", *asked)
    assert refused.status == 1
    assert "on the server's host alone" in refused.err
    (mine,) = [
        one for one in far("key", "list", "--account", account, "--json").json["items"]
        if "ADMIN" in one["scopes"]
    ]  # fmt: skip
    assert "on the server's host alone" in far("key", "rotate", mine["id"]).err


@pytest.mark.parametrize(
    "command",
    ["backup x", "restore x", "check", "compact", "serve", "up", "try", "run x", "doctor",
     "seal status"],
)  # fmt: skip
def test_what_needs_the_data_folder_says_so(far: Call, command: str) -> None:
    """A command of the host's own does nothing here, and says where to run it."""
    Path("x").write_text("name: x\n" + STEP)
    said = far(*command.split())
    assert said.status == 2
    assert "works on the data folder of its host" in said.err


def test_a_key_without_the_scope_opens_nothing(
    call: Call, up: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No key, another key and a foreign one: the command says what it needs. AC-8."""
    assert "WFCORE_KEY" in call("--url", up.url, "account", "list").err
    ordinary = (up.data / "first.key").read_text().strip()
    for wrong in (ordinary, "wfk_nope"):
        monkeypatch.setenv("WFCORE_KEY", wrong)
        said = call("--url", up.url, "account", "list")
        assert said.status == 1
        assert "scope ADMIN" in said.err
        assert wrong not in said.err
    monkeypatch.setenv("WFCORE_KEY", ordinary)
    assert "must be like https" in call("--url", "ftp://x", "account", "list").err


@pytest.mark.parametrize("name", OPERATIONS)
def test_no_operation_fails_on_what_a_client_sends(up: Running, key: str, name: str) -> None:
    """Anything for each parameter: an answer or a refusal that says why, never a defect. ER-1."""
    api = Api(up.url, key)
    junk = ["", "x", "\ud800", -1, 0, 2**53, 2**63, 2**80, True, None, [], ["x"], {}, {"x": 1}, 1.5]
    parameters = _parameters(name)
    for value in junk:
        for body in (
            dict.fromkeys(parameters, value),
            {**dict.fromkeys(parameters, "x"), "y": 1},
            *({**dict.fromkeys(_needed(name), "x"), one: value} for one in parameters),
        ):
            refusal = _refusal(api, name, body)
            if refusal is not None:
                assert refusal.status in (400, 403, 404, 409, 413), (body, refusal)
                assert refusal.says


def _refusal(api: Api, name: str, body: Any) -> ServerRefused | None:
    try:
        api.call("POST", f"/api/admin/{name}", body)
    except ServerRefused as refusal:
        return refusal
    return None


def _parameters(name: str) -> list[str]:
    return [wire_name(one.name) for one in attrs.fields(parameters_of(OPERATIONS[name]))]


def _needed(name: str) -> list[str]:
    fields = attrs.fields(parameters_of(OPERATIONS[name]))
    return [wire_name(one.name) for one in fields if one.default is attrs.NOTHING]


def test_a_folder_is_previewed_applied_and_pruned(far: Call) -> None:
    """`apply` of a folder shows differences, changes all or none, and deletes only with --prune."""
    far("account", "create", "flo@example.org", "--plan", "PRO")
    owner = ("--owner", "flo@example.org")
    folder = Path("flows")
    folder.mkdir()
    (folder / "b.yaml").write_text(f"name: B\n{STEP}\n")
    (folder / "a.yaml").write_text(
        f"name: A\ntriggers: [{{kind: DELAYED_COMPLETION, workflow: B, delaySeconds: 9}}]\n{STEP}\n"
    )
    dry = far("workflow", "apply", str(folder), *owner, "--dry-run")
    assert dry.status == 3
    assert "+name: B" in dry.out
    assert far("workflow", "list", "--json").json["items"] == [
        one for one in far("workflow", "list", "--json").json["items"] if one["name"] not in "AB"
    ]
    applied = far("workflow", "apply", str(folder), *owner, "--json")
    assert [one["version"] for one in applied.json["items"]] == [1, 1]
    assert far("workflow", "apply", str(folder), *owner, "--dry-run").status == 0
    (folder / "c.yaml").write_text("name: C\nsteps: 5\n")
    (folder / "b.yaml").write_text(f"name: B\n# new\n{STEP.replace('hello', 'bye')}\n")
    refused = far("workflow", "apply", str(folder), *owner)
    assert refused.status == 1
    assert "c.yaml:" in refused.err
    assert far("workflow", "versions", "B", "--json").json["total"] == 1
    (folder / "c.yaml").unlink()
    (folder / "a.yaml").unlink()
    dry = far("workflow", "apply", str(folder), *owner, "--dry-run", "--prune", "--json").json
    assert [(one["name"], one["change"]) for one in dry["items"]] == [
        ("B", "changed"),
        ("A", "deleted"),
    ]
    assert far("workflow", "apply", str(folder), *owner, "--prune").status == 1
    assert far("workflow", "show", "A").status == 0
    assert far("workflow", "apply", str(folder), *owner, "--prune", "--yes").status == 0
    assert far("workflow", "show", "A").status == 1
    assert far("workflow", "export", "B").out == (folder / "b.yaml").read_text()
    assert "hello" in far("workflow", "export", "B", "--version", "1").out
    assert far("workflow", "rollback", "B", "--to", "1", "--json").json["version"] == 3
    assert far("workflow", "export", "B").out == f"name: B\n{STEP}\n"
    assert far("workflow", "rollback", "B", "--to", "9").status == 1


def test_executions_are_cancelled_and_redriven_by_a_filter(far: Call) -> None:
    """Shown first, changed with --yes, each once: what was redriven is not redriven again."""
    far("account", "create", "gil@example.org", "--plan", "PRO")
    far("workflow", "apply", "-", "--owner", "gil@example.org", stdin=f"name: Gil\n{ASKS}")
    ids = {far("execution", "start", "Gil", "--json").json["executionId"] for _ in range(3)}
    these = ("--workflow", "Gil")
    shown = far("execution", "cancel", *these)
    assert shown.status == 1
    assert all(id in shown.err for id in ids)
    assert far("execution", "list", *these, "--status", "CANCELLED", "--json").json["total"] == 0
    done = far("execution", "cancel", *these, "--yes", "--json").json
    assert {one["executionId"] for one in done["items"]} == ids
    ended = (*these, "--status", "CANCELLED")
    assert far("execution", "redrive", *ended).status == 1
    again = far("execution", "redrive", *ended, "--yes", "--json").json
    assert {one["id"] for one in again["items"]} == ids
    assert far("execution", "redrive", *ended, "--yes", "--json").json["items"] == []
    assert far("execution", "list", *these, "--json").json["total"] == 6
    one = next(iter(ids))
    assert far("execution", "redrive", one, "--json").json["executionId"]
    assert far("execution", "cancel").status == 2
    assert far("execution", "cancel", "exec_x", *these).status == 2


def test_a_schedule_is_started_for_hours_that_passed(far: Call) -> None:
    """Shown first, started with --yes, each hour once. SH-11."""
    far("account", "create", "ida@example.org", "--plan", "PRO")
    text = f"name: Ida\n{ASKS}\ntriggers: [{{kind: SCHEDULE, cron: {hourly()!r}}}]\n"
    assert far("workflow", "apply", "-", "--owner", "ida@example.org", stdin=text).status == 0
    (trigger,) = far("trigger", "list", "--workflow", "Ida", "--json").json["items"]
    these = ("trigger", "backfill", trigger["id"], "--from", "4h", "--to", "1h")
    shown = far(*these, "--dry-run", "--json").json
    assert shown["total"] == 3
    assert far(*these).status == 1  # nobody is there to be asked
    assert far("execution", "list", "--workflow", "Ida", "--json").json["total"] == 0
    done = far(*these, "--yes", "--json").json
    assert [one["scheduledFor"] for one in done["items"]] == [
        one["scheduledFor"] for one in shown["items"]
    ]
    assert all(one["startedNow"] for one in done["items"])
    again = far(*these, "--yes")
    assert again.status == 0
    assert again.out.count("was started") == 3
    assert far("execution", "list", "--workflow", "Ida", "--json").json["total"] == 3
    assert far("trigger", "backfill", trigger["id"], "--from", "4h").status == 2
    assert far("trigger", "pause", trigger["id"]).status == 0
    refused = far("trigger", "backfill", trigger["id"], "--from", "9h", "--to", "8h", "--yes")
    assert (refused.status, "PAUSED" in refused.out) == (1, True)


def test_a_key_from_a_file_may_end_with_a_line(
    far: Call, up: Running, call: Call, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As files do that hold a secret."""
    monkeypatch.setenv("WFCORE_KEY", f"{key}\n")
    assert call("--url", up.url, "account", "list").status == 0


def test_a_link_that_leads_nowhere_prunes_nothing(far: Call) -> None:
    """A file that cannot be read is an error, and no reason to delete its workflow."""
    far("account", "create", "pia@example.org", "--plan", "PRO")
    owner = ("--owner", "Pia@example.org")
    folder = Path("linked")
    folder.mkdir()
    (folder / "i.yaml").write_text(f"name: I1\n{STEP}\n")
    Path("i2").write_text(f"name: I2\n{STEP}\n")
    (folder / "i2.yaml").symlink_to(Path("i2").absolute())
    assert far("workflow", "apply", str(folder), *owner).status == 0
    Path("i2").unlink()
    said = far("workflow", "apply", str(folder), *owner, "--prune", "--yes")
    assert (said.status, "i2.yaml" in said.err) == (1, True)
    assert far("workflow", "show", "I2").status == 0
    (folder / "i2.yaml").unlink()
    assert far("workflow", "apply", str(folder), *owner, "--prune", "--yes").status == 0
    assert far("workflow", "show", "I2").status == 1


def test_what_was_redriven_does_not_keep_others_from_it(
    far: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their status stays FAILED or CANCELLED; a page full of them is passed over."""
    far("account", "create", "kim@example.org", "--plan", "PRO")
    far("workflow", "apply", "-", "--owner", "kim@example.org", stdin=f"name: Kim\n{ASKS}")
    these = ("--workflow", "Kim")
    ids = [far("execution", "start", "Kim", "--json").json["executionId"] for _ in range(3)]
    assert far("execution", "cancel", *these, "--yes").status == 0
    monkeypatch.setattr("wfserver.terminal.bulk._MOST_AT_ONCE", 2)
    redrive = ("execution", "redrive", *these, "--status", "CANCELLED", "--yes", "--json")
    done = [far(*redrive).json for _ in range(3)]
    assert [[one["id"] for one in each["items"]] for each in done] == [ids[:2], ids[2:], []]
    assert done[0]["left"] == 1


def test_an_account_is_deleted_with_what_it_has(far: Call) -> None:
    """Shown first; refused while executions are going, unless they are to be cancelled. AC-9."""
    far("account", "create", "joe@example.org", "--plan", "PRO")
    far("workflow", "apply", "-", "--owner", "joe@example.org", stdin=f"name: Joe\n{ASKS}")
    run = far("execution", "start", "Joe", "--json").json["executionId"]
    this = ("account", "delete", "joe@example.org")
    shown = far(*this, "--dry-run", "--json").json
    assert (shown["workflows"], shown["executions"], shown["going"]) == (1, 1, 1)
    assert far(*this).status == 1  # nobody is there to be asked
    refused = far(*this, "--yes")
    assert (refused.status, "1 executions have not ended" in refused.err) == (1, True)
    assert far("execution", "show", run).status == 0
    assert far(*this, "--cancel", "--yes", "--json").json["email"] == "joe@example.org"
    assert far("execution", "show", run).status == 1
    assert far("workflow", "show", "Joe").status == 1
    assert far(*this, "--yes").status == 1
    entries = far("audit", "--json").out
    assert "account.delete" in entries
