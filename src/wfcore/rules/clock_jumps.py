"""
Time under a wall clock that jumps: what a process knows of its clocks, and what it makes of it.

A jump is seen where the wall clock is read beside one that only runs on. Deadlines of people are
held for a while, as if there had been none (AP-4). Work goes by a time of its own, which never
goes back (EX-30): where the wall clock is set back, it runs on, a little slower, until the wall
clock has come up with it. Decision 60.
"""

from attrs import evolve, frozen

from wfcore.time import MINUTE, EpochMs

JUMP_MS = MINUTE
"""A jump of more than this counts as one."""
HOLD_MS = 5 * MINUTE
CATCHING_UP = 9, 10
"""How fast the time of work runs while it is ahead: so many ms in so many."""


@frozen
class HeldTime:
    """
    What one process knows of its clocks. `offset` is wall time minus steady time when they
    were last read, `held` the one from before a jump, which counts until `hold_until` (steady).
    The time of work was `worked` at `worked_at` (steady), when it last was that of deadlines.
    """

    offset: int
    held: int
    hold_until: int = 0
    worked: int = 0
    worked_at: int = 0

    @classmethod
    def started(cls, wall: int, steady: int) -> "HeldTime":
        """The first look at both clocks."""
        return cls(wall - steady, wall - steady, worked=wall, worked_at=steady)


def held_time(known: HeldTime, wall: int, steady: int) -> tuple[HeldTime, EpochMs]:
    """What is known now, and the instant that deadlines are held against."""
    offset, held, hold_until = wall - steady, known.held, known.hold_until
    if abs(offset - known.offset) > JUMP_MS:
        if steady >= hold_until:
            held = known.offset
        hold_until = steady + HOLD_MS
    now = steady + held if steady < hold_until else wall
    return evolve(known, offset=offset, held=held, hold_until=hold_until), EpochMs(now)


def service_time(known: HeldTime, wall: int, steady: int) -> tuple[HeldTime, EpochMs]:
    """What is known now, and the instant that work goes by: never before an earlier one. EX-30."""
    known, deadlines = held_time(known, wall, steady)
    fast, slow = CATCHING_UP
    least = known.worked + max(steady - known.worked_at, 0) * fast // slow
    if deadlines < least:
        return known, EpochMs(least)
    return evolve(known, worked=deadlines, worked_at=steady), deadlines


def agreed(known: HeldTime, other: HeldTime | None, steady: int) -> HeldTime:
    """
    *known* with the hold that another process of the machine has begun for the same jump: it ends
    for both at once, so that neither takes the other's leases for over.
    """
    if other is None or other.hold_until <= steady:
        return known
    return evolve(known, held=other.held, hold_until=other.hold_until)


def restarted(known: HeldTime, seen: int, wall: int, steady: int) -> HeldTime:
    """
    What a process knows that starts on another steady clock (the machine was started anew), of
    what an earlier one knew when it last read its own, at *seen*. How long nobody looked, only
    the wall clock says; where it has gone back, no time counts.
    """
    passed = max(wall - (known.offset + seen), 0)
    shift = steady - passed - seen
    return evolve(
        known,
        offset=known.offset - shift,
        held=known.held - shift,
        hold_until=known.hold_until + shift,
        worked_at=known.worked_at + shift,
    )
