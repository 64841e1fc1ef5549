"""
The four levels of isolation, each as the same few moments in the life of a step. CS-11.

| moment | where | what is known |
|---|---|---|
| `open` | spawner, once | the server's configuration |
| `prepare` | supervisor, once | the profile of its steps, no job |
| `enter` | init (`sandbox.init`), once | the same |
| `confine_ahead` | the process that becomes the step | still no job |
| `confine` | the same process | its folder and its job |
| `end_all` | init; the supervisor without one | the step has ended, or has to |
| `renew` | init, between two steps | nothing of the last step is alive |
| `leave` | supervisor, last | nothing of any step is alive |

Everything that can be done before the job is known is done before it, so that no step waits for it.
The order within a moment matters: capabilities and ids are given up only after everything that
needs them, and the system call filter refuses mounts and namespaces, so these are made first.

`Process` limits and counts, and isolates nothing. `Landlocked` adds rules for files and the filter;
`OtherUser` does the same under a user id of its own. `Namespaced` gives a step a world of its own,
with Landlock and the filter on top. Which level a server uses is tried out, not believed:
`isolation_level` runs a probe step and takes the strongest level whose probe really is confined.

Standard library only: this runs between `fork` and `exec`.
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
from adapters_runtime.sandbox.isolation.cgroups import Group, Groups, Uncounted
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


class Process:
    """No isolation except a process tree of its own, with limits; the lowest level."""

    has_own_files = False
    """Whether steps have namespaces, with an init, and their folder is a file system."""

    def __init__(self, config: SandboxConfig) -> None:
        self.config = config
        self.profile = Profile()
        self.user = os.geteuid()
        self.group = os.getegid()
        self.groups: Groups | None = None
        self.counted: Group | None = None
        self.uncounted: str | None = None  # why no control group counts what steps hold

    def open(self) -> None:
        """What is needed once, in the spawner."""
        files = self.config.disk if self.has_own_files else 0  # they are memory too
        try:
            self.groups = cgroups.find(self.config, self.config.memory + files)
        except Uncounted as reason:
            self.uncounted = str(reason)

    def prepare(self, profile: Profile, place: int) -> None:
        """In the supervisor of steps with this profile, before anything of a step is forked."""
        self.profile = profile
        if self.groups:
            self.counted = self.groups.make(place)

    def leave(self) -> None:
        """In the supervisor, last of all, when its steps are dead."""
        if self.counted:
            self.counted.remove()

    def enter(self) -> None:
        """In the init, if there is one, before anything of a step is forked."""

    def renew(self) -> None:
        """In the init: make all that the last step could have changed as it was before it."""

    def is_as_new(self) -> bool:
        """In the init: whether `renew` is enough; if not, its sandbox is given up."""
        return False

    def confine_ahead(self) -> int | None:
        """In the step's process, before its job. Returns a listener for the supervisor."""
        if self.counted:
            self.counted.join()
        syscalls.prctl(syscalls.PR_SET_NO_NEW_PRIVS)
        _go_first_when_memory_runs_out()
        return None

    def confine(self, folder: str) -> None:
        """In the step's process, last of all; it lives in *folder*."""

    def own(self, fd: int) -> None:
        """Give an open file or folder to the step."""

    def end_all(self, statuses: Statuses) -> None:
        """In the parent of the step: kill all of it, and return when it is dead."""
        if self.counted:
            self.counted.kill()
        end_descendants(statuses)


class Landlocked(Process):
    """Files restricted by Landlock, system calls by a filter; the user is the server's own."""

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

    def confine_ahead(self) -> int | None:
        super().confine_ahead()
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


class OtherUser(Landlocked):
    """As `Landlocked`, under a user id of its own: for a server that is root."""

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
            os.kill(-1, signal.SIGKILL)  # all of that user at once, wherever they are
        finally:
            os._exit(0)


class Namespaced(Process):
    """
    Namespaces for processes, files, network and users, plus Landlock and the filter.

    The init is the first process of the namespace for processes: when it ends, for whatever reason,
    the kernel ends all others in it first. Its namespaces serve one step after another, since
    making them, most of all the one for the network, costs more than a short step. What a step can
    leave in them is made anew: its files, its shared memory and queues, its user namespace. Whoever
    used the network leaves counters, labels and ports that wait, so after such a step (`_traffic`)
    none follows; nor after one that changed anything that the init hands down to its children
    (`Inherited`). Decision 230.
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
            # What steps write beside their own folder is shared, so there they are one user.
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
        """All that the network namespace of a step tells of earlier ones; empty if it has none."""
        return [] if self.profile.network else [_content(f"/proc/net/{name}") for name in _TRAFFIC]

    def confine_ahead(self) -> int | None:
        super().confine_ahead()
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
        """No process can be created in the namespace while the kernel does this."""
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


class Refused(Process):
    """A level that cannot be used here: every step is refused with the reason."""

    def __init__(self, config: SandboxConfig, trouble: OSError) -> None:
        super().__init__(config)
        self._trouble = trouble

    def prepare(self, profile: Profile, place: int) -> None:
        raise self._trouble


LEVELS: dict[str, type[Process]] = {
    NAMESPACE: Namespaced,
    UID: OtherUser,
    LANDLOCK: Landlocked,
    PROCESS: Process,
}


def _rights_on(device: str) -> int:
    """
    A shared mapping of a writable `/dev/zero` is memory that is no longer counted once it is
    dropped.
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
    """What is made here must be visible to the step."""
    kept = os.umask(0o022)
    try:
        yield
    finally:
        os.umask(kept)


def _go_first_when_memory_runs_out() -> None:
    with suppress(OSError):  # a read-only /proc is no reason not to run
        identity.write("/proc/self/oom_score_adj", "1000")
