"""
The identity of a step: a user id of its own, without capabilities. Standard library only.

A server that runs as root runs each step as a different user, derived from the spawner's process id
and the step's place among the spawner's children, so that no two living steps share one: what the
kernel limits per user (inotify instances, pending signals, pipe buffers) one step cannot use up for
another. If the server is not root, user namespaces divide some of that.
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
"""How a step in a user namespace sees its own user and group."""

_FIRST, _PIDS = 0x40000000, 1 << 22
_FIRST_OF_FEW = 10_000
_SHARES = 16
"""Of what a user has of a quota, one step in a namespace has this part."""
_KEEP_CAPABILITIES = 1 << 2  # SECBIT_NO_SETUID_FIXUP


class NoPlace(OSError):
    """Every user id for steps is taken."""


def free_place(taken: Collection[int]) -> int:
    """A place that is not in *taken*. Raises `NoPlace`."""
    for place in range(PLACES):
        if place not in taken:
            return place
    raise NoPlace(11, f"{PLACES} steps run already, which is as many as there are user ids")


def common_group_id() -> int:
    """The group id of all steps in namespaces if the server is root."""
    return min(_FIRST, _last_user_id())


def namespaced_user_id(place: int) -> int:
    """As `user_id`; if there are too few ids, the last one: a namespace divides quotas too."""
    try:
        return user_id(place)
    except OSError:
        return _last_user_id()


def user_id(place: int) -> int:
    """
    The user id of the step at *place*, which no other step has. Only for root. Raises `OSError`.
    """
    last = _last_user_id()
    if last < _FIRST_OF_FEW + PLACES:
        raise OSError(22, f"there are no other user ids here than those up to {last}")
    if last > _FIRST + _PIDS * PLACES:
        return _FIRST + 1 + (os.getpid() % _PIDS) * PLACES + place
    sets = (last - _FIRST_OF_FEW) // PLACES
    return _FIRST_OF_FEW + (os.getpid() % sets) * PLACES + place


def become(user: int, group: int) -> None:
    """Become *user* in *group* only, without capabilities or any way to regain one."""
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
    """Limit the present user namespace, in which we have capabilities, to *quotas*."""
    for path, most in quotas.items():
        with suppress(OSError):  # an old kernel, which has no such setting
            write(path, most)


def become_keeping_capabilities(user: int, group: int) -> None:
    """Become *user*, who is charged for a new namespace, while still allowed to create it."""
    prctl(PR_SET_SECUREBITS, _KEEP_CAPABILITIES)
    os.setresgid(group, group, group)
    os.setresuid(user, user, user)


def map_own_user(inside: int, user: int, inside_group: int, group: int) -> None:
    """
    See our previous *user* and *group* as these two in our own new user namespace.

    Who has changed its user may not write about itself in /proc before it says that it has nothing
    to hide: here only what every step is forked from.
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
