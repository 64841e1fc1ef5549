"""
The spawner: a small single-threaded program that the server starts once.

For each step it gets one end of a socket pair and hands it to a supervisor: to one that is free
after its last step, or to a new one; one of each profile of step in use is forked in advance
whenever it is quiet. Jobs travel on that socket alone, so the spawner never sees one, and nothing
of the server's memory or environment is in it. It keeps the step's end of the socket open until the
supervisor is free or has ended and, should somebody have killed it, until the orphans it left are
dead: the server reads "end of file" only when nothing of the step is alive.

It ends when the server is gone and the last supervisor with it. Standard library only; run by
`process.Spawner` through `main`, with its end of a SOCK_SEQPACKET pair as standard input.
"""

import errno
import gc
import marshal
import os
import select
import signal
import socket
import sys
import time
from contextlib import suppress
from typing import NoReturn

from adapters_runtime.sandbox.isolation import identity
from adapters_runtime.sandbox.isolation.config import Profile, SandboxConfig, unpacked
from adapters_runtime.sandbox.isolation.levels import LEVELS, Process, Refused
from adapters_runtime.sandbox.isolation.syscalls import PR_SET_CHILD_SUBREAPER, prctl
from adapters_runtime.sandbox.launch import IGNORED
from adapters_runtime.sandbox.pool import Pools
from adapters_runtime.sandbox.process_tree import end_children_except
from adapters_runtime.sandbox.shortage import is_shortage
from adapters_runtime.sandbox.supervisor import refuse, supervise

START = b"s"
END = b"e"
LONGEST = 65_536
_QUIET_MS = 1
"""The next spare is made while a step begins, when the server does nothing for it."""


class _SupervisorProcess:
    """What the spawner knows of one: its process, the channel to it, the step it was given."""

    def __init__(self, pid: int, profile: Profile, place: int, door: socket.socket) -> None:
        self.pid = pid
        self.profile = profile
        self.place = place
        self.door = door
        self.number: int | None = None
        self.channel: socket.socket | None = None

    def give(self, number: int, channel: socket.socket) -> None:
        """Give it a step. Raises `ConnectionError` if it is dead."""
        socket.send_fds(self.door, [START], [channel.fileno()])
        self.number, self.channel = number, channel

    def heard(self) -> bytes | None:
        """What it says: that it is free; nothing if it has ended, None if it says nothing."""
        try:
            return self.door.recv(1, socket.MSG_DONTWAIT)
        except BlockingIOError:
            return None
        except ConnectionError:
            return b""

    def end_step(self) -> None:
        """All of its step is dead."""
        if self.channel:
            self.channel.close()
        self.number = self.channel = None

    def close(self) -> None:
        self.door.close()
        self.end_step()


class _SpawnerLoop:
    def __init__(self, control: socket.socket, level: Process) -> None:
        self._control = control
        self._level = level
        self._self = os.pidfd_open(os.getpid())  # supervisors see by it that we are gone
        self._supervisors: dict[int, _SupervisorProcess] = {}
        self._busy: dict[int, _SupervisorProcess] = {}  # by their doors
        self._wake, awaken = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.set_wakeup_fd(awaken, warn_on_full_buffer=False)
        self._poll = select.poll()
        self._poll.register(self._wake, select.POLLIN)
        self._poll.register(control, select.POLLIN)
        self._server_there = True
        self._spares: Pools[Profile, _SupervisorProcess] = Pools(
            Profile(), is_large=lambda profile: profile.prestart is not None
        )

    def run(self) -> None:
        """Serve until the server is gone and the last supervisor has ended."""
        while self._server_there or self._supervisors:
            events = self._poll.poll(self._pause_ms())
            for fd, _ in events:
                if fd == self._wake:
                    self._on_child()
                elif fd == self._control.fileno():
                    self._on_control()
                else:
                    self._on_door(fd)
            if not events:
                self._make_ready()

    def _pause_ms(self) -> float | None:
        if not self._server_there:
            return None
        if self._spares.missing() is not None:
            return _QUIET_MS
        pause_s = self._spares.next_look_s(time.monotonic())
        return None if pause_s is None else pause_s * 1_000 + 1

    def _on_control(self) -> None:
        try:
            message, fds, _, _ = socket.recv_fds(self._control, LONGEST, 1)
        except ConnectionError:
            message, fds = b"", []
        if not message:
            self._on_server_gone()
        elif message[:1] == START and fds:
            number, profile = marshal.loads(message[1:])  # noqa: S302 - from the server
            self._start(number, unpacked(profile), socket.socket(fileno=fds[0]))
        elif message[:1] == END:
            self._end(int(message[1:]))

    def _on_server_gone(self) -> None:
        self._server_there = False
        self._poll.unregister(self._control)
        for spare in self._spares:
            spare.door.close()  # it ends

    def _start(self, number: int, profile: Profile, channel: socket.socket) -> None:
        """Give a step to a spare supervisor of its profile, or to a new one."""
        spare = self._spares.take(profile, time.monotonic())
        try:
            try:
                self._give(spare or self._fork(profile), number, channel)
            except ConnectionError:  # somebody killed it while it waited
                self._give(self._fork(profile), number, channel)
        except OSError as trouble:  # too many processes or files
            if trouble.errno == errno.ENOSPC:  # that is how the kernel says it
                trouble = OSError("the machine allows no more namespaces")
            refuse(channel, f"no supervisor for it: {trouble.strerror or trouble}", trouble)
            channel.close()

    def _give(self, to: _SupervisorProcess, number: int, channel: socket.socket) -> None:
        to.give(number, channel)
        self._is_busy(to, True)

    def _on_door(self, fd: int) -> None:
        """A supervisor has ended its step and could serve another, or has ended."""
        supervisor = self._busy.get(fd)
        said = supervisor.heard() if supervisor else None
        if supervisor is None or said is None:
            return  # it ended while we looked at others, and its number is used again
        self._is_busy(supervisor, False)
        if not said:
            return  # which SIGCHLD says, too
        supervisor.end_step()
        if self._server_there and self._spares.wants(supervisor.profile):
            with suppress(ConnectionError):
                supervisor.door.send(START)
                self._spares.add(supervisor.profile, supervisor)
        else:
            supervisor.door.close()  # it ends

    def _is_busy(self, supervisor: _SupervisorProcess, is_busy: bool) -> None:
        fd = supervisor.door.fileno()
        if is_busy:
            self._busy[fd] = supervisor
            self._poll.register(fd, select.POLLIN)
        elif self._busy.pop(fd, None):
            self._poll.unregister(fd)

    def _make_ready(self) -> None:
        """Fork the next spare, at a moment when no start of a step has to wait for it."""
        if not self._server_there:
            return
        for spare in self._spares.surplus(time.monotonic()):
            spare.door.close()  # it ends
        profile = self._spares.missing()
        if profile is not None:
            with suppress(OSError):
                self._spares.add(profile, self._fork(profile))

    def _fork(self, profile: Profile) -> _SupervisorProcess:
        place = identity.free_place({other.place for other in self._supervisors.values()})
        ours, theirs = socket.socketpair(type=socket.SOCK_SEQPACKET)
        with theirs:
            pid = os.fork()
            if pid == 0:
                self._become_supervisor(profile, place, theirs)
        self._supervisors[pid] = _SupervisorProcess(pid, profile, place, ours)
        return self._supervisors[pid]

    def _become_supervisor(self, profile: Profile, place: int, door: socket.socket) -> NoReturn:
        status = 1
        signal.set_wakeup_fd(-1)  # the spawner's pipe, which is closed here
        try:
            low, high = sorted((door.fileno(), self._self))
            for first, beyond in ((3, low), (low + 1, high), (high + 1, 1 << 20)):
                os.closerange(first, beyond)
            supervise(self._level, profile, place, door, self._self)
            status = 0
        except BaseException as trouble:  # last resort of a process: say it, the spawner sweeps up
            print(f"wfcore: a step's supervisor failed: {trouble!r}", file=sys.stderr)
        finally:
            os._exit(status)

    def _end(self, number: int) -> None:
        for pid, supervisor in self._supervisors.items():
            if supervisor.number == number:
                os.kill(pid, signal.SIGKILL)

    def _on_child(self) -> None:
        os.read(self._wake, 4096)
        for pid in list(self._supervisors):
            ended, status = os.waitpid(pid, os.WNOHANG)
            if ended:
                self._forget(self._supervisors.pop(pid), orphaned=status != 0)

    def _forget(self, supervisor: _SupervisorProcess, orphaned: bool) -> None:
        self._spares.forget(supervisor)
        self._is_busy(supervisor, False)
        if orphaned:
            end_children_except(self._supervisors.keys())
            if self._level.groups:
                self._level.groups.remove(supervisor.place)
        supervisor.close()


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
    for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
        # What the server inherited (a shell ignores some for its background) is not the step's.
        signal.signal(number, signal.SIG_IGN if number in IGNORED else signal.SIG_DFL)
    signal.signal(signal.SIGCHLD, lambda *_: None)  # a handler, so that the wake-up pipe is written
    gc.disable()
    gc.freeze()
    _SpawnerLoop(control, _open_level(control)).run()
    sys.exit(0)


def _open_level(control: socket.socket) -> Process:
    """The level that the server requests; if it cannot be used, one that refuses all steps."""
    said = control.recv(LONGEST)
    if not said:
        sys.exit(0)  # the server is gone already
    config = SandboxConfig(*marshal.loads(said))  # noqa: S302 - from the server
    level = LEVELS[config.level](config)
    try:
        level.open()
    except OSError as trouble:
        if is_shortage(trouble.errno):
            raise  # the server notices, and starts another spawner with the next step
        return Refused(config, trouble)
    return level
