"""The one-click approval link: what opening it does, and what it does not."""

import asyncio

import pytest

from tests.support.http_world import World
from wfcore.model.access import Scope
from wfcore.model.workflow import Column

HTML = "text/html; charset=utf-8"


def link(id: str, decision: str = "approve") -> str:
    return f"/api/webhook-trigger/approval/{id}/{decision}"


async def opened(world: World, id: str, decision: str = "approve", headers=None, **query: str):
    """Open the link as a browser would: the key in the query, no header."""
    params = {"api_key": world.key.text, **query}
    answer = await world.http.get(link(id, decision), params=params, headers=headers or {})
    assert answer.headers["content-type"] == HTML
    return answer


async def status_of(world: World, id: str) -> str:
    return (await world.get(f"/api/v1/approvals/{id}")).json()["status"]


async def test_opening_the_link_asks_and_decides_nothing(world: World):
    """The first open shows a confirmation page, as often as it is opened. LK-1, LK-3."""
    _, id = await world.paused()
    for _ in range(2):
        page = await opened(world, id, comment="because <b>")
        assert page.status_code == 200
        assert 'name="confirm" value="1"' in page.text
        assert "Please review" in page.text
        assert "because &lt;b&gt;" in page.text
    assert await status_of(world, id) == "PENDING"


async def test_the_button_decides(world: World):
    """confirm=1 decides, with the comment, in any case of the decision. LK-2, AP-11."""
    for decision, status in (("approve", "APPROVED"), ("REJECT", "REJECTED")):
        _, id = await world.paused()
        page = await opened(world, id, decision, confirm="1", comment="ok")
        assert page.status_code == 200
        seen = (await world.get(f"/api/v1/approvals/{id}")).json()
        assert (seen["status"], seen["decisionSource"], seen["comment"]) == (status, "link", "ok")
        if status == "APPROVED":
            await world.run()


@pytest.mark.parametrize(
    "headers",
    [
        {"Purpose": "prefetch"},
        {"Sec-Purpose": "prefetch;prerender"},
        {"X-Moz": "prefetch"},
        {"X-Purpose": "preview"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Dest": "image"},
        {"Sec-Fetch-Dest": "iframe"},
        {"Sec-Fetch-Dest": "empty"},
        {"Sec-Fetch-Mode": "no-cors"},
        {"Sec-Fetch-Site": "same-origin", "Sec-Fetch-Mode": "cors"},
    ],
)
async def test_what_is_no_click_never_decides(world: World, headers):
    """Prefetches, embeddings and other sites see the question again. LK-2."""
    _, id = await world.paused()
    page = await opened(world, id, headers=headers, confirm="1")
    assert page.status_code == 200
    assert 'name="confirm" value="1"' in page.text
    assert await status_of(world, id) == "PENDING"


async def test_head_and_other_confirmations_never_decide(world: World):
    """HEAD has no click behind it; only the value 1 confirms. LK-2."""
    _, id = await world.paused()
    params = {"api_key": world.key.text, "confirm": "1"}
    assert (await world.http.head(link(id), params=params)).status_code == 200
    for confirm in ("0", "true", "", "11"):
        assert (await opened(world, id, confirm=confirm)).status_code == 200
    assert (await world.http.post(link(id), params=params)).status_code == 405
    assert await status_of(world, id) == "PENDING"


async def test_a_decided_link_says_what_was_decided(world: World):
    """Opened again it is 200 and tells; confirmed again it is 409. AP-14."""
    _, id = await world.paused()
    await opened(world, id, confirm="1")
    for decision in ("approve", "reject"):
        seen = await opened(world, id, decision)
        assert seen.status_code == 200
        assert "Approved" in seen.text
        assert "ann@example.org" in seen.text
        assert (await opened(world, id, decision, confirm="1")).status_code == 409


async def test_of_racing_clicks_one_decides(world: World):
    """Many confirmations at once: one 200, the others 409. AP-6."""
    _, id = await world.paused()
    pages = await asyncio.gather(*(opened(world, id, confirm="1") for _ in range(8)))
    assert sorted(page.status_code for page in pages) == [200] + [409] * 7


async def test_errors_are_pages_with_their_status(world: World):
    """401, 400, 404, 403: HTML each time, and nothing decided. LK-3."""
    _, id = await world.paused()
    lacking = await world.new_key(None, Scope.EXECUTION_READ)
    for key in ("", "nope", lacking.text):
        page = await world.http.get(link(id), params={"api_key": key, "confirm": "1"})
        assert (page.status_code, page.headers["content-type"]) == (401, HTML)
        assert page.headers["www-authenticate"] == "Bearer"
    assert (await opened(world, id, "maybe", confirm="1")).status_code == 400
    assert (await opened(world, id, comment="x" * 4_001, confirm="1")).status_code == 400
    assert (await opened(world, "appr_0", confirm="1")).status_code == 404
    assert await status_of(world, id) == "PENDING"


async def test_who_may_not_approve_is_asked_to_reject_only(world: World):
    """Who started it, where others must approve: 403 instead of a question. AP-10, AP-18."""
    _, id = await world.paused(allow_self_approval=False)
    for confirm in ({}, {"confirm": "1"}):
        assert (await opened(world, id, **confirm)).status_code == 403
    assert (await opened(world, id, "reject")).status_code == 200


@pytest.mark.parametrize(
    ("decision", "says"),
    [
        ("maybe", "decision: must be approve or reject"),
        ("revise", "decision: must be approve or reject; revise where you can comment"),
    ],
)
async def test_a_link_that_is_no_decision_says_which_there_are(
    world: World, decision: str, says: str
):
    """In words, with the field. AP-11."""
    page = await opened(world, "appr_0", decision)
    assert (page.status_code, f">{says}<" in page.text) == (400, True)


async def test_pages_are_sealed(world: World):
    """No store, no referrer, no frame, nothing from elsewhere; the key only in its form. SC-4."""
    _, id = await world.paused()
    for page in (await opened(world, id), await opened(world, "appr_0")):
        assert page.headers["cache-control"] == "no-store"
        assert page.headers["referrer-policy"] == "no-referrer"
        assert "default-src 'none'" in page.headers["content-security-policy"]
        assert "frame-ancestors 'none'" in page.headers["content-security-policy"]
    assert world.key.text not in (await opened(world, "appr_0")).text
    with_header = await world.get(link(id))
    assert world.key.text not in with_header.text


async def test_a_link_does_not_offer_what_it_cannot_take(world: World):
    """Where an answer is required, approving leads to the approval; rejecting is one click."""
    why = Column("why", "Why now?", required=True)
    _, id = await world.paused(fields=(why,))
    page = await opened(world, id)
    assert "To approve, answer first: Why now?." in page.text
    assert f"/approvals/{id}" in page.text
    assert 'name="confirm"' not in page.text
    assert 'name="confirm"' in (await opened(world, id, "reject")).text
    refused = await opened(world, id, confirm="1")
    assert refused.status_code == 400
    assert await status_of(world, id) == "PENDING"
