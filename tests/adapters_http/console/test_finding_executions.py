"""The list of executions as a tool: views with names, a search in inputs, hours, order, ranges."""

import re
from typing import Any
from urllib.parse import parse_qs

from playwright.sync_api import Page, expect

from tests.support.http_world import code
from wfcore.model.workflow import Variable
from wfcore.ports.runtime import StepEnd
from wfcore.rules.limits import VIEWS_PER_ACCOUNT

from .conftest import Site
from .execution_case import Runs, give_calendar, in_every_state
from .test_executions import Reader

HOUR = 3_600_000


def rows(reader: Reader, query: str) -> list[str]:
    """The ids of a list, in its order."""
    return re.findall(r'<tr id="([^"]+)"', reader.get(f"/executions?{query}").text)


def test_a_view_is_a_link_with_a_name(site: Site):
    """It keeps the filters that may be in an address, is marked as the present one, and goes."""
    states, reader = in_every_state(Runs(site)), Reader(site)
    query = "status=FAILED&sort=oldest&after=x&next=//evil"
    saved = reader.post("/executions/views", name=" Failed payouts ", query=query)
    assert saved.headers["location"] == "/executions?status=FAILED"
    page = reader.get("/executions").text
    assert '<a href="/executions?status=FAILED"><bdi>Failed payouts</bdi></a>' in page
    page = reader.get("/executions?status=FAILED").text
    assert '<a href="/executions?status=FAILED" aria-current="page"><bdi>Failed' in page
    assert page.count('aria-current="page"><bdi>') == 1
    assert rows(reader, "status=FAILED") == [states["failed"]]
    site.do(site.world.account("bob"))
    assert "Failed payouts" not in Reader(site, "bob").get("/executions").text
    reader.post("/executions/views", forget="Failed payouts")
    assert "Failed payouts" not in reader.get("/executions").text


def test_there_are_so_many_views(site: Site):
    """One more is refused with the reason; the same name replaces the view."""
    reader = Reader(site)
    for n in (*range(VIEWS_PER_ACCOUNT), 0):
        answer = reader.post("/executions/views", name=f"v{n}", query=f"q=text{n}")
        assert answer.status_code == 303
    answer = reader.post("/executions/views", name="more", query="q=a")
    assert (answer.status_code, "forget one first" in answer.text) == (400, True)
    assert reader.post("/executions/views", name=" ", query="q=a").status_code == 400


def test_a_search_finds_names_references_and_inputs(site: Site):
    """In any case and in part; a secret input is never searched."""
    secret = Variable("token", secret=True)
    runs = Runs(
        site, code("only"), name="Refunds", variables={"shop": Variable("shop"), "token": secret}
    )
    ids = [runs.start(shop="Grüner Tee", token="s3cret-value"), runs.start(shop="Assam")]
    other, reader = Runs(site, code("only"), name="Invoices").start(), Reader(site)
    assert rows(reader, "q=refUNDS") == ids[::-1]
    assert rows(reader, "q=grüner") == [ids[0]]
    assert rows(reader, "q=s3cret") == []
    assert rows(reader, "q=invoice") == [other]
    assert "No execution matches" in reader.get("/executions?q=nowhere").text


def test_the_bar_of_an_hour_filters_by_a_press(site: Site):
    """Its figures are in its name; the bar pressed is marked, and clears the filter again."""
    runs, reader = Runs(site, code("only")), Reader(site)
    old = runs.play(runs.start(), {"only": StepEnd(error="no")})
    site.world.clock.advance(7 * HOUR)
    new = runs.play(runs.start())
    page = reader.get("/executions").text
    links = re.findall(r'<a href="(/executions\?span=[^"]+)" aria-label="([^"]+)"', page)
    assert len(links) == 16
    failed = [link for link, name in links if "0 ended, 1 failed" in name]
    ended = [link for link, name in links if "1 ended, 0 failed" in name]
    assert [re.findall(r'<tr id="([^"]+)"', reader.get(one).text) for one in failed] == [[old]]
    assert [re.findall(r'<tr id="([^"]+)"', reader.get(one).text) for one in ended] == [[new]]
    marked = reader.get(failed[0]).text
    assert re.search(r'<a href="/executions\?" aria-label="[^"]+1 failed" aria-current', marked)
    assert "is not valid and was ignored" in reader.get("/executions?span=noon").text


def test_the_order_is_in_the_address(site: Site):
    """A press on *Started* turns the list around, also over pages; its head says the order."""
    runs, reader = Runs(site, code("only")), Reader(site)
    ids = [runs.start() for _ in range(60)]
    page = reader.get("/executions").text
    assert 'aria-sort="descending"><a href="/executions?sort=oldest"' in page
    turned = reader.get("/executions?sort=oldest").text
    assert 'aria-sort="ascending"><a href="/executions?"' in turned
    assert rows(reader, "sort=oldest") == ids[:50]
    after = re.search(r'rel="next" href="[^"]*\?([^"]+)"', turned)
    assert after
    asked = parse_qs(after[1].replace("&amp;", "&"))
    assert rows(reader, f"sort=oldest&after={asked['after'][0]}") == ids[50:]


def test_rows_are_as_low_as_the_reader_likes(site: Site):
    """*Comfortable* in the account's menu makes them higher, in this browser."""
    reader = Reader(site)
    answer = reader.post("/settings", theme="", times="", density="comfortable", next="/executions")
    cookie = answer.headers["set-cookie"]
    assert "wfcore_density=comfortable" in cookie
    kept = f"{reader.headers['Cookie']}; wfcore_density=comfortable"
    assert 'data-density="comfortable"' in reader.get("/executions", Cookie=kept).text
    assert "data-density" not in reader.get("/executions").text


def test_shift_takes_a_range(site: Site, signed_in: Page, accessible: Any):
    """All boxes from the last press to this one become as this one."""
    runs = Runs(site, code("only"))
    for _ in range(5):
        runs.start()
    signed_in.goto(f"{site.url}/executions")
    boxes = signed_in.locator("tbody .pick input")
    boxes.nth(1).click()
    boxes.nth(3).click(modifiers=["Shift"])
    expect(signed_in.get_by_text("3 selected")).to_be_visible()
    boxes.nth(2).click(modifiers=["Shift"])
    expect(signed_in.get_by_text("2 selected")).to_be_visible()
    boxes.nth(4).click(modifiers=["Shift"])
    expect(signed_in.get_by_text("4 selected")).to_be_visible()
    accessible(signed_in)


def test_the_head_stays_and_long_texts_open(site: Site, signed_in: Page):
    """While rows go by, the head is in view; a cut text is shown whole with the focus."""
    runs = Runs(site, code("only"))
    for _ in range(30):
        runs.play(runs.start())
    bad = {"only": StepEnd(error="no money in the account of this payout " * 4)}
    Runs(site, code("only")).play(runs.start(), bad)
    signed_in.set_viewport_size({"width": 1280, "height": 600})
    signed_in.goto(f"{site.url}/executions")
    what = signed_in.locator(".what[tabindex]")
    low = what.bounding_box()["height"]
    what.focus()
    assert what.bounding_box()["height"] > low
    assert "no money" in what.get_attribute("title")
    signed_in.locator("tbody tr").last.scroll_into_view_if_needed()
    expect(
        signed_in.get_by_role("columnheader", name="Started", exact=False).first
    ).to_be_in_viewport()


def test_the_zone_of_mails_is_a_choice_of_the_account(site: Site):
    """An unknown zone is refused on the page; the empty name is UTC again."""
    give_calendar(site)
    reader = Reader(site)
    assert reader.post("/account/zone", zone=" Europe/Berlin ").status_code == 303
    assert 'name="zone" value="Europe/Berlin"' in reader.get("/account").text
    wrong = reader.post("/account/zone", zone="Berlin?")
    assert (wrong.status_code, "Berlin? is no time zone" in wrong.text) == (409, True)
    assert reader.post("/account/zone", zone="").status_code == 303
    assert 'name="zone" value=""' in reader.get("/account").text
