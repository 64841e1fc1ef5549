"""What the reader of a run sees: lines stand close, and its end moves nothing."""

from playwright.sync_api import Page, expect

from tests.support.http_world import code
from wfcore.ports.runtime import StepEnd
from wfcore.usecases.executions.worker import keep_lines

from .conftest import Site, painted
from .execution_case import Runs


def test_the_end_of_a_run_leaves_the_place_that_is_read(site: Site, signed_in: Page):
    """
    A reader who has only scrolled sees the same lines when result and output appear above, also in
    a browser that holds no place by itself.
    """
    runs = Runs(site, *(code(f"s{n}") for n in range(30)))
    id = runs.play(runs.start(), stay=("s29",))
    signed_in.goto(runs.url(id))
    expect(signed_in.locator("#says")).to_have_text("Live: this page updates by itself.")
    signed_in.evaluate("document.documentElement.style.overflowAnchor = 'none'")
    signed_in.evaluate("scrollTo(0, document.body.scrollHeight)")
    top = "document.getElementById('with').getBoundingClientRect().top"
    stood = signed_in.evaluate(top)
    runs.finish(id, "s29", StepEnd({"lines": ["a", "b", "c"]}))
    expect(signed_in.get_by_role("heading", name="Result")).to_be_attached()
    expect(signed_in.get_by_role("heading", level=1)).to_contain_text("Completed")
    painted(signed_in)
    assert abs(signed_in.evaluate(top) - stood) <= 1


def test_lines_of_a_log_stand_close(site: Site, signed_in: Page):
    """Each is one line high, an empty one as well, and no line has its end twice."""
    runs = Runs(site, code("only"))
    id = runs.play(runs.start(), stay=("only",))
    said = (("stdout", "one\ntwo\r\n\nfour\n"), ("stderr", "five\n"))
    site.do(keep_lines(site.world.services, runs.lease(id), "only", said, 0))
    signed_in.goto(f"{runs.url(id)}/steps/only")
    lines = signed_in.locator(".lines > li:not(.mark)")
    expect(lines).to_have_count(5)
    texts = signed_in.locator(".lines > li:not(.mark) .lt").evaluate_all(
        "all => all.map((one) => one.textContent)"
    )
    assert texts == ["one", "two", "", "four", "five"]
    heights = lines.evaluate_all("all => all.map((one) => one.getBoundingClientRect().height)")
    high = lines.first.evaluate("one => parseFloat(getComputedStyle(one).lineHeight)")
    assert max(heights) < 1.5 * high
