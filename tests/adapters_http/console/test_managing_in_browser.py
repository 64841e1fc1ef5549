"""Pages of workflows and of operating in a real browser: seen by everybody, started by hand."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Error, Page, expect

from adapters_http.app import HttpConfig
from adapters_http.console.operate import FOR_OPERATORS, TABS
from tests.support.http_world import PASSWORD, code
from wfcore.model.access import OPERATOR, Scope
from wfcore.model.workflow import Variable
from wfcore.usecases.accounts import accounts, keys

from .conftest import Site, enter
from .execution_case import ABOUT, CRON, FAILED, VARIABLES_OF_A_FORM, Runs, give_calendar
from .test_editing import WRITTEN, applied, read


def made(site: Site) -> Runs:
    """A workflow with everything that its pages can show."""
    give_calendar(site)
    more = {"variables": VARIABLES_OF_A_FORM, "triggers": (CRON,), "description": ABOUT}
    return Runs(site, **more)


def test_pages_of_workflows_are_for_everybody(
    site: Site, signed_in: Page, accessible: Callable[[Page], None]
):
    """Axe finds nothing on the list, a workflow, its form, and the form with mistakes. B3, B4."""
    runs = made(site)
    runs.play(runs.start())
    one = f"{site.url}/workflows/{runs.workflow}"
    for url in (f"{site.url}/workflows", one, f"{one}/versions/1", f"{one}/start"):
        signed_in.goto(url)
        accessible(signed_in)
    signed_in.locator('[name="inputs.rows"]').fill("many")
    signed_in.get_by_role("button", name="Start", exact=True).click()
    expect(signed_in.locator('[name="inputs.rows"]')).to_have_attribute("aria-invalid", "true")
    accessible(signed_in)


def test_pages_of_operating_are_for_everybody(
    site: Site, signed_in: Page, accessible: Callable[[Page], None]
):
    """Axe finds nothing on any page below /operate, as an operator sees them. B3, B4."""
    made(site)
    site.do(accounts.set_account(site.world.services, OPERATOR, site.world.ann.id, operator=True))
    enter(site, signed_in)
    hook = site.do(site.world.webhook())
    site.do(site.world.http.post(f"/api/webhooks/{hook}/trigger", json={}))
    site.do(site.world.post(f"/api/webhooks/{hook}/trigger", {}))
    more = (f"keys/{site.world.key.key.id}", f"webhooks/{hook}", f"people/{site.world.ann.id}")
    for name in (*TABS, *FOR_OPERATORS, *more):
        signed_in.goto(f"{site.url}/operate/{name}")
        accessible(signed_in)
    signed_in.goto(f"{site.url}/operate/people/{site.world.ann.id}")
    signed_in.get_by_role("button", name="Create a sign-in link").click()
    expect(signed_in.locator("#link")).to_be_visible()
    accessible(signed_in)


def test_the_audit_page_tells_what_is_new(site: Site, signed_in: Page):
    """`1 new, show` for an entry of the reader's that fits; nothing moves under the reader."""
    services, ann = site.world.services, site.world.ann
    eve = site.do(site.world.account("eve"))
    signed_in.goto(f"{site.url}/operate/audit?event=key")
    before = signed_in.locator(".runs tbody tr").count()  # the page is loaded, and stays
    site.do(keys.create_key(services, eve.id, "hers", [Scope.WORKFLOW_READ]))
    site.do(keys.create_key(services, ann.id, "mine", [Scope.WORKFLOW_READ]))
    show = signed_in.get_by_role("link", name="1 new, show")
    expect(show).to_be_visible()
    expect(signed_in.locator(".runs tbody tr")).to_have_count(before)
    show.click()
    expect(signed_in.locator(".runs tbody tr")).to_have_count(before + 1)


def test_a_secret_is_nowhere_but_on_its_page(
    site: Site, signed_in: Page, accessible: Callable[[Page], None]
):
    """Not in the address, the browser's storage or history; the page is not left without a word."""
    signed_in.goto(f"{site.url}/operate/keys")
    signed_in.get_by_label("Name").fill("CI")
    signed_in.get_by_label("WORKFLOW_READ").check()
    signed_in.get_by_role("button", name="Create key").click()
    secret = signed_in.locator("#secret").inner_text()  # waits for the page that has it
    kept = "JSON.stringify([localStorage, sessionStorage, history.state, location.href])"
    assert secret not in signed_in.evaluate(kept)
    accessible(signed_in)
    signed_in.get_by_role("button", name="Done").click()
    expect(signed_in.get_by_label("I have kept it")).to_be_focused()
    expect(signed_in.locator("#secret")).to_be_visible()
    signed_in.get_by_label("I have kept it").check()
    signed_in.get_by_role("button", name="Done").click()
    signed_in.wait_for_url("**/operate/keys/*")
    assert secret not in signed_in.content()
    with pytest.raises(Error, match="CACHE_MISS"):  # no browser keeps that page
        signed_in.go_back()


def test_a_workflow_is_started_by_keyboard(site: Site, signed_in: Page):
    """`g w`, `j`, Enter lead to a workflow; a double click on Start makes one execution."""
    runs = made(site)
    signed_in.keyboard.press("g")
    signed_in.keyboard.press("w")
    signed_in.wait_for_url("**/workflows")
    signed_in.keyboard.press("j")
    signed_in.keyboard.press("Enter")
    signed_in.wait_for_url(f"**/workflows/{runs.workflow}")
    signed_in.get_by_role("link", name="Start…").click()
    signed_in.get_by_label("month").fill("2026-12")
    signed_in.get_by_role("button", name="Start", exact=True).dblclick()
    expect(signed_in).to_have_url(re.compile("/executions/"))  # the second click ends the first
    found = site.do(site.world.get("/api/v1/executions")).json()
    assert found["total"] == 1
    expect(signed_in).to_have_url(re.compile(found["items"][0]["executionId"]))


def test_starting_redriving_and_operating_without_scripts(browser: Browser, site: Site):
    """A start with a mistake, a redrive, a key from its making to its end, a webhook. B5."""
    runs, hook = made(site), site.do(site.world.webhook())
    failed = runs.play(runs.start(), FAILED)
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    enter(site, page)
    page.goto(f"{site.url}/workflows/{runs.workflow}")
    page.get_by_role("link", name="Start…").click()
    rows = page.locator('[name="inputs.rows"]')
    rows.fill("many")
    page.get_by_role("button", name="Start", exact=True).click()
    expect(rows).to_have_attribute("aria-invalid", "true")
    rows.fill("3")
    page.get_by_role("button", name="Start", exact=True).click()
    expect(page).to_have_url(re.compile("/executions/exec_"))
    page.goto(runs.url(failed))
    page.get_by_role("link", name="Redrive").first.click()
    page.get_by_text("Other inputs…").click()
    page.locator('[name="inputs.rows"]').fill("5")
    page.get_by_role("button", name="Show the plan").click()
    expect(page.locator('[name="inputs.rows"]')).to_have_value("5")
    page.get_by_role("button", name="Redrive", exact=True).click()
    expect(page.get_by_role("link", name=failed[-4:])).to_be_visible()
    page.goto(f"{site.url}/operate/keys")
    page.get_by_label("Name").fill("CI")
    page.get_by_label("WORKFLOW_READ").check()
    page.get_by_role("button", name="Create key").click()
    expect(page.get_by_role("heading", name="Key CI created")).to_be_visible()
    page.get_by_label("I have kept it").check()
    page.get_by_role("button", name="Done").click()
    page.get_by_role("button", name="Rotate").click()
    expect(page.get_by_role("heading", name="CI has a new secret")).to_be_visible()
    page.get_by_label("I have kept it").check()
    page.get_by_role("button", name="Done").click()
    page.get_by_label("Type its name, CI").fill("CI")
    page.get_by_role("button", name="Revoke").click()
    expect(page.get_by_text("revoked", exact=True)).to_be_visible()
    page.goto(f"{site.url}/operate/webhooks/{hook}")
    for deed, after in (("Pause", "Resume"), ("Resume", "Pause")):
        page.get_by_role("button", name=deed).click()
        expect(page.get_by_role("button", name=after)).to_be_visible()
    context.close()


def test_what_was_typed_outlasts_a_session(site: Site, signed_in: Page):
    """Signed out, or not now: the form is as it was, but for secrets; sent, it is new. B7."""
    runs, page = made(site), signed_in
    start = f"{site.url}/workflows/{runs.workflow}/start"
    page.goto(start)
    page.get_by_label("month").fill("2027-01")
    page.get_by_label("filter").fill('{"a": 1}')
    page.get_by_label("token").fill("s3same")
    page.context.clear_cookies()
    page.get_by_role("button", name="Start", exact=True).click()
    page.get_by_label("E-mail").fill("ann@example.org")
    assert "s3same" not in page.evaluate("JSON.stringify(sessionStorage)")
    page.get_by_label("Password").fill("wrong")
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("alert")).to_have_text("E-mail or password is wrong.")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url(start)
    expect(page.get_by_label("month")).to_have_value("2027-01")
    expect(page.get_by_label("filter")).to_have_value('{"a": 1}')
    expect(page.get_by_label("token")).to_have_value("")
    page.route(start, lambda route: route.fulfill(status=503, body="later"), times=1)
    page.get_by_label("month").fill("2027-02")
    page.get_by_role("button", name="Start", exact=True).click()
    expect(page.get_by_text("later")).to_be_visible()
    page.goto(start)
    expect(page.get_by_label("month")).to_have_value("2027-02")
    page.get_by_role("button", name="Start", exact=True).click()
    page.wait_for_url("**/executions/**")
    page.goto(start)
    expect(page.get_by_label("month")).to_have_value("2026-11")


def test_the_editor_works_without_scripts(tmp_path: Path, browser: Browser):
    """Mistakes with their lines, what would change, and the new version. B5."""
    site = Site(tmp_path, HttpConfig(console=True, read_definition=read))
    try:
        page = browser.new_page(java_script_enabled=False)
        enter(site, page)
        page.goto(f"{site.url}/workflows/{applied(site)}/edit")
        field, check = page.get_by_label("The text"), page.get_by_role("button", name="Check")
        field.fill(WRITTEN.replace("bash", "cobol"))
        check.click()
        expect(page.locator("#problems")).to_contain_text("line 6")
        field.fill(WRITTEN.replace("echo 1", "echo 2"))
        check.click()
        expect(page.locator(".diff .plus")).to_contain_text("echo 2")
        page.get_by_role("button", name="Apply as version 2").click()
        page.wait_for_url("**/workflows/*")
    finally:
        site.close()


@pytest.mark.parametrize("width", [1280, 390])
def test_a_long_word_stays_in_its_page(site: Site, signed_in: Page, width: int):
    """In descriptions of a workflow and of a variable: nothing scrolls sideways."""
    word = "W" * 1_900
    variable = Variable("centre", description=word)
    runs = Runs(site, code("only"), variables={"centre": variable}, description=word)
    signed_in.set_viewport_size({"width": width, "height": 844})
    for path in ("", "/start", "/versions/1"):
        signed_in.goto(f"{site.url}/workflows/{runs.workflow}{path}")
        wide = signed_in.evaluate("document.documentElement.scrollWidth - innerWidth")
        assert wide <= 0, path


def test_what_counts_nothing_can_be_read(site: Site, signed_in: Page, accessible):
    """The states of executions of which there are none have enough contrast. B3."""
    Runs(site, code("only")).start()
    signed_in.goto(f"{site.url}/executions")
    assert signed_in.locator(".pills .none").count() > 3
    accessible(signed_in)
