"""Workflows in the hands of their authors: created, compared, restored, shared, deleted."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from adapters_http.app import HttpConfig
from tests.support.http_world import World, a_world
from wfcore.model.access import OPERATOR, Account, Principal
from wfcore.usecases.accounts.accounts import set_secret
from wfcore.usecases.accounts.groups import create_group
from wfcore.usecases.audit.auditing import AuditFilter, search_audit
from wfserver.definitions.read import checked

from .test_operating import DELAY

SLOWER = DELAY.replace("1s", "2s")
TESTS = "definition: flow.yaml\nscenarios: []\n"


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    config = HttpConfig(read_definition=lambda text: checked(text, ""))
    async with a_world(tmp_path, config) as made:
        yield made


async def asked(
    world: World, method: str, path: str, body: Any = None, who: Account | None = None
) -> Any:
    session = await world.sign_in(who.email.partition("@")[0] if who else "ann")
    return await world.http.request(method, path, json=body, headers=session)


async def created(world: World, text: str = DELAY, **more: Any) -> str:
    answer = await asked(world, "POST", "/api/workflows", {"definition": text, **more})
    assert answer.status_code == 201, answer.text
    id: str = answer.json()["workflowId"]
    return f"/api/workflows/{id}"


async def test_a_workflow_is_created_once(world: World):
    """201 with its text; the same name again is 409, and changes nothing. DF-21."""
    path = await created(world, tests=TESTS)
    first = (await asked(world, "GET", f"{path}/versions/1")).json()
    assert (first["text"], first["written"], first["tests"]) == (DELAY, True, TESTS)
    again = await asked(world, "POST", "/api/workflows", {"definition": SLOWER})
    assert (again.status_code, "already" in again.json()["error"]) == (409, True)
    assert (await asked(world, "GET", f"{path}/versions")).json()["total"] == 1


async def test_mistakes_are_listed_by_line(world: World):
    """Each with its line, path and message; nothing is stored."""
    wrong = "name: flow\nsteps:\n  - {name: a, kind: dely}\n"
    answer = await asked(world, "POST", "/api/workflows", {"definition": wrong})
    assert answer.status_code == 400
    (mistake,) = answer.json()["mistakes"]
    assert (mistake["line"], mistake["path"]) == (3, "steps[0].kind")
    assert "did you mean delay?" in mistake["message"]
    assert (await asked(world, "GET", "/api/workflows")).json()["items"] == []


STATEFUL = f"{DELAY}\nstate:\n  cursor: {{type: string, default: ''}}\n"


async def test_whoever_drops_kept_state_is_told(world: World):
    """By name, at every door of authors: another text, a restored version. SV-5."""
    path = await created(world)
    kept = await asked(world, "PUT", path, {"definition": STATEFUL, "version": 1})
    assert kept.json()["warnings"] == []
    await asked(world, "PUT", f"{path}/state", {"state": {"cursor": "c7"}})
    restored = await asked(world, "POST", f"{path}/versions/1/restore", {"version": 2})
    assert "cursor" in "".join(restored.json()["warnings"])
    await asked(world, "PUT", path, {"definition": STATEFUL, "version": 3})
    seen = await asked(world, "GET", f"{path}/state")
    assert seen.json()["state"]["cursor"] == ""  # what was dropped does not come back
    await asked(world, "PUT", f"{path}/state", {"state": {"cursor": "c8"}})
    dropped = await asked(world, "PUT", path, {"definition": DELAY, "version": 4})
    assert "cursor" in "".join(dropped.json()["warnings"])


async def test_whoever_hides_a_group_of_the_server_is_told(world: World):
    """The definition's group counts, and the answer says so. AP-49."""
    await create_group(world.services, OPERATOR, "finance", ["ann@example.org"])
    text = f"{DELAY}\napproverGroups: {{finance: [tax@example.org]}}\n"
    answer = await asked(world, "POST", "/api/workflows", {"definition": text})
    assert "finance" in "".join(answer.json()["warnings"])


async def test_tests_are_kept_beside_the_definition(world: World):
    """A text without tests keeps them; other tests alone are a version, too. DF-21."""
    path = await created(world, tests=TESTS)
    body = {"definition": SLOWER, "version": 1}
    assert (await asked(world, "PUT", path, body)).json()["tests"] == TESTS
    more = TESTS.replace("[]", "[{name: a, expect: {}}]")
    changed = await asked(world, "PUT", path, {**body, "version": 2, "tests": more})
    assert (changed.json()["version"], changed.json()["tests"]) == (3, more)
    same = await asked(world, "PUT", path, {**body, "version": 3, "tests": more})
    assert same.json()["version"] == 3


async def test_versions_say_who_changed_how_much(world: World):
    """Newest first, with lines added and removed; any two are compared. DF-22."""
    path, bob = await created(world), await world.account("bob")
    share = {"permission": "EDIT"}
    assert (await asked(world, "PUT", f"{path}/shares/bob@example.org", share)).status_code == 200
    text = SLOWER.replace("name: flow\n", "name: flow\ndescription: Slow.\n")
    assert (await asked(world, "PUT", path, {"definition": text, "version": 1}, bob)).is_success
    found = (await asked(world, "GET", f"{path}/versions")).json()
    rows = [
        (one["version"], one["appliedBy"], one["added"], one["removed"]) for one in found["items"]
    ]
    assert rows == [(2, "bob@example.org", 2, 1), (1, "ann@example.org", 2, 0)]
    (last,) = (await asked(world, "GET", f"{path}/versions?page=2&size=1")).json()["items"]
    assert (last["version"], last["added"]) == (1, 2)
    compared = (await asked(world, "GET", f"{path}/versions/1/difference?from=2")).json()
    assert (compared["from"], compared["to"]) == (2, 1)
    assert "-description: Slow." in compared["difference"].split("\n")
    before = (await asked(world, "GET", f"{path}/versions/2/difference")).json()
    assert "+description: Slow." in before["difference"].split("\n")
    for wrong, status in (
        ("9/difference", 404),
        ("1/difference", 404),
        ("2/difference?from=x", 400),
    ):
        assert (await asked(world, "GET", f"{path}/versions/{wrong}")).status_code == status


async def test_a_version_is_restored_as_the_next_one(world: World):
    """With its text and its tests; behind another version it is 409. DF-23."""
    path = await created(world, tests=TESTS)
    body = {"definition": SLOWER, "version": 1, "tests": ""}
    assert (await asked(world, "PUT", path, body)).json()["version"] == 2
    restore = f"{path}/versions/1/restore"
    assert (await asked(world, "POST", restore, {"version": 1})).status_code == 409
    restored = (await asked(world, "POST", restore, {"version": 2})).json()
    assert (restored["version"], restored["text"], restored["tests"]) == (3, DELAY, TESTS)
    gone = await asked(world, "POST", f"{path}/versions/9/restore", {"version": 3})
    assert gone.status_code == 404


async def test_only_the_owner_shares_and_deletes(world: World):
    """EDIT is not enough: 403; who sees nothing gets 404. The audit log names the owner. AC-14."""
    path, bob = await created(world), await world.account("bob")
    shares = f"{path}/shares"
    for method, url in (("GET", shares), ("DELETE", path), ("DELETE", f"{shares}/x")):
        assert (await asked(world, method, url, who=bob)).status_code == 404
    given = await asked(world, "PUT", f"{shares}/{bob.id}", {"permission": "EDIT"})
    assert given.json() == {"accountId": bob.id, "email": bob.email, "permission": "EDIT"}
    for method, url, body in (
        ("GET", shares, None),
        ("PUT", f"{shares}/{bob.id}", {"permission": "VIEW"}),
        ("DELETE", f"{shares}/{bob.id}", None),
        ("DELETE", path, None),
    ):
        assert (await asked(world, method, url, body, bob)).status_code == 403
    assert (await asked(world, "GET", shares)).json()["items"] == [given.json()]
    assert (
        await asked(world, "PUT", f"{shares}/nobody", {"permission": "VIEW"})
    ).status_code == 404
    assert (await asked(world, "DELETE", f"{shares}/bob@example.org")).json() == {"ok": True}
    assert (await asked(world, "GET", path + "/versions", who=bob)).status_code == 404
    assert (await asked(world, "DELETE", path)).json() == {"ok": True}
    assert (await asked(world, "DELETE", path)).status_code == 404
    where = AuditFilter(event="workflow.", target=path.rpartition("/")[2])
    found = await search_audit(world.services, Principal(world.ann), where, None, 50)
    done = [(one.event, one.account_id) for _, one in found.entries]
    deeds = ("workflow.delete", "workflow.share", "workflow.share", "workflow.apply")
    assert done == [(deed, world.ann.id) for deed in deeds]


async def test_an_editor_restores_no_secret_that_the_owner_took_away(world: World):
    """Restoring is an edit: a secret that no step of the present version lists is refused. SC-8."""
    services, bob = world.services, await world.account("bob")
    await set_secret(services, OPERATOR, world.ann.id, "TOKEN", "k4nary-value")
    step = "{name: a, kind: code, language: bash, source: 'true', secrets: [TOKEN]}"
    path = await created(world, f"name: flow\nsteps: [{step}]\n")
    assert (await asked(world, "PUT", path, {"definition": DELAY, "version": 1})).is_success
    await asked(world, "PUT", f"{path}/shares/{bob.id}", {"permission": "EDIT"})
    body = {"version": 2}
    refused = await asked(world, "POST", f"{path}/versions/1/restore", body, bob)
    assert (refused.status_code, "only the workflow's owner" in refused.text) == (400, True)
    assert (await asked(world, "POST", f"{path}/versions/1/restore", body)).status_code == 200


async def test_where_pages_change_nothing_no_door_does(tmp_path: Path):
    """With `console_edits=False` nothing is created, deleted or restored by session."""
    config = HttpConfig(console_edits=False, read_definition=lambda text: checked(text, ""))
    async with a_world(tmp_path, config) as world:
        path = f"/api/workflows/{await world.workflow()}"
        for method, url, body in (
            ("POST", "/api/workflows", {"definition": DELAY}),
            ("DELETE", path, None),
            ("POST", f"{path}/versions/1/restore", {"version": 1}),
        ):
            assert (await asked(world, method, url, body)).status_code == 404
