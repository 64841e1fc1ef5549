"""Pages of the server: invitations, groups, the log in sentences, notices, health."""

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Page

from adapters_http.console.audit_sentences import SENTENCES, sentence
from adapters_http.console.health import Grade, HealthCard, cards
from adapters_http.console.notices import SENTENCES as NOTICES
from wfcore.errors import NotFound
from wfcore.model.access import OPERATOR
from wfcore.model.event import AuditEntry, AuditOutcome
from wfcore.model.notice import NoticeKind
from wfcore.time import DAY, EpochMs
from wfcore.usecases.accounts import accounts, groups
from wfcore.wire.operating import CheckView, OperatorHealthView

from .conftest import Site
from .test_executions import Reader, text_of
from .test_operating import operator


def _invited(site: Site, **more: str) -> tuple[Reader, str, str]:
    """The operator, the id of the person whom she invited, and the path of the link."""
    _, olga = operator(site)
    page = olga.post("/operate/people", email="new@example.org", **more)
    assert page.status_code == 200, text_of(page)
    link = re.findall(r'<pre id="link"[^>]*>([^<]+)</pre>', page.text)[0]
    person = site.do(accounts.find_account(site.world.services, "new@example.org"))
    return olga, person.id, link.removeprefix(site.url)


def _uses(site: Site, link: str) -> int:
    headers = {"Origin": site.url, "Accept": "text/html"}
    return site.do(site.world.http.post(link, headers=headers)).status_code


def test_an_invited_person_comes_in_by_the_link_with_their_groups(site: Site):
    """The link is good for a day, and ends the invitation; the log names who invited. AC-12."""
    services = site.world.services
    site.do(groups.create_group(services, OPERATOR, "tax. team", ["ann@example.org"]))
    olga, id, link = _invited(site, **{"groups.1": "tax. team"})
    shown = text_of(olga.get("/operate/people"))
    assert "invited" in shown
    assert "tax. team" in shown
    site.world.clock.advance(DAY - 60_000)
    assert _uses(site, link) == 303
    person = site.do(accounts.find_account(services, id))
    assert (person.invited_at, person.password_hash, person.operator) == (None, None, False)
    assert "new@example.org" in site.do(groups.list_groups(services))["tax. team"]
    olga = Reader(site, "olga")
    assert "Send again" not in olga.get("/operate/people").text
    assert "olga@example.org invited new@example.org" in text_of(olga.get("/operate/audit"))


def test_sending_again_ends_the_earlier_link(site: Site):
    """The old link is over, the new one works; a sign-in leaves nothing to send. AC-12."""
    olga, id, old = _invited(site)
    again = olga.post(f"/operate/people/{id}/invite")
    new = re.findall(r'<pre id="link"[^>]*>([^<]+)</pre>', again.text)[0].removeprefix(site.url)
    assert _uses(site, old) == 410
    assert _uses(site, new) == 303
    refused = olga.post(f"/operate/people/{id}/invite")
    assert (refused.status_code, "has signed in" in refused.text) == (400, True)
    refused = olga.post(f"/operate/people/{id}/withdraw")
    assert (refused.status_code, "has signed in" in refused.text) == (400, True)


def test_a_withdrawn_invitation_leaves_nothing(site: Site):
    """The account and its membership are gone, and the link is over. AC-12."""
    services = site.world.services
    site.do(groups.create_group(services, OPERATOR, "finance", ["ann@example.org"]))
    olga, id, link = _invited(site, **{"groups.1": "finance"})
    assert olga.post(f"/operate/people/{id}/withdraw").headers["location"] == "/operate/people"
    with pytest.raises(NotFound):
        site.do(accounts.find_account(services, id))
    assert site.do(groups.list_groups(services))["finance"] == ("ann@example.org",)
    assert _uses(site, link) == 410


@pytest.mark.parametrize("email", ["ann@example.org", "nobody", ""])
def test_an_invitation_that_cannot_be_is_a_sentence(site: Site, email: str):
    """An address that is taken, or none: the form comes back with the reason."""
    _, olga = operator(site)
    answer = olga.post("/operate/people", email=email)
    assert answer.status_code == 400
    assert 'role="alert"' in answer.text
    assert Reader(site).post("/operate/people", email="x@example.org").status_code == 404


def test_the_log_is_sentences_with_links(site: Site):
    """Who and what by name, each a link for whoever may open it. AL-1."""
    world = site.world
    hook = site.do(world.webhook())
    account, olga = operator(site)
    olga.post(f"/operate/webhooks/{hook}", status="DISABLED")
    row = olga.get("/operate/audit?event=webhook.update").text
    assert "olga@example.org changed the webhook hook" in " ".join(
        re.sub(r"<[^>]*>", "", row).split()
    )
    assert f'href="/operate/webhooks/{hook}"' in row
    assert f'href="/operate/people/{account.id}"' in row
    assert 'href="/operate/audit?event=webhook.update"' in row


def test_names_in_the_log_are_inert():
    """Markup in a name stays text; a denial, and an event without a sentence, name the event."""
    entry = AuditEntry(
        "aud_1",
        EpochMs(0),
        "workflow.apply",
        AuditOutcome.ALLOWED,
        account_id="acc_1",
        target="wf_1",
    )
    said = sentence(entry, {"wf_1": "<img onerror=x>", "acc_1": "ann@example.org"}, "", False)
    assert said == (
        '<bdi>ann@example.org</bdi> applied the workflow <a href="/workflows/wf_1">'
        "<bdi>&lt;img onerror=x&gt;</bdi></a>"
    )
    denied = AuditEntry("aud_2", EpochMs(0), "api.request", AuditOutcome.DENIED)
    assert sentence(denied, {}, "", False) == "Somebody was refused: <code>api.request</code> "
    other = AuditEntry("aud_3", EpochMs(0), "signing.rotate", AuditOutcome.ALLOWED)
    assert sentence(other, {}, "", False) == "The server: <code>signing.rotate</code> "


def test_every_kind_of_notice_has_a_sentence():
    """What people read is no code."""
    assert set(NOTICES) == {one.value for one in NoticeKind}
    assert all("{who}" in text for text in SENTENCES.values())


def test_notices_without_a_channel_name_the_setting(site: Site):
    """Nobody is told by mail: the page names the setting, and has nothing to test."""
    _, olga = operator(site)
    shown = olga.get("/operate/notices").text
    assert "WFCORE_SMTP_URL" in shown
    assert "Send a test to me" not in shown
    assert olga.post("/operate/notices", channel="mail").status_code == 400
    assert Reader(site).post("/operate/notices", channel="mail").status_code == 404


GAUGES = {
    "wfcore_executions_running": 15.0,
    "wfcore_places": 16.0,
    "wfcore_queue_oldest_seconds": 9.0,
    "wfcore_notices_oldest_due_seconds": 3.0,
    'wfcore_loop_up{loop="worker"}': 1.0,
    'wfcore_loop_up{loop="upkeep"}': 0.0,
    "wfcore_store_size_bytes": 2_000_000.0,
}


def test_health_is_cards_with_limits_and_cures():
    """Each fact has a grade; what is not well says what to do, and a limit is a bar."""
    checks = [
        CheckView("disk", False, "1 MB free", "make room"),
        CheckView("data", True, "/d", None),
    ]
    found = {one.name: one for one in cards(OperatorHealthView("1.0", None, checks, GAUGES, 2))}
    assert found["Ready"].grade is Grade.GOOD
    assert found["Disk"] == HealthCard("Disk", Grade.BAD, "1 MB free", cure="make room")
    assert (found["Executions at once"].grade, found["Executions at once"].share) == (
        Grade.NEAR,
        15 / 16,
    )
    queue = found["Oldest in the queue"]
    assert (queue.grade, queue.share, bool(queue.cure)) == (Grade.BAD, 1.0, True)
    assert found["Oldest notice that is due"].grade is Grade.GOOD
    assert (found["Background work"].figure, found["Background work"].grade) == (
        "upkeep",
        Grade.BAD,
    )
    assert found["Notices given up"].path == "operate/notices?status=FAILED"


@pytest.mark.parametrize("path", ["people", "groups", "audit", "notices", "health"])
def test_pages_of_the_server_are_for_everybody(
    path: str, site: Site, signed_in: Page, accessible: Callable[[Page], None]
):
    """Nothing for axe to find, wide and narrow, light and dark."""
    services, ann = site.world.services, site.world.ann
    site.do(groups.create_group(services, OPERATOR, "finance", ["ann@example.org"]))
    _invited(site)
    site.do(accounts.set_account(services, OPERATOR, ann.id, operator=True))
    signed_in.goto(site.link())
    signed_in.get_by_role("button", name="Continue as").click()
    signed_in.wait_for_url(lambda url: "/in/" not in url)
    signed_in.goto(f"{site.url}/operate/{path}")
    accessible(signed_in)
