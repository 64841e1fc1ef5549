"""The ports of `wfcore.ports.system` on a real machine: clocks, ids, random tokens."""

import json
import logging
import os
import secrets
import time
from collections.abc import Callable
from contextlib import suppress
from os import urandom
from pathlib import Path

from wfcore.ports.system import Clock
from wfcore.rules.auth.api_key import ALPHABET
from wfcore.rules.clock_jumps import HeldTime, agreed, held_time, restarted, service_time
from wfcore.rules.ids import COUNTS, FIRST_CELL, timed_id
from wfcore.time import EpochMs, Now, later

log = logging.getLogger("wfcore.clock")

KEEP_EVERY_MS = 5_000
_BOOT: int | None = getattr(time, "CLOCK_BOOTTIME", None)
BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


class SystemClock:
    """
    The wall clock, checked against the boot clock, which on Linux counts suspended time, too.

    The state of both clocks is kept in the file *kept*, if given, so that a hold of deadlines and
    the service time outlive the process. If the file cannot be read or written, both end with the
    process.
    """

    def __init__(self, kept: Path | None = None) -> None:
        self._kept = kept
        self._written_at: int | None = None
        self._known = self._remembered() or HeldTime.started(self._wall(), self._steady())
        self._holds = False

    def _wall(self) -> int:
        return time.time_ns() // 1_000_000

    def _steady(self) -> int:
        now = time.monotonic_ns() if _BOOT is None else time.clock_gettime_ns(_BOOT)
        return now // 1_000_000

    def now(self) -> EpochMs:
        return EpochMs(self._wall())

    def deadline_now(self) -> EpochMs:
        return self._by(held_time)

    def service_now(self) -> EpochMs:
        return self._by(service_time)

    def _by(self, rule: Callable[[HeldTime, int, int], tuple[HeldTime, EpochMs]]) -> EpochMs:
        wall, steady = self._wall(), self._steady()
        known, now = rule(self._known, wall, steady)
        if known.hold_until != self._known.hold_until:
            known, now = rule(agreed(known, self._remembered(), steady), wall, steady)
        self._learn(known, steady)
        return now

    def _learn(self, known: HeldTime, steady: int) -> None:
        """Log a hold that begins or ends, and write the file when that is due."""
        jumped = known.hold_until != self._known.hold_until
        self._known, held, self._holds = known, self._holds, steady < known.hold_until
        if jumped:
            by = round((known.offset - known.held) / 1_000)
            log.warning("the wall clock jumped; deadlines are held", extra={"by_s": by})
        elif held and not self._holds:
            log.warning("deadlines follow the wall clock again")
        if jumped or self._written_at is None or steady - self._written_at >= KEEP_EVERY_MS:
            self._written_at = steady
            self._keep(steady)

    def _keep(self, steady: int) -> None:
        if self._kept is None:
            return
        about = {"boot": _boot(), "seen": steady, "known": self._known._asdict()}
        fresh = self._kept.with_name(f"{self._kept.name}.{os.getpid()}")
        with suppress(OSError):
            fresh.write_text(json.dumps(about))
            fresh.replace(self._kept)

    def _remembered(self) -> HeldTime | None:
        """The state of the last process on this data, adjusted to this process's clocks."""
        if self._kept is None:
            return None
        try:
            about = json.loads(self._kept.read_text())
            boot, seen, known = about["boot"], int(about["seen"]), HeldTime(**about["known"])
        except (OSError, ValueError, TypeError, KeyError):
            return None
        if boot == _boot() and seen <= self._steady():
            return known
        return restarted(known, seen, self._wall(), self._steady())


class StoreTime:
    """
    The clock of a process on a store with a clock of its own.

    Deadlines of approvals and schedules follow the store's clock, whatever the clock of the
    *machine* says. AP-47.
    """

    def __init__(self, machine: Clock, store_now: Now) -> None:
        self.machine = machine
        self._store_now = store_now

    def now(self) -> EpochMs:
        return self.machine.now()

    def deadline_now(self) -> EpochMs:
        return self._store_now()

    def service_now(self) -> EpochMs:
        return self.machine.service_now()


def _boot() -> str:
    """The id of the machine's present boot, with which its boot clock began."""
    try:
        return BOOT_ID.read_text().strip()
    except OSError:
        return ""


class SystemIds:
    """
    Ids made in *cell*, see `wfcore.rules.ids`.

    The ids of one process ascend; the ids of several processes are ordered by time.
    """

    def __init__(self, cell: str = FIRST_CELL) -> None:
        self._cell = cell
        self._last = EpochMs(0)
        self._count = 0

    def new(self, prefix: str, now: EpochMs) -> str:
        if now > self._last:
            self._last, self._count = now, 0
        else:
            self._count += 1
            if self._count == COUNTS:
                self._last, self._count = later(self._last, 1), 0
        return timed_id(prefix, self._last, self._count, self._cell, urandom(6))


class SystemTokens:
    """Random base62 texts that cannot be guessed."""

    def text(self, length: int) -> str:
        return "".join(secrets.choice(ALPHABET) for _ in range(length))
