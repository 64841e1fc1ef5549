"""
A step's folder as its supervisor furnishes it: the four folders, and the files of the job.

At the level `namespace` it is a file system of its own and there already; at the others it is made
on disk, where the job says. Standard library only.
"""

import os
from collections.abc import Mapping
from contextlib import suppress

from adapters_runtime.confine.levels import Process
from adapters_runtime.confine.terms import FOLDERS

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_PRIVATE = 0o700


def make(level: Process, path: str) -> int:
    """Make the folder at *path* with its folders; its descriptor. Raises `OSError`."""
    if not level.has_own_files:
        os.mkdir(path, _PRIVATE)
    folder = os.open(path, _FOLDER)
    level.own(folder)
    for name in FOLDERS:
        os.mkdir(name, _PRIVATE, dir_fd=folder)
        below = os.open(name, _FOLDER, dir_fd=folder)
        level.own(below)
        os.close(below)
    return folder


def fill(level: Process, folder: int, files: Mapping[str, bytes], links: Mapping[str, str]) -> None:
    """Write *files* and *links*, by their names, which have no slash. Raises `OSError`."""
    for name, target in links.items():
        os.symlink(target, name, dir_fd=folder)
    for name, content in files.items():
        fd = os.open(name, _FILE, 0o600, dir_fd=folder)
        try:
            level.own(fd)
            rest = memoryview(content)
            while rest:
                rest = rest[os.write(fd, rest) :]
        finally:
            os.close(fd)


def remove_unused(path: str) -> None:
    """Remove the folder at *path* as `make` left it, if it is there."""
    with suppress(OSError):
        for name in FOLDERS:
            os.rmdir(f"{path}/{name}")
        os.rmdir(path)
