"""Executions in a real browser: every state, following live, by keyboard, and without scripts."""

import re
from collections.abc import Callable

from playwright.sync_api import Browser, Page, expect

from tests.support.http_world import code
from wfcore.model.access import OPERATOR
from wfcore.model.workflow import LoopStep
from wfcore.ports.runtime import StepEnd
from wfcore.usecases.executions.executions import read_execution

from .conftest import Site, enter, painted
from .execution_case import FAILED, Runs, in_every_state

OUT_OF_SIGHT = """() => {
    const parts = ["h1 .chip", ".explain", ".head"];
    const found = parts.map((part) => [part, document.querySelector(part)]);
    const box = (one) => one.getBoundingClientRect();
    return found.flatMap(([part, one], at) => {
        if (!one?.checkVisibility()) return [part + " is not there"];
        const { left, right, top, bottom, width, height } = box(one);
        const on = document.elementFromPoint(left + width / 2, top + height / 2);
        const before = at && box(found[at - 1][1]).bottom;
        return [
            left < 0 || right > innerWidth || bottom > innerHeight ? " is cut off" : "",
            one.contains(on) ? "" : " lies below " + on?.outerHTML.slice(0, 60),
            top < before ? " overlaps what comes before it" : "",
            one.scrollWidth > Math.ceil(width) ? " is wider than its box" : "",
        ].filter(Boolean).map((fault) => part + fault);
    });
}"""
"""What of the first things of the page cannot be seen without scrolling, or not well."""


def test_every_state_has_an_accessible_page(
    site: Site, signed_in: Page, accessible: Callable[[Page], None]
):
    """Each status of the machine, light, dark, wide and narrow, its word in the title. B3."""
    states = in_every_state(Runs(site))
    for state, id in states.items():
        signed_in.goto(f"{site.url}/executions/{id}")
        word = "fraud_model failed" if state == "failed" else state
        expect(signed_in).to_have_title(re.compile(word, re.IGNORECASE))
        if state in ("failed", "waiting", "running"):
            accessible(signed_in)
    signed_in.goto(f"{site.url}/executions")
    accessible(signed_in)


def test_every_state_has_a_picture_of_its_own(site: Site, signed_in: Page):
    """Title, first sentence and flow are seen at once, uncovered, and no two states look alike."""
    states = in_every_state(Runs(site))
    for width, scheme in ((1280, "light"), (390, "dark")):
        signed_in.set_viewport_size({"width": width, "height": 1000})
        signed_in.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
        looks = {"h1 .chip": set[bytes](), "svg.flow": set[bytes]()}
        for state, id in states.items():
            signed_in.goto(f"{site.url}/executions/{id}")
            assert signed_in.evaluate(OUT_OF_SIGHT) == [], (state, width)
            for part, seen in looks.items():
                seen.add(signed_in.locator(part).screenshot(animations="disabled"))
        assert {part: len(seen) for part, seen in looks.items()} == dict.fromkeys(looks, 7), width


def test_steps_previews_and_comparisons_are_accessible(site: Site, signed_in: Page, accessible):
    """A failed step, rounds, two runs beside each other; what a deed means, and what it did. B3."""
    runs = Runs(site)
    good, bad = runs.play(runs.start()), runs.play(runs.start(), FAILED)
    going = runs.play(runs.start(), stay=("collect",))
    for path in (f"{bad}/steps/fraud_model", f"{good}/steps/bank_limit", f"{bad}/compare/{good}"):
        signed_in.goto(f"{site.url}/executions/{path}")
        accessible(signed_in)
    for deed, others in (("cancel", (good, going)), ("redrive", (bad, going))):
        chosen = "&".join(f"id={id}" for id in others)
        signed_in.goto(f"{site.url}/executions/{deed}?{chosen}")
        accessible(signed_in)
        signed_in.get_by_role("button", name=f"{deed.capitalize()} 2 executions").click()
        expect(signed_in.get_by_role("heading", name="What was done")).to_be_visible()
        accessible(signed_in)


def test_what_comes_after_a_failure_is_shown(site: Site, signed_in: Page, accessible):
    """The steps of `onFailure` below the others, under that word, in the picture and the list."""
    runs = Runs(site, code("pay"), on_failure=(code("undo"), code("tell")))
    id = runs.play(runs.start(), {"pay": StepEnd(error="no money")}, stay=("tell",))
    signed_in.goto(runs.url(id))
    expect(signed_in.locator(".explain")).to_contain_text("It will fail after")
    boxes = signed_in.locator("svg.flow a")
    heights = {
        name: signed_in.locator(f"svg.flow a[href$='={name}'] rect").bounding_box()["y"]  # type: ignore[index]
        for name in ("pay", "undo", "tell")
    }
    word = signed_in.locator("svg.flow text.label", has_text="onFailure").bounding_box()
    assert word is not None
    assert heights["pay"] < word["y"] < heights["undo"] < heights["tell"]
    expect(boxes).to_have_count(3)
    steps = signed_in.locator("ol.steps > li")
    expect(steps).to_contain_text(["pay", "onFailure", "undo", "tell"])
    accessible(signed_in)
    runs.finish(id, "tell")
    expect(signed_in).to_have_title("✕ Payout run: pay failed · wfcore")


def test_a_page_follows_to_the_end(site: Site, signed_in: Page):
    """A step that ends, a question, the end: the page says what the API says, and stops. 5.5."""
    runs = Runs(site, code("first"), code("second"))
    id = runs.play(runs.start(), stay=("first",))
    signed_in.goto(runs.url(id))
    expect(signed_in.locator("#says")).to_have_text("Live: this page updates by itself.")
    runs.finish(id, "first")
    box = signed_in.locator("svg.flow a").first
    expect(box).to_have_attribute("aria-label", re.compile("first bash .*, Completed"))
    runs.play(id)
    expect(signed_in.get_by_role("heading", level=1)).to_contain_text("Completed")
    expect(signed_in).to_have_title("✓ Payout run: Completed · wfcore")
    expect(signed_in.locator("#says")).to_be_empty()


def test_what_the_reader_touches_stays(site: Site, signed_in: Page):
    """Focus, scroll and open details survive fifty changes of the page. R4."""
    loop = LoopStep("each", list(range(50)), "item", (code("one"),))
    runs = Runs(site, loop, code("last"))
    first = "each.0.one"
    id = runs.play(runs.start(note="x" * 400), stay=(first,))
    signed_in.goto(runs.url(id))
    details = signed_in.locator("details:has(pre)").first
    details.locator("summary").click()
    link = signed_in.locator(".steps a").last
    link.focus()
    signed_in.evaluate("scrollTo(0, 300)")
    top = "Math.round(document.getElementById('flow-title').getBoundingClientRect().top)"
    place = signed_in.evaluate(top)
    signed_in.evaluate("window.kept = document.activeElement")
    runs.finish(id, first)
    runs.play(id, stay=("last",))
    expect(signed_in.get_by_text("50 rounds", exact=True)).to_be_visible()
    newest = site.do(read_execution(site.world.services, OPERATOR, id)).events
    expect(signed_in.locator(".history li").first).to_have_attribute("value", str(newest))
    painted(signed_in)
    assert signed_in.evaluate("window.kept === document.activeElement && kept.isConnected")
    assert details.evaluate("one => one.open")
    assert abs(signed_in.evaluate(top) - place) <= 1


def test_focus_stays_where_a_list_moves_on(site: Site, signed_in: Page):
    """The history shows the newest events: those before go, the one with the focus stays. R4."""
    loop = LoopStep("each", list(range(50)), "item", (code("one"),))
    runs = Runs(site, loop, code("last"))
    id = runs.play(runs.start(), stay=("each.40.one",))
    signed_in.goto(runs.url(id))
    signed_in.locator(".history summary").first.click()
    link = signed_in.locator(".history details li > a").first
    link.focus()
    number = link.locator("..").get_attribute("value")
    first = signed_in.locator(".history details li").last
    before = first.get_attribute("value")
    signed_in.evaluate("window.kept = document.activeElement")
    runs.finish(id, "each.40.one")
    runs.play(id, stay=("each.45.one",))
    expect(first).not_to_have_attribute("value", before or "")
    assert signed_in.evaluate("window.kept === document.activeElement && kept.isConnected")
    assert signed_in.evaluate("kept.parentNode.value") == int(number or 0)


def test_new_executions_are_told_and_not_inserted(site: Site, signed_in: Page):
    """`2 new, show`; the list stays as it is until somebody wants them, its states are current."""
    runs = Runs(site, code("only"))
    id = runs.play(runs.start(), stay=("only",))
    signed_in.goto(f"{site.url}/executions")
    expect(signed_in.locator(".runs tbody tr")).to_have_count(1)
    runs.start()
    runs.start()
    runs.finish(id, "only")
    show = signed_in.get_by_role("link", name="2 new, show")
    expect(show).to_be_visible()
    expect(signed_in.locator(".runs tbody tr")).to_have_count(1)
    show.click()
    expect(signed_in.locator(".runs tbody tr")).to_have_count(3)


def test_executions_by_keyboard(site: Site, signed_in: Page):
    """`g e`, `j`, `x`, `j`, `x` and a button reach the preview; `j` and Enter open one."""
    runs = Runs(site, code("only"))
    ids = [runs.start() for _ in range(3)]
    signed_in.keyboard.press("g")
    signed_in.keyboard.press("e")
    signed_in.wait_for_url("**/executions")
    for key in ("j", "x", "j", "x"):
        signed_in.keyboard.press(key)
    expect(signed_in.get_by_text("2 selected")).to_be_visible()
    signed_in.get_by_role("button", name="Cancel…").press("Enter")
    signed_in.get_by_role("button", name="Cancel 2 executions").press("Enter")
    expect(signed_in.get_by_text("✓ Cancelled.")).to_have_count(2)
    signed_in.goto(f"{site.url}/executions?status=PENDING")
    signed_in.keyboard.press("j")
    signed_in.keyboard.press("Enter")
    signed_in.wait_for_url(f"**/executions/{ids[0]}")


def test_executions_without_scripts(browser: Browser, site: Site):
    """Lists, filters, one execution, its steps and a cancellation need no scripts. B5."""
    runs = Runs(site)
    id = runs.play(runs.start(), stay=("fraud_model",))
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    enter(site, page)
    page.goto(f"{site.url}/executions")
    page.get_by_label("Workflow").select_option("Payout run")
    page.get_by_role("button", name="Show", exact=True).click()
    expect(page).to_have_url(re.compile("workflow="))
    page.get_by_role("link", name="Payout run").click()
    expect(page.locator("#says")).to_contain_text(
        "Without scripts this page does not update", use_inner_text=True
    )
    page.get_by_role("link", name="fraud_rules bash").click()
    expect(page.get_by_role("heading", name="fraud_rules")).to_be_visible()
    page.goto(runs.url(id))
    page.get_by_role("link", name="Cancel…").click()
    page.get_by_role("button", name="Cancel 1 execution").click()
    expect(page.get_by_role("heading", name="Cancelled")).to_be_visible()
    context.close()


def test_a_lost_server_is_said(site: Site, signed_in: Page):
    """Since when the page is not live; when the server is back, it goes on. 5.5."""
    runs = Runs(site, code("only"))
    id = runs.play(runs.start(), stay=("only",))
    signed_in.goto(runs.url(id))
    expect(signed_in.locator("#says")).to_have_text("Live: this page updates by itself.")
    signed_in.context.set_offline(True)
    signed_in.route("**/live*", lambda route: route.abort())
    signed_in.evaluate("dispatchEvent(new Event('visibilitychange'))")
    signed_in.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
    expect(signed_in.locator("#says")).to_contain_text("Not live since")
    signed_in.unroute("**/live*")
    signed_in.context.set_offline(False)
    runs.finish(id, "only", StepEnd("late"))
    expect(signed_in.get_by_role("heading", level=1)).to_contain_text("Completed")
