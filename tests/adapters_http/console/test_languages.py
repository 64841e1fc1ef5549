"""Pages in the reader's language: chosen, else the browser's, else English."""

import ast
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

import httpx
import pytest
from jinja2 import Environment
from playwright.sync_api import Browser, expect

import adapters_http.console
from adapters_http.app import HttpConfig
from adapters_http.console import formats, language
from adapters_http.console.language import tag_for
from adapters_http.console.sentences import sentence
from adapters_http.console.static_files import script_words
from tests.support.http_world import World, a_world
from tests.wfcore.rules.explain.test_explained_words import ENDS, STEPS, of
from wfcore.model.access import Tier
from wfcore.model.execution import (
    ExecutionStatus as S,
)
from wfcore.model.execution import (
    PendingFailure,
    ReasonCode,
    StatusReason,
    TriggerSource,
)
from wfcore.model.explanation import Line, Why
from wfcore.model.node import Node
from wfcore.model.trigger import Chain, Pause
from wfcore.rules.explain.context import ExplanationContext
from wfcore.rules.explain.queue import GroupAhead, Queue
from wfcore.rules.phrase import Phrase, translated
from wfcore.rules.triggers.trigger import SAYS, standing, why_paused
from wfcore.testing import builders as make
from wfcore.testing.builders import NOW
from wfcore.wire.languages import translations

from .approval_case import Case, bar, cell, show
from .conftest import Site, arrived

FOLDER = Path(adapters_http.console.__file__).parent
ATTRIBUTES = {"aria-label", "title", "placeholder", "alt"}
NAMES = {"wfcore", "UTC", "CSV", "USD", "Esc", "Enter", "Ctrl", "exec_", "English", "Deutsch"}
NAMES |= {"true", "false", "required", "approval"}
"""What is the same in every language, beside code and keys; JSON, an attribute, an event."""


@pytest.mark.parametrize(
    ("chosen", "accepted", "tag"),
    [
        (None, None, "en"),
        (None, "de-AT,de;q=0.9,en;q=0.8", "de-AT"),
        (None, "fr,en-GB;q=0.8,de;q=0.9", "de"),
        ("en", "de-AT,en-GB;q=0.1", "en-GB"),
        ("de", "en-US", "de"),
        ("xx", "fr", "en"),
        (None, "de;q=0, en;q=0.5", "en"),
        (None, 'de;q=x,"><script>,en', "de"),
        (None, "*", "en"),
    ],
)
def test_whose_language(chosen: str | None, accepted: str | None, tag: str):
    """What was chosen here goes before what the browser says; the region is the browser's."""
    assert tag_for(chosen, accepted) == tag


@pytest.fixture
async def world(tmp_path: Path):
    async with a_world(tmp_path, HttpConfig(console=True)) as made:
        yield made


async def test_a_page_speaks_the_readers_language(world: World):
    """By the header, by the choice in the menu, and errors too; two readers at once differ."""
    session = await world.sign_in()
    german = {"Accept": "text/html", "Accept-Language": "de-CH, de;q=0.9"}
    page = await world.http.get("/inbox", headers={**session, **german})
    assert '<html lang="de-CH"' in page.text
    assert "Nichts wartet auf Sie." in page.text
    assert "Nothing waits for you." in (await world.http.get("/inbox", headers=session)).text
    assert "Nicht gefunden" in (await world.http.get("/none", headers={**session, **german})).text
    ours = {**session, "Accept": "text/html", "Origin": world.url}
    form = {"theme": "", "times": "", "language": "de", "next": "/inbox"}
    kept = await world.http.post("/settings", data=form, headers=ours)
    assert "wfcore_language=de; Path=/; Max-Age=31536000; SameSite=Lax" in str(kept.headers)
    both = {**session, "Cookie": f"{session['Cookie']}; wfcore_language=de"}
    assert '<html lang="de"' in (await world.http.get("/inbox", headers=both)).text
    bad = await world.http.post("/settings", data={**form, "language": "xx"}, headers=ours)
    assert "wfcore_language=; Path=/; Max-Age=0; SameSite=Lax" in str(bad.headers)


@pytest.mark.parametrize(
    ("chosen", "kept"),
    [
        (("light", "", "en", ""), ("light", "", "en", "")),
        (("dark", "utc", "de", "comfortable"), ("dark", "utc", "de", "comfortable")),
        (("UTC", "dark", "utc", "dense"), ("", "", "", "")),
        (("dark; Domain=example.org", "utc\r\nX: y", "de;", "x;"), ("", "", "", "")),
    ],
)
async def test_how_pages_look_is_kept_for_a_year(
    world: World, chosen: tuple[str, ...], kept: tuple[str, ...]
):
    """Only what there is to choose; anything else is forgotten, and nothing else is said."""
    ours = {**await world.sign_in(), "Accept": "text/html", "Origin": world.url}
    form = dict(zip(("theme", "times", "language", "density"), chosen, strict=True))
    answer = await world.http.post(
        "/settings", data={**form, "next": "/operate?page=2"}, headers=ours
    )
    assert (answer.status_code, answer.headers["location"]) == (303, "/operate?page=2")
    assert answer.headers.get_list("set-cookie") == [
        f"wfcore_{name}={value}; Path=/; Max-Age={31_536_000 if value else 0}; SameSite=Lax"
        for name, value in zip(form, kept, strict=True)
    ]


async def test_every_page_says_how_long_it_took(world: World):
    """`Server-Timing`, which browsers show beside the request. B1."""
    session = await world.sign_in()
    answer: httpx.Response = await world.http.get("/inbox", headers=session)
    assert re.fullmatch(r"total;dur=\d+\.\d", answer.headers["server-timing"])


def test_sizes_are_written_as_the_reader_writes_numbers():
    """In the largest unit that fits, never more than there is, with the reader's comma."""
    english = [formats.size(count) for count in (0, 999, 1_000, 999_999, 12_345_678, 5 * 10**15)]
    assert english == ["0 B", "999 B", "1.0 kB", "999.9 kB", "12.3 MB", "5,000.0 TB"]
    token = language._SIGNS.set(",.")
    try:
        assert formats.size(1_500) == "1,5 kB"
    finally:
        language._SIGNS.reset(token)


def test_no_template_formats_numbers_by_itself():
    """The filters of the template language know English alone."""
    folder = Path(language.__file__).parent / "templates"
    assert [one.name for one in folder.glob("*.html") if "filesizeformat" in one.read_text()] == []


def test_an_approval_in_german(browser: Browser, site: Site):
    """Words of scripts, numbers and dates too; a comma stays what a German types."""
    case = Case(site, 3)
    context = browser.new_context(locale="de-DE")
    page = context.new_page()
    page.goto(site.link())
    page.get_by_role("button", name="Weiter als").click()
    arrived(page)
    show(case, page)
    cell(page, "P-1001", "Amount").fill("1.234")
    expect(page.get_by_text("Schreiben Sie 1234 oder 1,2340").first).to_be_visible()
    cell(page, "P-1001", "Amount").fill("1,2340")
    expect(page.get_by_text("gelesen als 1,234")).to_be_visible()
    cell(page, "P-1001", "Amount").fill("1200,5")
    expect(bar(page)).to_contain_text("3 von 3 Zeilen · 1 geändert")
    expect(bar(page)).to_contain_text("1.")
    cell(page, "P-1002", "Hold").check()
    bar(page).get_by_role("button", name="3 prüfen und freigeben").click()
    expect(page.get_by_role("dialog")).to_contain_text("P-1002 Hold nein ja")
    page.get_by_role("dialog").get_by_role("button", name="3 Zeilen freigeben").click()
    expect(page.get_by_role("heading", name="Freigegeben von")).to_be_visible()
    assert case.now().groups[0].items[1]["amount"] == 1200.5
    context.close()


def _between_steps() -> Iterator[Line]:
    """What is said of an execution of which no step has begun, is interrupted, or will fail."""
    due, asked = make.execution(), make.execution(capabilities=("label:gpu",))
    held = [make.execution(f"exec_{n}", status=S.RUNNING, worker="w") for n in range(3)]
    steps = make.definition(make.code_step("a"), on_failure=(make.code_step("tidy"),))
    here = Node("w", "host", 4, NOW, able=("language:python",))
    yield from of(due, ExplanationContext(steps, serving=False))
    yield from of(due, ExplanationContext(queue=Queue(held, 3)))
    yield from of(due, ExplanationContext(queue=Queue(held, 4)))
    yield from of(due, ExplanationContext(group=GroupAhead(3, 2, held)))
    yield from of(asked, ExplanationContext(queue=Queue((), 4, nodes=(here,))))
    begun = {"status": S.RUNNING, "due_at": None}
    why = StatusReason(ReasonCode.STEP_FAILED, "a")
    yield from of(make.execution(**begun, worker="w"), ExplanationContext(steps))
    yield from of(
        make.execution(**begun, failing=PendingFailure("!", why)), ExplanationContext(steps)
    )
    for source in (TriggerSource.MANUAL, TriggerSource.WEBHOOK):
        yield from of(make.execution(status=S.INTERRUPTED, trigger_source=source))


LINES = [
    *(
        line
        for run, approvals, _ in ENDS
        for line in of(run, ExplanationContext(approvals=approvals))
    ),
    *(line for run, around, _ in STEPS for line in of(run, around)),
    *_between_steps(),
]


def test_every_cause_has_a_sentence_below():
    """None is left out of the check of sentences."""
    assert {line.code for line in LINES} == set(Why)


@pytest.mark.parametrize("line", LINES, ids=lambda line: line.text[:40])
def test_sentences_name_no_id_and_speak_german(line: Line):
    """Ids are links with words, instants times, in German too; an error stays as it is. XP-1."""
    pieces = sentence(line, "", "/executions/exec_1").pieces
    english = "".join(piece.text for piece in pieces if not piece.at)
    token = language._SPOKEN.set("de")
    try:
        german = "".join(piece.text for piece in sentence(line).pieces if not piece.at)
    finally:
        language._SPOKEN.reset(token)
    for said in (english, german):
        assert not re.search(r"(exec|appr)_\d|\d{4}-\d\d-|[{}`]", said), said
    told = isinstance(line.text, Phrase) or line.required is not None
    assert (german != english) is told
    assert sentence(line).until == line.until
    if line.until and line.required is None and line.code is not Why.WILL_RESUME:
        assert line.until in [piece.at for piece in pieces]


STANDINGS = (
    *SAYS.values(),
    why_paused(Pause(NOW, failures=1)),
    why_paused(Pause(NOW, failures=3)),
    standing(make.trigger(spec=Chain("Import")), make.account(), False, None).why,
    standing(make.trigger(), make.account(plan=Tier.PRO), True, None).why,
)


@pytest.mark.parametrize("why", STANDINGS)
def test_reasons_of_triggers_speak_german(why: str):
    """A phrase whose template is translated, with the same facts. SH-7, SH-10."""
    assert isinstance(why, Phrase)
    german = translated(why, translations("de").gettext)
    assert german != why
    assert all(str(fact) in german for fact in why.facts.values())


def test_scripts_have_their_words():
    """Every text that a script shows is in the catalogue; English needs none."""
    assert script_words("en") == {}
    german = script_words("de")
    texts = {
        text
        for path in (FOLDER / "static").glob("*.js")
        for text in re.findall(r'\b_\("((?:[^"\\]|\\.)*)"', path.read_text())
    }
    same = {"Passkey", "{count} h", "{count} min", "{count} s", "in {length}"}
    assert texts - set(german) <= same


class _Bare(HTMLParser):
    """Collects words that stand in HTML, in text or in attributes that are read out."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self._code = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._code += tag in ("code", "kbd", "pre", "script", "style")
        self.found += [value for name, value in attrs if name in ATTRIBUTES and value]

    def handle_endtag(self, tag: str) -> None:
        self._code -= tag in ("code", "kbd", "pre", "script", "style")

    def handle_data(self, data: str) -> None:
        if not self._code:
            self.found.append(data)


def _outside(text: str) -> Iterator[str]:
    """Words of a template that go through no catalogue: what is left without its tags."""
    kept, inside = list[str](), False
    for _, kind, value in Environment(extensions=["jinja2.ext.i18n"]).lex(text):
        if kind == "name" and value in ("trans", "endtrans"):
            inside = value == "trans"
        elif kind == "data" and not inside:
            kept.append(value)
        elif kind == "variable_begin":
            kept.append("0")
    parser = _Bare()
    parser.feed("".join(kept))
    for found in parser.found:
        found = re.sub(r'[\w-]+="[^"]*"', "", found)  # attributes that a block or macro writes
        yield from (word for word in re.findall(r"[A-Za-z_]{2,}", found) if word not in NAMES)


@pytest.mark.parametrize("path", sorted((FOLDER / "templates").iterdir()), ids=lambda one: one.name)
def test_no_text_is_outside_the_catalogue(path: Path):
    """What a template says stands in `trans`, or comes from a fact."""
    assert list(_outside(path.read_text())) == []


def test_the_search_for_such_texts_finds_them():
    """A word in the text, and one in a label; not what is translated, nor code."""
    html = '<p title="Hello">{% trans %}fine{% endtrans %} bad {{ x }} <code>ok</code></p>'
    assert sorted(_outside(html)) == ["Hello", "bad"]


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.py")), ids=lambda one: one.name)
def test_modules_mark_what_they_hold(path: Path):
    """`_` at import would speak one language for good: what a module holds is marked by `N_`."""
    tree = ast.parse(path.read_text())
    inside = {
        call
        for one in ast.walk(tree)
        if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        for call in ast.walk(one)
    }
    early = [
        call.lineno
        for call in ast.walk(tree)
        if isinstance(call, ast.Call)
        and isinstance(call.func, ast.Name)
        and call.func.id == "_"
        and call not in inside
    ]
    assert early == []
