"""The way that everything is for: a start, a step, a person's decision, a step, a file."""

import json
import time
from functools import partial
from typing import Any

import httpx
import pytest

from wfcore.rules.auth.signed_links import sign_download
from wfcore.time import EpochMs
from wfcore.usecases.services import Services

from .flows import ECHO, REFUNDS
from .site import ApiCaller, Site, signed

EDITED = [{"id": 3, "amount": 7}, {"id": 1, "amount": 100}]
SECRET = "a shared secret of the legacy kind"


def by_api(ann: ApiCaller, workflow_id: str) -> dict[str, Any]:
    answer = ann.post(
        f"/api/v1/workflows/{workflow_id}/executions", {"inputs": {"customer": "Zoë"}}
    )
    return accepted(answer)


def by_signature(path: str) -> Any:
    def start(ann: ApiCaller, workflow_id: str) -> dict[str, Any]:
        hook = ann.webhook(workflow_id, secret=SECRET)
        body = json.dumps({"customer": "Zoë"}).encode()
        url = path.format(hook.id)
        return accepted(ann.site.http.post(url, content=body, headers=signed(SECRET, body)))

    return start


def by_key(ann: ApiCaller, workflow_id: str) -> dict[str, Any]:
    hook = ann.webhook(
        workflow_id,
        api_key_id=ann.key.key.id,
        variable_mapping={"customer": "who", "limit": "not_there"},
    )
    body = {"who": "Zoë", "limit": 5, "customer": "somebody else"}
    return accepted(ann.post(f"/api/webhooks/{hook.id}/trigger", body))


def accepted(answer: httpx.Response) -> dict[str, Any]:
    assert answer.status_code == 202, answer.text
    assert answer.json()["status"] == "PENDING"
    return dict(answer.json())


@pytest.mark.parametrize(
    "start",
    [
        pytest.param(by_api, id="api"),
        pytest.param(by_signature("/api/webhooks/{}/trigger"), id="signature"),
        pytest.param(by_signature("/api/webhook-trigger/{}"), id="signature at the retained path"),
        pytest.param(by_key, id="bound key with mapping"),
    ],
)
def test_the_whole_way(ann: ApiCaller, start: Any) -> None:
    """
    What is started, reviewed and edited runs on exactly the edited rows and leaves its file.

    EX-4, EX-5, AP-1, AP-8, VM-1, VM-2, VM-3, SG-1, WH-1, WH-13.
    """
    execution_id = start(ann, ann.workflow(REFUNDS))["executionId"]
    waiting = ann.rested(execution_id)
    assert waiting["status"] == "AWAITING_APPROVAL"
    assert waiting["currentStep"] == "review"
    assert waiting["stepResults"]["find"]["output"]["customer"] == "Zoë"

    approval = ann.get(f"/api/v1/approvals/{ann.open_approval(execution_id)}").json()
    assert approval["approvalMessage"] == "Refunds of Zoë"
    (group,) = approval["reviewableGroups"]
    assert [row["amount"] for row in group["items"]] == [100, 200, 300]
    decided = ann.post(
        f"/api/v1/approvals/{approval['id']}/approve",
        {"comment": "fewer", "editedItems": {"refunds": EDITED}},
    ).json()
    assert (decided["status"], decided["comment"]) == ("APPROVED", "fewer")

    result = ann.result(execution_id)
    assert (result["status"], result["output"]) == ("COMPLETED", EDITED)
    assert result["stepResults"]["review"]["output"]["groups"] == {"refunds": EDITED}
    listed = ann.get(f"/api/v1/executions/{execution_id}/artifacts").json()
    assert listed["total"] == 1
    file = ann.site.http.get(listed["artifacts"][0]["downloadUrl"])
    assert json.loads(file.content) == EDITED


def test_rows_released_unedited(ann: ApiCaller) -> None:
    """Without `editedItems` the next step works on the rows as they were. AP-7."""
    execution_id, approval_id = ann.paused(ann.workflow(REFUNDS))
    ann.post(f"/api/v1/approvals/{approval_id}/approve")
    assert [row["amount"] for row in ann.result(execution_id)["output"]] == [100, 200, 300]


def test_missing_fields_keep_the_default(ann: ApiCaller) -> None:
    """A webhook that maps a field which the payload lacks leaves the default in force. VM-3."""
    mapping = {"word": "not_there"}
    hook = ann.webhook(ann.workflow(ECHO), api_key_id=ann.key.key.id, variable_mapping=mapping)
    execution_id = accepted(ann.post(f"/api/webhooks/{hook.id}/trigger"))["executionId"]
    assert ann.result(execution_id)["output"] == "nothing"


@pytest.fixture(scope="module")
def artifact(site: Site) -> dict[str, Any]:
    """The metadata of a file of 100,000 bytes that a step left."""
    ann = site.caller()
    step = "head -c 100000 /dev/zero | tr '\\0' x > \"$WF_ARTIFACTS/x.bin\""
    flow = f"steps: [{{name: a, kind: code, language: bash, source: {json.dumps(step)}}}]"
    execution_id = ann.start(ann.workflow(flow))
    assert ann.result(execution_id)["status"] == "COMPLETED"
    listed = ann.get(f"/api/v1/executions/{execution_id}/artifacts").json()["artifacts"]
    return dict(ann.get(f"/api/v1/executions/{execution_id}/artifacts/{listed[0]['id']}").json())


def test_download(site: Site, artifact: dict[str, Any]) -> None:
    """The link opens the content without any credential. AR-2."""
    answer = site.http.get(artifact["downloadUrl"])
    assert answer.content == b"x" * 100_000
    assert artifact["size"] == 100_000
    assert "attachment" in answer.headers["content-disposition"]


def test_download_in_parts(site: Site, artifact: dict[str, Any]) -> None:
    """A range request gets that part, and one beyond the end 416."""
    url = artifact["downloadUrl"]
    part = site.http.get(url, headers={"Range": "bytes=10-19"})
    assert (part.status_code, part.content) == (206, b"x" * 10)
    assert part.headers["content-range"] == "bytes 10-19/100000"
    assert site.http.get(url, headers={"Range": "bytes=100000-"}).status_code == 416


def test_wrong_links(site: Site, artifact: dict[str, Any]) -> None:
    """A link that was changed, is over, or belongs to another file opens nothing. AR-2, AU-6."""
    url = httpx.URL(artifact["downloadUrl"])
    minute_ago = EpochMs(int(time.time() * 1_000) - 60_000)
    old = site.do(partial(link_until, artifact["id"], minute_ago))
    later = {"expires": str(int(url.params["expires"]) + 1)}
    forged = {"signature": url.params["signature"][::-1]}
    of_another = httpx.URL(str(url).replace(artifact["id"], artifact["id"] + "x"))
    for wrong in (*(url.copy_merge_params(one) for one in (old, later, forged)), of_another):
        answer = site.http.get(wrong)
        assert (answer.status_code, answer.json()) == (401, {"error": "Unauthorized"})


def test_download_by_key(ann: ApiCaller, site: Site, artifact: dict[str, Any]) -> None:
    """Without a signature the path asks for credentials, and shows strangers nothing. AR-1."""
    path = artifact["downloadUrl"].partition("?")[0]
    assert site.http.get(path).status_code == 401
    assert ann.get(path).status_code == 404


async def link_until(artifact_id: str, expires: EpochMs, services: Services) -> dict[str, str]:
    """What this server would have signed."""
    signature = sign_download(services.signing_key, artifact_id, expires)
    return {"expires": str(expires), "signature": signature}
