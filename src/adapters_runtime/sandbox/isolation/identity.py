"""
The identity of a step: a user id of its own, without capabilities. Standard library only.

A server that is root runs each step as a different user. The user id is derived from the spawner's
process id and the step's place among the spawner's children, so no two living steps share a user,
and no step can use up for another step what the kernel limits per user (inotify instances, pending
signals, pipe buffers). If the server is not root, user namespaces divide some of these limits.
"""

import os
from collections.abc import Collection, Mapping
from contextlib import suppress

from adapters_runtime.sandbox.isolation.syscalls import (
    PR_SET_DUMPABLE,
    PR_SET_SECUREBITS,
    drop_capabilities,
    drop_possible_capabilities,
    prctl,
)

PLACES = 512
INSIDE = 1_000
"""The user id and group id that a step in a user namespace sees as its own."""

_FIRST, _PIDS = 0x40000000, 1 << 22
_FIRST_OF_FEW = 10_000
_SHARES = 16
"""One step in a namespace has this fraction (1/16) of a user's quota."""
_KEEP_CAPABILITIES = 1 << 2  # SECBIT_NO_SETUID_FIXUP


class NoPlace(OSError):
    """Raised when every user id for steps is taken."""


def free_place(taken: Collection[int]) -> int:
    """The first place that is not in *taken*. Raises `NoPlace`."""
    for place in range(PLACES):
        if place not in taken:
            return place
    raise NoPlace(11, f"{PLACES} steps run already, which is as many as there are user ids")


def common_group_id() -> int:
    """The group id of all steps in namespaces if the server is root."""
    return min(_FIRST, _last_user_id())


def namespaced_user_id(place: int) -> int:
    """`user_id`, or the last id if there are too few: a namespace divides quotas, too."""
    try:
        return user_id(place)
    except OSError:
        return _last_user_id()


def user_id(place: int) -> int:
    """
    The user id of the step at *place*, if the server is root. No other step has the same user id.

    Raises `OSError`.
    """
    last = _last_user_id()
    if last < _FIRST_OF_FEW + PLACES:
        raise OSError(22, f"there are no other user ids here than those up to {last}")
    if last > _FIRST + _PIDS * PLACES:
        return _FIRST + 1 + (os.getpid() % _PIDS) * PLACES + place
    sets = (last - _FIRST_OF_FEW) // PLACES
    return _FIRST_OF_FEW + (os.getpid() % sets) * PLACES + place


def become(user: int, group: int) -> None:
    """Become *user* in *group* only, without capabilities or any way to regain a capability."""
    drop_possible_capabilities()
    os.setresgid(group, group, group)
    os.setresuid(user, user, user)
    drop_capabilities()


def own_quotas() -> dict[str, str]:
    """The share of a user's inotify quotas for one step, as settings of its user namespace."""
    found = {}
    for name in ("instances", "watches"):
        with suppress(OSError), open(f"/proc/sys/fs/inotify/max_user_{name}") as most:
            found[f"/proc/sys/user/max_inotify_{name}"] = str(max(1, int(most.read()) // _SHARES))
    return found


def hold_quotas(quotas: Mapping[str, str]) -> None:
    """Limit this process's user namespace to *quotas*. Needs capabilities in the namespace."""
    for path, most in quotas.items():
        with suppress(OSError):  # an old kernel, which has no such setting
            write(path, most)


def become_keeping_capabilities(user: int, group: int) -> None:
    """
    Become *user* of *group*, but keep the capability to make namespaces, which count to *user*.
    """
    prctl(PR_SET_SECUREBITS, _KEEP_CAPABILITIES)
    os.setresgid(group, group, group)
    os.setresuid(user, user, user)


def map_own_user(inside: int, user: int, inside_group: int, group: int) -> None:
    """
    Map *user* and *group* to *inside* and *inside_group* in this process's new user namespace.

    A process that has changed its user may write its own maps in /proc only once it is dumpable.
    That shows other processes only memory that every step is forked from.
    """
    prctl(PR_SET_DUMPABLE)
    write("/proc/self/setgroups", "deny")
    write("/proc/self/uid_map", f"{inside} {user} 1")
    write("/proc/self/gid_map", f"{inside_group} {group} 1")


def write(path: str, text: str) -> None:
    """Write *text* to an existing file in one call."""
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
