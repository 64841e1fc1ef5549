"""The way of a newcomer, from a folder that `up` has set up."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from .approval_case import bar, cell
from .conftest import PATIENCE, arrived, watched
from .offices import Office, an_office


@pytest.fixture
def office(tmp_path: Path) -> Iterator[Office]:
    with an_office(tmp_path) as made:
        yield made


@pytest.fixture
def you(browser: Browser, office: Office) -> Iterator[Page]:
    """A tab in which the operator whom `up` made has just signed in. B1, B4."""
    context = watched(browser.new_context(viewport={"width": 1280, "height": 900}), office)
    context.set_default_timeout(PATIENCE)
    page = context.new_page()
    page.goto(office.link)
    page.get_by_role("button", name="Continue as you@example.org").click()
    arrived(page)
    yield page
    context.close()
    assert context.complaints == []


def test_a_newcomer_runs_the_sample(you: Page, office: Office) -> None:
    """The start page comes first; one press runs the sample, whose approval opens by itself."""
    page = you
    page.wait_for_url("**/start")
    expect(page.get_by_role("heading", name="Welcome")).to_be_visible()
    page.get_by_role("button", name="Run the sample").click()
    page.wait_for_url("**/approvals/appr_*")
    cell(page, "A-1003", "Amount").fill("59")
    bar(page).get_by_role("button", name="Review and approve 5").click()
    page.get_by_role("dialog").get_by_role("button", name="Approve 5 rows").click()
    expect(page.get_by_text("Approved by you@example.org")).to_be_visible()
    page.get_by_role("link", name="what led here").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("Completed")
    with page.expect_download() as report:
        page.get_by_role("link", name="refunds.csv").click()
    assert "A-1003,Alan Turing,59.00" in report.value.path().read_text()
    page.goto(office.url)
    expect(page).to_have_url(re.compile("/overview$"))
