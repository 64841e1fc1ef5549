"""
The sites that are shipped, in front of a server: nginx and Caddy of the distribution, as
`deploy/nginx/wfcore.conf` and `deploy/caddy/Caddyfile` say.
"""

import json
import ssl
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

import httpx
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from tests.support.distribution import program
from tests.system.scenarios.process import free_port
from tests.wfserver.conftest import Call, Running, call, document, end, start
from wfcore.rules.limits import EDITED_ROWS_BODY

__all__ = ["call"]
DEPLOY = Path(__file__).parents[3] / "deploy"
HOST = "wf.example.org"
SETTINGS = f'WFCORE_PUBLIC_URL="https://{HOST}"\nWFCORE_TRUSTED_PROXIES="127.0.0.1"\n'
CommandLine = Callable[[Path, int, int], list[str | Path]]
CLIENT = "127.0.0.2"
"""Another address of this machine: the proxy is at 127.0.0.1, which the server believes."""


@pytest.fixture(scope="module")
def inner() -> int:
    """The port of the server itself."""
    return free_port()


@contextmanager
def served(folder: Path, settings: str, port: int) -> Iterator[Running]:
    """A server at *port* with these settings, in *folder*."""
    (folder / "settings.toml").write_text(settings)
    data = folder / "data"
    arguments = ("--settings", str(folder / "settings.toml"), "up", "--port", str(port), "--json")
    process = start(*arguments, data=data)
    try:
        yield Running(process, document(process, data), data)
    finally:
        end(process)


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory, inner: int) -> Iterator[Running]:
    """A server with the settings that the site asks for."""
    with served(tmp_path_factory.mktemp("behind"), SETTINGS, inner) as running:
        yield running


def nginx(folder: Path, port: int, inner: int) -> list[str | Path]:
    """The command line of nginx, with the shipped site at *port* of this machine."""
    conf = shipped(
        "nginx/wfcore.conf",
        ("listen 443 ssl;", f"listen 127.0.0.1:{port} ssl;"),
        (f"/etc/ssl/certs/{HOST}.pem", str(folder / "cert.pem")),
        (f"/etc/ssl/private/{HOST}.key", str(folder / "key.pem")),
        ("proxy_pass http://127.0.0.1:8000", f"proxy_pass http://127.0.0.1:{inner}"),
    )
    temporary = "\n".join(
        f"{kind}_temp_path {folder}/{kind};"
        for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    whole = folder / "nginx.conf"
    whole.write_text(
        f"daemon off; master_process off; pid {folder}/pid; events {{}}\n"
        f"http {{ access_log off;\n{temporary}\n{conf}\n}}\n"
    )
    return [program("nginx", "nginx-light"), "-p", folder, "-e", "stderr", "-c", whole]


def caddy(folder: Path, port: int, inner: int) -> list[str | Path]:
    """The same of Caddy; a certificate of our own instead of one that it would fetch."""
    site = f"{HOST}:{port} {{\n\tbind 127.0.0.1\n\ttls {folder}/cert.pem {folder}/key.pem"
    conf = shipped(
        "caddy/Caddyfile",
        (f"{HOST} {{", site),
        ("reverse_proxy 127.0.0.1:8000", f"reverse_proxy 127.0.0.1:{inner}"),
    )
    options = f"admin off\n\tgrace_period 1s\n\tauto_https disable_redirects\n\tdefault_sni {HOST}"
    whole = folder / "Caddyfile"
    whole.write_text(f"{{\n\t{options}\n\tstorage file_system {folder}\n}}\n{conf}")
    return [program("caddy", "caddy"), "run", "--adapter", "caddyfile", "--config", whole]


def shipped(name: str, *here: tuple[str, str]) -> str:
    """A file of `deploy`, each name in it replaced by that of *here*."""
    conf = (DEPLOY / name).read_text()
    for theirs, ours in here:
        assert theirs in conf
        conf = conf.replace(theirs, ours)
    return conf


@pytest.fixture(scope="module", params=[nginx, caddy], ids=["nginx", "caddy"])
def site(
    up: Running,
    inner: int,
    tmp_path_factory: pytest.TempPathFactory,
    request: pytest.FixtureRequest,
) -> Iterator[httpx.Client]:
    """A client of the proxy, from an address that is not trusted."""
    headers = {"Authorization": f"Bearer {(up.data / 'first.key').read_text().strip()}"}
    with behind(request.param, tmp_path_factory.mktemp("proxy"), inner) as client:
        client.headers.update(headers)
        yield client


@contextmanager
def behind(made: CommandLine, folder: Path, inner: int) -> Iterator[httpx.Client]:
    """A client of the proxy that is *made* to run in *folder*."""
    certify(folder)
    port = free_port()
    tls = ssl.create_default_context(cafile=str(folder / "cert.pem"))
    with (folder / "log").open("w") as log:
        home = {"HOME": str(folder), "XDG_CONFIG_HOME": str(folder), "XDG_DATA_HOME": str(folder)}
        process = subprocess.Popen(made(folder, port, inner), stderr=log, env=home)
    try:
        transport = httpx.HTTPTransport(verify=tls, retries=8, local_address=CLIENT)
        url, headers = f"https://127.0.0.1:{port}", {"Host": HOST}
        with httpx.Client(base_url=url, transport=transport, headers=headers, timeout=30) as client:
            client.get("/healthz")
            yield client
    finally:
        process.terminate()
        process.wait(60)
        assert "emerg" not in (folder / "log").read_text()


def certify(folder: Path) -> None:
    """A certificate for the site, which signs itself."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, HOST)])
    now = datetime.now(UTC)
    names = x509.SubjectAlternativeName(
        [x509.DNSName(HOST), x509.IPAddress(ip_address("127.0.0.1"))]
    )
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(names, critical=False)
        .sign(key, hashes.SHA256())
    )
    (folder / "cert.pem").write_bytes(made.public_bytes(serialization.Encoding.PEM))
    (folder / "key.pem").write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )


def _waiting(site: httpx.Client) -> str:
    """An execution of the sample that waits for an approval."""
    (flow,) = site.get("/api/v1/workflows").json()["items"]
    started = site.post(f"/api/v1/workflows/{flow['id']}/executions?wait=30", json={"inputs": {}})
    assert started.json()["status"] == "AWAITING_APPROVAL"
    return str(started.json()["executionId"])


def test_the_client_is_who_asked_the_proxy(site: httpx.Client, up: Running, call: Call) -> None:
    """Not the proxy, and not whoever a client says it is."""
    id = _waiting(site)
    headers = {"X-Forwarded-For": "10.1.2.3", "X-Forwarded-Host": "evil.example.org"}
    assert site.post(f"/api/v1/executions/{id}/cancel", headers=headers).status_code == 200
    entries = call("--data", str(up.data), "audit", "--json").json["items"]
    (cancelled,) = (one for one in entries if one["event"] == "execution.cancel" and id in str(one))
    assert cancelled["ip"] == CLIENT


def test_links_name_the_public_address(site: httpx.Client) -> None:
    """And no other host is answered to: nginx hands it on, Caddy has nothing to say."""
    assert site.get("/openapi.json").json()["servers"] == [{"url": f"https://{HOST}"}]
    refused = site.get("/api/v1/workflows", headers={"Host": "other.example.org"})
    assert refused.status_code == 400 or not refused.content


def test_metrics_stay_inside(site: httpx.Client, inner: int) -> None:
    """They need no key, so the proxy hands out none, however the path is spelt."""
    for path in ("/metrics", "/%6Detrics", "/metrics?x=1"):
        assert site.get(path).status_code == 404
    assert "wfcore_" in httpx.get(f"http://127.0.0.1:{inner}/metrics", timeout=30).text


def test_the_largest_bodies_reach_the_server(site: httpx.Client) -> None:
    """What is too large is refused in the server's words, not in the proxy's."""
    path = "/api/v1/approvals/appr_0/approve"
    body = json.dumps({"comment": ""})
    for size, status in ((EDITED_ROWS_BODY, 404), (EDITED_ROWS_BODY + 1, 413)):
        answer = site.post(path, content=body.ljust(size))
        assert (answer.status_code, set(answer.json()) & {"error"}) == (status, {"error"})


def test_events_arrive_as_they_happen(site: httpx.Client) -> None:
    """A stream that goes on is not held back until it ends."""
    with site.stream("GET", f"/api/v1/executions/{_waiting(site)}/events") as stream:
        text = ""
        for piece in stream.iter_text():
            text += piece
            if "approval" in text:
                break
    assert "execution.pending" in text
