"""The way into the console and out of it, in a real browser."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page, expect

from adapters_http.app import HttpConfig
from adapters_http.config import SignOn
from tests.support.http_world import PASSWORD
from wfcore.testing.fakes_running import NotedNotifier

from .approval_case import Case, cell
from .conftest import Site, enter, watched
from .test_executions import Reader


def test_from_the_link_to_the_start(site: Site, page: Page, accessible: Callable[[Page], None]):
    """One click on the page of the link leads to the first steps; the inbox has nothing yet."""
    page.goto(site.link())
    accessible(page)
    page.get_by_role("button", name="Continue as ann@example.org").press("Enter")
    page.wait_for_url("**/start")
    accessible(page)
    page.goto(f"{site.url}/inbox")
    expect(page.get_by_text("Nothing waits for you.")).to_be_visible()
    accessible(page)


def test_the_same_page_after_signing_in(site: Site, page: Page, accessible):
    """A copied address asks for the way in, and then shows what it is the address of. B6."""
    page.goto(f"{site.url}/inbox?view=agreed")
    accessible(page)
    page.get_by_label("E-mail").fill("ann@example.org")
    page.get_by_label("Password").fill("wrong")
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("alert")).to_have_text("E-mail or password is wrong.")
    accessible(page)
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url("**/inbox?view=agreed")


def test_a_locked_login_is_for_everybody(site: Site, page: Page, accessible):
    """After ten wrong passwords the page says until when; axe finds nothing. B3."""
    wrong = {"email": "ann@example.org", "password": "wrong", "next": ""}
    for _ in range(10):
        Reader(site, None).post("/sign-in", **wrong)
    page.goto(f"{site.url}/sign-in")
    page.get_by_label("E-mail").fill("ann@example.org")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("alert")).to_contain_text("Try again in")
    accessible(page)


def test_colours_and_times_are_remembered(signed_in: Page, accessible):
    """The menu keeps both in this browser; signing out is there by keyboard. B8."""
    signed_in.get_by_text("ann@example.org").press("Enter")
    accessible(signed_in)
    signed_in.get_by_label("Colours").select_option("dark")
    signed_in.get_by_label("Times").select_option("utc")
    signed_in.get_by_role("button", name="Save").click()
    root = signed_in.locator("html[data-theme=dark][data-times=utc]")
    root.wait_for(state="attached")
    signed_in.get_by_text("ann@example.org").click()
    signed_in.get_by_role("button", name="Sign out", exact=True).press("Enter")
    signed_in.wait_for_url("**/sign-in")


def test_keys_and_their_list(signed_in: Page, accessible):
    """`?` lists the keys; they can be switched off. WCAG 2.1.4."""
    signed_in.keyboard.press("?")
    expect(signed_in.get_by_role("dialog")).to_be_visible()
    accessible(signed_in)
    signed_in.get_by_label("Keyboard shortcuts are on").uncheck()
    signed_in.get_by_role("button", name="Close").click()
    signed_in.goto(f"{signed_in.url}?view=decided")
    signed_in.evaluate("addEventListener('click', () => document.body.classList.add('clicked'))")
    signed_in.keyboard.press("g")
    signed_in.keyboard.press("i")
    signed_in.keyboard.press("?")  # the one key that always works; `g i` was heard before it
    expect(signed_in.get_by_role("dialog")).to_be_visible()
    expect(signed_in.locator("body")).not_to_have_class(re.compile("clicked"))
    expect(signed_in).to_have_url(re.compile(r"\?view=decided$"))


def test_keys_lead_everywhere(site: Site, signed_in: Page):
    """`g` and a letter open each place, `/` finds, `k` goes back; a field takes letters as text."""
    Case(site, 1)
    Case(site, 2)
    for key, place in zip("ewoi", ("executions", "workflows", "overview", "inbox"), strict=True):
        signed_in.keyboard.press("g")
        signed_in.keyboard.press(key)
        signed_in.wait_for_url(re.compile(f"/{place}"))
        expect(signed_in.locator(".places [aria-current]")).to_have_attribute("data-go", key)
    links = signed_in.locator(".list h2 a")
    for key, number in (("j", 0), ("j", 1), ("k", 0)):
        signed_in.keyboard.press(key)
        expect(links.nth(number)).to_be_focused()
    signed_in.keyboard.press("/")
    find = signed_in.get_by_role("searchbox", name="Find")
    expect(find).to_be_focused()
    signed_in.keyboard.type("gw?")
    expect(find).to_have_value("gw?")
    expect(signed_in).to_have_url(f"{site.url}/inbox")


def test_back_and_forward(site: Site, signed_in: Page):
    """Tabs, searches and pages are addresses; Forward shows what was typed, too. B6."""
    case = Case(site, 2)
    signed_in.goto(f"{site.url}/inbox")
    signed_in.get_by_role("link", name="Decided").click()
    expect(signed_in.get_by_text("Nothing was decided yet.")).to_be_visible()
    signed_in.go_back()
    find = signed_in.get_by_role("searchbox", name="Find")
    find.fill("payouts")
    find.press("Enter")
    signed_in.wait_for_url("**/inbox?*q=payouts*")
    signed_in.get_by_role("link", name="2 payouts").click()
    cell(signed_in, "P-1001", "Amount").fill("7")
    signed_in.go_back()
    expect(find).to_have_value("payouts")
    expect(signed_in.get_by_text("edits in your draft: 1")).to_be_visible()
    signed_in.go_forward()
    expect(signed_in).to_have_url(case.url)
    expect(cell(signed_in, "P-1001", "Amount")).to_have_value("7")


def test_times_tell_their_zone(browser: Browser, site: Site):
    """Relative, and anew each minute; by mouse and by keyboard local, with zone and UTC. B8."""
    case = Case(site, 1)
    context = watched(browser.new_context(timezone_id="Asia/Kolkata"), site)
    page = context.new_page()
    enter(site, page)
    page.clock.install()
    page.goto(case.url)
    asked = page.locator("main time").nth(1)
    expect(asked).to_have_attribute("title", re.compile(r"(GMT\+5:30|IST) \(\d{4}-.* UTC\)$"))
    expect(asked).to_have_text(re.compile(r"^\d (s|min) ago$|^\d\d s ago$"))
    page.clock.fast_forward(3_600_000)
    expect(asked).to_have_text("1 h ago")
    asked.focus()
    shown = "one => [getComputedStyle(one, '::after').content, JSON.stringify(` (${one.title})`)]"
    assert len(set(asked.evaluate(shown))) == 1
    settings = {"name": "wfcore_times", "value": "utc", "url": site.url}
    context.add_cookies([settings])
    page.reload()
    expect(asked).to_have_attribute("title", re.compile(r"^\d{4}-\d\d-\d\d [\d:]{8} UTC$"))
    context.close()
    assert context.complaints == []


def test_without_scripts(browser: Browser, site: Site):
    """Signing in and the inbox need no scripts. B5."""
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    enter(site, page)
    expect(page.get_by_role("heading", name="Inbox")).to_be_visible()
    context.close()


def test_errors_are_pages(site: Site, signed_in: Page, accessible):
    """404 and a used link say what to do, with a way on. B7."""
    assert signed_in.goto(f"{site.url}/approvals/nothing").status == 404
    expect(signed_in.get_by_role("link", name="To the inbox")).to_be_visible()
    accessible(signed_in)
    assert signed_in.goto(f"{site.url}/in/used").status == 410
    accessible(signed_in)


def test_every_way_in_is_on_one_page(browser: Browser, tmp_path: Path, accessible):
    """Password, mail and provider; asking for a mail needs no password, and says what follows."""
    post = NotedNotifier()
    sign_on = SignOn(Provider(), "Example Corp")
    site = Site(tmp_path, HttpConfig(console=True, mail=post, sign_on=sign_on))
    context = watched(browser.new_context(), site)
    page = context.new_page()
    page.goto(f"{site.url}/inbox?view=decided")
    accessible(page)
    expect(page.get_by_role("link", name="Sign in with Example Corp")).to_be_visible()
    page.get_by_label("E-mail").fill("nobody@example.org")
    page.get_by_role("button", name="Mail me a link").click()
    expect(page.get_by_role("heading", name="Check your mail")).to_be_visible()
    expect(page.get_by_text("nobody@example.org")).to_be_visible()
    accessible(page)
    context.close()
    site.close()
    assert (post.sent, context.complaints) == ([], [])


class Provider:
    """Nobody goes there."""

    async def address(self, attempt: Any, redirect_uri: str) -> str:
        raise AssertionError

    async def identity(self, attempt: Any, redirect_uri: str, code: str) -> Any:
        raise AssertionError
