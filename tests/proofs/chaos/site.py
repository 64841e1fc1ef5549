"""
Three servers with folders of their own on a real PostgreSQL, NATS and S3 server, and what can be
done to each of these.

The ways to the database (one for statements, one for hints) and to the bucket lead through this
process, which can cut them.
"""

import asyncio
import json
import os
import resource
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from signal import SIGCONT, SIGKILL, SIGSTOP, Signals
from typing import Any

import asyncpg
from attrs import Factory, define, field

from tests.adapters_store.wire import Wire
from tests.proofs.chaos.planted import AHEAD
from tests.support.nats_server import Broker
from tests.support.postgres_server import Cluster
from tests.support.s3_server import Buckets

HERE = Path(__file__).parent
ROLES = {"one": "all", "two": "api", "three": "worker"}
REFUSAL = b"HTTP/1.1 503 Slow Down\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
HASTE = {"sweep_ms": 500}
"""So a killed server's duties are taken over within two seconds."""
WAIT_S = 60
"""For anything that must come, on a machine that is busy with something else."""
SEVER = """SELECT pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid() ORDER BY random() LIMIT 1"""


async def until(holds: Callable[[], object], what: str, within_s: float = WAIT_S) -> None:
    """Return as soon as *holds*; fails where it does not in time."""
    try:
        async with asyncio.timeout(within_s):
            while not holds():  # noqa: ASYNC110 - processes tell nobody
                await asyncio.sleep(0.02)
    except TimeoutError:
        raise AssertionError(f"not within {within_s} s: {what}") from None


@define(eq=False)
class Door:
    """Forwards a TCP port on loopback; `refuses`: answers 503 instead, as a bucket may."""

    host: str
    port: int
    url: str = ""
    refuses: bool = False
    refused: int = 0
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
                if self.refuses:
                    self.refused += 1
                    writer.write(REFUSAL)
                    await writer.drain()
                    break
                target.write(data)
                await target.drain()
        writer.close()
        back.close()


@define(eq=False)
class Node:
    """One server after the other under one name. `url`: where the present one answers."""

    name: str
    role: str
    folder: Path
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

    def set_clock(self, ahead_ms: int) -> None:
        """Let its clock be wrong by so much from now on."""
        with self.clock.open("r+b") as file:
            file.write(ahead_ms.to_bytes(8, "little", signed=True))

    def send(self, number: Signals) -> None:
        os.kill(self.pid, number)

    @property
    def alive(self) -> bool:
        with suppress(OSError):
            return b") Z " not in Path(f"/proc/{self.pid}/stat").read_bytes()
        return False

    @property
    def is_up(self) -> bool:
        """Whether the process that was started last says where it answers."""
        with suppress(OSError, ValueError):
            note = json.loads((self.data / "server.json").read_text())
            if note["pid"] == self.pid:
                self.url = note["url"]
                return True
        return False

    @property
    def log(self) -> str:
        return (self.folder / f"{self.name}.log").read_text()[-4_000:]


@define(eq=False)
class Site:
    """All of it. `env`: what all servers share. `plants`: bugs that they have."""

    folder: Path
    database: Cluster
    url: str
    nats: Broker
    wire: Wire
    listening: Wire
    bucket: Door
    env: Mapping[str, str]
    source: "subprocess.Popen[bytes]"
    plants: Sequence[str] = ()
    nodes: dict[str, Node] = field(factory=dict)

    @property
    def fronts(self) -> list[Node]:
        """The nodes that serve the API."""
        return [node for node in self.nodes.values() if node.answers]

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
        store = self.url.replace(str(self.database.folder), str(self.wire.folder))
        direct = self.url.replace(str(self.database.folder), str(self.listening.folder))
        own = {
            "WFCORE_DATA": str(node.data),
            "WFCORE_ROLE": node.role,
            "WFCORE_STORE": f"{store}&{AHEAD}={node.ahead_ms}",
            "WFCORE_STORE_DIRECT": direct,
        }
        told = {
            "env": {**self.env, **own},
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

    async def kill(self, name: str) -> None:
        """kill -9, and wait until it is gone."""
        node = self.nodes[name]
        with suppress(ProcessLookupError):
            node.send(SIGKILL)
        await until(lambda: not node.alive, f"{name} ends")

    @asynccontextmanager
    async def stopped(self, name: str) -> AsyncIterator[None]:
        """The process stands still inside of this."""
        node = self.nodes[name]
        node.send(SIGSTOP)
        try:
            yield
        finally:
            node.send(SIGCONT)

    @asynccontextmanager
    async def full(self, name: str) -> AsyncIterator[None]:
        """No file of the process can grow inside of this: what a full disk is to a server."""
        pid = self.nodes[name].pid
        before = resource.prlimit(pid, resource.RLIMIT_FSIZE)
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (0, before[1]))
        try:
            yield
        finally:
            resource.prlimit(pid, resource.RLIMIT_FSIZE, before)

    async def restart_database(self) -> None:
        """As `pg_ctl -m immediate restart` does."""
        await asyncio.to_thread(self.database.stop)
        await asyncio.to_thread(self.database.start)

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

    def forget(self, node: Node) -> None:
        """The folder of a server that is down is lost."""
        shutil.rmtree(node.data)

    async def close(self) -> None:
        """End every process."""
        for node in self.nodes.values():
            if node.pid:
                with suppress(ProcessLookupError):
                    node.send(SIGKILL)
        for node in self.nodes.values():
            await until(lambda node=node: not node.pid or not node.alive, "a node ends")  # type: ignore[misc]
        with self.source:
            self.source.kill()


@asynccontextmanager
async def opened(
    folder: Path,
    servers: tuple[Cluster, str, Broker, Buckets],
    settings: Mapping[str, str],
    *,
    plants: Sequence[str] = (),
    queued: bool = True,
    ahead: Mapping[str, int] | None = None,
) -> AsyncIterator[Site]:
    """
    Nodes, not yet started, on these servers: a database's cluster and URL, NATS, S3. *queued*:
    whether NATS dispatches. *ahead*: what the connections of nodes say of their clocks.
    """
    database, url, nats, buckets = servers
    host, _, port = buckets.endpoint.removeprefix("http://").rpartition(":")
    async with AsyncExitStack() as stack:
        bucket = Door(host, int(port))
        await bucket.open()
        stack.push_async_callback(bucket.close)
        wires = []
        for name in "wh":
            short = Path(f"{database.folder}{name}{folder.name[-4:]}")
            short.mkdir()  # noqa: ASYNC240
            stack.callback(shutil.rmtree, short, ignore_errors=True)
            wires.append(Wire(database.folder, short))
            await wires[-1].lay()
            stack.push_async_callback(wires[-1].cut)
        env = {
            **buckets.environment,
            "AWS_ENDPOINT_URL": bucket.url,
            "WFCORE_ARTIFACTS": buckets.new(),
            "WFCORE_SEAL_KEY_FILE": str(folder / "seal.key"),
            "WFCORE_SIGNING_KEY": f"one:{'a' * 64}",
            "WFCORE_STEP_WRITES": str(folder / "outside"),
            "WFCORE_LOG": "warning",
            "WFCORE_WARM": "0",
            **({"WFCORE_ENGINE": f"{nats.url}?name={folder.name}"} if queued else {}),
            **settings,
        }
        source = subprocess.Popen(  # noqa: ASYNC220
            [sys.executable, "-u", str(HERE / "node.py")],
            env={**os.environ, "PYTHONPATH": str(HERE.parents[2])},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        site = Site(folder, database, url, nats, wires[0], wires[1], bucket, env, source, plants)
        stack.push_async_callback(site.close)
        for name, role in ROLES.items():
            node = Node(name, role, folder, ahead_ms=(ahead or {}).get(name, 0))
            node.clock.write_bytes(node.ahead_ms.to_bytes(8, "little", signed=True))
            site.nodes[name] = node
        yield site


def leftovers(mark: Collection[bytes]) -> list[int]:
    """Processes that have one of *mark* in their environment: steps, and what they started."""
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        with suppress(OSError):
            about = Path(f"/proc/{name}/environ").read_bytes()
            if any(one in about for one in mark):
                found.append(int(name))
    return found
