"""What people read is what is there: no text turns what stands around it, or hides in it."""

import unicodedata
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from adapters_http.console import formats
from adapters_http.console.static_files import files
from wfcore.model.access import OPERATOR
from wfcore.model.workflow import ApprovalStep, Column, ColumnType, GroupSpec
from wfcore.rules.visible import shown, visible
from wfcore.usecases.approvals.approvals import read_approval

from .approval_case import Case, approve, bar
from .conftest import Site, arrived

TURNED = "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
ACCOUNT, SEEN = "acct \u202e4321\u202c x", "acct \ufffd4321\ufffd x"
MESSAGE = "Pay Bob \u202e REDRO 100 EUR?"
COLUMNS = (
    Column("k", "Account", editable=False),
    Column("t", "Note"),
    Column("n", "Amount", ColumnType.NUMBER),
)


def asked(site: Site, row: dict[str, Any], columns: tuple[Column, ...] = COLUMNS) -> str:
    """An approval of Ann's with one row; its id."""
    world, group = site.world, GroupSpec("g", "G", [row], columns, row_key="k")
    step = ApprovalStep("review", MESSAGE, groups=(group,))
    execution = site.do(world.start(site.do(world.workflow(step))))
    site.do(world.run())
    listed = site.do(world.get(f"/api/v1/approvals/execution/{execution}")).json()
    id: str = listed["approvals"][0]["id"]
    return id


def opened(site: Site, page: Page, id: str) -> None:
    page.goto(f"{site.url}/approvals/{id}")
    bar(page).wait_for()


def released(site: Site, id: str) -> dict[str, Any]:
    approval = site.do(read_approval(site.world.services, OPERATOR, id))
    assert approval.status == "APPROVED"
    return dict(approval.groups[0].items[0])


def test_what_cannot_be_seen_is_made_visible():
    """Controls and formats, save line ends, tabs and what scripts are spelt with."""
    kept = "\n\t\u200c\u200d"
    spelt = {*range(0x600, 0x606), 0x6DD, 0x70F, 0x890, 0x891, 0x8E2, 0x110BD, 0x110CD}
    spelt |= {*range(0x13430, 0x13440)}
    spelt |= {*range(0x1BCA0, 0x1BCA4), *range(0x1D173, 0x1D17B)}  # of shorthand, and of music
    unseen = [
        chr(code)
        for code in range(0x110000)
        if unicodedata.category(chr(code)) in ("Cc", "Cf", "Cs", "Zl", "Zp")
        and chr(code) not in kept
        and code not in spelt
    ]
    assert {*TURNED} <= {*unseen}
    assert [one for one in unseen if visible(f"a{one}b") != "a\ufffdb"] == []
    spared = kept + "\u00a0é漢👩\ufe0f\u0645" + "".join(map(chr, spelt))
    assert visible(spared) == spared
    assert (visible("a\r\nb"), shown(7)) == ("a\nb", 7)


def test_pages_and_the_server_hide_alike(site: Site, signed_in: Page):
    """A script makes the same characters visible as a template."""
    script = """async ([url, texts]) => {
        const {visible} = await import(url);
        return texts.map(visible);
    }"""
    url = f"{site.url}/static/{files().hash}/values.js"
    texts = [f"a{chr(code)}b" for code in range(0x20000) if not 0xD800 <= code < 0xE000]
    texts += [f"a{chr(code)}b" for code in range(0xE0000, 0xE0200)] + ["a\r\nb"]
    assert signed_in.evaluate(script, [url, texts]) == [visible(one) for one in texts]


def test_no_text_falsifies_what_is_read(site: Site, signed_in: Page):
    """Message, title, cells and fields, of the server and of scripts; values stay as they are."""
    id = asked(site, {"k": ACCOUNT, "t": ACCOUNT, "n": 1})
    signed_in.goto(f"{site.url}/inbox")
    assert not {*TURNED} & {*signed_in.content()}
    assert "Pay Bob \ufffd REDRO" in signed_in.inner_text(".list h2")
    opened(site, signed_in, id)
    assert not {*TURNED} & {*signed_in.content()}
    assert "Pay Bob \ufffd REDRO" in signed_in.title()
    expect(signed_in.locator("td[data-title=Account]")).to_have_css("unicode-bidi", "plaintext")
    expect(signed_in.locator("td[data-title=Account]")).to_have_text(SEEN)
    expect(signed_in.get_by_label("Note, ")).to_have_value(SEEN)
    signed_in.get_by_label("Amount, ").fill("2")
    approve(signed_in)
    expect(signed_in.get_by_text("Approved by")).to_be_visible()
    assert not {*TURNED} & {*signed_in.content()}
    assert released(site, id) == {"k": ACCOUNT, "t": ACCOUNT, "n": 2}


def test_what_is_seen_is_what_is_released(site: Site, signed_in: Page):
    """A cell that was edited holds what the field showed; typed back, it is what it was."""
    first = asked(site, {"k": "1", "t": ACCOUNT, "n": 1})
    opened(site, signed_in, first)
    note = signed_in.get_by_label("Note, 1")
    note.press("End")
    note.press("y")
    expect(bar(signed_in)).to_contain_text("1 edited")
    note.press("Backspace")
    expect(bar(signed_in)).not_to_contain_text("edited")
    note.fill("\u202enew")
    expect(note).to_have_value("\ufffdnew")
    approve(signed_in)
    expect(signed_in.get_by_text("Approved by")).to_be_visible()
    assert released(site, first)["t"] == "\ufffdnew"


def test_line_ends_outlast_an_edit(site: Site, signed_in: Page, accessible: Any):
    """A text of several lines has a field of several; the sheet marks where each ends."""
    id = asked(site, {"k": "1", "t": "line1\nline2", "n": 1})
    opened(site, signed_in, id)
    note = signed_in.get_by_label("Note, 1")
    expect(note).to_have_value("line1\nline2")
    note.press("Control+End")
    note.press("Enter")
    note.press_sequentially("line3")
    accessible(signed_in)
    bar(signed_in).get_by_role("button", name="Review and approve").click()
    dialog = signed_in.get_by_role("dialog")
    expect(dialog.locator("ins")).to_have_text("line1⏎\nline2⏎\nline3")
    dialog.get_by_role("button", name="Approve").click()
    expect(signed_in.get_by_text("Approved by")).to_be_visible()
    assert released(site, id)["t"] == "line1\nline2\nline3"


@pytest.mark.parametrize(("tag", "amount"), [("en", "59.5"), ("de", "59,5")])
def test_numbers_are_written_as_the_reader_writes_them(
    site: Site, browser: Browser, tag: str, amount: str
):
    """In cells, fields, sums and the sheet, open and decided; whole ones have no fraction."""
    columns = (*COLUMNS, Column("m", "Fixed", ColumnType.NUMBER, editable=False))
    id = asked(site, {"k": "1", "t": "x", "n": 59.5, "m": 59.0}, columns)
    context = browser.new_context(locale=tag)
    page = context.new_page()
    page.goto(site.link())
    page.locator("main button").click()
    arrived(page)
    opened(site, page, id)
    expect(page.get_by_label("Amount, 1")).to_have_value(amount)
    expect(page.get_by_role("cell", name="59", exact=True)).to_be_visible()
    expect(bar(page)).to_contain_text(f"Amount {amount}")
    page.get_by_label("Amount, 1").fill(amount.replace("9", "8"))
    page.locator(".bar .approve").last.click()
    expect(page.locator(".changes s")).to_have_text(amount)
    expect(page.locator(".changes ins")).to_have_text(amount.replace("9", "8"))
    page.locator("dialog .approve").click()
    page.locator(".outcome").wait_for()
    expect(page.get_by_role("cell", name="59", exact=True)).to_be_visible()
    expect(page.get_by_role("cell", name=amount.replace("9", "8"), exact=True)).to_be_visible()
    context.close()
    assert released(site, id)["n"] == 58.5


def test_a_number_that_may_be_two_is_refused_in_german_too(site: Site, browser: Browser):
    """Without scripts: `1.200` of a German is told how to write it, and decides nothing."""
    fields = (Column("limit", "Limit", ColumnType.NUMBER),)
    case = Case(site, 0, fields=fields)
    context = browser.new_context(java_script_enabled=False, locale="de-DE")
    page = context.new_page()
    page.goto(site.link())
    page.locator("main button").click()
    page.goto(case.url)
    page.get_by_label("Limit").fill("1.200")
    page.get_by_role("button", name="Freigeben").click()
    expect(page.get_by_role("alert")).to_contain_text("Schreiben Sie 1200 oder 1,2000")
    page.get_by_label("Limit").fill("1200")
    page.get_by_role("button", name="Freigeben").click()
    page.locator(".outcome").wait_for()
    context.close()
    assert case.now().answers == {"limit": 1200}


def test_sums_have_no_zeros_that_say_nothing():
    """A sum of halves is whole; digits beyond those of a usual context stay."""
    from decimal import Decimal

    long = Decimal("1" + "0" * 40 + "7.50")
    assert formats.amount(Decimal("187125.0")) == "187,125"
    assert formats.amount(long).endswith("007.5")
    assert formats.amount(Decimal("1200")) == "1,200"
