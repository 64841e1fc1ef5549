"""Webhooks: made at the console, triggered from outside, counted, limited and disabled."""

import json
from typing import Any

import httpx
import pytest

from wfcore.model.access import Tier

from .flows import ECHO
from .site import PASSWORD, ApiCaller, Site, signed

SECRET = "a shared secret of the legacy kind"


class Console:
    """What somebody does at the console, signed in."""

    def __init__(self, caller: ApiCaller) -> None:
        self.caller = caller
        self.headers = caller.sign_in()

    def __call__(self, method: str, path: str = "", body: Any = None) -> httpx.Response:
        url = f"/api/webhooks{path}"
        return self.caller.site.http.request(method, url, json=body, headers=self.headers)

    def create(self, workflow_id: str, **more: Any) -> httpx.Response:
        key_id = self.caller.key.key.id
        return self(
            "POST", "", {"workflowId": workflow_id, "name": "hook", "apiKeyId": key_id, **more}
        )


def trigger(caller: ApiCaller, webhook_id: str, body: Any = None) -> int:
    return caller.post(f"/api/webhooks/{webhook_id}/trigger", body).status_code


def test_from_creation_to_deletion(ann: ApiCaller) -> None:
    """A webhook is made, triggers, is changed, counted and deleted at the console. WH-9, WH-2."""
    console = Console(ann)
    hook = console.create(ann.workflow(ECHO), variableMapping={"word": "text"}).json()
    assert (hook["authMode"], hook["status"]) == ("API_KEY", "ACTIVE")
    assert hook["id"] == hook["webhookId"]
    answer = ann.post(httpx.URL(hook["triggerUrl"]).path, {"text": "hello", "word": "no"})
    assert answer.status_code == 202
    assert answer.json()["webhookId"] == hook["id"]
    assert ann.result(answer.json()["executionId"])["output"] == "hello"

    assert ann.site.http.post(f"/api/webhooks/{hook['id']}/trigger").status_code == 401
    assert console("PUT", f"/{hook['id']}", {"status": "DISABLED"}).json()["disabledReason"] == (
        "MANUAL"
    )
    assert trigger(ann, hook["id"]) == 409
    assert console("PUT", f"/{hook['id']}", {"status": "ACTIVE"}).status_code == 200
    assert trigger(ann, hook["id"]) == 202

    stats = console("GET", f"/{hook['id']}/stats").json()
    assert (stats["total"], stats["accepted"]) == (4, 2)
    assert stats["rejected"] == {"401": 1, "409": 1}
    assert sum(day["accepted"] for day in stats["daily"]) == 2
    (listed,) = console("GET").json()["webhooks"]
    assert listed["lastTriggeredAt"] == stats["lastTriggeredAt"]
    deleted = console("DELETE", f"/{hook['id']}").json()
    assert deleted == {"ok": True, "webhookId": hook["id"]}
    assert trigger(ann, hook["id"]) == 404


def test_strangers(ann: ApiCaller, bob: ApiCaller) -> None:
    """Only its owner sees a webhook; making one needs EDIT and a key of one's own. WH-6, WH-12."""
    flow = ann.workflow(ECHO)
    hook = Console(ann).create(flow).json()
    console = Console(bob)
    for method, path in (("PUT", ""), ("DELETE", ""), ("GET", "/stats")):
        body: dict[str, str] | None = {} if method == "PUT" else None
        assert console(method, f"/{hook['id']}{path}", body).status_code == 404
    assert console("GET").json()["total"] == 0
    assert console.create(flow).status_code == 404
    assert console.create(bob.workflow(ECHO), apiKeyId=ann.key.key.id).status_code == 400


def test_bound_key(ann: ApiCaller, bob: ApiCaller) -> None:
    """Only the bound key triggers; another key of the account or elsewhere is 401. WH-1."""
    hook = ann.webhook(ann.workflow(ECHO), api_key_id=ann.key.key.id)
    other = ApiCaller(ann.site, ann.account, ann.site.key(ann.account))
    assert [trigger(who, hook.id) for who in (ann, other, bob)] == [202, 401, 401]


def test_signature_mode(site: Site, ann: ApiCaller) -> None:
    """A signature of the raw bytes opens, with or without prefix, and nothing else. SG-1, SG-2."""
    hook = ann.webhook(ann.workflow(ECHO), secret=SECRET)
    path = f"/api/webhooks/{hook.id}/trigger"
    body = b'{"word":  "spaced"}'
    good = signed(SECRET, body)
    bare = {"X-Webhook-Signature": good["X-Webhook-Signature"].removeprefix("sha256=")}
    assert site.http.post(path, content=body, headers=good).status_code == 202
    assert site.http.post(path, content=body, headers=bare).status_code == 202
    respaced = json.dumps(json.loads(body)).encode()
    assert site.http.post(path, content=respaced, headers=good).status_code == 401
    assert site.http.post(path, content=body, headers=signed("other", body)).status_code == 401
    assert site.http.post(path, content=body).status_code == 401
    assert ann.post(path).status_code == 401


def test_one_way_to_key_mode(site: Site, ann: ApiCaller) -> None:
    """A bound webhook takes no signature any more, and stays bound. WH-7, WH-11."""
    hook = ann.webhook(ann.workflow(ECHO), secret=SECRET)
    console = Console(ann)
    bound = console("PUT", f"/{hook.id}", {"apiKeyId": ann.key.key.id}).json()
    assert bound["authMode"] == "API_KEY"
    body = b"{}"
    path = f"/api/webhooks/{hook.id}/trigger"
    assert site.http.post(path, content=body, headers=signed(SECRET, body)).status_code == 401
    assert trigger(ann, hook.id) == 202
    assert console("PUT", f"/{hook.id}", {"apiKeyId": None}).status_code == 409


def test_payloads(ann: ApiCaller) -> None:
    """Only top-level scalars become variables; anything but a JSON object is 400. VM-1, LM-3."""
    hook = ann.webhook(ann.workflow(ECHO), api_key_id=ann.key.key.id)
    path = f"/api/webhooks/{hook.id}/trigger"
    nested = ann.post(path, {"word": "flat", "deep": {"word": 1}, "list": [1], "no": None})
    id = nested.json()["executionId"]
    assert ann.result(id)["output"] == "flat"
    for body in ("[]", '"text"', "{", '{"a": NaN}', '{"a": 1} x', "[" * 70 + "]" * 70):
        answer = ann.site.http.post(path, content=body, headers=ann.bearer)
        assert (answer.status_code, list(answer.json())) == (400, ["error"])
    large = b'{"word": "' + b"x" * 1_048_576 + b'"}'
    assert ann.site.http.post(path, content=large, headers=ann.bearer).status_code == 413
    assert ann.site.http.post(path, content=b"", headers=ann.bearer).status_code == 202


def test_limit_of_the_plan(site: Site) -> None:
    """Pro holds three webhooks, the fourth is 409; a downgrade disables the newest. WH-4, WH-5."""
    ann = site.caller(Tier.TEAM)
    console, flow = Console(ann), ann.workflow(ECHO)
    ids = [console.create(flow).json()["id"] for _ in range(5)]
    site.set_account(ann.account, plan=Tier.PRO)
    assert [trigger(ann, id) for id in ids] == [202, 202, 202, 409, 409]
    reasons = {one["id"]: one["disabledReason"] for one in console("GET").json()["webhooks"]}
    assert [reasons[id] for id in ids] == [None, None, None, "PLAN_LIMIT", "PLAN_LIMIT"]
    assert console.create(flow).status_code == 409
    for id in ids[:3]:
        assert console.create(flow).status_code == 409  # active or not, they count
        assert console("DELETE", f"/{id}").status_code == 200
    assert console.create(flow).status_code == 200


def test_session(site: Site, ann: ApiCaller) -> None:
    """A session is for the console, a key for the API, and neither for the other. AU-8, SE-3."""
    site.set_account(ann.account, password=PASSWORD)
    body = {"email": ann.account.email, "password": PASSWORD}
    answer = site.http.post("/api/session", json=body)
    site.http.cookies.clear()
    cookie = answer.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=Lax" in cookie
    session = {"Cookie": cookie.partition(";")[0]}
    me = site.http.get("/api/session", headers=session).json()
    assert me["account"]["email"] == ann.account.email
    assert site.http.get("/api/v1/workflows", headers=session).status_code == 401
    assert ann.get("/api/webhooks").status_code == 401
    elsewhere = {**session, "Origin": "https://evil.example"}
    assert site.http.post("/api/webhooks", json={}, headers=elsewhere).status_code == 403
    assert site.http.delete("/api/session", headers=session).status_code == 200
    assert site.http.get("/api/session", headers=session).status_code == 401


def test_wrong_passwords(site: Site, ann: ApiCaller) -> None:
    """Ten wrong passwords lock the login, for the right one too. SE-2."""
    site.set_account(ann.account, password=PASSWORD)
    body = {"email": ann.account.email, "password": "not this one"}
    answers = [site.http.post("/api/session", json=body).status_code for _ in range(10)]
    assert answers == [401] * 10
    locked = site.http.post("/api/session", json={**body, "password": PASSWORD})
    assert locked.status_code == 429
    assert 0 < int(locked.headers["retry-after"]) <= 900


@pytest.mark.parametrize("path", ["/api/webhooks/{}/trigger", "/api/webhook-trigger/{}"])
def test_order_of_checks(ann: ApiCaller, path: str) -> None:
    """Existence, size, credentials, status, body: the first that fails answers. WH-13."""
    hook = ann.webhook(ann.workflow(ECHO), api_key_id=ann.key.key.id)
    url, large = path.format(hook.id), b"x" * 1_048_577
    post = ann.site.http.post
    assert post(path.format("wh_none"), content=large).status_code == 404
    assert post(url, content=large).status_code == 413
    assert post(url, content=b"{").status_code == 401
    Console(ann)("PUT", f"/{hook.id}", {"status": "DISABLED"})
    assert post(url, content=b"{", headers=ann.bearer).status_code == 409
