"""
Landlock: rules for the files that a process may open, whatever its user. Standard library only.

Landlock also confines signals and abstract sockets since Linux 6.12, and keeps confined processes
from reading the memory of others.
"""

import ctypes
import os
import stat
from collections.abc import Iterable
from contextlib import suppress

from adapters_runtime.sandbox.isolation.syscalls import syscall

EXECUTE, WRITE_FILE, READ_FILE, READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_MAKE_CHAR, _MAKE_BLOCK = 1 << 6, 1 << 11
TRUNCATE, IOCTL_DEV = 1 << 14, 1 << 15
_OF_FILES = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEV
_RIGHTS_BY_VERSION = {1: 13, 2: 14, 3: 15, 4: 15, 5: 16}
_SCOPES = 0b11  # abstract sockets, signals
_SCOPES_SINCE = 6
KNOWS_TRUNCATE = 3

READ = EXECUTE | READ_FILE | READ_DIR
WRITE = ((1 << 16) - 1) & ~(_MAKE_CHAR | _MAKE_BLOCK)
DEVICE = READ_FILE | WRITE_FILE | READ_DIR | IOCTL_DEV


class _Ruleset(ctypes.Structure):
    _fields_ = (
        ("files", ctypes.c_uint64),
        ("network", ctypes.c_uint64),
        ("scopes", ctypes.c_uint64),
    )


class _Beneath(ctypes.Structure):
    _pack_ = 1
    _layout_ = "ms"
    _fields_ = (("rights", ctypes.c_uint64), ("parent", ctypes.c_int32))


def version() -> int:
    """The version that the kernel supports, or 0."""
    try:
        return syscall("landlock_create_ruleset", None, 0, 1)
    except OSError:
        return 0


def restrict(rules: Iterable[tuple[str, int]]) -> None:
    """
    Allow this process to open only what is below the paths of *rules*, with the rights of each.

    Paths that do not exist are left out. Raises `OSError`. Needs `no_new_privs`.
    """
    known = version()
    handled = (1 << _RIGHTS_BY_VERSION.get(known, 16)) - 1
    attributes = _Ruleset(files=handled, scopes=_SCOPES if known >= _SCOPES_SINCE else 0)
    size = 24 if known >= _SCOPES_SINCE else 8
    ruleset = syscall("landlock_create_ruleset", ctypes.byref(attributes), size, 0)
    try:
        for path, rights in rules:
            _allow(ruleset, path, rights & handled)
        syscall("landlock_restrict_self", ruleset, 0)
    finally:
        os.close(ruleset)


def _allow(ruleset: int, path: str, rights: int) -> None:
    with suppress(FileNotFoundError, NotADirectoryError, PermissionError):
        fd = os.open(path, os.O_PATH | os.O_CLOEXEC)
        try:
            allowed = rights if stat.S_ISDIR(os.fstat(fd).st_mode) else rights & _OF_FILES
            rule = _Beneath(rights=allowed, parent=fd)
            syscall("landlock_add_rule", ruleset, 1, ctypes.byref(rule), 0)
        finally:
            os.close(fd)
