"""Connecting: webhooks made, tested, replayed, renewed and deleted; schedules; secrets; keys."""

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Page

from adapters_http.console.cron_words import in_words
from tests.support.http_world import code
from wfcore.model.access import OPERATOR
from wfcore.model.page import NEWEST, PageRequest
from wfcore.model.trigger import Schedule
from wfcore.model.webhook import Scheme
from wfcore.rules.webhooks.scheme import sender_headers
from wfcore.time import DAY, HOUR
from wfcore.usecases.accounts import accounts
from wfcore.usecases.audit.auditing import read_audit
from wfcore.usecases.webhooks.webhooks import read_webhook
from wfcore.usecases.workflows.triggers import list_triggers

from .conftest import Site
from .execution_case import CRON, Runs, give_calendar
from .test_executions import Reader, text_of
from .test_operating import operator, secret_of

_FIRST = PageRequest(size=5, after=NEWEST)


def _made(site: Site, **more: str) -> tuple[Reader, str, str]:
    """Ann, the id of a signed webhook that she connected, and its secret."""
    ann, flow = Reader(site), site.do(site.world.workflow())
    fields = {"name": "shop", "workflow": flow, "proof": "github", **more}
    page = ann.post("/operate/webhooks", **fields)
    assert page.status_code == 200, text_of(page)
    return ann, re.findall(r"/operate/webhooks/(wh_\w+)\"", page.text)[0], secret_of(page.text)


def test_a_connected_webhook_takes_what_its_secret_signs(site: Site):
    """The secret is shown once; a delivery that it signs starts the workflow. WH-17."""
    ann, hook, secret = _made(site)
    body = b'{"zen": "ok"}'
    signed = sender_headers(Scheme.GITHUB, secret, "d1", site.world.clock.now(), body)
    path = f"/api/webhooks/{hook}/trigger"
    headers = {"Content-Type": "application/json", **signed}
    taken = site.do(site.world.http.post(path, content=body, headers=headers))
    assert taken.status_code == 202
    pages = ("/operate/webhooks", f"/operate/webhooks/{hook}", "/operate/audit.csv")
    assert all(secret not in ann.get(path).text for path in pages)
    assert "1 taken" in text_of(ann.get("/operate/webhooks"))


def test_a_webhook_can_ask_for_a_key_or_take_the_senders_secret(site: Site):
    """A key of the account leads to the page; a given secret is kept as it is."""
    ann, flow = Reader(site), site.do(site.world.workflow())
    by_key = ann.post("/operate/webhooks", name="k", workflow=flow, proof=site.world.key.key.id)
    id = by_key.headers["location"].rpartition("/")[2]
    assert site.do(read_webhook(site.world.services, OPERATOR, id)).api_key_id
    _, hook, shown = _made(site, secret="whatever-the-shop-gave", workflow=flow)
    assert shown == "whatever-the-shop-gave"
    assert site.do(read_webhook(site.world.services, OPERATOR, hook)).secret_key == shown


@pytest.mark.parametrize("wrong", [{"name": ""}, {"proof": "key_other"}, {"secret": "short"}])
def test_a_webhook_that_cannot_be_is_a_sentence(site: Site, wrong: dict[str, str]):
    """The form comes back with the reason and what was typed; nothing was made."""
    ann, flow = Reader(site), site.do(site.world.workflow())
    fields = {"name": "shop", "workflow": flow, "proof": "github", **wrong}
    answer = ann.post("/operate/webhooks", **fields)
    assert answer.status_code == 400
    assert 'role="alert"' in answer.text
    assert "Other systems start workflows here." in ann.get("/operate/webhooks").text


def test_a_test_and_a_replay_start_executions(site: Site):
    """The test is listed as one; a replay leads to its execution. WH-22, WH-23."""
    ann, hook, _ = _made(site)
    path = f"/operate/webhooks/{hook}"
    assert ann.post(f"{path}/test").headers["location"] == path
    shown = ann.get(path)
    assert "a test" in text_of(shown)
    delivery = re.findall(rf'action="{path}/deliveries/([^"]+)"', shown.text)[0]
    replayed = ann.post(f"{path}/deliveries/{delivery}")
    assert replayed.headers["location"].startswith("/executions/exec_")
    ann.post(path, status="DISABLED")
    refused = ann.post(f"{path}/test")
    assert (refused.status_code, 'role="alert"' in refused.text) == (409, True)


def test_a_new_secret_is_shown_once_and_the_old_one_stays_a_day(site: Site):
    """Both are valid until the page's instant. WH-19."""
    ann, hook, old = _made(site)
    page = ann.post(f"/operate/webhooks/{hook}/rotate")
    assert secret_of(page.text) != old
    assert "The previous secret stays valid until" in page.text
    assert site.do(read_webhook(site.world.services, OPERATOR, hook)).old_secret == old


def test_a_webhook_is_deleted_by_its_name(site: Site):
    """Another name deletes nothing; then its address is 404."""
    ann, hook, _ = _made(site)
    path = f"/operate/webhooks/{hook}"
    wrong = ann.post(f"{path}/delete", name="another")
    assert (wrong.status_code, "nothing was deleted" in wrong.text) == (409, True)
    assert ann.post(f"{path}/delete", name="shop").headers["location"] == "/operate/webhooks"
    assert ann.get(path).status_code == 404


def test_nobody_connects_to_what_they_may_not_edit(site: Site):
    """Another account's workflow and webhook are not there. AC-3."""
    _, hook, _ = _made(site)
    site.do(site.world.account("eve"))
    eve, path = Reader(site, "eve"), f"/operate/webhooks/{hook}"
    flow = site.do(site.world.workflow(name="other"))
    assert eve.post("/operate/webhooks", name="x", workflow=flow, proof="github").status_code == 404
    for deed in ("test", "rotate", "delete"):
        assert (
            eve.post(f"{path}/{deed}", **({"name": "x"} if deed == "delete" else {})).status_code
            == 404
        )


def test_operators_see_all_or_their_own(site: Site):
    """A switch in the heading instead of a banner; others have no switch. AC-7."""
    _, hook, _ = _made(site)
    give_calendar(site)
    Runs(site, code("only"), name="Timed", triggers=(CRON,))
    _, olga = operator(site)
    for path, theirs in (("webhooks", hook), ("schedules", "Timed"), ("audit", "webhook.create")):
        assert theirs in olga.get(f"/operate/{path}").text
        assert theirs not in olga.get(f"/operate/{path}?of=mine").text
        assert "of=mine" in olga.get(f"/operate/{path}").text
        assert "of=mine" not in Reader(site).get(f"/operate/{path}").text


def test_a_schedule_has_a_row_with_words_and_its_next_times(site: Site):
    """Times in words with the city, the next five, pause and resume in the list."""
    give_calendar(site)
    Runs(site, code("only"), name="Timed", triggers=(Schedule("0 7 * * 1", "Europe/Berlin"),))
    ann = Reader(site)
    shown = ann.get("/operate/schedules")
    assert "Mondays 07:00, Berlin" in text_of(shown)
    assert 'title="0 7 * * 1 Europe/Berlin"' in shown.text
    assert shown.text.partition('class="next"')[2].partition("</details>")[0].count("<li>") == 5
    trigger = re.findall(r'<tr id="(\w+)"', shown.text)[0]
    path = f"/operate/schedules/{trigger}"
    assert (
        ann.post(path, status="PAUSED", back="schedules").headers["location"]
        == "/operate/schedules"
    )
    assert "paused" in text_of(ann.get("/operate/schedules"))


def test_a_backfill_names_its_times_first(site: Site):
    """The page lists the past times; a second press starts each once. SH-11."""
    give_calendar(site)
    Runs(site, code("only"), name="Timed", triggers=(Schedule("0 7 * * *"),))
    site.world.clock.advance(3 * DAY)
    ann, services = Reader(site), site.world.services
    trigger = site.do(list_triggers(services, OPERATOR, _FIRST)).rows[0].trigger.id
    path = f"/operate/schedules/{trigger}/backfill"
    asked = ann.get(path)
    count = asked.text.count("will start")
    assert count >= 3
    fields = dict(re.findall(r'name="(since|until)" value="(\d+)"', asked.text))
    done = ann.post(path, **fields)
    assert f"{count} starts were made." in text_of(done)
    assert "0 starts were made." in text_of(ann.post(path, **fields))
    late = ann.post(path, since="0", until=str(site.world.clock.now() + HOUR))
    assert (late.status_code, 'role="alert"' in late.text) == (400, True)
    site.do(site.world.account("eve"))
    assert Reader(site, "eve").get(path).status_code == 404


@pytest.mark.parametrize(
    ("cron", "words"),
    [
        ("0 7 * * 1", "Mondays 07:00, Berlin"),
        ("30 6 * * mon-fri", "Monday to Friday 06:30, Berlin"),
        ("0 9 * * 1,THU", "Mondays, Thursdays 09:00, Berlin"),
        ("0 2 * * *", "daily 02:00, Berlin"),
        ("0 0 1 * *", "on day 1 of each month 00:00, Berlin"),
        ("0 * * * *", "hourly, Berlin"),
        ("15 * * * *", "hourly at minute 15, Berlin"),
        ("*/5 * * * *", "every 5 minutes, Berlin"),
        ("0 */6 * * *", "every 6 hours, at minute 0, Berlin"),
        ("@daily", "daily 00:00, Berlin"),
        ("0 7 1 * 1", "0 7 1 * 1, Berlin"),
        ("0 7 * 3 *", "0 7 * 3 *, Berlin"),
        ("0 7 * * 1#2", "0 7 * * 1#2, Berlin"),
        ("0 7,8 * * *", "0 7,8 * * *, Berlin"),
    ],
)
def test_times_are_words_where_a_short_sentence_says_them(cron: str, words: str):
    """Common schedules in words; all others as they are written."""
    assert in_words(Schedule(cron, "Europe/Berlin")) == words


def test_a_secret_is_set_used_replaced_and_deleted(site: Site):
    """Its name, users and age are shown, its value never; the log says whose deed it was. SC-5."""
    ann, world = Reader(site), site.world
    assert "No secret is set." in ann.get("/operate/secrets").text
    set_it = ann.post("/operate/secrets", name="SHOP_TOKEN", value="s3cret-one")
    assert set_it.headers["location"] == "/operate/secrets"
    site.do(world.workflow(code(secrets=("SHOP_TOKEN",)), name="Uses it"))
    shown = ann.get("/operate/secrets")
    assert "SHOP_TOKEN" in shown.text
    assert "Uses it" in shown.text
    ann.post("/operate/secrets", name="SHOP_TOKEN", value="s3cret-two\r\nline")
    (stored,) = site.do(accounts.list_secrets(world.services, world.ann.id))
    assert stored.value == "s3cret-two\nline"
    assert "s3cret" not in ann.get("/operate/secrets").text
    wrong = ann.post("/operate/secrets", name="9", value="s3cret")
    assert (wrong.status_code, "s3cret" in wrong.text) == (400, False)
    ann.post("/operate/secrets/SHOP_TOKEN/delete")
    assert site.do(accounts.list_secrets(world.services, world.ann.id)) == ()
    entries = site.do(read_audit(world.services, 0, None, 100))  # type: ignore[arg-type]
    by = {one.event: one.account_id for one in entries}
    assert by["secret.set"] == by["secret.delete"] == world.ann.id


def test_a_key_shows_its_rights_in_words_and_its_minute(site: Site):
    """As the header of its last answer counted. RL-3."""
    site.do(site.world.get("/api/v1/workflows"))
    shown = text_of(Reader(site).get("/operate/keys"))
    assert re.search(r"may .*start workflows", shown)
    assert re.search(r" 1 of \d+ ", shown)


@pytest.mark.parametrize(
    "path", ["webhooks/new", "webhooks/{hook}", "schedules", "secrets", "keys"]
)
def test_pages_of_connecting_are_for_everybody(
    path: str, site: Site, signed_in: Page, accessible: Callable[[Page], None]
):
    """Nothing for axe to find, also with a question open."""
    ann, hook, _ = _made(site)
    ann.post(f"/operate/webhooks/{hook}/test")
    ann.post("/operate/secrets", name="SHOP_TOKEN", value="s3cret-one")
    give_calendar(site)
    Runs(site, code("only"), name="Timed", triggers=(CRON,))
    signed_in.goto(f"{site.url}/operate/{path.format(hook=hook)}")
    accessible(signed_in)
    for question in signed_in.locator(".asks summary").all()[:1]:
        question.click()
        accessible(signed_in)
