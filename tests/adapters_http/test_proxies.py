"""Where a request comes from, and by which name: what a proxy may say, and whom it is believed."""

from ipaddress import ip_network
from pathlib import Path

import pytest

from adapters_http.app import HttpConfig
from adapters_http.proxies import Proxies
from tests.support.http_world import PASSWORD, World, a_world
from wfcore.time import EpochMs

LOGIN = {"email": "ann@example.org", "password": PASSWORD}
LOOPBACK = (ip_network("127.0.0.0/8"),)
LIES = {
    "X-Forwarded-For": "203.0.113.9",
    "X-Forwarded-Proto": "https",
    "X-Forwarded-Host": "evil.example",
    "Forwarded": "for=203.0.113.9;proto=https;host=evil.example",
}
EDGE = [ip_network("10.0.0.0/8"), ip_network("fd00::/8")]


async def addresses(world: World) -> list[str | None]:
    """Of the audit log, one for each of the entries that have a path."""
    async with world.services.store.view() as view:
        entries = await view.audit.list(EpochMs(0), None, 100)
    return [entry.ip for entry in entries if entry.path is not None]


async def trigger_url(world: World, headers: dict[str, str]) -> str:
    """The link of a new webhook, as it is shown to whoever sends these headers."""
    await world.webhook()
    signed_in = await world.http.post("/api/session", json=LOGIN, headers=headers)
    cookie = {"Cookie": signed_in.headers["set-cookie"].partition(";")[0]}
    answer = await world.http.get("/api/webhooks", headers={**cookie, **headers})
    return str(answer.json()["webhooks"][0]["triggerUrl"])


async def test_nobody_is_believed_by_default(world: World):
    """Forwarded addresses, schemes and hosts of strangers are ignored, from loopback, too."""
    answer = await world.http.post("/api/session", json=LOGIN, headers=LIES)
    assert "Secure" not in answer.headers["set-cookie"]
    assert set(await addresses(world)) == {"127.0.0.1"}
    assert (await trigger_url(world, LIES)).startswith(f"{world.url}/")


async def test_a_trusted_proxy_says_who_asks_and_how(tmp_path: Path):
    """The audit log has the client's address; cookies and links follow the outer scheme."""
    async with a_world(tmp_path, HttpConfig(trusted_proxies=LOOPBACK)) as world:
        said = {**LIES, "X-Forwarded-Host": "wf.example.org"}
        answer = await world.http.post("/api/session", json=LOGIN, headers=said)
        assert "Secure" in answer.headers["set-cookie"]
        assert await addresses(world) == ["203.0.113.9"]
        assert (await trigger_url(world, said)).startswith("https://wf.example.org/")


async def test_a_page_behind_a_proxy_is_the_consoles_own(tmp_path: Path):
    """Origin is held against scheme and host that the browser asked, and no others. SE-3."""
    async with a_world(tmp_path, HttpConfig(trusted_proxies=LOOPBACK)) as world:
        said = {"X-Forwarded-Host": "wf.example.org", "X-Forwarded-Proto": "https"}
        for origin, status in (
            ("https://wf.example.org", 200),
            ("https://WF.example.org:443", 200),
            ("http://wf.example.org", 403),
            ("https://wf.example.org:8443", 403),
            (world.url, 403),
        ):
            headers = {**said, "Origin": origin}
            answer = await world.http.post("/api/session", json=LOGIN, headers=headers)
            assert answer.status_code == status, origin
        untold = {"X-Forwarded-Host": "wf.example.org", "Origin": "https://wf.example.org"}
        refused = await world.http.post("/api/session", json=LOGIN, headers=untold)
        assert (refused.status_code, "WFCORE_PUBLIC_URL" in refused.text) == (403, True)


@pytest.mark.parametrize(
    ("peer", "said", "client"),
    [
        ("10.0.0.1", [b"203.0.113.9"], "203.0.113.9"),
        ("10.0.0.1", [b"1.1.1.1, 203.0.113.9"], "203.0.113.9"),
        ("10.0.0.1", [b"1.1.1.1, 203.0.113.9, 10.9.9.9"], "203.0.113.9"),
        ("10.0.0.1", [b"1.1.1.1", b"203.0.113.9"], "203.0.113.9"),
        ("10.0.0.1", [b"10.2.2.2, 10.3.3.3"], "10.2.2.2"),
        ("10.0.0.1", [b"203.0.113.9:4711"], "203.0.113.9"),
        ("10.0.0.1", [b"[2001:db8::1]:4711"], "2001:db8::1"),
        ("10.0.0.1", [b"2001:db8::1"], "2001:db8::1"),
        ("fd00::1", [b"::ffff:203.0.113.9"], "203.0.113.9"),
        ("::ffff:10.0.0.1", [b"203.0.113.9"], "203.0.113.9"),
        ("10.0.0.1", [b"203.0.113.9, unknown"], "10.0.0.1"),
        ("10.0.0.1", [b"203.0.113.9, 10.2.2.2, _hidden, 10.3.3.3"], "10.3.3.3"),
        ("10.0.0.1", [b"203.0.113.9,"], "10.0.0.1"),
        ("10.0.0.1", [b"\xff"], "10.0.0.1"),
        ("10.0.0.1", [], "10.0.0.1"),
        ("192.0.2.1", [b"203.0.113.9"], "192.0.2.1"),
        ("unix", [b"203.0.113.9"], "unix"),
    ],
)
def test_the_nearest_address_that_is_not_trusted_is_the_client(peer, said, client):
    """What stands left of it, anybody may have written."""
    headers = [(b"x-forwarded-for", value) for value in said]
    scope = {"type": "http", "client": (peer, 1), "scheme": "http", "headers": headers}
    assert Proxies(EDGE).resolve(scope)["client"][0] == client


@pytest.mark.parametrize(
    ("name", "value"),
    [
        (b"x-forwarded-proto", b"javascript"),
        (b"x-forwarded-proto", b"https, gopher"),
        (b"x-forwarded-host", b"a/b"),
        (b"x-forwarded-host", b""),
        (b"x-forwarded-host", b"wf.example.org, a@b"),
    ],
)
def test_what_is_no_scheme_or_host_is_not_taken(name: bytes, value: bytes):
    """Then the request's own scheme and Host stay."""
    headers = [(b"host", b"x"), (name, value)]
    scope = {"type": "http", "client": ("10.0.0.1", 1), "scheme": "http", "headers": headers}
    seen = Proxies(EDGE).resolve(scope)
    assert (seen["scheme"], seen["headers"]) == ("http", headers)


async def test_other_names_than_the_allowed_are_refused(tmp_path: Path):
    """Whatever the port and the case; probes, which come by address, are answered."""
    config = HttpConfig(allowed_hosts=frozenset({"wf.example.org", "[::1]"}))
    async with a_world(tmp_path, config) as world:
        for host in ("wf.example.org", "WF.example.org:8443", "wf.example.org.", "[::1]:80"):
            assert (await world.http.get("/openapi.json", headers={"Host": host})).is_success
        for host in (
            "evil.example",
            "a.wf.example.org",
            "wf.example.org.evil.example",
            "127.0.0.1",
        ):
            answer = await world.http.get("/openapi.json", headers={"Host": host})
            assert (answer.status_code, "Host: not a name" in answer.text) == (400, True)
            login = await world.http.post("/api/session", json=LOGIN, headers={"Host": host})
            assert login.status_code == 400
            for probe in ("/healthz", "/readyz", "/metrics"):
                assert (await world.http.get(probe, headers={"Host": host})).is_success


async def test_the_name_is_the_one_that_the_client_used(tmp_path: Path):
    """Behind a trusted proxy it is the forwarded one; a stranger's word changes nothing."""
    named = {"X-Forwarded-Host": "wf.example.org"}
    for trusted, status in ((LOOPBACK, 200), ((), 400)):
        config = HttpConfig(trusted_proxies=trusted, allowed_hosts={"wf.example.org"})
        async with a_world(tmp_path / str(status), config) as world:
            answer = await world.http.get("/openapi.json", headers=named)
            assert answer.status_code == status
