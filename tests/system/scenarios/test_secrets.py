"""Keys, passwords and secret variables are worth nothing to whoever reads what is written down."""

from collections.abc import Iterator
from contextlib import closing

import pytest

from wfcore.time import EpochMs
from wfcore.usecases.audit.auditing import read_audit

from .flows import REVIEW
from .site import PASSWORD, ApiCaller, Site

TOKEN = "tok-3f9a77d01c5e"
WEBHOOK_SECRET = "whs-55aa0b64c7d2"
WRONG_PASSWORD = "not-the-password-91c2"
LEAKY = """
variables: {token: {type: string, secret: true}}
steps:
  - name: leak
    kind: code
    language: bash
    source: |
      echo "said $WF_VAR_token"
      echo "cried $WF_VAR_token" >&2
      exit 3
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A server that logs all it ever logs."""
    folder = tmp_path_factory.mktemp("site") / "data"
    with closing(Site(folder, {"WFCORE_LOG": "debug"})) as made:
        yield made


def audit(site: Site) -> str:
    return repr(site.do(lambda services: read_audit(services, EpochMs(0), None, 10_000)))


def test_secret_variables(ann: ApiCaller) -> None:
    """A secret that a step says aloud is masked in events, errors, results and lists. SC-1."""
    flow = ann.workflow(LEAKY)
    path = f"/api/v1/workflows/{flow}/executions?wait=50"
    started = ann.post(path, {"inputs": {"token": TOKEN}, "enableMonitoring": True}).json()
    assert started["status"] == "FAILED"
    id = started["executionId"]
    view = ann.view(id)
    assert "cried ***" in view["error"]
    shown = [
        ann.get(path).text
        for path in (
            f"/api/v1/executions/{id}",
            f"/api/v1/executions/{id}/result",
            f"/api/v1/executions/{id}/events",
            "/api/v1/executions",
            f"/api/v1/workflows/{flow}",
        )
    ]
    assert "said ***" in shown[2]
    assert TOKEN not in "".join(shown)
    assert TOKEN not in ann.site.server.log.read_text()


def test_credentials_are_written_nowhere(site: Site, ann: ApiCaller) -> None:
    """No key, secret or password is in logs, audit, errors, or the data folder. SC-4."""
    execution_id, approval_id = ann.paused(ann.workflow(REVIEW))
    hook = ann.webhook(ann.workflow(REVIEW), secret=WEBHOOK_SECRET)
    cookie = ann.sign_in()["Cookie"].partition("=")[2]
    key, get = ann.key.text, site.http.get
    link = f"/api/webhook-trigger/approval/{approval_id}/approve"
    answers = [
        get(link, params={"api_key": key, "confirm": "1", "comment": "yes"}),
        get("/api/v1/approvals/none", params={"api_key": key}),
        get(f"/api/v1/nothing?api_key={key}"),
        get("/api/v1/workflows", headers={"Authorization": f"Bearer {key}x"}),
        get("/api/v1/executions", headers=ann.bearer, params={"status": "NONE"}),
        get("/api/webhooks", headers={"Cookie": f"wfcore_session={cookie}x"}),
        site.http.post(f"/api/webhooks/{hook.id}/trigger", content=b"{}"),
        site.http.post(
            "/api/session", json={"email": ann.account.email, "password": WRONG_PASSWORD}
        ),
        ann.post("/api/v1/workflows/none/executions", {"inputs": {"k": key}}),
    ]
    assert answers[0].status_code == 200
    assert {answer.status_code for answer in answers[1:]} == {400, 401, 404}
    ann.rested(execution_id)
    secret = key.rpartition("_")[2]
    everywhere = [
        *(answer.text for answer in answers),
        audit(site),
        site.server.log.read_text(),
        ann.get(f"/api/v1/executions/{execution_id}/events").text,
    ]
    for hidden in (secret, PASSWORD, WRONG_PASSWORD, WEBHOOK_SECRET, cookie):
        assert not [text for text in everywhere if hidden in text]
    stored = b"".join(path.read_bytes() for path in site.data.glob("*.db*"))
    assert ann.account.email.encode() in stored
    for hidden in (secret, PASSWORD, cookie):
        assert hidden.encode() not in stored
