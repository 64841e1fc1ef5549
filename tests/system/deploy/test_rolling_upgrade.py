"""
Two versions on one PostgreSQL database under load: what a rolling upgrade is.

The version before is the sources in the folder `PREVIOUS` (a checkout, or its `src`), those of the
last release's tag, or, where there is neither, the present ones: the next version then has one more
migration.
`UPGRADE_S=60` is the long form.
"""

import asyncio
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import asyncpg
import httpx
import pytest
from attrs import define, field, frozen

from adapters_store.postgres.migrate import migrations
from tests.support.postgres_server import Cluster, cluster
from tests.wfserver.conftest import environment
from wfcore.model.access import Scope

from .containerfile import HERE

SECONDS = float(os.environ.get("UPGRADE_S", "4"))
READY_S = 60
PATIENCE_S = 60
"""So long a client may be refused: a balancer, and servers that take turns, need less."""
AGAIN = (429, 503)
"""Answers after which a client tries again: the plan's limit, and a server that stops."""
NEXT = """
ALTER TABLE executions ADD COLUMN upgrade_test text NOT NULL DEFAULT '';
CREATE TABLE upgrade_test (id word PRIMARY KEY, body text NOT NULL);
"""
FLOW = """
name: Ledger
variables: {n: {type: string, default: ''}}
steps:
  - {name: one, kind: code, language: bash, source: 'echo "one $WF_VAR_n" >>$LEDGER'}
  - {name: two, kind: code, language: bash, source: 'echo "two $WF_VAR_n" >>$LEDGER'}
"""


NARROWING = {
    "removes": r"\bDROP\s+(TABLE|COLUMN|VIEW|FUNCTION|TYPE|DOMAIN)\b",
    "renames": r"\bRENAME\b",
    "changes a type": r"\bALTER\s+(COLUMN\s+)?\w+\s+(SET\s+DATA\s+)?TYPE\b",
    "refuses what was allowed": r"\bSET\s+NOT\s+NULL\b"
    r"|\bADD\s+(CONSTRAINT|CHECK|UNIQUE|FOREIGN|PRIMARY)\b",
    "asks for a value that is not given": r"\bADD\s+COLUMN\b"
    r"(?=[^;,]*\bNOT\s+NULL\b)(?![^;,]*\bDEFAULT\b)",
    "refuses doubles": r"\bCREATE\s+UNIQUE\s+INDEX\b",
}
CONTRACTS = re.compile(r"^-- Contracts (\d{4}):", re.M)


def narrows(text: str) -> list[str]:
    """What of a migration a program of the version before would not survive."""
    code = re.sub(r"--[^\n]*|'(?:[^']|'')*'", "''", text)
    # A table that the same migration makes is nobody's yet.
    for name in re.findall(r"\bCREATE\s+TABLE\s+(\w+)", code, re.I):
        code = re.sub(rf"\bCREATE\s+UNIQUE\s+INDEX\s+\w+\s+ON\s+{name}\b", "", code, flags=re.I)
    return [what for what, how in NARROWING.items() if re.search(how, code, re.I)]


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("ALTER TABLE a DROP COLUMN b", ["removes"]),
        ("DROP TABLE a", ["removes"]),
        ("ALTER TABLE a RENAME COLUMN b TO c", ["renames"]),
        ("ALTER TABLE a ALTER COLUMN b TYPE text", ["changes a type"]),
        ("ALTER TABLE a ALTER COLUMN b SET NOT NULL", ["refuses what was allowed"]),
        ("ALTER TABLE a ADD CHECK (b > 0)", ["refuses what was allowed"]),
        ("ALTER TABLE a ADD COLUMN b text NOT NULL", ["asks for a value that is not given"]),
        ("CREATE UNIQUE INDEX i ON a (b)", ["refuses doubles"]),
        ("ALTER TABLE a ADD COLUMN b text NOT NULL DEFAULT 'x'", []),
        ("ALTER TABLE a ADD COLUMN b text; CREATE INDEX i ON a (b) -- DROP TABLE a", []),
        (
            "CREATE TABLE t (id word PRIMARY KEY, b text NOT NULL); CREATE UNIQUE INDEX i ON t (b)",
            [],
        ),
        ("DROP INDEX i", []),
    ],
)
def test_what_narrows_is_found(text: str, what: list[str]) -> None:
    """What the rule below looks for, in one statement each."""
    assert narrows(text) == what


def test_migrations_only_expand() -> None:
    """
    A migration adds, so that servers of the version before go on beside it. One that takes away
    names the earlier one that made it superfluous, `-- Contracts NNNN: …`, a release later.
    """
    for number, text in migrations()[1:]:
        contracts = [int(one) for one in CONTRACTS.findall(text)]
        assert contracts or narrows(text) == [], number
        assert all(one < number for one in contracts), number


@frozen
class Versions:
    """Folders of sources: the version before, and the next one."""

    before: Path
    after: Path


@pytest.fixture(scope="module")
def versions(tmp_path_factory: pytest.TempPathFactory) -> Versions:
    here, folder = HERE / "src", tmp_path_factory.mktemp("versions")
    if previous := os.environ.get("PREVIOUS"):
        return Versions(_sources(Path(previous).absolute()), here)
    if tag := _last_release():
        with ZipFile(BytesIO(_git("archive", "--format=zip", tag, "src"))) as archive:
            archive.extractall(folder)
        return Versions(folder / "src", here)
    after = folder / "after"
    shutil.copytree(here, after, ignore=shutil.ignore_patterns("__pycache__"))
    later = after / "adapters_store/postgres/migrations"
    later.mkdir(exist_ok=True)
    (later / "9000_next.sql").write_text(NEXT)
    return Versions(here, after)


def _sources(folder: Path) -> Path:
    """Where the programs of that version are: without this check Python would find the present."""
    found = [one for one in (folder, folder / "src") if (one / "wfserver").is_dir()]
    assert found, f"PREVIOUS={folder} has no sources of wfcore: neither wfserver nor src/wfserver"
    return found[0]


def _git(*arguments: str) -> bytes:
    ran = subprocess.run(["git", "-C", HERE, *arguments], capture_output=True, timeout=60)
    return ran.stdout if ran.returncode == 0 else b""


def _last_release() -> str:
    """The newest tag of a release; none in a copy without history, or before the first one."""
    return _git("describe", "--tags", "--abbrev=0", "--match", "v*").decode().strip()


@define
class Server:
    """A server of one version."""

    sources: Path
    data: Path
    env: dict[str, str]
    process: "subprocess.Popen[bytes] | None" = field(default=None, repr=False)

    def run(self, *arguments: str) -> str:
        line = [sys.executable, "-m", "wfserver", *arguments]
        done = subprocess.run(line, env=self.environ, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        return done.stdout

    @property
    def environ(self) -> dict[str, str]:
        own = {"WFCORE_DATA": str(self.data), "PYTHONPATH": str(self.sources)}
        known = {name: value for name, value in self.env.items() if self._knows(name)}
        return environment() | known | own

    def _knows(self, setting: str) -> bool:
        """Versions refuse settings that came later, so an upgrade gives these to the next alone."""
        files = (self.sources / "wfserver").rglob("*.py")
        return any(setting in file.read_text("utf-8") for file in files)

    def start(self) -> str:
        """Start it, and wait until it answers; its address."""
        note = self.data / "server.json"
        with self.data.with_suffix(".log").open("w") as log:
            line = [sys.executable, "-m", "wfserver", "serve", "--port", "0"]
            self.process = subprocess.Popen(line, env=self.environ, stdout=log, stderr=log)
        deadline = time.monotonic() + READY_S
        while not note.exists():
            assert self.process.poll() is None, self.data.with_suffix(".log").read_text()
            assert time.monotonic() < deadline
            time.sleep(0.05)
        return str(json.loads(note.read_text())["url"])

    def stop(self) -> int:
        """As a service manager ends it; its exit status."""
        if self.process is None:
            return 0
        self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(60)
        finally:
            self.process.kill()
            self.process.wait()


@pytest.fixture(scope="module")
def database() -> Iterator[Cluster]:
    yield from cluster(autovacuum="on")


@define
class Load:
    """Clients behind a balancer: what they were answered, and what was accepted."""

    key: str
    workflow: str
    upstreams: list[str] = field(factory=list)
    answers: Counter[int] = field(factory=Counter)
    accepted: dict[str, str] = field(factory=dict)
    stopped: bool = False

    async def client(self, name: int, http: httpx.AsyncClient) -> None:
        """Start executions one after another, each once, and wait for it, at the next server."""
        count = 0
        while not self.stopped:
            count += 1
            number = f"{name}-{count}"
            async with asyncio.timeout(PATIENCE_S):
                while not await self._start(http, number):  # noqa: ASYNC110 - as clients do
                    await asyncio.sleep(0.02)

    async def _start(self, http: httpx.AsyncClient, number: str) -> bool:
        url = self.upstreams[sum(self.answers.values()) % len(self.upstreams)]
        path = f"{url}/api/v1/workflows/{self.workflow}/executions?wait=30"
        headers = {"Authorization": f"Bearer {self.key}", "Idempotency-Key": number}
        try:
            answer = await http.post(path, json={"inputs": {"n": number}}, headers=headers)
        except httpx.TransportError:
            return False  # it stopped listening: a balancer asks the next one
        self.answers[answer.status_code] += 1
        if answer.status_code in AGAIN:
            return False
        assert answer.is_success, answer.text
        self.accepted[number] = answer.json()["executionId"]
        return True

    async def ended(self, http: httpx.AsyncClient) -> Counter[str]:
        """How the accepted executions ended."""
        found: Counter[str] = Counter()
        headers = {"Authorization": f"Bearer {self.key}"}
        for id in self.accepted.values():
            url = f"{self.upstreams[0]}/api/v1/executions/{id}?wait=30"
            found[(await http.get(url, headers=headers)).json()["status"]] += 1
        return found


async def test_two_versions_work_beside_each_other(
    versions: Versions, database: Cluster, tmp_path: Path
) -> None:
    """
    While one server after another is replaced, under load, nobody is answered worse than 503, what
    was accepted completes, and each step is begun once. `doctor` of the next version leaves the
    store as it is, so that the version before still works.
    """
    await asyncio.to_thread(database.execute, "CREATE DATABASE upgrade")
    ledger = tmp_path / "shared"
    ledger.mkdir(mode=0o777)
    ledger.chmod(0o777)
    file = ledger / "ledger"
    file.touch()
    file.chmod(0o666)
    env = {
        "WFCORE_STORE": database.url("upgrade"),
        "WFCORE_STEP_WRITES": str(ledger),
        "WFCORE_SEAL_KEY_FILE": str(tmp_path / "seal.key"),
        "WFCORE_SIGNING_KEY": f"first:{'0' * 64}",
        "WFCORE_ARTIFACTS": (tmp_path / "artifacts").as_uri(),
    }
    (tmp_path / "artifacts").mkdir()
    old = [Server(versions.before, tmp_path / f"old{n}", env) for n in range(2)]
    new = [Server(versions.after, tmp_path / f"new{n}", env) for n in range(2)]
    (tmp_path / "flow.yaml").write_text(FLOW.replace("$LEDGER", str(file)))
    load = Load(*_prepared(old[0], tmp_path / "flow.yaml"))
    try:
        load.upstreams = [await asyncio.to_thread(each.start) for each in old]
        async with httpx.AsyncClient(timeout=60) as http, asyncio.TaskGroup() as clients:
            for name in range(4):
                clients.create_task(load.client(name, http))
            await asyncio.sleep(SECONDS / 4)
            await asyncio.to_thread(_look, new[0], old[0], database)
            for before, after in zip(old, new, strict=True):
                load.upstreams = [*load.upstreams, await asyncio.to_thread(after.start)]
                await asyncio.sleep(SECONDS / 4)
                assert await asyncio.to_thread(before.stop) == 0
                load.upstreams = load.upstreams[1:]  # a balancer notices later
            await asyncio.sleep(SECONDS / 4)
            load.stopped = True
        async with httpx.AsyncClient(timeout=60) as http:
            ended = await load.ended(http)
    finally:
        for each in (*old, *new):
            each.stop()
    print(
        f"\n{len(load.accepted)} accepted; answers {dict(load.answers)}; they ended {dict(ended)}"
    )
    assert set(load.answers) <= {200, 202, *AGAIN}, load.answers
    assert ended == {"COMPLETED": len(load.accepted)}
    lines = Counter(file.read_text().split("\n")[:-1])
    assert lines == {f"{step} {n}": 1 for n in load.accepted for step in ("one", "two")}


def _prepared(server: Server, flow: Path) -> tuple[str, str]:
    """An account with a key and the workflow."""
    server.run("account", "create", "ann@example.org", "--plan", "ENTERPRISE")
    owner = ("--owner", "ann@example.org")
    workflow: Any = json.loads(server.run("workflow", "apply", str(flow), *owner, "--json"))
    scopes = [f"--scope={one}" for one in (Scope.WORKFLOW_EXECUTE, Scope.EXECUTION_READ)]
    made = server.run("key", "create", "--account", "ann@example.org", "--name", "load", *scopes)
    return re.findall(r"wfk_[\w-]+", made)[0], workflow["id"]


def _look(after: Server, before: Server, database: Cluster) -> None:
    """Examine the store with the next version: its schema stays, and the version before works."""
    found = _schemas(database)
    line = [sys.executable, "-m", "wfserver", "doctor", "--json"]
    asked = subprocess.run(line, env=after.environ, capture_output=True, text=True, timeout=120)
    (store,) = (one for one in json.loads(asked.stdout)["checks"] if one["name"] == "store")
    assert store["ok"] or store["cure"] == "wfcore migrate", store
    assert _schemas(database) == found
    before.run("workflow", "list")


def _schemas(database: Cluster) -> list[int]:
    """The migrations that the store has had."""

    async def read() -> list[int]:
        connection = await asyncpg.connect(database.url("upgrade"))
        try:
            rows = await connection.fetch("SELECT number FROM wfcore_schemas ORDER BY number")
        finally:
            await connection.close()
        return [row[0] for row in rows]

    return asyncio.run(read())
