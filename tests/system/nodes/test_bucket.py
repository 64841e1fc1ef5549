"""Servers with folders of their own share a bucket: what one worker leaves, every server serves."""

import shutil
from contextlib import ExitStack
from pathlib import Path
from subprocess import Popen
from typing import Any

import httpx

from tests.support.postgres_server import emptied
from tests.support.s3_server import SECRET
from tests.wfserver.conftest import document, end, start
from wfcore.model.access import OPERATOR, Scope
from wfcore.time import HOUR
from wfcore.usecases.accounts import keys
from wfcore.usecases.executions.executions import read_execution
from wfcore.wire.common import disposition

from .conftest import opened

COUNT = 4
LARGE = "große 'Datei'.bin"
LEAVES = f'head -c 6000000 /dev/zero > "$WF_ARTIFACTS/{LARGE}"; env > "$WF_ARTIFACTS/env.txt"'


class Servers:
    """Processes on one database; `urls`: where each answers, by its name."""

    def __init__(self, stack: ExitStack, url: str, folder: Path) -> None:
        self.urls: dict[str, str] = {}
        self._stack, self._url, self._folder = stack, url, folder
        self._running: dict[str, Popen[str]] = {}

    def begin(self, name: str, role: str, *options: str) -> None:
        data = self._folder / name
        more = ("--json", "--store", self._url, "serve", "--port", "0", "--role", role, *options)
        self._running[name] = start(*more, data=data)
        self._stack.callback(self.stop, name)
        self.urls[name] = document(self._running[name], data)["url"]

    def stop(self, name: str) -> None:
        if process := self._running.pop(name, None):
            assert end(process) == 0


async def test_started_here_run_there_downloaded_elsewhere(
    database: str, bucket: str, tmp_path: Path
) -> None:
    """
    Accepted by one server, run by a second, downloaded from a third, also when that one lost its
    folder: all of it. The steps see nothing of the bucket's credentials.
    """
    url = await emptied(database)
    shared = tmp_path / "settings.toml"
    shared.write_text(
        f'WFCORE_ARTIFACTS = "{bucket}"\n'
        f'WFCORE_SIGNING_KEY = "one:{"a" * 64}"\n'
        f'WFCORE_SEAL_KEY_FILE = "{tmp_path / "seal.key"}"\n'
    )
    shared.chmod(0o600)
    async with opened(url, tmp_path / "first", poll_ms=HOUR) as node:
        made = await keys.create_key(node.services, node.ann.account.id, "key", Scope.ordinary())
        say = {"kind": "code", "language": "command", "command": ["sh", "-c", LEAVES]}
        first = await node.start({"name": "leave", **say})
        flow = (await read_execution(node.services, OPERATOR, first)).workflow_id
    (tmp_path / "first" / "seal.key").rename(tmp_path / "seal.key")
    with ExitStack() as stack:
        servers = Servers(stack, url, tmp_path)
        for name, role in (("a", "api"), ("b", "worker"), ("c", "api")):
            servers.begin(name, role, "--settings", str(shared))
        async with httpx.AsyncClient(
            timeout=60, headers={"authorization": f"Bearer {made.text}"}
        ) as http:
            links = [link for _ in range(COUNT) for link in await left(http, servers.urls, flow)]
            assert await downloaded(servers.urls["c"], links) == len(links) == 2 * COUNT
            servers.stop("c")
            shutil.rmtree(tmp_path / "c")
            servers.begin("c", "api", "--settings", str(shared))
            assert await downloaded(servers.urls["c"], links) == len(links)
            direct = tmp_path / "direct.toml"
            direct.write_text(shared.read_text() + 'WFCORE_ARTIFACT_DOWNLOADS = "direct"\n')
            direct.chmod(0o600)
            servers.begin("d", "api", "--settings", str(direct))
            for link in links:
                await led_to_the_bucket(servers.urls["d"], link, made.text)


async def led_to_the_bucket(url: str, link: Any, key: str) -> None:
    """
    A large file comes from the bucket, whole, under its name and harmless; what a browser may be
    shown, and whatever is asked for with a key, from the server.
    """
    led = link["name"] == LARGE
    async with httpx.AsyncClient(timeout=60) as http:
        first = await http.get(url + link["downloadUrl"])
        assert first.status_code == (302 if led else 200), first.text
        kept = await http.get(url + link["downloadUrl"], headers={"x-api-key": key})
        assert (kept.status_code, len(kept.content)) == (200, link["size"])
        if not led:
            return
        there = first.headers["location"]
        assert not there.startswith(url)
        assert SECRET not in there
        second = await http.get(there)
    assert (second.status_code, second.content) == (200, kept.content)
    assert second.headers["content-disposition"] == kept.headers["content-disposition"]
    assert second.headers["content-disposition"] == disposition(LARGE)
    assert second.headers["content-type"] == "application/octet-stream"


async def left(http: httpx.AsyncClient, urls: dict[str, str], flow: str) -> list[Any]:
    """The artifacts of one execution that was accepted by the first server."""
    path = f"{urls['a']}/api/v1/workflows/{flow}/executions?wait=50"
    told = await http.post(path, json={})
    assert told.json()["status"] == "COMPLETED", told.text
    listed = await http.get(f"{urls['a']}/api/v1/executions/{told.json()['executionId']}/artifacts")
    return list(listed.json()["artifacts"])


async def downloaded(url: str, links: list[Any]) -> int:
    """How many of them the server at *url* hands out as they were stored, by their links alone."""
    found = 0
    async with httpx.AsyncClient(timeout=60) as http:
        for one in links:
            answer = await http.get(url + one["downloadUrl"])
            assert answer.status_code == 200, answer.text
            found += len(answer.content) == one["size"]
            assert SECRET.encode() not in answer.content
    return found
