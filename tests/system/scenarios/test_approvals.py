"""Questions to people: how they are asked, answered, taken back and run out."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest

from wfcore.model.access import Scope

from .flows import REFUNDS, REVIEW, REVIEW_AT_ONCE
from .process import until
from .site import ApiCaller


@pytest.fixture(scope="module")
def reviews(site: Any) -> Any:
    """Somebody with a workflow that asks, for tests that only answer."""
    ann = site.caller()
    return ann, ann.workflow(REVIEW)


def test_reject(ann: ApiCaller) -> None:
    """A rejection ends the execution; no later step runs and the reason is told. EX-6, AP-3."""
    execution_id, approval_id = ann.paused(ann.workflow(REVIEW))
    answer = ann.post(f"/api/v1/approvals/{approval_id}/reject", {"comment": "no"})
    assert (answer.status_code, answer.json()["status"]) == (200, "REJECTED")
    view = ann.rested(execution_id)
    assert view["status"] == "CANCELLED"
    assert view["statusReason"]["code"] == "APPROVAL_REJECTED"
    assert list(view["stepResults"]) == ["review"]


def test_timeout(ann: ApiCaller) -> None:
    """An approval that nobody decides in time counts as rejected. EX-6, AP-4."""
    execution_id = ann.start(ann.workflow(REVIEW_AT_ONCE))
    until(lambda: ann.view(execution_id)["status"] == "CANCELLED")
    assert ann.view(execution_id)["statusReason"]["code"] == "APPROVAL_TIMEOUT"
    (approval,) = ann.get(f"/api/v1/approvals/execution/{execution_id}").json()["approvals"]
    assert (approval["status"], approval["decisionSource"]) == ("REJECTED", "timeout")
    assert (approval["timeout"], approval["decidedBy"]) == (300, None)
    assert approval["expiresAt"] == approval["createdAt"] + 300
    assert ann.post(f"/api/v1/approvals/{approval['id']}/approve").status_code == 404


def test_rows_only_in_detail(ann: ApiCaller) -> None:
    """Lists leave the rows out and keep their number; the detail has them with columns. AP-13."""
    execution_id, approval_id = ann.paused(ann.workflow(REFUNDS))
    listed = ann.get("/api/v1/approvals?status=PENDING").json()
    assert (listed["total"], listed["page"], listed["size"]) == (1, 1, 20)
    of_execution = ann.get(f"/api/v1/approvals/execution/{execution_id}").json()
    for approval in (*listed["approvals"], *of_execution["approvals"]):
        (group,) = approval["reviewableGroups"]
        assert (group["items"], group["itemsCount"]) == ([], 3)
    (group,) = ann.get(f"/api/v1/approvals/{approval_id}").json()["reviewableGroups"]
    assert (len(group["items"]), group["itemsCount"]) == (3, 3)
    assert [column["key"] for column in group["columns"]] == ["id", "amount"]


@pytest.mark.parametrize(
    "edited",
    [
        {"refund": []},
        {"refunds": [1]},
        {"refunds": [{"id": 1, "amount": "one"}]},
        {"refunds": [{"id": 1, "amonut": 1}]},
        {"refunds": [{"id": 9, "amount": 1}]},
        {"refunds": [{"id": 1, "amount": 1}, {"id": 1, "amount": 2}]},
    ],
)
def test_wrong_edits(ann: ApiCaller, edited: dict[str, Any]) -> None:
    """Rows that do not fit are 400 and decide nothing. AP-9."""
    execution_id, approval_id = ann.paused(ann.workflow(REFUNDS))
    path = f"/api/v1/approvals/{approval_id}/approve"
    assert ann.post(path, {"editedItems": edited}).status_code == 400
    assert ann.post(path, {"editeditems": {}}).status_code == 400
    assert ann.view(execution_id)["status"] == "AWAITING_APPROVAL"
    assert ann.post(path, {"editedItems": {"refunds": []}}).status_code == 200
    assert ann.result(execution_id)["output"] == []


def test_history(ann: ApiCaller) -> None:
    """The history says who decided what, through which door, with the rows around it. AP-12."""
    _, approval_id = ann.paused(ann.workflow(REFUNDS))
    edited = [{"id": 2, "amount": 5}]
    body = {"comment": "one of them", "editedItems": {"refunds": edited}}
    ann.post(f"/api/v1/approvals/{approval_id}/approve", body)
    last = ann.get(f"/api/v1/approvals/{approval_id}").json()["history"][-1]
    assert (last["by"], last["source"]) == (ann.account.email, "api")
    assert (last["comment"], last["rowsAfter"]) == ("one of them", {"refunds": edited})
    assert len(last["rowsBefore"]["refunds"]) == 3


def test_named_approvers(ann: ApiCaller, bob: ApiCaller) -> None:
    """Where the step names approvers, they see and decide it, and nobody else may. AP-10, AC-5."""
    flow = REVIEW.replace("message: Look", f"message: Look, approvers: [{bob.account.email}]")
    execution_id, approval_id = ann.paused(ann.workflow(flow))
    eve = ann.site.caller()
    path = f"/api/v1/approvals/{approval_id}/approve"
    assert eve.post(path).status_code == 404
    assert ann.post(path).status_code == 403
    assert bob.get("/api/v1/approvals").json()["total"] == 1
    assert bob.post(path).status_code == 200
    assert ann.rested(execution_id)["status"] == "COMPLETED"


class TestByWebhook:
    """POST /api/webhook-trigger/approval."""

    PATH = "/api/webhook-trigger/approval"

    def test_decides(self, reviews: tuple[ApiCaller, str]) -> None:
        """Its answer repeats the decision, which may be in any case. AP-11."""
        ann, flow = reviews
        execution_id, approval_id = ann.paused(flow)
        body = {"approvalId": approval_id, "decision": "APProve", "comment": "by machine"}
        answer = ann.post(self.PATH, body)
        expected = {"ok": True, "approvalId": approval_id, "decision": "approve"}
        assert (answer.status_code, answer.json()) == (200, expected)
        assert ann.rested(execution_id)["status"] == "COMPLETED"
        detail = ann.get(f"/api/v1/approvals/{approval_id}").json()
        assert (detail["decisionSource"], detail["comment"]) == ("webhook", "by machine")

    def test_statuses(self, reviews: tuple[ApiCaller, str]) -> None:
        """
        Size, credentials, body, existence, approver, state: each has its status, and a second
        decision is 409 here and 404 under v1. AP-14, LM-2, AU-4.
        """
        ann, flow = reviews
        _, approval_id = ann.paused(flow)
        body = {"approvalId": approval_id, "decision": "reject"}
        assert ann.post(self.PATH, {**body, "comment": "x" * 65_536}).status_code == 413
        assert ann.site.http.post(self.PATH, json=body).status_code == 401
        reader = ApiCaller(ann.site, ann.account, ann.site.key(ann.account, Scope.WORKFLOW_READ))
        assert reader.post(self.PATH, body).status_code == 401
        assert ann.post(self.PATH, {**body, "decision": "maybe"}).status_code == 400
        assert ann.post(self.PATH, {"decision": "approve"}).status_code == 400
        assert ann.post(self.PATH, {**body, "approvalId": "appr_none"}).status_code == 404
        assert ann.site.caller().post(self.PATH, body).status_code == 404
        assert ann.post(self.PATH, body).status_code == 200
        assert ann.post(self.PATH, body).status_code == 409
        assert ann.post(f"/api/v1/approvals/{approval_id}/reject").status_code == 404


class TestByLink:
    """GET /api/webhook-trigger/approval/{id}/{decision}?api_key=..."""

    @staticmethod
    def link(ann: ApiCaller, approval_id: str, **query: str) -> httpx.URL:
        url = httpx.URL(f"{ann.site.server.url}/api/webhook-trigger/approval/{approval_id}/approve")
        return url.copy_merge_params({"api_key": ann.key.text, **query})

    def test_click(self, reviews: tuple[ApiCaller, str]) -> None:
        """Opening shows a page, confirming decides, opening again says what was decided. LK-1."""
        ann, flow = reviews
        execution_id, approval_id = ann.paused(flow)
        plain, confirm = self.link(ann, approval_id), self.link(ann, approval_id, confirm="1")
        first = ann.site.http.get(plain)
        assert (first.status_code, first.headers["content-type"][:9]) == (200, "text/html")
        assert 'name="confirm"' in first.text
        assert ann.view(execution_id)["status"] == "AWAITING_APPROVAL"
        assert ann.site.http.get(confirm).status_code == 200
        assert ann.rested(execution_id)["status"] == "COMPLETED"
        again = ann.site.http.get(plain)
        assert again.status_code == 200
        assert "Approved" in again.text
        assert ann.site.http.get(confirm).status_code == 409

    def test_robots(self, reviews: tuple[ApiCaller, str]) -> None:
        """HEAD, prefetches and other sites' pages decide nothing, `confirm=1` or not. LK-2."""
        ann, flow = reviews
        execution_id, approval_id = ann.paused(flow)
        confirm = self.link(ann, approval_id, confirm="1")
        ann.site.http.head(confirm)
        for headers in (
            {"Purpose": "prefetch"},
            {"Sec-Purpose": "prefetch;prerender"},
            {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Dest": "image"},
        ):
            ann.site.http.get(confirm, headers=headers)
        assert ann.view(execution_id)["status"] == "AWAITING_APPROVAL"

    def test_wrong_keys(self, reviews: tuple[ApiCaller, str]) -> None:
        """The link is HTML for errors too, and is worth nothing without its key. LK-3."""
        ann, flow = reviews
        _, approval_id = ann.paused(flow)
        answer = ann.site.http.get(self.link(ann, approval_id).copy_remove_param("api_key"))
        assert (answer.status_code, answer.headers["content-type"][:9]) == (401, "text/html")
        unknown = ann.site.http.get(self.link(ann, "appr_none"))
        assert (unknown.status_code, unknown.headers["content-type"][:9]) == (404, "text/html")

    def test_race(self, reviews: tuple[ApiCaller, str]) -> None:
        """Of many clicks and calls at once exactly one decides. AP-6."""
        ann, flow = reviews
        _, approval_id = ann.paused(flow)
        confirm = self.link(ann, approval_id, confirm="1")
        body = {"approvalId": approval_id, "decision": "reject"}
        with ThreadPoolExecutor(8) as threads:
            clicks = [threads.submit(ann.site.http.get, confirm) for _ in range(8)]
            calls = [threads.submit(ann.post, TestByWebhook.PATH, body) for _ in range(8)]
            answers = [one.result().status_code for one in clicks + calls]
        assert sorted(answers) == [200] + [409] * 15
