"""What the console is for, whole: from what `up` prints, or a mail, to the report of the run."""

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.adapters_runtime.notices.mail_server import text_of
from tests.system.scenarios.process import until

from .approval_case import bar, cell
from .conftest import PATIENCE, arrived
from .offices import Office, an_office

PHONE = {"width": 390, "height": 844}


@pytest.fixture(scope="module")
def office(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Office]:
    with an_office(tmp_path_factory.mktemp("up")) as made:
        yield made


def reviewed(page: Page, amount: str) -> None:
    """From the inbox: the rows are looked at, one is edited, one left out; then it is approved."""
    page.get_by_role("link", name="5 suspicious refunds").click()
    expect(bar(page)).to_be_visible()
    phone = page.viewport_size == PHONE
    if phone:
        page.get_by_role("button", name="A-1003 Alan Turing").tap()
    cell(page, "A-1003", "Amount").fill(amount)
    page.locator("td.pick input").and_(page.get_by_label("A-1009")).uncheck()
    expect(bar(page)).to_contain_text("4 of 5 rows · 1 edited · 1 left out")
    bar(page).get_by_role("button", name="Review and approve 4").click()
    sheet = page.get_by_role("dialog")
    expect(sheet).to_contain_text(f"A-1003 Amount 95 {amount}")
    sheet.get_by_role("button", name="Approve 4 rows").click()
    expect(page.get_by_text("Approved by you@example.org")).to_be_visible()


def followed(page: Page, total: str, line: str) -> None:
    """What led there goes on, and ends with the report that can be downloaded."""
    page.get_by_role("link", name="what led here").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("Completed")
    expect(page.get_by_text(total).first).to_be_visible()
    with page.expect_download() as report:
        page.get_by_role("link", name="refunds.csv").click()
    assert line in report.value.path().read_text()


def started(page: Page, url: str) -> None:
    """The sample, by its form; the inbox says by itself that it asks."""
    page.goto(f"{url}/workflows")
    page.get_by_role("link", name="Refund review", exact=True).click()
    page.get_by_role("link", name="Start…").click()
    page.get_by_role("button", name="Start", exact=True).click()
    expect(page.get_by_role("link", name="Open the approval")).to_be_visible()
    page.goto(f"{url}/inbox")


def mailed_link(office: Office) -> str:
    """The link to sign in by, as soon as it was mailed."""

    def found() -> list[str]:
        texts = (text_of(one) for one in list(office.post.mails))
        return [link for text in texts for link in re.findall(rf"{office.url}/in/\S+", text)]

    until(found, what="the mail")
    return found()[-1]


def test_from_what_up_prints_to_the_report(browser: Browser, office: Office):
    """The link, one click, a start; rows are reviewed, edited, approved, and the run followed."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    context.set_default_timeout(PATIENCE)
    page = context.new_page()
    page.goto(office.link)
    page.get_by_role("button", name="Continue as you@example.org").click()
    arrived(page)
    started(page, office.url)
    reviewed(page, "59")
    followed(page, "242.45", "A-1003,Alan Turing,59.00")
    context.close()


def test_from_a_mail_to_the_report_on_a_phone(browser: Browser, office: Office):
    """A link is asked for and comes by mail; on 390 px the same is done with fingers."""
    context = browser.new_context(viewport=PHONE, has_touch=True, is_mobile=True)
    context.set_default_timeout(PATIENCE)
    page = context.new_page()
    page.goto(office.url)
    page.get_by_label("E-mail").fill("you@example.org")
    page.get_by_role("button", name="Mail me a link").tap()
    expect(page.get_by_role("heading", name="Check your mail")).to_be_visible()
    page.goto(mailed_link(office))
    page.get_by_role("button", name="Continue as you@example.org").tap()
    arrived(page)
    started(page, office.url)
    reviewed(page, "60")
    followed(page, "243.45", "A-1003,Alan Turing,60.00")
    context.close()
