"""
The spawner: a small single-threaded program of the server that forks supervisors.

The spawner starts no step itself: a supervisor forks the step's process or has an init fork it, and
`launch` turns that process into the step's program.

For each step the spawner receives one end of a socket pair, the step's channel, and hands the
channel to a supervisor that is free after a step, or to a new supervisor. While the server is
quiet, the spawner forks supervisors in advance (`pool`). Jobs travel on the step's channel alone,
so the spawner never reads one, and it holds nothing of the server's memory or environment. It keeps
its copy of the step's channel open until the supervisor is free or has ended, and if somebody
killed the supervisor, until its orphans are dead. So the server reads "end of file" only when no
process of the step is alive.

The spawner ends when the server and the last supervisor are gone. Standard library only; run by
`client.Spawner` through `main`, with its end of a SOCK_SEQPACKET pair as standard input.
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
from adapters_runtime.sandbox.isolation.levels import LEVELS, ProcessLevel, RefusingLevel
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
"""The quiet time before the next spare is forked, while the server waits for a step to begin."""


class _SupervisorProcess:
    """A supervisor, for the spawner: its process, the channel to it, and its present step."""

    def __init__(self, pid: int, profile: Profile, place: int, channel: socket.socket) -> None:
        self.pid = pid
        self.profile = profile
        self.place = place
        self.channel = channel
        self.number: int | None = None
        self.step_channel: socket.socket | None = None

    def give(self, number: int, step_channel: socket.socket) -> None:
        """Hand the step *number* over. Raises `ConnectionError` if the supervisor is dead."""
        socket.send_fds(self.channel, [START], [step_channel.fileno()])
        self.number, self.step_channel = number, step_channel

    def receive(self) -> bytes | None:
        """The message that the supervisor is free, b"" if it has ended, or None if it is busy."""
        try:
            return self.channel.recv(1, socket.MSG_DONTWAIT)
        except BlockingIOError:
            return None
        except ConnectionError:
            return b""

    def end_step(self) -> None:
        """Close the channel of the step, which is dead."""
        if self.step_channel:
            self.step_channel.close()
        self.number = self.step_channel = None

    def close(self) -> None:
        self.channel.close()
        self.end_step()


class _SpawnerLoop:
    def __init__(self, control: socket.socket, level: ProcessLevel) -> None:
        self._control = control
        self._level = level
        self._self = os.pidfd_open(os.getpid())  # it tells supervisors of the spawner's end
        self._supervisors: dict[int, _SupervisorProcess] = {}
        self._busy: dict[int, _SupervisorProcess] = {}  # by their channels
        self._wake, awaken = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.set_wakeup_fd(awaken, warn_on_full_buffer=False)
        self._poll = select.poll()
        self._poll.register(self._wake, select.POLLIN)
        self._poll.register(control, select.POLLIN)
        self._has_server = True
        self._spares: Pools[Profile, _SupervisorProcess] = Pools(
            Profile(), is_large=lambda profile: profile.prestart is not None
        )

    def run(self) -> None:
        """Serve until the server is gone and the last supervisor has ended."""
        while self._has_server or self._supervisors:
            events = self._poll.poll(self._pause_ms())
            for fd, _ in events:
                if fd == self._wake:
                    self._on_child()
                elif fd == self._control.fileno():
                    self._on_control()
                else:
                    self._on_supervisor(fd)
            if not events:
                self._fork_spare()

    def _pause_ms(self) -> float | None:
        if not self._has_server:
            return None
        if self._spares.missing() is not None:
            return _QUIET_MS
        pause_s = self._spares.next_surplus_s(time.monotonic())
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
            self._assign(number, unpacked(profile), socket.socket(fileno=fds[0]))
        elif message[:1] == END:
            self._end(int(message[1:]))

    def _on_server_gone(self) -> None:
        self._has_server = False
        self._poll.unregister(self._control)
        for spare in self._spares:
            spare.channel.close()  # which ends the supervisor

    def _assign(self, number: int, profile: Profile, step_channel: socket.socket) -> None:
        """Hand the step *number* to a spare supervisor of its profile, or to a new one."""
        spare = self._spares.take(profile, time.monotonic())
        try:
            try:
                self._give(spare or self._fork(profile), number, step_channel)
            except ConnectionError:  # somebody killed the spare while it waited
                self._give(self._fork(profile), number, step_channel)
        except OSError as trouble:  # too many processes or files
            if trouble.errno == errno.ENOSPC:  # that is how the kernel says it
                trouble = OSError("the machine allows no more namespaces")
            refuse(step_channel, f"no supervisor for it: {trouble.strerror or trouble}", trouble)
            step_channel.close()

    def _give(self, to: _SupervisorProcess, number: int, step_channel: socket.socket) -> None:
        to.give(number, step_channel)
        self._is_busy(to, True)

    def _on_supervisor(self, fd: int) -> None:
        """Handle a supervisor that is free for another step, or has ended."""
        supervisor = self._busy.get(fd)
        message = supervisor.receive() if supervisor else None
        if supervisor is None or message is None:
            return  # it ended earlier in this round, and its descriptor's number is in use again
        self._is_busy(supervisor, False)
        if not message:
            return  # SIGCHLD follows
        supervisor.end_step()
        if self._has_server and self._spares.wants(supervisor.profile):
            with suppress(ConnectionError):
                supervisor.channel.send(START)
                self._spares.add(supervisor.profile, supervisor)
        else:
            supervisor.channel.close()  # which ends the supervisor

    def _is_busy(self, supervisor: _SupervisorProcess, is_busy: bool) -> None:
        fd = supervisor.channel.fileno()
        if is_busy:
            self._busy[fd] = supervisor
            self._poll.register(fd, select.POLLIN)
        elif self._busy.pop(fd, None):
            self._poll.unregister(fd)

    def _fork_spare(self) -> None:
        """End surplus spares and fork a missing one, while no start of a step waits for it."""
        if not self._has_server:
            return
        for spare in self._spares.surplus(time.monotonic()):
            spare.channel.close()  # which ends the supervisor
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

    def _become_supervisor(self, profile: Profile, place: int, channel: socket.socket) -> NoReturn:
        status = 1
        signal.set_wakeup_fd(-1)  # the spawner's pipe, which is closed here
        try:
            low, high = sorted((channel.fileno(), self._self))
            for first, beyond in ((3, low), (low + 1, high), (high + 1, 1 << 20)):
                os.closerange(first, beyond)
            supervise(self._level, profile, place, channel, self._self)
            status = 0
        except BaseException as trouble:  # a process's last resort: report; the spawner cleans up
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
        # The step must not inherit the server's settings: a shell ignores some in its background.
        signal.signal(number, signal.SIG_IGN if number in IGNORED else signal.SIG_DFL)
    signal.signal(signal.SIGCHLD, lambda *_: None)  # a handler, so that the wake-up pipe is written
    gc.disable()
    gc.freeze()
    _SpawnerLoop(control, _open_level(control)).run()
    sys.exit(0)


def _open_level(control: socket.socket) -> ProcessLevel:
    """
    The level that the server requests, or a level that refuses all steps if the requested level
    cannot be used.
    """
    message = control.recv(LONGEST)
    if not message:
        sys.exit(0)  # the server is gone already
    config = SandboxConfig(*marshal.loads(message))  # noqa: S302 - from the server
    level = LEVELS[config.level](config)
    try:
        level.open()
    except OSError as trouble:
        if is_shortage(trouble.errno):
            raise  # the server notices the end, and starts another spawner for the next step
        return RefusingLevel(config, trouble)
    return level
