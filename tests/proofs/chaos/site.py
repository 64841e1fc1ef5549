"""
Servers on one of three stacks, and what can be done to each part of it.

The stacks: two processes of one server on SQLite; three servers with folders of their own on a real
PostgreSQL server; the same with a NATS and an S3 server. The ways to PostgreSQL (one for
statements, one for hints) and to the bucket lead through this process, which can cut them.
"""

import asyncio
import json
import os
import resource
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, closing, suppress
from enum import Enum, auto
from pathlib import Path
from signal import SIGCONT, SIGKILL, SIGSTOP, SIGTERM, Signals
from typing import Any

import asyncpg
from attrs import Factory, define, field, frozen

from tests.adapters_store.wire import Wire
from tests.proofs.chaos.planted import AHEAD
from tests.support.nats_server import Broker
from tests.support.postgres_server import Cluster
from tests.support.s3_server import Buckets

HERE = Path(__file__).parent
REFUSAL = b"HTTP/1.1 503 Slow Down\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
HASTE = {"sweep_ms": 500}
"""So a killed server's duties are taken over within two seconds."""
WAIT_S = 60
"""For anything that must come, on a machine that is busy with something else."""
SEVER = """SELECT pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid() ORDER BY random() LIMIT 1"""
ADMITTED = "SELECT begins, admitted FROM {} WHERE kind = 'minute' AND subject LIKE '%' || {}"


async def until(holds: Callable[[], object], what: str, within_s: float = WAIT_S) -> None:
    """Return as soon as *holds*; fails where it does not in time."""
    try:
        async with asyncio.timeout(within_s):
            while not holds():  # noqa: ASYNC110 - processes tell nobody
                await asyncio.sleep(0.02)
    except TimeoutError:
        raise AssertionError(f"not within {within_s} s: {what}") from None


class Part(Enum):
    """What servers may stand on. `MACHINES`: every server has a folder and a clock of its own."""

    SQLITE, MACHINES, POSTGRES, NATS, BUCKET = (auto() for _ in range(5))


@frozen
class Stack:
    """`roles`: of each server, by its name. `processes`: of each server."""

    name: str
    about: str
    parts: frozenset[Part]
    roles: Mapping[str, str]
    processes: int = 1


_THREE = {"one": "all", "two": "api", "three": "worker"}
_SHARED = {Part.MACHINES, Part.POSTGRES}
STACKS = {
    one.name: one
    for one in (
        Stack(
            "sqlite",
            "one server of two processes on SQLite",
            frozenset({Part.SQLITE}),
            {"one": "all"},
            processes=2,
        ),
        Stack(
            "postgres",
            "three servers (everything, API, worker) on PostgreSQL and a shared folder",
            frozenset(_SHARED),
            _THREE,
        ),
        Stack(
            "whole",
            "three servers (everything, API, worker) on PostgreSQL, NATS and a bucket",
            frozenset({*_SHARED, Part.NATS, Part.BUCKET}),
            _THREE,
        ),
    )
}
WHOLE = STACKS["whole"]


class Bucket(Enum):
    """How a bucket behaves: answers 503, never answers, or ends connections in the middle."""

    WELL, REFUSES, HANGS, BREAKS_OFF = range(4)


@define(eq=False)
class Door:
    """Forwards a TCP port on loopback, as well or as badly as `now` says."""

    host: str
    port: int
    url: str = ""
    now: Bucket = Bucket.WELL
    spoilt: int = 0
    _listener: "asyncio.Server | None" = None
    _tasks: "set[asyncio.Task[None]]" = Factory(set)

    async def open(self) -> None:
        self._listener = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{self._listener.sockets[0].getsockname()[1]}"

    async def close(self) -> None:
        if self._listener is not None:
            self._listener.close()
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_connection(self.host, self.port)
        for source, target in ((reader, back), (there, writer)):
            task = asyncio.ensure_future(self._forward(source, target, writer, back))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _forward(
        self,
        source: asyncio.StreamReader,
        target: asyncio.StreamWriter,
        writer: asyncio.StreamWriter,
        back: asyncio.StreamWriter,
    ) -> None:
        with suppress(OSError):
            while data := await source.read(1 << 16):
                if self.now is Bucket.REFUSES:
                    self.spoilt += 1
                    writer.write(REFUSAL)
                    await writer.drain()
                    break
                if self.now is Bucket.BREAKS_OFF:
                    self.spoilt += 1
                    target.write(data[: len(data) // 2])
                    await target.drain()
                    break
                if self.now is Bucket.HANGS:
                    self.spoilt += 1
                    continue
                target.write(data)
                await target.drain()
        writer.close()
        back.close()


@define(eq=False)
class Node:
    """
    One server after the other under one name. `url`: where the present one answers. `forks`:
    whether it serves by processes that it forks.
    """

    name: str
    role: str
    folder: Path
    forks: bool = False
    pid: int = 0
    url: str = ""
    ahead_ms: int = 0

    @property
    def data(self) -> Path:
        return self.folder / self.name

    @property
    def clock(self) -> Path:
        """Where its processes read how wrong their clock is."""
        return self.folder / f"{self.name}.clock"

    @property
    def answers(self) -> bool:
        """Whether it serves the API."""
        return self.role != "worker"

    @property
    def processes(self) -> list[int]:
        """The processes that serve."""
        if not self.forks:
            return [self.pid]
        with suppress(OSError):
            told = Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text()
            return list(map(int, told.split()))
        return []

    def set_clock(self, ahead_ms: int) -> None:
        """Let its clock be wrong by so much from now on."""
        with self.clock.open("r+b") as file:
            file.write(ahead_ms.to_bytes(8, "little", signed=True))

    @property
    def alive(self) -> bool:
        return alive(self.pid)

    @property
    def is_up(self) -> bool:
        """Whether the process that was started last says where it answers."""
        with suppress(OSError, ValueError):
            note = json.loads((self.data / "server.json").read_text())
            if note["pid"] in (self.pid, *self.processes):
                self.url = note["url"]
                return True
        return False

    @property
    def log(self) -> str:
        return (self.folder / f"{self.name}.log").read_text()[-4_000:]


def alive(pid: int) -> bool:
    """Whether a process is there and has not ended."""
    with suppress(OSError):
        return b") Z " not in Path(f"/proc/{pid}/stat").read_bytes()
    return False


@define(eq=False)
class Postgres:
    """A database server; its database at `url`; the ways to it for statements and for hints."""

    cluster: Cluster
    url: str
    wire: Wire
    listening: Wire

    async def restart(self) -> None:
        """As `pg_ctl -m immediate restart` does."""
        await asyncio.to_thread(self.cluster.stop)
        await asyncio.to_thread(self.cluster.start)

    async def rows(self, sql: str, *values: object) -> Sequence[Sequence[Any]]:
        """What the database says, past everything."""
        connection = await asyncpg.connect(self.url)
        try:
            return [tuple(row) for row in await connection.fetch(sql, *values)]
        finally:
            await connection.close()

    async def sever(self) -> None:
        """End some connection to the database."""
        await self.rows(SEVER)


@define(eq=False)
class Site:
    """All of it. `env`: what all servers share. `plants`: bugs that they have."""

    stack: Stack
    folder: Path
    env: Mapping[str, str]
    source: "subprocess.Popen[bytes]"
    plants: Sequence[str] = ()
    nodes: dict[str, Node] = field(factory=dict)
    _postgres: Postgres | None = None
    _nats: Broker | None = None
    _bucket: Door | None = None

    @property
    def postgres(self) -> Postgres:
        assert self._postgres
        return self._postgres

    @property
    def nats(self) -> Broker:
        assert self._nats
        return self._nats

    @property
    def bucket(self) -> Door:
        assert self._bucket
        return self._bucket

    @property
    def fronts(self) -> list[Node]:
        """The nodes that serve the API."""
        return [node for node in self.nodes.values() if node.answers]

    @property
    def workers(self) -> list[Node]:
        """The nodes that run steps."""
        return [node for node in self.nodes.values() if node.role != "api"]

    async def start(self, *names: str) -> None:
        """Start these nodes and wait until they answer."""
        for name in names:
            self._fork(self.nodes[name])
        for name in names:
            node = self.nodes[name]
            await until(lambda node=node: node.is_up or not node.alive, f"{name} starts")  # type: ignore[misc]
            assert node.is_up, node.log

    def _fork(self, node: Node) -> None:
        node.data.mkdir(exist_ok=True)
        told = {
            "env": {**self.env, **self._own(node)},
            "log": str(self.folder / f"{node.name}.log"),
            "clock": str(node.clock),
            "policy": HASTE,
            "plants": list(self.plants),
        }
        assert self.source.stdin
        assert self.source.stdout
        self.source.stdin.write(json.dumps(told).encode() + b"\n")
        self.source.stdin.flush()
        node.pid = int(self.source.stdout.readline())

    def _own(self, node: Node) -> Mapping[str, str]:
        """Settings of one server."""
        own = {"WFCORE_DATA": str(node.data), "WFCORE_ROLE": node.role}
        if self._postgres is None:
            return {**own, "WFCORE_PROCESSES": str(self.stack.processes)}
        made = self._postgres
        folder = str(made.cluster.folder)
        return {
            **own,
            "WFCORE_STORE": made.url.replace(folder, str(made.wire.folder))
            + f"&{AHEAD}={node.ahead_ms}",
            "WFCORE_STORE_DIRECT": made.url.replace(folder, str(made.listening.folder)),
        }

    async def kill(self, name: str, number: Signals = SIGKILL) -> None:
        """Send a signal that ends it, and wait until it is gone."""
        node = self.nodes[name]
        with suppress(ProcessLookupError):
            os.kill(node.pid, number)
        await until(lambda: not node.alive, f"{name} ends")

    async def replace(self, name: str) -> None:
        """Stop it in order, and start another in its place."""
        await self.kill(name, SIGTERM)
        await self.start(name)

    @asynccontextmanager
    async def stopped(self, pid: int) -> AsyncIterator[None]:
        """The process stands still inside of this."""
        os.kill(pid, SIGSTOP)
        try:
            yield
        finally:
            os.kill(pid, SIGCONT)

    @asynccontextmanager
    async def full(self, node: Node) -> AsyncIterator[None]:
        """No file of the server can grow inside of this: what a full disk is to it."""
        pids = node.processes
        before = [resource.prlimit(pid, resource.RLIMIT_FSIZE) for pid in pids]
        for pid, (_, most) in zip(pids, before, strict=True):
            resource.prlimit(pid, resource.RLIMIT_FSIZE, (0, most))
        try:
            yield
        finally:
            for pid, limits in zip(pids, before, strict=True):
                resource.prlimit(pid, resource.RLIMIT_FSIZE, limits)

    @asynccontextmanager
    async def locked(self) -> AsyncIterator[None]:
        """Somebody else holds the write lock of the SQLite file inside of this."""
        with closing(self._file()) as file:
            await asyncio.to_thread(file.execute, "BEGIN IMMEDIATE")
            try:
                yield
            finally:
                file.execute("ROLLBACK")

    def _file(self, name: str = "wfcore.db") -> sqlite3.Connection:
        path = self.folder / "one" / name
        return sqlite3.connect(path, WAIT_S, isolation_level=None, check_same_thread=False)

    async def quotas(self, subject: str) -> Sequence[Sequence[Any]]:
        """By minute, how many requests of somebody were admitted."""
        if self._postgres is not None:
            return await self._postgres.rows(ADMITTED.format("quotas", "$1"), subject)
        with closing(self._file("counters.db")) as file:
            return file.execute(ADMITTED.format("counts", "?"), (subject,)).fetchall()

    def forget(self, node: Node) -> None:
        """The folder of a server that is down is lost."""
        shutil.rmtree(node.data)

    async def close(self) -> None:
        """End every process."""
        for node in self.nodes.values():
            if node.pid:
                with suppress(ProcessLookupError):
                    os.kill(node.pid, SIGKILL)
        for node in self.nodes.values():
            await until(lambda node=node: not node.pid or not node.alive, "a node ends")  # type: ignore[misc]
        with self.source:
            self.source.kill()


@frozen
class Servers:
    """What a stack may stand on: a database server with our database, a broker, an S3 server."""

    cluster: Cluster
    url: str
    nats: Broker
    buckets: Buckets


@asynccontextmanager
async def opened(
    folder: Path,
    stack: Stack,
    servers: Servers,
    settings: Mapping[str, str],
    *,
    plants: Sequence[str] = (),
    ahead: Mapping[str, int] | None = None,
) -> AsyncIterator[Site]:
    """Nodes, not yet started, on a stack. *ahead*: what the connections of nodes say of clocks."""
    async with AsyncExitStack() as parts:
        postgres = bucket = nats = None
        env = {
            "WFCORE_SEAL_KEY_FILE": str(folder / "seal.key"),
            "WFCORE_SIGNING_KEY": f"one:{'a' * 64}",
            "WFCORE_STEP_WRITES": str(folder / "outside"),
            "WFCORE_LOG": "warning",
            "WFCORE_WARM": "0",
            **settings,
        }
        if Part.POSTGRES in stack.parts:
            postgres = await _laid(servers, folder, parts)
        if Part.NATS in stack.parts:
            nats = servers.nats
            env["WFCORE_ENGINE"] = f"{nats.url}?name={folder.name}"
        if Part.BUCKET in stack.parts:
            host, _, port = servers.buckets.endpoint.removeprefix("http://").rpartition(":")
            bucket = Door(host, int(port))
            await bucket.open()
            parts.push_async_callback(bucket.close)
            env |= servers.buckets.environment
            env |= {"AWS_ENDPOINT_URL": bucket.url, "WFCORE_ARTIFACTS": servers.buckets.new()}
        elif Part.MACHINES in stack.parts:
            (folder / "artifacts").mkdir()
            env["WFCORE_ARTIFACTS"] = f"file://{folder / 'artifacts'}"
        source = subprocess.Popen(  # noqa: ASYNC220
            [sys.executable, "-u", str(HERE / "node.py")],
            env={**os.environ, "PYTHONPATH": str(HERE.parents[2])},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        site = Site(stack, folder, env, source, plants, {}, postgres, nats, bucket)
        parts.push_async_callback(site.close)
        for name, role in stack.roles.items():
            wrong = (ahead or {}).get(name, 0)
            node = Node(name, role, folder, forks=stack.processes > 1, ahead_ms=wrong)
            node.clock.write_bytes(node.ahead_ms.to_bytes(8, "little", signed=True))
            site.nodes[name] = node
        yield site


async def _laid(servers: Servers, folder: Path, parts: AsyncExitStack) -> Postgres:
    """The database, with a way for statements and one for hints."""
    wires = []
    for name in "wh":
        short = Path(f"{servers.cluster.folder}{name}{folder.name[-4:]}")
        short.mkdir()  # noqa: ASYNC240
        parts.callback(shutil.rmtree, short, ignore_errors=True)
        wires.append(Wire(servers.cluster.folder, short))
        await wires[-1].lay()
        parts.push_async_callback(wires[-1].cut)
    return Postgres(servers.cluster, servers.url, *wires)


def leftovers(mark: Collection[bytes]) -> list[int]:
    """Processes that have one of *mark* in their environment: steps, and what they started."""
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        with suppress(OSError):
            about = Path(f"/proc/{name}/environ").read_bytes()
            if any(one in about for one in mark):
                found.append(int(name))
    return found
