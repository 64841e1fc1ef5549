"""Deadlines while the wall clock jumps. AP-4."""

from hypothesis import example, given
from hypothesis import strategies as st

from wfcore.instants import MINUTE
from wfcore.rules.held_time import HOLD_MS, JUMP_MS, HeldTime, held_time

WALL = 1_700_000_000_000
BOOT = 77_000
"""What the steady clock shows at first; WALL is what the wall clock showed when it began."""
JUMPS = st.integers(-(10**9), 10**9)


def after(jumps: list[tuple[int, int]]) -> tuple[HeldTime, int, int]:
    """What is known after *jumps* of (steady time that passed, jump of the wall clock)."""
    wall, steady = WALL + BOOT, BOOT
    known = HeldTime.started(wall, steady)
    for passed, jump in jumps:
        steady, wall = steady + passed, wall + passed + jump
        known, _ = held_time(known, wall, steady)
    return known, wall, steady


@given(jump=JUMPS.filter(lambda jump: abs(jump) > JUMP_MS), wait=st.integers(0, HOLD_MS - 1))
def test_time_goes_on_as_if_there_had_been_no_jump(jump: int, wait: int):
    """For five minutes after a jump of over a minute, deadlines see the time without it."""
    known, wall, steady = after([(10, jump)])
    assert held_time(known, wall + wait, steady + wait)[1] == WALL + steady + wait


@given(jump=JUMPS, wait=st.integers(HOLD_MS, 10 * HOLD_MS))
def test_the_wall_clock_counts_again_afterwards(jump: int, wait: int):
    """A clock that stays where it jumped to is believed in the end."""
    known, wall, steady = after([(10, jump)])
    assert held_time(known, wall + wait, steady + wait)[1] == wall + wait


@example(jump=MINUTE, passed=0)
@example(jump=-MINUTE, passed=0)
@given(jump=st.integers(-MINUTE, MINUTE), passed=st.integers(0, 10**9))
def test_small_corrections_count_at_once(jump: int, passed: int):
    """A correction of up to a minute is no jump."""
    known, wall, steady = after([(passed, jump)])
    assert held_time(known, wall, steady)[1] == wall


@given(jump=JUMPS.filter(lambda jump: abs(jump) > JUMP_MS), wait=st.integers(0, HOLD_MS - 1))
def test_a_jump_and_its_way_back_are_one(jump: int, wait: int):
    """While a jump is held, a second one does not change what is held."""
    known, wall, steady = after([(10, jump), (wait, -jump)])
    assert held_time(known, wall, steady)[1] == WALL + steady


@given(first=JUMPS.filter(lambda jump: abs(jump) > JUMP_MS), passed=st.integers(0, HOLD_MS))
@example(first=HOLD_MS, passed=0)
def test_a_jump_after_the_hold_is_one_of_its_own(first: int, passed: int):
    """Once the clock is believed again, the next jump is held against it, from that instant on."""
    known, wall, steady = after([(10, first), (HOLD_MS + passed, 2 * HOLD_MS)])
    assert held_time(known, wall, steady)[1] == wall - 2 * HOLD_MS


@given(wall=st.integers(0, 2 * WALL), steady=st.integers())
def test_at_first_nothing_is_held(wall: int, steady: int):
    """Before any jump the held difference of the clocks is the one that they have."""
    known = HeldTime.started(wall, steady)
    assert known.held == known.offset == wall - steady
    assert held_time(known, wall, steady) == (known, wall)
