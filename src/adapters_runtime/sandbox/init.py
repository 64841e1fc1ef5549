"""
The parent of a step's processes, which forks the first process and ends all of them: the
supervisor, or an init.

At the levels without namespaces the supervisor itself forks the step and reaps all its processes
(`Children`). At `namespace` the first process of the process namespace, the init, must do both,
because the kernel makes the init the parent of every orphan there. `Init` is the supervisor's end
of a line to the init, `_serve` the other end.

**Why the supervisor is not the init.** A Python step is forked and not executed, so it can read
whatever its parent process has ever held. The init never sees a job, nor anything that a step
wrote: it receives orders, and descriptors to pass on. So one init with its namespaces, and one
supervisor beside it, serve one step after another (decision 230), and no step can read in its
parent what a step of another workflow left.

**How the init ends.** The kernel kills it if its supervisor dies (`PR_SET_PDEATHSIG`); it exits if
the line is closed. With the init the kernel ends everything in its namespace.

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
from adapters_runtime.sandbox.isolation.config import FILES, STEP_DIR
from adapters_runtime.sandbox.isolation.filesystem import hide_files, show_files
from adapters_runtime.sandbox.isolation.levels import ProcessLevel
from adapters_runtime.sandbox.isolation.syscalls import (
    NEW_PID,
    PR_SET_PDEATHSIG,
    clone,
    fork,
    open_tree,
    prctl,
)
from adapters_runtime.sandbox.launch import become
from adapters_runtime.sandbox.process_tree import Statuses, descendants_of, reap

_START = b"s"
_SHOW, _SHOWN = b"f", b"F"
_END = b"e"
_AS_NEW, _USED_UP = b"n", b"u"
_LONGEST = 4096


class Processes(Protocol):
    """The processes of a step, for its supervisor."""

    @property
    def fd(self) -> int:
        """A descriptor that is readable when `reap` would learn something new."""

    @property
    def status(self) -> int | None:
        """The wait status of the step's first process, or None while that process runs."""

    def start(self, ours: int, line: int, out: int, err: int, folder: str) -> None:
        """
        Fork a process that calls `launch.become` with these arguments; the process closes *ours*
        first. Raises `OSError`.
        """

    def show(self, tree: str, folder: int) -> None:
        """
        Make *tree* the folder `FILES` in the step's *folder*, before the program begins. Raises
        `OSError`.
        """

    def reap(self) -> None:
        """Update `status` from the processes that have ended."""

    def members(self) -> Iterable[int]:
        """The processes of the step, as far as they can be listed."""

    def end_all(self) -> None:
        """Kill all processes of the step, and return when they are dead."""

    def are_as_new(self) -> bool:
        """Whether another step may follow. Only called once after `end_all`."""

    def close(self) -> None:
        """Release what a next step would have used."""


class Children:
    """The processes of a single step, forked by the supervisor itself."""

    def __init__(self, level: ProcessLevel) -> None:
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

    def show(self, tree: str, folder: int) -> None:
        os.rename(tree, FILES, dst_dir_fd=folder)
        os.chmod(FILES, 0o555, dir_fd=folder)  # noqa: S103 - in a private folder

    def reap(self) -> None:
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
    """
    The processes of one step after another, forked by an init in namespaces that *level* makes.

    *foreign*: descriptors of the supervisor that the init closes.
    """

    def __init__(self, level: ProcessLevel, foreign: Iterable[int]) -> None:
        self._line, theirs = socket.socketpair(type=socket.SOCK_SEQPACKET)
        self.fd = self._line.fileno()
        self.folder = -1
        """A descriptor of the latest step's folder. The caller closes it."""
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
        message, fds, _, _ = socket.recv_fds(self._line, _LONGEST, 1)
        _raise_from(_received(message))
        self.folder = fds[0]

    def show(self, tree: str, folder: int) -> None:
        mount = open_tree(tree)
        try:
            socket.send_fds(self._line, [_SHOW], [mount])
        finally:
            os.close(mount)
        _raise_from(self._reply(_SHOWN))

    def _reply(self, beginning: bytes) -> bytes:
        """
        The rest of the init's reply. A status that the init sent before it had read the order comes
        first.
        """
        message = _received(self._line.recv(_LONGEST))
        if not message.startswith(beginning):
            self.status = int(message)
            message = _received(self._line.recv(_LONGEST))
        return message.removeprefix(beginning)

    def reap(self) -> None:
        self.status = int(_received(self._line.recv(_LONGEST)))

    def members(self) -> Iterable[int]:
        return descendants_of(self._pid)

    def end_all(self) -> None:
        self._line.send(_END)
        status = marshal.loads(self._reply(_END))  # noqa: S302 - from our own fork
        self.status = self.status if status is None else status

    def are_as_new(self) -> bool:
        return self._line.recv(_LONGEST) == _AS_NEW

    def close(self) -> None:
        self._line.close()
        os.waitpid(self._pid, 0)


def _received(message: bytes) -> bytes:
    if not message:
        raise ConnectionError("the init of its namespace is gone")
    return message


_FINE = marshal.dumps((0, ""))


def _packed(trouble: OSError) -> bytes:
    return marshal.dumps((trouble.errno or 1, trouble.strerror or str(trouble)))


def _raise_from(message: bytes) -> None:
    """Raises the `OSError` that `_packed` has packed; returns for `_FINE`."""
    number, words = marshal.loads(message)  # noqa: S302 - from our own fork
    if number:
        raise OSError(number, words)


def _wake_up_pipe() -> int:
    """A pipe that becomes readable with each SIGCHLD."""
    wake, awaken = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.set_wakeup_fd(awaken, warn_on_full_buffer=False)
    return wake


def _serve(level: ProcessLevel, line: socket.socket) -> NoReturn:
    """Enter the namespaces as the init, then start and end steps until the line is closed."""
    try:
        prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        _InitLoop(level, line).run()
    finally:
        os._exit(0)  # whatever the cause: the end of the line tells the supervisor


class _InitLoop:
    def __init__(self, level: ProcessLevel, line: socket.socket) -> None:
        self._level = level
        self._line = line
        self._wake = _wake_up_pipe()
        self._statuses: Statuses = {}
        self._pid = 0
        self._used = False
        self._shows_files = False
        self._trouble: OSError | None = None
        try:
            level.enter()
        except OSError as trouble:  # reported when there is a step to start
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
        message, fds, _, _ = socket.recv_fds(self._line, 1, 3)
        if message == _START:
            for fd in fds:
                os.set_inheritable(fd, False)  # else the step's program would have them, too
            self._start(fds)
        elif message == _SHOW:
            self._show(fds)
        elif message == _END:
            self._end()
        return bool(message)

    def _start(self, fds: list[int]) -> None:
        made: list[int] = []
        try:
            if self._trouble:
                raise self._trouble
            if self._used:
                self._level.renew()
            self._used = True
            made = [workdir.make_subfolders(self._level, STEP_DIR)]
            self._fork(*fds)
            message = _FINE
        except OSError as trouble:
            message = _packed(trouble)
        socket.send_fds(self._line, [message], made)
        for fd in (*fds, *made):
            os.close(fd)

    def _show(self, fds: list[int]) -> None:
        try:
            show_files(*fds)
            self._shows_files = True
            message = _FINE
        except OSError as trouble:
            message = _packed(trouble)
        self._line.send(_SHOWN + message)
        for fd in fds:
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
        if self._shows_files:
            with suppress(OSError):  # then the mounts differ, and no step follows
                hide_files()
            self._shows_files = False
        self._line.send(_AS_NEW if self._level.is_as_new() else _USED_UP)
