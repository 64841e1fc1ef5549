"""An approval in the browser: editing rows, and what is released in the end."""

import re
from collections.abc import Callable
from typing import Any

from playwright.sync_api import Browser, Page, Route, expect

from wfcore.model.approval import DecisionSource
from wfcore.model.workflow import ApprovalStep, Column, ColumnType, GroupSpec
from wfcore.rules.approval.agreement import items_hash

from .approval_case import Case, approve, bar, both, cell, kept, pick, rows, show
from .conftest import Site, enter, watched
from .test_weight import modules


def test_what_the_sheet_lists_is_what_is_released(case: Case, open_page: Page):
    """Twelve cells of ten rows changed, three rows left out: exactly that is in the history."""
    page = open_page
    for n in range(10):
        cell(page, f"P-{1000 + n}", "Amount").fill(f"{100 + n},5")
    cell(page, "P-1000", "Method").select_option("SWIFT")
    cell(page, "P-1001", "Due").fill("2027-01-31")
    for n in (20, 21, 22):
        pick(page, f"P-{1000 + n}").uncheck()
    expect(bar(page)).to_contain_text("197 of 200 rows · 10 edited · 3 left out")
    bar(page).get_by_role("button", name="Review and approve 197").click()
    items = page.get_by_role("dialog").get_by_role("listitem")
    expect(items).to_have_count(15)  # the sheet is loaded by the click, and is shown whole
    listed = items.all_inner_texts()
    page.get_by_role("dialog").get_by_label("Comment").fill("three are wrong")
    page.get_by_role("button", name="Approve 197 rows").click()
    expect(page.get_by_role("heading", level=2).first).to_contain_text("Approved by ann@example")
    (entry,) = case.decisions()
    assert (entry.source, entry.comment) == (DecisionSource.CONSOLE, "three are wrong")
    wanted = {row["id"]: row for row in rows(200)}
    for n in range(10):
        wanted[f"P-{1000 + n}"]["amount"] = 100.5 + n
    wanted["P-1000"]["method"] = "SWIFT"
    wanted["P-1001"]["due"] = "2027-01-31"
    for n in (20, 21, 22):
        del wanted[f"P-{1000 + n}"]
    assert [dict(row) for row in entry.rows_after["payouts"]] == list(wanted.values())
    assert {f"P-{1000 + n} left out" for n in (20, 21, 22)} <= set(listed)
    was = rows(1)[0]["amount"]
    assert f"P-1000 Amount {was:g} 100.5" in listed
    assert kept(page) == []


def test_invalid_cells_cannot_be_sent(open_page: Page, accessible: Any):
    """The button leads to them; the field says what is wrong, also to those who listen."""
    for row, column, text, says in (
        ("P-1001", "Amount", "abc", "must be a number"),
        ("P-1002", "Amount", "", "is required"),
        ("P-1003", "Amount", "1,200", "is 1200 or 1.200?"),
        ("P-1004", "Extra", "{", "must be JSON"),
    ):
        field = cell(open_page, row, column)
        field.fill(text)
        named = f"^{column}, {row}, edited, was .*invalid: {re.escape(says)}"
        expect(field).to_have_attribute("aria-label", re.compile(named))
        expect(field).to_have_attribute("aria-invalid", "true")
        expect(field).to_have_accessible_description(re.compile(re.escape(says)))
    accessible(open_page)
    bar(open_page).get_by_role("button", name="4 to correct").click()
    expect(cell(open_page, "P-1001", "Amount")).to_be_focused()
    open_page.get_by_role("button", name="Invalid 4").click()
    expect(open_page.locator("tbody tr")).to_have_count(4)


def test_keys(open_page: Page):
    """Arrows and Enter stay in the column, Escape takes back, Ctrl+Z undoes, Ctrl+Enter reviews."""
    was = f"{rows(1)[0]['amount']:g}"
    expect(cell(open_page, "P-1000", "Amount")).to_have_value(was)
    cell(open_page, "P-1000", "Amount").focus()
    open_page.keyboard.press("Enter")
    expect(cell(open_page, "P-1001", "Amount")).to_be_focused()
    open_page.keyboard.press("ArrowUp")
    expect(cell(open_page, "P-1000", "Amount")).to_be_focused()
    open_page.keyboard.type("5")
    expect(bar(open_page)).to_contain_text("1 edited")
    open_page.keyboard.press("Escape")
    expect(cell(open_page, "P-1000", "Amount")).to_have_value(was)
    pick(open_page, "P-1003").press("Space")
    expect(bar(open_page)).to_contain_text("199 of 200 rows")
    open_page.keyboard.press("Control+z")
    expect(bar(open_page)).to_contain_text("200 of 200 rows")
    open_page.keyboard.press("Control+Shift+z")
    expect(bar(open_page)).to_contain_text("199 of 200 rows")
    open_page.keyboard.press("Control+Enter")
    expect(open_page.get_by_role("dialog")).to_contain_text("Approve 199 rows?")
    open_page.keyboard.press("Escape")
    expect(open_page.get_by_role("dialog")).to_have_count(0)


def test_a_block_is_pasted(open_page: Page):
    """What a spreadsheet copies fills cells from the focused one on, to be undone one by one."""
    cell(open_page, "P-1000", "Amount").focus()
    open_page.evaluate(
        """() => {
            const data = new DataTransfer();
            data.setData("text/plain", "11\\tfalse\\tfirst\\n12\\tfalse\\tsecond\\n");
            const init = {clipboardData: data, bubbles: true, cancelable: true};
            document.activeElement.dispatchEvent(new ClipboardEvent("paste", init));
        }"""
    )
    expect(cell(open_page, "P-1001", "Amount")).to_have_value("12")
    expect(cell(open_page, "P-1001", "Note")).to_have_value("second")


def test_set_in_all_rows_that_are_shown(open_page: Page):
    """Found rows get a value in one go."""
    open_page.get_by_role("searchbox", name="Find in rows").fill("hopper")
    open_page.get_by_role("button", name="Set Note in all shown rows").click()
    open_page.get_by_role("dialog").get_by_label("Note").fill("seen")
    open_page.get_by_role("dialog").get_by_role("button", name="Set").click()
    expect(bar(open_page)).to_contain_text("50 edited")


def test_reject(case: Case, open_page: Page, accessible: Any):
    """It says what it stops, and asks for a comment."""
    bar(open_page).get_by_role("button", name="Reject").click()
    dialog = open_page.get_by_role("dialog")
    expect(dialog).to_contain_text("no step after this one runs")
    accessible(open_page)
    dialog.get_by_label("Comment").fill("no")
    dialog.get_by_role("button", name="Reject").click()
    expect(open_page.get_by_text("Rejected by ann@example.org")).to_be_visible()
    assert case.now().comment == "no"


def test_on_a_phone(browser: Browser, site: Site):
    """A row is a line; touched, it shows its fields; the two buttons are in reach."""
    case = Case(site, 30)
    context = watched(
        browser.new_context(viewport={"width": 390, "height": 844}, has_touch=True), site
    )
    page = context.new_page()
    enter(site, page)
    show(case, page)
    expect(page.locator("thead")).to_be_hidden()
    expect(page.locator(".places")).to_be_hidden()
    expect(cell(page, "P-1001", "Amount")).to_be_hidden()
    page.get_by_role("button", name="P-1001 Grace").tap()
    cell(page, "P-1001", "Amount").fill("1200,5")
    pick(page, "P-1002").tap()
    expect(bar(page)).to_contain_text("29 of 30 rows · 1 edited · 1 left out")
    for name in ("Other decisions", "Undo", "Review and approve 29"):
        box = bar(page).get_by_role("button", name=name).bounding_box()
        assert box["height"] >= 44
        assert box["y"] + box["height"] <= 844
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    approve(page)
    expect(page.get_by_text("Approved by ann@example.org")).to_be_visible()
    context.close()
    assert context.complaints == []


def test_without_scripts(browser: Browser, site: Site):
    """It is approved as shown, with a comment, and says that editing needs scripts. B5."""
    case = Case(site, 3)
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    enter(site, page)
    page.goto(case.url)
    expect(page.locator("noscript p")).to_be_visible()
    page.get_by_label("Comment").fill("fine")
    page.get_by_role("button", name="Approve").click()
    expect(page.get_by_text("Approved by ann@example.org")).to_be_visible()
    assert (case.now().comment, case.now().decision_source) == ("fine", DecisionSource.CONSOLE)
    context.close()


def test_hostile_text_is_inert(site: Site, signed_in: Page):
    """Markup, marks that turn text around and long words are text, and fit. B9."""
    world, bad = site.world, "<img src=x onerror=document.title='owned'>\u202eevil" + "W" * 3000
    columns = (
        Column("k", bad, editable=False),
        Column("t", "T"),
        Column("j", "J", ColumnType.JSON),
    )
    given = [{"k": bad, "t": bad, "j": {bad: bad}}]
    step = ApprovalStep(
        "review", bad[:2000], groups=(GroupSpec("g", bad, given, columns, row_key="k"),)
    )
    site.do(world.start(site.do(world.workflow(step, name=bad[:40]))))
    site.do(world.run())
    signed_in.goto(f"{site.url}/inbox")
    assert signed_in.evaluate("document.documentElement.scrollWidth <= innerWidth")
    signed_in.locator(".list h2 a").click()
    bar(signed_in).wait_for()
    expect(signed_in.locator("main img")).to_have_count(0)
    expect(signed_in).to_have_title(re.compile("^(?!owned)"))
    assert signed_in.evaluate("document.documentElement.scrollWidth <= innerWidth")
    approve(signed_in)
    expect(signed_in.get_by_text("Approved by")).to_be_visible()


def test_many_rows(site: Site, signed_in: Page):
    """All 5,000 are there; one hundred are drawn; found and edited as quickly as typed."""
    case = Case(site, 5_000)
    show(case, signed_in)
    expect(signed_in.locator("tbody tr")).to_have_count(100)
    signed_in.get_by_role("searchbox").fill("P-5999")
    expect(signed_in.locator("tbody tr")).to_have_count(1)
    cell(signed_in, "P-5999", "Amount").fill("1")
    expect(bar(signed_in)).to_contain_text("5000 of 5000 rows · 1 edited")
    approve(signed_in)
    expect(signed_in.get_by_text("Approved by")).to_be_visible()
    assert case.now().groups[0].items[-1]["amount"] == 1


def test_states_are_accessible(site: Site, signed_in: Page, accessible: Callable[[Page], None]):
    """Untouched, edited, left out, with its sheet, and decided. B3."""
    open_page = signed_in
    show(Case(site, 12), open_page)
    accessible(open_page)
    cell(open_page, "P-1001", "Amount").fill("1200")
    pick(open_page, "P-1002").uncheck()
    accessible(open_page)
    open_page.keyboard.press("Control+Enter")
    open_page.get_by_role("dialog").wait_for()
    accessible(open_page)
    open_page.get_by_role("button", name="Approve 11 rows").click()
    expect(open_page.get_by_text("Approved by")).to_be_visible()
    accessible(open_page)


def test_the_inbox_lists_what_waits(site: Site, signed_in: Page, accessible: Any):
    """By expiry, with the workflow's name; the tab and the page are in the address. B6."""
    Case(site, 2)
    signed_in.goto(f"{site.url}/inbox")
    expect(signed_in.get_by_role("listitem")).to_contain_text("Payout run")
    expect(signed_in.get_by_role("listitem")).to_contain_text("2 rows")
    expect(signed_in.get_by_role("listitem")).to_contain_text("ends in 23 h")
    accessible(signed_in)
    signed_in.keyboard.press("j")
    signed_in.keyboard.press("Enter")
    bar(signed_in).wait_for()


def test_no_key_is_lost_while_what_keys_do_is_loading(site: Site, signed_in: Page):
    """Enter after `j` opens the first approval, also where the script of the keys comes late."""
    Case(site, 2)
    signed_in.goto(f"{site.url}/inbox")
    held: list[Route] = []
    signed_in.route("**/keys.js", lambda one: held.append(one))
    with signed_in.expect_request("**/keys.js"):
        signed_in.keyboard.press("j")
    signed_in.keyboard.press("Enter")
    held.pop().continue_()
    bar(signed_in).wait_for()


def test_what_an_approval_loads(case: Case, signed_in: Page):
    """The editor with the page; what else it needs by the first touch, before it is needed. B2."""
    loaded: list[str] = []
    signed_in.on("request", lambda one: loaded.append(one.url.rpartition("/")[2]))
    show(case, signed_in)
    assert {name for name in loaded if name.endswith(".js")} == modules("approval.js", "app.js")
    with signed_in.expect_request("**/deciding.js"):
        cell(signed_in, "P-1001", "Amount").focus()


def test_only_what_was_touched_is_sent(case: Case, open_page: Page):
    """Untouched rows go by their hash alone; edited ones by key and cell, with the hash, too."""
    open_page.route("**/approve", lambda route: route.fulfill(status=503, json={}))

    def sent() -> Any:
        with open_page.expect_request("**/approve") as asked:
            approve(open_page)
        expect(open_page.get_by_text("Nothing was decided")).to_be_visible()
        return asked.value.post_data_json

    seen = {"expectedItemsHash": items_hash(case.now())}
    assert sent() == seen
    cell(open_page, "P-1001", "Amount").fill("7")
    body = sent()
    assert body["expectedItemsHash"] == seen["expectedItemsHash"]
    edited = body["editedItems"]["payouts"]
    assert edited[:3] == [{"id": "P-1000"}, {"id": "P-1001", "amount": 7}, {"id": "P-1002"}]


def test_a_row_goes_back_to_what_was_proposed(case: Case, open_page: Page):
    """One button takes back all cells of a row, and Undo brings them again."""
    was = f"{rows(2)[1]['amount']:g}"
    cell(open_page, "P-1001", "Amount").fill("5")
    cell(open_page, "P-1001", "Note").fill("x")
    open_page.get_by_role("button", name="Back to what was proposed: P-1001").click()
    expect(cell(open_page, "P-1001", "Amount")).to_have_value(was)
    expect(cell(open_page, "P-1001", "Note")).to_have_value("")
    expect(bar(open_page)).not_to_contain_text("edited")
    bar(open_page).get_by_role("button", name="Undo").click()
    expect(cell(open_page, "P-1001", "Note")).to_have_value("x")


def test_rows_are_added(site: Site, signed_in: Page, accessible: Callable[[Page], None]):
    """Where the step allows it: with a key of its own; a draft keeps it, and it is released."""
    case = Case(site, 2, group={"allow_add": True})
    show(case, signed_in)
    signed_in.get_by_role("button", name="Add a row").click()
    expect(bar(signed_in)).to_contain_text("3 of 3 rows")
    bar(signed_in).get_by_role("button", name="to correct").click()
    expect(cell(signed_in, "3", "Payout")).to_be_focused()
    cell(signed_in, "3", "Payout").fill("P-9")
    cell(signed_in, "P-9", "Due").fill("2026-12-24")
    cell(signed_in, "P-9", "Amount").fill("12,5")
    accessible(signed_in)
    signed_in.reload()
    expect(cell(signed_in, "P-9", "Amount")).to_have_value("12,5")
    approve(signed_in)
    expect(signed_in.get_by_text("Approved by")).to_be_visible()
    rows = case.now().groups[0].items
    assert [row["id"] for row in rows] == ["P-1000", "P-1001", "P-9"]
    assert rows[2] == {"id": "P-9", "due": "2026-12-24", "amount": 12.5}
    signed_in.get_by_text("1 change", exact=True).click()
    expect(signed_in.locator(".history .changes")).to_have_text("P-9 added")


def test_somebody_elses_deed_is_shown_at_once(site: Site, signed_in: Page):
    """A change of rows is a banner without a click, and what was typed stays. B7."""
    case = Case(site, 3, **both(required_approvals=2))
    show(case, signed_in)
    cell(signed_in, "P-1001", "Note").fill("mine")
    case.decide(case.bob)
    expect(signed_in.get_by_text("bob@example.org agreed: 1 of 2.")).to_be_visible()
    expect(cell(signed_in, "P-1001", "Note")).to_have_value("mine")
