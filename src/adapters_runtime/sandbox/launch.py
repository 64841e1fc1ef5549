"""
The start of a step's own process: everything between fork and exec.

The process is forked and confined before its job is known, and then waits for the job, so that no
step waits for this work. Some interpreters are even started in advance (`Prestart`), and a Python
step needs no other program at all (`inside`). The process gets exactly the environment, folder and
limits of the job, a session of its own, no standard input, and no way to more privileges.
`sandbox.isolation.levels` confines it.

Standard library only.
"""

import errno
import marshal
import os
import resource
import signal
import socket
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import NoReturn

from adapters_runtime.sandbox import probe, python_fork
from adapters_runtime.sandbox.isolation.config import JOB_FD, Prestart
from adapters_runtime.sandbox.isolation.levels import ProcessLevel

IGNORED = (signal.SIGPIPE, signal.SIGHUP, signal.SIGINT, signal.SIGTERM, signal.SIGXFSZ)
"""
The signals that the spawner and the supervisors ignore. Both handle SIGCHLD, and leave all other
signals at their default.
"""

_LIMITS = {
    "data": resource.RLIMIT_DATA,  # RLIMIT_AS would kill Node, which reserves address space
    "processes": resource.RLIMIT_NPROC,
    "file": resource.RLIMIT_FSIZE,
    "signals": resource.RLIMIT_SIGPENDING,
    "open_files": resource.RLIMIT_NOFILE,
    "core": resource.RLIMIT_CORE,
}

_MOST_FILES = 1 << 20
_LARGEST_START = 6 << 20

_READY = b"\2"
_RUNS = b"\0"  # sent just before exec; what follows it is why exec failed
_NUMBER = b"\3"  # sent before the number of an error; a blank and the error's text follow


class LaunchFailed(Exception):
    """Raised when the step's process cannot become the program; the message and `errno` say why."""

    errno: int | None = None

    @classmethod
    def of(cls, message: bytes) -> "LaunchFailed":
        """Returns the exception for the *message* of a process that did not become the program."""
        before, numbered, rest = message.partition(_NUMBER)
        number, _, text = rest.partition(b" ") if numbered else (b"", b"", before)
        words = text.removeprefix(_RUNS).decode("utf-8", "replace")
        failed = cls(words or "it was killed at once")
        failed.errno = int(number) if number.isdigit() else None
        return failed


class Launch:
    """
    A forked and confined process, ready to become a program that writes to *out* and *err*.

    *start* forks it (`init.Processes.start`).
    """

    def __init__(self, start: Callable[[int, int, int, int], None], out: int, err: int) -> None:
        self._line, line = socket.socketpair()
        self.listener: int | None = None
        try:
            start(self._line.fileno(), line.fileno(), out, err)
        finally:
            for fd in (line.detach(), out, err):
                os.close(fd)
        self._await_readiness()

    def go(self, job: bytes) -> None:
        """Run the program of *job*, and return once it has begun. Raises `LaunchFailed`."""
        with suppress(BrokenPipeError, ConnectionError):
            self._line.sendall(job)
            self._line.shutdown(socket.SHUT_WR)
        trouble = _read_all(self._line)
        self._line.close()
        if trouble != _RUNS:
            raise LaunchFailed.of(trouble)

    def _await_readiness(self) -> None:
        message, fds, _, _ = socket.recv_fds(self._line, 1, 1)
        if message != _READY:
            raise LaunchFailed.of(message + _read_all(self._line))
        self.listener = fds[0] if fds else None


def become(level: ProcessLevel, fd: int, stdout: int, stderr: int, folder: str) -> NoReturn:
    """Confine this forked process, wait for the job at *fd*, and become the program of the job."""
    line = socket.socket(fileno=fd)
    try:
        signal.set_wakeup_fd(-1)
        os.setsid()
        _open_null_input()  # not inherited: flags and locks would be the next step's, too
        os.dup2(stdout, 1)
        os.dup2(stderr, 2)
        for number in (*IGNORED, signal.SIGCHLD):
            signal.signal(number, signal.SIG_DFL)
        _make_ready(level, line, folder)
        if level.profile.prestart:
            _exec_prestart(level.profile.prestart, line)
        if text := _read_all(line):
            job = marshal.loads(text)  # noqa: S302 - from the server, and the same Python
            _limit(job["limits"])
            os.chdir(job["cwd"])
            level.confine(job["folder"])
            if job["canary"]:
                probe.report(job["canary"], level.uncounted)
            if job["inside"]:
                require_room(job["env"])
            line.sendall(_RUNS)
            if job["inside"]:
                line.close()
                os.closerange(3, _MOST_FILES)
                python_fork.run(job)
            os.execve(job["argv"][0], job["argv"], job["env"])  # noqa: S606
    except OSError as trouble:
        words = trouble.strerror or str(trouble)
        line.sendall(_NUMBER + f"{trouble.errno or 0} {words}".encode())
    except BaseException as trouble:  # the parent must know: nothing else can be done here
        line.sendall(repr(trouble).encode()[:4096])
    finally:
        os._exit(127)


def _open_null_input() -> None:
    """Make /dev/null the standard input."""
    null = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    os.dup2(null, 0)
    os.close(null)


def _exec_prestart(program: Prestart, line: socket.socket) -> NoReturn:
    """Become a program that waits for its job at `JOB_FD`, to which *line* is moved."""
    if line.fileno() == JOB_FD:
        os.set_inheritable(JOB_FD, True)
    else:
        os.dup2(line.fileno(), JOB_FD)
    os.execve(program.argv[0], program.argv, dict(program.env))  # noqa: S606


def start_room() -> int:
    """The most bytes that the kernel takes as a program's arguments and environment together."""
    stack, _ = resource.getrlimit(resource.RLIMIT_STACK)
    return _LARGEST_START if stack == resource.RLIM_INFINITY else min(stack // 4, _LARGEST_START)


def require_room(env: Mapping[str, str]) -> None:
    """Raises the `OSError` by which the kernel would refuse to start a program with this *env*."""
    if sum(len(name) + len(value) + 10 for name, value in env.items()) > start_room():
        raise OSError(errno.E2BIG, os.strerror(errno.E2BIG))


def _make_ready(level: ProcessLevel, line: socket.socket, folder: str) -> None:
    listener = level.confine_early()
    if level.profile.prestart:  # now: after `_READY` the supervisor may rename the folder
        _limit(dict(level.profile.prestart.limits))
        level.confine(folder)
    if listener is None:
        line.sendall(_READY)
    else:
        socket.send_fds(line, [_READY], [listener])
        os.close(listener)


def _read_all(line: socket.socket) -> bytes:
    """
    All bytes until the end of *line*.

    By plain reads, because a buffered file costs a fifth of a millisecond in a fresh process.
    """
    chunks = []
    while chunk := line.recv(65_536):
        chunks.append(chunk)
    return b"".join(chunks)


def _limit(limits: dict[str, int]) -> None:
    for name, wanted in limits.items():
        which = _LIMITS[name]
        _, hard = resource.getrlimit(which)
        most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(which, (most, most))
