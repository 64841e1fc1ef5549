"""A security key beside a laptop's passkey, and two tabs that sign at once, in Chromium."""

import re

from playwright.sync_api import BrowserContext, Locator, Page, Route, expect

from wfcore.model.approval import ApprovalStatus

from .approval_case import Case, bar, show
from .conftest import Site, enter
from .test_passkeys_in_browser import (
    Key,
    context,
    enter_with_both,
    is_signed,
    register,
    signed,
    site,
)

__all__ = ["context", "site"]
ROAMING = {"transport": "usb", "hasResidentKey": False}


LATE = "Meanwhile ann@example.org has approved it"


def add(site: Site, page: Page, name: str) -> None:
    """One more passkey of Ann's, on the page of her account."""
    page.goto(f"{site.url}/account")
    page.get_by_label("Name of the new passkey").fill(name)
    page.get_by_role("button", name="Register a passkey").click()
    expect(page.locator(f"input[name=name][value='{name}']")).to_be_visible()
    site.world.clock.advance(1)


def sign(case: Case, page: Page, name: str) -> str:
    """Approve with the passkey of that name; returns its id, from the receipt."""
    page.goto(case.url)
    page.get_by_role("button", name="Approve").click()
    page.get_by_label("Passkey").select_option(name)
    page.get_by_role("button", name="Sign and approve").click()
    expect(page.get_by_role("heading", level=2).first).to_contain_text("Approved")
    is_signed(case)
    return str(case.now().assents[-1].receipt.statement["credentialId"])  # type: ignore[union-attr]


def test_a_security_key_beside_a_laptop(site: Site, page: Page, context: BrowserContext) -> None:
    """Both of one account register, sign and sign in; the key only after the password. SR-5."""
    enter(site, page)
    laptop = register(site, page)
    laptop.waits()
    usb = Key(page, **ROAMING)
    add(site, page, "usb key")
    (of_laptop,), (of_usb,) = laptop.credentials(), usb.credentials()
    assert (of_laptop["isResidentCredential"], of_usb["isResidentCredential"]) == (True, False)
    cases = [signed(site, 0), signed(site, 0)]
    by_usb = sign(cases[0], page, "usb key")
    usb.waits()
    laptop.waits(False)
    by_laptop = sign(cases[1], page, "my laptop")
    assert by_usb != by_laptop
    page.goto(f"{site.url}/account")
    page.get_by_role("button", name="Ask for a passkey after the password").click()
    expect(page.get_by_text("only together with a passkey")).to_be_visible()
    laptop.remove()
    usb.waits(False)
    enter_with_both(site, page)


def test_a_security_key_that_is_not_there_signs_nothing(site: Site, page: Page) -> None:
    """Another authenticator is asked in vain; the page says so, and asks again. SR-3."""
    enter(site, page)
    register(site, page).remove()
    Key(page, **ROAMING)
    case = signed(site, 0)
    page.goto(case.url)
    page.get_by_role("button", name="Approve").click()
    page.get_by_role("button", name="Sign and approve").click()
    expect(page.get_by_role("alert")).to_contain_text("Nothing was decided")
    assert case.now().status is ApprovalStatus.PENDING


def sheet_of(page: Page) -> Locator:
    """The sheet that signs."""
    bar(page).get_by_role("button", name=re.compile("Review and sign")).click()
    return page.get_by_role("dialog").get_by_role("button", name="Approve")


def test_two_tabs_that_sign_at_once_leave_one_receipt(
    site: Site, page: Page, context: BrowserContext
) -> None:
    """One decision counts; the other tab says in one sentence that it was decided already. SR-3."""
    enter(site, page)
    first = register(site, page)
    case = signed(site)
    other = context.new_page()
    second = Key(other)
    second.copies(first)
    held: list[Route] = []

    def both(route: Route) -> None:
        held.append(route)
        for one in held if len(held) == 2 else ():
            one.continue_()

    context.route("**/approve", both)
    tabs = (page, other)
    for tab in tabs:
        show(case, tab)
    for button in [sheet_of(tab) for tab in tabs]:
        button.click()
    for tab in tabs:
        decided = tab.get_by_role("heading", name="Approved by ann@example.org")
        expect(decided.or_(tab.get_by_text(LATE))).to_be_visible()
    late = [
        tab for tab in tabs if tab.get_by_text("Meanwhile ann@example.org has approved").count()
    ]
    assert len(late) == 1
    is_signed(case)
    assert [one.receipt is not None for one in case.decisions()] == [True]
