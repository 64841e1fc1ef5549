"""
The supervisor of a step: the process that has it started, watches it, and ends all of it.

A step may fork, daemonise and call `setsid`; killing its process group would miss half of that. So
every step has a supervisor, which starts it as its own child and is the *subreaper* of all below
it, or has an init of a namespace start it (`sandbox.init`): whatever loses its parent becomes a
child of that process, and the step is over exactly when `waitpid` has no children left to report.

**Ready before there is a job.** `supervise` builds the sandbox (`isolation.levels`), has the
process forked that will become the step, and only then waits for a job. Both are the expensive part
of a start, and neither needs to know the job. A supervisor that never gets one tidies up and
leaves.

**One step after another.** Where an init holds the namespaces, the supervisor offers itself for the
next step when one has ended as it should and left nothing behind; the spawner decides, and nothing
older than `FRESH_S` goes on. Of the steps that it served it keeps nothing, and no step is forked
from it. Decision 230.

**Whoever disappears ends the step.** The supervisor polls three descriptors besides the step's
output: the channel to the server, the spawner's pidfd, and what tells of ended processes. End of
file on the first or readiness of the second means that the server or the spawner is gone, for
whatever reason; then the step is killed. Nothing here depends on the server being quick: the
deadline, the size of the output and the memory of the process tree are checked by this process.

**The last word.** `frames.END` is sent after everything below has been reaped, never before. The
server may rely on that: when it has read the end, no process of the step can write anything any
more, neither to its folder nor to the network. The frame carries how the step ended, and the
folder of its artifacts as a descriptor, because the folder's path may not be reachable from outside
the step's mount namespace.

**Why a failure is "unready".** `unready` says that nothing of the step's program has run: the
sandbox, the folder or the fork failed. The engine then puts the same attempt back instead of
failing it. Once `launch.go` has released the process this may no longer be said.

Standard library only: this runs in a process forked from the spawner, which must stay small and
must not import anything of the server.
"""

import marshal
import math
import os
import select
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

from adapters_runtime.sandbox import frames, workdir
from adapters_runtime.sandbox.connect_filter import Gate
from adapters_runtime.sandbox.init import Children, Init, Processes
from adapters_runtime.sandbox.isolation.config import STEP_DIR, Profile
from adapters_runtime.sandbox.isolation.levels import Process
from adapters_runtime.sandbox.isolation.syscalls import PR_SET_CHILD_SUBREAPER, prctl
from adapters_runtime.sandbox.launch import Launch, LaunchFailed, require_room
from adapters_runtime.sandbox.output_stream import CHUNK, MOST_LOGGED, Stream
from adapters_runtime.sandbox.ports import Ports
from adapters_runtime.sandbox.process_tree import memory_held, next_look_s
from adapters_runtime.sandbox.shortage import is_shortage

FREE = b"f"
"""A supervisor to the spawner: it could serve another step. The answer is a byte, or the end."""
FRESH_S = 60.0
"""How old a sandbox may be that another step is to have."""

_FLUSH_S = 0.1
_LONGEST_POLL_MS = 1_000_000_000


def supervise(
    level: Process, profile: Profile, place: int, door: socket.socket, spawner: int
) -> None:
    """
    Make everything ready, wait for a step to come through *door*, run it, report; and so on.

    What comes through the door is the descriptor of a step's channel, with the job on it.
    *spawner* is a descriptor that becomes readable when the spawner is gone.
    """
    prctl(PR_SET_CHILD_SUBREAPER)
    os.setpgid(0, 0)  # should a step stop us, the kernel wakes us when the spawner goes
    stale_at = time.monotonic() + FRESH_S
    processes: Processes | None = None
    while True:
        try:
            if processes is None:
                level.prepare(profile, place)
                foreign = door.fileno(), spawner
                processes = Init(level, foreign) if level.has_own_files else Children(level)
            supervisor = _Supervisor(level, processes, spawner)
        except (LaunchFailed, OSError) as trouble:
            if processes:
                processes.close()
            level.leave()
            if channel := _await_channel(door):
                said = f"it could not be confined: {_words(trouble)}"
                refuse(channel, said, trouble, unconfined=True)
            return
        channel = None if _breaks_first(processes, door) else _await_channel(door)
        if channel:
            supervisor.run(channel)
        supervisor.close()
        if not (channel and supervisor.left_nothing and time.monotonic() < stale_at):
            break
        door.send(FREE)
        if not door.recv(1):
            break
    processes.close()
    level.leave()


def refuse(
    channel: socket.socket, failure: str, trouble: Exception, *, unconfined: bool = False
) -> None:
    """Tell the server that the step was not started, and why."""
    about = {"errno": getattr(trouble, "errno", None), "unconfined": unconfined}
    end = marshal.dumps({"failure": failure, "unready": True, **about})
    with suppress(OSError):
        channel.sendall(frames.frame(frames.END, end))


def _words(trouble: Exception) -> str:
    return getattr(trouble, "strerror", None) or str(trouble)


def _breaks_first(processes: Processes, door: socket.socket) -> bool:
    """Whether somebody kills what waits for a step, before one comes through the *door*."""
    poll = select.poll()
    for fd in (processes.fd, door.fileno()):
        poll.register(fd, select.POLLIN)
    return any(fd == processes.fd for fd, _ in poll.poll())


def _await_channel(door: socket.socket) -> socket.socket | None:
    _, fds, _, _ = socket.recv_fds(door, 1, 1)
    return socket.socket(fileno=fds[0]) if fds else None


def _told_ahead(job: dict[str, Any]) -> bytes:
    """What a program that was started ahead must know of its job: words apart by NUL."""
    words = [job["argv"][-1], job["cwd"], "live" if job["log"] else ""]
    words += (f"{name}={value}" for name, value in job["env"].items())
    return "\0".join(words).encode("utf-8", "surrogateescape")


def _read_job(channel: socket.socket) -> bytes | None:
    buffer = bytearray()
    while chunk := channel.recv(CHUNK):
        buffer += chunk
        for _, payload in frames.take_frames(buffer):
            return payload
    return None


class _Supervisor:
    def __init__(self, level: Process, processes: Processes, spawner: int) -> None:
        self._level = level
        self._processes = processes
        self.left_nothing = False
        room = [MOST_LOGGED]
        self._stdout = Stream("stdout", room)
        self._stderr = Stream("stderr", room)
        outputs = self._stdout.write_end, self._stderr.write_end
        for fd in outputs:
            level.own(fd)  # to be opened anew as /dev/stdout
        self._path, self._folder = "", -1
        if isinstance(processes, Init):
            self._path = STEP_DIR
        elif level.profile.prestart:
            self._path = f"{level.config.base}/ahead-{os.getpid()}"
            self._folder = workdir.make(level, self._path)
        self._launch = Launch(partial(processes.start, folder=self._path), *outputs)
        if isinstance(processes, Init):
            self._folder = processes.folder
        self._unsent = bytearray()
        self._flush_at = math.inf
        self._look_at = 0.0
        self._reason: str | None = None
        self._failure: str | None = None
        self._unready = False
        self._errno: int | None = None
        self._poll = select.poll()
        self._on: dict[int, Callable[[], None]] = {}
        self._listen(processes.fd, select.POLLIN, processes.look)
        self._listen(self._stdout.fd, select.POLLIN, self._on_stdout)
        self._listen(self._stderr.fd, select.POLLIN, self._on_stderr)
        self._listen(spawner, select.POLLIN, self._on_loss)
        self._gate: Gate | None = None
        if self._launch.listener is not None:
            config = level.config
            ports = Ports(config.closed, config.reserved, level.profile.listen)
            self._gate = Gate(self._launch.listener, ports)

    def run(self, channel: socket.socket) -> None:
        """Read the job from *channel*, run it to its end, report. No job, nothing is run."""
        text = _read_job(channel)
        if text is None:
            return
        self._channel = channel
        self._listen(channel.fileno(), select.POLLIN, self._on_channel)
        known = frozenset(self._on)
        job = marshal.loads(text)  # noqa: S302 - from the server, and the same Python
        self._take_up(job)
        runs = self._furnish(job) and self._launches(job)
        if runs:
            self._watch()
        there = True
        try:
            self._processes.end_all()
        except ConnectionError:  # somebody killed the init, and so all that it had started
            if runs:
                raise
            there, self._unready = False, True
        self._drain()
        if self._ran_out():
            self._reason = self._reason or frames.TOO_MUCH_MEMORY
        left = self._report()
        ended_well = self._reason is None and self._failure is None
        is_quiet = known.issuperset(self._on) and not left
        is_as_new = there and self._processes.are_as_new()
        is_over = self._gate is None or self._gate.has_ended()
        self.left_nothing = is_as_new and ended_well and is_quiet and is_over

    def close(self) -> None:
        """Before the next step, or the end."""
        if self._path and self._path != STEP_DIR:
            workdir.remove_unused(self._path)  # it was made ahead, and is there if it was not used
        if self.left_nothing:  # else all ends with this process
            self._channel.close()
            for fd in (self._stdout.fd, self._stderr.fd, self._folder):
                os.close(fd)
            self._on.clear()  # and with it all that refers to us

    def _take_up(self, job: dict[str, Any]) -> None:
        self._timeout_s: float = job["timeout_s"]
        self._stdout_bytes: int = job["stdout_bytes"]
        self._output_bytes: int = job["output_bytes"]
        self._memory: int = job["memory"]
        self._log: bool = job["log"]
        self._stdout.keep(self._stdout_bytes)
        self._stderr.keep(job["stderr_bytes"])

    def _furnish(self, job: dict[str, Any]) -> bool:
        try:
            if self._folder < 0:
                self._folder = workdir.make(self._level, job["folder"])
            elif self._path != job["folder"]:
                os.rename(self._path, job["folder"])
            workdir.fill(self._level, self._folder, job.pop("files"), job.pop("links"))
        except OSError as trouble:
            self._failure = f"no folder for it: {_words(trouble)}"
            self._unready, self._errno = True, trouble.errno
        return self._failure is None

    def _launches(self, job: dict[str, Any]) -> bool:
        try:
            if self._level.profile.prestart:
                require_room(job["env"])
                self._launch.go(_told_ahead(job))
            else:
                self._launch.go(marshal.dumps(job))
        except (LaunchFailed, OSError) as trouble:
            self._failure = _words(trouble)
            self._errno = trouble.errno
            self._unready = is_shortage(trouble.errno)  # said instead of becoming the program
        return self._failure is None

    def _listen(self, fd: int, events: int, act: Callable[[], None]) -> None:
        self._on[fd] = act
        self._poll.register(fd, events)

    def _forget(self, fd: int) -> None:
        del self._on[fd]
        self._poll.unregister(fd)

    @property
    def _runs(self) -> bool:
        return self._processes.status is None

    def _watch(self) -> None:
        now = time.monotonic()
        deadline = now + self._timeout_s
        self._look_at = now + next_look_s(0, self._memory)
        while self._runs and self._reason is None:
            wait_ms = (min(deadline, self._flush_at, self._look_at) - now) * 1_000 + 1
            for fd, _ in self._poll.poll(max(0, min(wait_ms, _LONGEST_POLL_MS))):
                self._on[fd]()
            now = time.monotonic()
            if now >= self._flush_at:
                self._flush()
            if now >= self._look_at and self._runs:
                self._look(now)
            if now >= deadline and self._runs:
                self._reason = self._reason or frames.TIMED_OUT

    def _look(self, now: float) -> None:
        held = memory_held(self._processes.members(), self._memory)
        self._look_at = now + next_look_s(held, self._memory)
        if held > self._memory or self._ran_out():
            self._reason = self._reason or frames.TOO_MUCH_MEMORY

    def _ran_out(self) -> bool:
        """Whether the kernel killed something of it for want of memory, perhaps not its first."""
        return self._level.counted is not None and self._level.counted.ran_out()

    def _on_stdout(self) -> None:
        self._take(self._stdout)
        if self._stdout.seen > self._stdout_bytes:
            self._reason = frames.TOO_MUCH_OUTPUT
            os.close(self._stdout.fd)  # costs less than reading on, and blocks the writer

    def _on_stderr(self) -> None:
        self._take(self._stderr)

    def _take(self, stream: Stream) -> None:
        if not stream.take(self._log):
            self._forget(stream.fd)
        elif self._log and self._flush_at == math.inf:
            self._flush_at = time.monotonic() + _FLUSH_S

    def _on_channel(self) -> None:
        try:
            heard = self._channel.recv(CHUNK)
        except ConnectionError:
            heard = b""
        if not heard:
            self._reason = frames.KILLED

    def _on_loss(self) -> None:
        self._reason = frames.KILLED

    def _flush(self) -> None:
        self._flush_at = math.inf
        for stream in (self._stdout, self._stderr):
            self._unsent += stream.lines(last=False)
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

    def _report(self) -> bool:
        """Tell the server how it ended; whether there are artifacts."""
        status = self._processes.status
        exit_code = None if status is None else os.waitstatus_to_exitcode(status)
        end = {
            "exit": exit_code,
            "reason": self._reason,
            "failure": self._failure,
            "unready": self._unready,
            "errno": self._errno,
        }
        for stream in (self._stdout, self._stderr):
            self._unsent += stream.lines(last=True)
        self._unsent += frames.frame(frames.STDOUT, self._stdout.kept)
        self._unsent += frames.frame(frames.STDERR, self._stderr.kept)
        left = self._collect(end) if self._folder >= 0 else None
        self._unsent += frames.frame(frames.END, marshal.dumps(end))
        with suppress(OSError):  # nobody may be there to hear it
            if left is not None:
                socket.send_fds(self._channel, [frames.frame(frames.LEFT)], [left])
            self._channel.sendall(self._unsent)
        return left is not None

    def _collect(self, end: dict[str, Any]) -> int | None:
        """Add the output file to the report; the folder of artifacts, where there are any."""
        try:
            output = workdir.output(self._folder, self._output_bytes)
            if output is not None:
                self._unsent += frames.frame(frames.OUTPUT, output)
        except workdir.Unusable as problem:
            end["output_trouble"] = str(problem)
        try:
            return workdir.artifacts(self._folder)
        except workdir.Unusable as problem:
            end["artifacts_trouble"] = str(problem)
            return None
