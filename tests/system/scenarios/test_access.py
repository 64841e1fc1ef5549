"""Who may do what: shares, accounts, keys, scopes, and how soon it holds."""

import json
import os
import subprocess
import sys
from typing import Any

import pytest

from wfcore.model.access import AccountStatus, Permission, Scope, Tier

from .flows import ECHO, REVIEW
from .site import ApiCaller, Site

UNAUTHORIZED = (401, {"error": "Unauthorized"})


def command(site: Site, *arguments: str) -> Any:
    """What `wfcore` says in a process of its own, beside the server."""
    said = subprocess.check_output(
        [sys.executable, "-m", "wfserver", *arguments, "--json"],
        env={**os.environ, "WFCORE_DATA": str(site.data), **site.settings},
    )
    return json.loads(said)


@pytest.mark.parametrize(
    ("permission", "read", "start", "decide"),
    [
        (None, 404, 404, 404),
        (Permission.VIEW, 200, 403, 404),
        (Permission.EXECUTE, 200, 202, 404),
        (Permission.EDIT, 200, 202, 200),
    ],
)
def test_shares(
    ann: ApiCaller,
    bob: ApiCaller,
    permission: Permission | None,
    read: int,
    start: int,
    decide: int,
) -> None:
    """A share lets another account read, start or decide, no more than it says. AC-2 to AC-4."""
    flow = ann.workflow(REVIEW)
    execution_id, approval_id = ann.paused(flow)
    if permission:
        ann.site.share(flow, bob.account, permission)
    assert bob.get(f"/api/v1/workflows/{flow}").status_code == read
    assert bob.post(f"/api/v1/workflows/{flow}/executions").status_code == start
    assert bob.get("/api/v1/workflows").json()["total"] == (1 if permission else 0)
    assert bob.get(f"/api/v1/executions/{execution_id}").status_code == 404
    assert bob.post(f"/api/v1/approvals/{approval_id}/approve").status_code == decide


def test_owner_of_the_workflow(ann: ApiCaller, bob: ApiCaller) -> None:
    """What others start belongs to them and is seen by the workflow's owner too. AC-4."""
    flow = ann.workflow(ECHO)
    ann.site.share(flow, bob.account, Permission.EXECUTE)
    execution_id = bob.start(flow)
    assert bob.rested(execution_id)["status"] == "COMPLETED"
    assert ann.view(execution_id)["status"] == "COMPLETED"
    assert ann.get("/api/v1/executions").json()["total"] == 0
    assert ann.get(f"/api/v1/executions?workflowId={flow}").json()["total"] == 1


def test_invisible_is_not_there(ann: ApiCaller, bob: ApiCaller) -> None:
    """What one may not see and what is not there are the same answer. AC-3, AR-1."""
    execution_id = ann.start(ann.workflow(ECHO))
    for path in ("/api/v1/executions/{}", "/api/v1/executions/{}/artifacts"):
        hidden, absent = bob.get(path.format(execution_id)), bob.get(path.format("exec_none"))
        assert (hidden.status_code, hidden.content) == (404, absent.content)


@pytest.mark.parametrize("status", [AccountStatus.DISABLED, AccountStatus.LOCKED])
def test_blocked_accounts(ann: ApiCaller, status: AccountStatus) -> None:
    """A disabled or locked account is 403 on the next request, whatever it asks. AC-1."""
    assert ann.get("/api/v1/workflows").status_code == 200
    ann.site.set_account(ann.account, status=status)
    answer = ann.get("/api/v1/workflows")
    assert (answer.status_code, list(answer.json())) == (403, ["error"])
    ann.site.set_account(ann.account, status=AccountStatus.ACTIVE)
    assert ann.get("/api/v1/workflows").status_code == 200


def test_revoked_by_another_process(ann: ApiCaller) -> None:
    """A key that another process revoked opens nothing on the very next request. AU-3."""
    assert ann.get("/api/v1/workflows").status_code == 200
    assert command(ann.site, "key", "revoke", ann.key.key.id)["revokedAt"]
    answer = ann.get("/api/v1/workflows")
    assert (answer.status_code, answer.json()) == UNAUTHORIZED
    assert answer.headers["www-authenticate"] == "Bearer"


def test_rotated_by_another_process(ann: ApiCaller) -> None:
    """After a rotation both secrets are good, until the overlap ends. AU-7."""
    new = command(ann.site, "key", "rotate", ann.key.key.id, "--overlap", "1h")["apiKey"]
    for text in (new, ann.key.text):
        bearer = {"Authorization": f"Bearer {text}"}
        assert ann.get("/api/v1/workflows", headers=bearer).status_code == 200


def test_ways_to_carry_the_key(ann: ApiCaller) -> None:
    """Bearer, header and query are tried in this order; the first one there counts. AU-1."""
    get, good, bad = ann.site.http.get, ann.key.text, "wfk_nobody_secret"
    path = "/api/v1/workflows"
    assert get(path, headers={"X-API-Key": good}).status_code == 200
    assert get(path, params={"api_key": good}).status_code == 200
    both = get(path, params={"api_key": good}, headers={"Authorization": f"Bearer {bad}"})
    assert both.status_code == 401
    other = {"Authorization": "Basic YTpi", "X-API-Key": good}
    assert get(path, headers=other).status_code == 200


def test_scopes(site: Site, ann: ApiCaller) -> None:
    """A key opens exactly the endpoints of its scopes; another scope is 401. AU-4, AU-6."""
    paths = {
        Scope.WORKFLOW_READ: "/api/v1/workflows",
        Scope.EXECUTION_READ: "/api/v1/executions",
        Scope.APPROVAL_RESPOND: "/api/v1/approvals",
    }
    for scope in paths:
        caller = ApiCaller(site, ann.account, site.key(ann.account, scope))
        for needed, path in paths.items():
            answer = caller.get(path)
            assert answer.status_code == (200 if needed is scope else 401)
    flow, id = ann.workflow(ECHO), ann.start(ann.workflow(ECHO))
    assert caller.post(f"/api/v1/workflows/{flow}/executions").status_code == 401
    assert caller.post(f"/api/v1/executions/{id}/cancel").status_code == 401


def test_every_401_is_the_same(site: Site, ann: ApiCaller) -> None:
    """Only the audit log knows why a request was refused. AU-6, SC-4."""
    revoked = site.key(ann.account)
    command(site, "key", "revoke", revoked.key.id)
    narrow = site.key(ann.account, Scope.ARTIFACT_READ)
    wrong = ann.key.text[:-8] + "AAAAAAAA"
    for text in ("", "garbage", wrong, revoked.text, narrow.text):
        answer = site.http.get("/api/v1/workflows", headers={"X-API-Key": text})
        assert (answer.status_code, answer.json()) == UNAUTHORIZED
    said = command(site, "audit")["items"]
    reasons = {entry["reason"] for entry in said if entry["outcome"] == "denied"}
    assert {"missing", "malformed", "revoked", "scope_missing"} <= reasons


def test_free_plan(site: Site) -> None:
    """The Free plan runs workflows by hand; a webhook is 403. WH-3."""
    ann = site.caller(Tier.FREE)
    flow = ann.workflow(ECHO)
    body = {"workflowId": flow, "name": "hook", "apiKeyId": ann.key.key.id}
    assert site.http.post("/api/webhooks", json=body, headers=ann.sign_in()).status_code == 403
    assert ann.rested(ann.start(flow))["status"] == "COMPLETED"
