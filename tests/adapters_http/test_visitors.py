"""Visitors: whom an application around this one vouches for. Below a path, URLs included."""

from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest
from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.routing import Mount
from starlette.types import Scope as AsgiScope

from adapters_http.app import HttpConfig, create_app
from adapters_http.console.routes import PAGES
from adapters_http.route import Auth
from adapters_http.routes import ROUTES
from tests.support.http_world import World, a_world, bearer, serving
from wfcore.errors import Unauthenticated
from wfcore.model.access import OPERATOR, AccountStatus, Scope, Tier, Visitor
from wfcore.rules.auth.api_key import compose
from wfcore.usecases.accounts import accounts
from wfcore.usecases.accounts.authenticate import recognise

GRANTED = frozenset(Scope.ordinary()) - {Scope.EXECUTION_READ}


async def by_header(scope: AsgiScope) -> Visitor | None:
    """A host that believes a header; real ones look at a session of theirs."""
    headers = Headers(scope=scope)
    name, scopes = headers.get("x-user"), headers.get("x-scopes")
    granted = GRANTED if scopes is None else frozenset(map(Scope, scopes.split()))
    return Visitor(name, granted) if name else None


@pytest.fixture
def config() -> HttpConfig:
    return HttpConfig(login=by_header, console=True)


ANN = {"X-User": "Ann@example.org"}


async def test_a_visitor_is_the_account_that_the_host_names(world: World) -> None:
    """By email or by id; it sees what that account sees. AU-10, AC-3."""
    id = await world.workflow()
    await world.workflow(name="other", owner=await world.account("bob"))
    for name in (ANN["X-User"], world.ann.id):
        listed = await world.get("/api/v1/workflows", headers={"X-User": name})
        assert [one["id"] for one in listed.json()["items"]] == [id]


async def test_a_visitor_has_the_scopes_that_the_host_grants(world: World) -> None:
    """What is not granted is 401, as for a key that lacks it. AU-4, AU-10."""
    assert (await world.get("/api/v1/executions", headers=ANN)).status_code == 401


async def test_a_key_goes_before_the_host(world: World) -> None:
    """One of our keys, good or bad, decides alone; another Bearer is the host's. AU-10."""
    ann, url = bearer(world.key.text), "/api/v1/executions"
    assert (await world.get(url, headers=ANN | ann)).status_code == 200
    bad = bearer(compose("0" * 16, "a" * 36))
    assert (await world.get("/api/v1/workflows", headers=ANN | bad)).status_code == 401
    cut = bearer(world.key.text[:-3])
    assert (await world.get("/api/v1/workflows", headers=ANN | cut)).status_code == 401
    jwt = bearer("eyJhbGciOi.J9.x")
    assert (await world.get("/api/v1/workflows", headers=ANN | jwt)).status_code == 200


@pytest.mark.parametrize("status", [AccountStatus.DISABLED, AccountStatus.LOCKED])
async def test_a_blocked_account_is_no_visitor(world: World, status: AccountStatus) -> None:
    """The host's word opens no blocked account. AC-1, AU-10."""
    await accounts.set_account(world.services, OPERATOR, world.ann.id, status=status)
    for path in ("/api/v1/workflows", "/api/webhooks"):
        assert (await world.get(path, headers=ANN)).status_code == 403


async def test_an_account_that_is_not_there_is_401(world: World) -> None:
    """The refusal is in the audit log, like every other. AU-10."""
    answer = await world.get("/api/v1/workflows", headers={"X-User": "nobody@example.org"})
    assert (answer.status_code, answer.content) == (401, b'{"error":"Unauthorized"}')
    async with world.services.store.view() as view:
        entries = await view.audit.list(0, None, 100)  # type: ignore[arg-type]
    assert entries[-1].reason == "session_invalid"


async def test_a_look_alike_is_another_person(world: World) -> None:
    """A Kelvin sign is a k in lower case: the host names somebody without account here. AU-10."""
    await world.account("kim")
    kim, look_alike = Visitor("Kim@example.org"), Visitor("\N{KELVIN SIGN}im@example.org")
    assert (await recognise(world.services, kim, ())).email == "kim@example.org"
    with pytest.raises(Unauthenticated):
        await recognise(world.services, look_alike, ())


async def test_changes_from_other_sites_are_refused(world: World) -> None:
    """What lets a visitor in may be a cookie, so other sites change nothing. AU-10, SE-3."""
    url = f"/api/v1/workflows/{await world.workflow()}/executions"
    for headers in ({"Sec-Fetch-Site": "cross-site"}, {"Origin": "https://evil.example"}):
        assert (await world.post(url, {}, headers=ANN | headers)).status_code == 403
        with_key = await world.post(url, {}, headers=world.bearer | headers)
        assert with_key.status_code == 202
    assert (await world.post(url, {}, headers=ANN)).status_code == 202


async def test_links_that_decide_ask_for_a_key(world: World) -> None:
    """A visitor who is lured to such a link decides nothing. LK-3, AU-10."""
    _, approval = await world.paused()
    url = f"/api/webhook-trigger/approval/{approval}/approve?confirm=1"
    assert (await world.get(url, headers=ANN)).status_code == 401


async def test_visitors_of_an_account_share_its_quota(world: World) -> None:
    """The account's plan counts, apart from that of its keys. RL-1, AU-10."""
    await accounts.set_account(world.services, OPERATOR, world.ann.id, plan=Tier.FREE)
    for _ in range(60):
        assert (await world.get("/api/v1/workflows", headers=ANN)).status_code == 200
    assert (await world.get("/api/v1/workflows", headers=ANN)).status_code == 429
    assert (await world.get("/api/v1/workflows")).status_code == 200


async def test_a_visitor_is_at_home_in_the_console(world: World) -> None:
    """Webhooks are managed by who is signed in outside. AU-8, AU-10."""
    assert (await world.get("/api/session", headers=ANN)).json()["account"]["id"] == world.ann.id
    body = {"workflowId": await world.workflow(), "name": "hook", "apiKeyId": world.key.key.id}
    assert (await world.post("/api/webhooks", body, headers=ANN)).status_code == 200


async def test_a_visitor_downloads(world: World) -> None:
    """Without a signature, by the host's login; what is not visible is not there. AR-1, AU-10."""
    execution, artifact = await world.with_artifact()
    url = f"/api/executions/{execution}/artifacts/{artifact}/download"
    assert (await world.get(url, headers=ANN)).content == b"hello"
    await world.account("bob")
    bob = {"X-User": "bob@example.org"}
    assert (await world.get(url, headers=bob)).status_code == 404
    assert (await world.get(url, headers={})).status_code == 401


@pytest.fixture
async def below(tmp_path: Path, config: HttpConfig) -> AsyncIterator[World]:
    """The same, below the path /flows of another application."""
    async with a_world(tmp_path, config) as world:
        outer = Starlette(routes=[Mount("/flows", app=create_app(world.services, config))])
        async with serving(outer) as url, httpx.AsyncClient(base_url=f"{url}/flows") as http:
            world.http, world.url = http, f"{url}/flows"
            yield world


async def test_addresses_carry_the_path_of_the_mount(below: World) -> None:
    """Links, trigger URLs, the session's cookie and the description work where they are."""
    execution, _ = await below.with_artifact()
    root = below.url.removesuffix("/flows")
    (found,) = (await below.get(f"/api/v1/executions/{execution}/artifacts")).json()["artifacts"]
    assert (await below.http.get(root + found["downloadUrl"])).content == b"hello"
    id = await below.webhook()
    (hook,) = (await below.get("/api/webhooks", headers=ANN)).json()["webhooks"]
    assert hook["triggerUrl"] == f"{below.url}/api/webhooks/{id}/trigger"
    assert (await below.post(hook["triggerUrl"], {})).status_code == 202
    signed_in = await below.post(
        "/api/session", {"email": "ann@example.org", "password": "correct horse battery staple"}
    )
    assert "Path=/flows;" in signed_in.headers["set-cookie"]
    assert (await below.get("/openapi.json")).json()["servers"] == [{"url": "/flows"}]


async def test_a_link_decides_below_a_mount(below: World) -> None:
    """The page's button leads back to where the page is. LK-2."""
    _, approval = await below.paused()
    url = f"/api/webhook-trigger/approval/{approval}/approve?api_key={below.key.text}"
    page = await below.http.get(url)
    assert (page.status_code, "action=" in page.text) == (200, False)
    assert (await below.http.get(f"{url}&confirm=1")).status_code == 200
    assert (await below.get(f"/api/v1/approvals/{approval}")).json()["status"] == "APPROVED"


async def test_a_public_url_with_a_path_goes_into_links(tmp_path: Path) -> None:
    """Behind a proxy that strips a path, links carry it all the same."""
    async with a_world(tmp_path, HttpConfig(public_url="https://example.org/wf/")) as world:
        execution, artifact = await world.with_artifact()
        path = f"/api/v1/executions/{execution}/artifacts/{artifact}"
        link = (await world.get(path)).json()["downloadUrl"]
        assert link.startswith(f"/wf/api/executions/{execution}/artifacts/{artifact}/download?")
        assert (await world.http.get(link.removeprefix("/wf"))).content == b"hello"


LED_IN = [route for route in (*ROUTES, *PAGES) if route.auth in (Auth.SESSION, Auth.PAGE)]


def test_every_route_by_session_says_what_a_visitor_needs() -> None:
    """A scope, or every scope; or it says in words why none is needed. AU-11."""
    without = {f"{one.method} {one.path}" for one in LED_IN if not one.visitor_scopes}
    assert without == {
        "GET /api/session",
        "GET /api/keys",
        "POST /api/keys",
        "POST /api/keys/{id}/rotate",
        "DELETE /api/keys/{id}",
        "GET /",
        "GET /more",
        "GET /start",
        "GET /search",
        "POST /start/hide",
        "GET /operate",
        "GET /operate/keys",
        "GET /operate/keys/live",
        "POST /operate/keys",
        "GET /operate/keys/{id}",
        "POST /operate/keys/{id}/rotate",
        "POST /operate/keys/{id}/revoke",
    }
    assert all(one.visitors for one in LED_IN if not one.visitor_scopes)
    for one in LED_IN:
        if one.scope is None and one.visitors is None:
            assert one.visitor_scopes == Visitor("").scopes


async def test_a_visitor_without_the_scope_gets_in_nowhere(world: World) -> None:
    """Pages and sessions too: whoever lacks one of the scopes that a row needs is 401. AU-11."""
    for route in LED_IN:
        path = route.path
        for name in route.names:
            path = path.replace(f"{{{name}}}", "x_1")
        for scope in route.visitor_scopes:
            visitor = {**ANN, "X-Scopes": " ".join(Visitor("").scopes - {scope})}
            asked = {"json": {}} if route.method in ("POST", "PUT") else {}
            answer = await world.http.request(
                route.method, path, headers=visitor, follow_redirects=False, **asked
            )
            turned = answer.status_code == 401 or answer.headers.get("location", "").startswith(
                "/sign-in"
            )
            assert turned, (route.method, path, scope, answer.status_code)


async def test_a_visitor_handles_keys_that_do_no_more_than_they(world: World) -> None:
    """Listing, rotating and revoking are for keys within their scopes. AU-11."""
    small = await world.new_key(None, Scope.WORKFLOW_READ)
    visitor = {**ANN, "X-Scopes": Scope.WORKFLOW_READ.value}
    listed = (await world.get("/api/keys", headers=visitor)).json()["keys"]
    assert [one["id"] for one in listed] == [small.key.id]
    for key, status in ((world.key.key.id, 403), (small.key.id, 200)):
        for method, path in (("POST", f"/api/keys/{key}/rotate"), ("DELETE", f"/api/keys/{key}")):
            asked = {"json": {}} if method == "POST" else {}
            answer = await world.http.request(method, path, headers=visitor, **asked)
            assert answer.status_code == status, (method, status)
