"""Keys, usage, triggers, audit and summaries for programs with a session."""

from typing import Any

import httpx
import pytest

from adapters_http.app import HttpConfig
from adapters_runtime.cron import CronCalendar
from tests.support.http_world import World, a_world, bearer
from wfcore.errors import LinkOver, StoreUnavailable
from wfcore.model.access import OPERATOR, Scope, Visitor
from wfcore.model.execution import Usage
from wfcore.model.trigger import Schedule
from wfcore.ports.runtime import StepEnd
from wfcore.usecases.accounts import accounts
from wfcore.usecases.accounts.sessions import account_of_link
from wfserver.definitions.read import checked


async def _asked(world: World, method: str, path: str, json: Any = None) -> httpx.Response:
    """One request of Ann's session."""
    return await world.http.request(method, path, json=json, headers=await world.sign_in())


async def test_a_key_is_made_rotated_and_revoked(world: World):
    """Each text is in one answer; a list has none; a revoked key is 401 at once. AU-3, AU-7."""
    body = {"name": "shop", "scopes": ["WORKFLOW_READ"], "expiresIn": 60_000}
    made = (await _asked(world, "POST", "/api/keys", body)).json()
    assert made["expiresAt"] == made["createdAt"] + 60_000
    turned = (await _asked(world, "POST", f"/api/keys/{made['id']}/rotate", {"overlap": 0})).json()

    async def status(text: str) -> int:
        return (await world.http.get("/api/v1/workflows", headers=bearer(text))).status_code

    assert [await status(made["apiKey"]), await status(turned["apiKey"])] == [401, 200]
    listed = await _asked(world, "GET", "/api/keys")
    assert [one["name"] for one in listed.json()["keys"]] == ["shop", "key"]
    assert made["apiKey"] not in listed.text
    assert turned["apiKey"] not in listed.text
    gone = (await _asked(world, "DELETE", f"/api/keys/{made['id']}")).json()
    assert gone["revokedAt"] is not None
    assert await status(turned["apiKey"]) == 401


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"name": "", "scopes": ["WORKFLOW_READ"]}, "name"),
        ({"name": "x", "scopes": []}, "scope"),
        ({"name": "x", "scopes": ["ALL"]}, "scopes"),
        ({"name": "x", "scopes": ["WORKFLOW_READ"], "expiresIn": 0}, "expiresIn"),
    ],
)
async def test_a_key_that_cannot_be_is_refused(world: World, body: Any, field: str):
    """By the name of the field."""
    answer = await _asked(world, "POST", "/api/keys", body)
    assert answer.status_code == 400
    assert answer.json()["error"].startswith(field)


async def test_a_key_makes_no_keys(world: World):
    """These are a person's: a key is 401 here, and somebody else's keys are 404. AC-3."""
    body = {"name": "x", "scopes": ["WORKFLOW_READ"]}
    assert (await world.post("/api/keys", body)).status_code == 401
    await world.account("eve")
    eve = await world.sign_in("eve")
    for method, path in (("DELETE", ""), ("POST", "/rotate")):
        target = f"/api/keys/{world.key.key.id}{path}"
        answer = await world.http.request(method, target, json={}, headers=eve)
        assert answer.status_code == 404
    assert (await world.get("/api/v1/workflows")).status_code == 200


async def test_a_visitor_makes_no_key_that_may_do_more(tmp_path):
    """Whom the surrounding application vouches for passes on what they have, and no more. AU-10."""

    async def login(scope: Any) -> Visitor | None:
        known = dict(scope["headers"]).get(b"x-user")
        return Visitor("ann@example.org", frozenset({Scope.WORKFLOW_READ})) if known else None

    async with a_world(tmp_path, HttpConfig(login=login)) as world:
        headers = {"X-User": "ann"}

        async def status(*scopes: str) -> int:
            body = {"name": "x", "scopes": scopes}
            return (await world.http.post("/api/keys", json=body, headers=headers)).status_code

        assert await status("WORKFLOW_READ") == 200
        assert await status("WORKFLOW_READ", "WORKFLOW_EXECUTE") == 403
        turn = f"/api/keys/{world.key.key.id}/rotate"
        assert (await world.http.post(turn, json={}, headers=headers)).status_code == 403


async def test_secrets_are_names(world: World):
    """When each was set, and nothing of its value. SC-5."""
    await accounts.set_secret(world.services, OPERATOR, world.ann.id, "BANK", "c4nary")
    answer = await _asked(world, "GET", "/api/secrets")
    assert answer.json()["secrets"] == [{"name": "BANK", "updatedAt": world.clock.now()}]
    assert "c4nary" not in answer.text


async def test_a_secret_is_set_and_deleted(world: World):
    """PUT sets and replaces, DELETE deletes; no answer and no audit entry has a value. SC-5"""
    path = "/api/secrets/BANK"
    answers = [
        await _asked(world, "PUT", path, {"value": value}) for value in ("c4nary", "c4nary2")
    ]
    assert [one.json() for one in answers] == [{"name": "BANK", "updatedAt": world.clock.now()}] * 2
    (kept,) = await accounts.list_secrets(world.services, world.ann.id)
    assert kept.value == "c4nary2"
    wrong = await _asked(world, "PUT", "/api/secrets/no%20name", {"value": "c4nary"})
    assert (wrong.status_code, wrong.json()["error"].startswith("name: ")) == (400, True)
    assert (await _asked(world, "DELETE", path)).json() == {"ok": True}
    assert (await _asked(world, "DELETE", path)).status_code == 404
    assert (await _asked(world, "GET", "/api/secrets")).json() == {"secrets": []}
    noted = await _asked(world, "GET", "/api/audit")
    events = [one["event"] for one in noted.json()["entries"]]
    assert (events.count("secret.set"), events.count("secret.delete")) == (2, 1)
    assert not any("c4nary" in one.text for one in (*answers, wrong, noted))


async def test_an_operator_invites_people(world: World):
    """A person is invited, and invited again, which ends the first link; then no longer. AC-12"""
    body = {"email": "new@example.org", "groups": ["finance"]}
    assert (await _asked(world, "POST", "/api/invitations", body)).status_code == 404
    await accounts.set_account(world.services, OPERATOR, world.ann.id, operator=True)
    assert (await _asked(world, "POST", "/api/invitations", body)).status_code == 404  # no group
    await _asked(world, "POST", "/api/groups", {"name": "finance"})
    made = await _asked(world, "POST", "/api/invitations", body)
    assert (made.status_code, made.json()["account"]["email"]) == (201, "new@example.org")
    assert (await _asked(world, "POST", "/api/invitations", body)).status_code == 409
    group = (await _asked(world, "GET", "/api/groups/finance")).json()
    assert [one["email"] for one in group["members"]] == ["new@example.org"]
    path = f"/api/invitations/{made.json()['account']['id']}"
    again = await _asked(world, "POST", f"{path}/renew", {})
    assert again.json()["url"] != made.json()["url"]
    tokens = [one.json()["url"].rpartition("/")[2] for one in (made, again)]
    with pytest.raises(LinkOver):
        await account_of_link(world.services, tokens[0])
    assert await account_of_link(world.services, tokens[1]) is not None
    assert (await _asked(world, "DELETE", path)).json() == {"ok": True}
    assert (await _asked(world, "DELETE", path)).status_code == 404


async def test_health_is_for_operators(world: World):
    """404 for others; the checks, the gauges, and why it is not ready. AC-7."""
    assert (await _asked(world, "GET", "/api/health")).status_code == 404
    await accounts.set_account(world.services, OPERATOR, world.ann.id, operator=True)
    found = (await _asked(world, "GET", "/api/health")).json()
    assert (found["trouble"], found["noticesGivenUp"]) == (None, 0)


async def test_operators_are_told_why_the_store_cannot_write(
    world: World, monkeypatch: pytest.MonkeyPatch
):
    """Strangers only hear that it cannot; to an operator the cause is worth a cure."""

    async def full() -> None:
        raise StoreUnavailable(detail="disk is full")

    monkeypatch.setattr(world.services.store, "ping", full)
    assert "full" not in (await world.http.get("/readyz")).text
    await accounts.set_account(world.services, OPERATOR, world.ann.id, operator=True)
    found = (await _asked(world, "GET", "/api/health")).json()
    assert found["trouble"] == "The store is unavailable; retry later (disk is full)"


async def test_people_are_for_operators(world: World):
    """404 for others, whoever they ask about; a key is 401. AC-7."""
    for method, path in PEOPLE:
        asked = path.format(world.ann.id)
        assert (await _asked(world, method, asked, {})).status_code == 404
        assert (await world.http.request(method, asked, json={})).status_code == 401
        answer = await world.http.request(method, asked, json={}, headers=bearer(world.key.text))
        assert answer.status_code == 401


PEOPLE = (
    ("GET", "/api/accounts"),
    ("GET", "/api/accounts/{}"),
    ("PUT", "/api/accounts/{}"),
    ("DELETE", "/api/accounts/{}/sessions"),
    ("POST", "/api/accounts/{}/link"),
    ("POST", "/api/invitations/{}/renew"),
    ("DELETE", "/api/invitations/{}"),
    ("GET", "/api/groups"),
    ("GET", "/api/groups/{}"),
    ("PUT", "/api/groups/{}"),
    ("DELETE", "/api/groups/{}"),
)


async def test_an_operator_manages_groups(world: World):
    """Groups are created, changed, read and deleted by session; mistakes name their field. AP-49"""
    path = "/api/groups/Domain%20Admins"
    body = {"name": "Domain Admins", "members": [world.ann.email, "tax@example.com"]}
    assert (await _asked(world, "POST", "/api/groups", body)).status_code == 404
    await accounts.set_account(world.services, OPERATOR, world.ann.id, operator=True)
    made = await _asked(world, "POST", "/api/groups", body)
    assert (made.status_code, made.json()) == (201, body)
    assert (await _asked(world, "POST", "/api/groups", body)).status_code == 409
    wrong = await _asked(world, "PUT", path, {"add": ["nobody"]})
    assert (wrong.status_code, "add[0]" in wrong.json()["error"]) == (400, True)
    changed = await _asked(world, "PUT", path, {"add": ["eve@x.org"], "remove": [world.ann.id]})
    assert changed.json()["members"] == ["tax@example.com", "eve@x.org"]
    listed = (await _asked(world, "GET", "/api/groups")).json()["groups"]
    assert listed == [changed.json()]
    found = (await _asked(world, "GET", path)).json()
    assert found["members"][0] == {"email": "tax@example.com", "accountId": None, "status": None}
    assert found["usedBy"] == []
    assert (await _asked(world, "DELETE", path)).json() == {"ok": True}
    assert (await _asked(world, "GET", path)).status_code == 404


async def test_an_operator_looks_after_people(world: World):
    """What the pages of people show and do: found by email, changed, signed out, let in. AC-7."""
    await accounts.set_account(world.services, OPERATOR, world.ann.id, operator=True)
    eve = await world.account("eve")
    here = await world.sign_in("eve")
    path = f"/api/accounts/{eve.id}"
    listed = (await _asked(world, "GET", "/api/accounts")).json()
    assert {one["email"] for one in listed["accounts"]} >= {eve.email, world.ann.email}
    found = (await _asked(world, "GET", f"/api/accounts/{eve.email}")).json()
    assert (found["account"]["id"], len(found["sessions"])) == (eve.id, 1)
    assert (await _asked(world, "DELETE", f"{path}/sessions")).json() == {"ok": True}
    assert (await world.http.get("/api/session", headers=here)).status_code == 401
    url = (await _asked(world, "POST", f"{path}/link", {})).json()["url"]
    assert (await account_of_link(world.services, url.rpartition("/")[2])).id == eve.id
    changed = (await _asked(world, "PUT", path, {"plan": "FREE", "status": "LOCKED"})).json()
    assert (changed["plan"], changed["status"]) == ("FREE", "LOCKED")
    assert (await _asked(world, "POST", f"{path}/link", {})).status_code == 403
    own = await _asked(world, "PUT", f"/api/accounts/{world.ann.id}", {"status": "LOCKED"})
    assert (own.status_code, "your own account" in own.json()["error"]) == (400, True)


async def test_usage_is_what_the_headers_say(world: World):
    """Reading it counts nothing. RL-1."""
    answer = await world.get("/api/v1/workflows")
    for _ in range(2):
        found = (await _asked(world, "GET", "/api/usage")).json()
        minute, day = found["quotas"][0]["windows"]
        left = int(answer.headers["x-ratelimit-remaining"])
        assert minute["limit"] - minute["used"] == left
        assert day["used"] == minute["used"] == 1


async def test_usage_has_what_models_cost(world: World):
    """By workflow and model, and the requests of thirty days. RL-7, AI-7."""
    workflow_id = await world.workflow(name="asks")
    await world.start(workflow_id)
    await world.run(StepEnd(1, usage=Usage(10, 5, "0.25")))
    found = (await _asked(world, "GET", "/api/usage")).json()
    assert [one["last30Days"] for one in found["quotas"]] == [1]
    assert found["models"] == [
        {
            "workflowId": workflow_id,
            "workflowName": "asks",
            "model": "",
            "inputTokens": 10,
            "outputTokens": 5,
            "costUsd": "0.25",
            "unpriced": False,
        }
    ]


async def test_the_audit_log_is_read_from_its_end(world: World):
    """Newest first, page behind page, narrowed by event; only what the account did. AL-1."""
    for number in range(5):
        body = {"name": f"k{number}", "scopes": ["WORKFLOW_READ"]}
        await _asked(world, "POST", "/api/keys", body)
    path = "/api/audit?event=key.&outcome=allowed&size=4"
    first = (await _asked(world, "GET", path)).json()
    rest = (await _asked(world, "GET", f"{path}&before={first['next']}")).json()
    targets = [one["target"] for one in (*first["entries"], *rest["entries"])]
    assert len(targets) == len(set(targets)) == 6
    assert "next" not in rest
    for text in ("x", "9" * 5_000):
        assert (await _asked(world, "GET", f"/api/audit?before={text}")).status_code == 400
    await world.account("eve")
    eve = await world.sign_in("eve")
    theirs = (await world.http.get("/api/audit?event=key.", headers=eve)).json()
    assert theirs["entries"] == []


async def test_a_trigger_is_paused_and_resumed(tmp_path):
    """By session, as on the pages; an unknown one is 404. SH-10."""
    async with a_world(tmp_path, HttpConfig(), calendar=CronCalendar()) as world:
        await world.workflow(triggers=(Schedule("0 * * * *"),))
        found = (await _asked(world, "GET", "/api/triggers")).json()
        assert len(found["fires"]) == 20
        id, workflow_id = (
            found["triggers"][0]["trigger"]["id"],
            found["triggers"][0]["workflowId"],
        )
        assert {(one["triggerId"], one["workflowId"]) for one in found["fires"]} == {
            (id, workflow_id)
        }
        path = f"/api/triggers/{id}"
        paused = (await _asked(world, "POST", f"{path}/pause", {})).json()
        assert (paused["state"], paused["pausedBy"]) == ("PAUSED", world.ann.id)
        assert (await _asked(world, "GET", "/api/triggers")).json()["fires"] == []
        assert (await _asked(world, "POST", f"{path}/resume", {})).json()["state"] == "ACTIVE"
        assert (await _asked(world, "POST", "/api/triggers/x/pause", {})).status_code == 404


async def test_workflows_are_summed_up_without_definitions(world: World):
    """Last execution, hours, open approvals; the shape has no steps."""
    execution_id, _ = await world.paused()
    (found,) = (await _asked(world, "GET", "/api/workflows")).json()["items"]
    assert (found["lastExecutionId"], found["waiting"]) == (execution_id, 1)
    assert found["lastStatus"] == "AWAITING_APPROVAL"
    assert len(found["hours"]) == 24
    assert "workflow" not in found
    triggers = (await _asked(world, "GET", "/api/triggers")).json()
    assert triggers == {"triggers": [], "fires": []}


async def test_a_definition_is_changed_after_the_version_it_began_with(tmp_path):
    """The next version as it was written; 409 behind another one, 400 by line; 404 turned off."""
    config = HttpConfig(read_definition=lambda text: checked(text, ""))
    async with a_world(tmp_path, config) as world:
        id = await world.workflow()
        text = "# Slowly.\nname: flow\nsteps: [{name: a, kind: delay, duration: 1s}]\n"
        path = f"/api/workflows/{id}"
        made = await _asked(world, "PUT", path, {"definition": text, "version": 1})
        assert (made.status_code, made.json()["version"]) == (200, 2)
        second = (await _asked(world, "GET", f"{path}/versions/2")).json()
        assert (second["text"], second["written"]) == (text, True)
        assert (await _asked(world, "GET", f"{path}/versions/1")).json()["written"] is False
        assert (await _asked(world, "GET", f"{path}/versions/3")).status_code == 404
        late = await _asked(world, "PUT", path, {"definition": text, "version": 1})
        assert late.status_code == 409
        wrong = {"definition": "name: flow\nsteps: 3\n", "version": 2}
        refused = await _asked(world, "PUT", path, wrong)
        assert (refused.status_code, "line 2" in refused.text) == (400, True)


SECRET = """name: flow
variables: {token: {type: string, secret: true, default: %s}}
steps: [{name: a, kind: delay, duration: 1s}]
"""


async def test_a_mask_is_not_stored_in_the_place_of_a_secret(tmp_path):
    """What a version shows of a secret default is refused by its path; the value is taken. SC-9."""
    config = HttpConfig(read_definition=lambda text: checked(text, ""))
    async with a_world(tmp_path, config) as world:
        path = f"/api/workflows/{await world.workflow()}"
        first = {"definition": SECRET % "k4nary", "version": 1}
        assert (await _asked(world, "PUT", path, first)).status_code == 200
        shown = (await _asked(world, "GET", f"{path}/versions/2")).json()["text"]
        assert "k4nary" not in shown
        back = await _asked(world, "PUT", path, {"definition": shown, "version": 2})
        assert (back.status_code, "variables.token.default" in back.text) == (400, True)
        assert (await _asked(world, "GET", f"{path}/versions/3")).status_code == 404
        again = {"definition": SECRET % "k4nary-2", "version": 2}
        assert (await _asked(world, "PUT", path, again)).status_code == 200


async def test_what_is_secret_now_is_shown_in_no_earlier_version(tmp_path):
    """Neither the text of a version nor the definition of an execution has the default. SC-9."""
    config = HttpConfig(read_definition=lambda text: checked(text, ""))
    async with a_world(tmp_path, config) as world:
        id = await world.workflow()
        path = f"/api/workflows/{id}"
        open_text = (SECRET % "k4nary").replace("secret: true, ", "")
        for version, text in enumerate((open_text, SECRET % "other-value"), 1):
            body = {"definition": text, "version": version}
            if version == 2:
                run = (await world.post(f"/api/v1/workflows/{id}/executions", {})).json()
            assert (await _asked(world, "PUT", path, body)).status_code == 200
        old = (await _asked(world, "GET", f"{path}/versions/2")).json()
        assert (old["written"], "k4nary" in old["text"]) == (False, False)
        runs = await world.get(f"/api/v1/executions/{run['executionId']}/definition")
        assert (runs.status_code, "k4nary" in runs.text) == (200, False)


DELAY = "name: flow\nsteps: [{name: a, kind: delay, duration: 1s}]\n"


async def test_a_visitor_changes_no_workflow_who_may_only_start_it(tmp_path):
    """Neither on the page, which offers it to nobody else; reading takes READ. AU-10, AU-11."""

    async def login(scope: Any) -> Visitor | None:
        known = dict(scope["headers"]).get(b"x-user")
        return Visitor("ann@example.org", frozenset(known.decode().split())) if known else None

    config = HttpConfig(login=login, read_definition=lambda text: checked(text, ""), console=True)
    async with a_world(tmp_path, config) as world:
        path = f"/api/workflows/{await world.workflow()}"
        body = {"definition": DELAY, "version": 1}

        async def asked(method: str, path: str, *scopes: Scope) -> Any:
            headers = {"X-User": " ".join(scopes), "Accept": "text/html"}
            return await world.http.request(method, path, json=body, headers=headers)

        async def status(scope: Scope, method: str, path: str) -> int:
            return (await asked(method, path, scope)).status_code

        change = ("PUT", path)
        assert await status(Scope.WORKFLOW_READ, *change) == 401
        for read in ("/api/workflows", f"{path}/versions/1"):
            assert await status(Scope.EXECUTION_READ, "GET", read) == 401
            assert await status(Scope.WORKFLOW_READ, "GET", read) == 200
        starts, shown = (Scope.WORKFLOW_READ, Scope.WORKFLOW_EXECUTE), path.removeprefix("/api")
        assert (await asked(*change, *starts)).status_code == 401
        assert (await asked("GET", f"{shown}/edit", *starts)).status_code == 401
        assert (await asked("POST", f"{shown}/edit", *starts)).status_code == 401
        assert "Change…" not in (await asked("GET", shown, *starts)).text
        assert "Change…" in (await asked("GET", shown, *Scope.ordinary())).text
        assert (await asked(*change, *Scope.ordinary())).status_code == 200


async def test_where_pages_change_nothing_the_api_does_not(tmp_path):
    """`console_edits=False` closes both doors."""
    config = HttpConfig(console_edits=False, read_definition=lambda text: checked(text, ""))
    async with a_world(tmp_path, config) as world:
        body = {"definition": DELAY, "version": 1}
        path = f"/api/workflows/{await world.workflow()}"
        assert (await _asked(world, "PUT", path, body)).status_code == 404


async def test_without_a_reader_of_texts_nothing_is_changed(world: World):
    """A library that serves pages without one has no such door."""
    id = await world.workflow()
    body = {"definition": "name: flow", "version": 1}
    assert (await _asked(world, "PUT", f"/api/workflows/{id}", body)).status_code == 404
