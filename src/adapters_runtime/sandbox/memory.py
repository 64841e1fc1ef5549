"""
How much memory a process tree uses, measured from outside.

A limit per process does not limit a hundred processes. Control groups (`sandbox.isolation.cgroups`)
count trees exactly, but not every server may create them; otherwise the supervisor measures, more
often the nearer the tree is to its limit. Standard library only.
"""

from collections.abc import Iterable

_GROWTH = 2 << 30
"""Bytes that a tree may claim in a second, as a guess for when to look again."""
_TABLES = b"VmPTE:"
_SOONEST_S, _LATEST_S = 0.05, 0.5


def held(pids: Iterable[int], limit: int) -> int:
    """
    The bytes that *pids* use: a rough sum first, which counts shared pages several times; an exact
    one only if that is over *limit*.
    """
    pids = list(pids)
    rough = sum(map(_rough, pids))
    return rough if rough <= limit else sum(map(_share, pids))


def next_look_s(held_bytes: int, limit: int) -> float:
    """How long a tree of that size cannot exceed its limit."""
    return min(_LATEST_S, max(_SOONEST_S, (limit - held_bytes) / _GROWTH))


def _rough(pid: int) -> int:
    """
    Private memory, shared memory and page tables, without files, including what was swapped out.
    """
    return _sum(_read(pid, "status"), (b"RssAnon:", b"RssShmem:", b"VmSwap:", _TABLES))


def _share(pid: int) -> int:
    """The same with its share of shared pages, which costs a walk of its page tables."""
    shared = _sum(_read(pid, "smaps_rollup"), (b"Pss_Anon:", b"Pss_Shmem:", b"SwapPss:"))
    return shared + _sum(_read(pid, "status"), (_TABLES,))


def _sum(text: bytes, names: tuple[bytes, ...]) -> int:
    kilobytes = (int(line.split()[1]) for line in text.splitlines() if line.startswith(names))
    return sum(kilobytes) << 10


def _read(pid: int, name: str) -> bytes:
    try:
        with open(f"/proc/{pid}/{name}", "rb", buffering=0) as file:
            return file.readall()
    except OSError:
        return b""  # it has ended
