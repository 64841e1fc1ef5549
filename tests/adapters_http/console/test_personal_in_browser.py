"""A personal link in a real browser: from a mail on a phone to the decision. PL-1, PL-4."""

from collections.abc import Callable

from playwright.sync_api import Browser, Page, expect

from wfcore.model.access import OPERATOR
from wfcore.model.approval import ApprovalStatus, DecisionSource
from wfcore.rules.auth.signed_links import personal_token

from .approval_case import Case, approve, bar, cell, kept
from .conftest import Site, enter, watched

EVA = "eva@example.org"
PHONE = {"width": 390, "height": 844}


def asked(site: Site, **step) -> tuple[Case, str]:
    """A case that asks Eva and Bob, and Eva's link."""
    case = Case(site, 12, approvers=(EVA, "bob@example.org"), **step)
    key = site.world.services.signing_key
    return case, site.url + f"/a/{personal_token(key, case.now(), EVA)}"


def test_rows_are_edited_and_approved_without_an_account(
    site: Site, page: Page, accessible: Callable[[Page], None]
):
    """Editor, sheet and decision as for everybody; then the outcome, and no rows. B3, B4."""
    case, link = asked(site)
    page.goto(link)
    bar(page).wait_for()
    expect(page.get_by_text(f"By your personal link you decide as {EVA}.")).to_be_visible()
    expect(page.get_by_role("navigation")).to_have_count(0)
    accessible(page)
    cell(page, "P-1003", "Amount").fill("7")
    approve(page, "one was wrong")
    expect(page.get_by_role("heading", level=2).first).to_contain_text(f"Approved by {EVA}")
    expect(page.get_by_text("Thank you: your decision is on record.")).to_be_visible()
    expect(page.get_by_text("Released: Payouts, 12 rows.")).to_be_visible()
    expect(page.get_by_role("table")).to_have_count(0)
    accessible(page)
    (entry,) = case.decisions()
    assert (entry.by, entry.source, entry.comment) == (EVA, DecisionSource.LINK, "one was wrong")
    assert entry.rows_after["payouts"][3]["amount"] == 7
    assert kept(page) == []


def test_on_a_phone_without_scripts(browser: Browser, site: Site):
    """What is shown can be approved by the form alone, and the page comes back with the outcome."""
    case, link = asked(site)
    context = watched(
        browser.new_context(viewport=PHONE, has_touch=True, java_script_enabled=False), site
    )
    page = context.new_page()
    page.goto(link)
    page.get_by_label("Comment").fill("from the train")
    page.get_by_role("button", name="Approve").click()
    expect(page.get_by_role("heading", level=2).first).to_contain_text(f"Approved by {EVA}")
    expect(page).to_have_url(f"{link}?decided=1")
    assert case.decisions()[0].source is DecisionSource.LINK
    context.close()
    assert context.complaints == []


def test_a_link_within_another_session_is_still_its_owners(site: Site, signed_in: Page):
    """Ann's browser with Eva's link decides as Eva, and stays signed in as Ann."""
    case, link = asked(site, required_approvals=2)
    signed_in.goto(link)
    bar(signed_in).wait_for()
    bar(signed_in).get_by_role("button", name="Review and approve").click()
    signed_in.get_by_role("dialog").get_by_role("button", name="Approve").click()
    expect(signed_in.get_by_text("You have agreed to these rows")).to_be_visible()
    assert [one.account for one in case.now().assents] == [f"mailto:{EVA}"]
    signed_in.goto(f"{site.url}/inbox")
    expect(signed_in.locator("summary")).to_contain_text("ann@example.org")


def test_decided_meanwhile_is_a_sentence(site: Site, page: Page):
    """Who comes second is told who decided; what was typed stays. R7, R8."""
    case, link = asked(site)
    page.goto(link)
    bar(page).wait_for()
    cell(page, "P-1003", "Amount").fill("7")
    case.decide(case.bob)
    expect(page.get_by_text("bob@example.org has approved it")).to_be_visible()
    assert case.now().status is ApprovalStatus.APPROVED
    page.reload()
    expect(page.get_by_role("heading", level=2).first).to_contain_text("Approved by bob@")


def test_the_next_click_elsewhere_is_a_sign_in(browser: Browser, site: Site, page: Page):
    """After a new password, and after signing out everywhere, the other browser is out. SE-4."""
    from wfcore.usecases.accounts.accounts import set_account

    for end in ("password", "everywhere"):
        enter(site, page)
        other = watched(browser.new_context(), site)
        there = other.new_page()
        enter(site, there)
        if end == "password":
            site.do(
                set_account(site.world.services, OPERATOR, site.world.ann.id, password="x" * 12)
            )
        else:
            page.get_by_text("ann@example.org").click()
            page.get_by_role("button", name="Sign out everywhere").click()
            page.wait_for_url("**/sign-in")
        there.get_by_role("link", name="Decided", exact=True).click()
        expect(there.get_by_role("heading", name="Sign in")).to_be_visible()
        other.close()
