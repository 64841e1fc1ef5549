"""Keys, gestures and tabs of a review: what is typed lands where it was meant, and comes back."""

import csv
import json
import re
from functools import partial
from io import StringIO
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, Route, expect

from wfcore.model.approval import ApprovalStatus
from wfcore.model.workflow import Column, ColumnType, GroupSpec

from .approval_case import Case, approve, ask, bar, both, cell, kept, pick, rows, show
from .conftest import Site, arrived, enter, until_true, watched
from .test_real_review import FIELDS

NO_STORAGE = """for (const name of ["localStorage", "sessionStorage"])
    Object.defineProperty(window, name, {get() { throw new DOMException("no", "SecurityError"); }});
"""
"""What a browser does that may keep nothing for a site."""


def paste(page: Page, text: str) -> None:
    """By the real clipboard and its keys."""
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.evaluate("(text) => navigator.clipboard.writeText(text)", text)
    page.keyboard.press("Control+v")


def _refused(body: str, route: Route) -> None:
    route.fulfill(status=400, body=body)


def amount(n: int) -> str:
    return f"{rows(n + 1)[n]['amount']:g}"


@pytest.mark.parametrize("key", ["Enter", "ArrowDown", "Escape"])
def test_keys_of_an_input_method_are_its_own(open_page: Page, key: str):
    """While a word is composed, Enter and arrows stay in the cell, and Escape keeps its text."""
    page, field = open_page, cell(open_page, "P-1001", "Note")
    field.focus()
    cdp = page.context.new_cdp_session(page)
    cdp.send("Input.insertText", {"text": "x"})
    cdp.send("Input.imeSetComposition", {"text": "にほん", "selectionStart": 3, "selectionEnd": 3})
    expect(field).to_have_value("xにほん")
    code = {"Enter": 13, "ArrowDown": 40, "Escape": 27}[key]
    for type in ("rawKeyDown", "keyUp"):
        cdp.send(
            "Input.dispatchKeyEvent", {"type": type, "key": key, "windowsVirtualKeyCode": code}
        )
    expect(field).to_be_focused()
    expect(field).to_have_value(re.compile("^x"))
    cdp.send("Input.insertText", {"text": "日本"})
    page.keyboard.press("Enter")
    expect(cell(page, "P-1002", "Note")).to_be_focused()


def test_a_gesture_is_one_step_of_undo(open_page: Page):
    """A block that is pasted, a column that is set, all rows, a row taken back: one step each."""
    page = open_page
    cell(page, "P-1000", "Amount").fill("5")
    cell(page, "P-1000", "Amount").focus()
    paste(page, "11\tfalse\tone\n12\tfalse\ttwo\n13\tfalse\tthree\n")
    expect(cell(page, "P-1002", "Note")).to_have_value("three")
    page.get_by_role("button", name="Set Note in all shown rows").click()
    page.get_by_role("dialog").get_by_label("Note").fill("seen")
    page.get_by_role("dialog").get_by_role("button", name="Set").click()
    expect(bar(page)).to_contain_text("200 edited")
    page.get_by_label("All shown rows", exact=True).uncheck()
    expect(bar(page)).to_contain_text("0 of 200 rows")
    undo = bar(page).get_by_role("button", name="Undo")
    for facts in ("200 of 200 rows · 200 edited", "200 of 200 rows · 3 edited", "1 edited"):
        undo.click()
        expect(bar(page)).to_contain_text(facts)
    expect(cell(page, "P-1000", "Amount")).to_be_focused()
    expect(cell(page, "P-1000", "Amount")).to_have_value("5")
    expect(cell(page, "P-1002", "Note")).to_have_value("")
    page.keyboard.press("Control+Shift+z")
    expect(cell(page, "P-1002", "Note")).to_have_value("three")
    page.get_by_role("button", name="Back to what was proposed: P-1001").click()
    expect(cell(page, "P-1001", "Note")).to_have_value("")
    undo.click()
    expect(cell(page, "P-1001", "Amount")).to_have_value("12")
    expect(cell(page, "P-1001", "Note")).to_have_value("two")


def test_undo_of_other_fields_is_their_own(site: Site, signed_in: Page):
    """Ctrl+Z in an answer or in Find takes back what was typed there, and no row."""
    page = signed_in
    show(Case(site, 3, fields=FIELDS), page)
    cell(page, "P-1001", "Note").fill("mine")
    why, find = page.get_by_label("Why now?"), page.get_by_role("searchbox")
    for field in (why, find):
        field.focus()
        page.keyboard.type("P")
        page.keyboard.press("Control+z")
        expect(field).to_have_value("")
    expect(cell(page, "P-1001", "Note")).to_have_value("mine")
    cell(page, "P-1001", "Note").press("Control+z")
    expect(cell(page, "P-1001", "Note")).to_have_value("")


def test_two_tabs_keep_one_draft(site: Site, signed_in: Page):
    """What is typed or undone in one tab is so in the other, which adds to it."""
    case = Case(site, 20, fields=FIELDS)
    one, other = signed_in, signed_in.context.new_page()
    show(case, one)
    show(case, other)
    cell(one, "P-1001", "Amount").fill("7")
    expect(cell(other, "P-1001", "Amount")).to_have_value("7")
    cell(other, "P-1002", "Amount").fill("8")
    pick(other, "P-1003").uncheck()
    other.get_by_label("Why now?").fill("end of quarter")
    expect(one.get_by_label("Why now?")).to_have_value("end of quarter")
    expect(pick(one, "P-1003, left out")).not_to_be_checked()
    cell(one, "P-1004", "Amount").fill("9")
    cell(one, "P-1001", "Amount").press("Escape")
    expect(cell(other, "P-1001", "Amount")).to_have_value(amount(1))
    for page in (one, other):
        expect(bar(page)).to_contain_text("19 of 20 rows · 2 edited · 1 left out")
        page.reload()
        expect(cell(page, "P-1002", "Amount")).to_have_value("8")
        expect(cell(page, "P-1004", "Amount")).to_have_value("9")
        expect(page.get_by_label("Why now?")).to_have_value("end of quarter")
    one.get_by_label("Risk").select_option("high")
    approve(one)
    expect(one.get_by_text("Approved by ann@example.org")).to_be_visible()
    expect(other.get_by_text("Meanwhile ann@example.org has approved it.")).to_be_visible()
    expect(cell(other, "P-1002", "Amount")).to_have_value("8")
    assert {row["id"]: row["amount"] for row in case.now().groups[0].items}["P-1002"] == 8
    until_true(other, "!Object.keys(localStorage).some((one) => one.startsWith('wfcore:draft'))")


def test_the_focus_stays_while_another_tab_is_typed_into(site: Site, signed_in: Page):
    """Two windows side by side: the cell with the focus keeps it."""
    case = Case(site, 5)
    one, other = signed_in, signed_in.context.new_page()
    show(case, one)
    show(case, other)
    cell(one, "P-1003", "Note").focus()
    cell(other, "P-1001", "Amount").fill("7")
    expect(cell(one, "P-1001", "Amount")).to_have_value("7")
    expect(cell(one, "P-1003", "Note")).to_be_focused()


def test_a_browser_that_may_keep_nothing_edits(site: Site, signed_in: Page):
    """With site data blocked rows are edited and released; that nothing is kept is said."""
    page, case = signed_in, Case(site, 3)
    page.add_init_script(NO_STORAGE)
    show(case, page)
    cell(page, "P-1001", "Amount").fill("7")
    expect(page.get_by_text("This browser keeps no drafts")).to_be_visible()
    approve(page)
    expect(page.get_by_text("Approved by ann@example.org")).to_be_visible()
    assert case.now().groups[0].items[1]["amount"] == 7
    for path in ("/inbox", "/executions", f"/executions/{case.execution_id}", "/operate/keys"):
        page.goto(site.url + path)
        page.get_by_text("ann@example.org").first.click()
        expect(page.get_by_role("button", name="Sign out", exact=True)).to_be_visible()


def test_a_column_with_negative_numbers_has_a_minus_on_a_phone(site: Site, signed_in: Page):
    """The decimal keypad only where no negative number was proposed; answers may be negative."""
    limit = Column("limit", "Limit", ColumnType.NUMBER)
    show(Case(site, 3, fields=(limit,)), signed_in)
    expect(cell(signed_in, "P-1001", "Amount")).to_have_attribute("inputmode", "decimal")
    assert signed_in.get_by_label("Limit").get_attribute("inputmode") in (None, "text")
    columns = (Column("id", "Id"), Column("amount", "Amount", ColumnType.NUMBER))
    given = [{"id": "a", "amount": 1}, {"id": "b", "amount": -2.5}]
    signed_in.goto(ask(site, GroupSpec("g", "G", given, columns, row_key="id")))
    bar(signed_in).wait_for()
    expect(cell(signed_in, "a", "Amount")).to_have_attribute("inputmode", "text")


def test_time_over_is_no_decision_of_anybody(site: Site, signed_in: Page):
    """An approval that expires while its page is open is said to have expired."""
    case = Case(site, 3, timeout_ms=3_600_000)
    show(case, signed_in)
    site.world.clock.advance(3_600_000)
    assert case.now().status is ApprovalStatus.REJECTED
    said = "The time is over: it was rejected automatically."
    expect(signed_in.get_by_text(said)).to_be_visible()
    expect(signed_in.get_by_role("status").first).not_to_contain_text("server")


def test_what_the_server_refuses_is_invalid_to_those_who_listen(site: Site, signed_in: Page):
    """A 400 names a cell or an answer by its title, and marks it until it is typed."""
    page, case = signed_in, Case(site, 3, fields=FIELDS)
    show(case, page)
    page.get_by_label("Why now?").fill("x")
    page.get_by_label("Risk").select_option("high")
    for error, field, name in (
        ("editedItems.payouts[1].amount: is suspicious", cell(page, "P-1001", "Amount"), "Amount"),
        ("answers.reason: is suspicious", page.get_by_label("Why now?"), "Why now?"),
    ):
        body = json.dumps({"error": error})
        page.route("**/approve", partial(_refused, body), times=1)
        cell(page, "P-1001", "Amount").fill("7")
        approve(page)
        said = page.get_by_role("status").filter(has_text="Nothing was decided.")
        expect(said).to_contain_text(re.compile(rf"{re.escape(name)}:? is suspicious"))
        expect(field).to_be_focused()
        expect(field).to_have_attribute("aria-invalid", "true")
        field.fill("8")
        expect(field).to_have_attribute("aria-invalid", "false")


def test_a_yes_that_no_longer_counts_is_told(site: Site, signed_in: Page):
    """Somebody changed what I had agreed to: the open page says it, and so does the next one."""
    page, case = signed_in, Case(site, 3, **both(required_approvals=2))
    show(case, page)
    approve(page)
    expect(page.get_by_text("You have agreed to these rows")).to_be_visible()
    case.decide(case.bob, {"payouts": [{**row, "amount": 3} for row in rows(3)]})
    expect(page.get_by_text("What you agreed to has changed")).to_be_visible()
    page.get_by_role("button", name="Show the new rows").click()
    bar(page).wait_for()
    expect(page.get_by_text("You had agreed, but bob@example.org has changed")).to_be_visible()
    assert kept(page) == []


def opened_by_a_spreadsheet(text: str, between: str) -> str:
    """What is copied after a spreadsheet has opened this CSV: cells with tabs between, as shown."""
    made = StringIO()
    table = csv.reader(StringIO(text.removeprefix("\ufeff"), newline=""), delimiter=between)
    csv.writer(made, delimiter="\t", lineterminator="\r\n").writerows(list(table)[1:])
    return made.getvalue()


ODD = ("=1+1", "'=1+1", "-5", "+49 1", "@x", "a;b,c", " 007", "'n", 'say "yes"', "two\nlines")


@pytest.mark.parametrize(("languages", "between"), [("en-GB", ","), ("de-DE", ";"), ("fr-FR", ";")])
def test_a_download_pasted_back_edits_nothing(
    site: Site, browser: Browser, languages: str, between: str
):
    """With the separator and the decimal sign of the reader; marks of formulas do not come back."""
    columns = (
        Column("amount", "Amount", ColumnType.NUMBER),
        Column("paid", "Paid", ColumnType.BOOLEAN),
        Column("due", "Due", ColumnType.DATE),
        Column("text", "Text"),
    )
    given = [
        {"amount": at - 2.5, "paid": at % 2 == 0, "due": "2026-12-31", "text": text}
        for at, text in enumerate(ODD)
    ]
    given.append({"amount": None, "paid": None, "due": None, "text": None})
    context = watched(browser.new_context(locale=languages), site)
    page = context.new_page()
    page.goto(site.link())
    page.locator("main button").click()
    arrived(page)
    page.goto(ask(site, GroupSpec("g", "G", given, columns)))
    bar(page).wait_for()
    with page.expect_download() as download:
        page.get_by_role("link", name="CSV").click()
    text = Path(download.value.path()).read_bytes().decode("utf-8")
    assert text.splitlines()[0] == "\ufeff" + between.join(f'"{one.title}"' for one in columns)
    decimal = "," if between == ";" else "."
    assert text.splitlines()[1].startswith(f'-2{decimal}5{between}true{between}"2026-12-31"')
    page.locator("td input:not([type=checkbox])").first.focus()
    paste(page, opened_by_a_spreadsheet(text, between))
    shown = page.locator("td textarea, td input:not([type=checkbox])")
    expect(shown.first).to_be_focused()
    expect(page.locator("tr.edited, tr.wrong")).to_have_count(0)
    expect(bar(page).locator(".undo")).to_be_disabled()
    page.locator("td textarea").first.fill("")
    paste(page, "'=1+1")
    expect(page.locator("tr.edited, tr.wrong")).to_have_count(0)
    context.close()
    assert context.complaints == []


def test_everything_is_on_paper(site: Site, signed_in: Page):
    """All rows that are found, whole texts, what was proposed; afterwards the fields are back."""
    page, case = signed_in, Case(site, 130)
    show(case, page)
    cell(page, "P-1001", "Note").fill("long " * 60)
    page.evaluate("addEventListener('beforeprint', () => { printed = document.body.innerText; })")
    page.evaluate("globalThis.printed = ''")
    page.pdf()
    printed = page.evaluate("printed")
    assert all(row["id"] in printed for row in rows(130))
    assert ("long " * 60).strip() in printed
    expect(page.locator("tbody tr")).to_have_count(100)
    expect(cell(page, "P-1001", "Note")).to_have_value("long " * 60)
    page.emulate_media(media="print")
    for gone in (page.locator(".top"), bar(page), page.get_by_role("searchbox")):
        expect(gone).to_be_hidden()


def test_a_decision_is_on_paper_with_all_its_rows(site: Site, browser: Browser):
    """
    Whole texts, who decided and when by the clock, without scripts, too; the page of a part says
    that it is one.
    """
    long = "long " * 200
    given = [{"id": f"R{n:03}", "note": long} for n in range(130)]
    columns = (Column("id", "Id"), Column("note", "Note"))
    context = watched(browser.new_context(java_script_enabled=False), site)
    page = context.new_page()
    enter(site, page)
    page.goto(ask(site, GroupSpec("g", "G", given, columns, row_key="id")))
    for decided in (False, True):
        if decided:
            page.get_by_role("button", name="Approve").click()
            expect(page.get_by_text("Approved by ann@example.org")).to_be_visible()
        page.emulate_media(media="print")
        expect(page.locator("tbody tr")).to_have_count(100)
        expect(page.get_by_text("rows 1–100 of 130")).to_be_visible()
        page.emulate_media(media="screen")
        page.get_by_role("link", name="Print").click()
        page.emulate_media(media="print")
        expect(page.locator("tbody tr")).to_have_count(130)
        assert page.get_by_text(long.strip()).count() == 130
        expect(page.locator(".pager, .top")).to_be_hidden()
        said = page.locator("time").first.evaluate(
            "(one) => getComputedStyle(one, '::after').content"
        )
        assert re.search(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC", said)
        page.emulate_media(media="screen")
        page.go_back()
    context.close()
    assert context.complaints == []


def test_a_phone_shows_what_a_desk_does(site: Site, browser: Browser):
    """The pills whole, Undo within reach, and which fields of a row are required."""
    phone = {"width": 390, "height": 844}
    context = watched(browser.new_context(has_touch=True, is_mobile=True, viewport=phone), site)
    page = context.new_page()
    enter(site, page)
    show(Case(site, 130), page)
    page.get_by_role("button", name="P-1001").tap()
    cell(page, "P-1001", "Amount").fill("x")
    cell(page, "P-1001", "Note").fill("n")
    pick(page, "P-1002").uncheck()
    page.evaluate("scrollTo(0, 0)")
    for pill in page.locator(".group .pills button").all():
        box = pill.bounding_box()
        assert box is not None
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= 390
    expect(page.get_by_role("button", name="Invalid 1")).to_be_visible()
    said = "(one) => getComputedStyle(one, '::before').content"
    titles = page.locator("tr.open td[data-title]")
    assert {'"Due*"', '"Amount*"', '"Note"'} <= {one.evaluate(said) for one in titles.all()}
    bar(page).get_by_role("button", name="Undo").tap()
    expect(pick(page, "P-1002")).to_be_checked()
    for button in bar(page).get_by_role("button").all():
        box = button.bounding_box()
        assert box is not None
        assert box["height"] >= 44
        assert box["x"] + box["width"] <= 390
    context.close()
    assert context.complaints == []


def test_no_field_makes_a_phone_zoom(site: Site, browser: Browser):
    """iOS zooms into fields with letters below 16 px: on touch screens there is none."""
    context = watched(browser.new_context(has_touch=True, is_mobile=True), site)
    page = context.new_page()
    enter(site, page)
    paths = (f"/approvals/{Case(site, 3, fields=FIELDS).id}", "/executions", "/operate/keys")
    for path in paths:
        page.goto(site.url + path)
        sizes = page.evaluate(
            "[...document.querySelectorAll('input:not([type=checkbox]), select, textarea')]"
            ".map((one) => parseFloat(getComputedStyle(one).fontSize))"
        )
        assert min(sizes) >= 16, path
    context.close()


def test_a_key_is_copied_on_a_page_by_plain_http(site: Site, browser: Browser):
    """Where browsers have no clipboard for a page, the button copies all the same."""
    context = watched(browser.new_context(), site)
    page = context.new_page()
    enter(site, page)
    page.add_init_script("delete Navigator.prototype.clipboard")
    page.goto(f"{site.url}/operate/keys")
    page.get_by_label("Name").fill("reporting")
    page.locator("input[type=checkbox][name^=scopes]").first.check()
    page.get_by_role("button", name="Create").click()
    secret = page.locator("#secret").inner_text()
    page.get_by_role("button", name="Copy").first.click()
    expect(page.get_by_role("button", name="Copy ✓")).to_be_visible()
    page.get_by_label("I have kept it").check()
    context.grant_permissions(["clipboard-read"])
    fresh = context.new_page()
    fresh.goto(site.url)
    assert fresh.evaluate("navigator.clipboard.readText()") == secret
    context.close()


def test_find_goes_on_where_rows_follow(site: Site, signed_in: Page):
    """A few rows at once while it is typed, the rest right after; keys reach them all."""
    page = signed_in
    show(Case(site, 300), page)
    page.get_by_role("searchbox").fill("p-1")
    expect(page.locator("tbody tr")).to_have_count(100)
    cell(page, "P-1099", "Note").fill("x")
    page.get_by_role("searchbox").fill("x")
    expect(page.locator("tbody tr")).to_have_count(1)
    page.get_by_role("searchbox").fill("")
    expect(page.locator("tbody tr")).to_have_count(100)
