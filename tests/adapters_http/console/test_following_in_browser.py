"""Pages that follow, in a browser: how often they ask, when they do not, and where it ends. 5.5."""

import re
from itertools import pairwise

import pytest
from playwright.sync_api import Page, expect

from tests.support.http_world import code
from wfcore.model.access import OPERATOR
from wfcore.usecases.executions.executions import read_execution

from .approval_case import Case
from .conftest import Site, enter, until_true
from .execution_case import Runs

COUNTED = """
    window.asked = 0;  // how often the page has fetched itself
    window.heard = 0;  // the number of the last event that it was told of
    window.pauses = [];  // what it waits for before it fetches again
    window.streams = [];
    const { send } = XMLHttpRequest.prototype;
    XMLHttpRequest.prototype.send = function () { asked += 1; return send.call(this); };
    const later = setTimeout;
    window.retries = [];
    const kept = { 200: pauses, 5000: retries };
    window.setTimeout = (act, ms) => kept[ms]?.push(act) ?? later(act, ms);
    const Stream = EventSource;
    window.EventSource = class extends Stream {
        constructor(url) {
            super(url);
            streams.push(this);
            for (const name of ["changed", "executions", "inbox"])
                this.addEventListener(name, (event) => { heard = Number(event.lastEventId) || 1; });
        }
    };
"""
HIDE = """(hidden) => {
    Object.defineProperty(document, "hidden", { configurable: true, value: hidden });
    document.dispatchEvent(new Event("visibilitychange"));
}"""
TRIED_AGAIN = """() => {
    for (const act of [...pauses.splice(0), ...retries.splice(0)]) act();
    return !retries.length && streams.at(-1).readyState === EventSource.CLOSED;
}"""
"""Whether no stream is asked for, though the time to try again has come."""
OPEN = "streams.filter((one) => one.readyState !== EventSource.CLOSED)"


def test_many_events_are_few_updates(site: Site, signed_in: Page):
    """After a fetch 200 ms pass before the next, however much happens: five a second at most."""
    page, names = signed_in, [f"s{number}" for number in range(6)]
    runs = Runs(site, *map(code, names))
    id = runs.play(runs.start(), stay=("s0",))
    page.add_init_script(COUNTED)
    page.goto(runs.url(id))
    for before, after in pairwise(names):
        runs.finish(id, before)
        runs.play(id, stay=(after,))
        newest = site.do(read_execution(site.world.services, OPERATOR, id)).events
        until_true(page, f"heard >= {newest}")
        assert page.evaluate("[asked, pauses.length]") == [1, 1]
    page.evaluate("pauses.shift()()")
    until_true(page, "asked === 2 && pauses.length === 1")
    expect(page.get_by_text("5 of 6")).to_be_visible()
    page.evaluate("pauses.shift()()")
    runs.finish(id, "s5")
    until_true(page, "asked === 3")


@pytest.mark.parametrize("path", ["/executions/{run}", "/executions", "/inbox", "/approvals/{ask}"])
def test_nobody_looks_nobody_asks(site: Site, signed_in: Page, path: str):
    """A hidden tab has no stream; seen again, it has one, and is current."""
    page, runs = signed_in, Runs(site, code("first"), code("last"))
    id, case = runs.play(runs.start(), stay=("first",)), Case(site, 0)
    page.add_init_script(COUNTED)
    page.goto(site.url + path.format(run=id, ask=case.id))
    until_true(page, f"{OPEN}.length === 1")
    page.evaluate(HIDE, True)
    assert page.evaluate(f"{OPEN}.length") == 0
    runs.finish(id, "first")
    runs.play(id, stay=("last",))
    case.decide(site.world.ann)
    site.do(site.world.waiting(1))
    assert page.evaluate("[asked, streams.length]") == [0, 1]
    page.evaluate(HIDE, False)
    shown = {
        "/executions/{run}": page.get_by_text("1 of 2"),
        "/approvals/{ask}": page.get_by_text("Meanwhile ann@example.org has approved it."),
    }.get(path, page.get_by_role("link", name=re.compile(r"^\d new, show$")))
    expect(shown).to_be_visible()
    assert page.evaluate("streams.length") == 2


def test_a_session_that_ended_is_said(site: Site, signed_in: Page):
    """Lists, an execution and an approval say "signed out" by themselves, and ask no more. B7."""
    page, runs = signed_in, Runs(site, code("only"))
    id, case = runs.play(runs.start(), stay=("only",)), Case(site, 0)
    page.add_init_script(COUNTED)
    for path in (f"/executions/{id}", "/executions", "/inbox", "/operate/audit", ""):
        page.goto(site.url + path if path else case.url)
        page.route("**/live?*", lambda route: route.fulfill(status=401))
        page.context.clear_cookies()
        page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
        until_true(page, TRIED_AGAIN)
        said = r"Signed out: reload the page to sign in|You are signed out\."
        expect(page.get_by_text(re.compile(said))).to_be_visible()
        page.unroute("**/live?*")
        enter(site, page)


NOTICES = """
    window.shown = [];
    window.asks = 0;
    window.Notification = class {
        static permission = "default";
        static async requestPermission() {
            asks += this.permission === "default";
            return (this.permission = "granted");
        }
        constructor(title, { body }) { shown.push(`${title}: ${body}`); }
    };
"""


def test_the_browser_tells_of_new_approvals(site: Site, signed_in: Page):
    """
    A hidden inbox shows a notice of each approval that is new, once; the permission is asked for by
    a press only.
    """
    page, _old = signed_in, Case(site, 0)
    page.add_init_script(NOTICES)
    page.goto(f"{site.url}/inbox")
    assert page.evaluate("asks") == 0
    page.get_by_role("button", name="Tell me here").click()
    expect(page.get_by_role("button", name="Tell me here")).to_be_hidden()
    page.evaluate(HIDE, True)
    Case(site, 2)
    until_true(page, "shown.length > 0")
    Case(site, 1)
    until_true(page, "shown.length > 1")
    assert page.evaluate("[shown.length, asks]") == [2, 1]
    assert all(one.startswith("1 new in your inbox: ") for one in page.evaluate("shown"))
