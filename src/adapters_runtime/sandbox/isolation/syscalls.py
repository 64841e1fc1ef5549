"""
The system calls that Python has no function for. They raise `OSError`, as Python's functions do.

Standard library only.
"""

import ctypes
import errno
import os

from adapters_runtime.sandbox.isolation.syscall_numbers import number_here

NEW_NS = 0x00020000
NEW_CGROUP = 0x02000000
NEW_UTS = 0x04000000
NEW_IPC = 0x08000000
NEW_USER = 0x10000000
NEW_PID = 0x20000000
NEW_NET = 0x40000000

MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC = 1, 2, 4, 8
MS_REMOUNT, MS_BIND, MS_REC, MS_PRIVATE = 32, 4096, 16384, 1 << 18
MNT_DETACH = 2

PR_SET_PDEATHSIG = 1
PR_SET_DUMPABLE = 4
PR_CAPBSET_DROP = 24
PR_SET_SECUREBITS = 28
PR_SET_CHILD_SUBREAPER = 36
PR_SET_NO_NEW_PRIVS = 38
PR_GETS = (3, 7, 13, 27, 30, 34, 42, 66)
"""The options that return an attribute: dumpable, keepcaps, timing, securebits and so on."""

_SIGCHLD = 17
_AT_FDCWD = -100
_AT_RECURSIVE = 0x8000
_OPEN_TREE_CLONE = 1
_FROM_DESCRIPTOR = 4
_CAPABILITY_VERSION_3 = 0x20080522
_OF_OURSELVES = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION_3, 0)
_NO_CAPABILITIES = (ctypes.c_uint32 * 6)()

# Calls keep the interpreter's lock: after a `clone` without it, no thread would hold the lock.
_libc = ctypes.PyDLL(None, use_errno=True)
_libc.syscall.restype = ctypes.c_long
_libc.prctl.argtypes = (ctypes.c_int, *[ctypes.c_ulong] * 4)
_before_fork = ctypes.pythonapi.PyOS_BeforeFork
_after_fork = ctypes.pythonapi.PyOS_AfterFork_Parent


class MountAttributes(ctypes.Structure):
    _fields_ = (
        ("set", ctypes.c_uint64),
        ("clear", ctypes.c_uint64),
        ("propagation", ctypes.c_uint64),
        ("userns", ctypes.c_uint64),
    )


def syscall(name: str, *arguments: object) -> int:
    """Make the system call *name*. Raises `OSError`."""
    words = [ctypes.c_long(value) if isinstance(value, int) else value for value in arguments]
    return _checked(_libc.syscall(ctypes.c_long(number_here(name)), *words), name)


def clone(flags: int) -> int:
    """Fork into new namespaces. Only for a process with a single thread."""
    return syscall("clone", flags | _SIGCHLD, 0, 0, 0, 0)


def fork() -> int:
    """
    Fork without Python's own work in the child, since most children soon become another program.

    A child that stays Python calls `go_on_as_python`.
    """
    _before_fork()
    pid = _libc.fork()
    if pid:
        _after_fork()
    return _checked(pid, "fork")


def go_on_as_python() -> None:
    """Do the work of `os.fork` in a child, such as new random numbers."""
    ctypes.pythonapi.PyOS_AfterFork_Child()


def unshare(flags: int) -> None:
    """Move this process to new namespaces of the kinds in *flags*."""
    _checked(_libc.unshare(flags), "unshare")


def mount(source: str, target: str, kind: str = "", flags: int = 0, options: str = "") -> None:
    """Mount *source* at *target*."""
    words = [os.fsencode(text) if text else None for text in (source, target, kind)]
    data = os.fsencode(options) if options else None
    _checked(_libc.mount(*words, ctypes.c_ulong(flags), data), f"mount {kind or source} {target}")


def umount(target: str) -> None:
    """Unmount *target*, now or as soon as nobody uses it."""
    _checked(_libc.umount2(os.fsencode(target), MNT_DETACH), f"umount {target}")


def pivot_root(new: str, old: str) -> None:
    """Make *new* the root, and move the old root to *old*."""
    syscall("pivot_root", os.fsencode(new), os.fsencode(old))


def open_tree(path: str) -> int:
    """A descriptor of a copy of the mount at *path*, which `move_mount` places anywhere."""
    return syscall("open_tree", _AT_FDCWD, os.fsencode(path), _OPEN_TREE_CLONE | os.O_CLOEXEC)


def move_mount(tree: int, target: str) -> None:
    """Place the mount from `open_tree` at *target*, also in another mount namespace."""
    syscall("move_mount", tree, b"", _AT_FDCWD, os.fsencode(target), _FROM_DESCRIPTOR)


def restrict_mounts(path: str, flags: int) -> None:
    """Set *flags* (read-only and the like) on the mount at *path* and all below it."""
    attributes = MountAttributes(set=flags)
    size = ctypes.sizeof(attributes)
    name = os.fsencode(path)
    try:
        reference = ctypes.byref(attributes)
        syscall("mount_setattr", _AT_FDCWD, name, _AT_RECURSIVE, reference, size)
    except OSError as trouble:
        if trouble.errno != errno.ENOSYS:  # before Linux 5.12
            raise
        for mounted in _mounts_below(path):
            kept = os.statvfs(mounted).f_flag & (MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC)
            mount("", mounted, flags=MS_REMOUNT | MS_BIND | kept | flags)


def _mounts_below(path: str) -> list[str]:
    with open("/proc/self/mountinfo", "rb") as listing:
        places = [os.fsdecode(line.split()[4]) for line in listing]
    places = [place.encode().decode("unicode_escape") for place in places]
    return [place for place in places if place == path or place.startswith(f"{path}/")]


def prctl(option: int, value: int = 1) -> int:
    """Set an attribute of the process, or return one of `PR_GETS`."""
    return _checked(_libc.prctl(option, value, 0, 0, 0), "prctl")


def drop_possible_capabilities() -> None:
    """Give up every way to regain a capability; the present capabilities stay."""
    capability = 0
    try:
        while True:
            prctl(PR_CAPBSET_DROP, capability)
            capability += 1
    except OSError as end:
        if end.errno != errno.EINVAL or not capability:  # EINVAL: beyond the last capability
            raise
    prctl(PR_SET_SECUREBITS, 0b10101111)  # no root, no fix-up, no ambient ones; all of it for good


def drop_capabilities() -> None:
    """Give up all capabilities."""
    _checked(_libc.capset(_OF_OURSELVES, _NO_CAPABILITIES), "capset")


def _checked(result: int, what: str) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
    return result
