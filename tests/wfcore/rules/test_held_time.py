"""Deadlines while the wall clock jumps. AP-4."""

from hypothesis import example, given
from hypothesis import strategies as st

from wfcore.rules.clock_jumps import (
    HOLD_MS,
    JUMP_MS,
    HeldTime,
    agreed,
    held_time,
    restarted,
    service_time,
)
from wfcore.time import MINUTE

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


STEPS = st.lists(st.tuples(st.integers(0, 10**7), JUMPS), max_size=20)


@given(STEPS)
def test_the_time_of_work_never_goes_back(jumps: list[tuple[int, int]]):
    """EX-30: Whatever the wall clock does, it goes on with at least nine tenths of the time."""
    wall, steady = WALL + BOOT, BOOT
    known = HeldTime.started(wall, steady)
    before = wall
    for passed, jump in jumps:
        steady, wall = steady + passed, wall + passed + jump
        known, now = service_time(known, wall, steady)
        assert type(now) is int  # whole milliseconds
        assert now >= before + passed * 9 // 10 - 1
        before = now
    known, now = service_time(known, wall + 10**11, steady + 10**11)
    assert now == wall + 10**11


@given(STEPS, st.integers(0, 10**9), st.integers(0, 10**6))
def test_another_start_of_the_machine_knows_the_same(
    jumps: list[tuple[int, int]], away: int, booted: int
):
    """EX-30: The steady clock begins anew; for how long nobody looked, the wall clock says."""
    known, wall, steady = after(jumps)
    anew = restarted(known, steady, wall + away, booted)
    assert (
        service_time(anew, wall + away, booted)[1]
        == (service_time(known, wall + away, steady + away)[1])
    )
    assert (
        held_time(anew, wall + away, booted)[1] == held_time(known, wall + away, steady + away)[1]
    )


@given(back=st.integers(JUMP_MS + 1, 10**9), booted=st.integers(0, 10**6))
def test_a_clock_set_back_while_nobody_looked_is_seen(back: int, booted: int):
    """EX-30, AP-4: A machine that starts with an older time holds, and its work goes on."""
    known, wall, steady = after([])
    anew = restarted(known, steady, wall - back, booted)
    assert held_time(anew, wall - back, booted)[1] == wall
    assert service_time(anew, wall - back, booted)[1] == wall


@given(jump=JUMPS.filter(lambda jump: abs(jump) > JUMP_MS), late=st.integers(0, HOLD_MS - 1))
def test_two_processes_hold_alike(jump: int, late: int):
    """EX-30: Whoever sees a jump later ends its hold with the one that saw it first."""
    known, wall, steady = after([(10, jump)])
    other = HeldTime.started(WALL + BOOT, BOOT)
    seen, _ = held_time(other, wall + late, steady + late)
    alike = agreed(seen, known, steady + late)
    assert alike.hold_until == known.hold_until
    assert agreed(seen, known, known.hold_until) == agreed(seen, None, steady) == seen


@given(st.lists(JUMPS.filter(lambda jump: abs(jump) > JUMP_MS), min_size=2, max_size=2))
def test_who_started_between_two_jumps_holds_with_the_older_one(jumps: list[int]):
    """EX-30: What is held is the time from before the first jump, which only the older one saw."""
    older, wall, steady = after([(10, jumps[0])])
    younger = HeldTime.started(wall, steady)
    wall, steady = wall + 10 + jumps[1], steady + 10
    older, deadlines = held_time(older, wall, steady)
    seen, _ = held_time(younger, wall, steady)
    assert held_time(agreed(seen, older, steady), wall, steady)[1] == deadlines


@given(st.lists(st.integers(0, 10**9), max_size=20))
def test_without_a_jump_the_time_of_work_is_that_of_the_wall(passed: list[int]):
    """EX-30: However long a process runs and however often it asks, nothing begins too soon."""
    wall, steady = WALL + BOOT, BOOT
    known = HeldTime.started(wall, steady)
    for by in passed:
        wall, steady = wall + by, steady + by
        for _ in range(2):
            known, now = service_time(known, wall, steady)
            assert now == wall
