"""Console sessions: signing in and out, staying in, and who may not."""

from pathlib import Path

import pytest

from adapters_http.app import HttpConfig
from http_world import PASSWORD, World, a_world
from wfcore.instants import HOUR, MINUTE
from wfcore.model.access import AccountStatus
from wfcore.usecases import accounts

LOGIN = {"email": "ann@example.org", "password": PASSWORD}


async def test_a_session_lasts_from_sign_in_to_sign_out(world: World):
    """The cookie is HttpOnly and Lax; only its hash is stored; DELETE ends it. SE-1."""
    answer = await world.http.post("/api/session", json=LOGIN)
    assert answer.status_code == 200
    account = {"id": world.ann.id, "email": world.ann.email, "plan": "PRO", "status": "ACTIVE"}
    assert answer.json() == {"account": account}
    cookie = answer.headers["set-cookie"]
    assert cookie.startswith("wfcore_session=")
    assert "HttpOnly" in cookie
    assert "SameSite=Lax" in cookie
    assert "Secure" not in cookie
    token = cookie.partition(";")[0].partition("=")[2]
    async with world.services.store.view() as view:
        assert await view.sessions.get(token) is None
    assert (await world.http.get("/api/session")).json() == {"account": account}
    gone = await world.http.delete("/api/session")
    assert (gone.json(), "Max-Age=0" in gone.headers["set-cookie"]) == ({"ok": True}, True)
    headers = {"Cookie": f"wfcore_session={token}"}
    assert (await world.http.get("/api/session", headers=headers)).status_code == 401


async def test_the_cookie_is_secure_behind_https(tmp_path: Path):
    """Where clients come by https, the cookie never goes out without it."""
    config = HttpConfig(public_url="https://wf.example.org/")
    async with a_world(tmp_path, config) as world:
        answer = await world.http.post("/api/session", json=LOGIN)
        assert "Secure" in answer.headers["set-cookie"]
        await world.webhook()
        session = {"Cookie": answer.headers["set-cookie"].partition(";")[0]}
        (record,) = (await world.get("/api/webhooks", headers=session)).json()["webhooks"]
        assert record["triggerUrl"].startswith("https://wf.example.org/api/webhooks/wh_")


@pytest.mark.parametrize(
    "body",
    [
        {**LOGIN, "password": "wrong"},
        {**LOGIN, "email": "nobody@example.org"},
        {**LOGIN, "password": ""},
    ],
)
async def test_a_wrong_login_is_401(world: World, body):
    """The same answer for an unknown email and a wrong password. AU-6."""
    answer = await world.http.post("/api/session", json=body)
    assert (answer.status_code, answer.content) == (401, b'{"error":"Unauthorized"}')
    assert "set-cookie" not in answer.headers


async def test_ten_failures_lock_a_login(world: World):
    """Then the right password is 429 too, until the window is over. SE-2."""
    wrong = {**LOGIN, "password": "wrong"}
    statuses = [(await world.http.post("/api/session", json=wrong)).status_code for _ in range(11)]
    assert statuses == [401] * 10 + [429]
    locked = await world.http.post("/api/session", json=LOGIN)
    assert locked.status_code == 429
    wait_s = int(locked.headers["retry-after"])
    assert 0 < wait_s <= 15 * 60
    assert locked.json().keys() == {"error"}
    world.clock.advance(15 * MINUTE)
    assert (await world.http.post("/api/session", json=LOGIN)).status_code == 200


async def test_a_session_ends_by_idleness(world: World):
    """Twelve idle hours end it; use keeps it. SE-1."""
    session = await world.sign_in()
    for hours, status in ((11, 200), (11, 200), (12, 401)):
        world.clock.advance(hours * HOUR)
        assert (await world.get("/api/session", headers=session)).status_code == status


async def test_a_blocked_account_is_out_at_once(world: World):
    """Sessions of a locked account are 403, and so is its login. AC-1."""
    session = await world.sign_in()
    await accounts.set_account(world.services, world.ann.id, status=AccountStatus.LOCKED)
    assert (await world.get("/api/session", headers=session)).status_code == 403
    assert (await world.http.post("/api/session", json=LOGIN)).status_code == 403


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"Sec-Fetch-Site": "same-origin"}, 200),
        ({"Sec-Fetch-Site": "none"}, 200),
        ({"Origin": "http://{host}"}, 200),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Origin": "https://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "http://{host}.evil.example"}, 403),
        ({"Origin": "http://["}, 403),
        ({"Origin": "https://evil.example", "Sec-Fetch-Site": "same-origin"}, 403),
    ],
)
async def test_another_sites_page_changes_nothing(world: World, headers, status: int):
    """A change whose Origin or Sec-Fetch-Site says cross-site is 403; reading passes. SE-3."""
    host = world.url.removeprefix("http://")
    sent = {name: value.format(host=host) for name, value in headers.items()}
    session = {**await world.sign_in(), **sent}
    assert (await world.http.post("/api/session", json=LOGIN, headers=sent)).status_code == status
    id = await world.webhook()
    answer = await world.http.put(f"/api/webhooks/{id}", json={"name": "x"}, headers=session)
    assert answer.status_code == status
    assert (await world.get("/api/webhooks", headers=session)).status_code == 200
    assert (await world.http.delete("/api/session", headers=session)).status_code == status
