"""The pages below `/operate`: who sees which, secrets that are shown once, usage, audit, people."""

import re
from html import unescape

import httpx
import pytest
from attrs import evolve

from adapters_http.app import HttpConfig
from adapters_http.config import HealthCheck
from adapters_http.console.operate import FOR_OPERATORS, TABS
from tests.support.http_world import bearer
from wfcore.model.access import OPERATOR, Account, Scope, Tier
from wfcore.model.execution import Usage
from wfcore.model.passkey import Passkey
from wfcore.model.trigger import Schedule
from wfcore.model.workflow import AiStep, ApprovalStep, Definition
from wfcore.ports.runtime import StepEnd
from wfcore.time import DAY, MINUTE, EpochMs
from wfcore.usecases.accounts import accounts, keys
from wfcore.usecases.audit.auditing import read_audit
from wfcore.usecases.upkeep.retention import run_upkeep
from wfcore.usecases.workflows.workflows import delete_workflow, read_workflow

from .conftest import Site
from .execution_case import Runs, give_calendar
from .test_executions import HOSTILE, Reader, text_of

PAGES = [f"/operate/{name}" for name in TABS]
OPERATORS = [f"/operate/{name}" for name in FOR_OPERATORS]


def operator(site: Site) -> tuple[Account, Reader]:
    """Olga, who operates the server."""
    made = accounts.create_account(
        site.world.services, "olga@example.org", password="correct horse battery staple",
        operator=True,
    )  # fmt: skip
    account = site.do(made)
    return account, Reader(site, "olga")


def secret_of(page: str) -> str:
    """The key that a page shows."""
    return unescape(re.findall(r'<pre id="secret"[^>]*>([^<]+)</pre>', page)[0])


def test_who_sees_which_page_of_operating(site: Site):
    """Page × role: everybody their own, operators all; others get 404 on operators' pages. AC-7."""
    hook = site.do(site.world.webhook())
    site.do(site.world.account("eve"))
    _, olga = operator(site)
    ann, eve, nobody = Reader(site), Reader(site, "eve"), Reader(site, None)
    own = [f"/operate/keys/{site.world.key.key.id}", f"/operate/webhooks/{hook}"]
    one = f"/operate/people/{site.world.ann.id}"
    for path in (*PAGES, *own, "/operate/audit.csv"):
        assert ann.get(path).status_code == 200, path
        assert olga.get(path).status_code == 200, path
        assert eve.get(path).status_code == (404 if path in own else 200), path
        assert nobody.get(path).status_code == 401, path
    for path in (*OPERATORS, one):
        found = [reader.get(path).status_code for reader in (ann, eve, olga, nobody)]
        assert found == [404, 404, 200, 401], path
    assert ann.post(one, plan="ENTERPRISE", status="ACTIVE").status_code == 404
    for path in (f"{one}/sign-out", f"{one}/link", "/operate/notices/ntc_1/retry"):
        assert ann.post(path).status_code == 404, path
    assert hook in olga.get("/operate/webhooks").text
    assert hook not in eve.get("/operate/webhooks").text
    for tab in FOR_OPERATORS.values():
        assert f">{tab}</a>" not in ann.get("/operate/keys").text


def test_a_made_key_works_and_is_shown_once(site: Site):
    """Its text is in one response and in no page behind it, nor in an address."""
    reader = Reader(site)
    scopes = {"scopes.WORKFLOW_READ": "1", "scopes.EXECUTION_READ": "1"}
    made = reader.post("/operate/keys", name="CI", days="7", **scopes)
    text = secret_of(made.text)
    assert "no-store" in made.headers["cache-control"]
    world = site.world
    assert site.do(world.http.get("/api/v1/workflows", headers=bearer(text))).status_code == 200
    assert site.do(world.http.get("/api/v1/approvals", headers=bearer(text))).status_code == 401
    id = re.findall(r'action="/operate/keys/([^"]+)" class="leaving"', made.text)[0]
    everything = [*PAGES, f"/operate/keys/{id}", "/operate/audit.csv"]
    assert all(text not in reader.get(path).text for path in everything)
    stored = site.do(keys.find_key(world.services, id))
    assert stored is not None
    assert stored.scopes == {Scope.WORKFLOW_READ, Scope.EXECUTION_READ}
    assert stored.expires_at == stored.created_at + 7 * 86_400_000


@pytest.mark.parametrize(
    "form", [{"name": ""}, {"days": "soon"}, {"days": "-1"}, {"scopes.X": "1"}]
)
def test_a_key_that_cannot_be_is_a_sentence(site: Site, form: dict[str, str]):
    """No scope, no name, no days: the page says so, and no key is made."""
    fields = {"name": "CI", "scopes.WORKFLOW_READ": "1", **form}
    answer = Reader(site).post("/operate/keys", **fields)
    assert answer.status_code == 400
    assert 'role="alert"' in answer.text
    assert len(site.do(keys.list_keys(site.world.services, site.world.ann.id))) == 1


def test_a_rotated_key_has_two_secrets_for_a_day(site: Site):
    """The new one is shown once; the old one is good until the page's instant, and no longer."""
    reader, old = Reader(site), site.world.key
    page = reader.post(f"/operate/keys/{old.key.id}/rotate")
    new = secret_of(page.text)

    def status(text: str) -> int:
        return site.do(site.world.http.get("/api/v1/workflows", headers=bearer(text))).status_code

    assert (status(old.text), status(new)) == (200, 200)
    assert "Old secret valid until" in reader.get(f"/operate/keys/{old.key.id}").text
    site.world.clock.advance(24 * 3_600_000 + 1)
    assert (status(old.text), status(new)) == (401, 200)


def test_a_revoked_key_is_refused_at_its_next_request(site: Site):
    """The page names what uses it, wants its name, and then it is 401. AU-3."""
    reader, key = Reader(site), site.world.key
    hook = site.do(site.world.webhook())
    path = f"/operate/keys/{key.key.id}"
    assert "for good. 1 webhook uses it and will stop working: hook ." in text_of(reader.get(path))
    assert f'href="/operate/webhooks/{hook}"' in reader.get(path).text
    wrong = reader.post(f"{path}/revoke", name="another")
    assert (wrong.status_code, "nothing was revoked" in wrong.text) == (400, True)
    assert site.do(site.world.get("/api/v1/workflows")).status_code == 200
    assert reader.post(f"{path}/revoke", name="key").status_code == 303
    assert site.do(site.world.get("/api/v1/workflows")).status_code == 401
    assert "revoked" in reader.get("/operate/keys").text


def test_nobody_touches_the_keys_of_others(site: Site):
    """Another account's key is 404 to look at, rotate and revoke. AC-3."""
    site.do(site.world.account("eve"))
    eve, path = Reader(site, "eve"), f"/operate/keys/{site.world.key.key.id}"
    assert eve.get(path).status_code == 404
    assert eve.post(f"{path}/rotate").status_code == 404
    assert eve.post(f"{path}/revoke", name="key").status_code == 404
    assert site.do(site.world.get("/api/v1/workflows")).status_code == 200


def test_a_webhook_says_why_it_refused(site: Site):
    """Deliveries with the owner's reason; it can be disabled and enabled again. WH-20."""
    hook = site.do(site.world.webhook())
    site.do(site.world.http.post(f"/api/webhooks/{hook}/trigger", json={}))
    accepted = site.do(site.world.post(f"/api/webhooks/{hook}/trigger", {"a": 1})).json()
    reader, path = Reader(site), f"/operate/webhooks/{hook}"
    shown = reader.get(path)
    assert " 401 " in text_of(shown)
    assert "without valid credentials" in text_of(shown)
    assert f'href="/executions/{accepted["executionId"]}"' in shown.text
    assert "curl -X POST" in shown.text
    assert reader.post(path, status="DISABLED").status_code == 303
    assert "by hand" in text_of(reader.get(path))
    assert site.do(site.world.post(f"/api/webhooks/{hook}/trigger", {})).status_code == 409
    assert reader.post(path, status="ACTIVE").status_code == 303
    assert reader.post(path, status="GONE").status_code == 400
    assert site.do(site.world.post(f"/api/webhooks/{hook}/trigger", {})).status_code == 202
    olga, at_hers = operator(site)
    assert at_hers.post(path, status="DISABLED").status_code == 303
    assert olga.id in at_hers.get(f"/operate/audit?event=webhook.update&target={hook}").text


def test_usage_is_what_the_headers_said(site: Site):
    """The windows of a key show what `X-RateLimit-*` of its last answer left. RL-3."""
    for _ in range(3):
        answer = site.do(site.world.get("/api/v1/workflows"))
    limit = int(answer.headers["x-ratelimit-limit"])
    used = limit - int(answer.headers["x-ratelimit-remaining"])
    shown = text_of(Reader(site).get("/operate/usage"))
    assert f"{used} of {limit}" in shown
    assert used == 3


def test_usage_adds_up_thirty_days(site: Site):
    """Requests of this day and of 29 before it, though retention has been; no more. RL-7."""
    world, reader = site.world, Reader(site)

    def month() -> int:
        found = site.do(world.http.get("/api/usage", headers=reader.headers)).json()
        return next(one["last30Days"] for one in found["quotas"] if one["id"] == world.key.key.id)

    for _ in range(3):
        site.do(world.get("/api/v1/workflows"))
    assert month() == 3
    assert '<td data-title="30 days">3</td>' in reader.get("/operate/usage").text
    world.clock.advance(29 * DAY)
    site.do(run_upkeep(world.services))
    reader = Reader(site)
    site.do(world.get("/api/v1/workflows"))
    assert month() == 4
    world.clock.advance(DAY)
    reader = Reader(site)
    assert month() == 1


def test_what_models_cost_is_added_up(site: Site):
    """By workflow and model, and whether a price is not known. AI-7."""
    runs = Runs(site, AiStep("ask", "acme:large", "Hello"), name="Asking")
    runs.play(runs.start(), {"ask": StepEnd("hi", usage=Usage(1_000, 20, "0.015"))})
    runs.play(runs.start(), {"ask": StepEnd("hi", usage=Usage(500, 5, None))})
    shown = text_of(Reader(site).get("/operate/usage"))
    assert "Asking acme:large 1500 25 0.015 USD plus some without a known price" in shown


def test_a_definition_is_read_once_for_all_its_results(site: Site, monkeypatch):
    """However many results ask for their model: a loop has one for each of its rounds. AI-7."""
    runs = Runs(site, AiStep("ask", "acme:large", "Hello"), name="Asking")
    for _ in range(3):
        runs.play(runs.start(), {"ask": StepEnd("hi", usage=Usage(500, 5, None))})
    walk, walked = Definition.walk, []
    monkeypatch.setattr(Definition, "walk", lambda one: walked.append(one) or walk(one))
    assert "Asking acme:large 1500 15" in text_of(Reader(site).get("/operate/usage"))
    assert len(walked) <= 1


def test_what_an_operator_does_to_people_is_noted_as_theirs(site: Site):
    """Another plan, and a link by which they could be somebody else: the log says whose. AL-1."""
    me, olga = operator(site)
    path = f"/operate/people/{site.world.ann.id}"
    olga.post(path, plan="TEAM", status="ACTIVE")
    olga.post(f"{path}/link")
    entries = site.do(read_audit(site.world.services, EpochMs(0), None, 100))
    found = {one.event: one.account_id for one in entries if one.target == site.world.ann.id}
    assert (found["account.set"], found["login_link.create"]) == (me.id, me.id)


def test_groups_are_for_operators(site: Site):
    """A group is made, joined, left and deleted at pages that others do not have. AC-7, AP-49."""
    assert Reader(site).get("/operate/groups").status_code == 404
    _, olga = operator(site)
    ann = site.world.ann
    made = olga.post("/operate/groups", name="finance", members=f"{ann.email}, tax@example.com")
    assert made.headers["location"] == "/operate/group/finance"
    assert "finance ann@example.org, tax@example.com" in text_of(olga.get("/operate/groups"))
    page = olga.get("/operate/group/finance")
    assert f'href="/operate/people/{ann.id}"' in page.text
    assert "none; decides by mailed links" in text_of(page)
    again = olga.post("/operate/groups", name="finance")
    assert (again.status_code, "exists already" in again.text) == (400, True)
    wrong = olga.post("/operate/group/finance", add="nobody")
    assert (wrong.status_code, "add[0]" in wrong.text) == (400, True)
    olga.post("/operate/group/finance", remove="tax@example.com")
    assert "tax@example.com" not in olga.get("/operate/group/finance").text
    step = ApprovalStep("ask", "Pay?", approvers=("group:finance",))
    flow = site.do(site.world.workflow(step, name="Refunds"))
    assert f'<a href="/workflows/{flow}">Refunds</a>' in olga.get("/operate/group/finance").text
    used = olga.post("/operate/group/finance/delete", name="finance")
    assert (used.status_code, "is an approver in Refunds" in used.text) == (400, True)
    site.do(delete_workflow(site.world.services, OPERATOR, flow))
    assert olga.post("/operate/group/finance/delete", name="x").status_code == 400
    assert olga.post("/operate/group/finance/delete", name="finance").status_code == 303
    assert "There is no group yet." in olga.get("/operate/groups").text


def test_schedules_stand_in_the_order_of_their_next_times(site: Site):
    """Over all workflows of the account, by the schedules' own zones. SH-3."""
    give_calendar(site)
    site.do(site.world.workflow(name="Hourly", triggers=(Schedule("0 * * * *"),)))
    site.do(site.world.workflow(name="Half", triggers=(Schedule("30 * * * *", "Asia/Tokyo"),)))
    eve = site.do(site.world.account("eve"))
    site.do(site.world.workflow(name="Theirs", owner=eve, triggers=(Schedule("* * * * *"),)))
    page = Reader(site).get("/operate/schedules").text
    at = re.findall(r'<summary><time [^>]*datetime="([^"]+)"', page)
    names = re.findall(r'<a href="/workflows/[^"]+">(\w+)</a></th>', page)
    assert (len(at), at) == (2, sorted(at))
    assert set(names) == {"Hourly", "Half"}


def test_a_trigger_is_paused_and_resumed(site: Site):
    """By whoever may EDIT; the page says so, and nothing fires meanwhile. SH-10."""
    give_calendar(site)
    id = site.do(site.world.workflow(triggers=(Schedule("0 * * * *"),)))
    site.do(site.world.account("eve"))
    shown = site.do(read_workflow(site.world.services, OPERATOR, id)).triggers[0]
    reader, path = Reader(site), f"/operate/schedules/{shown.trigger.id}"
    assert Reader(site, "eve").post(path, status="PAUSED").status_code == 404
    triggers = f"/workflows/{id}/triggers"
    assert reader.post(path, status="PAUSED").headers["location"] == triggers
    assert "Resume" in reader.get(triggers).text
    assert "Resume flow" in reader.get("/operate/schedules").text
    for page in (triggers, "/operate/schedules"):
        assert "✕ It is paused" in reader.get(page).text
        assert "✕ Pausiert" in reader.get(page, **{"Accept-Language": "de"}).text
    assert reader.post(path, status="GONE").status_code == 400
    assert reader.post(path, status="ACTIVE").status_code == 303
    assert "Pause" in reader.get(triggers).text
    assert "Pause flow" in reader.get("/operate/schedules").text


def test_the_audit_page_filters_and_goes_on(site: Site):
    """Event, outcome, key and days narrow; the rest follows behind the last entry; CSV has both."""
    reader, world = Reader(site), site.world
    site.do(accounts.set_account(world.services, OPERATOR, world.ann.id, plan=Tier.TEAM))
    for number in range(60):
        site.do(keys.create_key(world.services, world.ann.id, f"k{number}", [Scope.WORKFLOW_READ]))
    first = reader.get("/operate/audit?event=key.create").text
    next = unescape(re.findall(r'rel="next" href="([^"]+)"', first)[0])
    pages = (first, reader.get(next).text)
    targets = [row for page in pages for row in re.findall(r'<tr id="(entry-\d+)"', page)]
    assert len(targets) == len(set(targets)) == 61
    assert "session.create" not in first
    assert "No entry matches" in reader.get("/operate/audit?event=nothing").text
    assert "No entry matches" in reader.get("/operate/audit?to=2001-01-01").text
    assert "nothing" not in reader.get("/operate/audit?outcome=denied").text
    file = reader.get("/operate/audit.csv?event=key.create")
    assert file.headers["content-type"].startswith("text/csv")
    assert len(file.text.strip().splitlines()) == 62


def test_a_file_of_the_audit_log_holds_no_formula_of_strangers(site: Site):
    """Whoever is refused chooses a path; a spreadsheet of any country reads it as one text."""
    hostile = "/api/v1/workflows/;=1+1;"
    with httpx.Client(base_url=site.url) as stranger:
        assert stranger.get(hostile).status_code == 401
    _, olga = operator(site)
    file = olga.get("/operate/audit.csv?event=api.request")
    assert f'"{hostile}"' in file.text
    assert '"at","event"' in file.text
    assert ",'," not in file.text


def test_an_account_reads_its_own_audit_only(site: Site):
    """Whatever the address asks for; an operator reads all, and by account. AL-1."""
    eve = site.do(site.world.account("eve"))
    site.do(keys.create_key(site.world.services, eve.id, "theirs", [Scope.WORKFLOW_READ]))
    _, olga = operator(site)
    path = f"/operate/audit?event=key.create&account={eve.id}"
    assert eve.id not in Reader(site).get(path).text.partition("<table")[2]
    found = olga.get(path).text.partition("<table")[2]
    assert eve.id in found
    assert site.world.ann.id not in found


def test_an_operator_changes_an_account(site: Site):
    """Plan and status; signing out everywhere; a link that is shown once; not their own end."""
    me, olga = operator(site)
    ann = Reader(site)
    path = f"/operate/people/{site.world.ann.id}"
    assert "signed in" in text_of(olga.get(path))
    assert olga.post(f"{path}/sign-out").status_code == 303
    assert ann.get("/operate/keys").status_code == 401
    link = re.findall(r'<pre id="link"[^>]*>([^<]+)</pre>', olga.post(f"{path}/link").text)[0]
    assert link not in olga.get(path).text
    assert site.do(site.world.http.get(link)).status_code == 200
    assert olga.post(path, plan="TEAM", status="DISABLED").status_code == 303
    assert site.do(site.world.get("/api/v1/workflows")).status_code == 403
    assert "The account is disabled or locked" in olga.post(f"{path}/link").text
    assert olga.post(path, plan="GOLD", status="ACTIVE").status_code == 400
    own = olga.post(f"/operate/people/{me.id}", plan="FREE", status="LOCKED")
    assert (own.status_code, "own account" in own.text) == (400, True)
    assert olga.get("/operate/people?q=ann@example.org").headers["location"] == path


def test_an_operator_removes_a_lost_passkey(site: Site):
    """Listed with name and host; another operator's is removed on the host alone. SR-5, AC-10."""
    _, olga = operator(site)
    password = "correct horse battery staple"
    made = accounts.create_account(
        site.world.services, "otto@example.org", password=password, operator=True
    )
    other = site.do(made)
    for account in (site.world.ann, other):
        site.do(give_passkey(site, account.id))
    path = f"/operate/people/{site.world.ann.id}"
    assert "blue key flows.example.org" in text_of(olga.get(path))
    remove = f"{path}/passkeys/cred_1/remove"
    assert Reader(site).post(remove).status_code == 404
    assert olga.post(remove).headers["location"] == path
    assert "blue key" not in text_of(olga.get(path))
    assert olga.post(remove).status_code == 404
    refused = olga.post(f"/operate/people/{other.id}/passkeys/cred_1/remove")
    assert (refused.status_code, "on the host" in text_of(refused)) == (400, True)
    assert "blue key" in text_of(refused)
    entries = site.do(read_audit(site.world.services, EpochMs(0), None, 100))
    site.do(give_passkey(site, site.world.ann.id))
    site.world.clock.advance(5 * MINUTE)
    late = olga.post(remove)
    assert (late.status_code, "sign in again first" in text_of(late)) == (400, True)
    removed = [one for one in entries if one.event == "passkey.remove"]
    assert [(one.outcome.value, one.target) for one in removed] == [("allowed", site.world.ann.id)]


async def give_passkey(site: Site, account_id: str) -> None:
    """A passkey of an account, as it is stored."""
    async with site.world.services.store.unit() as unit:
        account = await unit.get(Account, account_id)
        made = Passkey("cred_1", "blue key", "MF", -7, "flows.example.org", EpochMs(1))
        unit.put(evolve(account, passkeys=(made,)))
        await unit.commit()


def test_health_is_what_the_server_counts_and_checked(tmp_path):
    """Gauges, checks with their cure, and whether it is ready."""

    async def checks() -> list[HealthCheck]:
        return [
            HealthCheck("disk", False, "1 MB free", "make room"),
            HealthCheck("store", True, "ok"),
        ]

    async def gauges() -> dict[str, float]:
        return {"wfcore_due": 3.0}

    config = HttpConfig(console=True, gauges=gauges, checks=checks)
    site = Site(tmp_path, config)
    try:
        shown = text_of(operator(site)[1].get("/operate/health"))
    finally:
        site.close()
    assert "Disk 1 MB free → make room" in shown
    assert "Ready wfcore" in shown
    assert shown.index("Disk") < shown.index("Ready")
    assert "wfcore_due 3.0" in shown


def test_names_and_reasons_are_inert(site: Site):
    """Hostile names of keys and webhooks, and hostile targets, are shown as text. B9."""
    name = "<img src=x onerror=alert(1)>"
    made = keys.create_key(site.world.services, site.world.ann.id, name, [Scope.WORKFLOW_READ])
    key = site.do(made).key.id
    hook = site.do(site.world.webhook())
    reader = Reader(site)
    for path in (*PAGES, f"/operate/keys/{key}", f"/operate/webhooks/{hook}",
                 f"/operate/audit?event={HOSTILE}&target={name}"):  # fmt: skip
        answer = reader.get(path)
        assert answer.status_code == 200
        assert "<img" not in answer.text, path


def test_a_page_shows_the_names_of_secrets_alone(site: Site):
    """Never a value, on no page of these. SC-5."""
    services, ann = site.world.services, site.world.ann
    site.do(accounts.set_secret(services, OPERATOR, ann.id, "BANK", "k4nary-value"))
    reader = Reader(site)
    assert "BANK" in reader.get("/operate/secrets").text
    for path in (*PAGES, "/operate/audit.csv"):
        assert "k4nary" not in reader.get(path).text


def test_a_list_of_webhooks_of_nobody_is_empty(site: Site):
    """Every page has a word for nothing."""
    site.do(site.world.account("eve"))
    eve = Reader(site, "eve")
    assert "Other systems start workflows here." in eve.get("/operate/webhooks").text
    assert "There is no key yet" in eve.get("/operate/keys").text
    assert "starts by itself if its definition has a schedule" in eve.get("/operate/schedules").text
    assert "No secret is set" in eve.get("/operate/secrets").text


def test_an_owner_says_what_a_webhook_takes(site: Site) -> None:
    """A mistake is shown beside what was typed; an ignored delivery is marked. WH-24, WH-25."""
    hook = site.do(site.world.webhook())
    reader, path = Reader(site), f"/operate/webhooks/{hook}"
    typed = {"when": "{{ payload.opened }}", "headers": "kind: X-Kind\n"}
    wrong = reader.post(f"{path}/conditions", **{**typed, "headers": "kind: Cookie"})
    assert wrong.status_code == 400
    assert "headers.kind" in wrong.text
    assert "kind: Cookie" in wrong.text
    assert reader.post(f"{path}/conditions", **{**typed, "headers": "kind"}).status_code == 400
    assert reader.post(f"{path}/conditions", **typed).status_code == 303
    assert "kind: X-Kind" in reader.get(path).text
    assert site.do(site.world.post(f"/api/webhooks/{hook}/trigger", {})).status_code == 200
    assert "ignored" in reader.get(path).text
