"""A step's folder: its creation by the supervisor, and the files that the step left in it."""

import errno
import os
import stat
from collections.abc import Iterable, Mapping
from contextlib import suppress

from adapters_runtime.sandbox.isolation.config import FOLDERS
from adapters_runtime.sandbox.isolation.levels import ProcessLevel

_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_PRIVATE = 0o700


class Unusable(Exception):
    """
    Raised for a file or folder of a step that cannot be used; the message tells the author why.
    """


def make(level: ProcessLevel, path: str) -> int:
    """Make the folder at *path* with its subfolders; returns its descriptor. Raises `OSError`."""
    os.mkdir(path, _PRIVATE)
    return make_subfolders(level, path)


def make_subfolders(level: ProcessLevel, path: str) -> int:
    """Make the subfolders of the empty folder at *path*; returns the descriptor of *path*."""
    folder = os.open(path, FOLDER)
    level.own(folder)
    for name in FOLDERS:
        os.mkdir(name, _PRIVATE, dir_fd=folder)
        below = os.open(name, FOLDER, dir_fd=folder)
        level.own(below)
        os.close(below)
    return folder


def fill(
    level: ProcessLevel, folder: int, files: Mapping[str, bytes], links: Mapping[str, str]
) -> None:
    """Write *files* and *links* into *folder*. Names contain no slash. Raises `OSError`."""
    for name, target in links.items():
        os.symlink(target, name, dir_fd=folder)
    for name, content in files.items():
        write(level, folder, name, (content,))


def write(level: ProcessLevel, folder: int, name: str, pieces: Iterable[bytes]) -> None:
    """Write the new file *name* into *folder*, piece by piece. Raises `OSError`."""
    fd = os.open(name, _NEW_FILE, 0o600, dir_fd=folder)
    try:
        level.own(fd)
        for piece in pieces:
            rest = memoryview(piece)
            while rest:
                rest = rest[os.write(fd, rest) :]
    finally:
        os.close(fd)


def remove_unused(path: str) -> None:
    """Remove the folder at *path* if it exists and is as `make` left it."""
    with suppress(OSError):
        for name in FOLDERS:
            os.rmdir(f"{path}/{name}")
        os.rmdir(path)


def left(folder: int, name: str, variable: str, most_bytes: int) -> bytes | None:
    """
    The content of the file *name* that the step left in *folder*, or None if there is none.
    *variable*: the variable that has its path, for messages. Raises `Unusable`.
    """
    try:
        fd = os.open(name, FILE, dir_fd=folder)
    except FileNotFoundError:
        return None
    except OSError as problem:
        if problem.errno == errno.ELOOP:
            raise Unusable(f"{variable} is a link; it must be a regular file") from None
        raise Unusable(f"{variable} cannot be read: {problem.strerror}") from None
    try:
        facts = os.fstat(fd)
        if stat.S_ISDIR(facts.st_mode):
            raise Unusable(f"{variable} is a folder; it must be a regular file")
        if not stat.S_ISREG(facts.st_mode) or facts.st_nlink != 1:
            raise Unusable(f"{variable} must be a regular file with one name")
        if facts.st_size > most_bytes:
            raise Unusable(f"{variable} is larger than {most_bytes:,} bytes")
        with open(fd, "rb", buffering=0, closefd=False) as file:
            return file.readall()
    finally:
        os.close(fd)


def artifacts(folder: int) -> int | None:
    """A descriptor of the folder of artifacts, or None if it is empty. Raises `Unusable`."""
    try:
        fd = os.open("artifacts", FOLDER, dir_fd=folder)
    except OSError as problem:
        raise Unusable(f"the folder of artifacts cannot be read: {problem.strerror}") from None
    with os.scandir(fd) as left:
        if next(left, None) is not None:
            return fd
    os.close(fd)
    return None
