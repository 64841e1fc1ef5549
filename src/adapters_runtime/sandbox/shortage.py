"""
What the machine lacks when a step cannot be started: in accurate words, and visibly.

A step of which nothing has run is begun again later (EX-27), so `explain`, readiness and metrics
must tell what it is waiting for. Standard library only: the spawner uses it too.
"""

import errno
import time
from collections.abc import Callable

SEEN_FOR_S = 60.0
"""How long a shortage counts after it was last met: twice the longest wait before a next try."""

_WORDS = {
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
    return number in _WORDS


def may_pass(number: int | None) -> bool:
    """Whether it may go away by itself: a shortage, or a folder that is missing at the moment."""
    return is_shortage(number) or number == errno.ENOENT


def words(number: int | None, said: str) -> str:
    """What is lacking, for people; *said*: what failed, and the system's words for it."""
    known = _WORDS.get(number or 0)
    return f"{known} ({said})" if known else said


class Shortages:
    """Recent shortages by what met them, until something of that kind begins again."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._met: dict[str, tuple[str, float]] = {}
        self.total = 0
        """How many beginnings were postponed since the start."""

    def note(self, kind: str, lacking: str | None) -> None:
        """A start of that kind was postponed for *lacking*; None: it succeeded."""
        if lacking is None:
            self._met.pop(kind, None)
            return
        self.total += 1
        self._met[kind] = (lacking, self._clock())

    @property
    def now(self) -> str | None:
        """What is lacking as far as is known; None for nothing."""
        oldest = self._clock() - SEEN_FOR_S
        recent = [lacking for lacking, at in self._met.values() if at > oldest]
        return recent[-1] if recent else None
