"""Console sessions: signing in and out, staying in, and who may not."""

import asyncio
from collections import Counter
from pathlib import Path

import httpx
import pytest

from adapters_http.app import HttpConfig, create_app
from tests.support.http_world import NO_TLS, PASSWORD, World, a_world, serving
from wfcore.errors import NotFound
from wfcore.model.access import OPERATOR, AccountStatus, Session
from wfcore.rules.limits import LOGINS_EACH
from wfcore.time import HOUR, MINUTE, EpochMs
from wfcore.usecases.accounts import accounts
from wfcore.usecases.accounts.accounts import set_account
from wfcore.usecases.accounts.sessions import end_session, list_sessions, sign_in
from wfcore.usecases.audit.auditing import UNKNOWN, Origin, read_audit

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
        assert await view.get(Session, token) is None
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


async def test_a_password_is_the_same_on_every_keyboard(world: World):
    """However its letters are composed when it is chosen, and when it is typed. SE-11."""
    composed, apart = "Gr\u00fc\u00dfe aus K\u00f6ln", "Gru\u0308\u00dfe aus Ko\u0308ln"
    for chosen in (composed, apart):
        await set_account(world.services, OPERATOR, world.ann.id, password=chosen)
        for typed in (composed, apart):
            answer = await world.http.post("/api/session", json={**LOGIN, "password": typed})
            assert answer.status_code == 200


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
    await accounts.set_account(world.services, OPERATOR, world.ann.id, status=AccountStatus.LOCKED)
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
        ({"Origin": "https://{host}"}, 403),
        ({"Origin": "http://127.0.0.1:1"}, 403),
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


async def signed_in(url: str, session: dict[str, str]) -> int:
    """What a server says to somebody with that session."""
    async with httpx.AsyncClient(base_url=url, verify=NO_TLS) as http:
        return (await http.get("/api/session", headers=session)).status_code


@pytest.mark.parametrize(
    "change",
    [
        {"password": "another horse"},
        {"password": PASSWORD},
        {"status": AccountStatus.DISABLED},
        {"status": AccountStatus.LOCKED},
    ],
)
async def test_sessions_end_with_what_they_came_from(world: World, change):
    """
    A new password and a disabled account end all sessions, in every process, from the next request
    on; they stay ended when the account is ACTIVE again. SE-4.
    """
    mine, other = await world.sign_in(), await world.sign_in()
    await world.account("bob")
    bobs = await world.sign_in("bob")
    async with serving(create_app(world.services)) as second:
        assert [await signed_in(second, one) for one in (mine, other, bobs)] == [200] * 3
        await accounts.set_account(world.services, OPERATOR, world.ann.id, **change)
        refused = 403 if "status" in change else 401
        for url in (world.url, second):
            assert [await signed_in(url, one) for one in (mine, other)] == [refused] * 2
        await accounts.set_account(
            world.services, OPERATOR, world.ann.id, status=AccountStatus.ACTIVE
        )
        for url in (world.url, second):
            assert [await signed_in(url, one) for one in (mine, other, bobs)] == [401, 401, 200]


async def test_another_plan_ends_no_session(world: World):
    """What has nothing to do with getting in leaves everybody in. SE-4."""
    session = await world.sign_in()
    await accounts.set_account(world.services, OPERATOR, world.ann.id, plan=world.ann.plan)
    assert await signed_in(world.url, session) == 200


async def test_a_login_that_meets_a_new_password_opens_nothing(world: World):
    """Who was let in by the old one while it was changed is out with the first request. SE-4."""
    verify, changed = world.services.passwords.verify, False

    async def verify_slowly(password: str, hashed: str | None) -> bool:
        nonlocal changed
        fits = await verify(password, hashed)
        if not changed:
            changed = True
            await accounts.set_account(
                world.services, OPERATOR, world.ann.id, password="another horse"
            )
        return fits

    world.services.passwords.verify = verify_slowly  # type: ignore[method-assign]
    assert await signed_in(world.url, await world.sign_in()) == 401


async def test_signing_out_everywhere_ends_every_session(world: World):
    """Those of this account, and those that nobody has at hand; it is on record. SE-4."""
    sessions = [await world.sign_in() for _ in range(3)]
    await world.account("bob")
    bobs = await world.sign_in("bob")
    for wrong in ("2", "yes", ""):
        answer = await world.http.delete(f"/api/session?everywhere={wrong}", headers=sessions[0])
        assert answer.status_code == 400
        assert answer.json()["error"] == "everywhere: must be 1, or left out"
    answer = await world.http.delete("/api/session?everywhere=1", headers=sessions[0])
    cookie = answer.headers["set-cookie"]
    assert (answer.status_code, "=;" in cookie, "Max-Age=0" in cookie) == (200, True, True)
    (ended,) = [
        one
        for one in await read_audit(world.services, EpochMs(0), None, 99)
        if one.event == "session.end_all"
    ]
    assert ended.account_id == world.ann.id
    assert [await signed_in(world.url, one) for one in (*sessions, bobs)] == [401, 401, 401, 200]
    assert await signed_in(world.url, await world.sign_in()) == 200


async def test_one_session_can_be_ended_by_its_id(world: World):
    """The list has those that have not ended, newest first; another account's is not found."""
    await world.account("bob")
    bobs = await world.sign_in("bob")
    first = await world.sign_in()
    world.clock.advance(MINUTE)
    second = await world.sign_in()
    listed = await list_sessions(world.services, world.ann.id)
    assert [one.created_at for one in listed] == sorted(one.created_at for one in listed)[::-1]
    (of_bob,) = await list_sessions(world.services, (await bob(world)).id)
    with pytest.raises(NotFound):
        await end_session(world.services, world.ann.id, of_bob.id, UNKNOWN)
    await end_session(world.services, world.ann.id, listed[0].id, UNKNOWN)
    assert [await signed_in(world.url, one) for one in (first, second, bobs)] == [200, 401, 200]
    world.clock.advance(12 * HOUR)
    assert not await list_sessions(world.services, world.ann.id)


async def bob(world: World):
    return await accounts.find_account(world.services, "bob@example.org")


async def test_signing_in_gives_a_new_session_and_ends_the_one_before(world: World):
    """
    Nobody is signed in under a session that somebody else put into the browser before. SE-5.
    """
    planted = {"Cookie": "wfcore_session=" + "a" * 43}
    answer = await world.http.post("/api/session", json=LOGIN, headers=planted)
    world.http.cookies.clear()
    assert await signed_in(world.url, planted) == 401
    first = {"Cookie": answer.headers["set-cookie"].partition(";")[0]}
    again = await world.http.post("/api/session", json=LOGIN, headers=first)
    world.http.cookies.clear()
    second = {"Cookie": again.headers["set-cookie"].partition(";")[0]}
    assert first != second
    assert [await signed_in(world.url, one) for one in (first, second)] == [401, 200]


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("https://wf.example.org", "__Host-wfcore_session"),
        ("https://wf.example.org/flows", "wfcore_session"),
        ("http://wf.example.org", "wfcore_session"),
    ],
)
async def test_at_the_root_of_https_the_cookie_is_the_hosts_own(tmp_path: Path, url, name):
    """A neighbour's host cannot set it, and the name that it can set is not read. SE-5."""
    async with a_world(tmp_path, HttpConfig(public_url=url)) as world:
        answer = await world.http.post("/api/session", json=LOGIN)
        world.http.cookies.clear()
        cookie = answer.headers["set-cookie"]
        assert cookie.startswith(f"{name}=")
        assert "domain" not in cookie.lower()
        if name.startswith("__Host-"):
            assert {"Path=/", "Secure"} <= set(cookie.split("; "))
        token = cookie.partition(";")[0].partition("=")[2]
        for other in ("wfcore_session", "__Host-wfcore_session"):
            status = await signed_in(world.url, {"Cookie": f"{other}={token}"})
            assert status == (200 if other == name else 401)


async def test_one_address_may_try_so_many_logins_a_minute(world: World):
    """The others of a crowd are 429 at once, and no password was looked at for them. SE-6."""
    looked_at, verify = 0, world.services.passwords.verify

    async def counted(password: str, hashed: str | None) -> bool:
        nonlocal looked_at
        looked_at += 1
        return await verify(password, hashed)

    world.services.passwords.verify = counted  # type: ignore[method-assign]
    wrong = [{"email": f"u{n}@example.org", "password": "wrong"} for n in range(60)]
    answers = await asyncio.gather(*(world.http.post("/api/session", json=one) for one in wrong))
    statuses = Counter(one.status_code for one in answers)
    assert statuses == {401: LOGINS_EACH, 429: 60 - LOGINS_EACH}
    assert looked_at == LOGINS_EACH
    late = await world.http.post("/api/session", json=LOGIN)
    assert (late.status_code, 0 < int(late.headers["retry-after"]) <= 60) == (429, True)
    there = Origin("/api/session", "192.0.2.7")
    signed = await sign_in(world.services, LOGIN["email"], PASSWORD, there)
    assert signed.account.id == world.ann.id
    world.clock.advance(MINUTE)
    assert (await world.http.post("/api/session", json=LOGIN)).status_code == 200


async def test_many_passwords_at_once_are_no_more_than_one_by_one(world: World):
    """When the tenth failure locks a login, what is being looked at opens nothing. SE-2."""
    verify, go = world.services.passwords.verify, asyncio.Event()

    async def slowly(password: str, hashed: str | None) -> bool:
        fits = await verify(password, hashed)
        if fits:
            await go.wait()
        return fits

    world.services.passwords.verify = slowly  # type: ignore[method-assign]
    right = asyncio.create_task(world.http.post("/api/session", json=LOGIN))
    for _ in range(10):
        await world.http.post("/api/session", json={**LOGIN, "password": "wrong"})
    go.set()
    assert (await right).status_code == 429
