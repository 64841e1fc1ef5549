"""Nothing typed is lost: answers, comments of forms, and who is shown them."""

import re
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, Route, expect

from tests.support.http_world import PASSWORD
from wfcore.model.approval import ApprovalStatus

from .approval_case import Case, bar, both, rows
from .conftest import Site, enter, until_true, watched
from .test_real_review import FIELDS

KEPT = "Object.keys(localStorage).some((key) => key.startsWith('wfcore:draft'))"


def forgotten(page: Page) -> None:
    """No draft is left in this browser."""
    until_true(page, f"!{KEPT}")


def opened(page: Page, case: Case) -> None:
    """The page with its scripts: an editor where there are rows."""
    page.goto(case.url)
    if case.now().groups:
        expect(bar(page)).to_be_visible()


def answer(page: Page) -> None:
    page.get_by_label("Why now?").fill("end of quarter")
    page.get_by_label("Risk").select_option("high")


def answered(page: Page) -> None:
    """What was typed is in its fields."""
    expect(page.get_by_label("Why now?")).to_have_value("end of quarter")
    expect(page.get_by_label("Risk")).to_have_value("high")
    expect(page.get_by_label("Limit")).to_have_value("")


def approve(page: Page, case: Case) -> None:
    """By the sheet where there are rows, else by the form."""
    if case.now().groups:
        bar(page).get_by_role("button", name="Review and approve").click()
        page.get_by_role("dialog").get_by_role("button", name="Approve").click()
    else:
        page.get_by_role("button", name="Approve").click()


def busy(route: Route) -> None:
    """What is sent meets a server that has no time; what is read does not."""
    if route.request.method == "POST":
        route.fulfill(status=503, json={"error": "later"})
    else:
        route.continue_()


@pytest.mark.parametrize("count", [3, 0])
def test_answers_outlast_all_but_the_decision(site: Site, signed_in: Page, count: int):
    """A reload, a session that ended, a busy server: they are there, are sent, and go. R8, B7."""
    page, case = signed_in, Case(site, count, fields=FIELDS)
    opened(page, case)
    answer(page)
    page.reload()
    answered(page)
    page.context.clear_cookies()
    approve(page, case)
    if count:
        page.get_by_role("link", name="Sign in").click()
    expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
    enter(site, page)
    opened(page, case)
    answered(page)
    page.route(f"{case.url}**", busy)
    approve(page, case)
    expect(page.get_by_text("try again in" if count else "later")).to_be_visible()
    page.unroute(f"{case.url}**")
    opened(page, case)
    answered(page)
    approve(page, case)
    expect(page.get_by_text("Approved by ann@example.org")).to_be_visible()
    assert case.now().answers == {"reason": "end of quarter", "risk": "high"}
    forgotten(page)


def test_a_comment_in_a_sheet_is_kept(site: Site, signed_in: Page):
    """The sheet is closed, the page comes again: the sheet has the comment."""
    page, case = signed_in, Case(site, 3)
    for typed in (True, False):
        opened(page, case)
        bar(page).get_by_role("button", name="Reject").click()
        comment = page.get_by_role("dialog").get_by_label("Comment")
        if typed:
            comment.fill("not this month")
        else:
            expect(comment).to_have_value("not this month")
    page.get_by_role("dialog").get_by_role("button", name="Reject").click()
    expect(page.get_by_text("Rejected by ann@example.org")).to_be_visible()
    assert case.now().comment == "not this month"
    forgotten(page)


def test_what_somebody_corrects_does_not_cost_the_rest(site: Site, signed_in: Page):
    """An answer is refused and corrected, the session ends: the other answers are there, too."""
    page, case = signed_in, Case(site, 0, fields=FIELDS)
    opened(page, case)
    answer(page)
    page.get_by_label("Limit").fill("much")
    approve(page, case)
    expect(page.get_by_role("alert")).to_contain_text("Limit: must be a number")
    page.get_by_label("Limit").fill("7")
    page.context.clear_cookies()
    approve(page, case)
    expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
    enter(site, page)
    opened(page, case)
    expect(page.get_by_label("Limit")).to_have_value("7")
    expect(page.get_by_label("Why now?")).to_have_value("end of quarter")


def test_nobody_else_is_shown_what_was_typed(site: Site, signed_in: Page):
    """Another person in the same browser finds the fields empty; who typed finds them as before."""
    page, case = signed_in, Case(site, 0, fields=FIELDS, **both())
    opened(page, case)
    answer(page)
    page.get_by_label("Comment").fill("mine")
    for who in (case.bob, site.world.ann):
        page.context.clear_cookies()
        enter(site, page, who.id)
        opened(page, case)
        mine = who is not case.bob
        expect(page.get_by_label("Comment")).to_have_value("mine" if mine else "")
        expect(page.get_by_label("Why now?")).to_have_value("end of quarter" if mine else "")


def test_others_are_told_of_without_rows(browser: Browser, site: Site, signed_in: Page):
    """A yes and a decision in another browser are sentences; what was typed can be read. 5.3."""
    page, case = signed_in, Case(site, 0, **both(required_approvals=2))
    opened(page, case)
    page.get_by_label("Comment").fill("mine")
    context = watched(browser.new_context(), site)
    there = context.new_page()
    enter(site, there, case.bob.id)
    opened(there, case)
    there.get_by_label("Comment").fill("fine")
    there.get_by_role("button", name="Approve").click()
    expect(there.get_by_text("You have agreed; others must agree, too.")).to_be_visible()
    expect(there.get_by_label("Comment")).to_have_value("")
    forgotten(there)
    expect(page.get_by_text("bob@example.org agreed: 1 of 2.")).to_be_visible()
    expect(page.get_by_label("Comment")).to_have_value("mine")
    there.get_by_label("Comment").fill("no, wait")
    there.get_by_role("button", name="Reject").click()
    expect(there.get_by_text("Rejected by bob@example.org")).to_be_visible()
    context.close()
    expect(page.get_by_text("Meanwhile bob@example.org has rejected it.")).to_be_visible()
    expect(page.get_by_label("Comment")).to_have_value("mine")
    expect(page.get_by_role("button", name="Approve")).to_be_disabled()
    page.get_by_role("link", name="Show the decision").click()
    expect(page.get_by_text("no, wait").first).to_be_visible()
    forgotten(page)
    assert case.now().status is ApprovalStatus.REJECTED
    assert context.complaints == []


def test_the_comment_on_several_is_kept(site: Site, signed_in: Page):
    """A reload, a session that ended, a busy server; not which rows were seen."""
    page, case = signed_in, Case(site, 3, **both(required_approvals=2))
    url = f"{site.url}/inbox/decide?decision=approve&id={case.id}"
    comment = page.get_by_label("Comment")
    page.goto(url)
    comment.fill("as agreed")
    case.decide(case.bob, {"payouts": [{**row, "amount": 3} for row in rows(3)]})
    page.reload()
    expect(page.get_by_text("Its rows were changed by bob@example.org.")).to_be_visible()
    expect(comment).to_have_value("as agreed")
    page.context.clear_cookies()
    page.get_by_role("button", name="Approve 1").click()
    page.get_by_label("E-mail").fill("ann@example.org")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()
    expect(page).to_have_url(re.compile("/inbox/decide"))
    expect(comment).to_have_value("as agreed")
    page.route(url, busy)
    page.get_by_role("button", name="Approve 1").click()
    expect(page.get_by_text("later")).to_be_visible()
    page.unroute(url)
    page.goto(url)
    expect(comment).to_have_value("as agreed")
    page.get_by_role("button", name="Approve 1").click()
    expect(page.get_by_role("status")).to_have_text("1 decision counts.")
    assert (case.now().status, case.now().comment) == (ApprovalStatus.APPROVED, "as agreed")
    until_true(page, "!sessionStorage.length")


def test_forms_are_of_one_person(site: Site, signed_in: Page):
    """Who signs in next in the same tab finds a form of theirs empty."""
    page, (id,) = signed_in, site.do(site.world.waiting(1, **both()))
    bob: Any = Case(site, 0).bob
    url = f"{site.url}/inbox/decide?decision=reject&id={id}"
    page.goto(url)
    page.get_by_label("Comment").fill("mine")
    for who, typed in ((bob, ""), (site.world.ann, "mine")):
        enter(site, page, who.id)
        page.goto(url)
        expect(page.get_by_label("Comment")).to_have_value(typed)
