"""What a step would hand down to the next one through the process that both are forked from."""

import ctypes
import fcntl
import os
import signal
import socket
import subprocess
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from adapters_runtime.sandbox.isolation.inherited import Inherited
from adapters_runtime.sandbox.isolation.syscalls import prctl, syscall

ALL_LIMITS = range(16)
TIMER_SLACK, DUMPABLE, NO_NEW_PRIVS, THP_DISABLE, KEEP_CAPABILITIES = 29, 4, 38, 41, 8
IDLE_CLASS = 3 << 13


def limits(which: int) -> tuple[int, int]:
    """As C does it, since Python does not name them all."""
    pair = (ctypes.c_uint64 * 2)()
    syscall("prlimit64", 0, which, None, pair)
    return pair[0], pair[1]


def set_limits(which: int, now: int, most: int) -> None:
    syscall("prlimit64", 0, which, (ctypes.c_uint64 * 2)(now, most), None)


def lower(which: int) -> None:
    now, most = limits(which)
    set_limits(which, now - 1 if now else 1, most or 1)


def lower_most(which: int) -> None:
    now, most = limits(which)
    set_limits(which, min(now, most - 1) if most else 0, most - 1 if most else 1)


def on_null() -> None:
    fcntl.fcntl(0, fcntl.F_SETFL, fcntl.fcntl(0, fcntl.F_GETFL) ^ os.O_APPEND)


def one_processor() -> None:
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})


def write(name: str, text: str) -> Callable[[], Any]:
    return lambda: Path(f"/proc/self/{name}").write_text(text)


CHANGES: dict[str, Callable[[], Any]] = {
    "nice": lambda: os.nice(1),
    "affinity": one_processor,
    "scheduler": lambda: os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0)),
    "input and output": lambda: syscall("ioprio_set", 1, 0, IDLE_CLASS),
    "timer slack": lambda: prctl(TIMER_SLACK, 77_777),
    "umask": lambda: os.umask(0o123),
    "signal mask": lambda: signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1]),
    "ignored signal": lambda: signal.signal(signal.SIGUSR1, signal.SIG_IGN),
    "caught signal": lambda: signal.signal(signal.SIGUSR2, lambda *_: None),
    "folder": lambda: os.chdir("/usr"),
    "opened": lambda: os.dup(0),
    "closed": lambda: os.close(0),
    "another": lambda: os.dup2(os.open("/dev/zero", os.O_RDONLY), 0),
    "flags of a descriptor": on_null,
    "inheritable": lambda: os.set_inheritable(socket.socket().detach(), True),
    "killed first": write("oom_score_adj", "777"),
    "what is dumped": write("coredump_filter", "0x11"),
    "dumpable": lambda: prctl(DUMPABLE, 0),
    "no new privileges": lambda: prctl(NO_NEW_PRIVS),
    "huge pages": lambda: prctl(THP_DISABLE, 1),
    "kept capabilities": lambda: prctl(KEEP_CAPABILITIES, 1),
    "personality": lambda: syscall("personality", 0x0040000),
}


def _is_noticed(change: Callable[[], Any]) -> bool:
    """Whether a process of its own sees that it has made the *change*."""
    pid = os.fork()
    if pid == 0:
        status = 3
        with suppress(BaseException):
            os.dup2(os.open(os.devnull, os.O_RDWR), 0)
            inherited = Inherited()
            status = 0 if inherited.is_unchanged() else 2
            if status == 0:
                status = 4
                change()
                status = 0 if not inherited.is_unchanged() else 1
        os._exit(status)
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    assert status in (0, 1), status
    return status == 0


@pytest.mark.parametrize("name", CHANGES)
def test_every_kind_is_noticed(name: str) -> None:
    """A change of anything that a child inherits shows in the snapshot."""
    assert _is_noticed(CHANGES[name])


@pytest.mark.parametrize("which", ALL_LIMITS)
@pytest.mark.parametrize("change", [lower, lower_most])
def test_every_limit_is_noticed(which: int, change: Callable[[int], None]) -> None:
    """All sixteen, what holds and what may be asked for at most."""
    now, most = limits(which)
    try:
        set_limits(which, now, most or 1)
    except PermissionError:
        pytest.skip("nothing is below nought, and it may not be raised here")
    set_limits(which, now, most)
    assert _is_noticed(lambda: change(which))


def test_nothing_is_noticed_without_a_change() -> None:
    """What varies by itself is left out: memory, children, waiting, files read."""

    def live() -> None:
        held = [bytes(1000) for _ in range(10_000)]
        subprocess.run(["true"], check=True)
        del held

    assert not _is_noticed(live)
