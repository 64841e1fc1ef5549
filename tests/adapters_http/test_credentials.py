"""Who is let in: every row of the table against every way of not being allowed."""

from typing import Any

import pytest

from adapters_http.route import Auth, Route
from adapters_http.routes import ROUTES
from tests.support.http_world import World, bearer
from wfcore.model.access import OPERATOR, AccountStatus, Scope, Tier
from wfcore.model.event import AuditEntry
from wfcore.rules.auth.api_key import compose
from wfcore.time import MINUTE, DurationMs, EpochMs
from wfcore.usecases.accounts import accounts, keys
from wfcore.usecases.audit.auditing import read_audit

UNAUTHORIZED = b'{"error":"Unauthorized"}'
CONSOLE = [route for route in ROUTES if route.auth is Auth.SESSION]
WITH_KEY = [route for route in ROUTES if route.scope is not None and route not in CONSOLE]


def name_of(route: Route) -> str:
    return f"{route.method} {route.path}"


async def path_of(world: World, route: Route) -> str:
    """A path of the row: with a real webhook where the row is a trigger, any id elsewhere."""
    path = route.path
    if route.auth is Auth.TRIGGER:
        path = path.replace("{id}", await world.webhook())
    for name in route.names:
        path = path.replace(f"{{{name}}}", "approve" if name == "decision" else "x_1")
    return path


async def bad_headers(world: World, route: Route) -> dict[str, tuple[dict[str, str], str]]:
    """Ways not to be let in, each with the reason that the audit log is to hold."""
    good = world.key
    revoked = await world.new_key()
    await keys.revoke_key(world.services, OPERATOR, revoked.key.id)
    expired = await keys.create_key(
        world.services, world.ann.id, "short", Scope.ordinary(), DurationMs(1)
    )
    world.clock.advance(1)
    lacking = await world.new_key(None, *(set(Scope.ordinary()) - {route.scope}))
    return {
        "no key": ({}, "missing"),
        "an empty key": ({"X-API-Key": ""}, "missing"),
        "another scheme": ({"Authorization": f"Basic {good.text}"}, "missing"),
        "malformed": (bearer("wfk_nope"), "malformed"),
        "a cut one": (bearer(good.text[:-1]), "malformed"),
        "text beyond ASCII": ({"X-API-Key": "wfk_ümlaut"}, "malformed"),
        "unknown": (bearer(compose("0" * 16, "a" * 36)), "unknown_key"),
        "a wrong secret": (bearer(compose(good.key.id, "a" * 36)), "bad_secret"),
        "revoked": (bearer(revoked.text), "revoked"),
        "expired": (bearer(expired.text), "expired"),
        "wrong scope": (bearer(lacking.text), "scope_missing"),
    }


@pytest.mark.parametrize("route", WITH_KEY, ids=name_of)
async def test_a_key_that_does_not_open_is_401_and_no_more_is_said(world: World, route: Route):
    """One body for every cause; which it was stands in the audit log. AU-3, AU-4, AU-6."""
    path = await path_of(world, route)
    for case, (headers, reason) in (await bad_headers(world, route)).items():
        world.clock.advance(MINUTE)  # within one, refusals for one reason share an entry
        answer = await world.http.request(
            route.method, path, headers={k: v.encode() for k, v in headers.items()}
        )
        assert answer.status_code == 401, case
        assert answer.headers["www-authenticate"] == "Bearer"
        if not route.html:
            assert answer.content == UNAUTHORIZED, case
            assert answer.headers["content-type"] == "application/json"
        assert await last_reason(world) == (reason, answer.headers["x-request-id"]), case


@pytest.mark.parametrize("route", WITH_KEY, ids=name_of)
@pytest.mark.parametrize("status", [AccountStatus.DISABLED, AccountStatus.LOCKED])
async def test_a_blocked_account_is_403(world: World, route: Route, status: AccountStatus):
    """Disabled and locked accounts are refused at every door. AC-1, AU-9."""
    path = await path_of(world, route)
    await accounts.set_account(world.services, OPERATOR, world.ann.id, status=status)
    answer = await world.http.request(route.method, path, headers=world.bearer)
    assert answer.status_code == 403
    assert await last_reason(world) == ("account_blocked", answer.headers["x-request-id"])


@pytest.mark.parametrize("route", CONSOLE, ids=name_of)
async def test_console_endpoints_take_sessions_only(world: World, route: Route):
    """No key, whatever it may do, opens the console; nor does a session that is none. AU-8."""
    path = await path_of(world, route)
    for headers in ({}, world.bearer, {"Cookie": "wfcore_session=nope"}, {"Cookie": "x=y; z"}):
        answer = await world.http.request(route.method, path, headers=headers)
        assert (answer.status_code, answer.content) == (401, UNAUTHORIZED)
        refused = await last_entry(world)
        assert (refused.event, refused.reason) == ("console.request", "session_invalid")


async def test_a_session_opens_no_api(world: World):
    """Console sessions have no scopes: v1 does not know them. AU-8."""
    answer = await world.get("/api/v1/workflows", headers=await world.sign_in())
    assert (answer.status_code, answer.content) == (401, UNAUTHORIZED)


async def test_the_three_ways_are_tried_in_order(world: World):
    """Bearer, then X-API-Key, then api_key; the first that is there decides. AU-1."""
    good, bad = world.key.text, compose("0" * 16, "a" * 36)

    async def status(authorization: str = "", x: str = "", query: str = "") -> int:
        headers = {"Authorization": authorization, "X-API-Key": x}
        sent = {name: value for name, value in headers.items() if value}
        params = {"api_key": query} if query else {}
        return (await world.http.get("/api/v1/workflows", headers=sent, params=params)).status_code

    assert await status(f"bearer {good}") == 200
    assert await status(x=good) == 200
    assert await status(query=good) == 200
    assert await status(f"Bearer {good}", bad, bad) == 200
    assert await status(f"Bearer {bad}", good, good) == 401
    assert await status("", bad, good) == 401
    assert await status("Basic eA==", good) == 200
    assert await status("Bearer", "", good) == 200


async def test_contradicting_credentials_are_refused(world: World):
    """Two different values for one way are malformed. AU-5."""
    url = "/api/v1/workflows"
    pairs = [("Authorization", f"Bearer {world.key.text}"), ("Authorization", "Bearer x")]
    assert (await world.http.get(url, headers=pairs)).status_code == 401
    query = f"?api_key={world.key.text}&api_key=x"
    assert (await world.http.get(url + query)).status_code == 401


async def test_a_rotated_key_overlaps(world: World):
    """The old secret opens until the overlap ends, the new one from the start. AU-7."""
    rotated = await keys.rotate_key(world.services, OPERATOR, world.key.key.id, DurationMs(1_000))
    assert (await world.get("/api/v1/workflows")).status_code == 200
    assert (await world.get("/api/v1/workflows", headers=bearer(rotated.text))).status_code == 200
    world.clock.advance(1_000)
    assert (await world.get("/api/v1/workflows")).status_code == 401


async def test_credentials_come_before_account_scope_and_rate(world: World):
    """A wrong secret of a disabled account is 401; with the right one it is 403. AU-9."""
    lacking = await world.new_key(None, Scope.ARTIFACT_READ)
    await accounts.set_account(
        world.services, OPERATOR, world.ann.id, plan=Tier.FREE, status=AccountStatus.DISABLED
    )
    wrong = compose(world.key.key.id, "a" * 36)
    url = "/api/v1/workflows"
    assert (await world.get(url, headers=bearer(wrong))).status_code == 401
    assert (await world.get(url, headers=bearer(lacking.text))).status_code == 403


async def last_reason(world: World) -> tuple[Any, Any]:
    entry = await last_entry(world)
    return entry.reason, entry.request_id


async def last_entry(world: World) -> AuditEntry:
    return (await read_audit(world.services, EpochMs(0), None, 1_000))[-1]
