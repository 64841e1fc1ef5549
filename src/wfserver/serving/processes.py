"""
Several servers as one command: `wfcore serve --processes N`. Decision 226.

The parent process opens no store: it listens, forks, and waits. Each child is a whole server, with
its own engine, its own spawner, and its own socket for the common port; the kernel distributes
connections over these sockets (`SO_REUSEPORT`). The children share the store. They exchange hints
over sockets that the parent made before the fork: a child that is started again has the same
sockets, and connections that arrive in between wait there.

The first child is ready before the others start: it alone creates or migrates the store, and a
mistake in the settings is reported once. A child that dies later is started again. If the parent is
killed, the kernel kills the children, too, so that no child keeps the port.
"""

import asyncio
import ctypes
import logging
import os
import select
import signal
import socket
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from time import monotonic

from attrs import define, evolve, field, frozen

from adapters_store.hints import Channel, ChannelHints, channels
from wfcore.rules.backoff import Backoff
from wfserver.serving.sockets import listen
from wfserver.settings.record import Settings

log = logging.getLogger("wfcore.server")

_PR_SET_PDEATHSIG = 1
ANSWER_S = 1.0
"""How long a process may take to send its metrics."""
_MOST_BYTES = 1 << 17
_ANEW = Backoff(first=0.25, longest=10.0)
"""The wait in seconds before a child that died is started again."""
_STOPS = (signal.SIGTERM, signal.SIGINT)
_SIGNALS = (*_STOPS, signal.SIGCHLD)


@frozen
class ServerProcess:
    """
    One child. On `up` it reports that it answers. `begun` is readable once all children answer, and
    `leave` once this child must stop. `announces`: this child announces that all children answer.
    """

    number: int
    listeners: tuple[socket.socket, ...]
    hints: ChannelHints
    metrics: "MetricsOfAll"
    up: socket.socket
    begun: socket.socket
    leave: socket.socket
    announces: bool

    def share(self, settings: Settings) -> Settings:
        """*settings* with this child's part of the limits that hold for all children together."""

        def part(whole: int) -> int:
            return max((whole + settings.processes - 1 - self.number) // settings.processes, 1)

        most, each = settings.connections, settings.connections_each
        return evolve(
            settings,
            policy=evolve(settings.policy, places=part(settings.policy.places)),
            ai_calls=part(settings.ai_calls),
            connections=None if most is None else part(most),
            connections_each=None if each is None else part(each),
        )

    async def all_answer(self) -> bool:
        """
        Report that this child answers. If it `announces`, wait until all children answer. Returns
        `announces`.
        """
        loop = asyncio.get_running_loop()
        await loop.sock_sendall(self.up, bytes([self.number]))
        if self.announces:
            await loop.sock_recv(self.begun, 1)
        return self.announces


def fork_all(settings: Settings) -> ServerProcess:
    """
    Fork the children. Returns in each child; the result is that child. In the parent, raises
    `SystemExit` with the children's status once all children have ended. Raises `OSError` if the
    port is taken.
    """
    return _Parent(settings.processes, settings.host, settings.port).run()


class _Parent:
    def __init__(self, count: int, host: str, port: int) -> None:
        self._count, self._pid = count, os.getpid()
        self._listeners = _listeners(host, port, count)
        self._hints, self._counted = channels(count), channels(count)
        self._reports, self._up = _pair()
        self._begin, self._begun = _pair()
        self._stay, self._leave = _pair()
        self._alarm, self._signals = _pair()
        self._alive: dict[int, int] = {}
        self._due = {0: 0.0}
        self._died = dict.fromkeys(range(count), 0)
        self._answering: set[int] = set()
        self._all_answered = self._stopping = False
        self._status, self._killed_by = 0, 0

    def run(self) -> ServerProcess:
        """See `fork_all`."""
        before = {number: signal.signal(number, lambda *_: None) for number in _SIGNALS}
        signal.set_wakeup_fd(self._signals.fileno(), warn_on_full_buffer=False)
        while self._alive or self._due:
            for number in [one for one, at in self._due.items() if at <= monotonic()]:
                del self._due[number]
                if self._fork(number):
                    return self._child(number, before)
            self._wait()
        raise SystemExit(128 + self._killed_by if self._killed_by else self._status)

    def _fork(self, number: int) -> bool:
        """Fork; True in the child. Signals wait until the process that gets them has handlers."""
        signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
        pid = os.fork()
        if pid:
            self._alive[pid] = number
            signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
        return not pid

    def _child(self, number: int, before: Mapping[signal.Signals, object]) -> ServerProcess:
        """
        Set up the child. The child closes its copy of the end that tells all children to stop.
        """
        self._stay.close()
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        signal.set_wakeup_fd(-1)
        for one, handler in before.items():
            signal.signal(one, handler)  # type: ignore[arg-type]
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
        if os.getppid() != self._pid:
            raise SystemExit(1)
        return ServerProcess(
            number,
            self._listeners[number],
            ChannelHints(self._hints[number]),
            MetricsOfAll(number, self._counted[number]),
            self._up,
            self._begun,
            self._leave,
            announces=not number and not self._all_answered,
        )

    def _wait(self) -> None:
        """Wait until a child answers or ends, a signal comes, or a child must be started again."""
        soon = min(self._due.values(), default=None)
        patience = None if soon is None else max(soon - monotonic(), 0)
        ready, _, _ = select.select([self._alarm, self._reports], [], [], patience)
        if self._reports in ready:
            self._answers(self._reports.recv(self._count))
        if self._alarm in ready:
            for one in self._alarm.recv(64):
                if one in _STOPS:
                    self._stop(one)
        while self._alive:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if not pid:
                break
            if (number := self._alive.pop(pid, None)) is not None:
                self._ended(number, os.waitstatus_to_exitcode(status))

    def _answers(self, numbers: bytes) -> None:
        self._answering.update(numbers)
        for number in numbers:
            self._died[number] = 0
        if len(self._answering) == self._count and not self._all_answered:
            self._all_answered = True
            self._begin.send(b"!")
        elif 0 in numbers and not (self._all_answered or self._stopping):
            self._due.update(dict.fromkeys(range(1, self._count), 0.0))

    def _stop(self, number: int) -> None:
        """
        Stop the children: the first time in order and without a signal, because init systems and
        terminals send each child a signal as well, and a second signal ends a server at once.
        """
        self._due.clear()
        if not self._stopping:
            self._stopping = True
            self._stay.close()
            return
        self._killed_by = number
        for pid in self._alive:
            os.kill(pid, signal.SIGKILL)

    def _ended(self, number: int, status: int) -> None:
        """Start the child again, unless the whole server stops or was never up: then end."""
        if self._stopping or not self._all_answered:
            self._status = max(self._status, status if status >= 0 else 128 - status)
            if not self._stopping:
                self._stop(signal.SIGTERM)
            return
        self._died[number] += 1
        wait = _ANEW.wait(self._died[number])
        self._due[number] = monotonic() + wait
        about = {"number": number, "status": status, "in_s": wait}
        log.error("a process has ended and is begun anew", extra=about)


def _pair() -> tuple[socket.socket, socket.socket]:
    one, other = socket.socketpair()
    for end in (one, other):
        end.setblocking(False)
    return one, other


def _listeners(host: str, port: int, count: int) -> list[tuple[socket.socket, ...]]:
    """The listening sockets of each child, for one port; port 0: a free port, the same for all."""
    made = [listen(host, port, shared=True)]
    chosen = made[0][0].getsockname()[1]
    return [*made, *(listen(host, chosen, shared=True) for _ in range(count - 1))]


@define(eq=False)
class MetricsOfAll:
    """
    The metrics of all processes, which each of them can serve: a text for each process. A process
    that does not answer soon is left out, like a server that is down.
    """

    number: int
    _channel: Channel
    answer_s: float = ANSWER_S
    _answers: dict[int, bytes] = field(factory=dict)
    _came: asyncio.Event = field(factory=asyncio.Event)

    @asynccontextmanager
    async def answering(self, render: Callable[[], Awaitable[bytes]]) -> AsyncIterator[None]:
        """Until this is left, send the result of *render* to other processes on request."""
        answers = asyncio.create_task(self._answer(render), name="metrics of others")
        try:
            yield
        finally:
            answers.cancel()

    async def _answer(self, render: Callable[[], Awaitable[bytes]]) -> None:
        loop = asyncio.get_running_loop()
        while message := await loop.sock_recv(self._channel.own, _MOST_BYTES):
            kind, number, packed = message[:1], message[1], message[2:]
            if kind == b"=":
                self._answers[number] = zlib.decompress(packed)
                self._came.set()
            else:
                mine = b"=" + bytes([self.number]) + zlib.compress(await render(), 1)
                self._channel.send(mine, [number])

    async def read(self, render: Callable[[], Awaitable[bytes]]) -> Mapping[int, bytes]:
        """The metrics of all processes as texts, by number."""
        self._answers = {}
        self._channel.send(b"?" + bytes([self.number]))
        found = {self.number: await render()}
        with suppress(TimeoutError):
            async with asyncio.timeout(self.answer_s):
                while len(self._answers) < len(self._channel.others):
                    self._came.clear()
                    await self._came.wait()
        return dict(sorted({**found, **self._answers}.items()))
