"""
Process trees: how to end them exactly, and how much memory they use.

A killed process group is not a killed tree: a process that called `setsid` survives. The caller of
these functions must be a subreaper, so that every orphan among its descendants becomes its child.
Once the caller has no child, it has no descendant. Until then: stop all, kill all, reap.

A memory limit per process does not limit a hundred processes. Control groups
(`sandbox.isolation.cgroups`) count trees exactly, but not every server may create them; otherwise
the supervisor measures, more often the nearer the tree is to its limit.

Standard library only: the spawner and the supervisors import it.
"""

import os
import signal
import time
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress

_WALL = 0x40000000  # also children whose end sends another signal than SIGCHLD
_PAUSE_S = 0.0005
_QUIET_ROUNDS = 3

_children_listed = os.path.exists(f"/proc/self/task/{os.getpid()}/children")


Statuses = dict[int, int | None]
"""The wait status by process id, for the wanted processes; None while a process runs."""


def reap(statuses: Statuses, wait: bool = False) -> bool:
    """
    Reap every child that has ended; returns whether any child is left.

    A wait status goes to *statuses* if the child is wanted there. *wait*: until at least one child
    has ended.
    """
    while True:
        try:
            pid, status = os.waitpid(-1, _WALL if wait else os.WNOHANG | _WALL)
        except ChildProcessError:
            return False
        if not pid:
            return True
        wait = False
        if pid in statuses and statuses[pid] is None:
            statuses[pid] = status


def end_descendants(statuses: Statuses) -> None:
    """Kill and reap every descendant. Reads /proc only if there are any. CS-7."""
    while reap(statuses):
        kill_families(children_of(os.getpid()))
        time.sleep(_PAUSE_S)


def end_children_except(spared: Collection[int]) -> None:
    """Kill and reap every child but the *spared*, with all their descendants."""
    quiet = 0
    while quiet < _QUIET_ROUNDS:
        orphans = [pid for pid in children_of(os.getpid()) if pid not in spared]
        quiet = 0 if orphans else quiet + 1
        kill_families(orphans)
        time.sleep(_PAUSE_S)
        for pid in orphans:
            _reap_one(pid)


def kill_families(roots: Iterable[int]) -> None:
    """
    Stop *roots* and all their descendants, then kill them.

    Each process is stopped before its children are listed, so that a tree which forks faster than
    it can be killed stops growing first.
    """
    family: set[int] = set()
    roots = list(roots)
    while newcomers := _stop_families(roots, family):
        family |= newcomers
    for pid in family:
        _send(pid, signal.SIGKILL)


def children_of(pid: int) -> list[int]:
    """The processes whose parent is *pid*, including zombies; none if *pid* is gone."""
    return _listed_children(pid) if _children_listed else _scanned_children(pid)


def descendants_of(pid: int) -> set[int]:
    """All processes below *pid*, as far as they can be listed."""
    found: set[int] = set()
    stack = children_of(pid)
    while stack:
        child = stack.pop()
        if child not in found:
            found.add(child)
            stack += children_of(child)
    return found


def _stop_families(roots: Iterable[int], known: Collection[int]) -> set[int]:
    newcomers: set[int] = set()
    seen: set[int] = set()
    stack = list(roots)
    while stack:
        pid = stack.pop()
        if pid in seen:
            continue
        seen.add(pid)
        if pid not in known:
            _send(pid, signal.SIGSTOP)
            newcomers.add(pid)
        stack.extend(children_of(pid))
    return newcomers


def _send(pid: int, number: signal.Signals) -> None:
    # The process is gone; or it belongs to another user, which no_new_privs rules out.
    with suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)


def _reap_one(pid: int) -> None:
    with suppress(ChildProcessError):
        os.waitpid(pid, os.WNOHANG | _WALL)


def _listed_children(pid: int) -> list[int]:
    found: list[int] = []
    with suppress(OSError):  # the process ended meanwhile; the next round finds its children
        for thread in os.listdir(f"/proc/{pid}/task"):
            found += map(int, _read(f"/proc/{pid}/task/{thread}", "children").split())
    return found


def _scanned_children(pid: int) -> list[int]:
    """`children_of` for kernels without /proc/PID/task/TID/children."""
    return [int(name) for name in os.listdir("/proc") if name.isdigit() and _parent(name) == pid]


def _parent(name: str) -> int | None:
    try:
        with open(f"/proc/{name}/stat", "rb", buffering=0) as stat:
            return int(stat.readall().rpartition(b")")[2].split()[1])
    except OSError:
        return None


_GROWTH = 2 << 30
"""The bytes that a tree may claim in a second: a guess, for the time of the next measurement."""
_TABLES = b"VmPTE:"
_ROUGH = (b"RssAnon:", b"RssShmem:", b"VmSwap:", _TABLES)
_EXACT = (b"Pss_Anon:", b"Pss_Shmem:", b"SwapPss:")
_SOONEST_S, _LATEST_S = 0.05, 0.5


def memory_held(pids: Iterable[int], limit: int) -> int:
    """
    The bytes that *pids* use.

    The sum is rough, with shared pages counted several times; it is exact if the rough sum is over
    *limit*.
    """
    pids = list(pids)
    rough = sum(map(_rough, pids))
    return rough if rough <= limit else sum(map(_share, pids))


def next_measure_s(held_bytes: int, limit: int) -> float:
    """The time in which a tree that uses *held_bytes* cannot exceed *limit*."""
    return min(_LATEST_S, max(_SOONEST_S, (limit - held_bytes) / _GROWTH))


def _rough(pid: int) -> int:
    """Private memory, shared memory, swapped memory and page tables of *pid*, without files."""
    return next(filter(None, (_sum(_read(at, "status"), _ROUGH) for at in _places(pid))), 0)


def _share(pid: int) -> int:
    """
    The memory of *pid* with only its share of shared pages, which costs a walk of page tables.

    For a process that forbids others to inspect it, the rough sum.
    """
    for at in _places(pid):
        if shared := _sum(_read(at, "smaps_rollup"), _EXACT):
            return shared + _sum(_read(at, "status"), (_TABLES,))
    return _rough(pid)


def _places(pid: int) -> Iterator[str]:
    """
    The folders in /proc that may describe the memory of *pid*: of the process, then of each thread.

    All threads share one memory, but the folder of the process describes no memory once its first
    thread has ended.
    """
    yield f"/proc/{pid}"
    with suppress(OSError):
        yield from (f"/proc/{pid}/task/{thread}" for thread in os.listdir(f"/proc/{pid}/task"))


def _sum(text: bytes, names: tuple[bytes, ...]) -> int:
    kilobytes = (int(line.split()[1]) for line in text.splitlines() if line.startswith(names))
    return sum(kilobytes) << 10


def _read(place: str, name: str) -> bytes:
    try:
        with open(f"{place}/{name}", "rb", buffering=0) as file:
            return file.readall()
    except OSError:
        return b""  # the process has ended, or forbids others to inspect it
