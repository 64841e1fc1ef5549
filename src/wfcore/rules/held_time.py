"""
Deadlines under a wall clock that jumps: for a while, time goes on as if it had not. AP-4.

A jump is seen where the wall clock is read beside one that only runs on.
"""

from attrs import frozen

from wfcore.instants import MINUTE, EpochMs

JUMP_MS = MINUTE
"""A jump of more than this counts as one."""
HOLD_MS = 5 * MINUTE


@frozen
class HeldTime:
    """
    What one process knows of its clocks. `offset` is wall time minus steady time when they
    were last read, `held` the one from before a jump, which counts until `hold_until` (steady).
    """

    offset: int
    held: int
    hold_until: int = 0

    @classmethod
    def started(cls, wall: int, steady: int) -> "HeldTime":
        """The first look at both clocks."""
        return cls(wall - steady, wall - steady)


def held_time(known: HeldTime, wall: int, steady: int) -> tuple[HeldTime, EpochMs]:
    """What is known now, and the instant that deadlines are held against."""
    offset, held, hold_until = wall - steady, known.held, known.hold_until
    if abs(offset - known.offset) > JUMP_MS:
        if steady >= hold_until:
            held = known.offset
        hold_until = steady + HOLD_MS
    now = steady + held if steady < hold_until else wall
    return HeldTime(offset, held, hold_until), EpochMs(now)
