"""
Control groups: limits on a whole step, enforced by the kernel. Standard library only.

Control groups count whatever a step makes the kernel hold: pages that are no longer mapped, page
tables, pipes. A step's group is made below the group of the server, so the server's limits apply to
its steps too.

Version 2 has one more rule: a group that shares controllers with its children has no processes of
its own. So the server moves into a child, `SERVER`, if the server may arrange its group: systemd
has delegated it (`Delegate=`), or no other process is in it.
"""

import errno
import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import NamedTuple

from adapters_runtime.sandbox.isolation.config import SandboxConfig

SERVER = "wfcore-server"
STEP = "wfcore-step-"

_DELEGATED = ("trusted.delegate", "user.delegate")
_CONTROLLERS = {"memory", "pids"}
_OPTIONAL = ("memory.swap.max", "memory.oom.group", "memory.memsw.limit_in_bytes")
"""The settings that some kernels lack, and that have no effect without swap."""


class Uncounted(Exception):
    """Raised when no control group can be used here; the message says why."""


class Hierarchy(NamedTuple):
    """
    A folder below which groups are made, the limits of each group, and the name of the file that
    counts its processes killed for memory.
    """

    folder: str
    settings: Mapping[str, int]
    events: str = ""


class ControlGroups:
    """Makes the groups of steps, one for each place. Tries one at once, and raises `Uncounted`."""

    def __init__(self, hierarchies: tuple[Hierarchy, ...]) -> None:
        self._hierarchies = hierarchies
        self._prefix = f"{STEP}{os.getpid()}-"
        for hierarchy in hierarchies:
            _remove_abandoned(hierarchy.folder)
        try:
            self._try()
        except OSError as trouble:
            raise Uncounted(f"{trouble.strerror}: {trouble.filename or 'a group'}") from trouble

    def make(self, place: int) -> "ControlGroup":
        """The group of the step at *place*. Raises `OSError`."""
        return ControlGroup(self._hierarchies, f"{self._prefix}{place}")

    def remove(self, place: int) -> None:
        """Remove the group of a step whose supervisor was killed, once the step is dead."""
        for hierarchy in self._hierarchies:
            with suppress(OSError):
                os.rmdir(f"{hierarchy.folder}/{self._prefix}{place}")

    def _try(self) -> None:
        group = self.make(-1)
        try:
            pid = os.fork()
            if pid == 0:
                os._exit(not group.join_checked())
            if os.waitpid(pid, 0)[1]:
                raise OSError(errno.EPERM, "a process that joins a group is not in it")
        finally:
            group.remove()


class ControlGroup:
    """
    The group of one step, used through descriptors, because the supervisor soon cannot see the
    folder.
    """

    def __init__(self, hierarchies: tuple[Hierarchy, ...], name: str) -> None:
        self._name = name
        self._parents: list[int] = []
        self._entries: list[int] = []
        self._memory = self._events = self._kill = -1
        for folder, settings, events in hierarchies:
            parent = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            self._parents.append(parent)
            _make(name, parent)
            self._entries.append(self._open("cgroup.procs", parent))
            for setting, value in settings.items():
                self._set(setting, value, parent)
            if events:
                self._events = self._open(events, parent, os.O_RDONLY)
                with suppress(FileNotFoundError):
                    self._kill = self._open("cgroup.kill", parent)

    def join(self) -> None:
        """Add this process and all that it forks later. Raises `OSError`."""
        for entry in self._entries:
            os.write(entry, b"0")

    def join_checked(self) -> bool:
        """Add this process; returns whether it is in the group."""
        with suppress(OSError):
            self.join()
            with open("/proc/self/cgroup") as memberships:
                return memberships.read().count(f"/{self._name}\n") == len(self._entries)
        return False

    def ran_out(self) -> bool:
        """Whether the kernel killed a process of the group for lack of memory."""
        counts = os.pread(self._events, 4096, 0).decode().splitlines()
        return any(line.startswith("oom_kill ") and line != "oom_kill 0" for line in counts)

    def kill(self) -> None:
        """Kill all processes of the group at once, if the kernel can (version 2)."""
        if self._kill >= 0:
            os.write(self._kill, b"1")

    def remove(self) -> None:
        """
        Remove the group, whose processes are dead. If the kernel still holds it, the next spawner
        removes it.
        """
        for parent in self._parents:
            with suppress(OSError):
                os.rmdir(self._name, dir_fd=parent)
            os.close(parent)
        for fd in (*self._entries, self._events, self._kill):
            if fd >= 0:
                os.close(fd)

    def _open(self, name: str, parent: int, mode: int = os.O_WRONLY) -> int:
        return os.open(f"{self._name}/{name}", mode | os.O_CLOEXEC, dir_fd=parent)

    def _set(self, name: str, value: int, parent: int) -> None:
        try:
            fd = self._open(name, parent)
        except FileNotFoundError:
            if name not in _OPTIONAL:
                raise
            return
        try:
            os.write(fd, str(value).encode())
        finally:
            os.close(fd)


def find(config: SandboxConfig, memory: int) -> ControlGroups:
    """The groups for steps that may use *memory* bytes each. Raises `Uncounted`."""
    try:
        places = dict(_places())
    except OSError as trouble:
        raise Uncounted(f"this process's control groups are not known: {trouble}") from trouble
    if "memory" in places:
        return ControlGroups(tuple(_of_version_1(places, memory, config.processes)))
    if "" in places:
        return ControlGroups((_of_version_2(places[""], memory, config.processes),))
    raise Uncounted("no control groups are mounted")


def _of_version_1(places: Mapping[str, str], memory: int, processes: int) -> Iterator[Hierarchy]:
    limits = {"memory.limit_in_bytes": memory, "memory.memsw.limit_in_bytes": memory}
    yield Hierarchy(places["memory"], limits, "memory.oom_control")
    if "pids" in places:
        yield Hierarchy(places["pids"], {"pids.max": processes})


def _of_version_2(own: str, memory: int, processes: int) -> Hierarchy:
    base = os.path.dirname(own) if os.path.basename(own) == SERVER else own
    try:
        _share_controllers(base)
    except OSError as trouble:
        raise Uncounted(f"{base} may not be arranged: {trouble.strerror}") from trouble
    limits = {"memory.max": memory, "memory.swap.max": 0, "memory.oom.group": 1}
    return Hierarchy(base, {**limits, "pids.max": processes}, "memory.events")


def _share_controllers(base: str) -> None:
    """Enable limits for children of *base*. Raises `OSError` and `Uncounted`."""
    if not set(_read(f"{base}/cgroup.controllers").split()) >= _CONTROLLERS:
        raise Uncounted(f"{base} was not given the controllers memory and pids")
    if set(_read(f"{base}/cgroup.subtree_control").split()) >= _CONTROLLERS:
        return
    members = _read(f"{base}/cgroup.procs").split()
    if not (_is_delegated(base) or set(members) <= _lineage()):
        raise Uncounted(f"others are in {base}, and nobody has delegated it to the server")
    with suppress(FileExistsError):
        os.mkdir(f"{base}/{SERVER}")
    for member in members:
        with suppress(ProcessLookupError):
            _write(f"{base}/{SERVER}/cgroup.procs", member)
    _write(f"{base}/cgroup.subtree_control", "+memory +pids")


def _is_delegated(folder: str) -> bool:
    for name in _DELEGATED:
        with suppress(OSError):
            if os.getxattr(folder, name) == b"1":
                return True
    return False


def _lineage() -> set[str]:
    """This process and its ancestors."""
    found: set[str] = set()
    pid = str(os.getpid())
    while pid != "0":
        found.add(pid)
        pid = _read(f"/proc/{pid}/stat").rpartition(")")[2].split()[1]
    return found


def _places() -> Iterator[tuple[str, str]]:
    """The controllers and the folder of this process's group in each. Version 2 is named ""."""
    own = dict(_memberships())
    for line in _read("/proc/self/mountinfo").splitlines():
        before, _, after = line.partition(" - ")
        root, mounted = before.split()[3:5]
        kind, _, options = after.split()[:3]
        names = {"cgroup": options.split(","), "cgroup2": [""]}.get(kind, [])
        for name in names:
            if name in own and (own[name] + "/").startswith(root.rstrip("/") + "/"):
                yield name, (mounted + own[name][len(root.rstrip("/")) :]).rstrip("/")


def _memberships() -> Iterator[tuple[str, str]]:
    for line in _read("/proc/self/cgroup").splitlines():
        _, controllers, path = line.split(":", 2)
        for controller in controllers.split(","):
            yield controller, path


def _make(name: str, parent: int) -> None:
    try:
        os.mkdir(name, 0o755, dir_fd=parent)
    except FileExistsError:  # left by a step whose group the kernel still held
        os.rmdir(name, dir_fd=parent)
        os.mkdir(name, 0o755, dir_fd=parent)


def _remove_abandoned(folder: str) -> None:
    """Remove the groups of spawners that were killed."""
    with suppress(OSError):
        for name in os.listdir(folder):
            pid = name.removeprefix(STEP).partition("-")[0]
            if name.startswith(STEP) and not os.path.exists(f"/proc/{pid}"):
                with suppress(OSError):
                    os.rmdir(f"{folder}/{name}")


def _read(path: str) -> str:
    with open(path) as file:
        return file.read()


def _write(path: str, text: str) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(fd, text.encode())
    finally:
        os.close(fd)
