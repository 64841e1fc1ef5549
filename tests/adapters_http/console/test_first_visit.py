"""The first page by role, and the start page: the sample with one press, and ways of one's own."""

import re
from collections.abc import Callable, Iterator
from html import unescape
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from adapters_http.app import HttpConfig
from adapters_http.config import HealthCheck
from tests.support.http_world import bearer
from wfcore.model.access import OPERATOR
from wfcore.model.page import NEWEST, PageRequest
from wfcore.ports.runtime import StepEnd
from wfcore.usecases.accounts import accounts
from wfcore.usecases.executions.executions import list_executions
from wfserver import sample

from .approval_case import Case, both
from .conftest import Site, enter
from .execution_case import Runs
from .test_editing import read
from .test_executions import Reader, text_of


async def _checks() -> list[HealthCheck]:
    return [
        HealthCheck("backups", False, "none by wfcore backup yet"),
        HealthCheck("disk", True, ""),
    ]


CONFIG = HttpConfig(
    console=True,
    read_definition=read,
    sample=lambda: (read(sample.text()), sample.text().decode()),
    checks=_checks,
)
ROWS = [{"order": "A-1003", "customer": "Alan", "paid": 59.0, "amount": 95.0, "why": "too much"}]


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    made = Site(tmp_path, CONFIG)
    yield made
    made.close()


def _first(reader: Reader) -> str:
    answer = reader.get("/")
    assert answer.status_code == 303
    return answer.headers["location"]


def test_the_first_page_by_role(site: Site):
    """Start while nothing has run, the inbox while something waits, else the overview."""
    ann = Reader(site)
    assert _first(ann) == "/start"
    runs = Runs(site)
    runs.play(runs.start())
    assert _first(ann) == "/inbox"
    Case(site, 1, **both())
    bob = Reader(site, "bob")
    assert _first(bob) == "/inbox"
    assert bob.get("/start").status_code == 404
    site.do(site.world.account("eve"))
    assert _first(Reader(site, "eve")) == "/start"


def test_the_start_page_can_be_hidden(site: Site):
    """One press, and this browser begins with the overview; the page stays at its address."""
    ann = Reader(site)
    hidden = ann.post("/start/hide")
    assert hidden.headers["location"] == "/"
    assert "wfcore_start=hidden; Path=/" in hidden.headers["set-cookie"]
    ann.headers = {**ann.headers, "Cookie": f"{ann.headers['Cookie']}; wfcore_start=hidden"}
    assert _first(ann) == "/overview"
    assert ann.get("/start").status_code == 200


def test_the_sample_runs_once_and_its_approval_opens(site: Site):
    """A second press starts nothing; the page of the run leads to the approval that waits."""
    ann = Reader(site)
    once = re.findall(r'name="once" value="([^"]+)"', ann.get("/start").text)[0]
    began, again = (ann.post("/start/sample", once=once) for _ in range(2))
    assert began.status_code == 303
    assert began.headers["location"] == again.headers["location"]
    found = site.do(
        list_executions(site.world.services, OPERATOR, PageRequest(size=5, after=NEWEST))
    )
    assert [one.workflow_name for one in found.rows] == [sample.NAME]
    site.do(site.world.run(StepEnd({"rows": ROWS, "count": 1})))
    opened = ann.get(began.headers["location"])
    assert opened.headers["location"].startswith("/approvals/appr_")
    assert "1 suspicious refunds" in text_of(ann.get(opened.headers["location"]))


def test_a_server_without_a_sample_offers_the_other_ways(tmp_path: Path):
    """No sample, or none that the reader may make: no button, and 404 for the press."""
    site = Site(tmp_path, HttpConfig(console=True))
    try:
        ann = Reader(site)
        assert "Run the sample" not in ann.get("/start").text
        assert ann.post("/start/sample", once="x" * 22).status_code == 404
    finally:
        site.close()


def test_operators_see_what_the_server_lacks(site: Site):
    """Mail and backups, each with the page that says more; nobody else sees them."""
    assert "No mail yet" not in Reader(site).get("/start").text
    site.do(accounts.set_account(site.world.services, OPERATOR, site.world.ann.id, operator=True))
    shown = Reader(site).get("/start").text
    assert re.search(r'href="/operate/notices">No mail yet', shown)
    assert re.search(r'href="/operate/health">No backup yet', shown)


def test_a_key_comes_with_a_line_that_holds_it(site: Site):
    """One press on the start page: a key, and a curl that works as it stands."""
    ann = Reader(site)
    form = ann.get("/start").text.partition('action="/operate/keys"')[2].partition("</form>")[0]
    fields = dict(re.findall(r'name="([^"]+)" value="([^"]+)"', form))
    made = ann.post("/operate/keys", **fields)
    line = unescape(re.findall(r'<pre id="curl"[^>]*>([^<]+)</pre>', made.text)[0])
    key = re.findall(r"Bearer ([^']+)'", line)[0]
    assert f'<pre id="secret" tabindex="0">{key}</pre>' in made.text
    assert line.startswith(f"curl {site.url}/api/v1/workflows")
    answer = site.do(site.world.http.get("/api/v1/workflows", headers=bearer(key)))
    assert answer.status_code == 200


def test_a_newcomer_releases_the_sample_without_scripts(site: Site, browser: Browser):
    """Start, one press, and the approval is there; no script is needed on the way."""
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    enter(site, page)
    page.goto(f"{site.url}/")
    page.wait_for_url("**/start")
    with page.expect_request("**/start/runs/*"):
        page.get_by_role("button", name="Run the sample").click(no_wait_after=True)
    site.do(site.world.run(StepEnd({"rows": ROWS, "count": 1})))
    page.wait_for_url("**/approvals/*")
    expect(page.get_by_text("1 suspicious refunds").first).to_be_visible()
    context.close()


def test_the_start_page_is_for_everybody(
    site: Site, signed_in: Page, accessible: Callable[[Page], None]
):
    """Nothing for axe to find, wide and narrow, light and dark."""
    signed_in.goto(f"{site.url}/start")
    accessible(signed_in)
