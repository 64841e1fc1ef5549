"""Values of cells: the page and the server agree on every one."""

import json
from decimal import Decimal
from typing import Any, cast

import pytest
from attrs import evolve
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from playwright.sync_api import Browser, Page, expect

from adapters_http.console.static_files import files
from wfcore.errors import InvalidInput
from wfcore.model.access import OPERATOR
from wfcore.model.approval import Group
from wfcore.model.workflow import ApprovalStep, Column, ColumnType, GroupSpec
from wfcore.rules.approval.released_rows import released_rows
from wfcore.rules.decimals import Doubtful, decimal_signs, decimal_text
from wfcore.rules.numbers import kept
from wfcore.rules.written_dates import date_orders, date_text
from wfcore.testing import builders as make
from wfcore.usecases.approvals.approvals import read_approval
from wfcore.wire.approvals import column_view
from wfcore.wire.converter import plain

from .approval_case import COLUMNS, approve, bar
from .conftest import Site

BLANK = ("", " \t\n", "\xa0", "\u200b", "\u200d\u200c", "\u2028 \ufeff", "\u3000", "\x1c")
_NEARLY = st.from_regex(
    r"[0-9]{4}-[01][0-9]-[0-3][0-9]|[-+0-9., ]{1,9}|[ ]?[0-9/-]{4,10}", fullmatch=True
)
_PLAIN = st.one_of(
    st.none(), st.booleans(), st.integers(-(2**66), 2**66),
    st.floats(allow_nan=False, allow_infinity=False), st.text(), st.dates().map(str), _NEARLY,
    st.sampled_from((*BLANK, "true", "sepa", 2**53 + 1, 1e300, 2**63, -(2**63), -(2**63) - 1)),
)  # fmt: skip


PROPOSED = {"proposed": "no value that is drawn"}
"""What passes in whatever column, as nobody edited it."""


def _odd(column: Column) -> st.SearchStrategy[Any]:
    """A value that may fit a column, or nearly does."""
    fitting = (st.sampled_from(column.options),) if column.options else ()
    nested = st.one_of(st.lists(_PLAIN), st.dictionaries(st.text(), _PLAIN))
    return st.one_of(*fitting, _PLAIN, _PLAIN, nested)


def _thousand(values: st.SearchStrategy[Any]) -> list[Any]:
    """Drawn values, so many that one page can judge them all at once."""
    drawn = list[Any]()

    @settings(max_examples=1_000, database=None, derandomize=True, phases=[Phase.generate])
    @given(values)
    def draw(value: Any) -> None:
        drawn.append(value)

    draw()
    return drawn


@pytest.mark.parametrize("column", [*COLUMNS[2:6], *COLUMNS[6:]], ids=lambda one: one.type)
@pytest.mark.parametrize("required", [False, True])
def test_the_page_judges_as_the_server(site: Site, signed_in: Page, column: Column, required: bool):
    """Of a thousand values of every type, both take the same ones."""
    judged = evolve(column, key="v", required=required)
    values = _thousand(_odd(judged))
    group = Group("g", "G", (judged,), ({"id": 1, "v": PROPOSED},), "id")
    approval = make.approval(groups=(group,))

    def takes(value: Any) -> bool:
        try:
            sent = kept(json.dumps([{"id": 1, "v": value}]).encode(), exact=True)
            released_rows(approval, {"g": sent})
        except InvalidInput:
            return False
        return True

    script = """async ([url, column, text]) => {
        const {judge, parse} = await import(url);
        return parse(text).map((value) => judge(column, value) === null);
    }"""
    url = f"{site.url}/static/{files().hash}/values.js"
    asked = [url, plain(column_view(judged)), json.dumps(values)]
    taken = signed_in.evaluate(script, asked)
    assert [value for value, one in zip(values, taken, strict=True) if one != takes(value)] == []
    assert len(values) >= 1_000


@pytest.mark.parametrize(
    ("typed", "sent"),
    [
        ("1200,50", "1200.5"), ("1 200.50", "1200.5"), ("1.200,50", "1200.5"),
        ("1,200.50", "1200.5"), ("1,200,300", "1200300"), ("-.5", "-0.5"), ("007", "7"),
        ("9007199254740993", "9007199254740993"), ("9223372036854775807", None),
        ("-9223372036854775808", None), ("9223372036854775808", "error"), ("1e-400", "error"),
        ("0.1234567890123456789", "error"), ("1.00000000000000000001", "error"), ("1e21", "1e+21"),
        ("40111222333444555666777", "error"), ("0.10", "0.1"), ("1 2", "error"), ("\u22125", "-5"),
        ("1,200", "error"), ("abc", "error"), ("1.2.3", "error"), ("--1", "error"),
        ("1e999", "error"), ("", "null"),
    ],
)  # fmt: skip
def test_numbers_as_people_write_them(site: Site, signed_in: Page, typed: str, sent: str | None):
    """Commas and blanks are understood, what may mean two numbers is refused, digits are kept."""
    script = """async ([url, column, text]) => {
        const {read} = await import(url);
        const found = read(column, text, 1);
        return "error" in found ? "error" : JSON.stringify(found.value);
    }"""
    url = f"{site.url}/static/{files().hash}/values.js"
    column = plain(column_view(Column("n", "N", ColumnType.NUMBER)))
    assert signed_in.evaluate(script, [url, column, typed]) == (sent or typed)


@pytest.mark.parametrize("language", ["en-US", "de-DE"])
def test_the_page_reads_numbers_as_the_server(site: Site, browser: Browser, language: str):
    """Of a thousand texts both read the same numbers, and ask back the same ones. AP-46."""
    context = browser.new_context(locale=language)
    english = {"name": "wfcore_language", "value": "en", "url": site.url}
    context.add_cookies([english])
    page = context.new_page()
    page.goto(f"{site.url}/sign-in")
    digits = st.from_regex(r"-?[0-9]{1,3}([.,' ][0-9]{2,3}){1,3}", fullmatch=True)
    texts = _thousand(st.one_of(digits, digits, _NEARLY, st.floats().map(str)))
    read = _read(site, page, ColumnType.NUMBER, texts)
    wrong = [
        (text, one)
        for text, one in zip(texts, read, strict=True)
        if one != _says(text, one, language)
    ]
    assert wrong == []
    assert sum("? Write" in one for one in read) > 10
    context.close()


def _read(site: Site, page: Page, kind: ColumnType, texts: list[str]) -> list[str]:
    """What the page makes of each text in a column of that type: JSON, or what is wrong."""
    script = """async ([url, column, texts]) => {
        const {read} = await import(url);
        return texts.map((text) => {
            const found = read(column, text, null);
            return "error" in found ? found.error : JSON.stringify(found.value);
        });
    }"""
    url = f"{site.url}/static/{files().hash}/values.js"
    column = plain(column_view(Column("v", "V", kind)))
    return cast("list[str]", page.evaluate(script, [url, column, texts]))


@pytest.mark.parametrize("language", ["en-US", "de-DE", "sv-SE"])
def test_the_page_reads_dates_as_the_server(site: Site, browser: Browser, language: str):
    """Of a thousand texts both read the same dates, and ask back the same ones. AP-48."""
    context = browser.new_context(locale=language)
    english = {"name": "wfcore_language", "value": "en", "url": site.url}
    context.add_cookies([english])
    page = context.new_page()
    page.goto(f"{site.url}/sign-in")
    number = st.integers(0, 40).map(str)
    year = st.sampled_from(("0", "26", "0000", "0001", "1999", "2026", "9999"))
    written = st.tuples(
        *[st.one_of(number, number.map(lambda one: one.zfill(2)), year)] * 3,
        st.sampled_from(("-", "/", ".", ". ")),
        st.sampled_from(("", "", ".", " 0:00", "T00:00:00Z", " 12:00 AM", " 10:00", " 00.00.00")),
    ).map(lambda parts: parts[3].join(parts[:3]) + parts[4])
    likely = st.tuples(st.integers(1, 31), st.sampled_from("./-"), st.integers(1, 12)).map(
        lambda one: f"{one[0]}{one[1]}{one[2]}{one[1]}2026"
    )
    texts = _thousand(st.one_of(written, written, likely, _NEARLY))
    read = _read(site, page, ColumnType.DATE, texts)
    told = [_date_says(text, language) for text in texts]
    assert [one for one in zip(texts, read, told, strict=True) if one[1] != one[2]] == []
    assert any("? Write" in one for one in read) == (language != "de-DE")
    assert sum(one.startswith('"') for one in read) > 100
    context.close()


def _date_says(text: str, language: str) -> str:
    """What the page is to say."""
    if not text.strip():
        return "null"
    try:
        found = date_text(text, date_orders([language]))
    except Doubtful as doubt:
        return f"is {doubt.one} or {doubt.other}? Write {doubt.one} or {doubt.exact}"
    return "must be a date like 2026-12-31" if found is None else f'"{found}"'


def _says(text: str, page: str, language: str) -> str:
    """What the page is to say; where it is a number, as it writes it."""
    if not text.strip():
        return "null"
    try:
        number = decimal_text(text, decimal_signs([language]))
    except Doubtful as doubt:
        return f"is {doubt.one} or {doubt.other}? Write {doubt.one} or {doubt.exact}"
    if number is None:
        return "must be a number"
    if Decimal(number) != Decimal(str(float(number))) and not number.lstrip("-").isdigit():
        return "has more digits than can be stored"
    return page if Decimal(page) == Decimal(number) else number


def test_numbers_beyond_a_double_are_untouched(site: Site, signed_in: Page):
    """Rows without a key are sent whole: what was not edited goes back as it came."""
    world = site.world
    given = [{"n": 9_007_199_254_740_993, "m": 1}, {"n": 2**63 - 1, "m": 2}]
    columns = (Column("n", "N", ColumnType.NUMBER), Column("m", "M", ColumnType.NUMBER))
    step = ApprovalStep("review", "Large", groups=(GroupSpec("g", "G", given, columns),))
    execution = site.do(world.start(site.do(world.workflow(step))))
    site.do(world.run())
    listed = site.do(world.get(f"/api/v1/approvals/execution/{execution}")).json()
    id = listed["approvals"][0]["id"]
    signed_in.goto(f"{site.url}/approvals/{id}")
    bar(signed_in).wait_for()
    signed_in.get_by_label("M, 9007199254740993").fill("5")
    approve(signed_in)
    expect(signed_in.get_by_text("Approved by")).to_be_visible()
    approval = site.do(read_approval(world.services, OPERATOR, id))
    assert [dict(row) for row in approval.groups[0].items] == [{**given[0], "m": 5}, given[1]]
