"""
The server's side of running a process tree: it sends orders, and receives how each tree ended.

One spawner program serves all steps. The first order starts it, and so does the first order after
its loss. This works on any event loop, without a thread or polling per step.
"""

import asyncio
import logging
import marshal
import os
import socket
import subprocess
import sys
from collections.abc import Awaitable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any, TypeVar

from attrs import asdict, field, frozen

from adapters_runtime.sandbox import frames, spawner
from adapters_runtime.sandbox.isolation.config import Profile, SandboxConfig, packed
from adapters_runtime.sandbox.shortage import describe
from wfcore.ports.runtime import Say

PROGRAM = getattr(sys, "_base_executable", None) or sys.executable
"""
The interpreter of the spawner: the interpreter that Python steps run on, outside any environment.
"""

_BOOT = """
import sys, zipimport
modules, places = frozenset(sys.modules) - {"linecache"}, tuple(sys.path)  # "-c" brings it
sys.path.append(sys.argv[1])
from adapters_runtime.sandbox import python_fork, spawner
python_fork.remember_the_start(modules, places)
spawner.main()
"""
_PACKAGES = str(Path(__file__).parents[2])
_GRACE_S = 5.0
_FULL_S = 0.002
_CHUNK = 262_144
_NEVER_READ = "its supervisor was gone before it had the job"
_NOT_RECEIVED = "its artifacts could not be taken: no file descriptors were left"
_KEPT = (frames.STDOUT, frames.STDERR, frames.OUTPUT, frames.STATE, frames.LEFT)

T = TypeVar("T")
log = logging.getLogger("wfcore.steps")


class NotStarted(Exception):
    """
    Raised when a process cannot be started because the machine lacks something; the message says
    what.

    Nothing of the program has run.
    """

    def __init__(self, text: str, errno: int | None = None) -> None:
        super().__init__(text)
        self.errno = errno

    @classmethod
    def of(cls, trouble: OSError) -> "NotStarted":
        """Returns the exception for an error of the operating system."""
        text = describe(trouble.errno, trouble.strerror or str(trouble))
        return cls(text, trouble.errno)


@frozen
class LaunchOrder:
    """
    An order to start the program at the path `argv[0]` with exactly this environment.

    `files` are written into `folder` before the start, by name, `links` (name to target) beside
    them, and the pieces of `context` as `CONTEXT`; the step starts in `cwd`. `given`: a tree of
    files that becomes the folder `FILES` in `folder`, read-only; at levels without namespaces the
    tree is moved there. `profile`: what the
    step may see and reach. `memory` limits the whole tree, `limits` each process. `timeout_s`
    counts from the start of the program. `canary`: the file, port and process of the server whose
    visibility is reported before the program starts (`probe.report`). `inside`: the program is a
    Python file for the interpreter that the spawner already runs, so no other interpreter is
    started.
    """

    argv: list[str] = field(repr=False)
    env: dict[str, str] = field(repr=False)
    folder: str
    cwd: str
    limits: dict[str, int]
    timeout_s: float
    stdout_bytes: int
    stderr_bytes: int
    output_bytes: int
    memory: int
    files: dict[str, bytes] = field(factory=dict, repr=False)
    context: Sequence[bytes] = field(default=(), repr=False)
    links: dict[str, str] = field(factory=dict)
    given: str | None = None
    profile: Profile = Profile()
    inside: bool = False
    log: bool = False
    canary: dict[str, Any] | None = None

    def as_bytes(self) -> bytes:
        """The job for the supervisor, which has the size of the context in place of its pieces."""
        fields = asdict(self, recurse=False)
        return marshal.dumps({**fields, "profile": None, "context": sum(map(len, self.context))})


@frozen
class Ended:
    """
    The end of a process tree, of which no process is alive.

    `exit`: the exit status, or the negative number of a signal. `reason`: why the supervisor ended
    the tree (`frames.TIMED_OUT` and the like). `failure`: why the program could not be started.
    `unready`: the machine lacked something (`errno`), so nothing of the program has run.
    `unconfined`: the machine lacked a means to confine the program. `lost`: the supervisor was
    killed, so nothing else is known.

    `output`, `state`: the contents of WF_OUTPUT and WF_STATE. `artifacts`: a descriptor of the
    folder of artifacts, if there are any; the caller closes it. `output_trouble` and
    `artifacts_trouble` say why the output, the state or the artifacts cannot be used.
    """

    exit: int | None = None
    reason: str | None = None
    failure: str | None = None
    unready: bool = False
    errno: int | None = None
    unconfined: bool = False
    lost: bool = False
    stdout: bytes = field(default=b"", repr=False)
    stderr: bytes = field(default=b"", repr=False)
    output: bytes | None = field(default=None, repr=False)
    state: bytes | None = field(default=None, repr=False)
    output_trouble: str | None = None
    artifacts: int | None = None
    artifacts_trouble: str | None = None


async def uninterrupted(work: Awaitable[T]) -> T:
    """Await *work* to its end even if cancelled; a cancellation is raised only afterwards."""
    task = asyncio.ensure_future(work)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError as cancellation:
            cancelled = cancellation
    if cancelled is None:
        return task.result()
    task.exception()  # retrieved, and less important than the cancellation
    raise cancelled


class Spawner:
    """
    Starts process trees under one *config*, and reports when each tree has ended completely.

    *environment*: the variables of steps that decide on an interpreter's encodings.
    """

    def __init__(self, config: SandboxConfig, environment: Mapping[str, str] | None = None) -> None:
        self._config = config
        self._environment = {"LANG": "C.UTF-8", "HOME": "/", **(environment or {})}
        self._program: subprocess.Popen[bytes] | None = None
        self._control: socket.socket | None = None
        self._numbers = count(1)
        self._watches: set[_Watch] = set()
        self._closed = False

    @property
    def pid(self) -> int | None:
        """The process id of the spawner program, or None before its start."""
        return self._program.pid if self._program else None

    async def run(self, order: LaunchOrder, say: Say) -> Ended:
        """
        Run *order*, pass the lines of its output to *say*, and return how it ended.

        If this call is cancelled or *say* raises, the tree is ended first. Raises `NotStarted`.
        """
        if self._closed:
            raise RuntimeError("this spawner is closed")
        number = next(self._numbers)
        try:
            watch = await self._begin(number, order.profile)
        except OSError as trouble:
            raise NotStarted.of(trouble) from trouble
        try:
            self._expect(number, watch, within_s=order.timeout_s + _GRACE_S)
            await watch.send(order)
            while line := await watch.lines.get():
                await say(*line)
            return watch.take_end()
        finally:
            await self._finish(number, watch)

    async def close(self) -> None:
        """End every tree, then the spawner program."""
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

    async def _begin(self, number: int, profile: Profile) -> "_Watch":
        ours, theirs = socket.socketpair()
        try:
            message = spawner.START + marshal.dumps((number, packed(profile)))
            await self._hand_over(message, theirs)
            watch = _Watch(ours)
        except BaseException:
            ours.close()
            raise
        finally:
            theirs.close()
        self._watches.add(watch)
        watch.gone.add_done_callback(lambda _: self._watches.discard(watch))
        return watch

    async def _finish(self, number: int, watch: "_Watch") -> None:
        """End the tree if it is still alive, and wait until it is dead."""
        try:
            if not watch.gone.done():
                watch.stop()
                self._expect(number, watch, within_s=_GRACE_S)
                await uninterrupted(watch.gone)
        finally:
            watch.close()

    async def _hand_over(self, message: bytes, channel: socket.socket) -> None:
        restarts = 1
        while True:
            control = self._control or self._start()
            try:
                socket.send_fds(control, [message], [channel.fileno()])
                return
            except BlockingIOError:
                await asyncio.sleep(_FULL_S)  # some hundred orders wait there already
            except ConnectionError:
                self._discard()
                if not restarts:
                    raise
                restarts -= 1

    def _start(self) -> socket.socket:
        ours, theirs = socket.socketpair(type=socket.SOCK_SEQPACKET)
        ours.setblocking(False)
        try:
            with theirs:
                self._program = subprocess.Popen(  # noqa: S603
                    [PROGRAM, "-I", "-c", _BOOT, _PACKAGES],
                    stdin=theirs.fileno(),
                    stdout=subprocess.DEVNULL,
                    env=self._environment,
                    cwd="/",
                    start_new_session=True,
                )
            ours.send(marshal.dumps(tuple(self._config)))
        except OSError:
            ours.close()
            raise
        self._control = ours
        return ours

    def _discard(self) -> None:
        """Kill and forget a spawner that no longer responds. Its supervisors end by themselves."""
        log.warning("the spawner of steps was lost; a new one is started")
        if self._control:
            self._control.close()
        if self._program:
            self._program.kill()
            self._program.wait()
        self._program = self._control = None

    def _expect(self, number: int, watch: "_Watch", within_s: float) -> None:
        """Use force if the supervisor has not ended within this time."""
        late = asyncio.get_running_loop().call_later(within_s, self._force, number, watch)
        watch.gone.add_done_callback(lambda _: late.cancel())

    def _force(self, number: int, watch: "_Watch") -> None:
        """Have the spawner kill the supervisor and end what the supervisor leaves behind."""
        if self._control:
            with suppress(OSError):
                self._control.send(spawner.END + str(number).encode())
        late = asyncio.get_running_loop().call_later(_GRACE_S, self._give_up, watch)
        watch.gone.add_done_callback(lambda _: late.cancel())

    def _give_up(self, watch: "_Watch") -> None:
        """Continue with a new spawner: this one does not respond either (stopped, say)."""
        self._discard()
        watch.abandon()


class _Watch:
    """
    Receives what one supervisor reports.

    `lines` are the step's (stream, text), and None at the end. `gone` is done when the supervisor
    has ended.
    """

    def __init__(self, channel: socket.socket) -> None:
        self.lines: asyncio.Queue[tuple[str, str] | None] = asyncio.Queue()
        self._loop = asyncio.get_running_loop()
        self.gone: asyncio.Future[None] = self._loop.create_future()
        self._end: dict[str, Any] = {"lost": True}
        self._buffer = bytearray()
        self._kept: dict[bytes, bytes] = {}
        self._artifacts: int | None = None
        self._unread = False
        """Whether the supervisor ended before it had the whole job: nothing of the step has run."""
        self._channel = channel
        channel.setblocking(False)
        self._loop.add_reader(channel.fileno(), self._on_readable)

    async def send(self, order: LaunchOrder) -> None:
        """Send the supervisor its job, and the context behind it; large pieces are not copied."""
        text = frames.frame(frames.JOB, order.as_bytes())
        try:
            for piece in _joined((text, *order.context)):
                await self._loop.sock_sendall(self._channel, piece)
        except ConnectionError:  # the supervisor was killed, which the end of its channel shows
            self._unread = True

    def take_end(self) -> Ended:
        """Returns how the step ended; from now on the caller owns the folder of artifacts."""
        artifacts, self._artifacts = self._artifacts, None
        if self._end.get("lost") and self._unread:
            self._end = {"failure": _NEVER_READ, "unready": True}
        elif frames.LEFT in self._kept and artifacts is None:
            self._end["artifacts_trouble"] = _NOT_RECEIVED
        return Ended(
            **self._end,
            stdout=self._kept.get(frames.STDOUT, b""),
            stderr=self._kept.get(frames.STDERR, b""),
            output=self._kept.get(frames.OUTPUT),
            state=self._kept.get(frames.STATE),
            artifacts=artifacts,
        )

    def stop(self) -> None:
        """Ask the supervisor to end the tree."""
        with suppress(OSError):
            self._channel.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        self._loop.remove_reader(self._channel.fileno())
        self._channel.close()
        if self._artifacts is not None:
            os.close(self._artifacts)
            self._artifacts = None

    def abandon(self) -> None:
        self._end_lines()

    def _on_readable(self) -> None:
        try:
            data, fds, _, _ = socket.recv_fds(self._channel, _CHUNK, 1, socket.MSG_CMSG_CLOEXEC)
        except BlockingIOError:
            return
        except ConnectionError:
            # The kernel resets a channel whose other end was closed before all of it was read,
            # and the job is all that is ever sent there.
            self._unread = True
            data, fds = b"", []
        if fds:
            self._artifacts = fds[0]
        if not data:
            self._loop.remove_reader(self._channel.fileno())
            self._end_lines()
        self._buffer += data
        for kind, payload in frames.take_frames(self._buffer):
            self._on_frame(kind, payload)

    def _on_frame(self, kind: bytes, payload: bytes) -> None:
        if kind == frames.END:
            self._end = marshal.loads(payload)  # noqa: S302 - from the supervisor, and the same Python
            self._end_lines()
        elif kind in _KEPT:
            self._kept[kind] = payload
        else:
            stream = next(name for name, its_kind in frames.LINES.items() if its_kind == kind)
            self.lines.put_nowait((stream, payload.decode("utf-8", "replace")))

    def _end_lines(self) -> None:
        if not self.gone.done():
            self.gone.set_result(None)
            self.lines.put_nowait(None)


def _joined(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """*pieces*, with small pieces joined to one."""
    small: list[bytes] = []
    for piece in pieces:
        if len(piece) > _CHUNK:
            yield b"".join(small)
            yield piece
            small.clear()
        else:
            small.append(piece)
    yield b"".join(small)


def _await_exit(program: subprocess.Popen[bytes]) -> None:
    try:
        program.wait(_GRACE_S)
    except subprocess.TimeoutExpired:
        program.kill()
        program.wait()
