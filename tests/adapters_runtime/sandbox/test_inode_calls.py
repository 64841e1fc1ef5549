"""
Every system call that changes an inode without writing to it, by number, on the running kernel.

A filter that is checked against its own list says nothing about a call that the list lacks in
effect. So each call is made here as a program would make it, on files of the caller's own: without
the filter it changes something (or the kernel does not have it), with it nothing.
"""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

PROGRAM = """
import ctypes, json, os, struct, sys
from adapters_runtime.sandbox.isolation import seccomp as filters
from adapters_runtime.sandbox.isolation.seccomp import SyscallFilter
from adapters_runtime.sandbox.isolation.syscall_numbers import machine, number_of
from adapters_runtime.sandbox.isolation.syscalls import PR_SET_NO_NEW_PRIVS, prctl

libc = ctypes.CDLL(None, use_errno=True)
HERE, EMPTY, NO_LINKS = -100, 0x1000, 0x100
folder, held = sys.argv[1], sys.argv[2] == "held"
if held:
    ready = SyscallFilter(filters.NO_SOCKETS, same_files=True, same_user=True).ready()
    prctl(PR_SET_NO_NEW_PRIVS)
    ready.install()

OLD = struct.pack("4q", 1, 0, 1, 0)
NAME, VALUE = b"user.probe", b"x"
UID, GID = os.getuid(), os.getgid()
AT_VALUE = struct.pack("QII", 0, 1, 0)
SET_FLAGS, SET_FLAGS_32, SET_XATTR, SET_VERSION = 0x40086602, 0x40046602, 0x401C5820, 0x40087602
ATTRIBUTES = struct.pack("QIIIII", 0x80, 0, 0, 0, 0, 0)


def value():
    kept = ctypes.create_string_buffer(VALUE)
    return struct.pack("QII", ctypes.addressof(kept), 1, 0), kept


def at_value():
    packed, at_value.kept = value()
    return packed


def calls(path, fd, only_path):
    yield "chmod", path, 0o4711
    yield "fchmod", fd, 0o4711
    yield "fchmodat", HERE, path, 0o4711
    yield "fchmodat2", HERE, path, 0o4711, 0
    yield "fchmodat2 by descriptor", only_path, b"", 0o4711, EMPTY
    yield "chown", path, UID, GID
    yield "lchown", path, UID, GID
    yield "fchown", fd, UID, GID
    yield "fchownat", HERE, path, UID, GID, 0
    yield "fchownat by descriptor", only_path, b"", UID, GID, EMPTY
    yield "setxattr", path, NAME, VALUE, 1, 0
    yield "lsetxattr", path, NAME, VALUE, 1, 0
    yield "fsetxattr", fd, NAME, VALUE, 1, 0
    yield "setxattrat", HERE, path, 0, NAME, at_value(), 16
    yield "removexattr", path, b"user.given"
    yield "lremovexattr", path, b"user.given"
    yield "fremovexattr", fd, b"user.given"
    yield "removexattrat", HERE, path, 0, b"user.given"
    yield "file_setattr", HERE, path, ATTRIBUTES, 24, 0
    yield "utime", path, struct.pack("2q", 1, 1)
    yield "utimes", path, OLD
    yield "futimesat", HERE, path, OLD
    yield "utimensat", HERE, path, OLD, 0
    yield "utimensat by descriptor", fd, None, OLD, 0
    yield "utimensat by path descriptor", only_path, b"", OLD, EMPTY
    yield "ioctl flags", fd, SET_FLAGS, struct.pack("q", 0x40)
    yield "ioctl attributes", fd, SET_XATTR, struct.pack("IIIII8x", 0x80, 0, 0, 0, 0)
    yield "ioctl version", fd, SET_VERSION, struct.pack("q", 7)
    yield "fcntl lease", fd, 1024, 0
    yield "fcntl hint", fd, 1036, struct.pack("Q", 2)


def made(call, *arguments):
    number = number_of(call.split()[0], machine())
    if number is None:
        return None
    words = [ctypes.c_long(one) if isinstance(one, int) else one for one in arguments]
    done = libc.syscall(ctypes.c_long(number), *words)
    return 0 if done >= 0 else ctypes.get_errno()


said = {}
for at, call in enumerate(calls(b"", 0, 0)):
    path = os.fsencode(f"{folder}/{call[0]}")
    fd, only_path = os.open(path, os.O_RDONLY), os.open(path, os.O_PATH)
    said[call[0]] = made(*list(calls(path, fd, only_path))[at])
    os.close(only_path)
for name, arguments in {
    "open": (b"%s", 0o102, 0o6711), "openat": (HERE, b"%s", 0o102, 0o6711),
    "creat": (b"%s", 0o6711),
    "mknod": (b"%s", 0o106711, 0), "mknodat": (HERE, b"%s", 0o106711, 0),
    "openat2": (HERE, b"%s", struct.pack("QQQ", 0o102, 0o6711, 0), 24),
}.items():
    path = os.fsencode(f"{folder}/new {name}")
    said[f"new {name}"] = made(name, *(path if one == b"%s" else one for one in arguments))
print(json.dumps(said))
"""
OF_DESCRIPTORS = {"fcntl lease": 0, "fcntl hint": 0, "ioctl version": 0}
"""Calls whose effect no `stat` shows: what they say counts."""
CHANGES = """
    chmod|fchmod|fchmodat|fchmodat2|fchmodat2 by descriptor|chown|lchown|fchown|fchownat
    |fchownat by descriptor|setxattr|lsetxattr|fsetxattr|setxattrat|removexattr|lremovexattr
    |fremovexattr|removexattrat|file_setattr|utime|utimes|futimesat|utimensat
    |utimensat by descriptor|utimensat by path descriptor|ioctl flags|ioctl attributes
    |ioctl version|fcntl lease|fcntl hint
""".replace("\n", "").split("|")
MAKES = ("open", "openat", "creat", "mknod", "mknodat", "openat2")
NOT_HERE = (None, 38, 95, 25, 22)
"""This machine or this file system has no such call."""

Facts = tuple[object, ...]


class Tried:
    """What the calls said, and the files they were made on, before and after."""

    def __init__(self, folder: Path, held: bool) -> None:
        names = [name.strip() for name in CHANGES]
        self._folder = folder
        for name in names:
            (folder / name).write_text("x")
            (folder / name).chmod(0o644)
            os.setxattr(folder / name, "user.given", b"x")
        before = {name: self._facts(name) for name in names}
        argv = [sys.executable, "-c", PROGRAM, str(folder), "held" if held else "free"]
        ran = subprocess.run(argv, capture_output=True, text=True, check=True, timeout=60)
        self.said: Mapping[str, int | None] = json.loads(ran.stdout)
        self.changed = {
            name
            for name in names
            if (name in OF_DESCRIPTORS and self.said[name] == 0)
            or self._facts(name) != before[name]
        }

    def _facts(self, name: str) -> Facts:
        path = self._folder / name
        found = path.stat()
        times = (found.st_mtime_ns, found.st_ctime_ns)
        return (found.st_mode, found.st_uid, found.st_gid, *times, tuple(os.listxattr(path)))

    def makes(self, name: str) -> bool:
        """Whether there is a new file that runs as its owner."""
        path = self._folder / f"new {name}"
        return path.exists() and bool(path.stat().st_mode & 0o6000)


@pytest.fixture(scope="module")
def free(tmp_path_factory: pytest.TempPathFactory) -> Tried:
    return Tried(tmp_path_factory.mktemp("free"), held=False)


@pytest.fixture(scope="module")
def held(tmp_path_factory: pytest.TempPathFactory) -> Tried:
    return Tried(tmp_path_factory.mktemp("held"), held=True)


@pytest.mark.parametrize("name", [name.strip() for name in CHANGES])
def test_no_call_changes_an_inode(name: str, free: Tried, held: Tried) -> None:
    """At `landlock` none of them has an effect, and each has one without the filter."""
    if free.said[name] in NOT_HERE:
        pytest.skip(f"{name} does nothing here without the filter: {free.said[name]}")
    assert name in free.changed
    assert name not in held.changed


@pytest.mark.parametrize("name", MAKES)
def test_no_call_makes_a_file_that_runs_as_its_owner(name: str, free: Tried, held: Tried) -> None:
    """No new file gets the bits by which a program runs as whom it belongs to."""
    if free.said[f"new {name}"] in NOT_HERE:
        pytest.skip(f"{name} is not here: {free.said[f'new {name}']}")
    assert free.makes(name)
    assert not held.makes(name)
