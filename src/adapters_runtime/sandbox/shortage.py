"""
The shortages of the machine that keep steps from starting, and their descriptions for people.

A step of which nothing has run is begun again later (EX-27), so `explain`, readiness and metrics
must show the shortage that it waits for. Standard library only: the spawner uses it too.
"""

import errno
import time
from collections.abc import Callable

SEEN_FOR_S = 60.0
"""How long a shortage counts after its last report: twice the longest wait before a next try."""

_DESCRIPTIONS = {
    errno.EMFILE: "the server has no file descriptors left",
    errno.ENFILE: "the machine has no file descriptors left",
    errno.ENOSPC: "the disk has no space, or no room for more files, left",
    errno.EDQUOT: "the disk quota is used up",
    errno.EROFS: "the disk is read-only",
    errno.EIO: "the disk does not work",
    errno.EAGAIN: "no more processes may be started",
    errno.ENOMEM: "the machine has no memory left",
    errno.ENOBUFS: "the machine has no memory left for sockets",
}


def is_shortage(number: int | None) -> bool:
    """Whether this error number means that the machine lacks something, whatever the call."""
    return number in _DESCRIPTIONS


def is_temporary(number: int | None) -> bool:
    """Whether this error may go away by itself: a shortage, or a folder that is missing for now."""
    return is_shortage(number) or number == errno.ENOENT


def describe(number: int | None, message: str) -> str:
    """A text for people: what the machine lacks, if anything, and the system's own *message*."""
    known = _DESCRIPTIONS.get(number or 0)
    return f"{known} ({message})" if known else message


class Shortages:
    """The recent shortages by kind of step. A step of a kind that starts ends its shortage."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._noted: dict[str, tuple[str, float]] = {}
        self.total = 0
        """How many starts of steps were postponed since the server started."""

    def note(self, kind: str, lacking: str | None) -> None:
        """Note that a start of *kind* was postponed for *lacking*; with None, that it succeeded."""
        if lacking is None:
            self._noted.pop(kind, None)
            return
        self.total += 1
        self._noted[kind] = (lacking, self._clock())

    @property
    def now(self) -> str | None:
        """What the machine lacks, or None if no recent start was postponed."""
        oldest = self._clock() - SEEN_FOR_S
        recent = [lacking for lacking, at in self._noted.values() if at > oldest]
        return recent[-1] if recent else None
