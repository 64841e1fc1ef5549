"""Passkeys in Chromium, with its virtual authenticator, through every page that asks for one."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, CDPSession, Page, expect

from adapters_http.app import HttpConfig
from adapters_runtime.passkeys import WebAuthnPasskeys
from tests.support.http_world import PASSWORD
from wfcore.model.approval import ApprovalStatus
from wfcore.model.workflow import Assurance
from wfcore.rules.approval.agreement import items_hash
from wfcore.rules.auth.signed_links import personal_token
from wfcore.rules.receipt import receipt_fault
from wfcore.usecases.services import Policy

from .approval_case import Case, approve, both, cell, show
from .conftest import Site, enter, watched

VERIFIES = WebAuthnPasskeys().verifies


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    """A console whose browsers know it as localhost: an address in numbers has no passkeys."""
    policy = Policy(public_url="http://localhost")
    made = Site(tmp_path, HttpConfig(console=True), policy=policy, passkeys=WebAuthnPasskeys())
    made.url = made.url.replace("127.0.0.1", "localhost")
    object.__setattr__(policy, "public_url", made.url)  # the port is known by now
    yield made
    made.close()


class Key:
    """Chromium's virtual authenticator in one tab."""

    def __init__(self, page: Page, **options: Any) -> None:
        self.cdp: CDPSession = page.context.new_cdp_session(page)
        self.cdp.send("WebAuthn.enable")
        facts = {
            "protocol": "ctap2",
            "transport": "internal",
            "hasResidentKey": True,
            "hasUserVerification": True,
            "isUserVerified": True,
            **options,
        }
        added = self.cdp.send("WebAuthn.addVirtualAuthenticator", {"options": facts})
        self.id = added["authenticatorId"]

    def verifies(self, answer: bool) -> None:
        facts = {"authenticatorId": self.id, "isUserVerified": answer}
        self.cdp.send("WebAuthn.setUserVerified", facts)

    def waits(self, on: bool = True) -> None:
        """Whether nobody touches it."""
        facts = {"authenticatorId": self.id, "enabled": not on}
        self.cdp.send("WebAuthn.setAutomaticPresenceSimulation", facts)

    def remove(self) -> None:
        """Unplug it."""
        self.cdp.send("WebAuthn.removeVirtualAuthenticator", {"authenticatorId": self.id})

    def credentials(self) -> list[dict[str, Any]]:
        found = self.cdp.send("WebAuthn.getCredentials", {"authenticatorId": self.id})
        return list(found["credentials"])

    def copies(self, other: "Key") -> None:
        """Be the same authenticator in another tab, where it has signed more often."""
        for one in other.credentials():
            facts = {"authenticatorId": self.id, "credential": {**one, "signCount": 100}}
            self.cdp.send("WebAuthn.addCredential", facts)


@pytest.fixture
def context(browser: Browser, site: Site) -> Iterator[BrowserContext]:
    made = watched(browser.new_context(viewport={"width": 1280, "height": 900}), site)
    yield made
    made.close()
    assert made.complaints == []  # type: ignore[attr-defined]


def register(site: Site, page: Page, name: str = "my laptop") -> Key:
    """A passkey of Ann's, registered on the page of her account."""
    key = Key(page)
    page.goto(f"{site.url}/account")
    page.get_by_label("Name of the new passkey").fill(name)
    page.get_by_role("button", name="Register a passkey").click()
    expect(page.get_by_role("textbox", name="Name", exact=True)).to_have_value(name)
    site.world.clock.advance(1)
    return key


def enter_with_both(site: Site, page: Page) -> None:
    """Sign in anew with the password, then the passkey, and arrive at the account."""
    page.context.clear_cookies()
    page.goto(f"{site.url}/sign-in?next=/account")
    page.get_by_label("E-mail").fill("ann@example.org")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in", exact=True).click()
    page.get_by_role("button", name="Use the passkey").click()
    expect(page.get_by_text("only together with a passkey")).to_be_visible()


def signed(site: Site, count: int = 3, **more: Any) -> Case:
    return Case(site, count, assurance=Assurance.PASSKEY, **more)


def is_signed(case: Case) -> None:
    """The approval is released, with a receipt that fits the released rows."""
    after = case.now()
    assert after.status is ApprovalStatus.APPROVED
    receipt = after.assents[-1].receipt
    assert receipt is not None
    assert receipt_fault(receipt, VERIFIES) is None
    assert receipt.statement["itemsHash"] == items_hash(after)


def test_edited_rows_are_signed_in_the_sheet(site: Site, page: Page, accessible: Any) -> None:
    """The editor asks for the passkey; who does not verify decides nothing, and may try again."""
    enter(site, page)
    key = register(site, page)
    accessible(page)
    case = signed(site)
    show(case, page)
    accessible(page)
    cell(page, "P-1000", "Amount").fill("7.5")
    key.verifies(False)
    approve(page, "seen")
    expect(page.get_by_role("alert")).to_contain_text("Nothing was decided")
    assert case.now().status is ApprovalStatus.PENDING
    key.verifies(True)
    page.get_by_role("dialog").get_by_role("button", name="Approve").click()
    expect(page.get_by_role("heading", level=2).first).to_contain_text("Approved")
    is_signed(case)
    assert case.now().groups[0].items[0]["amount"] == 7.5
    expect(page.locator(".history")).to_contain_text("signed with a passkey")


def test_a_question_without_rows_is_signed_on_a_page_of_its_own(
    site: Site, page: Page, accessible: Any
) -> None:
    """The form leads to the confirmation, which names what is signed; of two keys one is chosen."""
    enter(site, page)
    register(site, page)
    case = signed(site, 0)
    page.goto(case.url)
    page.get_by_label("Comment").fill("seen")
    page.get_by_role("button", name="Approve").click()
    expect(page.get_by_role("heading", name="Confirm with your passkey")).to_be_visible()
    accessible(page)
    page.get_by_role("button", name="Sign and approve").click()
    expect(page.get_by_role("heading", level=2).first).to_contain_text("Approved")
    is_signed(case)
    assert case.now().comment == "seen"


def test_one_gesture_signs_several_of_the_inbox(site: Site, page: Page) -> None:
    """Each has its own receipt over the same list of digests."""
    enter(site, page)
    register(site, page)
    cases = [signed(site), signed(site), Case(site, 1)]
    ids = "&".join(f"id={one.id}" for one in cases)
    page.goto(f"{site.url}/inbox/decide?{ids}")
    page.get_by_role("button", name="Approve 3").click()
    expect(page.get_by_role("listitem").filter(has=page.locator("h2"))).to_have_count(2)
    page.get_by_role("button", name="Sign and approve").click()
    expect(page.get_by_role("status")).to_contain_text("3 decisions count")
    for one in cases[:2]:
        is_signed(one)
    assert cases[2].now().assents[-1].receipt is None


def test_a_personal_link_takes_the_passkey_of_its_account(
    site: Site, page: Page, context: BrowserContext
) -> None:
    """Ann is not signed in there; her link and her passkey together release. Bob has none."""
    enter(site, page)
    register(site, page)
    case = signed(site, **both())

    def link(name: str) -> str:
        key = site.world.services.signing_key
        return f"{site.url}/a/{personal_token(key, case.now(), f'{name}@example.org')}"

    context.clear_cookies()
    page.goto(link("bob"))
    expect(page.get_by_text("your account has no passkey here")).to_be_visible()
    page.goto(link("ann"))
    approve(page)
    expect(page.get_by_role("heading", level=2).first).to_contain_text("Approved")
    is_signed(case)


def test_a_passkey_signs_in(site: Site, page: Page, context: BrowserContext) -> None:
    """Alone, and after the password where the account asks for both."""
    enter(site, page)
    register(site, page)
    context.clear_cookies()
    page.goto(f"{site.url}/sign-in?next=/account")
    page.get_by_role("button", name="Sign in with a passkey").click()
    page.get_by_role("button", name="Ask for a passkey after the password").click()
    expect(page.get_by_text("only together with a passkey")).to_be_visible()
    enter_with_both(site, page)


def test_a_passkey_is_named_and_removed(site: Site, page: Page) -> None:
    """Without one, a signed release says where to register one, and nothing can be approved."""
    enter(site, page)
    register(site, page)
    page.get_by_role("textbox", name="Name", exact=True).fill("blue key")
    page.get_by_role("button", name="Rename").click()
    expect(page.get_by_role("textbox", name="Name", exact=True)).to_have_value("blue key")
    page.get_by_role("button", name="Remove").click()
    expect(page.get_by_role("button", name="Remove")).to_have_count(0)
    page.goto(signed(site).url)
    expect(page.get_by_text("your account has no passkey here")).to_be_visible()
    expect(page.get_by_role("button", name="Reject", exact=True)).to_be_visible()
    expect(page.get_by_role("button", name="Approve")).to_have_count(0)
