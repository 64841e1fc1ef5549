"""The page of one execution: the chosen step in place, its error, its log and its history."""

import re
from collections.abc import Callable

from playwright.sync_api import Browser, Page, expect

from adapters_http.console.values import padding
from tests.support.http_world import code
from wfcore.model.workflow import LoopStep
from wfcore.ports.runtime import StepEnd

from .conftest import Site, enter, painted
from .execution_case import Runs
from .month_end import CAUSE, month_end
from .test_executions import Reader


def test_the_verdict_comes_first(site: Site, signed_in: Page, accessible: Callable[[Page], None]):
    """
    Name, state and step stand in the heading, the cause in the sentence below; facts lead to the
    version and to the last good run. Accessible in all looks. B3.
    """
    id = month_end(site)
    signed_in.goto(f"{site.url}/executions/{id}")
    heading = signed_in.get_by_role("heading", level=1)
    expect(heading).to_have_text(re.compile(r"Month end close\s+Failed at reconcile"))
    expect(signed_in.locator(".explain")).to_contain_text(CAUSE)
    expect(signed_in.locator(".explain")).not_to_contain_text("Traceback")
    facts = signed_in.locator("#facts")
    for name in ("Version 1", "compare"):
        expect(facts.get_by_role("link", name=name)).to_be_visible()
    expect(signed_in.get_by_role("link", name="Redrive from reconcile…")).to_be_visible()
    expect(signed_in.get_by_role("link", name="Start again…")).to_be_visible()
    accessible(signed_in)


def test_a_step_is_chosen_in_place(site: Site, signed_in: Page):
    """A press on a step shows its details beside the flow, without loading the page anew. B6."""
    id = month_end(site)
    signed_in.goto(f"{site.url}/executions/{id}")
    signed_in.evaluate("window.kept = document.getElementById('flow')")
    signed_in.locator("svg.flow a[href$='step=merge']").click()
    expect(signed_in.get_by_role("heading", name="merge")).to_be_visible()
    expect(signed_in).to_have_url(re.compile(r"\?step=merge"))
    assert signed_in.evaluate("kept.isConnected && kept === document.getElementById('flow')")
    output = signed_in.locator("#step table.grid")
    expect(output.get_by_role("columnheader")).to_have_text(["account", "bookings", "sum"])
    signed_in.go_back()
    expect(signed_in.locator("#step")).to_contain_text(CAUSE)


def test_the_page_of_a_step_needs_no_scripts(browser: Browser, site: Site):
    """Step, its parts and the lines of all steps are addresses, which work without scripts. B5."""
    id = month_end(site)
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    enter(site, page)
    page.goto(f"{site.url}/executions/{id}?step=reconcile")
    step = page.locator("#step")
    expect(step.locator(".source .hit")).to_contain_text("raise NoPartnerError(missing)")
    step.get_by_role("link", name="Attempts").click()
    expect(step.locator(".tries > li")).to_have_count(2)
    page.get_by_role("link", name="All steps").click()
    expect(page.get_by_role("link", name="All steps")).to_have_attribute("aria-current", "true")
    context.close()


def test_the_log_says_how_attempts_ended(site: Site):
    """
    Before the lines of the second attempt stands the end of the first, with the pause; the line
    with the cause is marked, the other lines of the traceback are not; colours are kept. EX-28.
    """
    page = Reader(site).get(f"/executions/{month_end(site)}").text
    log = page.partition('id="log"')[2].partition("</section>")[0]
    marks = re.findall(r'class="mark">.*?class="lt">(.*?)</span></li>', log)
    assert [mark.partition(":")[0] for mark in marks] == ["Attempt 1 of 2", "Attempt 2 of 2"]
    assert "tried again after" in marks[0]
    assert "the execution failed" in marks[1]
    assert all(CAUSE in mark for mark in marks)
    assert re.findall(r'class="stderr hit">.*?"lt">([^<]*)', log) == [CAUSE, CAUSE]
    assert '<span class="good">✓</span>' in log


def test_long_lines_are_wrapped_or_not(site: Site, signed_in: Page):
    """A press decides whether a line is wrapped; it needs no scripts. EX-28."""
    runs = Runs(site, code("only"))
    long = StepEnd("done", lines=(("stdout", "x" * 1_500 + "\n"),))
    signed_in.goto(runs.url(runs.play(runs.start(), {"only": long})))
    line = signed_in.locator(".lines .lt").last
    wrapped = line.evaluate("one => one.offsetHeight")
    signed_in.get_by_text("Wrap").click()
    assert line.evaluate("one => one.offsetHeight") < wrapped
    assert signed_in.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_a_log_that_grows_is_followed(site: Site, signed_in: Page):
    """The newest line stays in view while *Follow* is on, and the log stays put when it is off."""
    runs = Runs(site, *(code(f"s{number}") for number in range(4)))
    lines = tuple(("stdout", f"line {number}\n") for number in range(45))
    end, id = StepEnd("done", lines=lines), runs.start()
    runs.play(id, {"s0": end}, stay=("s1",))
    signed_in.goto(runs.url(id))
    place = signed_in.locator(".lines")
    at_end = "one => one.scrollHeight - one.scrollTop - one.clientHeight < 4"
    runs.finish(id, "s1", end)
    expect(place.locator("li")).to_have_count(90)
    painted(signed_in)
    assert place.evaluate(at_end)
    signed_in.get_by_text("Follow").click()
    runs.play(id, {"s2": end}, stay=("s3",))
    expect(place.locator("li")).to_have_count(135)
    painted(signed_in)
    assert not place.evaluate(at_end)


def test_the_history_is_folded_by_steps(site: Site):
    """
    Events of a step, and of the steps inside of it, are one sentence that opens. It says what
    became of the step, and how often it was begun.
    """
    page = Reader(site).get(f"/executions/{month_end(site)}").text
    history = page.partition('id="history"')[2]
    entries = re.findall(r'<li id="(?:event|entry)-[\w-]+".*?>.*?<span>(.*?)</span>', history)
    heads = [re.sub("<[^>]+>", "", one) for one in entries]
    assert heads[:2] == ["Failed at reconcile", "reconcile failed · begun 2 times"]
    assert "pull completed" in heads
    assert heads[-1] == "Accepted"


def test_marks_of_the_axis_are_round(site: Site):
    """The axis has marks at round times, and each bar says its attempt, state and length. XP-3."""
    page = Reader(site).get(f"/executions/{month_end(site)}").text
    axis = page.partition('class="axis"')[2].partition("</li>")[0]
    assert re.findall(r">([^<]+)</text>", axis)[:2] == ["0", "+5 s"]
    assert re.findall(r"<title>(Attempt \d of 2: \w+, [\d.]+ s)", page) == [
        "Attempt 1 of 2: Failed, 2.7 s",
        "Attempt 2 of 2: Failed, 2.7 s",
    ]


def test_rounds_of_a_loop_stay_in_place(site: Site, signed_in: Page):
    """A round of a running loop that is chosen has an address, and the page shows its item."""
    loop = LoopStep("each", ["de", "fr"], "country", (code("one"),))
    runs = Runs(site, loop)
    id = runs.play(runs.start(), stay=("each.1.one",))
    signed_in.goto(runs.url(id) + "?step=each.1.one&show=inputs")
    expect(signed_in.locator("#step pre")).to_have_text("fr")


def test_figures_are_aligned_at_the_point(site: Site):
    """Unseen digits follow the shorter numbers of a column; other columns have none."""
    page = Reader(site).get(f"/executions/{month_end(site)}?step=merge").text
    cells = re.findall(r'<td class="num"(?: data-pad="([^"]+)")?>([^<]+)', page)
    assert cells == [("", "3120"), ("0", "48211.5"), ("", "1098"), ("", "-917.25")]
    rows = [{"n": 3}, {"n": 1.25}, {"n": "x"}, {"m": 1}, {"n": True}]
    assert padding(rows, "n") == [".00", "", "", "", ""]
