"""
One step's supervisor: the process that starts it, watches it and ends all of it.

It holds the deadline and the caps itself, so nothing depends on the server being quick, and it
ends the step when the server or the spawner is gone. Its last frame (`frames.END`) is sent when
the step has no living process left.

Standard library only.
"""

import json
import marshal
import os
import select
import signal
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from adapters_runtime import frames
from adapters_runtime.launch import Launch, LaunchFailed
from adapters_runtime.process_tree import (
    PR_SET_CHILD_SUBREAPER,
    end_descendants,
    prctl,
    reap,
)

_CHUNK = 65_536
_FLUSH_S = 0.1
_LONGEST_POLL_MS = 1_000_000_000
_MOST_LOGGED = 1_048_576
_NO_MORE = b"\n[no further lines are kept]\n"


def supervise(door: socket.socket, spawner: int) -> None:
    """
    Make everything ready, wait for a step to come through *door*, run it, report.

    What comes through the door is the descriptor of the step's channel, with the job on it.
    *spawner* is a descriptor that becomes readable when the spawner is gone.
    """
    prctl(PR_SET_CHILD_SUBREAPER)
    os.setpgid(0, 0)  # should a step stop us, the kernel wakes us when the spawner goes
    supervisor = _Supervisor(spawner)
    channel = _await_channel(door)
    if channel is not None:
        supervisor.run(channel)
    end_descendants({})


def _await_channel(door: socket.socket) -> socket.socket | None:
    _, fds, _, _ = socket.recv_fds(door, 1, 1)
    return socket.socket(fileno=fds[0]) if fds else None


def _read_job(channel: socket.socket) -> bytes | None:
    buffer = bytearray()
    while chunk := channel.recv(_CHUNK):
        buffer += chunk
        for _, payload in frames.take_frames(buffer):
            return payload
    return None


class _Pipe:
    """What a step writes to one stream: its end, its length, and the lines not yet shown."""

    def __init__(self, stream: str) -> None:
        self.stream = stream
        self.fd, self.write_end = os.pipe()
        self.seen = 0
        self._keep = 0
        self._kept = bytearray()
        self._unshown = bytearray()
        self._logged = 0
        os.set_blocking(self.fd, False)

    @property
    def kept(self) -> bytes:
        return bytes(self._kept[-self._keep :])

    def keep(self, size: int) -> None:
        """Keep the last *size* bytes from now on."""
        self._keep = size

    def take(self, log: bool) -> bool:
        """Read what is there, up to a chunk; whether there was anything."""
        try:
            chunk = os.read(self.fd, _CHUNK)
        except BlockingIOError:
            return False
        self.seen += len(chunk)
        self._kept += chunk
        if len(self._kept) > 2 * self._keep:
            del self._kept[: -self._keep]
        if log:
            self._show(chunk)
        return bool(chunk)

    def lines(self, last: bool) -> bytes:
        """The whole lines not shown yet as a frame; *last*: and what follows them."""
        end = len(self._unshown) if last else self._unshown.rfind(b"\n") + 1
        if not end and len(self._unshown) > _CHUNK:
            end = len(self._unshown)  # a line without end is cut
        text = self._unshown[:end]
        del self._unshown[:end]
        return frames.frame(frames.LINES[self.stream], text) if text else b""

    def _show(self, chunk: bytes) -> None:
        room = _MOST_LOGGED - self._logged
        if room >= 0:
            self._unshown += chunk[:room]
            self._logged += len(chunk)
        if 0 <= room < len(chunk):
            self._unshown += _NO_MORE


class _Supervisor:
    def __init__(self, spawner: int) -> None:
        self._stdout = _Pipe("stdout")
        self._stderr = _Pipe("stderr")
        self._launch = Launch(self._stdout.write_end, self._stderr.write_end)
        self._main = self._launch.pid
        self._statuses: dict[int, int] = {}
        self._unsent = bytearray()
        self._flush_at: float | None = None
        self._reason: str | None = None
        self._failure: str | None = None
        self._wake = self._open_wake()
        self._poll = select.poll()
        self._on: dict[int, Callable[[], None]] = {}
        self._listen(self._wake, self._on_child)
        self._listen(self._stdout.fd, self._on_stdout)
        self._listen(self._stderr.fd, self._on_stderr)
        self._listen(spawner, self._on_loss)

    def run(self, channel: socket.socket) -> None:
        """Read the job from *channel*, run it to its end, report. No job, nothing is run."""
        job = _read_job(channel)
        if job is None:
            return
        self._channel = channel
        self._listen(channel.fileno(), self._on_channel)
        self._take_up(marshal.loads(job))  # noqa: S302 - from the server, and the same Python
        try:
            self._launch.go(job)
        except (LaunchFailed, OSError) as trouble:
            self._failure = str(trouble)
        else:
            self._watch()
        end_descendants(self._statuses)
        self._drain()
        self._report()

    def _take_up(self, job: dict[str, Any]) -> None:
        self._timeout_s: float = job["timeout_s"]
        self._stdout_bytes: int = job["stdout_bytes"]
        self._log: bool = job["log"]
        self._stdout.keep(self._stdout_bytes)
        self._stderr.keep(job["stderr_bytes"])

    def _listen(self, fd: int, act: Callable[[], None]) -> None:
        self._on[fd] = act
        self._poll.register(fd, select.POLLIN)

    def _open_wake(self) -> int:
        wake, awaken = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.set_wakeup_fd(awaken, warn_on_full_buffer=False)
        return wake

    def _watch(self) -> None:
        deadline = time.monotonic() + self._timeout_s
        while self._main not in self._statuses and self._reason is None:
            soonest = deadline if self._flush_at is None else min(deadline, self._flush_at)
            wait_ms = (soonest - time.monotonic()) * 1_000 + 1
            for fd, _ in self._poll.poll(max(0, min(wait_ms, _LONGEST_POLL_MS))):
                self._on[fd]()
            now = time.monotonic()
            if self._flush_at is not None and now >= self._flush_at:
                self._flush()
            if now >= deadline and self._main not in self._statuses:
                self._reason = self._reason or frames.TIMED_OUT

    def _on_child(self) -> None:
        os.read(self._wake, _CHUNK)
        reap(self._statuses)

    def _on_stdout(self) -> None:
        self._take(self._stdout)
        if self._stdout.seen > self._stdout_bytes:
            self._reason = frames.TOO_MUCH_OUTPUT
            os.close(self._stdout.fd)  # costs less than reading on, and blocks the writer

    def _on_stderr(self) -> None:
        self._take(self._stderr)

    def _take(self, pipe: _Pipe) -> None:
        if not pipe.take(self._log):
            self._poll.unregister(pipe.fd)
        elif self._log and self._flush_at is None:
            self._flush_at = time.monotonic() + _FLUSH_S

    def _on_channel(self) -> None:
        try:
            heard = self._channel.recv(_CHUNK)
        except ConnectionError:
            heard = b""
        if not heard:
            self._reason = frames.KILLED

    def _on_loss(self) -> None:
        self._reason = frames.KILLED

    def _flush(self) -> None:
        self._flush_at = None
        for pipe in (self._stdout, self._stderr):
            self._unsent += pipe.lines(last=False)
        try:
            sent = self._channel.send(self._unsent, socket.MSG_DONTWAIT) if self._unsent else 0
        except OSError:
            sent = 0  # the server is slow, or gone, which the poll will say
        del self._unsent[:sent]
        if self._unsent:
            self._flush_at = time.monotonic() + _FLUSH_S

    def _drain(self) -> None:
        """Take what the dead left in the pipes. Never waits: somebody else may hold an end."""
        if self._reason != frames.TOO_MUCH_OUTPUT:
            while self._stdout.take(self._log):
                pass
        while self._stderr.take(self._log):
            pass
        if self._stdout.seen > self._stdout_bytes:
            self._reason = frames.TOO_MUCH_OUTPUT

    def _report(self) -> None:
        status = self._statuses.get(self._main)
        exit_code = None if status is None else os.waitstatus_to_exitcode(status)
        end = {"exit": exit_code, "reason": self._reason, "failure": self._failure}
        for pipe in (self._stdout, self._stderr):
            self._unsent += pipe.lines(last=True)
        self._unsent += frames.frame(frames.STDOUT, self._stdout.kept)
        self._unsent += frames.frame(frames.STDERR, self._stderr.kept)
        self._unsent += frames.frame(frames.END, json.dumps(end).encode())
        with suppress(OSError):  # nobody may be there to hear it
            self._channel.sendall(self._unsent)
