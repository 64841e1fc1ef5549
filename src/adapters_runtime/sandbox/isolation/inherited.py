"""
A snapshot of all that a process hands down to its children.

A step must not change the process that later steps are forked from. No list names what is compared:
the snapshot holds every file in /proc/self and the attributes that only system calls report,
without values that vary by themselves (`_VARYING`) and values that no child inherits (`_OWN`). So a
limit that a new kernel adds is compared, too. CS-12. Standard library only.
"""

import ctypes
import fcntl
import os
from collections.abc import Iterator

from adapters_runtime.sandbox.isolation.syscalls import PR_GETS, prctl, syscall

_words = str.split

_VARYING = _words("""
    maps map_files smaps smaps_rollup numa_maps pagemap mem statm ksm_merging_pages ksm_stat
    oom_score
    sched schedstat stat io syscall stack wchan timers arch_status latency patch_state
    mounts mountstats oom_adj cpuset task
    fd fdinfo ns net
""")
"""
The files that describe memory; times, counters and present activity; what another file holds as
well (`mountinfo`, `oom_score_adj`, `cgroup`); and what is compared by other means: descriptors,
namespaces, priorities (`stat`), and the traffic of the network.
"""
_OWN = _words("""
    auxv comm cmdline environ clear_refs exe
    attr uid_map gid_map projid_map setgroups timens_offsets
""")
"""
The files that describe the program, whose memory only the process itself can change, or its
namespaces, which are compared by `ns`.
"""
_VARYING_LINES = (b"Vm", b"Rss", b"HugetlbPages", b"SigQ", b"voluntary", b"nonvoluntary")
"""
The lines of `status` on memory, context switches, and the number of signals that the whole user has
queued, whose limit is in `limits`.
"""
_NEW_EACH_TIME = "ipc"
"""The namespace that is made anew for every step."""
_LINKS = ("cwd", "root")
_SESSION_KEYRING = -3
_PROCESS = 1
_MOST_OF_ATTRIBUTES = 256

Snapshot = dict[str, object]
"""Values by name, only to be compared."""


class Inherited:
    """What a child of this process inherited at the time this object was made."""

    def __init__(self) -> None:
        self._names = [n for n in os.listdir("/proc/self") if n not in {*_VARYING, *_OWN}]
        self._namespaces = [n for n in os.listdir("/proc/self/ns") if n != _NEW_EACH_TIME]
        self._first = self.snapshot()

    def is_unchanged(self) -> bool:
        """Whether a child would inherit the same now."""
        return self.snapshot() == self._first

    def snapshot(self) -> Snapshot:
        """Everything that a child would inherit now."""
        return {
            **{name: _content(name) for name in self._names},
            **{f"ns/{name}": os.readlink(f"/proc/self/ns/{name}") for name in self._namespaces},
            "descriptors": list(_descriptors()),
            "scheduling": _scheduling(),
            "priority of input and output": _result_of("ioprio_get", _PROCESS, 0),
            "attributes": [_attribute(number) for number in PR_GETS],
            "keyring": _result_of("keyctl", 0, _SESSION_KEYRING, 0),
        }


def _content(name: str) -> object:
    path = f"/proc/self/{name}"
    try:
        text = os.fsencode(os.readlink(path)) if name in _LINKS else _read(path)
    except OSError as trouble:
        return trouble.errno
    if name == "status":
        return [line for line in text.splitlines() if not line.startswith(_VARYING_LINES)]
    if name == "mountinfo":  # without numbers, as the folder is mounted again for each step
        return [line.split(b" ", 3)[3] for line in text.splitlines()]
    return text


def _read(path: str) -> bytes:
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        text = b""
        while more := os.read(fd, 65_536):
            text += more
        return text
    finally:
        os.close(fd)


def _descriptors() -> Iterator[tuple[int, ...]]:
    """The open files with flags, but without offsets, which other processes may move."""
    for number in map(int, os.listdir("/proc/self/fd")):
        try:
            facts = os.fstat(number)
            flags = (fcntl.fcntl(number, query) for query in (fcntl.F_GETFL, fcntl.F_GETFD))
            yield number, facts.st_dev, facts.st_ino, *flags
        except OSError:
            continue  # the descriptor of the listing


def _scheduling() -> bytes:
    """Policy, nice value, real-time priority, deadlines, and bounds of processor use."""
    attributes = ctypes.create_string_buffer(_MOST_OF_ATTRIBUTES)
    syscall("sched_getattr", 0, attributes, _MOST_OF_ATTRIBUTES, 0)
    return attributes.raw


def _result_of(name: str, *arguments: int) -> tuple[bool, int | None]:
    try:
        return True, syscall(name, *arguments)
    except OSError as trouble:
        return False, trouble.errno


def _attribute(number: int) -> tuple[bool, int | None]:
    try:
        return True, prctl(number, 0)
    except OSError as trouble:
        return False, trouble.errno
