"""The search: what is found, by whom, and how ⌘K and a page without scripts show it. PG-9."""

import re
from collections.abc import Callable

from playwright.sync_api import Browser, Page, expect

from tests.support.http_world import code
from wfcore.model.access import Principal
from wfcore.model.workflow import Variable
from wfcore.rules.searching import fits
from wfcore.usecases.executions.starting import start_execution

from .approval_case import Case, both
from .conftest import Site, enter
from .test_executions import Reader
from .test_operating import operator


def _found(reader: Reader, text: str) -> list[str]:
    """The addresses of the results."""
    page = reader.get(f"/search?q={text}").text.partition('id="found"')[2]
    return re.findall(r'<a [^>]*href="/([^"]+)"', page.partition("</main>")[0])


def _started(site: Site) -> tuple[str, str]:
    """A workflow, and an execution with a reference, an input, and a secret input."""
    world = site.world
    variables = {"city": Variable("city"), "token": Variable("token", secret=True)}
    flow = site.do(world.workflow(code(), name="Nightly report", variables=variables))
    started = site.do(
        start_execution(
            world.services,
            Principal(world.ann),
            flow,
            {"city": "Görlitz", "token": "c4nary"},
            reference="W48",
        )
    )
    return flow, started.execution_id


def test_each_kind_is_found_by_what_people_know(site: Site):
    """Workflows by name, executions by id, end, reference and input, approvals by title."""
    case, ann = Case(site, 2, **both()), Reader(site)
    flow, run = _started(site)
    assert _found(ann, "nightly REP")[:2] == [f"workflows/{flow}", f"workflows/{flow}/start"]
    assert _found(ann, run) == [f"executions/{run}"]
    assert f"executions/{run}" in _found(ann, "W48")
    assert f"executions/{run}" in _found(ann, run[-6:])
    assert f"executions/{run}" in _found(ann, "görlitz")
    assert f"approvals/{case.id}" in _found(ann, "payouts wait")
    assert _found(ann, "c4nary") == ["executions"]
    assert "Nothing fits." in ann.get("/search?q=c4nary").text


def test_nobody_finds_what_they_do_not_see(site: Site):
    """Another account finds none of it; people are found by operators alone. AC-3, AC-7."""
    flow, run = _started(site)
    site.do(site.world.account("eve"))
    eve = Reader(site, "eve")
    for text in ("nightly", run, run[-6:], "W48", "görlitz", "ann@example.org"):
        assert _found(eve, text) == ["executions"], text
    _, olga = operator(site)
    assert _found(olga, "ANN@") == [f"operate/people/{site.world.ann.id}"]
    assert f"workflows/{flow}" not in _found(olga, "nightly")


def test_pages_and_deeds_are_those_of_the_role(site: Site):
    """An approver finds the inbox; an owner what connects; an operator what the server needs."""
    Case(site, 1, **both())
    bob, ann, (_, olga) = Reader(site, "bob"), Reader(site), operator(site)
    assert set(_found(bob, "")) == {"inbox", "account"}
    assert "operate/webhooks/new" in _found(ann, "connect")
    assert "operate/people#invite" not in _found(ann, "")
    assert "operate/people#invite" in _found(olga, "invite")


def test_a_text_fits_by_its_words():
    """Every word, in any order and case."""
    assert fits("run PAY", "Payout run")
    assert not fits("run pays", "Payout run")
    assert fits("", "anything")


def test_ctrl_k_finds_and_leads(site: Site, signed_in: Page, accessible: Callable[[Page], None]):
    """A dialog as one types; arrows and Enter lead on, Escape closes; `/` opens it, too."""
    flow, _ = _started(site)
    signed_in.goto(f"{site.url}/overview")
    signed_in.keyboard.press("Control+k")
    dialog = signed_in.get_by_role("dialog", name="Search or do")
    expect(dialog.get_by_role("link", name="Inbox")).to_be_visible()
    accessible(signed_in)
    signed_in.keyboard.type("nightly")
    expect(dialog.get_by_role("link", name="Start Nightly report…")).to_be_visible()
    expect(dialog.get_by_role("link", name="Inbox")).to_have_count(0)
    signed_in.keyboard.press("ArrowDown")
    expect(dialog.get_by_role("link", name="Nightly report", exact=True)).to_be_focused()
    signed_in.keyboard.press("Escape")
    expect(dialog).to_be_hidden()
    signed_in.keyboard.press("/")
    expect(dialog).to_be_visible()
    signed_in.keyboard.type("nightly")
    expect(dialog.get_by_role("link", name="Start Nightly report…")).to_be_visible()
    signed_in.keyboard.press("Enter")
    signed_in.wait_for_url(f"**/workflows/{flow}")


def test_without_scripts_the_button_is_a_page(
    site: Site, browser: Browser, signed_in: Page, accessible: Callable[[Page], None]
):
    """The link in the frame leads to the page of the search."""
    _started(site)
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    enter(site, page)
    page.get_by_role("link", name="Search or do").first.click()
    page.get_by_role("searchbox").fill("nightly")
    page.get_by_role("button", name="Find").click()
    expect(page.get_by_role("link", name="Nightly report", exact=True)).to_be_visible()
    context.close()
    signed_in.goto(f"{site.url}/search?q=nightly")
    accessible(signed_in)
