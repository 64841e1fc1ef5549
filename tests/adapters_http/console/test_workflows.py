"""The pages of workflows: what the list sums up, who sees what, and a form that starts once."""

import re
from datetime import datetime

import pytest
from attrs import evolve

from adapters_http.console.formats import iso
from adapters_http.console.workflows import SIZE
from tests.support.http_world import code
from wfcore.model.access import OPERATOR, Permission
from wfcore.model.execution import ExecutionStatus, Usage
from wfcore.model.page import PageRequest
from wfcore.model.trigger import Chain, Refusal, Schedule
from wfcore.model.workflow import Concurrency, Variable, VariableType
from wfcore.ports.runtime import StepEnd
from wfcore.usecases.workflows import workflows
from wfcore.usecases.workflows.browsing import LATEST
from wfcore.usecases.workflows.triggers import list_triggers

from .conftest import Site
from .execution_case import FAILED, Runs, give_calendar, payout_steps
from .test_executions import HOSTILE, Reader, text_of

VARIABLES = {
    one.name: one
    for one in (
        Variable("who", required=True),
        Variable("rows", VariableType.NUMBER, has_default=True, default=200),
        Variable("dry", VariableType.BOOLEAN),
        Variable("filter", VariableType.OBJECT),
        Variable("token", secret=True, has_default=True, default="k4nary-default"),
    )
}


def share(site: Site, workflow_id: str, name: str, permission: Permission) -> Reader:
    """Somebody new with that permission."""
    account = site.do(site.world.account(name))
    services = site.world.services
    site.do(workflows.share_workflow(services, OPERATOR, workflow_id, account.id, permission))
    return Reader(site, name)


def once_of(page: str) -> str:
    return re.findall(r'name="once" value="([^"]+)"', page)[0]


def test_the_list_tells_what_a_week_cost(site: Site):
    """In cents, every digit on hover; unknown prices are named, and a redrive pays for itself."""
    runs = Runs(site, code("one"), code("two"))
    assert "USD" not in Reader(site).get("/workflows").text
    priced, failed = StepEnd(usage=Usage(1, 1, "1.2345")), StepEnd(error="no")
    id = runs.play(runs.start(), {"one": priced, "two": failed})
    again = site.do(site.world.post(f"/api/v1/executions/{id}/redrive")).json()["executionId"]
    runs.play(again, {"two": StepEnd(usage=Usage(1, 1, "0.0005"))})
    shown = Reader(site).get("/workflows")
    assert 'title="1.235 USD">1.24 USD' in shown.text
    runs.play(runs.start(), {"one": StepEnd(usage=Usage(1, 1, None))})
    assert "1.24 USD 1 at an unknown price" in text_of(Reader(site).get("/workflows"))


def test_the_list_sums_up_without_definitions(site: Site):
    """Name, last run, the day's ends, what waits and the next fire; nothing of a definition."""
    give_calendar(site)
    schedule = Schedule("0 9 * * *", "Europe/Berlin")
    runs = Runs(site, *payout_steps(), triggers=(schedule,))
    runs.play(runs.start(), FAILED)
    last = runs.play(runs.start())
    Runs(site, code("only"), name="Other", description="k4nary-description")
    found = Reader(site).get("/workflows")
    shown = text_of(found)
    assert "Payout run Awaiting approval" in shown
    assert "1 approval in" in shown
    assert f'href="/executions/{last}"' in found.text
    assert "2 executions: 1 failed, 1 not ended" in found.text
    assert "Other never" in shown
    assert "k4nary" not in found.text


def test_a_list_of_many_goes_on_behind_its_last_row(site: Site):
    """51 workflows are two pages, no row twice, none missing; a cut address is the first. PG-5."""
    for number in range(SIZE + 1):
        site.do(site.world.workflow(name=f"w{number:02}"))
    reader = Reader(site)
    first = reader.get("/workflows").text
    next = re.findall(r'rel="next" href="([^"]+)"', first)[0]
    names = re.findall(r'<th scope="row"><a [^>]+>(w\d+)', first + reader.get(next).text)
    assert names == [f"w{number:02}" for number in range(SIZE + 1)]
    assert reader.get("/workflows?after=nothing").text.count('<th scope="row">') == SIZE


def test_who_sees_which_page_of_a_workflow(site: Site):
    """Page × role: VIEW looks, EXECUTE starts, a stranger gets 404, nobody 401. AC-2, AC-3."""
    id = site.do(site.world.workflow())
    people = {one.value: share(site, id, one.value.lower(), one) for one in Permission}
    site.do(site.world.account("eve"))
    people |= {"owner": Reader(site), "stranger": Reader(site, "eve"), "nobody": Reader(site, None)}
    expected = {
        f"/workflows/{id}": {**dict.fromkeys(people, 200), "stranger": 404, "nobody": 401},
        f"/workflows/{id}/start": {
            **dict.fromkeys(people, 200), "VIEW": 403, "stranger": 404, "nobody": 401,
        },
        f"/workflows/{id}/triggers": {
            **dict.fromkeys(people, 200), "stranger": 404, "nobody": 401,
        },
        "/workflows": {**dict.fromkeys(people, 200), "nobody": 401},
    }  # fmt: skip
    for path, statuses in expected.items():
        for name, status in statuses.items():
            assert people[name].get(path).status_code == status, (path, name)
    assert "Start…" not in people["VIEW"].get(f"/workflows/{id}").text
    assert "Start…" in people["EXECUTE"].get(f"/workflows/{id}").text
    assert f'href="/workflows/{id}/sharing"' in people["owner"].get(f"/workflows/{id}").text
    assert f'href="/workflows/{id}/sharing"' not in people["EDIT"].get(f"/workflows/{id}").text
    assert id not in people["stranger"].get("/workflows").text


def test_one_workflow_shows_its_picture_and_what_starts_it(site: Site):
    """Steps as links of a picture, variables without secrets, schedules by their own clock."""
    give_calendar(site)
    id = site.do(
        site.world.workflow(
            *payout_steps(),
            name="<img src=x onerror=alert(1)>",
            description=HOSTILE,
            variables={"token": VARIABLES["token"], "rows": VARIABLES["rows"]},
            triggers=(Schedule("0 9 * * 1", "Europe/Berlin"),),
            concurrency=Concurrency(2),
        )
    )
    answer = Reader(site).get(f"/workflows/{id}")
    shown = text_of(answer)
    assert 'href="#step-collect"' in answer.text
    assert 'id="step-bank_limit"' in answer.text
    assert "<img" not in answer.text
    assert "k4nary" not in answer.text
    assert "others wait" in shown


@pytest.mark.parametrize("at", ["2026-03-28T12:00:00+00:00", "2026-10-24T12:00:00+00:00"])
def test_the_next_fire_is_what_the_command_line_lists(site: Site, at: str):
    """Over a change to or from daylight saving, the page and `trigger list` say one instant."""
    give_calendar(site)
    world, wanted = site.world, int(datetime.fromisoformat(at).timestamp() * 1_000)
    world.clock.advance(wanted - world.clock.now())
    id = site.do(world.workflow(triggers=(Schedule("30 2 * * *", "Europe/Berlin"),)))
    listed = site.do(list_triggers(world.services, OPERATOR, PageRequest(1, 9)))
    next_at = listed.rows[0].standing.next_at
    assert next_at is not None
    for path in ("/workflows", f"/workflows/{id}", f"/workflows/{id}/triggers"):
        assert f'datetime="{iso(next_at)}"' in Reader(site).get(path).text


def test_a_double_submit_is_one_execution(site: Site):
    """The form's own key: the second click leads to the execution of the first. IK-1."""
    id = site.do(site.world.workflow(variables=VARIABLES))
    reader = Reader(site)
    once = once_of(reader.get(f"/workflows/{id}/start").text)
    form = {"once": once, "inputs.who": "Ann", "inputs.rows": "200"}
    first, second = (reader.post(f"/workflows/{id}/start", **form) for _ in range(2))
    assert first.status_code == second.status_code == 303
    assert second.headers["location"] == f"{first.headers['location']}?started=before"
    page = reader.get(second.headers["location"]).text
    assert "That form had started this execution already; nothing new was started." in page
    assert f"/workflows/{id}/start" in page
    assert site.do(site.world.get("/api/v1/executions")).json()["total"] == 1
    other = reader.post(f"/workflows/{id}/start", **{**form, "inputs.who": "Bob"})
    assert other.status_code == 400
    assert "started an execution already" in other.text
    again = reader.post(
        f"/workflows/{id}/start", **{**form, "inputs.who": "Bob", "once": once_of(other.text)}
    )
    assert again.headers["location"] != first.headers["location"]


def test_what_is_wrong_stands_beside_its_field(site: Site):
    """A missing required variable and a text that is no number, in the server's words."""
    id = site.do(site.world.workflow(variables=VARIABLES))
    reader = Reader(site)
    form = {"once": "k1", "inputs.who": "", "inputs.rows": "many", "inputs.token": "k4nary-typed"}
    wrong = reader.post(f"/workflows/{id}/start", **form, **{"inputs.filter": "{oops"})
    assert wrong.status_code == 400
    assert "✕ rows must be a number" in text_of(wrong)
    assert "✕ filter must be an object" in text_of(wrong)
    assert 'value="many"' in wrong.text
    assert "{oops" in wrong.text
    assert "k4nary" not in wrong.text
    missing = reader.post(f"/workflows/{id}/start", **{**form, "inputs.rows": "1"})
    assert "✕ who is required" in text_of(missing)


def test_the_key_of_a_form_is_one_as_of_a_header(site: Site):
    """At most 255 printable characters: it is kept for a day. IK-1."""
    id = site.do(site.world.workflow(variables=VARIABLES))
    reader = Reader(site)
    for once in ("", "k" * 256, "k\n", "kü"):
        form = {"once": once, "inputs.who": "Ann", "inputs.rows": "1"}
        refused = reader.post(f"/workflows/{id}/start", **form)
        assert (refused.status_code, "printable ASCII" in refused.text) == (400, True), once


def test_a_form_starts_with_typed_values(site: Site):
    """Each type as its variable declares it; what is left empty takes the default. VM-4, VM-6."""
    id = site.do(site.world.workflow(variables=VARIABLES))
    reader = Reader(site)
    form = {"once": "k", "inputs.who": "Ann", "inputs.rows": "12.5", "inputs.dry": "true",
            "inputs.filter": '{"a": [1]}', "inputs.token": ""}  # fmt: skip
    location = reader.post(f"/workflows/{id}/start", **form).headers["location"]
    status = site.do(site.world.get(f"/api/v1{location}")).json()
    assert status["inputs"] == {
        "who": "Ann", "rows": 12.5, "dry": True, "filter": {"a": [1]}, "token": "***",
    }  # fmt: skip
    assert status["triggerSource"] == "manual"


STATE = {
    one.name: one
    for one in (
        Variable("cursor", has_default=True, default="", description="Where it stopped."),
        Variable("count", VariableType.NUMBER),
        Variable("token", secret=True),
    )
}


def test_the_state_of_a_workflow_is_shown_and_set(site: Site):
    """Each name has its own form, so that no other value is sent back; a secret is not shown."""
    id = site.do(site.world.workflow(state=STATE))
    reader = Reader(site)
    assert "cursor default Where it stopped." in text_of(reader.get(f"/workflows/{id}/state"))
    for form in (
        {"name": "cursor", "text": "c<1>"},
        {"name": "count", "text": "2.5"},
        {"name": "token", "text": "k4nary"},
    ):
        done = reader.post(f"/workflows/{id}/state", **form)
        assert (done.status_code, done.headers["location"]) == (303, f"/workflows/{id}/state")
    shown = reader.get(f"/workflows/{id}/state")
    assert "c&lt;1&gt;" in shown.text
    assert "count 2.5" in text_of(shown)
    assert "token secret, has a value" in text_of(shown)
    assert "k4nary" not in shown.text
    reader.post(f"/workflows/{id}/state", name="count", text="9", reset="1")
    assert "count null" in text_of(reader.get(f"/workflows/{id}/state"))
    wrong = reader.post(f"/workflows/{id}/state", name="count", text="many")
    assert (wrong.status_code, "✕ count must be a number" in text_of(wrong)) == (400, True)
    assert 'value="many"' in wrong.text


def test_who_may_not_edit_sees_state_without_a_form(site: Site):
    """VIEW reads, and its forged form is refused. SV-7."""
    id = site.do(site.world.workflow(state=STATE))
    reader = share(site, id, "bob", Permission.VIEW)
    shown = reader.get(f"/workflows/{id}/state")
    assert "cursor default" in text_of(shown)
    assert '<form method="post" action="/workflows' not in shown.text
    assert reader.post(f"/workflows/{id}/state", name="cursor", text="c").status_code == 403


def test_the_list_has_the_last_runs_as_bars(site: Site):
    """
    A bar for each of the last 30 executions, oldest first: its end by class and in words; the rest
    of a longer past is not drawn.
    """
    runs = Runs(site, code("only"))
    for _ in range(LATEST):
        runs.play(runs.start())
    runs.play(runs.start(), {"only": StepEnd(error="no")})
    runs.start()
    answer = Reader(site).get("/workflows").text
    assert "30 executions: 1 failed, 1 not ended" in answer
    drawn = re.findall(r'<rect class="(\w+)"', answer)
    assert drawn == ["completed"] * (LATEST - 2) + ["failed", "pending"]
    shown = Reader(site).get(f"/workflows/{runs.workflow}")
    assert "30 executions: 1 failed, 1 not ended" in shown.text
    latest = shown.text.split("latest-title")[2]
    assert latest.count('href="/executions/') == 5, "the newest five, and a link to all"


def test_a_paused_workflow_says_who_paused_it(site: Site):
    """The list and the page say by whom and since when nothing starts; one active trigger: no."""
    give_calendar(site)
    hourly, daily = Schedule("0 * * * *", "UTC"), Schedule("0 9 * * *", "UTC")
    id = site.do(site.world.workflow(triggers=(hourly, daily)))
    reader = Reader(site)
    rows = site.do(list_triggers(site.world.services, OPERATOR, PageRequest(1, 9))).rows
    for row in rows:
        assert "paused by" not in text_of(reader.get("/workflows"))
        done = reader.post(f"/operate/schedules/{row.trigger.id}", status="PAUSED")
        assert done.headers["location"] == f"/workflows/{id}/triggers"
    for path in ("/workflows", f"/workflows/{id}"):
        assert re.search(
            r"paused by ann@example\.org, (now|\d+ \w+ ago)", text_of(reader.get(path))
        )


def test_the_triggers_of_a_workflow_are_a_page(site: Site):
    """Schedules in words with their next times, pauses and backfills, and the reader's webhooks."""
    give_calendar(site)
    id = site.do(site.world.workflow(triggers=(Schedule("0 9 * * 1", "Europe/Berlin"),)))
    viewer = share(site, id, "viewer", Permission.VIEW)
    answer = Reader(site).get(f"/workflows/{id}/triggers")
    shown = text_of(answer)
    assert "Mondays 09:00, Berlin" in shown
    assert re.search(r"runs Mon \d{4}-\d\d-\d\d 09:00 Europe/Berlin", shown)
    assert answer.text.count("<li><time") == 5
    assert "Pause" in shown
    assert "Backfill…" in shown
    assert f'href="/operate/webhooks/new?workflow={id}"' in answer.text
    seen = text_of(viewer.get(f"/workflows/{id}/triggers"))
    assert "Mondays 09:00" in seen
    assert "Pause" not in seen
    assert "Connect a webhook" not in seen


def test_the_page_says_what_a_trigger_hands_on(site: Site):
    """The ends that a chain follows, the inputs of each start, the input that was wrong. SH-12."""
    give_calendar(site)
    first = site.do(site.world.workflow(name="First"))
    failed, inputs = (ExecutionStatus.FAILED,), {"cause": "{{ trigger.executionId }}", "n": 7}
    chain = Chain(first, 5, on=failed, inputs=inputs)
    declared = {"cause": Variable("cause"), "n": Variable("n", VariableType.NUMBER)}
    id = site.do(site.world.workflow(name="Then", triggers=(chain,), variables=declared))
    path = f"/workflows/{id}/triggers"
    shown = text_of(Reader(site).get(path))
    assert "5 s after" in shown
    assert "when it is Failed cause = {{ trigger.executionId }} n = 7" in shown

    async def refuse() -> None:
        async with site.world.services.store.unit() as unit:
            (row,) = (await list_triggers(site.world.services, OPERATOR, PageRequest(1, 9))).rows
            reason, detail = Refusal.INVALID_INPUT, "inputs.n: no"
            unit.put(evolve(row.trigger, refusal=reason, refused_at=1, refusal_detail=detail))
            await unit.commit()

    site.do(refuse())
    assert "inputs.n: no" in text_of(Reader(site).get(path))
