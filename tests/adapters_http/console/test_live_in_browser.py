"""Pages that are live and true: what others do is seen, and what the reader does stays."""

from typing import Any

import pytest
from attrs import evolve
from playwright.sync_api import Page, expect

from tests.support.http_world import code
from wfcore.model.access import OPERATOR
from wfcore.model.trigger import Schedule
from wfcore.model.workflow import Branch, ParallelStep, Retry
from wfcore.ports.runtime import StepEnd
from wfcore.usecases.executions.worker import keep_lines
from wfcore.usecases.workflows.triggers import pause_trigger
from wfcore.usecases.workflows.workflows import read_workflow

from .approval_case import Case
from .conftest import Site, painted
from .execution_case import Runs, give_calendar


def test_a_row_that_is_not_the_newest_is_renewed(site: Site, signed_in: Page):
    """A run that ends is said to have ended, in all its cells, whatever began after it. PG-7."""
    runs = Runs(site, code("only"))
    older = runs.play(runs.start(), stay=("only",))
    runs.start()
    signed_in.goto(f"{site.url}/executions")
    row = signed_in.locator(f"#{older}")
    row.get_by_role("checkbox").check()
    expect(row).to_contain_text("Running")
    runs.finish(older, "only")
    expect(row).to_contain_text("Completed")
    expect(row).to_contain_text("1/1")
    expect(row.locator("td[data-title=Took]")).to_contain_text("ms")
    expect(row.get_by_role("checkbox")).to_be_checked()
    expect(signed_in.locator(".pills")).to_contain_text("Completed 1")


def test_what_others_decide_leaves_the_inbox(site: Site, signed_in: Page):
    """The row keeps its place, struck through, cannot be selected, and is counted no more."""
    mine, theirs = Case(site, 0), Case(site, 0)
    signed_in.goto(f"{site.url}/inbox")
    row, places = signed_in.locator(f"#{theirs.id}"), signed_in.locator(".places")
    row.get_by_role("checkbox").check()
    expect(places).to_contain_text("Inbox 2")
    theirs.decide(site.world.ann)
    expect(signed_in.get_by_role("link", name="1 gone, show")).to_be_visible()
    expect(places).to_contain_text("Inbox 1")
    expect(signed_in).to_have_title("Inbox 1 · wfcore")
    expect(row.get_by_role("checkbox")).to_be_disabled()
    expect(signed_in.locator("#count")).to_be_empty()
    expect(signed_in.locator(f"#{mine.id}").get_by_role("checkbox")).to_be_enabled()
    signed_in.get_by_role("link", name="1 gone, show").click()
    expect(row).to_have_count(0)


def test_every_page_counts_what_waits(site: Site, signed_in: Page):
    """The count beside "Inbox" is on all pages, and is current where a list is open."""
    case = Case(site, 0)
    id = Runs(site, code("only")).start()
    for path in (f"/executions/{id}", "/workflows", "/operate/keys", "/executions"):
        signed_in.goto(site.url + path)
        expect(signed_in.locator(".places")).to_contain_text("Inbox 1")
    case.decide(site.world.ann)
    expect(signed_in.locator(".places .count")).to_have_count(0)


def test_every_part_of_the_overview_is_renewed(site: Site, signed_in: Page):
    """What fails and who is waited for are current; a table that the reader opened stays open."""
    case, runs = Case(site, 0), Runs(site, code("only"))
    runs.play(runs.start())
    signed_in.goto(f"{site.url}/overview")
    fails = signed_in.locator("section[aria-labelledby=fails-title]")
    waits = signed_in.get_by_role("region", name="Who is waited for")
    expect(fails).to_contain_text("Nothing failed")
    expect(waits.get_by_role("listitem")).to_have_count(1)
    signed_in.get_by_text("As a table").click()
    runs.play(runs.start(), {"only": StepEnd(error="no score")})
    expect(fails).to_contain_text("no score")
    case.decide(site.world.ann)
    expect(waits).to_contain_text("Nobody is waited for.")
    expect(signed_in.get_by_role("columnheader", name="Hour")).to_be_visible()


def test_a_trigger_that_is_paused_is_said_at_once(site: Site, signed_in: Page):
    """Each part of the schedules' page is current, not only the first. SH-10."""
    give_calendar(site)
    flow = site.do(site.world.workflow(triggers=(Schedule("0 * * * *"),)))
    services = site.world.services
    id = site.do(read_workflow(services, OPERATOR, flow)).triggers[0].trigger.id
    signed_in.goto(f"{site.url}/operate/schedules")
    missed = signed_in.get_by_role("region", name="Missed, refused, or waiting")
    expect(missed).to_contain_text("None.")
    site.do(pause_trigger(services, OPERATOR, id))
    expect(missed).to_contain_text("It is paused")
    expect(signed_in.locator(f"#{id}")).to_contain_text("paused")


def test_what_is_typed_and_copied_outlasts_new_sections(site: Site, signed_in: Page, context: Any):
    """
    An output and a result that appear leave alone what is typed below them, its focus, its place
    on the screen, and the buttons that copy. R4, R8.
    """
    context.grant_permissions(["clipboard-read", "clipboard-write"])
    runs = Runs(site, *(code(f"s{n}") for n in range(30)))
    id = runs.play(runs.start(), stay=("s29",))
    signed_in.goto(runs.url(id))
    field = signed_in.get_by_label("Compare with")
    field.fill("exec_typed")
    signed_in.evaluate("scrollTo(0, document.body.scrollHeight)")
    signed_in.evaluate("window.kept = document.activeElement")
    top = "document.getElementById('with').getBoundingClientRect().top"
    stood = signed_in.evaluate(top)
    runs.finish(id, "s29", StepEnd({"lines": ["a", "b", "c"]}))
    expect(signed_in.get_by_role("heading", name="Result")).to_be_attached()
    painted(signed_in)
    expect(field).to_have_value("exec_typed")
    assert signed_in.evaluate("kept === document.activeElement && kept.isConnected")
    assert abs(signed_in.evaluate(top) - stood) <= 1
    buttons = signed_in.get_by_role("button", name="Copy")
    expect(buttons).to_have_count(3)
    for number in range(3):
        expect(buttons.nth(number)).to_be_visible()
    buttons.first.click()
    assert signed_in.evaluate("navigator.clipboard.readText()") == id
    ids = "[...document.getElementById('live').children].filter((one) => !one.id).length"
    assert signed_in.evaluate(ids) == 0


def test_lines_of_what_nobody_monitors_are_followed(site: Site, signed_in: Page):
    """What a running step writes is on its page, whoever started it. EX-28."""
    runs = Runs(site, code("only"))
    id = runs.play(runs.start(), stay=("only",))
    signed_in.goto(f"{runs.url(id)}/steps/only")
    expect(signed_in.get_by_text("No lines have been written yet.")).to_be_visible()
    said = (("stdout", "one\ntwo\n"), ("stderr", "x" * 900_000 + "\n"))
    site.do(keep_lines(site.world.services, runs.lease(id), "only", said, 0))
    lines = signed_in.locator(".lines")
    expect(lines.locator(".lt").nth(1)).to_have_text("two")
    assert lines.evaluate("one => one.textContent.length") < 70_000
    expect(lines).to_contain_text("more characters")
    whole = signed_in.request.get(f"{runs.url(id)}/lines/only")
    assert whole.text() == "".join(text for _, text in said)


@pytest.mark.parametrize("width", [1280, 390])
def test_a_wide_flow_is_seen_whole(site: Site, signed_in: Page, width: int):
    """
    Nine branches fit their card, and are scaled on a phone; there, and in its actual size, the
    picture scrolls to what runs.
    """
    branches = tuple(
        Branch(f"b{n}", tuple(code(f"s{n}{part}") for part in "abcdef")) for n in range(9)
    )
    runs = Runs(site, ParallelStep("fork", branches))
    id = runs.play(runs.start(), stay=("s8a",))
    signed_in.set_viewport_size({"width": width, "height": 900})
    signed_in.goto(runs.url(id))
    outside = """() => {
        const card = document.querySelector(".scroll").getBoundingClientRect();
        return [...document.querySelectorAll("svg.flow a.box")].filter((one) => {
            const { left, right } = one.getBoundingClientRect();
            return left < card.left || right > card.right;
        }).map((one) => one.getAttribute("aria-label"));
    }"""
    first = signed_in.evaluate(outside)
    assert first == [] if width > 720 else not [name for name in first if "Running" in name]
    signed_in.get_by_text("100 %").click()
    painted(signed_in)
    cut = signed_in.evaluate(outside)
    assert cut
    assert not [name for name in cut if "Running" in name]


def test_each_attempt_of_a_step_is_a_bar(site: Site, signed_in: Page):
    """Of a step that was tried three times: two that failed, and the one that runs. XP-5."""
    retry = Retry(attempts=3, delay_ms=1_000)
    runs = Runs(site, evolve(code("fetch"), retry=retry))
    id = runs.start()
    for _ in range(2):
        runs.play(id, {"fetch": StepEnd(None, error="no answer")})
        site.world.clock.advance(2_000)
    runs.play(id, stay=("fetch",))
    signed_in.goto(runs.url(id))
    bars = signed_in.locator("#step-fetch .bars rect:not(.rail, .cut)")
    kinds = bars.evaluate_all("(all) => all.map((one) => one.className.baseVal)")
    assert kinds == ["failed", "failed", "running"]
    places = bars.evaluate_all("(all) => all.map((one) => one.x.baseVal.value)")
    assert places == sorted(set(places))
