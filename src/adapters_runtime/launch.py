"""
Starting one step's own process: everything between fork and exec.

The child gets exactly the environment, folder and limits of its job, a session of its own,
no standard input, and no way to more privileges. Whatever further confines a step (namespaces,
Landlock, seccomp) belongs into `_confine`.

Standard library only.
"""

import os
import resource
import signal
from contextlib import suppress
from typing import Any, NoReturn

from adapters_runtime.process_tree import PR_SET_NO_NEW_PRIVS, prctl

_DEFAULT_AGAIN = (
    signal.SIGPIPE,
    signal.SIGXFSZ,
    signal.SIGHUP,
    signal.SIGINT,
    signal.SIGTERM,
)
_LIMITS = {
    "data": resource.RLIMIT_DATA,  # RLIMIT_AS would kill Node, which reserves address space
    "processes": resource.RLIMIT_NPROC,
    "file": resource.RLIMIT_FSIZE,
    "open_files": resource.RLIMIT_NOFILE,
    "core": resource.RLIMIT_CORE,
}


class LaunchFailed(Exception):
    """The step's process could not become the program; the text says why."""


def launch(job: dict[str, Any], stdout: int, stderr: int) -> int:
    """
    Fork and become `job["argv"]`; the process id, once the program runs.

    Raises `LaunchFailed`; `OSError` where even the fork failed.
    """
    told, tell = os.pipe()
    pid = os.fork()
    if pid == 0:
        _become(job, stdout, stderr, tell)
    os.close(tell)
    try:
        trouble = os.read(told, 4096)  # empty: exec closed the other end
    finally:
        os.close(told)
    if trouble:
        raise LaunchFailed(trouble.decode("utf-8", "replace"))
    return pid


def _become(job: dict[str, Any], stdout: int, stderr: int, tell: int) -> NoReturn:
    try:
        signal.set_wakeup_fd(-1)
        os.setsid()
        os.dup2(stdout, 1)
        os.dup2(stderr, 2)
        for number in _DEFAULT_AGAIN:
            signal.signal(number, signal.SIG_DFL)
        _confine(job)
        os.chdir(job["cwd"])
        os.execve(job["path"], job["argv"], job["env"])  # noqa: S606
    except OSError as trouble:
        os.write(tell, (trouble.strerror or str(trouble)).encode())
    except BaseException as trouble:  # the parent must hear of it: nothing else can be done here
        os.write(tell, repr(trouble).encode()[:4096])
    finally:
        os._exit(127)


def _confine(job: dict[str, Any]) -> None:
    prctl(PR_SET_NO_NEW_PRIVS)
    _go_first_when_memory_runs_out()
    for name, wanted in job["limits"].items():
        which = _LIMITS[name]
        _, hard = resource.getrlimit(which)
        most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(which, (most, most))


def _go_first_when_memory_runs_out() -> None:
    with suppress(OSError):  # a read-only /proc is no reason not to run
        score = os.open("/proc/self/oom_score_adj", os.O_WRONLY | os.O_CLOEXEC)
        os.write(score, b"1000")
        os.close(score)
