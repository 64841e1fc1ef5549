"""
The supervisor of a step: the process that has the step started, watches it, and ends all of it.

A step may fork, daemonise and call `setsid`; killing its process group would miss half of that. So
every step has a supervisor. The supervisor forks the step as its own child and is the *subreaper*
of the step's descendants, or has the init of a namespace do both (`sandbox.init`). Every orphan
becomes a child of that process, so the step has ended exactly when `waitpid` finds no child.

**Ready before there is a job.** `supervise` builds the sandbox (`isolation.levels`), has the
step's process forked, and only then waits for a job. Both are the expensive part of a start, and
neither needs to know the job. A supervisor that never gets a job cleans up and exits.

**One step after another.** If an init holds the namespaces, the supervisor offers itself for
another step after a step that ended well and left nothing behind. The spawner decides, and no
sandbox older than `FRESH_S` is used again. The supervisor keeps nothing of its steps, and no step
is forked from it. Decision 230.

**A lost server or spawner ends the step.** The supervisor polls three descriptors besides the
step's output: the channel to the server, the spawner's pidfd, and `Processes.fd`. If the first
reads end of file or the second is readable, the server or the spawner is gone, for whatever reason,
and the step is killed. A slow server delays nothing: this process itself checks the deadline, the
size of the output and the memory of the process tree.

**The end comes last.** `frames.END` is sent after all processes of the step have been reaped, never
before. Once the server has read it, no process of the step can write anything, neither to its
folder nor to the network. The frame says how the step ended. The folder of artifacts is sent as a
descriptor, because its path may be unreachable outside the step's mount namespace.

**Why a failure is "unready".** `unready` says that nothing of the step's program has run: the
sandbox, the folder or the fork failed. The engine then puts the same attempt back instead of
failing it. After `launch.go` has released the process, a failure is never `unready`, except for a
shortage that the process itself reports instead of becoming the program.

Standard library only: the process is forked from the spawner, which must stay small and must not
import anything of the server.
"""

import errno
import marshal
import math
import os
import select
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from typing import Any

from adapters_runtime.sandbox import frames, workdir
from adapters_runtime.sandbox.connect_filter import ConnectFilter
from adapters_runtime.sandbox.init import Children, Init, Processes
from adapters_runtime.sandbox.isolation.config import CONTEXT, OUTPUT, STATE, STEP_DIR, Profile
from adapters_runtime.sandbox.isolation.levels import ProcessLevel
from adapters_runtime.sandbox.isolation.syscalls import PR_SET_CHILD_SUBREAPER, prctl
from adapters_runtime.sandbox.launch import Launch, LaunchFailed, require_room
from adapters_runtime.sandbox.output_stream import CHUNK, MOST_LOGGED, Stream
from adapters_runtime.sandbox.ports import Ports
from adapters_runtime.sandbox.process_tree import memory_held, next_measure_s
from adapters_runtime.sandbox.shortage import is_shortage

FREE = b"f"
"""
The message to the spawner by which a supervisor offers to serve another step. The answer is a byte,
or the end of the channel.
"""
FRESH_S = 60.0
"""The greatest age at which a sandbox may be used for another step."""

_FLUSH_S = 0.1
_LONGEST_POLL_MS = 1_000_000_000


def supervise(
    level: ProcessLevel, profile: Profile, place: int, channel: socket.socket, spawner: int
) -> None:
    """
    Prepare a sandbox, wait for a step, run it and report, then offer to serve another step.

    Through *channel* comes the descriptor of a step's own channel, on which the job is sent.
    *spawner* is a descriptor that becomes readable when the spawner is gone.
    """
    prctl(PR_SET_CHILD_SUBREAPER)
    os.setpgid(0, 0)  # if a step stops this process, the kernel wakes it when the spawner ends
    stale_at = time.monotonic() + FRESH_S
    processes: Processes | None = None
    while True:
        try:
            if processes is None:
                level.prepare(profile, place)
                foreign = channel.fileno(), spawner
                processes = Init(level, foreign) if level.has_own_files else Children(level)
            supervisor = _Supervisor(level, processes, spawner)
        except (LaunchFailed, OSError) as trouble:
            if processes:
                processes.close()
            level.leave()
            if step_channel := _await_step(channel):
                message = f"it could not be confined: {_words(trouble)}"
                refuse(step_channel, message, trouble, unconfined=True)
            return
        step_channel = None if _breaks_first(processes, channel) else _await_step(channel)
        if step_channel:
            supervisor.run(step_channel)
        supervisor.close()
        if not (step_channel and supervisor.left_nothing and time.monotonic() < stale_at):
            break
        channel.send(FREE)
        if not channel.recv(1):
            break
    processes.close()
    level.leave()


def refuse(
    step_channel: socket.socket, failure: str, trouble: Exception, *, unconfined: bool = False
) -> None:
    """Tell the server that the step was not started, and why."""
    about = {"errno": getattr(trouble, "errno", None), "unconfined": unconfined}
    end = marshal.dumps({"failure": failure, "unready": True, **about})
    with suppress(OSError):
        step_channel.sendall(frames.frame(frames.END, end))


def _words(trouble: Exception) -> str:
    return getattr(trouble, "strerror", None) or str(trouble)


def _breaks_first(processes: Processes, channel: socket.socket) -> bool:
    """Whether the process that waits for a step is killed before a step comes through *channel*."""
    poll = select.poll()
    for fd in (processes.fd, channel.fileno()):
        poll.register(fd, select.POLLIN)
    return any(fd == processes.fd for fd, _ in poll.poll())


def _await_step(channel: socket.socket) -> socket.socket | None:
    _, fds, _, _ = socket.recv_fds(channel, 1, 1)
    return socket.socket(fileno=fds[0]) if fds else None


def _prestart_message(job: dict[str, Any]) -> bytes:
    """
    The job for a program that was started before the job (`Prestart`): fields separated by NUL.
    """
    words = [job["argv"][-1], job["cwd"], "live" if job["log"] else ""]
    words += (f"{name}={value}" for name, value in job["env"].items())
    return "\0".join(words).encode("utf-8", "surrogateescape")


_LEFT_FILES = (
    (frames.OUTPUT, OUTPUT, "WF_OUTPUT"),
    (frames.STATE, STATE, "WF_STATE"),
)
"""The files that a step may leave: frame, name, and the variable with the path."""


def _read_job(step_channel: socket.socket, buffer: bytearray) -> bytes | None:
    """The job; *buffer* has what was read behind it."""
    while chunk := step_channel.recv(CHUNK):
        buffer += chunk
        for _, payload in frames.take_frames(buffer):
            return payload
    return None


def _read_context(step_channel: socket.socket, begun: bytes, size: int) -> Iterator[bytes]:
    """The context behind the job, of *size* bytes, which began with *begun*."""
    chunk = begun
    while size := size - len(chunk):
        yield chunk
        chunk = step_channel.recv(min(size, CHUNK))
        if not chunk:
            raise ConnectionError(errno.ECONNRESET, "the server was gone before all of it came")
    yield chunk


class _Supervisor:
    def __init__(self, level: ProcessLevel, processes: Processes, spawner: int) -> None:
        self._level = level
        self._processes = processes
        self.left_nothing = False
        room = [MOST_LOGGED]
        self._stdout = Stream("stdout", room)
        self._stderr = Stream("stderr", room)
        outputs = self._stdout.write_end, self._stderr.write_end
        for fd in outputs:
            level.own(fd)  # the step may open it anew as /dev/stdout
        self._path, self._folder = "", -1
        if isinstance(processes, Init):
            self._path = STEP_DIR
        elif level.profile.prestart:
            self._path = f"{level.config.base}/prestart-{os.getpid()}"
            self._folder = workdir.make(level, self._path)
        self._launch = Launch(partial(processes.start, folder=self._path), *outputs)
        if isinstance(processes, Init):
            self._folder = processes.folder
        self._unsent = bytearray()
        self._flush_at = math.inf
        self._measure_at = 0.0
        self._reason: str | None = None
        self._failure: str | None = None
        self._unready = False
        self._errno: int | None = None
        self._poll = select.poll()
        self._on: dict[int, Callable[[], None]] = {}
        self._listen(processes.fd, select.POLLIN, processes.reap)
        self._listen(self._stdout.fd, select.POLLIN, self._on_stdout)
        self._listen(self._stderr.fd, select.POLLIN, self._on_stderr)
        self._listen(spawner, select.POLLIN, self._on_loss)
        self._filter: ConnectFilter | None = None
        if self._launch.listener is not None:
            config = level.config
            ports = Ports(config.closed, config.reserved, level.profile.listen)
            self._filter = ConnectFilter(self._launch.listener, ports)

    def run(self, step_channel: socket.socket) -> None:
        """Read the job from *step_channel*, run it, and report. Does nothing without a job."""
        behind = bytearray()
        text = _read_job(step_channel, behind)
        if text is None:
            return
        self._step_channel = step_channel
        self._listen(step_channel.fileno(), select.POLLIN, self._on_step_channel)
        known = frozenset(self._on)
        job = marshal.loads(text)  # noqa: S302 - from the server, and the same Python
        self._read_limits(job)
        is_filled = self._fill_folder(job, bytes(behind))
        runs = is_filled and self._show_files(job) and self._launches(job)
        if runs:
            self._watch()
        is_alive = True
        try:
            self._processes.end_all()
        except ConnectionError:  # somebody killed the init, and so all processes of the step
            if runs:
                raise
            is_alive, self._unready = False, True
        self._drain()
        if self._ran_out():
            self._reason = self._reason or frames.TOO_MUCH_MEMORY
        left = self._report()
        ended_well = self._reason is None and self._failure is None
        is_quiet = known.issuperset(self._on) and not left
        is_as_new = is_alive and self._processes.are_as_new()
        is_unfiltered = self._filter is None or self._filter.has_ended()
        self.left_nothing = is_as_new and ended_well and is_quiet and is_unfiltered

    def close(self) -> None:
        """Close what the step used, if another step follows."""
        if self._path and self._path != STEP_DIR:
            workdir.remove_unused(self._path)  # made before the job, and still there if unused
        if self.left_nothing:  # otherwise this process exits
            self._step_channel.close()
            for fd in (self._stdout.fd, self._stderr.fd, self._folder):
                os.close(fd)
            self._on.clear()  # with the references to this object

    def _read_limits(self, job: dict[str, Any]) -> None:
        self._timeout_s: float = job["timeout_s"]
        self._stdout_bytes: int = job["stdout_bytes"]
        self._output_bytes: int = job["output_bytes"]
        self._memory: int = job["memory"]
        self._log: bool = job["log"]
        self._stdout.keep(self._stdout_bytes)
        self._stderr.keep(job["stderr_bytes"])

    def _fill_folder(self, job: dict[str, Any], behind: bytes) -> bool:
        try:
            if self._folder < 0:
                self._folder = workdir.make(self._level, job["folder"])
            elif self._path != job["folder"]:
                os.rename(self._path, job["folder"])
            workdir.fill(self._level, self._folder, job.pop("files"), job.pop("links"))
            if size := job.pop("context"):
                context = _read_context(self._step_channel, behind, size)
                workdir.write(self._level, self._folder, CONTEXT, context)
        except OSError as trouble:
            self._failure = f"no folder for it: {_words(trouble)}"
            self._unready, self._errno = True, trouble.errno
        return self._failure is None

    def _show_files(self, job: dict[str, Any]) -> bool:
        tree: str | None = job.pop("given")
        try:
            if tree is not None:
                self._processes.show(tree, self._folder)
        except OSError as trouble:
            self._failure = f"its files cannot be shown: {_words(trouble)}"
            self._errno = trouble.errno
            self._unready = is_shortage(trouble.errno) or isinstance(trouble, ConnectionError)
        return self._failure is None

    def _launches(self, job: dict[str, Any]) -> bool:
        try:
            if self._level.profile.prestart:
                require_room(job["env"])
                self._launch.go(_prestart_message(job))
            else:
                self._launch.go(marshal.dumps(job))
        except (LaunchFailed, OSError) as trouble:
            self._failure = _words(trouble)
            self._errno = trouble.errno
            self._unready = is_shortage(trouble.errno)  # then the program has not begun
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
        self._measure_at = now + next_measure_s(0, self._memory)
        while self._runs and self._reason is None:
            wait_ms = (min(deadline, self._flush_at, self._measure_at) - now) * 1_000 + 1
            for fd, _ in self._poll.poll(max(0, min(wait_ms, _LONGEST_POLL_MS))):
                self._on[fd]()
            now = time.monotonic()
            if now >= self._flush_at:
                self._flush()
            if now >= self._measure_at and self._runs:
                self._measure(now)
            if now >= deadline and self._runs:
                self._reason = self._reason or frames.TIMED_OUT

    def _measure(self, now: float) -> None:
        held = memory_held(self._processes.members(), self._memory)
        self._measure_at = now + next_measure_s(held, self._memory)
        if held > self._memory or self._ran_out():
            self._reason = self._reason or frames.TOO_MUCH_MEMORY

    def _ran_out(self) -> bool:
        """Whether the kernel killed any process of the step to free memory."""
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

    def _on_step_channel(self) -> None:
        try:
            received = self._step_channel.recv(CHUNK)
        except ConnectionError:
            received = b""
        if not received:
            self._reason = frames.KILLED

    def _on_loss(self) -> None:
        self._reason = frames.KILLED

    def _flush(self) -> None:
        self._flush_at = math.inf
        for stream in (self._stdout, self._stderr):
            self._unsent += stream.lines(last=False)
        try:
            sent = self._step_channel.send(self._unsent, socket.MSG_DONTWAIT) if self._unsent else 0
        except OSError:
            sent = 0  # the server is slow, or gone, which the poll will show
        del self._unsent[:sent]
        if self._unsent:
            self._flush_at = time.monotonic() + _FLUSH_S

    def _drain(self) -> None:
        """Read what dead processes left in the pipes. Never waits: others may hold an end open."""
        if self._reason != frames.TOO_MUCH_OUTPUT:
            while self._stdout.take(self._log):
                pass
        while self._stderr.take(self._log):
            pass
        if self._stdout.seen > self._stdout_bytes:
            self._reason = frames.TOO_MUCH_OUTPUT

    def _report(self) -> bool:
        """Tell the server how the step ended; returns whether there are artifacts."""
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
        with suppress(OSError):  # the server may be gone
            if left is not None:
                socket.send_fds(self._step_channel, [frames.frame(frames.LEFT)], [left])
            self._step_channel.sendall(self._unsent)
        return left is not None

    def _collect(self, end: dict[str, Any]) -> int | None:
        """
        Add output and state to the report; returns the folder of artifacts, if there are any.
        """
        for kind, name, variable in _LEFT_FILES:
            try:
                content = workdir.left(self._folder, name, variable, self._output_bytes)
                if content is not None:
                    self._unsent += frames.frame(kind, content)
            except workdir.Unusable as problem:
                end["output_trouble"] = str(problem)
        try:
            return workdir.artifacts(self._folder)
        except workdir.Unusable as problem:
            end["artifacts_trouble"] = str(problem)
            return None
