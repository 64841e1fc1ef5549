"""Every page against forms of other sites, and every GET against bots. SE-3, SE-8."""

import re
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from adapters_http.app import HttpConfig
from adapters_http.console.routes import PAGES
from adapters_http.route import Auth, Route
from tests.support.http_world import PASSWORD, World, a_world
from wfcore.model.access import OPERATOR
from wfcore.rules.auth.signed_links import personal_token
from wfcore.time import MINUTE
from wfcore.usecases.accounts.sessions import issue_login_link
from wfcore.usecases.approvals.approvals import read_approval
from wfcore.usecases.audit.auditing import UNKNOWN, note_repeated

STREAM = "text/event-stream"
HTML = {"Accept": "text/html"}
FORM = {"email": "ann@example.org", "password": PASSWORD}
BODIES: dict[str, dict[str, str]] = {
    "/sign-in": FORM,
    "/settings": {"theme": "dark", "times": "utc"},
}
FORGED = (
    {"Origin": "https://evil.example"},
    {"Origin": "https://evil.example", "Sec-Fetch-Site": "same-origin"},
    {"Origin": "null"},
    {"Origin": "null", "Sec-Fetch-Site": "same-site"},
    {"Sec-Fetch-Site": "cross-site"},
    {"Cookie": "anything=1"},
)


@pytest.fixture
async def world(tmp_path: Path):
    async with a_world(tmp_path, HttpConfig(console=True)) as made:
        yield made


async def addresses(world: World) -> dict[str, str]:
    """A real value for every parameter of a page."""
    execution_id, id = await world.paused(approvers=("ann@example.org",))
    approval = await read_approval(world.services, OPERATOR, id)
    personal = f"/a/{personal_token(world.services.signing_key, approval, 'ann@example.org')}"
    link = await issue_login_link(world.services, OPERATOR, world.ann.id, UNKNOWN)
    return {
        "/a/{token}": personal,
        "/in/{token}": f"/in/{link}",
        "{id}": id,
        "{execution}": execution_id,
    }


def path_of(route: Route, real: dict[str, str]) -> str:
    path = route.path
    for name, value in real.items():
        path = path.replace(name, value)
    return re.sub("{.*?}", "x", path)


def stored(folder: Path) -> dict[str, list[str]]:
    """What the databases hold, but for when a session was last seen."""
    found = {}
    for path in sorted(folder.rglob("*.db")):
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as database:
            lines = [re.sub(r'"last_seen_at":\d+', "", line) for line in database.iterdump()]
        found[path.name] = lines
    return found


async def test_no_change_comes_from_another_page(tmp_path: Path, world: World):
    """Each POST of each page is 403 for each forgery, signed in or not, and changes nothing."""
    real = await addresses(world)
    session = await world.sign_in()
    before = stored(tmp_path)
    posts = [route for route in PAGES if route.method != "GET"]
    assert len(posts) >= 10
    for route in posts:
        assert route.auth in (Auth.PAGE, Auth.LOGIN, Auth.PERSONAL), "asks where it comes from"
        for forged in FORGED:
            headers = {**HTML, **session, **forged}
            sent = {"data": BODIES.get(route.path, {})}
            if route.media != "text/html":
                sent = {"json": {}}
            answer = await world.http.request(
                route.method, path_of(route, real), headers=headers, **sent
            )
            assert answer.status_code == 403, (route.path, forged)
    assert stored(tmp_path) == before


async def test_no_get_changes_anything(tmp_path: Path, world: World):
    """GET and HEAD of every page, signed in and not, leave the store as it was."""
    real = await addresses(world)
    session = await world.sign_in()
    before = stored(tmp_path)
    for route in PAGES:
        if route.method != "GET":
            continue
        for headers in ({}, session):
            for method in ("GET", "HEAD"):
                path = path_of(route, real)
                asked = world.http.stream(method, path, headers={**HTML, **headers})
                async with asked as answer:
                    if route.media != STREAM:  # which goes on
                        await answer.aread()
    assert stored(tmp_path) == before


async def test_each_sign_in_is_a_new_session(world: World):
    """By password and by link: another cookie each time, and the one before has ended. SE-5."""
    ours = {"Origin": world.url, **HTML}
    seen = []
    for how in ("password", "link", "password"):
        if how == "password":
            await world.http.post("/sign-in", data=FORM, headers=ours)
        else:
            link = await issue_login_link(world.services, OPERATOR, world.ann.id, UNKNOWN)
            await world.http.post(f"/in/{link}", headers=ours)
        seen.append(world.http.cookies["wfcore_session"])
    assert len(set(seen)) == 3
    world.http.cookies.clear()
    for token, status in zip(seen, (401, 401, 200), strict=True):
        cookie = {"Cookie": f"wfcore_session={token}"}
        assert (await world.http.get("/inbox", headers=cookie)).status_code == status


async def test_known_and_unknown_emails_cost_the_same(
    world: World, monkeypatch: pytest.MonkeyPatch
):
    """
    The same text, the same number of reads, writes and hashes, for the first failure of a minute
    as for those that are only counted: no clock can tell them. AU-6, AL-8.
    """
    done: list[str] = []
    for owner, name in (
        (type(world.services.store), "view"),
        (type(world.services.store), "unit"),
        (type(world.services.passwords), "verify"),
    ):
        real = getattr(owner, name)

        def counted(*args, _real=real, _name=name, **more):
            done.append(_name)
            return _real(*args, **more)

        monkeypatch.setattr(owner, name, counted)

    async def fails(email: str) -> tuple[list[str], str]:
        done.clear()
        form = {"email": email, "password": "wrong"}
        said = await world.http.post("/sign-in", data=form, headers={"Origin": world.url, **HTML})
        return list(done), said.text.replace(email, "")

    first_known = await fails("ann@example.org")
    counted_known = await fails("ann@example.org")
    world.clock.advance(MINUTE)
    await note_repeated(world.services)
    first_unknown = await fails("eve@example.org")
    assert first_known == first_unknown
    assert counted_known == await fails("eve@example.org")
    assert "verify" in counted_known[0]


async def test_other_sites_may_frame_only_where_they_are_named(tmp_path: Path, world: World):
    """`frame_ancestors` names them; by default nobody frames anything."""
    shut = (await world.http.get("/sign-in")).headers
    assert shut["x-frame-options"] == "DENY"
    assert "frame-ancestors 'none'" in shut["content-security-policy"]
    config = HttpConfig(console=True, frame_ancestors=("https://portal.example.org",))
    async with a_world(tmp_path / "other", config) as other:
        headers = (await other.http.get("/sign-in")).headers
        assert "x-frame-options" not in headers
        policy = headers["content-security-policy"]
        assert "frame-ancestors https://portal.example.org" in policy


async def test_no_other_site_learns_a_token(tmp_path: Path, world: World):
    """`no-referrer` where browsers say where a form comes from in another way; else no path."""
    for path in ("/in/x", "/a/x", "/a/x.y"):
        seen = await world.http.get(path, headers=HTML)
        assert (seen.status_code, seen.headers["referrer-policy"]) == (410, "no-referrer")
    for url, policy in (
        ("https://example.org", "no-referrer"),
        ("http://example.org", "strict-origin"),
        ("http://[::1]:8000", "no-referrer"),
        ("http://flows.localhost", "no-referrer"),
    ):
        config = HttpConfig(console=True, public_url=url)
        async with a_world(tmp_path / re.sub(r"\W", "", url), config) as other:
            seen = await other.http.get("/a/x", headers=HTML)
            assert seen.headers["referrer-policy"] == policy
