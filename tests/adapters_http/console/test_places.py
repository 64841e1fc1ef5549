"""The frame around every page: places by the role of the reader, with the count of the inbox."""

import re
from itertools import pairwise
from pathlib import Path

from adapters_http.app import HttpConfig
from adapters_http.console.health import QUEUE
from adapters_http.console.history import said
from adapters_http.console.log import coloured
from adapters_http.console.overview import nice_duration, nice_step
from adapters_http.console.places import places_for
from tests.support.http_world import code
from wfcore.model.access import OPERATOR
from wfcore.model.event import EventKind
from wfcore.model.workflow import Branch, ParallelStep
from wfcore.ports.runtime import StepEnd
from wfcore.rules.definition.flow import lay_out_for_page
from wfcore.time import DAY, HOUR
from wfcore.usecases.accounts import accounts

from .approval_case import Case, both
from .conftest import Site
from .execution_case import FAILED, Runs
from .test_executions import Reader, text_of
from .test_targets import addresses


def _places(html: str) -> list[str]:
    nav = html.partition('class="places"')[2].partition("</nav>")[0]
    return re.findall(r'href="/([\w/]+)"', nav)


OWNED = ["inbox", "overview", "executions", "workflows"]
CONNECTED = [f"operate/{name}" for name in ("webhooks", "schedules", "keys", "usage", "secrets")]


def test_places_are_offered_by_role(site: Site):
    """An approver gets the inbox alone, an owner what is theirs, an operator the server, too."""
    Case(site, 1, **both())
    bob, ann = Reader(site, "bob"), Reader(site)
    assert _places(bob.get("/inbox").text) == ["inbox", "more"]
    assert _places(ann.get("/inbox").text) == [*OWNED, *CONNECTED, "operate/audit", "more"]
    site.do(accounts.set_account(site.world.services, OPERATOR, site.world.ann.id, operator=True))
    found = _places(Reader(site).get("/inbox").text)
    assert found[: len(OWNED) + len(CONNECTED)] == [*OWNED, *CONNECTED]
    assert {"operate/people", "operate/health"} < set(found)
    assert [group.title for group in places_for(owns=False, operator=False)] == [""]


def test_the_overview_names_what_fails_and_who_is_waited_for(site: Site):
    """Figures of a day, each a link to its list; failures by workflow, step and first line."""
    runs = Runs(site)
    for _ in range(2):
        runs.play(runs.start(), FAILED)
    runs.play(runs.start())
    page = Reader(site).get("/overview")
    assert page.status_code == 200
    assert "ValueError: no score for P-1003" in page.text
    row = page.text.partition("ValueError: no score")[2]
    assert re.search(r'class="num">2<', row)
    assert "200 payouts wait for release." in page.text
    assert '<a class="card fig" href="/executions?status=FAILED">' in page.text


def test_the_overview_shows_ages_and_to_operators_the_capacity(tmp_path: Path):
    """How long each approval has waited; places and queue to operators alone. AC-7."""

    async def gauges() -> dict[str, float]:
        return {"wfcore_executions_running": 3, "wfcore_places": 16, QUEUE: 9}

    site = Site(tmp_path, HttpConfig(console=True, gauges=gauges))
    try:
        Case(site, 1, **both())
        shown = text_of(Reader(site).get("/overview"))
        assert re.search(r"asked \S+ .{1,9} ago ends in", shown)
        assert "Capacity" not in shown
        site.do(
            accounts.set_account(site.world.services, OPERATOR, site.world.ann.id, operator=True)
        )
        assert "Executions at once 3 of 16" in text_of(Reader(site).get("/overview"))
        assert "Executions wait for a server" in text_of(Reader(site).get("/overview"))
    finally:
        site.close()


def test_the_overview_is_by_the_hour_or_by_the_day(site: Site):
    """Ends and durations in 24 hours or 7 days, drawn and as a table; what is older is left out."""
    runs = Runs(site, code("only"))
    clock, now = site.world.clock, site.world.clock.now()
    for back in (6, 2):  # days
        clock.advance(now - back * DAY - clock.now())
        id = runs.start()
        clock.advance(5_000)
        runs.play(id)
    clock.advance(now - clock.now())
    runs.play(runs.start(), {"only": StepEnd(error="no")})
    reader = Reader(site)
    hours, days = reader.get("/overview"), reader.get("/overview?by=day")
    assert "0 ended and 1 failed" in hours.text
    assert "Nothing completed." in text_of(hours)
    assert "2 ended and 1 failed" in days.text
    assert days.text.count('<rect class="completed"') == 2
    assert days.text.count('<circle class="most"') == 2
    assert re.search(r"Half took less than 5( s|\.\d s)", days.text)
    assert 'href="/overview" ' in days.text
    assert 'aria-current="page">7 days' in days.text


def test_lines_of_durations_stand_at_round_times():
    """Seconds, minutes, hours and days, four lines at most."""
    found = [nice_duration(most) for most in (30, 4_100, 61_000, 3 * HOUR, 30 * DAY)]
    assert found == [10, 2_000, 30_000, HOUR, 10 * DAY]


def test_lines_stand_at_round_numbers():
    """1, 2 or 5 times a power of ten, four lines at most."""
    assert [nice_step(most) for most in (1, 4, 5, 9, 30, 331)] == [1, 1, 2, 5, 10, 100]


def test_colours_of_a_terminal_are_colours_of_the_page():
    """Colours and bold become classes; other codes stay, for `shown` to make visible."""
    text = "a \x1b[31mred \x1b[1mbold\x1b[0m end \x1b[2J"
    assert list(coloured(text)) == [
        ("", "a "),
        ("bad", "red "),
        ("bad strong", "bold"),
        ("", " end \x1b[2J"),
    ]


def test_a_wide_flow_runs_from_left_to_right():
    """More than four steps beside each other: the same parts, turned, none over another."""
    fork = ParallelStep("p", tuple(Branch(f"b{n}", (code(f"s{n}"),)) for n in range(5)))
    narrow = lay_out_for_page((fork.__class__("p", fork.branches[:4]), code("last")))
    wide = lay_out_for_page((fork, code("last")))
    assert (narrow.across, wide.across) == (False, True)
    assert len({box.x for box in wide.boxes if box.name != "last"}) == 1
    tops = sorted(box.y for box in wide.boxes if box.name != "last")
    assert all(b - a >= wide.boxes[0].height for a, b in pairwise(tops))
    assert all(box.x > 0 and box.x + box.width < wide.width for box in wide.boxes)
    assert all(box.y > 0 and box.y + box.height < wide.height for box in wide.boxes)


def test_every_event_has_a_sentence():
    """An icon and words for each kind; the step stands where the sentence names one."""
    found = {kind: said(kind, "ann@example.org") for kind in EventKind}
    assert found[EventKind.STEP_STARTED] == ("start", "", " began")
    assert found[EventKind.EXECUTION_INTERRUPTED][2] is None
    assert said(EventKind.APPROVAL_REJECTED, None)[1] == "Nobody in time rejected "


def test_an_approver_sees_the_approval_and_nothing_else(site: Site):
    """
    Every page that an owner or an operator has, for an account that only decides: 404, or not a
    word of what belongs to others. AC-4, AC-7.
    """
    Case(site, 1, **both())
    paths, bob = addresses(site), Reader(site, "bob")
    for path in paths:
        answer = bob.get(path)
        if re.search(
            r"/(workflows|executions|keys|webhooks|people|schedules|group)/\w+_?\w*", path
        ):
            own = path.startswith(("/workflows/new", "/operate/webhooks/new"))
            assert answer.status_code in ((200, 404) if own else (403, 404)), (path, answer)
        shown = text_of(answer)
        for word in ("BANK_TOKEN", "Timed", "Stateful", "tax@example.com", "finance"):
            assert word not in shown, (path, word)
    assert "BANK_TOKEN" in text_of(Reader(site).get("/operate/secrets")), "the owner sees it"
    server = ("people", "groups", "notices", "health")
    assert {bob.get(f"/operate/{one}").status_code for one in server} == {404}
