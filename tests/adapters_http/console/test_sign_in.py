"""The way into the console and out of it, and what pages say when something is in the way."""

import gzip
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import httpx
import pytest

import adapters_http.console
from adapters_http.app import HttpConfig
from adapters_http.console.paths import own_path
from adapters_http.console.routes import PAGES
from adapters_http.console.static_files import AS_WRITTEN, files
from adapters_http.dispatch import RouteTree
from adapters_http.openapi.document import document
from adapters_http.route import Auth
from adapters_http.routes import ROUTES
from tests.support.http_world import PASSWORD, World, a_world
from wfcore.model.access import OPERATOR, AccountStatus, Scope, Visitor
from wfcore.time import MINUTE
from wfcore.usecases.accounts import accounts
from wfcore.usecases.accounts.sessions import end_sessions, issue_login_link
from wfcore.usecases.audit.auditing import UNKNOWN, read_audit

FOLDER = Path(adapters_http.console.__file__).parent
HTML = {"Accept": "text/html"}
FORM = {"email": "ann@example.org", "password": PASSWORD}


@pytest.fixture
def config() -> HttpConfig:
    return HttpConfig(console=True)


@pytest.fixture
async def world(tmp_path: Path, config: HttpConfig):
    async with a_world(tmp_path, config) as made:
        yield made


async def _link(world: World) -> str:
    return f"/in/{await issue_login_link(world.services, OPERATOR, world.ann.id, UNKNOWN)}"


def _ours(world: World) -> dict[str, str]:
    return {"Origin": world.url, **HTML}


async def test_a_link_signs_in_once(world: World):
    """Opening it ten times uses nothing up; one click signs in, and then it is 410. SE-7."""
    link = await _link(world)
    for _ in range(10):
        seen = await world.http.get(link, headers=HTML)
        assert (seen.status_code, "ann@example.org" in seen.text) == (200, True)
        assert seen.headers["referrer-policy"] == "no-referrer"
        assert "set-cookie" not in seen.headers
    entered = await world.http.post(link, headers=_ours(world))
    assert (entered.status_code, entered.headers["location"]) == (303, "/")
    assert (await world.http.get("/inbox")).status_code == 200
    world.http.cookies.clear()
    for again in (await world.http.get(link), await world.http.post(link, headers=_ours(world))):
        assert again.status_code == 410
        assert "wfcore login" in again.text


async def test_a_link_ends_with_its_time_and_with_all_sessions(world: World):
    """After 15 minutes, and when the account signs out everywhere, it is 410. SE-7, SE-4."""
    late, ended = await _link(world), await _link(world)
    await end_sessions(world.services, OPERATOR, world.ann.id, UNKNOWN)
    assert (await world.http.get(ended)).status_code == 410
    late = await _link(world)
    world.clock.advance(15 * MINUTE)
    assert (await world.http.post(late, headers=_ours(world))).status_code == 410


async def test_a_link_opens_no_blocked_account(world: World):
    """What blocks the account blocks its links. AC-1."""
    link = await _link(world)
    await accounts.set_account(world.services, OPERATOR, world.ann.id, status=AccountStatus.LOCKED)
    assert (await world.http.post(link, headers=_ours(world))).status_code in (403, 410)
    assert (await world.http.get("/inbox")).status_code == 401


async def test_no_token_is_on_record(world: World):
    """The audit log says that a link was made and used, and never what stands in it. SE-7."""
    link = await _link(world)
    await world.http.post(link, headers=_ours(world))
    entries = await read_audit(world.services, world.clock.now(), None, 99)
    assert {"login_link.create", "session.create"} <= {one.event for one in entries}
    assert link.rpartition("/")[2] not in repr(entries)


async def test_sign_in_by_password(world: World):
    """The form leads to the page that was wanted; the cookie is HttpOnly and Lax. SE-1, SE-5."""
    wanted = await world.http.get("/inbox?view=decided", headers=HTML)
    assert wanted.status_code == 401
    plain = await world.http.get("/sign-in", params={"next": "/inbox?view=decided"})
    for page in (wanted, plain):
        assert 'value="/inbox?view=decided"' in page.text
    form = {**FORM, "next": "/inbox?view=decided"}
    entered = await world.http.post("/sign-in", data=form, headers=_ours(world))
    assert (entered.status_code, entered.headers["location"]) == (303, "/inbox?view=decided")
    assert "HttpOnly" in entered.headers["set-cookie"]
    assert "SameSite=Lax" in entered.headers["set-cookie"]


async def test_a_form_that_came_too_late_leads_back(world: World):
    """Signed out in the middle: after signing in the same page is opened, not the inbox. B7."""
    form = {"decision": "approve"}
    for path, back in (("/approvals/appr_1", "/approvals/appr_1"), ("/sign-out", "/")):
        late = await world.http.post(path, data=form, headers=_ours(world))
        assert (late.status_code, f'value="{back}"' in late.text) == (401, True)


@pytest.mark.parametrize("email", ["ann@example.org", "nobody@example.org"])
async def test_a_wrong_password_says_no_more(world: World, email: str):
    """Known or not, the same words; the address stays in the form. AU-6."""
    form = {**FORM, "email": email, "password": "wrong"}
    refused = await world.http.post("/sign-in", data=form, headers=_ours(world))
    assert refused.status_code == 401
    assert "E-mail or password is wrong." in refused.text
    assert f'value="{email}"' in refused.text


async def test_a_locked_login_says_until_when(world: World):
    """After ten failures the page says how long. SE-2."""
    for _ in range(10):
        wrong = {**FORM, "password": "wrong"}
        await world.http.post("/sign-in", data=wrong, headers=_ours(world))
    locked = await world.http.post("/sign-in", data=FORM, headers=_ours(world))
    assert (locked.status_code, "Try again in 15 min." in locked.text) == (429, True)
    assert int(locked.headers["retry-after"]) > 0


@pytest.mark.parametrize(
    "next",
    ["//evil.example", "https:evil", "https://evil.example/", "/\\evil", "javascript:alert(1)",
     "/\tx", "/in/abc", "/sign-in", "", "/", "inbox"],
)  # fmt: skip
def test_next_is_a_path_of_ours(next: str):
    """Whatever else stands there leads to the first page: the way in is no way to other sites."""
    assert own_path(next) == "/"


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 403),
        ({"Origin": "https://evil.example"}, 403),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "null", "Sec-Fetch-Site": "same-site"}, 403),
        ({"Origin": "https://evil.example", "Sec-Fetch-Site": "same-origin"}, 403),
        ({"Origin": "null", "Sec-Fetch-Site": "same-origin"}, 303),
        ({"Sec-Fetch-Site": "same-origin"}, 303),
    ],
)
async def test_a_browser_says_where_a_change_comes_from(world: World, headers, status: int):
    """One that says nothing, or of another site, changes nothing. SE-3, SE-8."""
    await world.http.post("/sign-in", data=FORM, headers=_ours(world))
    left = await world.http.post("/sign-out", data={}, headers={**HTML, **headers})
    assert left.status_code == status
    assert (await world.http.get("/inbox")).status_code == (401 if status == 303 else 200)


async def test_signing_out_everywhere(world: World):
    """The other browser's next click is a sign-in, and this one's cookie is gone. SE-4."""
    await world.http.post("/sign-in", data=FORM, headers=_ours(world))
    other = httpx.AsyncClient(base_url=world.url)
    await other.post("/sign-in", data=FORM, headers=_ours(world))
    left = await world.http.post("/sign-out", data={"everywhere": "1"}, headers=_ours(world))
    assert "Max-Age=0" in left.headers["set-cookie"]
    assert (await other.get("/inbox")).status_code == 401
    await other.aclose()


async def test_pages_that_are_not_there(world: World):
    """404 is a page for people and JSON for programs."""
    page = await world.http.get("/nothing", headers=HTML)
    assert (page.status_code, page.headers["content-type"][:9]) == (404, "text/html")
    assert (await world.http.get("/nothing")).json() == {"error": "Not found"}
    await world.http.post("/sign-in", data=FORM, headers=_ours(world))
    assert (await world.http.get("/approvals/appr_nobody", headers=HTML)).status_code == 404


async def test_every_page_has_the_policy(world: World):
    """Only this server's own files, no frames, no text that becomes markup: errors, too. B4."""
    for path in ("/sign-in", "/inbox", "/nothing", "/in/x"):
        policy = (await world.http.get(path, headers=HTML)).headers["content-security-policy"]
        assert "default-src 'none'; script-src 'self'" in policy
        assert "frame-ancestors 'none'" in policy
        assert "require-trusted-types-for 'script'" in policy
        assert "unsafe" not in policy


async def test_static_files_are_kept_for_good(world: World):
    """Compressed where the browser takes it, immutable under their hash; another hash is 404."""
    path = f"/static/{files().hash}/app.css"
    small = await world.http.get(path)
    assert small.headers["content-encoding"] == "gzip"
    assert "immutable" in small.headers["cache-control"]
    plain = await world.http.get(path, headers={"Accept-Encoding": "identity"})
    assert plain.content == (FOLDER / "static/app.css").read_bytes()
    assert 0 < len(small.content) < len(plain.content)  # without comments and blanks
    assert (await world.http.get("/static/0000000000000000/app.css")).status_code == 404


async def test_a_visitor_of_the_host_needs_the_scope(tmp_path: Path):
    """Whom the application around vouches for sees pages as far as its scopes go. AU-10."""
    scopes = [frozenset({Scope.APPROVAL_RESPOND}), frozenset({Scope.WORKFLOW_READ})]

    async def login(scope):
        asked = dict(scope["headers"]).get(b"x-host")
        return Visitor("ann@example.org", scopes[int(asked)]) if asked else None

    async with a_world(tmp_path, HttpConfig(console=True, login=login)) as world:
        seen = await world.http.get("/inbox", headers={"X-Host": "0"})
        assert (seen.status_code, "Sign out" in seen.text) == (200, False)
        assert (await world.http.get("/inbox", headers={"X-Host": "1"})).status_code == 401


async def test_a_visitor_of_the_host_decides_on_the_page(tmp_path: Path):
    """Without a cookie of ours, and only from its own pages. AU-10, SE-3."""

    async def login(scope):
        return Visitor("ann@example.org", frozenset({Scope.APPROVAL_RESPOND}))

    async with a_world(tmp_path, HttpConfig(console=True, login=login)) as world:
        _, id = await world.paused()
        page = f"/approvals/{id}"
        assert (await world.http.get(page)).status_code == 200
        seen = (await world.get(f"/api/v1/approvals/{id}")).json()["itemsHash"]
        form = {"decision": "approve", "expectedItemsHash": seen}
        evil = {**HTML, "Origin": "https://evil.example"}
        assert (await world.http.post(page, data=form, headers=evil)).status_code == 403
        done = await world.http.post(page, data=form, headers=_ours(world))
        assert (done.status_code, "set-cookie" in done.headers) == (303, False)
        assert "Approved by ann@example.org" in " ".join((await world.http.get(page)).text.split())


async def test_rows_that_changed_are_not_decided(world: World):
    """The form without scripts says so and decides nothing; rows come as a file. AP-19."""
    ours = {**await world.sign_in(), **_ours(world)}
    _, id = await world.paused()
    form = {"decision": "approve", "expectedItemsHash": "0" * 64}
    answer = await world.http.post(f"/approvals/{id}", data=form, headers=ours)
    assert "The rows have changed since you saw them. Nothing was decided." in answer.text
    assert (await world.get(f"/api/v1/approvals/{id}")).json()["status"] == "PENDING"
    file = await world.http.get(f"/approvals/{id}/rows/0", headers=ours)
    assert "review-refunds.csv" in file.headers["content-disposition"]
    assert file.text.splitlines()[0].endswith('"Order","Amount"')
    assert (await world.http.get(f"/approvals/{id}/rows/1", headers=ours)).status_code == 404


async def test_without_the_console_nothing_is_there(tmp_path: Path):
    """Off is 404, as JSON, for every row."""
    async with a_world(tmp_path, HttpConfig()) as world:
        for route in PAGES:
            path = re.sub("{.*?}", "x", route.path)
            answer = await world.http.request(route.method, path, headers=HTML)
            assert (answer.status_code, answer.json()) == (404, {"error": "Not found"})


def test_pages_are_rows_of_the_table():
    """They can be looked up beside the API, ask for somebody, and are not described as API."""
    lookup = RouteTree((*ROUTES, *PAGES))
    assert lookup.find("/inbox")[0]["GET"].auth is Auth.PAGE
    opened = {(one.method, one.path) for one in PAGES if one.auth is not Auth.PAGE}
    assert opened == {
        *((method, path) for method in ("GET", "POST") for path in ("/sign-in", "/in/{token}")),
        ("POST", "/settings"),
        ("POST", "/sign-in/link"),
        ("POST", "/sign-in/passkey"),
        ("GET", "/static/{hash}/{name}"),
        *(("GET", f"/sign-in/{part}") for part in ("provider", "back")),
        *((method, "/a/{token}") for method in ("GET", "POST")),
        *(("GET", f"/a/{{token}}/{part}") for part in ("rows", "rows/{group}", "state", "live")),
        *(("POST", f"/a/{{token}}/{deed}") for deed in ("approve", "reject", "revise", "delegate")),
        ("POST", "/a/{token}/confirm"),
    }
    assert "/inbox" not in document(HttpConfig(console=True))["paths"]


def test_templates_hold_no_code():
    """No inline style, handler or script: the policy would block them. B4."""
    for template in (FOLDER / "templates").iterdir():
        assert not re.search(r"\sstyle=|\son\w+=|<script>|javascript:", template.read_text())


def test_a_page_that_nobody_opens_costs_nothing():
    """An application with pages has loaded neither templates nor handlers of pages at its start."""
    script = """
import sys
from adapters_http.app import create_app
from adapters_http.console.routes import PAGES
assert PAGES
print(*[name for name in sys.modules if name == "jinja2" or name.startswith("adapters_http.con")])
"""
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    loaded = set(ran.stdout.split())
    assert loaded == {f"adapters_http.{one}" for one in ("config", "console")} | {
        f"adapters_http.console.{one}" for one in ("forms", "routes")
    }, ran.stderr


def test_what_scripts_say_is_served_as_it_is_written():
    """Blanks and comments are left out of scripts, and nothing of a text."""
    texts = re.compile(r'"[^"\n]*"|`[^`]*`')
    comments = re.compile(r"^\s*//.*\n|/\*\*(?:.|\n)*?\*/", re.MULTILINE)
    for name, file in files().by_name.items():
        if name.endswith(".js"):
            served, written = gzip.decompress(file.small).decode(), file.plain.decode()
            if name in AS_WRITTEN:
                assert served == written, name
                continue
            written = comments.sub("", written)
            assert texts.findall(served) == texts.findall(written), name


class _Forms(HTMLParser):
    """Counts elements that name another place than ours."""

    def __init__(self) -> None:
        super().__init__()
        self.foreign: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name in ("href", "src", "action") and value and not value.startswith(("/", "#")):
                self.foreign.append(value)


async def test_under_a_mount_everything_stays_below_it(tmp_path: Path):
    """Links, forms, files and redirects begin with the path of the mount."""
    config = HttpConfig(console=True, public_url="https://example.org/flows")
    async with a_world(tmp_path, config) as world:
        html = (await world.http.get("/sign-in")).text
        found = _Forms()
        found.feed(html)
        assert found.foreign == []
        assert re.findall(r'(?:href|src|action)="(/(?!flows/)[^"]*)"', html) == []
        ours = {"Origin": "https://example.org", **HTML}
        entered = await world.http.post("/sign-in", data=FORM, headers=ours)
        assert entered.headers["location"] == "/flows/"
