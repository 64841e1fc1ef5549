"""Pictures of every page, to be looked at: `make shots` (light and dark, wide and a phone)."""

import sys
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from attrs import evolve
from playwright.sync_api import Page, sync_playwright

from tests.adapters_http.console.approval_case import (
    Case,
    approve,
    bar,
    both,
    cell,
    pick,
    rows,
    show,
)
from tests.adapters_http.console.conftest import CHROMIUM, QUIET, Site, arrived, enter
from tests.adapters_http.console.execution_case import (
    ABOUT,
    CRON,
    TOKEN,
    VARIABLES_OF_A_FORM,
    Runs,
    give_calendar,
    in_every_state,
)
from tests.adapters_http.console.month_end import month_end
from tests.adapters_http.console.test_editing import WRITTEN, applied
from tests.adapters_http.console.test_first_visit import CONFIG
from tests.support.http_world import code
from wfcore.model.access import OPERATOR
from wfcore.model.page import PageRequest
from wfcore.model.workflow import Variable
from wfcore.ports.runtime import LeftFile, StepEnd
from wfcore.rules.auth.signed_links import personal_token
from wfcore.usecases.accounts import accounts, groups
from wfcore.usecases.workflows.state import set_state
from wfcore.usecases.workflows.triggers import list_triggers

Scene = Callable[[Site, Page], None]


PASSES = 7_500_000
"""So many ms at most pass while executions of every state are made."""


def _states(runs: Runs) -> dict[str, str]:
    """An execution for each status, none of which lies in the future."""
    runs.world.clock.advance(-PASSES)
    return in_every_state(runs)


def sign_in(site: Site, page: Page) -> None:
    page.goto(f"{site.url}/sign-in")


def link(site: Site, page: Page) -> None:
    page.goto(site.link())


def error(site: Site, page: Page) -> None:
    enter(site, page)
    page.goto(f"{site.url}/approvals/nothing")


def first_visit(site: Site, page: Page) -> None:
    """The start page, as an operator sees it."""
    site.do(accounts.set_account(site.world.services, OPERATOR, site.world.ann.id, operator=True))
    enter(site, page)
    page.goto(f"{site.url}/start")


def search(site: Site, page: Page) -> None:
    """The page of the search, and what it finds for a letter."""
    _with_flows(site)
    enter(site, page)
    page.goto(f"{site.url}/search?q=r")


def overview(site: Site, page: Page) -> None:
    """The overview of a day."""
    _with_flows(site)
    enter(site, page)
    page.goto(f"{site.url}/overview")


def finder(site: Site, page: Page) -> None:
    """The search by keyboard, over the overview."""
    _with_flows(site)
    enter(site, page)
    page.goto(f"{site.url}/overview")
    page.keyboard.press("Control+k")
    dialog = page.get_by_role("dialog", name="Search or do")
    dialog.get_by_role("link", name="Inbox").wait_for()
    page.keyboard.type("in")
    dialog.get_by_role("link", name="Invoices", exact=True).wait_for()


def empty(site: Site, page: Page) -> None:
    enter(site, page)


def inbox(site: Site, page: Page) -> None:
    enter(site, page)
    for count in (200, 12, 1):
        Case(site, count, **both(required_approvals=2))
    page.goto(f"{site.url}/inbox")


def several(site: Site, page: Page) -> None:
    """What deciding some of the inbox means."""
    inbox(site, page)
    for box in page.locator("main li input[type=checkbox]").all():
        box.check()
    page.get_by_role("button", name="Approve as proposed").click()
    page.get_by_role("heading", name="Approve 3").wait_for()


def selected(site: Site, page: Page) -> None:
    """The inbox with a selection."""
    inbox(site, page)
    page.locator("main li input[type=checkbox]").first.check()


def adding(site: Site, page: Page) -> None:
    """A row of one's own, and somebody else to decide instead."""
    enter(site, page)
    show(Case(site, 4, group={"allow_add": True}, **both(delegable=True)), page)
    page.get_by_role("button", name="Add a row").click()
    page.get_by_text("Let somebody else decide on your behalf").click()


def german(site: Site, page: Page) -> None:
    """The approval in German."""
    page.context.set_extra_http_headers({"Accept-Language": "de-DE"})
    page.goto(site.link())
    page.get_by_role("button", name="Weiter als").click()
    arrived(page)
    show(Case(site, 12, **both(required_approvals=2)), page)
    _fill(page, "P-1001", "1200,5")


def editing(site: Site, page: Page) -> None:
    enter(site, page)
    show(Case(site), page)
    _fill(page, "P-1001", "1200,5")
    pick(page, "P-1002").uncheck()
    _fill(page, "P-1003", "abc")
    page.evaluate("scrollTo(0, 0)")


def _fill(page: Page, row: str, amount: str) -> None:
    """Type an amount; on a phone its row is opened first."""
    brief = page.get_by_role("button", name=f"{row} ")
    if brief.is_visible():
        brief.click()
    cell(page, row, "Amount").fill(amount)


def sheet(site: Site, page: Page) -> None:
    editing(site, page)
    cell(page, "P-1003", "Amount").fill("90")
    page.keyboard.press("Control+Enter")


def conflict(site: Site, page: Page) -> None:
    enter(site, page)
    case = Case(site, 30, **both(required_approvals=2))
    show(case, page)
    _fill(page, "P-1005", "10")
    case.decide(case.bob, {"payouts": [{**row, "amount": 11} for row in rows(30)]})
    approve(page)
    page.get_by_text("The rows have changed").wait_for()
    page.get_by_role("button", name="Clashes 1").click()


def decided(site: Site, page: Page) -> None:
    enter(site, page)
    case = Case(site, 8)
    show(case, page)
    _fill(page, "P-1001", "1200,5")
    bar(page).get_by_role("button", name="Review and approve").click()
    page.get_by_role("dialog").get_by_label("Comment").fill("One was wrong.")
    page.get_by_role("button", name="Approve 8 rows").click()
    page.get_by_text("Approved by").wait_for()


def guest(site: Site, page: Page) -> None:
    """The same page by a personal link."""
    page.goto(_personal(site))
    bar(page).wait_for()


def over(site: Site, page: Page) -> None:
    """A personal link after the decision."""
    page.goto(_personal(site))
    approve(page, "All as agreed on Monday.")
    page.get_by_text("Thank you: your decision").wait_for()


def _personal(site: Site) -> str:
    case = Case(site, 12, **both())
    key = site.world.services.signing_key
    return site.url + f"/a/{personal_token(key, case.now(), 'ann@example.org')}"


def executions(site: Site, page: Page) -> None:
    enter(site, page)
    _states(Runs(site))
    page.goto(f"{site.url}/executions")


def _execution(state: str, more: str = "") -> Scene:
    def scene(site: Site, page: Page) -> None:
        enter(site, page)
        runs = Runs(site)
        page.goto(runs.url(_states(runs)[state]) + more)

    scene.__name__ = f"execution_{state}{more.replace('/', '_')}"
    return scene


def handled(site: Site, page: Page) -> None:
    """A failure, and the steps that come after it."""
    enter(site, page)
    undo, tell = code("release_funds"), code("tell_finance")
    runs = Runs(site, code("collect"), code("pay"), on_failure=(undo, tell))
    page.goto(
        runs.url(runs.play(runs.start(), {"pay": StepEnd(error="no money")}, ("tell_finance",)))
    )


def month_end_close(site: Site, page: Page) -> None:
    """A failed execution with six branches, two attempts and a log."""
    enter(site, page)
    page.goto(f"{site.url}/executions/{month_end(site)}")


def redrive(site: Site, page: Page) -> None:
    enter(site, page)
    ids = _states(Runs(site))
    page.goto(f"{site.url}/executions/redrive?id={ids['failed']}&id={ids['running']}")


def repair(site: Site, page: Page) -> None:
    """The plan of a redrive with another input, and a secret that must be typed again."""
    enter(site, page)
    runs = Runs(site, variables=VARIABLES_OF_A_FORM)
    page.goto(f"{runs.url(_states(runs)['failed'])}/redrive")
    page.get_by_text("Other inputs…").click()
    page.locator('[name="inputs.rows"]').fill("20")
    page.locator('[name="inputs.token"]').fill("another")
    page.get_by_role("button", name="Show the plan").click()
    page.get_by_text("must be typed again").wait_for()


def state(site: Site, page: Page) -> None:
    """The state of a workflow, while a value of it is changed."""
    enter(site, page)
    kept = {"cursor": Variable("cursor", has_default=True, default=""), "token": TOKEN}
    id = site.do(site.world.workflow(name="Sync orders", state=kept))
    site.do(set_state(site.world.services, OPERATOR, id, {"cursor": "A-7", "token": "t0ken-7"}))
    page.goto(f"{site.url}/workflows/{id}/state")
    page.get_by_text("Change…").first.click()


def files_read(site: Site, page: Page) -> None:
    """A step with the files of an earlier step."""
    enter(site, page)
    runs = Runs(site, code("fetch"), evolve(code("load"), files=("fetch",)))
    left = tuple(
        LeftFile(
            f"art_{n}", f"part-{n}.csv", f"exec/art_{n}", 2_048 * n, "text/csv", "0" * 64, True
        )
        for n in range(1, 6)
    )
    id = runs.play(runs.start(), {"fetch": StepEnd("done", files=left)})
    page.goto(f"{runs.url(id)}/steps/load")


def compare(site: Site, page: Page) -> None:
    enter(site, page)
    runs = Runs(site)
    ids = _states(runs)
    page.goto(f"{runs.url(ids['failed'])}/compare/{ids['completed']}")


def _with_flows(site: Site) -> str:
    """Workflows that have done something; the id of the first."""
    give_calendar(site)
    runs = Runs(site, variables=VARIABLES_OF_A_FORM, triggers=(CRON,), description=ABOUT)
    _states(runs)
    for number, name in enumerate(("Invoices", "Refunds", "Sanctions list")):
        other = Runs(site, code("only"), name=name)
        for _ in range(number):
            other.play(other.start())
    return runs.workflow


def workflows(site: Site, page: Page) -> None:
    enter(site, page)
    _with_flows(site)
    page.goto(f"{site.url}/workflows")


def workflow(site: Site, page: Page) -> None:
    enter(site, page)
    page.goto(f"{site.url}/workflows/{_with_flows(site)}")


def start(site: Site, page: Page) -> None:
    enter(site, page)
    page.goto(f"{site.url}/workflows/{_with_flows(site)}/start")


def version(site: Site, page: Page) -> None:
    enter(site, page)
    id = applied(site)
    applied(site, WRITTEN.replace("echo 1", "echo 2"))
    page.goto(f"{site.url}/workflows/{id}/versions/2")


def edit(site: Site, page: Page) -> None:
    enter(site, page)
    page.goto(f"{site.url}/workflows/{applied(site)}/edit")
    page.get_by_label("The text").fill(WRITTEN.replace("echo 1", "echo 2"))
    page.get_by_role("button", name="Check").click()


def _operating(name: str) -> Scene:
    def scene(site: Site, page: Page) -> None:
        _with_flows(site)
        world = site.world
        site.do(accounts.set_account(world.services, OPERATOR, world.ann.id, operator=True))
        enter(site, page)
        site.do(accounts.set_secret(world.services, OPERATOR, world.ann.id, "BANK_TOKEN", "s3cret"))
        site.do(
            groups.create_group(
                world.services, OPERATOR, "finance", [world.ann.email, "tax@example.com"]
            )
        )
        hook = site.do(world.webhook())
        site.do(world.http.post(f"/api/webhooks/{hook}/trigger", json={}))
        for _ in range(3):
            site.do(world.post(f"/api/webhooks/{hook}/trigger", {}))
        timed = (
            site.do(list_triggers(world.services, OPERATOR, PageRequest(1, 1))).rows[0].trigger.id
        )
        ids = {"key": world.key.key.id, "hook": hook, "ann": world.ann.id, "timed": timed}
        page.goto(f"{site.url}/operate/{name.format(**ids)}")

    more = {"webhooks/new": "_new"}.get(name, "_one" if "/" in name else "")
    scene.__name__ = f"operate_{name.partition('/')[0]}{more}"
    return scene


OPERATED = ("groups", "group/finance", "keys", "keys/{key}", "webhooks", "webhooks/new",
            "webhooks/{hook}", "usage", "schedules", "schedules/{timed}/backfill", "audit",
            "secrets", "people", "people/{ann}", "notices", "health")  # fmt: skip

STATES = ("pending", "running", "waiting", "interrupted", "completed", "failed", "cancelled")

SCENES: tuple[Scene, ...] = (
    *map(_operating, OPERATED),
    *(
        workflows,
        workflow,
        start,
        version,
        edit,
        executions,
        handled,
        month_end_close,
        redrive,
        repair,
        state,
        files_read,
        compare,
        *map(_execution, STATES),
    ),
    *(_execution("failed", "/steps/fraud_model"), _execution("running", "/steps/bank_limit")),
    *(
        sign_in,
        link,
        first_visit,
        overview,
        search,
        finder,
        error,
        empty,
        inbox,
        selected,
        several,
        adding,
        german,
        editing,
        sheet,
        conflict,
        decided,
        guest,
        over,
    ),
)
LOOKS: dict[str, dict[str, Any]] = {
    "page": {"viewport": {"width": 1080, "height": 700}},
    "desk": {"viewport": {"width": 1280, "height": 900}},
    "desk-dark": {"viewport": {"width": 1280, "height": 900}, "color_scheme": "dark"},
    "phone": {"viewport": {"width": 390, "height": 844}, "has_touch": True},
    "phone-dark": {
        "viewport": {"width": 390, "height": 844},
        "has_touch": True,
        "color_scheme": "dark",
    },
}


TOUR = [
    *(f"{name}-page" for name in ("editing", "sheet", "conflict", "several", "workflow")),
    *("execution_failed-page", "operate_audit-page", "selected-phone", "guest-phone-dark"),
]
"""What the documentation shows: `make tour`."""


def main(folder: Path, wanted: list[str]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=list(QUIET))
        for scene in SCENES:
            for look, options in LOOKS.items():
                name = f"{scene.__name__}-{look}"
                if name not in wanted if wanted else look == "page":
                    continue
                with TemporaryDirectory() as data:
                    site = Site(Path(data), CONFIG)
                    page = browser.new_page(**options)
                    scene(site, page)
                    page.wait_for_timeout(200)
                    page.screenshot(path=folder / f"{name}.png")
                    page.close()
                    site.close()
                print(folder / f"{name}.png")
        browser.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]), TOUR if sys.argv[2:] == ["tour"] else sys.argv[2:])
