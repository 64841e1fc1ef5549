"""The way between a store and its server, which can be cut: at once, or before an answer."""

import asyncio
from pathlib import Path

from attrs import define, field

SOCKET = ".s.PGSQL.5432"


@define(eq=False)
class Wire:
    """
    Forwards a Unix socket in *folder* to the server's. `loses`: an answer that contains it is cut
    off, with its connection, when `spares` such answers have come through. `swallows`: what is sent
    over a connection arrives no more, on either side, and that connection stays so.
    """

    server: Path
    folder: Path
    loses: bytes | None = None
    lost: int = 0
    spares: int = 0
    swallows: bool = False
    _listener: asyncio.Server | None = None
    _writers: set[asyncio.StreamWriter] = field(factory=set)
    _tasks: set["asyncio.Task[None]"] = field(factory=set)

    async def lay(self) -> None:
        """Accept connections from now on."""
        self._listener = await asyncio.start_unix_server(self._serve, self.folder / SOCKET)

    async def cut(self) -> None:
        """The server is gone: connections end, and new ones are refused."""
        if self._listener is not None:
            self._listener.close()
            self._listener = None
            (self.folder / SOCKET).unlink(missing_ok=True)
        for writer in self._writers:
            writer.transport.abort()
        if self._tasks:
            await asyncio.wait(self._tasks)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            there, back = await asyncio.open_unix_connection(self.server / SOCKET)
        except OSError:  # there is no server now
            writer.transport.abort()
            return
        ends = {writer, back}
        self._writers |= ends
        for source, target, answers in ((reader, back, False), (there, writer, True)):
            task = asyncio.ensure_future(self._forward(source, target, ends, answers))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _forward(
        self,
        source: asyncio.StreamReader,
        target: asyncio.StreamWriter,
        ends: set[asyncio.StreamWriter],
        answers: bool,
    ) -> None:
        dead = False
        try:
            while data := await source.read(1 << 16):
                dead = dead or self.swallows
                if dead:
                    continue
                if answers and self.loses is not None and self.loses in data:
                    if not self.spares:
                        self.lost += 1
                        break
                    self.spares -= 1
                target.write(data)
                await target.drain()
        except OSError:
            pass
        for end in ends:
            end.transport.abort()
        self._writers -= ends
