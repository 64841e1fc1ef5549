"""Accounts and keys from the command line."""

import re

import pytest

from .conftest import Call

FORM = re.compile(r"wfk_[0-9a-z]{28}_[0-9A-Za-z]{42}")


def test_an_account_is_made_and_found_by_id_or_email(wfcore: Call) -> None:
    """`create` answers id, email, plan and status; `set` takes the id or the email."""
    made = wfcore("account", "create", "Bob@Example.org", "--json").json
    assert made == {**made, "email": "bob@example.org", "plan": "FREE", "status": "ACTIVE"}
    assert set(made) == {"id", "email", "plan", "status", "operator"}
    by_id = wfcore("account", "set", made["id"], "--plan", "TEAM", "--json").json
    assert by_id == {**made, "plan": "TEAM"}
    by_email = wfcore("account", "set", "BOB@example.org", "--status", "locked", "--json").json
    assert by_email == {**by_id, "status": "LOCKED"}


def test_an_account_is_made_an_operator(wfcore: Call) -> None:
    """With `--operator` when it is made or later, and no more with `--no-operator`. AC-7."""
    made = wfcore("account", "create", "bob@example.org", "--operator", "--json").json
    assert made["operator"] is True
    for option, operates in (("--no-operator", False), ("--operator", True)):
        assert wfcore("account", "set", made["id"], option, "--json").json["operator"] is operates
    assert wfcore("account", "set", made["id"], "--plan", "PRO", "--json").json["operator"] is True


def test_accounts_are_listed_newest_first(wfcore: Call) -> None:
    """`list` prints items and their exact number, also where fewer are shown."""
    wfcore("account", "create", "bob@example.org")
    listed = wfcore("account", "list", "--limit", "1", "--json").json
    assert listed["total"] == 2
    assert [one["email"] for one in listed["items"]] == ["bob@example.org"]
    assert "1 of 2" in wfcore("account", "list", "--limit", "1").out


def test_a_password_comes_from_stdin_only(wfcore: Call) -> None:
    """A password is read from stdin, held to its rules and never shown."""
    short = wfcore("account", "set", "ann@example.org", "--password-stdin", stdin="short\n")
    assert short.status == 1
    assert "password" in short.err
    said = wfcore(
        "account", "create", "bob@example.org", "--password-stdin", stdin="correct horse\n"
    )
    assert said.status == 0
    assert "horse" not in said.out + said.err


def test_an_email_is_taken_once(wfcore: Call) -> None:
    """A second account of the same email fails and says so."""
    said = wfcore("account", "create", "ANN@example.org")
    assert said.status == 1
    assert "ann@example.org exists already" in said.err


def test_an_unknown_account_is_named(wfcore: Call) -> None:
    """An account that is not there is named, with the option and what shows the others."""
    said = wfcore("key", "list", "--account", "nobody@example.org")
    assert said.status == 1
    assert said.err.startswith("error: --account: ")
    assert "nobody@example.org" in said.err
    assert "wfcore account list" in said.err


def _key(wfcore: Call, *more: str) -> dict[str, object]:
    said = wfcore(
        *("key", "create", "--account", "ann@example.org", "--name", "ci"),
        *("--scope", "workflow_read", "--scope", "WEBHOOK_TRIGGER", *more, "--json"),
    )
    assert said.status == 0
    key: dict[str, object] = said.json
    return key


def test_a_key_is_shown_once(wfcore: Call) -> None:
    """The text of a key is in the answer that makes it and in no other."""
    made = _key(wfcore)
    assert FORM.fullmatch(str(made["apiKey"]))
    assert made["scopes"] == ["WEBHOOK_TRIGGER", "WORKFLOW_READ"]
    assert made["expiresAt"] is None
    listed = wfcore("key", "list", "--account", "ann@example.org", "--json").json
    assert listed["total"] == 1
    once = {"apiKey", "callbackSecret"}
    assert once < made.keys()
    assert listed["items"][0] == {name: made[name] for name in made.keys() - once}


def test_a_key_may_expire(wfcore: Call) -> None:
    """`--expires-in 72h` sets the expiry 72 hours after the creation."""
    made = _key(wfcore, "--expires-in", "72h")
    assert made["expiresAt"] == made["createdAt"] + 72 * 3_600_000  # type: ignore[operator]


def test_rotation_keeps_the_id(wfcore: Call) -> None:
    """`rotate` answers another text under the same id, and until when the old one is good."""
    made = _key(wfcore)
    rotated = wfcore("key", "rotate", str(made["id"]), "--overlap", "1h", "--json").json
    assert rotated["id"] == made["id"]
    assert rotated["apiKey"] != made["apiKey"]
    assert rotated["previousUntil"] is not None


def test_a_revoked_key_stays_revoked(wfcore: Call) -> None:
    """`revoke` says when, a second time changes nothing, and it cannot be rotated."""
    made = _key(wfcore)
    first = wfcore("key", "revoke", str(made["id"]), "--json").json
    assert first["revokedAt"] is not None
    assert wfcore("key", "revoke", str(made["id"]), "--json").json == first
    assert wfcore("key", "rotate", str(made["id"])).status == 1


@pytest.mark.parametrize("verb", ["revoke", "rotate"])
def test_an_unknown_key_is_not_found(wfcore: Call, verb: str) -> None:
    """A key that is not there is an error of its own."""
    said = wfcore("key", verb, "nothing")
    assert (said.status, said.err) == (1, "error: Key not found\n")


def test_sessions_are_listed_and_ended(wfcore: Call) -> None:
    """`session end` signs an account out; one of nobody's is an error that says so. SE-4."""
    assert wfcore("session", "list", "ann@example.org", "--json").json == {"items": [], "total": 0}
    assert wfcore("session", "end", "ann@example.org", "--json").json == {"ok": True}
    assert "ann@example.org is signed out" in wfcore("session", "end", "ann@example.org").out
    missing = wfcore("session", "end", "ann@example.org", "0" * 64)
    assert (missing.status, "Session not found" in missing.err) == (1, True)
    assert "no account" in wfcore("session", "list", "nobody@example.org").err
    events = [one["event"] for one in wfcore("audit", "--json").json["items"]]
    assert events.count("session.end_all") == 2


def test_login_prints_a_link(wfcore: Call) -> None:
    """One that signs the account in once, for as long as was asked for, up to a day. SE-7."""
    url = wfcore("login", "ANN@example.org", "--json").json["url"]
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+/in/[0-9A-Za-z_-]{43}", url)
    assert wfcore("login", "ann@example.org", "--minutes", "1440").out.count("/in/") == 1
    assert wfcore("login", "ann@example.org", "--minutes", "1441").status == 2
    assert "no account" in wfcore("login", "nobody@example.org").err
    events = [one["event"] for one in wfcore("audit", "--json").json["items"]]
    assert events.count("login_link.create") == 2


def test_a_missing_scope_names_those_there_are(wfcore: Call) -> None:
    """In one readable line, without the control characters of a list."""
    said = wfcore("key", "create", "--account", "ann@example.org", "--name", "shop")
    assert said.status == 2
    assert "Choose from: WORKFLOW_READ, " in said.err or "Choose from: workflow_read, " in said.err
    assert "\t" not in said.err


def test_groups_at_the_command_line(wfcore: Call) -> None:
    """A group is created, filled, shown, listed and deleted, on the host or elsewhere. AP-49."""
    who = ("ann@example.org", "tax@example.com")
    made = wfcore("group", "create", "finance", *who, "--json").json
    assert made == {"name": "finance", "members": [*who]}
    assert wfcore("group", "create", "finance").status == 1
    added = wfcore("group", "add", "finance", "Bob@Example.org", "--json").json
    assert added["members"] == [*who, "bob@example.org"]
    assert wfcore("group", "remove", "finance", "bob@example.org").status == 0
    wrong = wfcore("group", "add", "finance", "nobody")
    assert (wrong.status, "add[0]" in wrong.err) == (1, True)
    assert wfcore("group", "add", "finance").status == 2
    listed = wfcore("group", "list")
    assert "ann@example.org, tax@example.com" in listed.out
    flow = "name: f\nsteps: [{name: a, kind: manual_approval, message: m, approvers: ['group:%s']}]"
    owner = ("workflow", "apply", "-", "--owner", "ann@example.org")
    refused = wfcore(*owner, stdin=flow % "finanse")
    assert (refused.status, "did you mean finance?" in refused.err) == (1, True)
    assert "line 2" in refused.err or "steps[0].approvers[0]" in refused.err
    tried = wfcore(*owner, "--dry-run", stdin=flow % "finanse")
    assert (tried.status, "did you mean finance?" in tried.err) == (1, True)
    assert wfcore(*owner, stdin=flow % "finance").status == 0
    hidden = wfcore(*owner, stdin=(flow % "finance") + "\napproverGroups: {finance: [x@y.org]}")
    assert (hidden.status, "too; here the definition's counts" in hidden.err) == (0, True)
    assert wfcore(*owner, stdin=flow % "finance").status == 0
    shown = wfcore("group", "show", "finance")
    assert "no account" in shown.out
    assert "used by f" in shown.out
    used = wfcore("group", "delete", "finance")
    assert (used.status, "is an approver in f" in used.err) == (1, True)
    assert wfcore("workflow", "delete", "f").status == 0
    assert wfcore("group", "delete", "finance").status == 0
    assert wfcore("group", "list", "--json").json == {"items": [], "total": 0}


def test_a_person_is_invited(wfcore: Call) -> None:
    """`invite` makes an account in groups, and prints a link that signs the person in once."""
    wfcore("group", "create", "finance")
    made = wfcore("account", "invite", "Bob@Example.org", "--group", "finance", "--json").json
    assert (made["email"], made["operator"]) == ("bob@example.org", False)
    assert re.fullmatch(r"https?://[^/]+/in/[\w-]{43}", made["url"])
    assert "bob@example.org" in wfcore("group", "show", "finance").out
    again = wfcore("account", "invite", "bob@example.org")
    assert (again.status, "exists already" in again.err) == (1, True)
