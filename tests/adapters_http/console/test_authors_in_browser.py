"""The way of an author in a browser: from an empty server to a version that is tested and runs."""

import re
from collections.abc import Callable

from playwright.sync_api import Page, expect

from wfcore.model.access import Principal
from wfcore.model.page import PageRequest
from wfcore.usecases.executions.executions import list_executions, read_execution

from .authors import site as site
from .conftest import Site, until_true
from .test_editing import applied

FLOW = """name: Greeting
variables: {who: {type: string, description: Whom to greet, default: you}}
steps:
  - name: greet
    kind: cod
    language: bash
    source: |
      # said to $WF_VAR_who
      echo "Hello"
"""
TESTS = """definition: this
scenarios:
  - name: it greets
    steps: {greet: {output: Hello, takes: 20s}}
    expect: {status: COMPLETED, output: Bye}
"""


def typed(page: Page, text: str) -> None:
    """Paste *text* over what is in the editor."""
    page.locator(".cm-content").click()
    page.keyboard.press("Control+a")
    page.evaluate(
        """text => {
            const clipboardData = new DataTransfer();
            clipboardData.setData("text/plain", text);
            const paste = { clipboardData, bubbles: true, cancelable: true };
            document.activeElement.dispatchEvent(new ClipboardEvent("paste", paste));
        }""",
        text,
    )


def test_an_author_creates_tests_changes_and_runs_a_workflow(
    site: Site, signed_in: Page, accessible: Callable[[Page], None]
) -> None:
    """Empty server, new workflow, mistake, its proposal, tests, versions, restoring, a run. B1."""
    page = signed_in
    page.goto(f"{site.url}/workflows")
    page.get_by_role("link", name="New workflow").click()
    accessible(page)
    page.get_by_role("link", name="Begin empty").click()
    typed(page, FLOW)
    says = page.locator(".cm-says")
    expect(says).to_contain_text("did you mean code?")
    save = page.get_by_role("button", name="Create it")
    expect(save).to_be_disabled()
    expect(page.locator("#wrong")).to_have_text("Mistake in line 5")
    page.get_by_role("button", name="Change it to code").click()
    expect(says).to_have_count(0)
    expect(page.locator("#drawn a[href='#step-greet']")).to_be_visible()
    page.get_by_role("textbox", name="Text of the tests").fill(TESTS)
    page.get_by_role("button", name="Run tests").click()
    expect(page.locator("#tested")).to_contain_text("1 of 1 not as expected")
    expect(page.locator("#tested")).to_contain_text('output: expected "Bye", was "Hello"')
    page.get_by_role("textbox", name="Text of the tests").fill(TESTS.replace("Bye", "Hello"))
    page.get_by_role("button", name="Run tests").click()
    expect(page.locator("#tested")).to_contain_text("all 1 as expected")
    expect(page.locator("#tested")).to_contain_text("In virtual time: 20 s")
    accessible(page)
    save.click()
    expect(page.get_by_role("heading", name="Greeting", exact=True)).to_be_visible()
    accessible(page)

    page.get_by_role("link", name="Change…").click()
    expect(page.locator("[name=tests]")).to_have_value(TESTS.replace("Bye", "Hello"))
    typed(page, FLOW.replace("kind: cod", "kind: code").replace('"Hello"', '"Good day"'))
    page.get_by_role("button", name="Save as version 2").click()
    page.get_by_role("link", name="Versions").click()
    expect(page.get_by_role("row", name=re.compile("Version 2"))).to_contain_text("+1 −1")
    accessible(page)
    page.get_by_role("button", name="Compare").click()
    expect(page.locator(".plus")).to_contain_text('echo "Good day"')
    page.get_by_role("link", name="Version 1").click()
    expect(page.locator("#restore .plus")).to_contain_text('echo "Hello"')
    page.get_by_role("button", name="Restore it as version 3").click()
    expect(page.get_by_role("link", name="Version 3")).to_be_visible()

    page.get_by_role("link", name="Greeting", exact=True).click()
    page.get_by_role("link", name="Change…").click()
    page.get_by_role("link", name="Run…").click()
    sheet = page.get_by_role("dialog")
    expect(sheet.get_by_text("It runs as stored")).to_be_hidden()
    sheet.get_by_label("Whom to greet").fill("Ada")
    sheet.get_by_role("button", name="Start").click()
    page.wait_for_url("**/executions/exec_*")
    services, ann = site.world.services, Principal(site.world.ann)
    (run,) = site.do(list_executions(services, ann, PageRequest())).rows
    whole = site.do(read_execution(services, ann, run.id))
    assert (whole.variables["who"], whole.revision) == ("Ada", 3)


def test_the_flow_and_the_text_lead_to_each_other(site: Site, signed_in: Page) -> None:
    """A node moves the cursor to its step, and the step with the cursor is marked in the flow."""
    page = signed_in
    text = FLOW.replace("kind: cod", "kind: code") + "  - {name: rest, kind: delay, duration: 1s}\n"
    page.goto(f"{site.url}/workflows/{applied(site, text)}/edit")
    node = page.locator("#drawn a[href='#step-rest']")
    node.click()
    expect(page.locator(".cm-activeLine")).to_contain_text("name: rest")
    expect(node).to_have_attribute("aria-current", "true")
    for _ in range(3):
        page.keyboard.press("ArrowUp")
    expect(page.locator("#drawn a[href='#step-greet']")).to_have_attribute("aria-current", "true")


def test_the_schema_and_the_text_complete_what_is_typed(site: Site, signed_in: Page) -> None:
    """Keys and values of the kind of step, and in a template the names of steps."""
    page = signed_in
    page.goto(f"{site.url}/workflows/{applied(site, FLOW.replace('cod', 'code'))}/edit")
    options = page.locator(".cm-tooltip-autocomplete li")
    page.locator(".cm-content").click()
    page.keyboard.press("Control+End")
    page.keyboard.insert_text("  - name: more\n    kind: manual_approval\n    ")
    page.keyboard.type("mess")
    expect(options.first).to_have_text("message")
    page.keyboard.press("Enter")
    page.keyboard.insert_text('"{{ steps.')
    page.keyboard.press("Control+Space")
    expect(options.filter(has_text="greet")).to_be_visible()


def test_a_phone_reads_and_a_page_without_scripts_still_edits(site: Site, signed_in: Page) -> None:
    """At 390 the code is only read, behind flow and tests; without scripts it is a field."""
    page = signed_in
    path = f"{site.url}/workflows/{applied(site, FLOW.replace('cod', 'code'))}/edit"
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto(path)
    expect(page.locator(".cm-content")).to_have_attribute("contenteditable", "false")
    until_true(
        page,
        "document.querySelector('#drawn').getBoundingClientRect().top"
        " < document.querySelector('.cm-editor').getBoundingClientRect().top",
    )
    expect(page.locator("#save")).to_be_hidden()


def test_the_highlighting_knows_the_language_of_a_source(site: Site, signed_in: Page) -> None:
    """A key, a remark of bash inside of a source, and a text in it."""
    page = signed_in
    page.goto(f"{site.url}/workflows/{applied(site, FLOW.replace('cod', 'code'))}/edit")
    for kind, text in (("key", "kind"), ("remark", "# said to"), ("text", '"Hello"')):
        expect(page.locator(f".cm-{kind}").filter(has_text=text).first).to_be_visible()
