"""
Starting one step's own process: everything between fork and exec.

The process is forked before its job is known and waits for it, so that a step does not. It gets
exactly the environment, folder and limits of the job, a session of its own, no standard input,
and no way to more privileges. What confines a step further (namespaces, Landlock, seccomp)
belongs into `_confine` where it needs no job, else into `_limit`.

Standard library only.
"""

import marshal
import os
import resource
import signal
from contextlib import suppress
from typing import NoReturn

from adapters_runtime.process_tree import PR_SET_NO_NEW_PRIVS, prctl

_DEFAULT_AGAIN = signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}
"""All: what the server inherited (a shell ignores some for its background) is not the step's."""

_LIMITS = {
    "data": resource.RLIMIT_DATA,  # RLIMIT_AS would kill Node, which reserves address space
    "processes": resource.RLIMIT_NPROC,
    "file": resource.RLIMIT_FSIZE,
    "open_files": resource.RLIMIT_NOFILE,
    "core": resource.RLIMIT_CORE,
}


_RUNS = b"\0"  # said just before exec; what follows it is why exec failed


class LaunchFailed(Exception):
    """The step's process could not become the program; the text says why."""


class Launch:
    """A forked process, ready to become a program that writes to *stdout* and *stderr*."""

    def __init__(self, stdout: int, stderr: int) -> None:
        orders, self._orders = os.pipe()
        self._answers, answers = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            os.close(self._orders)
            _become(orders, answers, stdout, stderr)
        for fd in (orders, answers, stdout, stderr):
            os.close(fd)

    def go(self, job: bytes) -> None:
        """Become the program of *job*. Returns once it runs; raises `LaunchFailed`."""
        with suppress(BrokenPipeError):
            os.write(self._orders, job)
        os.close(self._orders)
        trouble = _read_all(self._answers)
        if trouble != _RUNS:
            raise LaunchFailed(
                trouble.removeprefix(_RUNS).decode("utf-8", "replace") or "it was killed at once"
            )


def _become(orders: int, answers: int, stdout: int, stderr: int) -> NoReturn:
    try:
        signal.set_wakeup_fd(-1)
        os.setsid()
        os.dup2(stdout, 1)
        os.dup2(stderr, 2)
        for number in _DEFAULT_AGAIN:
            signal.signal(number, signal.SIG_DFL)
        _confine()
        if text := _read_all(orders):
            job = marshal.loads(text)  # noqa: S302 - from the server, and the same Python
            _limit(job["limits"])
            os.chdir(job["cwd"])
            os.write(answers, _RUNS)
            os.execve(job["argv"][0], job["argv"], job["env"])  # noqa: S606
    except OSError as trouble:
        os.write(answers, (trouble.strerror or str(trouble)).encode())
    except BaseException as trouble:  # the parent must hear of it: nothing else can be done here
        os.write(answers, repr(trouble).encode()[:4096])
    finally:
        os._exit(127)


def _read_all(fd: int) -> bytes:
    """Plain reads: buffered files cost a fifth of a millisecond in a fresh process."""
    chunks = []
    while chunk := os.read(fd, 65_536):
        chunks.append(chunk)
    os.close(fd)
    return b"".join(chunks)


def _confine() -> None:
    prctl(PR_SET_NO_NEW_PRIVS)
    _go_first_when_memory_runs_out()


def _limit(limits: dict[str, int]) -> None:
    for name, wanted in limits.items():
        which = _LIMITS[name]
        _, hard = resource.getrlimit(which)
        most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(which, (most, most))


def _go_first_when_memory_runs_out() -> None:
    with suppress(OSError):  # a read-only /proc is no reason not to run
        score = os.open("/proc/self/oom_score_adj", os.O_WRONLY | os.O_CLOEXEC)
        os.write(score, b"1000")
        os.close(score)
