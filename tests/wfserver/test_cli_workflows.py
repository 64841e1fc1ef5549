"""Workflows and webhooks from the command line."""

from pathlib import Path

import pytest

from wfserver import sample

from .conftest import STEP, Call

MISTAKEN = """\
name: Greet
steps:
  - {name: a, kind: code, language: pyton, source: x}
  - name: b
    kind: manual_approval
    message: "{{ steps.nowhere.output }}"
    timout: 3h
"""


def test_applying_creates_then_updates_by_name(wfcore: Call, tmp_path: Path) -> None:
    """The same text again changes nothing, another text is the next version of the same id."""
    file = tmp_path / "greet.yaml"
    file.write_text(f"name: Greet\n{STEP}\n")
    apply = ("workflow", "apply", str(file), "--owner", "ann@example.org", "--json")
    first = wfcore(*apply).json
    assert first == {"id": first["id"], "name": "Greet", "version": 1}
    assert wfcore(*apply).json == first
    file.write_text(f"name: Greet\ndescription: warmly\n{STEP}\n")
    assert wfcore(*apply).json == {**first, "version": 2}
    assert wfcore("workflow", "list", "--json").json["total"] == 1


def test_all_mistakes_are_listed_and_nothing_is_stored(wfcore: Call, tmp_path: Path) -> None:
    """Each mistake is a line `file:line: path: message`; the store stays as it was."""
    file = tmp_path / "greet.yaml"
    file.write_text(MISTAKEN)
    said = wfcore("workflow", "apply", str(file), "--owner", "ann@example.org")
    assert said.status == 1
    assert all(line.startswith(f"error: {file}:") for line in said.err.splitlines())
    assert f"{file}:3: steps[0].language: " in said.err
    assert f"{file}:6: steps[1].message: " in said.err
    assert f"{file}:7: steps[1].timout: " in said.err
    assert wfcore("workflow", "list", "--json").json == {"items": [], "total": 0}


def test_a_missing_interpreter_is_found_when_applied(
    wfcore: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A language that cannot run here is refused with its line and what to install."""
    monkeypatch.setenv("PATH", "/nowhere")
    text = "name: Greet\nsteps:\n  - {name: a, kind: code, language: lua, source: x}\n"
    said = wfcore("workflow", "apply", "-", "--owner", "ann@example.org", stdin=text)
    assert said.status == 1
    assert "stdin:3: steps[0].language: " in said.err
    assert "apt-get install lua5.4" in said.err


@pytest.mark.parametrize("file", ["/nowhere/x.yaml", "/dev/null/x.yaml"])
def test_an_unreadable_file_is_named(wfcore: Call, file: str) -> None:
    """A file that cannot be read is an error that names it."""
    said = wfcore("workflow", "apply", file, "--owner", "ann@example.org")
    assert said.status == 1
    assert said.err.startswith(f"error: {file}: ")


def test_a_workflow_is_shown_as_the_api_shows_it(wfcore: Call, applied: str) -> None:
    """`show` finds by id and by name and has the API's fields and the shares."""
    shown = wfcore("workflow", "show", "Greet", "--json").json
    assert shown["id"] == applied
    assert shown["workflow"] == [
        {"name": "a", "kind": "code", "language": "command", "command": ["echo", "hello"]}
    ]
    assert shown["shares"] == []
    assert wfcore("workflow", "show", applied, "--json").json == shown


def test_a_name_of_several_owners_wants_an_id(wfcore: Call, applied: str) -> None:
    """Where two owners use one name, the error lists the ids to choose from."""
    wfcore("account", "create", "bob@example.org")
    text = f"name: Greet\n{STEP}"
    other = wfcore(
        "workflow", "apply", "-", "--owner", "bob@example.org", "--json", stdin=text
    ).json
    said = wfcore("workflow", "show", "Greet")
    assert said.status == 1
    assert applied in said.err
    assert other["id"] in said.err


def test_a_share_is_given_and_taken(wfcore: Call, applied: str) -> None:
    """`share` grants a permission, `unshare` takes it away, a second time is an error."""
    bob = wfcore("account", "create", "bob@example.org", "--json").json["id"]
    share = ("--with", "bob@example.org", "--permission", "edit", "--json")
    given = wfcore("workflow", "share", "Greet", *share).json
    assert given == {"workflowId": applied, "accountId": bob, "permission": "EDIT"}
    assert wfcore("workflow", "show", "Greet", "--json").json["shares"] == [given]
    unshare = ("workflow", "unshare", "Greet", "--with", "bob@example.org")
    assert wfcore(*unshare).status == 0
    assert wfcore("workflow", "show", "Greet", "--json").json["shares"] == []
    assert wfcore(*unshare).status == 1


def test_a_deleted_workflow_disables_its_webhooks(wfcore: Call, applied: str) -> None:
    """After `delete` it is gone, and its webhook says why it is disabled."""
    wfcore("webhook", "create", "--workflow", "Greet", "--name", "w", "--secret", "s3cret")
    assert wfcore("workflow", "delete", "Greet", "--json").json == {"ok": True, "id": applied}
    assert wfcore("workflow", "show", applied).status == 1
    webhook = wfcore("webhook", "list", "--json").json["items"][0]
    assert (webhook["status"], webhook["disabledReason"]) == ("DISABLED", "WORKFLOW_DELETED")


def test_the_three_kinds_of_webhooks(wfcore: Call, applied: str) -> None:
    """A key, a secret, or nothing opens a webhook; only a secret is shown, and only once."""
    key = wfcore(
        *("key", "create", "--account", "ann@example.org", "--name", "hook"),
        *("--scope", "WEBHOOK_TRIGGER", "--json"),
    ).json["id"]
    create = ("webhook", "create", "--workflow", "Greet", "--name", "w", "--json")
    by_key = wfcore(*create, "--key", key, "--map", "order=orderId").json
    assert (by_key["authMode"], by_key["apiKeyId"]) == ("API_KEY", key)
    assert by_key["variableMapping"] == {"order": "orderId"}
    assert by_key["triggerUrl"].endswith(f"/api/webhooks/{by_key['id']}/trigger")
    signed = wfcore(*create, "--secret", "s3cret").json
    assert (signed["authMode"], signed["secretKey"]) == ("SIGNATURE", "s3cret")
    opened = wfcore(*create, "--open").json
    assert opened["authMode"] == "NONE"
    listed = wfcore("webhook", "list", "--json")
    assert "s3cret" not in listed.out
    assert [one["id"] for one in listed.json["items"]] == [
        opened["id"],
        signed["id"],
        by_key["id"],
    ]


def test_a_webhook_takes_what_it_is_told_to(wfcore: Call, applied: str) -> None:
    """Its condition and its headers are set, changed and taken away. WH-24, WH-25."""
    create = ("webhook", "create", "--workflow", "Greet", "--name", "w", "--open", "--json")
    when, header = "{{ payload.a }}", "kind=X-Kind"
    made = wfcore(*create, "--when", when, "--header", header).json
    assert (made["when"], made["headers"]) == (when, {"kind": "X-Kind"})
    assert "ignored" in wfcore("webhook", "test", made["id"]).out
    change = ("webhook", "set", made["id"], "--json")
    other = wfcore(*change, "--when", "{{ payload.b }}", "--header", "a=X-A").json
    assert (other["when"], other["headers"]) == ("{{ payload.b }}", {"a": "X-A"})
    gone = wfcore(*change, "--when", "", "--no-headers").json
    assert (gone["when"], gone["headers"]) == (None, None)
    assert "headers.a" in wfcore(*change, "--header", "a=Cookie").err


def test_an_open_webhook_is_marked_loudly(wfcore: Call, applied: str) -> None:
    """A webhook without key and secret is marked when it is made and in the list."""
    made = wfcore("webhook", "create", "--workflow", "Greet", "--name", "w", "--open")
    assert "no key and no secret" in made.err
    assert "OPEN TO ALL" in wfcore("webhook", "list").out


def test_plan_limits_hold_here_too(wfcore: Call, applied: str) -> None:
    """On PRO a fourth webhook is refused, disabled ones count, and come back."""
    create = (
        "webhook",
        "create",
        "--workflow",
        "Greet",
        "--name",
        "w",
        "--secret",
        "s3cret",
        "--json",
    )
    ids = [wfcore(*create).json["id"] for _ in range(3)]
    refused = wfcore(*create)
    assert refused.status == 1
    assert "allows 3 webhooks" in refused.err
    disabled = wfcore("webhook", "set", ids[0], "--status", "disabled", "--json").json
    assert (disabled["status"], disabled["disabledReason"]) == ("DISABLED", "MANUAL")
    assert wfcore(*create).status == 1
    assert wfcore("webhook", "set", ids[0], "--status", "active").status == 0


def test_plan_free_has_no_webhooks(wfcore: Call, applied: str) -> None:
    """On plan FREE the command line makes no webhook either."""
    wfcore("account", "set", "ann@example.org", "--plan", "FREE")
    said = wfcore("webhook", "create", "--workflow", "Greet", "--name", "w", "--open")
    assert said.status == 1
    assert "PRO" in said.err


def test_a_webhook_belongs_to_its_keys_account(wfcore: Call, applied: str) -> None:
    """With `--key` of an account that may not edit the workflow it is refused."""
    wfcore("account", "create", "bob@example.org", "--plan", "PRO")
    key = wfcore(
        *("key", "create", "--account", "bob@example.org", "--name", "hook"),
        *("--scope", "WEBHOOK_TRIGGER", "--json"),
    ).json["id"]
    create = ("webhook", "create", "--workflow", applied, "--name", "w", "--key", key)
    assert wfcore(*create).status == 1
    wfcore("workflow", "share", applied, "--with", "bob@example.org", "--permission", "EDIT")
    assert wfcore(*create).status == 0
    assert (
        wfcore("webhook", "create", "--workflow", applied, "--name", "w", "--key", "x").status == 1
    )


def test_a_deleted_webhook_is_gone(wfcore: Call, applied: str) -> None:
    """`delete` answers its id once, then it is not found."""
    made = wfcore(
        "webhook", "create", "--workflow", "Greet", "--name", "w", "--secret", "s3cret", "--json"
    ).json
    deleted = wfcore("webhook", "delete", made["id"], "--json").json
    assert deleted == {"ok": True, "webhookId": made["id"]}
    assert wfcore("webhook", "delete", made["id"]).err == "error: Webhook not found\n"


def test_the_sample_can_be_applied(wfcore: Call) -> None:
    """The bundled sample is a definition without mistakes."""
    said = wfcore(
        "workflow", "apply", "-", "--owner", "ann@example.org", stdin=sample.text().decode()
    )
    assert said.status == 0, said.err


def test_a_webhook_of_a_sender_with_a_scheme(wfcore: Call, applied: str) -> None:
    """A secret is made or given, shown once, and rotated; what cannot be is said. SG-7, WH-19."""
    create = ("webhook", "create", "--workflow", "Greet", "--name", "w", "--scheme")
    made = wfcore(*create, "standard", "--json").json
    assert made["scheme"] == "standard"
    assert made["secretKey"].startswith("whsec_")
    turned = wfcore("webhook", "set", made["id"], "--new-secret", "--overlap", "1h", "--json").json
    assert turned["secretKey"] not in (made["secretKey"], None)
    assert turned["oldSecretUntil"] == turned["updatedAt"] + 3_600_000
    again = wfcore(
        "webhook", "set", made["id"], "--scheme", "github", "--secret", "s3cret", "--json"
    )
    assert (again.json["scheme"], again.json["oldSecretUntil"]) == ("github", None)
    shown = wfcore("webhook", "create", "--workflow", "Greet", "--name", "w", "--scheme", "github")
    assert "whsec_" in shown.out
    assert "whsec_" not in wfcore("webhook", "list", "--json").out
    assert "secret" in wfcore(*create, "stripe").err
    assert wfcore("webhook", "set", made["id"]).status == 2
    assert wfcore("webhook", "set", made["id"], "--secret", "s3cret", "--new-secret").status == 2


def test_deliveries_are_listed_tried_and_replayed(wfcore: Call, applied: str) -> None:
    """A test, its row, its replay; a payload that is no object is told. WH-20, WH-22, WH-23."""
    create = ("webhook", "create", "--workflow", "Greet", "--name", "w", "--scheme", "slack")
    id = wfcore(*create, "--secret", "s3cret", "--json").json["id"]
    tried = wfcore("webhook", "test", id, "--payload", '{"name": "Bob"}', "--json").json
    first = wfcore("webhook", "deliveries", id, "--json").json["items"][0]
    assert (first["kind"], first["executionId"]) == ("test", tried["executionId"])
    again = wfcore("webhook", "replay", id, first["id"], "--json").json
    assert again["executionId"] != tried["executionId"]
    listed = wfcore("webhook", "deliveries", id).out
    assert all(word in listed for word in ("test", "replay", again["executionId"]))
    assert "--payload" in wfcore("webhook", "test", id, "--payload", "[1").err
    assert "--payload" in wfcore("webhook", "test", id, "--payload", "[1]").err
    assert wfcore("webhook", "replay", id, "dlv_0").err == "error: Delivery not found\n"


def test_a_definition_is_drawn(call: Call, tmp_path: Path) -> None:
    """As SVG, Mermaid or text, without a data folder; mistakes are told as by validate. DF-13."""
    file = tmp_path / "flow.yaml"
    file.write_text("name: Two\nsteps:\n  - {name: one, kind: delay, duration: 1s}\n")
    assert call("workflow", "draw", str(file)).out.startswith("<svg ")
    assert call("workflow", "draw", str(file), "--as", "text").out == "one  delay\n"
    assert call("workflow", "draw", str(file), "--as", "mermaid").out.startswith("flowchart TD\n")
    file.write_text("name: Two\nsteps: []\nstep: 1\n")
    assert "flow.yaml:3: step: unknown field" in call("workflow", "draw", str(file)).err
