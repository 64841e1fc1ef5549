"""
The four levels of isolation, with the same methods, in the order of the life of a step. CS-11.

| method | called in | state |
|---|---|---|
| `open` | spawner, once | the server's configuration is known |
| `prepare` | supervisor, once | the profile of its steps is known, no job |
| `enter` | init (`sandbox.init`), once | as before |
| `confine_early` | the step's process | still no job |
| `confine` | the step's process | its folder and its job are known |
| `end_all` | init, or the supervisor without one | the step has ended, or must end |
| `renew` | init, between two steps | no process of the last step is alive |
| `leave` | supervisor, last | no process of any step is alive |

Whatever does not need the job is done before it, so that no step waits for it. The order within a
method matters: capabilities and ids are given up only after everything that needs them, and mounts
and namespaces are made before the system call filter, which refuses them.

`ProcessLevel` limits and counts, and isolates nothing. `LandlockLevel` adds rules for files and the
filter; `UserLevel` does the same under a user id of its own. `NamespaceLevel` gives a step
namespaces of its own, with Landlock and the filter on top. A server uses the strongest level whose
probe step is really confined (`isolation_level`).

Standard library only: the code runs between `fork` and `exec`.
"""

import fcntl
import os
import signal
import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import NoReturn

from adapters_runtime.sandbox.isolation import cgroups, identity, landlock, seccomp, syscalls
from adapters_runtime.sandbox.isolation.cgroups import ControlGroup, ControlGroups, Uncounted
from adapters_runtime.sandbox.isolation.config import (
    LANDLOCK,
    NAMESPACE,
    PROCESS,
    STEP_DIR,
    UID,
    Profile,
    SandboxConfig,
)
from adapters_runtime.sandbox.isolation.filesystem import (
    DEVICES,
    RESOLVING,
    SYSTEM,
    RootTemplate,
    carve,
    settings,
)
from adapters_runtime.sandbox.isolation.inherited import Inherited
from adapters_runtime.sandbox.isolation.seccomp import SyscallFilter
from adapters_runtime.sandbox.process_tree import Statuses, end_descendants, reap

_TRAFFIC = ("netstat", "snmp", "snmp6", "ip6_flowlabel")
_HARMLESS = ("cpuinfo", "meminfo", "stat", "loadavg", "uptime", "version", "filesystems")


class ProcessLevel:
    """No isolation except a process tree of its own, with limits; the lowest level."""

    has_own_files = False
    """Whether steps have namespaces, with an init, and their folder is a file system."""

    def __init__(self, config: SandboxConfig) -> None:
        self.config = config
        self.profile = Profile()
        self.user = os.geteuid()
        self.group = os.getegid()
        self.groups: ControlGroups | None = None
        self.counted: ControlGroup | None = None
        self.uncounted: str | None = None  # why no control group counts what steps use

    def open(self) -> None:
        """Prepare in the spawner what all steps need."""
        files = self.config.disk if self.has_own_files else 0  # which are memory, too
        try:
            self.groups = cgroups.find(self.config, self.config.memory + files)
        except Uncounted as reason:
            self.uncounted = str(reason)

    def prepare(self, profile: Profile, place: int) -> None:
        """Prepare the supervisor of steps of *profile*, before a step's process is forked."""
        self.profile = profile
        if self.groups:
            self.counted = self.groups.make(place)

    def leave(self) -> None:
        """Called in the supervisor after its steps are dead: release what `prepare` made."""
        if self.counted:
            self.counted.remove()

    def enter(self) -> None:
        """Enter the namespaces in the init, if there is one, before a step's process is forked."""

    def renew(self) -> None:
        """Undo in the init all that the last step could have changed."""

    def is_as_new(self) -> bool:
        """Whether `renew` is enough for another step. Otherwise the sandbox is given up."""
        return False

    def confine_early(self) -> int | None:
        """Confine the step's process before its job. Returns a listener for the supervisor."""
        if self.counted:
            self.counted.join()
        syscalls.prctl(syscalls.PR_SET_NO_NEW_PRIVS)
        _be_killed_first_without_memory()
        return None

    def confine(self, folder: str) -> None:
        """Confine the step's process to its *folder*, as the last call before the program."""

    def own(self, fd: int) -> None:
        """Make the step the owner of an open file or folder."""

    def end_all(self, statuses: Statuses) -> None:
        """Kill all processes of the step, in their parent, and return when they are dead."""
        if self.counted:
            self.counted.kill()
        end_descendants(statuses)


class LandlockLevel(ProcessLevel):
    """Landlock rules for files and a filter for system calls, under the server's own user."""

    _as_server = True

    def open(self) -> None:
        super().open()
        self._settings = settings()
        facts = {
            "same_files": True,
            "same_user": self._as_server,
            "uncounted": bool(self.uncounted),
        }
        self._closed = SyscallFilter(seccomp.NO_SOCKETS, **facts).ready()
        self._open = SyscallFilter(seccomp.SHARED_NETWORK, watched=True, **facts).ready()

    def confine(self, folder: str) -> None:
        landlock.restrict(self._rules(folder))

    def prepare(self, profile: Profile, place: int) -> None:
        super().prepare(profile, place)
        if not landlock.version():
            raise OSError(38, "the kernel has no Landlock")

    def confine_early(self) -> int | None:
        super().confine_early()
        self._become()
        return (self._open if self.profile.network else self._closed).install()

    def _become(self) -> None:
        if os.geteuid() == 0:
            syscalls.drop_possible_capabilities()
            syscalls.drop_capabilities()

    def _rules(self, folder: str) -> list[tuple[str, int]]:
        read = [f"/{name}" for name in SYSTEM]
        read += [f"/etc/{name}" for name in (*self._settings, "passwd", "group", *RESOLVING)]
        named = [*self.config.reads, *self.profile.readable]
        rules = [(path, landlock.READ) for path in carve((*read, *named), self.config.hidden)]
        rules += [(f"/proc/{name}", landlock.READ_FILE) for name in _HARMLESS]
        rules += [(f"/dev/{name}", _rights_on(name)) for name in DEVICES]
        rules += [("/proc/self", landlock.READ_FILE | landlock.READ_DIR)]
        rules += [(path, landlock.READ | landlock.WRITE) for path in (folder, *self.config.writes)]
        return rules


class UserLevel(LandlockLevel):
    """`LandlockLevel` under a user id of its own, for a server that is root."""

    _as_server = False

    def prepare(self, profile: Profile, place: int) -> None:
        super().prepare(profile, place)
        if os.geteuid() != 0:
            raise OSError(1, "the server is not root")
        self.user = self.group = identity.user_id(place)

    def _become(self) -> None:
        os.setgroups([])
        identity.become(self.user, self.group)

    def own(self, fd: int) -> None:
        os.fchown(fd, self.user, self.group)

    def end_all(self, statuses: Statuses) -> None:
        pid = os.fork()
        if pid == 0:
            self._kill_all()
        os.waitpid(pid, 0)
        end_descendants(statuses)

    def _kill_all(self) -> NoReturn:
        try:
            identity.become(self.user, self.group)
            os.kill(-1, signal.SIGKILL)  # all processes of that user at once
        finally:
            os._exit(0)


class NamespaceLevel(ProcessLevel):
    """
    Namespaces for processes, files, network and users, plus Landlock and the filter.

    The init is the first process of the process namespace: when the init ends, for whatever reason,
    the kernel ends all other processes in the namespace first. The namespaces serve one step after
    another, since making the namespaces, above all the network namespace, costs more than a short
    step. What a step can leave in the namespaces is made anew: its files, its shared memory and
    queues, its user namespace.

    No step follows a step that used the network (`_traffic`), which leaves counters, labels and
    waiting ports, or a step that changed what the init hands down to its children (`Inherited`).
    Decision 230.
    """

    has_own_files = True

    def open(self) -> None:
        super().open()
        if os.geteuid() == 0:
            syscalls.unshare(syscalls.NEW_NS)
            self.group = identity.common_group_id()
        else:
            syscalls.unshare(syscalls.NEW_USER | syscalls.NEW_NS)
            identity.map_own_user(self.user, self.user, self.group, self.group)
        self._quotas = identity.own_quotas()
        with _common_umask():
            self._template = RootTemplate(self.config)
        uncounted = bool(self.uncounted)
        self._closed = SyscallFilter(seccomp.OWN_NETWORK, uncounted=uncounted).ready()
        self._open = SyscallFilter(
            seccomp.SHARED_NETWORK, watched=True, uncounted=uncounted
        ).ready()

    def prepare(self, profile: Profile, place: int) -> None:
        super().prepare(profile, place)
        if os.geteuid() == 0:
            # Steps share what they write outside their own folders, so they need one user.
            shared = bool(self.config.writes)
            self.user = self.group if shared else identity.namespaced_user_id(place)

    def enter(self) -> None:
        new = syscalls.NEW_NS | syscalls.NEW_IPC | syscalls.NEW_UTS | syscalls.NEW_CGROUP
        syscalls.unshare(new if self.profile.network else new | syscalls.NEW_NET)
        with _common_umask():
            self._template.enter(self.profile, self.user, self.group)
        socket.sethostname("localhost")
        if not self.profile.network:
            _switch_loopback_on()
        self._unused = self._traffic()
        self._inherited = Inherited()

    def renew(self) -> None:
        syscalls.unshare(syscalls.NEW_IPC)
        with _common_umask():
            self._template.renew(self.user, self.group)

    def is_as_new(self) -> bool:
        return self._inherited.is_unchanged() and self._traffic() == self._unused

    def _traffic(self) -> list[bytes]:
        """
        All counters of the network namespace, or nothing if the step has no network namespace of
        its own.
        """
        return [] if self.profile.network else [_content(f"/proc/net/{name}") for name in _TRAFFIC]

    def confine_early(self) -> int | None:
        super().confine_early()
        if os.geteuid() == 0:
            os.setgroups([])
            identity.become_keeping_capabilities(self.user, self.group)
        syscalls.unshare(syscalls.NEW_USER)
        identity.map_own_user(identity.INSIDE, self.user, identity.INSIDE, self.group)
        identity.hold_quotas(self._quotas)
        identity.become(identity.INSIDE, identity.INSIDE)
        if landlock.version():
            landlock.restrict(self._rules())
        return (self._open if self.profile.network else self._closed).install()

    def own(self, fd: int) -> None:
        os.fchown(fd, self.user, self.group)

    def end_all(self, statuses: Statuses) -> None:
        """
        Kill all other processes of the namespace, during which the kernel admits no new processes.
        """
        with suppress(ProcessLookupError):
            os.kill(-1, signal.SIGKILL)
        while reap(statuses, wait=True):
            pass

    def _rules(self) -> list[tuple[str, int]]:
        rules = [("/", landlock.READ)]
        rules += [(f"/dev/{name}", _rights_on(name)) for name in DEVICES]
        return rules + [
            (path, landlock.READ | landlock.WRITE) for path in (STEP_DIR, *self.config.writes)
        ]


class RefusingLevel(ProcessLevel):
    """A level that cannot be used on this machine. Every step is refused with the reason."""

    def __init__(self, config: SandboxConfig, trouble: OSError) -> None:
        super().__init__(config)
        self._trouble = trouble

    def prepare(self, profile: Profile, place: int) -> None:
        raise self._trouble


LEVELS: dict[str, type[ProcessLevel]] = {
    NAMESPACE: NamespaceLevel,
    UID: UserLevel,
    LANDLOCK: LandlockLevel,
    PROCESS: ProcessLevel,
}


def _rights_on(device: str) -> int:
    """
    The rights on a file in /dev. `/dev/zero` is never writable: a shared mapping of it would be
    memory that nothing counts once it is unmapped.
    """
    return landlock.READ if device == "zero" else landlock.DEVICE


def _content(path: str) -> bytes:
    with suppress(FileNotFoundError), open(path, "rb", buffering=0) as file:  # no IPv6 here
        return file.readall()
    return b""


def _switch_loopback_on() -> None:
    up_and_running = struct.pack("16sH14x", b"lo", 0x41)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, 0x8914, up_and_running)


@contextmanager
def _common_umask() -> Iterator[None]:
    """A umask with which the step can read what is made meanwhile."""
    kept = os.umask(0o022)
    try:
        yield
    finally:
        os.umask(kept)


def _be_killed_first_without_memory() -> None:
    with suppress(OSError):  # a read-only /proc is no reason not to run
        identity.write("/proc/self/oom_score_adj", "1000")
