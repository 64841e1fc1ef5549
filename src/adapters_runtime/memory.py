"""
How much memory a whole process tree holds, looked at from beside it.

A limit per process says nothing about a hundred of them. The kernel counts trees in control
groups, which few servers may make; so the supervisor looks, the more often the nearer the tree
is to its limit. Standard library only.
"""

import os
from collections.abc import Iterable

_PAGE = os.sysconf("SC_PAGE_SIZE")
_GROWTH = 2 << 30
"""Bytes that a tree may claim in a second, as a guess for when to look again."""
_SOONEST_S, _LATEST_S = 0.05, 0.5


def held(pids: Iterable[int], limit: int) -> int:
    """
    The bytes that *pids* hold: first counted roughly, with what they share counted often; exactly
    only where that is over *limit*.
    """
    pids = list(pids)
    rough = sum(map(_rough, pids))
    return rough if rough <= limit else sum(map(_share, pids))


def next_look_s(held_bytes: int, limit: int) -> float:
    """How long a tree that holds so much cannot be over its limit."""
    return min(_LATEST_S, max(_SOONEST_S, (limit - held_bytes) / _GROWTH))


def _rough(pid: int) -> int:
    """Resident memory without files."""
    fields = _read(pid, "statm").split()
    return (int(fields[1]) - int(fields[2])) * _PAGE if len(fields) > 2 else 0


def _share(pid: int) -> int:
    """Its proportional share of anonymous and shared memory; costs a walk of its page tables."""
    total = 0
    for line in _read(pid, "smaps_rollup").splitlines():
        if line.startswith((b"Pss_Anon:", b"Pss_Shmem:")):
            total += int(line.split()[1]) << 10
    return total


def _read(pid: int, name: str) -> bytes:
    try:
        with open(f"/proc/{pid}/{name}", "rb", buffering=0) as file:
            return file.readall()
    except OSError:
        return b""  # it has ended
