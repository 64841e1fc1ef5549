"""
What a step left in its folder, seen by its supervisor when everything is dead.

The folder is what hostile code made of it: nothing is opened through a link, and only a regular
file with one name counts. Standard library only.
"""

import os
import stat

from adapters_runtime.confine.terms import OUTPUT

FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class Unusable(Exception):
    """Something that the step left does not count; the text says why, for the author."""


def output(folder: int, most_bytes: int) -> bytes | None:
    """What the step wrote as its output; None when it did not. Raises `Unusable`."""
    try:
        fd = os.open(OUTPUT, FILE, dir_fd=folder)
    except FileNotFoundError:
        return None
    except OSError as problem:
        raise Unusable(f"WF_OUTPUT cannot be read: {problem.strerror}") from None
    with open(fd, "rb", buffering=0) as file:
        facts = os.fstat(fd)
        if not stat.S_ISREG(facts.st_mode) or facts.st_nlink != 1:
            raise Unusable("WF_OUTPUT must be a regular file with one name")
        if facts.st_size > most_bytes:
            raise Unusable(f"WF_OUTPUT is larger than {most_bytes:,} bytes")
        return file.readall()


def artifacts(folder: int) -> int | None:
    """The folder of artifacts, opened; None when it is empty. Raises `Unusable`."""
    try:
        fd = os.open("artifacts", FOLDER, dir_fd=folder)
    except OSError as problem:
        raise Unusable(f"the folder of artifacts cannot be read: {problem.strerror}") from None
    with os.scandir(fd) as left:
        if next(left, None) is not None:
            return fd
    os.close(fd)
    return None
