"""The ways of a newcomer, an author and an operator, each from a folder that `up` has set up."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.adapters_runtime.notices.mail_server import text_of
from tests.system.scenarios.process import until
from tests.wfserver.conftest import program

from .approval_case import bar, cell
from .conftest import PATIENCE, arrived, watched
from .offices import Office, an_office
from .test_authors_in_browser import typed

DAILY = """name: Daily
triggers: [{kind: SCHEDULE, cron: "0 9 * * *", timezone: UTC}]
steps: [{name: note, kind: code, language: bash, source: "echo noted"}]
"""
NAME = "Regional totals"
"""The example that the author begins with."""


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


def test_an_author_makes_a_workflow(you: Page, office: Office) -> None:
    """
    From an example: a mistake is marked and mended, tests run beside, it is applied, changed, run
    with inputs, restored, shared and deleted.
    """
    made = program("--data", str(office.data), "account", "create", "bob@example.org")
    assert made.status == 0, made.err
    page = you
    page.goto(f"{office.url}/workflows")
    page.get_by_role("link", name="New workflow").click()
    page.get_by_role("link", name=NAME).click()
    text = page.locator("#text").input_value()
    typed(page, text.replace("kind: code", "kind: cod", 1))
    expect(page.locator(".cm-says")).to_contain_text("did you mean code?")
    expect(page.get_by_role("button", name="Create it")).to_be_disabled()
    page.get_by_role("button", name="Change it to code").click()
    expect(page.locator(".cm-says")).to_have_count(0)
    page.get_by_role("button", name="Run tests").click()
    expect(page.locator("#tested")).to_contain_text(re.compile(r"all \d as expected"))
    page.get_by_role("button", name="Create it").click()
    expect(page.get_by_role("heading", name=NAME, exact=True)).to_be_visible()

    page.get_by_role("link", name="Change…").click()
    typed(page, text.replace("Exports the orders", "Exports all orders"))
    page.get_by_role("button", name="Save as version 2").click()
    page.get_by_role("link", name="Change…").click()
    page.get_by_role("link", name="Run…").click()
    sheet = page.get_by_role("dialog")
    sheet.get_by_label("regions").fill('["north"]')
    sheet.get_by_role("button", name="Start").click()
    page.wait_for_url("**/executions/exec_*")
    expect(page.get_by_role("heading", level=1)).to_contain_text("Completed")
    expect(page.get_by_text("25.50").first).to_be_visible()

    page.goto(f"{office.url}/workflows")
    page.get_by_role("link", name=NAME, exact=True).click()
    page.get_by_role("link", name="Versions", exact=True).click()
    page.get_by_role("link", name="Version 1").click()
    page.get_by_role("button", name="Restore it as version 3").click()
    expect(page.get_by_role("link", name="Version 3")).to_be_visible()
    page.get_by_role("link", name="Sharing").click()
    page.get_by_label("E-mail address").fill("bob@example.org")
    page.get_by_label("Right").select_option("EXECUTE")
    page.get_by_role("button", name="Share").click()
    expect(page.get_by_role("row", name="bob@example.org")).to_contain_text("may start it")
    page.get_by_role("link", name="Settings").click()
    page.get_by_label(f"Type “{NAME}” to delete it").fill(NAME)
    page.get_by_role("button", name="Delete").click()
    page.wait_for_url("**/workflows")
    expect(page.get_by_role("link", name=NAME, exact=True)).to_have_count(0)


def test_an_operator_connects_and_looks_after(you: Page, office: Office, browser: Browser) -> None:
    """Group, invitation, secret, webhook with test and replay, pause, backfill, notice, health."""
    page, url = you, office.url
    file = office.data.parent / "daily.yaml"
    file.write_text(DAILY)
    owner = ("--owner", "you@example.org")
    made = program("--data", str(office.data), "workflow", "apply", str(file), *owner)
    assert made.status == 0, made.err

    page.goto(f"{url}/operate/groups")
    page.get_by_label("Name").fill("finance")
    page.get_by_role("button", name="Create group").click()
    page.goto(f"{url}/operate/people")
    page.get_by_label("E-mail", exact=True).fill("bob@example.org")
    page.get_by_label("finance").check()
    page.get_by_role("button", name="Invite", exact=True).click()
    expect(page.get_by_text("is on its way to bob@example.org")).to_be_visible()
    _enters(browser, office, "bob@example.org")
    page.goto(f"{url}/operate/people")
    expect(page.get_by_role("row", name="bob@example.org")).not_to_contain_text("invited")

    page.goto(f"{url}/operate/secrets")
    page.get_by_label("Name").fill("SHOP_TOKEN")
    page.get_by_label("Value").fill("k4nary-value")
    page.get_by_role("button", name="Set", exact=True).click()
    expect(page.get_by_role("row", name="SHOP_TOKEN")).to_be_visible()
    assert "k4nary" not in page.content()

    page.goto(f"{url}/operate/webhooks/new")
    page.get_by_label("Name").fill("shop")
    page.get_by_label("Workflow that it starts").select_option("Daily")
    page.get_by_role("button", name="Connect").click()
    page.get_by_label("I have kept it").check()
    page.get_by_role("button", name="Done").click()
    page.get_by_role("button", name="Send a test").click()
    row = page.get_by_role("row", name="a test")
    expect(row).to_contain_text("202")
    row.get_by_text("Replay…").click()
    hook = page.url
    row.get_by_role("button", name="Replay", exact=True).click()
    page.wait_for_url("**/executions/exec_*")
    expect(page.get_by_role("heading", level=1)).to_contain_text("Completed")
    page.goto(hook)
    expect(page.get_by_role("row", name="a replay")).to_contain_text("202")

    _looks_after_a_schedule(page, url)
    page.goto(f"{url}/operate/notices")
    sent = len(list(office.post.mails))
    page.get_by_role("button", name="Send a test to me").click()
    until(lambda: len(list(office.post.mails)) > sent, what="the test")
    page.goto(f"{url}/operate/health")
    expect(page.get_by_role("heading", name="Health")).to_be_visible()
    expect(page.locator(".cards .card").first).to_be_visible()


def _looks_after_a_schedule(page: Page, url: str) -> None:
    """Pause, resume, and a backfill whose page can be read and changed on a phone, too."""
    page.goto(f"{url}/operate/schedules")
    page.get_by_role("button", name="Pause Daily").click()
    expect(page.get_by_role("row", name="Daily")).to_contain_text("paused")
    page.get_by_role("button", name="Resume Daily").click()
    page.get_by_role("link", name="Backfill…").click()
    page.get_by_role("button", name=re.compile(r"^Start \d")).click()
    expect(page.get_by_text(re.compile(r"\d starts were made"))).to_be_visible()
    page.goto(page.url)
    before = page.get_by_role("link", name="had started before").first
    box = before.bounding_box()
    assert box is not None
    assert box["height"] < 30, "its words stand below each other"
    page.set_viewport_size({"width": 390, "height": 844})
    expect(page.get_by_label("From")).to_be_visible()
    page.set_viewport_size({"width": 1280, "height": 900})


def _enters(browser: Browser, office: Office, email: str) -> None:
    """The invited person opens the mailed link, and sees the inbox alone."""

    def found() -> list[str]:
        texts = (text_of(one) for one in list(office.post.mails) if email in str(one["To"]))
        return [link for text in texts for link in re.findall(rf"{office.url}/in/\S+", text)]

    until(found, what="the invitation")
    context = browser.new_context()
    context.set_default_timeout(PATIENCE)
    page = context.new_page()
    page.goto(found()[-1])
    page.get_by_role("button", name=f"Continue as {email}").click()
    arrived(page)
    expect(page.get_by_role("link", name="Inbox").first).to_be_visible()
    assert page.goto(f"{office.url}/operate/people").status == 404  # type: ignore[union-attr]
    context.close()
