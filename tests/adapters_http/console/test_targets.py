"""
B3, what axe does not see: fingers meet what they mean, a page may be twice as large or 320 px wide,
whatever acts can be reached by keyboard, and is seen there in the colours of the system, too.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, Request, ViewportSize

from adapters_http.app import HttpConfig
from tests.support.http_world import code
from wfcore.model.access import OPERATOR
from wfcore.model.page import PageRequest
from wfcore.model.workflow import Variable
from wfcore.rules.auth.signed_links import personal_token
from wfcore.usecases.accounts import accounts, groups
from wfcore.usecases.workflows.triggers import list_triggers

from .approval_case import Case, bar, both, cell, rows, show
from .conftest import Site, enter, watched
from .execution_case import CRON, Runs, give_calendar, in_every_state
from .shots import OPERATED, PASSES
from .test_editing import applied, read

PHONE: ViewportSize = {"width": 390, "height": 844}
NARROW: tuple[ViewportSize, ...] = ({"width": 640, "height": 450}, {"width": 320, "height": 640})
"""1,280 px at 200 %, and the narrowest that WCAG asks for."""
ANN = "ann@example.org"
TARGETS = "a[href], button, select, summary, textarea, input:not([type=hidden])"
SMALL = """(targets) => [...document.querySelectorAll(targets)].filter((one) => {
    const style = getComputedStyle(one);
    if (one.closest("svg.flow")) return false;
    if (document.querySelector("dialog:modal") && !one.closest("dialog:modal")) return false;
    if (!one.checkVisibility() || style.display === "inline" && one.nodeName === "A") return false;
    const box = (one.closest("label") ?? one).getBoundingClientRect();
    if (!box.width || box.right <= 0 || one.type === "checkbox" && apart(one)) return false;
    return Math.round(box.height) < 44 || Math.round(box.width) < 24;
    function apart(one) {
        const { left, top, width, height } = one.getBoundingClientRect();
        const [x, y] = [left + width / 2, top + height / 2];
        const near = (box) =>
            box.left < x + 22 && box.right > x - 22 && box.top < y + 22 && box.bottom > y - 22;
        return width >= 24 && height >= 24 && ![...document.querySelectorAll(targets)].some(
            (other) => other !== one && !other.closest(".places, .bar, #banner")
                && other.checkVisibility() && near(other.getBoundingClientRect()));
    }
}).map((one) => one.outerHTML.slice(0, 160) + " " + Math.round(one.getBoundingClientRect().width)
    + "x" + Math.round(one.getBoundingClientRect().height))"""
"""
What is smaller than 44 px (24 px wide), but links in a text, those of the picture of a flow, which
fits the screen and has each beside it in a list, and boxes to tick that have 24 px and
nothing else within 22 px of their middle; bars and a notice lie above what scrolls, and a
sheet above everything.
"""

UNSEEN = """(targets) => {
    const shown = (one) => one.checkVisibility() && one.getClientRects().length;
    const inside = (selector) => [...document.querySelectorAll(selector)].filter(shown);
    const faults = inside(targets + ", svg a").filter((one) => !one.disabled).flatMap((one) => {
        one.focus();
        if (document.activeElement !== one || one.tabIndex !== 0) return [["out of reach", one]];
        const parts = [getComputedStyle(one), getComputedStyle(one, "::after")];
        const outlined = (part) => part.outlineStyle !== "none" && part.outlineWidth !== "0px";
        const box = one.closest(".flow a")?.querySelector("rect");
        const drawn = box && getComputedStyle(box).strokeWidth === "4px";
        return drawn || parts.some(outlined) ? [] : [["focus not seen", one]];
    });
    const acts = (one) => getComputedStyle(one).cursor === "pointer";
    const mouse = inside("main *").filter((one) => !one.closest(targets + ", svg a, label"));
    faults.push(...mouse.filter(acts).map((one) => ["only for a mouse", one]));
    const words = inside(".status, .state, .chip").filter((one) => !one.textContent.trim());
    const boxes = inside(".box:not(.none)").filter((one) => !one.querySelector("use"));
    const mute = [...words, ...boxes];
    const rounds = inside(".rounds a").filter((one) => !one.querySelector("text, .completed"));
    faults.push(...[...mute, ...rounds].map((one) => ["told by colour alone", one]));
    faults.push(...document.getAnimations().map((one) => ["moves", one.effect.target]));
    return faults.map(([what, one]) => what + ": " + one.outerHTML.slice(0, 160));
}"""
"""
What acts and is not reached by Tab, or without a mark of the focus where the system chooses the
colours; a status without a word or sign; what moves though the reader wants no motion.
"""


@pytest.fixture
def written(tmp_path: Path) -> Iterator[Site]:
    """A site whose definitions can be written in the page."""
    made = Site(tmp_path, HttpConfig(console=True, read_definition=read))
    yield made
    made.close()


def addresses(site: Site) -> list[str]:
    """Every page that somebody who is signed in comes to."""
    world = site.world
    site.do(accounts.set_account(world.services, OPERATOR, world.ann.id, operator=True))
    site.do(accounts.set_secret(world.services, OPERATOR, world.ann.id, "BANK_TOKEN", "s3cret"))
    site.do(
        groups.create_group(
            world.services, OPERATOR, "finance", [world.ann.email, "tax@example.com"]
        )
    )
    world.clock.advance(-PASSES)
    runs = Runs(site)
    ids = in_every_state(runs)
    hook = site.do(world.webhook())
    site.do(world.http.post(f"/api/webhooks/{hook}/trigger", json={}))
    give_calendar(site)
    Runs(site, code("only"), name="Timed", triggers=(CRON,))
    timed = site.do(list_triggers(world.services, OPERATOR, PageRequest(1, 1))).rows[0].trigger.id
    known = {"key": world.key.key.id, "hook": hook, "ann": world.ann.id, "timed": timed}
    stateful = site.do(world.workflow(name="Stateful", state={"cursor": Variable("cursor")}))
    flow, edited = f"/workflows/{runs.workflow}", f"/workflows/{applied(site)}"
    bad, good = ids["failed"], ids["completed"]
    return [
        *(
            "/inbox",
            "/inbox?view=decided",
            "/start",
            "/search?q=o",
            "/more",
            "/overview",
            "/overview?by=day",
            "/executions",
            "/workflows",
            "/approvals/nothing",
        ),
        *(flow, f"{flow}/start", f"{flow}/triggers", f"/workflows/{stateful}/state"),
        *(f"{edited}/versions/1", f"{edited}/edit"),
        *(f"{edited}/{part}" for part in ("versions", "sharing", "settings")),
        *(f"{edited}/difference?from=1&to=1", "/workflows/new", "/workflows/new?empty=1"),
        *(f"/executions/{id}" for id in ids.values()),
        *(f"/executions/redrive?id={bad}", f"/executions/{bad}/redrive"),
        f"/executions/{bad}/compare/{good}",
        *(f"/executions/{bad}/steps/fraud_model", f"/executions/{ids['running']}/steps/bank_limit"),
        *(f"/operate/{name.format(**known)}" for name in OPERATED),
    ]


def test_fingers_meet_what_they_mean_and_pages_may_be_twice_as_large(
    browser: Browser, written: Site
):
    """B3: 44 px for fingers on every page; nothing scrolls sideways; a keyboard reaches all."""
    phone = browser.new_context(viewport=PHONE, has_touch=True, is_mobile=True)
    context = watched(phone, written)
    page = context.new_page()
    found = looked_at(page, written, "/sign-in")
    case, paths = (
        Case(written, 4, group={"allow_add": True}, **both(delegable=True)),
        addresses(written),
    )
    enter(written, page)
    for path in paths:
        found += looked_at(page, written, path)
    page.set_viewport_size(PHONE)
    show(case, page)
    for brief in page.locator("td.brief button").all():
        brief.click()
    found += too_small(page)
    context.close()
    assert found == []


def test_fingers_meet_what_they_decide_with(browser: Browser, site: Site):
    """B3: 44 px on the preview of several decisions, a personal link, the sheet and a conflict."""
    context = watched(browser.new_context(viewport=PHONE, has_touch=True, is_mobile=True), site)
    page = context.new_page()
    asked = Case(site, 4, **both())
    found = looked_at(
        page, site, f"/a/{personal_token(site.world.services.signing_key, asked.now(), ANN)}"
    )
    enter(site, page)
    ids = site.do(site.world.waiting(2, approvers=(ANN, "bob@example.org")))
    chosen = "&".join(f"id={id}" for id in ids)
    for decision in ("approve", "reject"):
        found += looked_at(page, site, f"/inbox/decide?decision={decision}&{chosen}")
    page.set_viewport_size(PHONE)
    show(case := Case(site, 4, **both(required_approvals=2)), page)
    page.locator("td.brief button").first.click()
    cell(page, "P-1000", "Amount").fill("10")
    bar(page).get_by_role("button", name="Review and approve").click()
    page.get_by_role("dialog").wait_for()
    found += too_small(page)
    case.decide(case.bob, {"payouts": [{**row, "amount": 11} for row in rows(4)]})
    page.get_by_role("dialog").get_by_role("button", name="Approve").click()
    bar(page).get_by_role("button", name="1 to settle").click()
    page.get_by_role("button", name="Take theirs").wait_for()
    found += too_small(page)
    context.close()
    assert found == []


def looked_at(page: Page, site: Site, path: str) -> list[str]:
    """What is wrong with one page, at its first sight; it takes one document. B1, B3."""
    page.set_viewport_size(PHONE)
    documents = list[str]()

    def note(request: Request) -> None:
        if request.resource_type == "document":
            documents.append(request.url)

    page.on("request", note)
    page.goto(site.url + path)
    found = [*too_small(page), *(f"{path}: another document {one}" for one in documents[1:])]
    page.remove_listener("request", note)
    for size in NARROW:
        page.set_viewport_size(size)
        if page.evaluate("document.documentElement.scrollWidth - innerWidth") > 0:
            found.append(f"{path} scrolls sideways at {size['width']} px")
    return found + unseen(page)


def unseen(page: Page) -> list[str]:
    page.emulate_media(forced_colors="active", reduced_motion="reduce")
    page.keyboard.press("Tab")  # from now on, the focus is that of a keyboard
    found = [f"{page.url}: {one}" for one in page.evaluate(UNSEEN, TARGETS)]
    page.emulate_media(forced_colors="none", reduced_motion="no-preference")
    return found


def too_small(page: Page) -> list[str]:
    return [f"{page.url}: {one}" for one in page.evaluate(SMALL, TARGETS)]
