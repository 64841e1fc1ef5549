"""
Who starts the process of a step, and ends all that came of it: its supervisor, or an init.

At the levels without namespaces the supervisor itself forks the step and reaps what it leaves
(`Children`). At `namespace` the first process of the namespace for processes has to do both, as the
kernel makes it the parent of every orphan there; like every such process it is called an init.
`Init` is the supervisor's end of a line to it, `_serve` the other.

**Why the supervisor is not the init.** A Python step is forked and not executed, so it can read
whatever the process that it was forked from has ever held. The init never sees a job, nor anything
that a step wrote: it has its orders, and descriptors to pass on. So one init with its namespaces,
and one supervisor beside it, serve one step after another (decision 230), and a step of one
workflow is not forked from what another one left.

**Who ends it.** The kernel, if its supervisor dies (`PR_SET_PDEATHSIG`); itself, if the line is
closed. With it the kernel ends everything in its namespace.

Standard library only.
"""

import marshal
import os
import select
import signal
import socket
from collections.abc import Iterable
from contextlib import suppress
from typing import NoReturn, Protocol

from adapters_runtime.sandbox import workdir
from adapters_runtime.sandbox.isolation.config import STEP_DIR
from adapters_runtime.sandbox.isolation.levels import Process
from adapters_runtime.sandbox.isolation.syscalls import (
    NEW_PID,
    PR_SET_PDEATHSIG,
    clone,
    fork,
    prctl,
)
from adapters_runtime.sandbox.launch import become
from adapters_runtime.sandbox.process_tree import Statuses, descendants_of, reap

_START = b"s"
_END = b"e"
_AS_NEW, _USED_UP = b"n", b"u"
_LONGEST = 4096


class Processes(Protocol):
    """The processes of a step, as its supervisor knows them."""

    @property
    def fd(self) -> int:
        """Readable when `look` has something to learn."""

    @property
    def status(self) -> int | None:
        """The wait status of the step's first process; None until it has ended."""

    def start(self, ours: int, line: int, out: int, err: int, folder: str) -> None:
        """
        Fork a process that becomes the step of `launch.become` with these descriptors, without
        *ours*. Raises `OSError`.
        """

    def look(self) -> None:
        """Learn who has ended."""

    def members(self) -> Iterable[int]:
        """The processes of the step, as far as they can be listed."""

    def end_all(self) -> None:
        """End all of the step, and return when it is dead."""

    def are_as_new(self) -> bool:
        """Once, after `end_all`: whether another step may follow."""

    def close(self) -> None:
        """No step will follow."""


class Children:
    """Of a supervisor that forks the step itself, one and no more."""

    def __init__(self, level: Process) -> None:
        self._level = level
        self._statuses: Statuses = {}
        self._pid = 0
        self.fd = _wake_up_pipe()

    @property
    def status(self) -> int | None:
        return self._statuses.get(self._pid)

    def start(self, ours: int, line: int, out: int, err: int, folder: str) -> None:
        pid = fork()
        if pid == 0:
            os.close(ours)
            become(self._level, line, out, err, folder)
        self._pid, self._statuses = pid, {pid: None}

    def look(self) -> None:
        os.read(self.fd, _LONGEST)
        reap(self._statuses)

    def members(self) -> Iterable[int]:
        return descendants_of(os.getpid())

    def end_all(self) -> None:
        self._level.end_all(self._statuses)

    def are_as_new(self) -> bool:
        return False

    def close(self) -> None:
        self._level.end_all({})


class Init:
    """The same in namespaces of its own, which *level* makes; *foreign*: descriptors not for it."""

    def __init__(self, level: Process, foreign: Iterable[int]) -> None:
        self._line, theirs = socket.socketpair(type=socket.SOCK_SEQPACKET)
        self.fd = self._line.fileno()
        self.folder = -1
        """The folder of the step that was started last; whoever uses it closes it."""
        self.status: int | None = None
        self._pid = clone(NEW_PID)
        if self._pid == 0:
            for fd in (*foreign, self.fd):
                os.close(fd)
            _serve(level, theirs)
        theirs.close()

    def start(self, ours: int, line: int, out: int, err: int, folder: str) -> None:
        self.status = None
        socket.send_fds(self._line, [_START], [line, out, err])
        said, fds, _, _ = socket.recv_fds(self._line, _LONGEST, 1)
        number, words = marshal.loads(_something(said))  # noqa: S302 - from our own fork
        if number:
            raise OSError(number, words)
        self.folder = fds[0]

    def look(self) -> None:
        self.status = int(_something(self._line.recv(_LONGEST)))

    def members(self) -> Iterable[int]:
        return descendants_of(self._pid)

    def end_all(self) -> None:
        self._line.send(_END)
        said = _something(self._line.recv(_LONGEST))
        if not said.startswith(_END):  # it was sent before it knew that all is to end
            self.status = int(said)
            said = _something(self._line.recv(_LONGEST))
        status = marshal.loads(said[1:])  # noqa: S302 - from our own fork
        self.status = self.status if status is None else status

    def are_as_new(self) -> bool:
        return self._line.recv(_LONGEST) == _AS_NEW

    def close(self) -> None:
        self._line.close()
        os.waitpid(self._pid, 0)


def _something(said: bytes) -> bytes:
    if not said:
        raise ConnectionError("the init of its namespace is gone")
    return said


def _wake_up_pipe() -> int:
    """What becomes readable with each SIGCHLD."""
    wake, awaken = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.set_wakeup_fd(awaken, warn_on_full_buffer=False)
    return wake


def _serve(level: Process, line: socket.socket) -> NoReturn:
    """The init: enter the namespaces, start and end steps until the line is closed."""
    try:
        prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        _Server(level, line).run()
    finally:
        os._exit(0)  # whatever it was: the supervisor's line is closed, and says so


class _Server:
    def __init__(self, level: Process, line: socket.socket) -> None:
        self._level = level
        self._line = line
        self._wake = _wake_up_pipe()
        self._statuses: Statuses = {}
        self._pid = 0
        self._used = False
        self._trouble: OSError | None = None
        try:
            level.enter()
        except OSError as trouble:  # said when there is a step to start
            self._trouble = trouble

    def run(self) -> None:
        poll = select.poll()
        poll.register(self._line, select.POLLIN)
        poll.register(self._wake, select.POLLIN)
        while True:
            for fd, _ in poll.poll():
                if fd == self._wake:
                    self._on_child()
                elif not self._on_order():
                    return

    def _on_child(self) -> None:
        with suppress(BlockingIOError):
            os.read(self._wake, _LONGEST)
        self._reap()

    def _reap(self) -> None:
        known = self._statuses.get(self._pid)
        reap(self._statuses)
        status = self._statuses.get(self._pid)
        if known is None and status is not None:
            self._line.send(b"%d" % status)

    def _on_order(self) -> bool:
        said, fds, _, _ = socket.recv_fds(self._line, 1, 3)
        if said == _START:
            for fd in fds:
                os.set_inheritable(fd, False)  # else the step's program has them, too
            self._start(fds)
        elif said == _END:
            self._end()
        return bool(said)

    def _start(self, fds: list[int]) -> None:
        made: list[int] = []
        try:
            if self._trouble:
                raise self._trouble
            if self._used:
                self._level.renew()
            self._used = True
            made = [workdir.divided(self._level, STEP_DIR)]
            self._fork(*fds)
            said = (0, "")
        except OSError as trouble:
            said = (trouble.errno or 1, trouble.strerror or str(trouble))
        socket.send_fds(self._line, [marshal.dumps(said)], made)
        for fd in (*fds, *made):
            os.close(fd)

    def _fork(self, line: int, stdout: int, stderr: int) -> None:
        pid = fork()
        if pid == 0:
            self._line.close()
            become(self._level, line, stdout, stderr, STEP_DIR)
        self._pid, self._statuses = pid, {pid: None}

    def _end(self) -> None:
        self._level.end_all(self._statuses)
        self._line.send(_END + marshal.dumps(self._statuses.get(self._pid)))
        self._line.send(_AS_NEW if self._level.is_as_new() else _USED_UP)
