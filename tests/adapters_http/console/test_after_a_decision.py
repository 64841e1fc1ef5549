"""An approval on a desk and on a phone: what is in reach, and what comes after the decision."""

from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from wfcore.model.workflow import OnRevise

from .approval_case import Case, approve, bar, both, cell, pick, show
from .conftest import Site, enter, watched

PHONE: dict[str, Any] = {"viewport": {"width": 390, "height": 844}, "has_touch": True}


def test_a_decision_leads_to_the_next_one(site: Site, signed_in: Page, accessible: Any):
    """The released rows and their sum stand in green, and Enter opens the first to end."""
    soon, late = Case(site, 2, timeout_ms=3_600_000), Case(site, 3)
    case = Case(site, 4)
    show(case, signed_in)
    pick(signed_in, "P-1000").uncheck()
    approve(signed_in)
    done = signed_in.locator(".after.done")
    expect(done).to_contain_text("Released 3 of 4, Amount 478.14.")
    expect(done).to_contain_text("(2 left)")
    expect(done.get_by_role("link")).to_be_focused()
    accessible(signed_in)
    signed_in.keyboard.press("Enter")
    signed_in.wait_for_url(soon.url)
    bar(signed_in).get_by_role("button", name="Reject").click()
    signed_in.get_by_role("dialog").get_by_role("button", name="Reject").click()
    after = signed_in.locator(".after")
    expect(after).to_contain_text("Rejected.")
    expect(after).not_to_have_class("done")
    assert after.get_by_role("link").get_attribute("href").endswith(late.id)
    signed_in.goto(case.url)
    expect(after).to_have_count(0)


def test_a_yes_that_waits_for_others_leads_on(browser: Browser, site: Site):
    """Without scripts, too; nothing is said to somebody who did not decide."""
    case = Case(site, 1, **both(required_approvals=2))
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    enter(site, page, case.bob.id)
    page.goto(case.url + "?decided=1")
    expect(page.locator(".after")).to_have_count(0)
    page.goto(case.url)
    page.get_by_role("button", name="Approve").click()
    expect(page.locator(".after")).to_contain_text("You have agreed: 1 of 2")
    expect(page.locator(".after")).to_contain_text("Nothing else waits for you")
    context.close()


def test_six_rows_of_an_approval_are_on_the_first_screen_of_a_phone(browser: Browser, site: Site):
    """Above the bar, in one line each, below the question and the filters."""
    case = Case(site, 42, **both(required_approvals=2))
    context = watched(browser.new_context(**PHONE), site)
    page = context.new_page()
    enter(site, page)
    show(case, page)
    bottom = bar(page).bounding_box()["y"]
    ends = [one.bounding_box() for one in page.locator("tbody tr").all()[:12]]
    assert sum(one["y"] + one["height"] <= bottom for one in ends) >= 6
    assert bottom > 844 - 120
    page.get_by_role("searchbox").fill("P-1041")
    expect(page.locator("tbody tr")).to_have_count(1)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    context.close()
    assert context.complaints == []


def test_the_menu_of_a_phone_has_the_other_decisions(browser: Browser, site: Site, accessible: Any):
    """Ask for changes, reject, and hand on: each a press on the menu away, and back by Escape."""
    case = Case(site, 3, **both(delegable=True, on_revise=OnRevise("collect", 2)))
    context = watched(browser.new_context(**PHONE), site)
    page = context.new_page()
    enter(site, page)
    show(case, page)
    expect(bar(page).get_by_role("button")).to_have_count(2)
    menu = bar(page).get_by_role("button", name="Other decisions")
    menu.tap()
    for name in ("Reject…", "Ask for changes…", "Hand on…"):
        box = bar(page).get_by_role("button", name=name).bounding_box()
        assert box["height"] >= 44
        assert box["y"] + box["height"] < 844 - 60
    accessible(page)
    page.keyboard.press("Escape")
    expect(bar(page).get_by_role("button", name="Reject…")).to_be_hidden()
    for name, title in (("Reject…", "Reject all of it?"), ("Ask for changes…", "Ask for changes?")):
        menu.tap()
        bar(page).get_by_role("button", name=name).tap()
        expect(page.get_by_role("dialog", name=title)).to_be_visible()
        page.keyboard.press("Escape")
    menu.tap()
    bar(page).get_by_role("button", name="Hand on…").tap()
    expect(page.get_by_label("E-mail or account id")).to_be_focused()
    context.close()
    assert context.complaints == []


def test_the_sheet_shows_differences_then_totals_then_the_comment(site: Site, signed_in: Page):
    """In the order in which a reader checks them, with the decision at the end."""
    show(Case(site, 3), signed_in)
    cell(signed_in, "P-1001", "Amount").fill("1")
    signed_in.keyboard.press("Control+Enter")
    sheet = signed_in.get_by_role("dialog")
    places = [
        sheet.locator(".changes"),
        sheet.get_by_text("Amount: "),
        sheet.get_by_label("Comment"),
        sheet.get_by_role("button", name="Approve 3 rows"),
    ]
    tops = [one.bounding_box()["y"] for one in places]
    assert tops == sorted(tops)


def test_a_new_row_is_wrong_only_once_touched(site: Site, signed_in: Page):
    """Its empty fields are no errors before the review, or before one of them is typed into."""
    show(Case(site, 2, group={"allow_add": True}), signed_in)
    signed_in.get_by_role("button", name="Add a row").click()
    expect(cell(signed_in, "3", "Payout")).to_be_focused()
    expect(signed_in.locator("small.wrong")).to_have_count(0)
    cell(signed_in, "3", "Amount").fill("x")
    expect(signed_in.locator("small.wrong")).to_have_count(1)
    bar(signed_in).get_by_role("button", name="to correct").click()
    expect(signed_in.locator("small.wrong")).to_have_count(3)


@pytest.mark.parametrize("width", [1280, 800])
def test_the_head_of_the_rows_stays(site: Site, signed_in: Page, width: int):
    """While rows go by; in a table that is wider than the page, too."""
    signed_in.set_viewport_size({"width": width, "height": 800})
    show(Case(site, 60), signed_in)
    cell(signed_in, "P-1055", "Amount").scroll_into_view_if_needed()
    head = signed_in.get_by_role("columnheader", name="Amount")
    expect(head).to_be_in_viewport(ratio=0.5)
    row = cell(signed_in, "P-1055", "Amount").bounding_box()
    assert head.bounding_box()["y"] < row["y"]
