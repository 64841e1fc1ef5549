"""
The server's side of running a process tree: orders go out, ends come back.

One spawner program serves all steps; it is started with the first order, and again when it was
lost. Works on any event loop, with no thread and no polling per step.
"""

import asyncio
import json
import logging
import marshal
import socket
import subprocess
import sys
from collections.abc import Awaitable
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any, TypeVar

from attrs import asdict, field, frozen

from adapters_runtime import frames, spawner
from wfcore.ports.runtime import Say

_BOOT = (
    "import sys; sys.path.append(sys.argv[1]); from adapters_runtime.spawner import main; main()"
)
_PACKAGES = str(Path(__file__).parents[1])
_GRACE_S = 5.0
_BUSY_S = 0.002

T = TypeVar("T")
log = logging.getLogger(__name__)


class NotStarted(Exception):
    """The machine has no room to start anything now; the text says of what."""


@frozen
class Order:
    """
    What to start: the program `argv[0]`, a path, with exactly this environment.

    `timeout_s` counts from the moment the program runs.
    """

    argv: list[str] = field(repr=False)
    env: dict[str, str] = field(repr=False)
    cwd: str
    limits: dict[str, int]
    timeout_s: float
    stdout_bytes: int
    stderr_bytes: int
    log: bool = False

    def as_bytes(self) -> bytes:
        return marshal.dumps(asdict(self, recurse=False))


@frozen
class Ended:
    """
    How a process tree ended; nothing of it is alive.

    `exit`: the exit status, or minus a signal's number. `reason`: why it was ended from
    outside (`frames.TIMED_OUT` and the like). `failure`: why it could not be started.
    `lost`: its supervisor was killed, so nothing else is known.
    """

    exit: int | None = None
    reason: str | None = None
    failure: str | None = None
    lost: bool = False
    stdout: bytes = field(default=b"", repr=False)
    stderr: bytes = field(default=b"", repr=False)


async def uninterrupted(work: Awaitable[T]) -> T:
    """Await *work* to its end, whoever cancels; a cancellation is raised only then."""
    task = asyncio.ensure_future(work)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError as asked:
            cancelled = asked
    if cancelled is None:
        return task.result()
    task.exception()  # heard, and less important than the cancellation
    raise cancelled


class Spawner:
    """Starts process trees and knows when each has ended, wholly."""

    def __init__(self) -> None:
        self._program: subprocess.Popen[bytes] | None = None
        self._control: socket.socket | None = None
        self._numbers = count(1)
        self._watches: set[_Watch] = set()
        self._closed = False

    @property
    def pid(self) -> int | None:
        """The spawner program's process id, while one was started."""
        return self._program.pid if self._program else None

    async def run(self, order: Order, ready: asyncio.Future[None], say: Say) -> Ended:
        """
        Start *order* once *ready*, and return how it ended; lines go to *say* where it wants them.

        Cancelled, or let down by *say* or *ready*, it ends the tree and waits for that before it
        raises. Raises `NotStarted`; *ready* is never cancelled.
        """
        if self._closed:
            raise RuntimeError("this spawner is closed")
        number = next(self._numbers)
        try:
            watch = await self._begin(number)
        except OSError as trouble:
            raise NotStarted(trouble.strerror or str(trouble)) from trouble
        try:
            await asyncio.shield(ready)
            self._expect(number, watch, within_s=order.timeout_s + _GRACE_S)
            watch.send(order)
            while said := await watch.said.get():
                await say(*said)
            return watch.end
        finally:
            await self._finish(number, watch)

    async def close(self) -> None:
        """End every tree, then the program."""
        self._closed = True
        for watch in self._watches:
            watch.stop()
        while self._watches:
            await asyncio.wait([watch.gone for watch in self._watches])
        if self._control:
            self._control.close()
        if self._program:
            await uninterrupted(asyncio.to_thread(_await_exit, self._program))
            self._program = self._control = None

    async def _begin(self, number: int) -> "_Watch":
        ours, theirs = socket.socketpair()
        try:
            await self._hand_over(spawner.START + str(number).encode(), theirs)
            loop = asyncio.get_running_loop()
            _, watch = await loop.create_unix_connection(_Watch, sock=ours)
        except BaseException:
            ours.close()
            raise
        finally:
            theirs.close()
        self._watches.add(watch)
        watch.gone.add_done_callback(lambda _: self._watches.discard(watch))
        return watch

    async def _finish(self, number: int, watch: "_Watch") -> None:
        """Have the tree ended, if it has not by itself, and wait until it is."""
        if not watch.gone.done():
            watch.stop()
            self._expect(number, watch, within_s=_GRACE_S)
            await uninterrupted(watch.gone)
        watch.close()

    async def _hand_over(self, message: bytes, channel: socket.socket) -> None:
        restarts = 1
        while True:
            control = self._control or self._start()
            try:
                socket.send_fds(control, [message], [channel.fileno()])
                return
            except BlockingIOError:
                await asyncio.sleep(_BUSY_S)  # it has some hundred orders before it
            except ConnectionError:
                self._discard()
                if not restarts:
                    raise
                restarts -= 1

    def _start(self) -> socket.socket:
        ours, theirs = socket.socketpair(type=socket.SOCK_SEQPACKET)
        ours.setblocking(False)
        with theirs:
            self._program = subprocess.Popen(  # noqa: S603
                [sys.executable, "-I", "-S", "-X", "utf8", "-c", _BOOT, _PACKAGES],
                stdin=theirs.fileno(),
                stdout=subprocess.DEVNULL,
                env={},
                cwd="/",
                start_new_session=True,
            )
        self._control = ours
        return ours

    def _discard(self) -> None:
        """Forget a spawner that does not listen any more. Its supervisors end by themselves."""
        log.warning("the spawner of steps was lost; a new one is started")
        if self._control:
            self._control.close()
        if self._program:
            self._program.kill()
            self._program.wait()
        self._program = self._control = None

    def _expect(self, number: int, watch: "_Watch", within_s: float) -> None:
        """Use force where a supervisor has not done its duty in time."""
        late = asyncio.get_running_loop().call_later(within_s, self._force, number, watch)
        watch.gone.add_done_callback(lambda _: late.cancel())

    def _force(self, number: int, watch: "_Watch") -> None:
        """Have the supervisor killed; the spawner ends what it leaves."""
        if self._control:
            with suppress(OSError):
                self._control.send(spawner.END + str(number).encode())
        late = asyncio.get_running_loop().call_later(_GRACE_S, self._give_up, watch)
        watch.gone.add_done_callback(lambda _: late.cancel())

    def _give_up(self, watch: "_Watch") -> None:
        """Not even the spawner answers (stopped from outside): go on with a new one."""
        self._discard()
        watch.abandon()


class _Watch(asyncio.Protocol):
    """Hears what one supervisor says. `said` ends with None, `gone` is done when it is over."""

    def __init__(self) -> None:
        self.said: asyncio.Queue[tuple[str, str] | None] = asyncio.Queue()
        self.gone: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.end = Ended(lost=True)
        self._buffer = bytearray()
        self._kept: dict[bytes, bytes] = {}
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: Any) -> None:
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        for kind, payload in frames.take_frames(self._buffer):
            self._hear(kind, payload)

    def connection_lost(self, exc: Exception | None) -> None:
        self._over()

    def send(self, order: Order) -> None:
        """Tell the supervisor what to start."""
        if self._transport:
            self._transport.write(frames.frame(frames.JOB, order.as_bytes()))

    def stop(self) -> None:
        """Ask the supervisor to end the tree."""
        if self._transport and not self._transport.is_closing():
            self._transport.write_eof()

    def close(self) -> None:
        if self._transport:
            self._transport.close()

    def abandon(self) -> None:
        if self._transport:
            self._transport.abort()

    def _hear(self, kind: bytes, payload: bytes) -> None:
        if kind == frames.END:
            how = json.loads(payload)
            stdout, stderr = self._kept[frames.STDOUT], self._kept[frames.STDERR]
            self.end = Ended(**how, stdout=stdout, stderr=stderr)
            self._over()
        elif kind in (frames.STDOUT, frames.STDERR):
            self._kept[kind] = payload
        else:
            stream = next(name for name, its_kind in frames.LINES.items() if its_kind == kind)
            self.said.put_nowait((stream, payload.decode("utf-8", "replace")))

    def _over(self) -> None:
        if not self.gone.done():
            self.gone.set_result(None)
            self.said.put_nowait(None)


def _await_exit(program: subprocess.Popen[bytes]) -> None:
    try:
        program.wait(_GRACE_S)
    except subprocess.TimeoutExpired:
        program.kill()
        program.wait()
