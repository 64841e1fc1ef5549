"""The one-click pages in a real browser: what a reviewer sees, and what a click does."""

import shutil
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import expect, sync_playwright

from tests.support.distribution import missing

from .flows import REFUNDS
from .site import ApiCaller

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
MISSING = "needs Debian's chromium: apt-get install chromium"
HOSTILE = "<img src=x onerror=document.title='owned'>"
expect.set_options(timeout=60_000)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    if CHROMIUM is None:
        missing(MISSING)
    with sync_playwright() as playwright:
        arguments = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
        found = playwright.chromium.launch(executable_path=CHROMIUM, args=arguments)
        yield found
        found.close()


@pytest.fixture
def page(browser: Any) -> Iterator[Any]:
    """A tab; whatever the page's own policy blocks, or any script error, fails the test."""
    context = browser.new_context()
    tab = context.new_page()
    complaints: list[str] = []
    asked: list[str] = []
    tab.on("console", lambda said: complaints.append(said.text))
    tab.on("pageerror", lambda error: complaints.append(str(error)))
    tab.on("request", lambda request: asked.append(request.url))
    tab.asked = asked
    yield tab
    context.close()
    assert [text for text in complaints if "favicon" not in text and "status of" not in text] == []


def _link(ann: ApiCaller, approval_id: str, decision: str, **query: str) -> str:
    more = "".join(f"&{name}={value}" for name, value in query.items())
    door = f"/api/webhook-trigger/approval/{approval_id}/{decision}"
    return f"{ann.site.server.url}{door}?api_key={ann.key.text}{more}"


def _status(ann: ApiCaller, approval_id: str) -> Any:
    return ann.get(f"/api/v1/approvals/{approval_id}").json()["status"]


def test_approve(ann: ApiCaller, page: Any) -> None:
    """The first open shows the rows and decides nothing; the button approves. LK-1, LK-2."""
    execution_id, approval_id = ann.paused(ann.workflow(REFUNDS), customer="Ann")
    page.goto(_link(ann, approval_id, "approve"))
    expect(page.get_by_role("heading", name="Refunds of Ann")).to_be_visible()
    expect(page.locator("tbody tr")).to_have_count(3)
    assert _status(ann, approval_id) == "PENDING"
    page.get_by_label("Comment").fill("looks right")
    page.get_by_role("button", name="Approve").click()
    expect(page.get_by_role("heading")).to_contain_text("Approved")
    expect(page.locator("main")).to_contain_text("looks right")
    assert ann.result(execution_id)["status"] == "COMPLETED"
    assert all(url.startswith(ann.site.server.url) for url in page.asked)


def test_reject(ann: ApiCaller, page: Any) -> None:
    """The other link's button rejects; opening the first one then says what was decided. LK-2."""
    execution_id, approval_id = ann.paused(ann.workflow(REFUNDS))
    page.goto(_link(ann, approval_id, "reject"))
    page.get_by_role("button", name="Reject").click()
    expect(page.get_by_role("heading")).to_contain_text("Rejected")
    assert _status(ann, approval_id) == "REJECTED"
    assert ann.view(execution_id)["status"] == "CANCELLED"
    page.goto(_link(ann, approval_id, "approve"))
    expect(page.get_by_role("heading")).to_contain_text("Rejected")
    expect(page.get_by_role("button")).to_have_count(0)


def test_hostile_text(ann: ApiCaller, page: Any) -> None:
    """What an execution says is shown as text and never runs."""
    _, approval_id = ann.paused(ann.workflow(REFUNDS), customer=HOSTILE)
    page.goto(_link(ann, approval_id, "approve", comment="%3Cscript%3Ealert(1)%3C%2Fscript%3E"))
    expect(page.get_by_role("heading", level=1)).to_have_text(f"Refunds of {HOSTILE}")
    expect(page.get_by_label("Comment")).to_have_value("<script>alert(1)</script>")
    expect(page.locator("img, script")).to_have_count(0)
    expect(page).not_to_have_title("owned")


def test_styled(ann: ApiCaller, page: Any) -> None:
    """The page's own style gets through its policy, and a phone needs no sideways scrolling."""
    _, approval_id = ann.paused(ann.workflow(REFUNDS))
    page.set_viewport_size({"width": 360, "height": 640})
    page.goto(_link(ann, approval_id, "approve"))
    colour = "e => getComputedStyle(e).backgroundColor"
    assert page.get_by_role("button", name="Approve").evaluate(colour) != "rgb(239, 239, 239)"
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")


def test_wrong_key(ann: ApiCaller, page: Any) -> None:
    """A link with a wrong key is a page with the status 401 that says nothing of the approval."""
    _, approval_id = ann.paused(ann.workflow(REFUNDS), customer="Ann")
    link = _link(ann, approval_id, "approve").replace(ann.key.text, "wfk_wrong")
    answer = page.goto(link)
    assert answer.status == 401
    assert "Ann" not in page.content()
