"""
Who a step is: a user id that nobody else has, and no capability. Standard library only.

A server that is root runs steps as a user that nobody else is: all as the same one where each has
a user namespace to itself, else each as one of its own, taken from the spawner's process id and
the step's place among the spawner's children, so that no two living steps share one.
"""

import os
from collections.abc import Collection

from adapters_runtime.confine.syscalls import drop_capabilities, drop_possible_capabilities

PLACES = 512
INSIDE = 1_000
"""How a step in a user namespace sees its own user and group."""

_FIRST, _PIDS = 0x40000000, 1 << 22
_FIRST_OF_FEW = 10_000


class NoPlace(OSError):
    """Every user id for steps is taken."""


def free_place(taken: Collection[int]) -> int:
    """A place that is not *taken*. Raises `NoPlace`."""
    for place in range(PLACES):
        if place not in taken:
            return place
    raise NoPlace(11, f"{PLACES} steps run already, which is as many as there are user ids")


def common_user_id() -> int:
    """The user id of all steps of a server that is root; our own where we are not."""
    return min(_FIRST, _last_user_id()) if os.geteuid() == 0 else os.geteuid()


def user_id(place: int) -> int:
    """The user id of the step at *place* alone. Only for root. Raises `OSError`."""
    last = _last_user_id()
    if last < _FIRST_OF_FEW + PLACES:
        raise OSError(22, f"there are no other user ids here than those up to {last}")
    if last > _FIRST + _PIDS * PLACES:
        return _FIRST + 1 + (os.getpid() % _PIDS) * PLACES + place
    sets = (last - _FIRST_OF_FEW) // PLACES
    return _FIRST_OF_FEW + (os.getpid() % sets) * PLACES + place


def become(user: int, group: int) -> None:
    """Be *user* of *group* alone, with no capability and no way to one."""
    drop_possible_capabilities()
    os.setresgid(group, group, group)
    os.setresuid(user, user, user)
    drop_capabilities()


def map_user(pid: int, user: int, group: int) -> None:
    """Let the new user namespace of *pid* know *user* and *group*, as `INSIDE`."""
    write(f"/proc/{pid}/uid_map", f"{INSIDE} {user} 1")
    write(f"/proc/{pid}/gid_map", f"{INSIDE} {group} 1")


def map_own_user(user: int, group: int) -> None:
    """Let our own new user namespace know us under the ids that we had."""
    write("/proc/self/setgroups", "deny")
    write("/proc/self/uid_map", f"{user} {user} 1")
    write("/proc/self/gid_map", f"{group} {group} 1")


def write(path: str, text: str) -> None:
    """Write *text* to an existing file at once."""
    fd = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(fd, text.encode())
    finally:
        os.close(fd)


def _last_user_id() -> int:
    last = 0
    with open("/proc/self/uid_map", "rb") as ranges:
        for line in ranges:
            first, _, size = map(int, line.split())
            last = max(last, first + size - 1)
    return last
