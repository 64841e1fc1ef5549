"""
The spawner: a small single-threaded program that the server starts once.

For each step it gets one end of a socket pair, forks, and the child becomes the step's
supervisor. Jobs travel on that socket alone, so the spawner never sees one, and nothing of the
server's memory or environment is in it. It keeps the step's end of the socket open until the
supervisor has ended and, should somebody have killed it, until the orphans it left are dead:
the server reads "end of file" only when nothing of the step is alive.

It ends when the server is gone and the last supervisor with it. Standard library only; run by
`process.Spawner` through `main`, with its end of a SOCK_SEQPACKET pair as standard input.
"""

import gc
import os
import select
import signal
import socket
import sys
import traceback

from adapters_runtime.process_tree import (
    PR_SET_CHILD_SUBREAPER,
    end_children_except,
    prctl,
)
from adapters_runtime.supervisor import supervise

START = b"s"
END = b"e"
_IGNORED = (signal.SIGPIPE, signal.SIGHUP, signal.SIGINT, signal.SIGTERM)


class _Spawner:
    def __init__(self, control: socket.socket) -> None:
        self._control = control
        self._self = os.pidfd_open(os.getpid())  # supervisors see by it that we are gone
        self._numbers: dict[int, bytes] = {}
        self._channels: dict[int, socket.socket] = {}
        self._wake, awaken = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.set_wakeup_fd(awaken, warn_on_full_buffer=False)
        self._poll = select.poll()
        self._poll.register(self._wake, select.POLLIN)
        self._poll.register(control, select.POLLIN)
        self._server_there = True

    def run(self) -> None:
        while self._server_there or self._channels:
            for fd, _ in self._poll.poll():
                if fd == self._wake:
                    self._on_child()
                else:
                    self._on_control()

    def _on_control(self) -> None:
        try:
            message, fds, _, _ = socket.recv_fds(self._control, 64, 1)
        except ConnectionError:
            message, fds = b"", []
        if not message:
            self._server_there = False
            self._poll.unregister(self._control)
        elif message[:1] == START and fds:
            self._start(message[1:], socket.socket(fileno=fds[0]))
        elif message[:1] == END:
            self._end(message[1:])

    def _start(self, number: bytes, channel: socket.socket) -> None:
        try:
            pid = os.fork()
        except OSError:
            channel.close()  # the server reads "end of file": not started
            return
        if pid == 0:
            self._become_supervisor(channel)
        self._numbers[pid] = number
        self._channels[pid] = channel

    def _become_supervisor(self, channel: socket.socket) -> None:
        status = 1
        try:
            low, high = sorted((channel.fileno(), self._self))
            for first, beyond in ((3, low), (low + 1, high), (high + 1, 1 << 20)):
                os.closerange(first, beyond)
            supervise(channel, self._self)
            status = 0
        except BaseException:  # last resort of a process: say it, the spawner does the rest
            traceback.print_exc()
        finally:
            os._exit(status)

    def _end(self, number: bytes) -> None:
        for pid, its_number in self._numbers.items():
            if its_number == number:
                os.kill(pid, signal.SIGKILL)

    def _on_child(self) -> None:
        os.read(self._wake, 4096)
        for pid in list(self._channels):
            ended, status = os.waitpid(pid, os.WNOHANG)
            if ended:
                self._forget(pid, orphaned=status != 0)

    def _forget(self, pid: int, orphaned: bool) -> None:
        del self._numbers[pid]
        channel = self._channels.pop(pid)
        if orphaned:
            end_children_except(self._channels.keys())
        channel.close()


def main() -> None:
    """Serve until the server is gone."""
    control = socket.socket(fileno=os.dup(0))
    os.set_inheritable(control.fileno(), False)
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    os.dup2(null, 1)
    os.close(null)
    os.umask(0o077)
    prctl(PR_SET_CHILD_SUBREAPER)
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    for number in _IGNORED:
        signal.signal(number, signal.SIG_IGN)
    signal.signal(signal.SIGCHLD, lambda *_: None)  # a handler, so that the wake-up pipe is written
    gc.disable()
    gc.freeze()
    _Spawner(control).run()
    sys.exit(0)
