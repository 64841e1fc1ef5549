"""
A pooler between a store and its server, as PgBouncer is one: of the protocol what the store uses.

In transaction mode a client has a connection to the server for one transaction, and then another
client has it. Prepared statements are made on each of these connections when a client needs them
there, as PgBouncer does from 1.21 on.
"""

import asyncio
import tempfile
from collections import deque
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from itertools import count
from pathlib import Path

from attrs import define, field, frozen

from tests.adapters_store.wire import SOCKET

SESSION, NEWEST, OLDEST, SINGLE = "session", "the newest first", "the oldest first", "a single one"
"""Which connection to the server a client gets next."""

PARSE, BIND, END = b"P", b"B", b"X"
ASKS_TO_BE_READY = b"S", b"Q"
PARSE_COMPLETE, BACKEND_KEY, READY, ERROR = b"1", b"K", b"Z", b"E"


@define(eq=False)
class Pooler:
    """
    Listens at a Unix socket in *folder*, for the server whose socket is in *server*. `size`: how
    many connections to the server wait for clients in transaction mode. `newest`: who asks gets the
    one that was given back last, not first.
    """

    server: Path
    folder: Path
    by_transaction: bool
    newest: bool = False
    size: int = 3
    idle: "deque[Backend]" = field(factory=deque)
    moved: int = 0
    """Transactions that got another connection than their client's last one."""
    _numbers: Iterator[int] = field(factory=lambda: count(1_000_000))
    _listener: asyncio.Server | None = None
    _tasks: set["asyncio.Task[None]"] = field(factory=set)
    _transports: list[asyncio.WriteTransport] = field(factory=list)

    async def open(self) -> None:
        """Accept clients from now on."""
        self._listener = await asyncio.start_unix_server(self._accept, self.folder / SOCKET)

    async def close(self) -> None:
        """End every connection."""
        if self._listener is not None:
            self._listener.close()
        while self._tasks:
            self._end_all()
            await asyncio.wait(self._tasks, timeout=0.05)  # one may open another one now
        self._end_all()

    def _end_all(self) -> None:
        for transport in self._transports:
            transport.abort()

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._transports.append(writer.transport)
        task = asyncio.ensure_future(self._served(Client(reader, writer, next(self._numbers))))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _served(self, client: "Client") -> None:
        try:
            with suppress(asyncio.IncompleteReadError, OSError):
                await self._serve(client)
        finally:
            client.writer.transport.abort()

    async def _serve(self, client: "Client") -> None:
        """Every client is let in by the server, over a connection that others use later."""
        size = await client.reader.readexactly(4)
        opening = size + await client.reader.readexactly(int.from_bytes(size) - 4)
        last, greeting = await self._opened(opening)
        for message in greeting:
            client.tell(message.with_key(client.number))
        if not self.by_transaction:
            await last.belong_to(client)
            return
        self._give_back(last)
        while len(self.idle) < self.size:
            self._give_back((await self._opened(opening))[0])
        reading, answering = asyncio.ensure_future(_next(client.reader)), None
        try:
            while True:
                if answering is None:
                    await asyncio.wait((reading,))
                    if reading.exception() is not None or reading.result().kind == END:
                        return
                    backend = await self._taken(opening)
                    self.moved += backend is not last
                    last = backend
                    answering = asyncio.ensure_future(last.answer(client))
                await asyncio.wait((reading, answering), return_when=asyncio.FIRST_COMPLETED)
                if answering.done():
                    answering.result()
                    self._give_back(last)
                    answering = None
                    continue
                last.take(client, reading.result())
                reading = asyncio.ensure_future(_next(client.reader))
        finally:
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)
            if answering is not None:
                last.end()
                await asyncio.gather(answering, return_exceptions=True)

    async def _taken(self, opening: bytes) -> "Backend":
        if self.idle:
            return self.idle.pop() if self.newest else self.idle.popleft()
        return (await self._opened(opening))[0]

    async def _opened(self, opening: bytes) -> tuple["Backend", list["Message"]]:
        """
        A new connection to the server, and how it was greeted there. Who asks for a cancellation,
        with a key that is ours, is greeted by nobody.
        """
        reader, writer = await asyncio.open_unix_connection(self.server / SOCKET)
        self._transports.append(writer.transport)
        writer.write(opening)
        try:
            greeting = [await _next(reader)]
            while greeting[-1].kind != READY:
                greeting.append(await _next(reader))
        except BaseException:
            writer.transport.abort()
            raise
        return Backend(reader, writer), greeting

    def _give_back(self, backend: "Backend") -> None:
        if len(self.idle) < self.size:
            self.idle.append(backend)
        else:
            backend.end()


@frozen
class Message:
    kind: bytes
    body: bytes

    @property
    def raw(self) -> bytes:
        return self.kind + (len(self.body) + 4).to_bytes(4) + self.body

    def with_key(self, number: int) -> "Message":
        """A pooler gives each client a key of its own to cancel with, and thus a process id."""
        if self.kind != BACKEND_KEY:
            return self
        return Message(self.kind, number.to_bytes(4) + self.body[4:])


async def _next(reader: asyncio.StreamReader) -> Message:
    kind = await reader.readexactly(1)
    size = int.from_bytes(await reader.readexactly(4))
    return Message(kind, await reader.readexactly(size - 4))


@define(eq=False)
class Client:
    """`statements`: those it prepared, by its own names."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    number: int
    statements: dict[bytes, bytes] = field(factory=dict)

    def named(self, statement: bytes) -> bytes:
        """The name on the server of one of its statements; one without a name has none there."""
        return b"c%d%s" % (self.number, statement) if statement else b""

    def tell(self, message: Message) -> None:
        self.writer.write(message.raw)


@define(eq=False)
class Backend:
    """
    A connection to the server. `prepared`: statements that it has, by their names there. `parsed`:
    those that it did not confirm yet, and whether the client asked for each. `owed`: how often it
    still has to say that it is ready.
    """

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    prepared: set[bytes] = field(factory=set)
    parsed: deque[tuple[bytes, bool]] = field(factory=deque)
    owed: int = 0

    def end(self) -> None:
        self.writer.transport.abort()

    async def belong_to(self, client: Client) -> None:
        """Until one of both ends."""
        ways = [
            asyncio.ensure_future(_pass_on(source, target))
            for source, target in ((client.reader, self.writer), (self.reader, client.writer))
        ]
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for way in ways:
                way.cancel()
            await asyncio.wait(ways)
            self.end()

    def take(self, client: Client, message: Message) -> None:
        """The server gets *message* of *client*."""
        for sent in self._translated(client, message):
            if sent.kind == PARSE:
                self.parsed.append((sent.body.partition(b"\0")[0], message.kind == PARSE))
            self.owed += sent.kind in ASKS_TO_BE_READY
            self.writer.write(sent.raw)

    async def answer(self, client: Client) -> None:
        """What the server says goes to *client*, until a transaction is over."""
        while True:
            message = await _next(self.reader)
            if message.kind == ERROR:
                self.prepared -= {name for name, _ in self.parsed}
                self.parsed.clear()
            if message.kind == PARSE_COMPLETE and not self.parsed.popleft()[1]:
                continue
            client.tell(message)
            if message.kind == READY:
                self.owed -= 1
                if not self.owed and message.body == b"I":
                    return

    def _translated(self, client: Client, message: Message) -> Iterator[Message]:
        """*message* with names as they are here, after what it needs here."""
        if message.kind == PARSE:
            name, _, rest = message.body.partition(b"\0")
            client.statements[name] = rest
            self.prepared.add(client.named(name))
            yield Message(PARSE, client.named(name) + b"\0" + rest)
        elif message.kind == BIND:
            portal, name, rest = message.body.split(b"\0", 2)
            yield from self._prepare(client, name)
            yield Message(BIND, b"\0".join((portal, client.named(name), rest)))
        elif message.kind in (b"D", b"C") and message.body[:1] == b"S":
            name = message.body[1:-1]
            yield from self._prepare(client, name)
            yield Message(message.kind, b"S" + client.named(name) + b"\0")
        else:
            yield message

    def _prepare(self, client: Client, name: bytes) -> Iterator[Message]:
        there = client.named(name)
        if there and there not in self.prepared:
            self.prepared.add(there)
            yield Message(PARSE, there + b"\0" + client.statements[name])


async def _pass_on(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    while data := await source.read(1 << 16):
        target.write(data)
        await target.drain()


@asynccontextmanager
async def pooled(url: str, kind: str) -> AsyncIterator[tuple[str, Pooler]]:
    """The URL of the same database behind a pooler of that kind."""
    server = Path(url.rpartition("host=")[2])
    with tempfile.TemporaryDirectory(prefix="wfpg") as folder:
        pooler = Pooler(
            server,
            Path(folder),
            by_transaction=kind != SESSION,
            newest=kind == NEWEST,
            size=1 if kind == SINGLE else 3,
        )
        await pooler.open()
        try:
            yield url.replace(str(server), folder), pooler
        finally:
            await pooler.close()
