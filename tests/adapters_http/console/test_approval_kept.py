"""Nothing typed is lost: drafts, lost connections, others who were faster or changed the same."""

import re
from typing import Any

import pytest
from playwright.sync_api import Browser, Error, Page, expect

from wfcore.model.approval import ApprovalStatus
from wfcore.time import HOUR

from .approval_case import Case, approve, bar, both, cell, kept, pick, rows, show
from .conftest import Site, enter, until_true


def test_a_draft_survives(case: Case, open_page: Page):
    """Reloading loses nothing: edits, rows left out, the comment; only what may be edited."""
    cell(open_page, "P-1001", "Amount").fill("1200,50")
    pick(open_page, "P-1002").uncheck()
    open_page.reload()
    expect(open_page.get_by_text("Your draft is back; rows with edits: 2.")).to_be_visible()
    expect(cell(open_page, "P-1001", "Amount")).to_have_value("1200,50")
    expect(pick(open_page, "P-1002")).not_to_be_checked()
    ((key, draft),) = kept(open_page)
    assert key == f"wfcore:draft:{case.id}:{case.site.world.ann.id}"
    assert "DE0" not in draft
    assert "Grace" not in draft
    open_page.goto(f"{case.site.url}/inbox")
    expect(open_page.get_by_text("edits in your draft: 2")).to_be_visible()
    open_page.get_by_text("ann@example.org").click()
    open_page.get_by_role("button", name="Sign out", exact=True).click()
    open_page.wait_for_url("**/sign-in")
    assert kept(open_page) == []


def test_a_lost_connection_decides_nothing_or_once(case: Case, open_page: Page):
    """No answer to the decision: what was typed is there, and trying again decides once."""
    with open_page.expect_request_finished(lambda one: one.url.endswith("/state")):
        cell(open_page, "P-1001", "Amount").fill("7")  # what decides is loaded: it asks for that
    open_page.context.set_offline(True)
    approve(open_page)
    expect(open_page.get_by_text("No answer from the server.")).to_be_visible()
    assert case.decisions() == []
    open_page.context.set_offline(False)
    approve(open_page)
    expect(open_page.get_by_text("Approved by ann@example.org")).to_be_visible()
    assert len(case.decisions()) == 1


def test_an_answer_that_got_lost(case: Case, open_page: Page):
    """The decision was made and its answer lost: the page says so by itself, and by whom."""

    def lose(route: Any) -> None:
        route.fetch()
        route.abort()

    open_page.route("**/approve", lose, times=1)
    approve(open_page)
    expect(open_page.get_by_text("Meanwhile ann@example.org has approved it.")).to_be_visible()
    assert len(case.decisions()) == 1


def test_two_edit_the_same_row(browser: Browser, site: Site, signed_in: Page, accessible: Any):
    """The second is shown both values, takes one with a click, and approves the new rows."""
    case = Case(site, 20, **both(required_approvals=2))
    show(case, signed_in)
    for row, amount in (("P-1005", "10"), ("P-1006", "20")):
        cell(signed_in, row, "Amount").fill(amount)
    theirs = [{**row, "amount": 11} if row["id"] == "P-1005" else row for row in rows(20)[:-1]]
    case.decide(case.bob, {"payouts": theirs})
    approve(signed_in)
    notice = signed_in.get_by_role("status")
    expect(notice).to_contain_text("The rows have changed since you began.")
    expect(notice).to_contain_text("cells to settle: 1. Nothing was decided.")
    assert len(case.decisions()) == 1
    expect(signed_in.get_by_text("theirs: 11")).to_be_visible()
    expect(pick(signed_in, "P-1019, left out by bob@example.org")).not_to_be_checked()
    accessible(signed_in)
    bar(signed_in).get_by_role("button", name="1 to settle").click()
    signed_in.get_by_role("button", name="Keep mine").click()
    approve(signed_in)
    expect(signed_in.get_by_text("1 of 2 have agreed")).to_be_visible()
    stood = {row["id"]: row["amount"] for row in case.now().groups[0].items}
    assert (stood["P-1005"], stood["P-1006"], "P-1019" in stood) == (10, 20, False)
    assert [one.by for one in case.now().assents] == ["ann@example.org"]


def test_taking_theirs(site: Site, signed_in: Page):
    """One click takes the other value; what was not touched by both is kept."""
    case = Case(site, 5, **both(required_approvals=2))
    show(case, signed_in)
    cell(signed_in, "P-1001", "Amount").fill("10")
    case.decide(case.bob, {"payouts": [{**row, "amount": 11} for row in rows(5)]})
    approve(signed_in)
    signed_in.get_by_role("button", name="Take theirs").click()
    expect(cell(signed_in, "P-1001", "Amount")).to_have_value("11")
    approve(signed_in)
    expect(signed_in.get_by_text("Approved by ann@example.org")).to_be_visible()
    assert {row["amount"] for row in case.now().groups[0].items} == {11}


def test_decided_meanwhile_is_a_sentence(case: Case, open_page: Page):
    """Somebody else was faster: no error, by whom, and what was typed can still be read."""
    cell(open_page, "P-1001", "Amount").fill("7")
    case.decide(case.site.world.ann)
    expect(open_page.get_by_text("Meanwhile ann@example.org has approved it.")).to_be_visible()
    expect(cell(open_page, "P-1001", "Amount")).to_have_value("7")
    expect(bar(open_page).get_by_role("button", name="Reject")).to_be_disabled()
    open_page.get_by_role("link", name="Show the decision").click()
    expect(open_page.get_by_text("Approved by ann@example.org")).to_be_visible()


def test_signed_out_in_the_middle(case: Case, open_page: Page):
    """The page says so, keeps what was typed, and it is back after signing in. B7."""
    cell(open_page, "P-1001", "Amount").fill("7")
    open_page.context.clear_cookies()
    approve(open_page)
    open_page.get_by_role("link", name="Sign in").click()
    expect(open_page).to_have_url(re.compile(f"next=(/|%2F)approvals(/|%2F){case.id}"))
    enter(case.site, open_page)
    show(case, open_page)
    expect(cell(open_page, "P-1001", "Amount")).to_have_value("7")


@pytest.mark.parametrize("status", [429, 503])
def test_a_busy_server_loses_nothing(case: Case, open_page: Page, status: int):
    """The page says when to try again, by the server's own word; then it decides once. B7."""

    def busy(route: Any) -> None:
        headers = {"Retry-After": "17", "Content-Type": "application/json"}
        route.fulfill(status=status, headers=headers, body='{"error": "not now"}')

    cell(open_page, "P-1001", "Amount").fill("7")
    open_page.route("**/approve", busy, times=1)
    approve(open_page)
    expect(open_page.get_by_text("Nothing was decided; try again in 17 s.")).to_be_visible()
    assert case.decisions() == []
    expect(cell(open_page, "P-1001", "Amount")).to_have_value("7")
    approve(open_page)
    expect(open_page.get_by_text("Approved by ann@example.org")).to_be_visible()
    assert len(case.decisions()) == 1


@pytest.mark.parametrize("status", [403, 404])
def test_a_refusal_loses_nothing(case: Case, open_page: Page, status: int):
    """Not permitted any more, or gone: a sentence, and what was typed is still there. B7."""
    cell(open_page, "P-1001", "Amount").fill("7")
    refused = {"error": "Ask the owner"}
    open_page.route("**/approve", lambda route: route.fulfill(status=status, json=refused), times=1)
    approve(open_page)
    expect(open_page.get_by_text("Nothing was decided: Ask the owner")).to_be_visible()
    expect(cell(open_page, "P-1001", "Amount")).to_have_value("7")
    assert len(kept(open_page)) == 1


def test_a_crash_of_the_tab_loses_nothing(case: Case, open_page: Page):
    """What was typed is with the browser, not with the tab: the next one shows it. R8."""
    other = open_page.context.new_page()
    other.goto(f"{case.site.url}/inbox")
    cell(open_page, "P-1001", "Amount").fill("7")
    pick(open_page, "P-1002").uncheck()
    until_true(
        other,
        "Object.entries(localStorage).some(([key, text]) => "
        "key.startsWith('wfcore:draft') && JSON.parse(text).count === 2)",
    )
    with open_page.expect_event("crash"), pytest.raises(Error):
        open_page.goto("chrome://crash")
    again = open_page.context.new_page()
    show(case, again)
    expect(cell(again, "P-1001", "Amount")).to_have_value("7")
    expect(pick(again, "P-1002, left out")).not_to_be_checked()
    assert case.decisions() == []


def test_expired_meanwhile_is_a_sentence(site: Site, signed_in: Page, accessible: Any):
    """Nobody decided in time: the page says so by itself, and what was typed can be read. R7."""
    case = Case(site, 3, timeout_ms=HOUR)
    show(case, signed_in)
    cell(signed_in, "P-1001", "Amount").fill("7")
    site.world.clock.advance(HOUR)
    assert case.now().status is ApprovalStatus.REJECTED
    expect(
        signed_in.get_by_text("The time is over: it was rejected automatically.")
    ).to_be_visible()
    expect(cell(signed_in, "P-1001", "Amount")).to_have_value("7")
    signed_in.get_by_role("link", name="Show the decision").click()
    expect(signed_in.get_by_text("nobody decided in time")).to_be_visible()
    accessible(signed_in)


def test_what_the_server_refuses_leads_to_its_cell(case: Case, open_page: Page):
    """A 400 that names a cell puts the focus there; the message is tied to it, and above. B7."""

    def refuse(route: Any) -> None:
        error = "editedItems.payouts[3].amount: is suspicious"
        route.fulfill(status=400, json={"error": error})

    open_page.route("**/approve", refuse)
    cell(open_page, "P-1003", "Amount").fill("7")
    approve(open_page)
    expect(
        open_page.get_by_text("Nothing was decided. P-1003: amount is suspicious")
    ).to_be_visible()
    field = cell(open_page, "P-1003", "Amount")
    expect(field).to_be_focused()
    expect(field).to_have_accessible_description(re.compile("is suspicious$"))
    field.fill("8")
    expect(field).not_to_have_accessible_description(re.compile("suspicious"))


def test_my_yes_waits_for_others(site: Site, signed_in: Page):
    """Of two, mine moves it to Agreed; the other's edit voids it and brings it back."""
    case = Case(site, 3, **both(required_approvals=2))
    show(case, signed_in)
    approve(signed_in)
    expect(signed_in.get_by_text("You have agreed to these rows")).to_be_visible()
    signed_in.goto(f"{site.url}/inbox")
    expect(signed_in.get_by_text("Nothing waits for you.")).to_be_visible()
    signed_in.goto(f"{site.url}/inbox?view=agreed")
    expect(signed_in.get_by_text("1 of 2 have agreed")).to_be_visible()
    case.decide(case.bob, {"payouts": [{**row, "amount": 3} for row in rows(3)]})
    signed_in.goto(f"{site.url}/inbox")
    signed_in.get_by_role("link", name="3 payouts wait").click()
    bar(signed_in).wait_for()
    signed_in.get_by_role("button", name="Changed by others 3").click()
    expect(signed_in.get_by_text("by bob@example.org").first).to_be_visible()


def test_a_hundred_bots_change_nothing(case: Case):
    """Reading the page, its rows and its state writes nothing."""
    before = case.now()
    session = case.site.do(case.site.world.sign_in())
    for _ in range(100):
        for path in ("", "/rows", "/state"):
            url = f"/approvals/{case.id}{path}"
            assert case.site.do(case.site.world.http.get(url, headers=session)).status_code == 200
    assert case.now() == before
