"""The same sites below a path, changed as `docs/operating.md` says, in front of a server."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.wfserver.conftest import Running

from . import test_behind_proxies as proxies
from .test_behind_proxies import HOST, caddy, inner, nginx, served

__all__ = ["inner"]

SETTINGS = f'WFCORE_PUBLIC_URL="https://{HOST}/flows"\nWFCORE_TRUSTED_PROXIES="127.0.0.1"\n'
GUIDE = Path(__file__).parents[3] / "docs" / "operating.md"


def _shown() -> tuple[str, str]:
    """The lines of nginx and those of Caddy."""
    said = GUIDE.read_text().split("### Below a path\n")[1].split("\n## ")[0]
    of_nginx, of_caddy = re.findall(r"```(?:nginx)?\n(.*?)```", said, re.DOTALL)
    return of_nginx, of_caddy


def below(folder: Path, name: str) -> None:
    """The shipped file, in *folder*, with the lines that are shown in the place of its own."""
    conf = (proxies.DEPLOY / name).read_text()
    of_nginx, of_caddy = _shown()
    if name.startswith("nginx"):
        conf, count = re.subn(
            r"    location = /metrics .*?    location / \{\n.*?\n", of_nginx, conf, flags=re.DOTALL
        )
    else:
        conf, count = re.subn(r"\trespond .*\n\t\}\n(?=\})", of_caddy, conf, flags=re.DOTALL)
    assert count == 1
    (folder / name).parent.mkdir(parents=True)
    (folder / name).write_text(conf)


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory, inner: int) -> Iterator[Running]:
    """A server whose public URL has a path."""
    with served(tmp_path_factory.mktemp("below"), SETTINGS, inner) as running:
        yield running


@pytest.mark.parametrize(
    ("made", "name"), [(nginx, "nginx/wfcore.conf"), (caddy, "caddy/Caddyfile")]
)
def test_a_site_below_a_path_takes_it_off(
    up: Running,
    inner: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    made: proxies.CommandLine,
    name: str,
) -> None:
    """Pages, redirects and the API are below it, nothing is at the root, metrics are nowhere."""
    below(tmp_path / "deploy", name)
    monkeypatch.setattr(proxies, "DEPLOY", tmp_path / "deploy")
    key = {"Authorization": f"Bearer {(up.data / 'first.key').read_text().strip()}"}
    with proxies.behind(made, tmp_path, inner) as http:
        assert http.get("/flows/healthz").json()["status"] == "ok"
        assert http.get("/flows/api/v1/workflows", headers=key).json()["items"]
        described = http.get("/flows/openapi.json").json()["servers"]
        assert described == [{"url": f"https://{HOST}/flows"}]
        assert http.get("/flows").headers["location"].endswith("/flows/")
        page = http.get("/flows/")
        assert page.status_code == 401  # to sign in at
        links = re.findall(r'(?:href|src|action)="(/[^"]*)"', page.text)
        assert links
        assert all(link.startswith("/flows/") for link in links)
        assert {http.get(link).status_code for link in links if "static" in link} == {200}
        assert http.get("/flows/metrics").status_code == 404
        above = http.get("/api/v1/workflows", headers=key)
        assert above.status_code == 404 or not above.content
