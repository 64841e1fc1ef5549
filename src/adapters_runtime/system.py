"""Time, ids and chance as the machine gives them."""

import secrets
import time
from os import urandom

from wfcore.instants import EpochMs
from wfcore.rules.api_key import ALPHABET
from wfcore.rules.held_time import HeldTime, held_time


class SystemClock:
    """The wall clock, watched against the boot clock (which counts suspended time too)."""

    def __init__(self) -> None:
        self._known = HeldTime.started(self._wall(), self._steady())

    def _wall(self) -> int:
        return time.time_ns() // 1_000_000

    def _steady(self) -> int:
        return time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1_000_000

    def now(self) -> EpochMs:
        return EpochMs(self._wall())

    def deadline_now(self) -> EpochMs:
        self._known, now = held_time(self._known, self._wall(), self._steady())
        return now


class SystemIds:
    """
    Ids of 26 hexadecimal digits: 44 bits of time in ms, 12 of a counter within the
    millisecond, 48 of chance. Ids of one process ascend; those of several order by time.
    """

    def __init__(self) -> None:
        self._last = 0
        self._count = 0

    def new(self, prefix: str, now: EpochMs) -> str:
        if now > self._last:
            self._last, self._count = now, 0
        else:
            self._count += 1
            if self._count > 0xFFF:
                self._last, self._count = self._last + 1, 0
        return f"{prefix}_{self._last:011x}{self._count:03x}{urandom(6).hex()}"


class SystemTokens:
    """Unguessable base62 text."""

    def text(self, length: int) -> str:
        return "".join(secrets.choice(ALPHABET) for _ in range(length))
