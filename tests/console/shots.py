"""Pictures of every page, to be looked at: `make shots` (light and dark, wide and a phone)."""

import sys
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from playwright.sync_api import Page, sync_playwright

from console.approval_case import Case, approve, bar, both, cell, pick, rows, show
from console.conftest import CHROMIUM, QUIET, Site, enter
from console.execution_case import Runs, in_every_state
from wfcore.rules.auth.signature import personal_path

Scene = Callable[[Site, Page], None]


def sign_in(site: Site, page: Page) -> None:
    page.goto(f"{site.url}/sign-in")


def link(site: Site, page: Page) -> None:
    page.goto(site.link())


def error(site: Site, page: Page) -> None:
    page.goto(f"{site.url}/approvals/nothing")


def empty(site: Site, page: Page) -> None:
    enter(site, page)


def inbox(site: Site, page: Page) -> None:
    enter(site, page)
    for count in (200, 12, 1):
        Case(site, count, **both(required_approvals=2))
    page.goto(f"{site.url}/inbox")


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
    page.get_by_text("This personal link is over").wait_for()


def _personal(site: Site) -> str:
    case = Case(site, 12, **both())
    key = site.world.services.signing_key
    return site.url + personal_path(key, case.now(), "ann@example.org")


def executions(site: Site, page: Page) -> None:
    enter(site, page)
    in_every_state(Runs(site))
    page.goto(f"{site.url}/executions")


def _execution(state: str, more: str = "") -> Scene:
    def scene(site: Site, page: Page) -> None:
        enter(site, page)
        runs = Runs(site)
        page.goto(runs.url(in_every_state(runs)[state]) + more)

    scene.__name__ = f"execution_{state}{more.replace('/', '_')}"
    return scene


def redrive(site: Site, page: Page) -> None:
    enter(site, page)
    ids = in_every_state(Runs(site))
    page.goto(f"{site.url}/executions/redrive?id={ids['failed']}&id={ids['running']}")


def compare(site: Site, page: Page) -> None:
    enter(site, page)
    runs = Runs(site)
    ids = in_every_state(runs)
    page.goto(f"{runs.url(ids['failed'])}/compare/{ids['completed']}")


STATES = ("pending", "running", "waiting", "interrupted", "completed", "failed", "cancelled")

SCENES: tuple[Scene, ...] = (
    *(executions, redrive, compare, *map(_execution, STATES)),
    *(_execution("failed", "/steps/fraud_model"), _execution("running", "/steps/bank_limit")),
    *(sign_in, link, error, empty, inbox, editing, sheet, conflict, decided, guest, over),
)
LOOKS: dict[str, dict[str, Any]] = {
    "desk": {"viewport": {"width": 1280, "height": 900}},
    "desk-dark": {"viewport": {"width": 1280, "height": 900}, "color_scheme": "dark"},
    "phone": {"viewport": {"width": 390, "height": 844}, "has_touch": True},
    "phone-dark": {
        "viewport": {"width": 390, "height": 844},
        "has_touch": True,
        "color_scheme": "dark",
    },
}


def main(folder: Path, wanted: list[str]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=list(QUIET))
        for scene in SCENES:
            for look, options in LOOKS.items():
                name = f"{scene.__name__}-{look}"
                if wanted and name not in wanted:
                    continue
                with TemporaryDirectory() as data:
                    site = Site(Path(data))
                    page = browser.new_page(**options)
                    scene(site, page)
                    page.wait_for_timeout(200)
                    page.screenshot(path=folder / f"{name}.png")
                    page.close()
                    site.close()
                print(folder / f"{name}.png")
        browser.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
