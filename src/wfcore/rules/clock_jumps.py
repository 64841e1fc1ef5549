"""
Time when the wall clock jumps: a process's readings of its clocks, and the times that follow.

A jump is detected by reading the wall clock beside a steady clock. For a while, deadlines of people
keep the time from before the jump (AP-4). Work uses a clock of its own that never goes back
(EX-30): when the wall clock is set back, the work clock runs on, a little slower, until the wall
clock has caught up. Decision 60.
"""

from typing import NamedTuple

from wfcore.time import MINUTE, EpochMs

JUMP_MS = MINUTE
"""A difference of more than this counts as a jump."""
HOLD_MS = 5 * MINUTE
CATCHING_UP = 9, 10
"""While the work clock is ahead, it advances the first number of ms in the second number of ms."""


class HeldTime(NamedTuple):
    """
    A process's readings of its clocks. `offset`: wall time minus steady time at the last reading.
    `held`: the offset from before a jump, valid until `hold_until` (steady). The work clock showed
    `worked` at `worked_at` (steady) when it last agreed with the clock of deadlines.

    A plain tuple, because every request makes several.
    """

    offset: int
    held: int
    hold_until: int = 0
    worked: int = 0
    worked_at: int = 0

    @classmethod
    def started(cls, wall: int, steady: int) -> "HeldTime":
        """The first readings of both clocks."""
        return cls(wall - steady, wall - steady, worked=wall, worked_at=steady)


def held_time(known: HeldTime, wall: int, steady: int) -> tuple[HeldTime, EpochMs]:
    """The new readings, and the instant with which deadlines are compared."""
    offset, held, hold_until = wall - steady, known.held, known.hold_until
    if abs(offset - known.offset) > JUMP_MS:
        if steady >= hold_until:
            held = known.offset
        hold_until = steady + HOLD_MS
    now = steady + held if steady < hold_until else wall
    return HeldTime(offset, held, hold_until, known.worked, known.worked_at), EpochMs(now)


def service_time(known: HeldTime, wall: int, steady: int) -> tuple[HeldTime, EpochMs]:
    """The new readings, and the instant of the work clock, which never goes back. EX-30."""
    known, deadlines = held_time(known, wall, steady)
    fast, slow = CATCHING_UP
    least = known.worked + max(steady - known.worked_at, 0) * fast // slow
    if deadlines < least:
        return known, EpochMs(least)
    return HeldTime(*known[:3], worked=deadlines, worked_at=steady), deadlines


def agreed(known: HeldTime, other: HeldTime | None, steady: int) -> HeldTime:
    """
    *known* with the hold that another process on this machine began for the same jump. The hold
    then ends for both processes at the same time, and neither process takes the other's leases for
    expired.
    """
    if other is None or other.hold_until <= steady:
        return known
    return known._replace(held=other.held, hold_until=other.hold_until)


def restarted(known: HeldTime, seen: int, wall: int, steady: int) -> HeldTime:
    """
    The readings after a restart of the machine, from the readings of an earlier process at *seen*.
    The steady clock has begun anew. Only the wall clock shows how much time has passed; if the wall
    clock went back, no time has passed.
    """
    passed = max(wall - (known.offset + seen), 0)
    shift = steady - passed - seen
    return known._replace(
        offset=known.offset - shift,
        held=known.held - shift,
        hold_until=known.hold_until + shift,
        worked_at=known.worked_at + shift,
    )
