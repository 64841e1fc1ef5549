"""Cells in a browser, with its real clipboard: what is pasted, shown, judged and sent."""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest
from attrs import evolve
from playwright.sync_api import Browser, Locator, Page, expect

from wfcore.model.access import OPERATOR
from wfcore.model.approval import Approval
from wfcore.model.workflow import ApprovalStep, Column, ColumnType, GroupSpec
from wfcore.usecases.approvals.approvals import read_approval

from .approval_case import approve, bar, cell, pick
from .conftest import Site, enter, watched

KEY = Column("id", "Id", editable=False)
COLUMNS = (
    KEY,
    Column("text", "Text"),
    Column("n", "Number", ColumnType.NUMBER),
    Column("yes", "Yes", ColumnType.BOOLEAN),
    Column("fixed", "Fixed", editable=False),
    Column("on", "On", ColumnType.DATE),
)


class Table:
    """An approval of Ann's with *rows*, in the page of whoever reads it."""

    def __init__(self, site: Site, page: Page, rows: Any, columns: Any = COLUMNS, **more: Any):
        self.site, self.page = site, page
        groups = (GroupSpec("g", "G", rows, columns, row_key="id"),) if rows else ()
        step = ApprovalStep("review", "Cells", groups=groups, **more)
        execution = site.do(site.world.start(site.do(site.world.workflow(step))))
        site.do(site.world.run())
        listed = site.do(site.world.get(f"/api/v1/approvals/execution/{execution}")).json()
        self.id = listed["approvals"][0]["id"]
        page.goto(f"{site.url}/approvals/{self.id}")
        if rows:
            expect(bar(page)).to_be_visible()

    def paste(self, into: Locator, text: str) -> None:
        self.page.evaluate("(text) => navigator.clipboard.writeText(text)", text)
        into.focus()
        self.page.keyboard.press("Control+v")

    def approved(self) -> Approval:
        approve(self.page)
        expect(self.page.get_by_text("Approved by")).to_be_visible()
        return self.now()

    def now(self) -> Approval:
        return self.site.do(read_approval(self.site.world.services, OPERATOR, self.id))

    def released(self) -> list[Mapping[str, Any]]:
        """The rows that go on, in short."""
        return [dict(row) for row in self.approved().groups[0].items]


def rows(count: int, **more: Any) -> list[dict[str, Any]]:
    return [
        {"id": f"R{n:03}", "text": f"t{n}", "n": n, "yes": False, "fixed": "f", "on": None, **more}
        for n in range(1, count + 1)
    ]


@pytest.fixture
def reader(browser: Browser, site: Site) -> Iterator[Callable[..., Page]]:
    """Ann's page in a browser of the languages that are given, the first one's own."""
    made = list[Any]()

    def open_for(*languages: str, **more: Any) -> Page:
        context = watched(
            browser.new_context(locale=languages[0] if languages else None, **more), site
        )
        made.append(context)
        context.grant_permissions(["clipboard-read", "clipboard-write"], origin=site.url)
        if len(languages) > 1:
            listed = (
                f"Object.defineProperty(navigator, 'languages', {{get: () => {list(languages)}}})"
            )
            context.add_init_script(listed)
            accepted = {"accept-language": ", ".join(languages)}
            context.route(  # the browser sets this header itself, after all that Playwright adds
                lambda url: "/approvals/" in url,
                lambda route: route.continue_(headers={**route.request.headers, **accepted}),
            )
        english = {"name": "wfcore_language", "value": "en", "url": site.url}
        context.add_cookies([english])
        page: Page = context.new_page()
        enter(site, page)
        return page

    yield open_for
    for context in made:
        context.close()
        assert context.complaints == []


@pytest.mark.parametrize("end", ["\r\n", "\n", "\r"])
def test_quoted_cells_stay_cells(site: Site, reader: Any, end: str):
    """Line breaks, tabs and quotes within a cell stay there, whatever ends a line. AP-45."""
    table = Table(site, reader("en-US"), rows(4))
    lines = ('"first\nsecond"\t77', 'say "hi"\t88', '"a\tb ""c"""\t"9"')
    table.paste(cell(table.page, "R001", "Text"), end.join(lines) + end)
    expect(cell(table.page, "R001", "Text")).to_have_value("first\nsecond")
    bar(table.page).get_by_role("button", name="1 to correct").click()  # a quote is no number
    cell(table.page, "R003", "Number").fill("9")
    got = [(row["text"], row["n"]) for row in table.released()]
    assert got == [("first\nsecond", 77), ('say "hi"', 88), ('a\tb "c"', 9), ("t4", 4)]


def test_one_cell_is_pasted_whole_or_where_the_cursor_is(site: Site, reader: Any):
    """A quoted cell replaces one; a word goes to the cursor, without the line end behind it."""
    table = Table(site, reader("en-US"), rows(2))
    table.paste(cell(table.page, "R001", "Text"), '"one\r\ntwo"\r\n')
    expect(cell(table.page, "R001", "Text")).to_have_value("one\ntwo")
    cell(table.page, "R002", "Text").press("End")
    table.paste(cell(table.page, "R002", "Text"), "-more\r\n")
    expect(cell(table.page, "R002", "Text")).to_have_value("t2-more")
    cell(table.page, "R001", "Text").press("Control+End")
    table.paste(cell(table.page, "R001", "Text"), "\nthree\nfour")
    expect(cell(table.page, "R001", "Text")).to_have_value("one\ntwo\nthree\nfour")
    assert [row["text"] for row in table.released()] == ["one\ntwo\nthree\nfour", "t2-more"]


def test_a_paste_goes_over_all_rows_of_the_filter(site: Site, reader: Any):
    """Rows that are not drawn get their values, too; what has no place is said, and counted."""
    table = Table(site, reader("en-US"), rows(250))
    page = table.page
    table.paste(cell(page, "R001", "Number"), "\n".join(str(1000 + n) for n in range(250)))
    expect(bar(page)).to_contain_text("250 edited")
    expect(page.locator("#banner")).to_be_hidden()
    page.get_by_role("searchbox").fill("R24")  # R240 to R249
    pick(page, "R249").uncheck()
    block = "\n".join(f"{n}\tja\tother\t2026-12-0{n}\tmuch\tmore" for n in range(1, 5))
    table.paste(cell(page, "R247", "Number"), block)
    expect(page.locator("#banner")).to_contain_text(
        "Pasted into 6 cells. Not pasted: rows beyond the last one: 1; columns beyond "
        "the last one: 2; read-only columns: Fixed; rows that are left out: 1."
    )
    page.get_by_role("button", name="Close").click()
    expect(page.locator("#banner")).to_be_hidden()
    got = {row["id"]: (row["n"], row["yes"], row["on"]) for row in table.released()}
    assert got["R246"] == (1245, False, None)
    assert (got["R247"], got["R248"]) == ((1, True, "2026-12-01"), (2, True, "2026-12-02"))
    assert (len(got), got["R250"]) == (249, (1249, False, None))


def test_words_for_yes_and_no(site: Site, reader: Any):
    """Those of spreadsheets in any language become booleans; any other is invalid, never null."""
    words = {
        True: ("TRUE", "WAHR", "ja", "yes", "x", "1", "Vrai", "sí"),
        False: ("FALSE", "FALSCH", "nein", "No", "0", "faux"),
    }
    said = [(word, value) for value, all in words.items() for word in all]
    given = [{**row, "yes": not value} for row, (_, value) in zip(rows(14), said, strict=True)]
    table = Table(site, reader("en-US"), [*given, *rows(15)[14:], {**rows(16)[15], "yes": None}])
    block = "\r\n".join([*(word for word, _ in said), "perhaps", "often"])
    table.paste(cell(table.page, "R001", "Yes"), block)
    odd = cell(table.page, "R015", "Yes")
    expect(odd).to_have_value("perhaps")
    expect(odd).to_have_accessible_description(re.compile("must be yes or no"))
    bar(table.page).get_by_role("button", name="2 to correct").click()
    odd.press("Escape")
    expect(cell(table.page, "R016", "Yes")).to_have_value("often")
    cell(table.page, "R016", "Yes").fill("yes")
    expect(cell(table.page, "R015", "Yes")).not_to_be_checked()
    assert [row["yes"] for row in table.released()] == [*(value for _, value in said), False, True]


@pytest.mark.parametrize(
    ("languages", "typed", "value"),
    [
        (("es-ES",), "1.200", None), (("pt-BR",), "1.200", None), (("en-US", "fr"), "1.200", None),
        (("es-MX",), "1.200", 1.2), (("en-US",), "1.200", 1.2), (("de-CH",), "1.200", 1.2),
        (("nl",), "1200,5", 1200.5), (("fr-FR",), "1 200,5", 1200.5), (("it",), "1,200", None),
    ],
)  # fmt: skip
def test_the_decimal_sign_is_the_readers(
    site: Site, reader: Any, languages: Any, typed: str, value: float | None
):
    """Of their languages, not the page's; what may be two numbers is asked back. AP-46."""
    fields = (Column("limit", "Limit", ColumnType.NUMBER),)
    table = Table(site, reader(*languages), rows(3, n=0.5), fields=fields)
    page, own = table.page, value is not None
    sign = page.evaluate("new Intl.NumberFormat(navigator.languages).format(0.5)[1]")
    expect(cell(page, "R002", "Number")).to_have_value(f"0{sign}5")
    cell(page, "R001", "Number").fill(typed)
    table.paste(cell(page, "R002", "Number"), f"{typed}\n{typed}")
    page.get_by_label("Limit").fill(typed)
    if not own:
        bar(page).get_by_role("button", name="3 to correct").click()
        for row in ("R001", "R002", "R003"):
            expect(cell(page, row, "Number")).to_have_accessible_description(
                re.compile("is 1200 or")
            )
            cell(page, row, "Number").fill("1200")
        bar(page).get_by_role("button", name="Review and approve").click()
        expect(page.get_by_label("Limit")).to_have_accessible_description(re.compile("is 1200 or"))
        page.get_by_label("Limit").fill("1200")
    bar(page).get_by_role("button", name="Review and approve").click()
    shown = f"{value or 1200}".replace(".", sign)
    expect(page.get_by_role("dialog")).to_contain_text(f"Limit: {shown}")
    expect(page.get_by_role("dialog").get_by_role("listitem")).to_have_text(
        [f"R{n:03} Number 0{sign}5 {shown}" for n in (1, 2, 3)]
    )
    page.get_by_role("dialog").get_by_role("button", name="Approve").click()
    expect(page.get_by_text("Approved by")).to_be_visible()
    now = table.now()
    assert now.answers == {"limit": value or 1200}
    assert [row["n"] for row in now.groups[0].items] == [value or 1200] * 3


@pytest.mark.parametrize(
    ("languages", "typed", "value"),
    [
        (("de-DE", "en-US"), "31.12.2026", "2026-12-31"), (("en-US",), "12/31/2026", "2026-12-31"),
        (("de-DE", "en-US"), "12.11.2026", "2026-11-12"), (("en-US",), "12/11/2026", "2026-12-11"),
        (("en-GB",), "12/11/2026 00:00", "2026-11-12"), (("en-GB", "en-US"), "12/11/2026", None),
    ],
)  # fmt: skip
def test_the_order_of_a_date_is_the_readers(
    site: Site, reader: Any, languages: Any, typed: str, value: str | None
):
    """Typed and pasted, in cells and answers: kept as it is shown, or asked back. AP-48."""
    fields = (Column("by", "By", ColumnType.DATE),)
    table = Table(site, reader(*languages), rows(3, on="on call"), fields=fields)
    page, own = table.page, value is not None
    cell(page, "R001", "On").fill(typed)
    table.paste(cell(page, "R002", "Number"), f"2\tyes\tf\t{typed}\n3\tyes\tf\t{typed}")
    table.paste(page.get_by_label("By"), typed)
    if own:
        expect(page.get_by_text(f"read as {value}")).to_be_visible()
    else:
        bar(page).get_by_role("button", name="3 to correct").click()
        for row in ("R001", "R002", "R003"):
            asked = re.compile("is 2026-11-12 or 2026-12-11")
            expect(cell(page, row, "On")).to_have_accessible_description(asked)
            cell(page, row, "On").fill("2026-11-12")
        bar(page).get_by_role("button", name="Review and approve").click()
        expect(page.get_by_label("By")).to_have_accessible_description(asked)
        expect(page.get_by_label("By")).to_have_value(typed)
        page.get_by_label("By").fill("2026-11-12")
    kept = value or "2026-11-12"
    for field in (cell(page, "R002", "On"), cell(page, "R003", "On"), page.get_by_label("By")):
        expect(field).to_have_value(kept)
    assert [row["on"] for row in table.released()] == [kept] * 3
    assert table.now().answers == {"by": kept}


def test_what_nobody_edited_passes_as_it_was_proposed(site: Site, reader: Any):
    """Values of other types, and none where one is required: shown as text, judged where edited."""
    columns = (*COLUMNS[:2], *(evolve(one, required=True) for one in COLUMNS[2:4]), *COLUMNS[4:])
    odd: list[dict[str, Any]] = [
        {
            "id": "R001",
            "text": 5,
            "n": "120.00",
            "yes": 1,
            "fixed": "f",
            "on": "2026-12-31T10:00:00Z",
        },
        {"id": "R002", "text": "b", "n": None, "yes": "yes", "fixed": "f", "on": 20261231},
        {"id": "R003", "text": None, "n": None, "yes": None, "fixed": None, "on": None},
    ]
    table = Table(site, reader("de-DE"), odd, columns)
    page = table.page
    shows = {("R001", "Number"): "120.00", ("R001", "Yes"): "1", ("R002", "Yes"): "yes"}
    shows |= {("R001", "On"): "2026-12-31T10:00:00Z", ("R002", "On"): "20261231"}
    for (row, column), text in shows.items():
        expect(cell(page, row, column)).to_have_value(text)
        expect(cell(page, row, column)).to_have_attribute("type", "text")
    cell(page, "R001", "Text").fill("a")
    cell(page, "R002", "Text").fill("bb")  # now its number is missed
    bar(page).get_by_role("button", name="1 to correct").click()
    expect(cell(page, "R002", "Number")).to_be_focused()
    cell(page, "R002", "Number").fill("7,5")
    assert table.released() == [{**odd[0], "text": "a"}, {**odd[1], "text": "bb", "n": 7.5}, odd[2]]


def test_what_is_missing_in_a_read_only_cell_is_said_before_it_is_sent(site: Site, reader: Any):
    """An edited row whose required read-only cell is blank can only be left out. AP-40."""
    columns = [evolve(one, required=one.key == "fixed") for one in COLUMNS]
    blank = {"text": "a", "n": 1, "yes": True, "fixed": "\u200b", "on": None}
    odd = [{"id": "R001", **blank}, {"id": "R002", **blank}]
    table = Table(site, reader("en-US"), odd, columns)
    page = table.page
    expect(bar(page).get_by_role("button", name="Review and approve 2")).to_be_visible()
    cell(page, "R002", "Text").fill("b")
    bar(page).get_by_role("button", name="1 to correct").click()
    expect(pick(page, "R002")).to_be_focused()
    expect(pick(page, "R002")).to_have_accessible_description("is required")
    expect(page.get_by_text("is required", exact=True)).to_be_visible()
    pick(page, "R002").uncheck()
    assert table.released() == odd[:1]


def test_a_date_that_is_none_is_never_null(site: Site, reader: Any):
    """An impossible date, and half a one, are errors at the field, in cells and in answers."""
    fields = (Column("when", "When", ColumnType.DATE),)
    table = Table(site, reader("en-US"), rows(2, on="2026-12-31"), fields=fields)
    page = table.page
    cell(page, "R001", "On").focus()
    page.keyboard.type("02")  # 02/31/2026
    said = re.compile("must be a date")
    expect(cell(page, "R001", "On")).to_have_accessible_description(said)
    bar(page).get_by_role("button", name="1 to correct").click()
    cell(page, "R001", "On").fill("2026-02-28")
    page.get_by_label("When").focus()
    page.keyboard.type("0231")
    page.keyboard.press("Control+Enter")
    expect(page.get_by_label("When")).to_have_accessible_description(said)
    page.get_by_label("When").fill("2027-01-01")
    now = table.approved()
    assert now.answers == {"when": "2027-01-01"}
    assert [row["on"] for row in now.groups[0].items] == ["2026-02-28", "2026-12-31"]


def test_half_a_date_in_an_empty_cell(site: Site, reader: Any):
    """No event tells of it while it is typed: leaving the cell, or Ctrl+Enter, does."""
    table = Table(site, reader("en-US"), rows(2))
    page = table.page
    cell(page, "R001", "On").focus()
    page.keyboard.type("12")
    page.keyboard.press("Control+Enter")
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(cell(page, "R001", "On")).to_have_accessible_description(re.compile("must be a date"))


def test_columns_named_as_what_objects_inherit(site: Site, reader: Any):
    """`constructor` and `toString` are columns like others, filled or empty."""
    names = ("constructor", "toString", "__proto__", "hasOwnProperty")
    columns = (KEY, *(Column(name, name) for name in names))
    table = Table(site, reader("en-US"), [{"id": "R001"}, {"id": "R002", "toString": "x"}], columns)
    for name in names:
        expect(cell(table.page, "R001", name)).to_have_value("")
    for name in names:
        cell(table.page, "R001", name).fill(f"my {name}")
    expect(bar(table.page)).to_contain_text("1 edited")
    wanted = {"id": "R001", **{name: f"my {name}" for name in names}}
    assert table.released() == [wanted, {"id": "R002", "toString": "x"}]


def test_a_long_text_is_drawn_in_part(site: Site, reader: Any):
    """200,000 characters: the beginning, and all of it by a button, to be read or edited."""
    long = "word " * 40_000
    table = Table(site, reader("en-US"), rows(1, text=long, fixed=long[:20_000]))
    page = table.page
    assert page.evaluate("document.querySelector('main').innerText.length") < 5_000
    page.get_by_role("button", name="Show all 20,000 characters").click()
    expect(page.locator(".long")).to_have_text(long[:20_000].strip())
    page.get_by_role("button", name="Show all 200,000 characters").click()
    expect(cell(page, "R001", "Text")).to_be_focused()
    page.keyboard.press("Control+Home")
    page.keyboard.type("My ")
    assert table.released() == rows(1, text=f"My {long}", fixed=long[:20_000])


def test_texts_can_be_read_on_a_phone(site: Site, reader: Any):
    """A text is shown whole, and the sign of a number stays before it."""
    text = "Consulting fees of the second quarter, to be paid in two parts"
    page = reader("en-US", viewport={"width": 390, "height": 844}, has_touch=True)
    Table(site, page, rows(2, n=-1, text=text))
    line = page.locator(".brief .number").first
    lines = """(one) => {
        const all = document.createRange();
        all.selectNodeContents(one);
        return all.getClientRects().length;
    }"""
    assert (line.inner_text(), line.evaluate(lines)) == ("-1", 1)
    page.get_by_role("button", name="R001 Consulting").tap()
    field = cell(page, "R001", "Text")
    hidden = """(one) => Math.max(
        one.scrollWidth - one.clientWidth, one.scrollHeight - one.clientHeight)"""
    assert field.evaluate(hidden) <= 1
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
