"""How many supervisors are held ready: the pools of the spawner, as a pure rule."""

from hypothesis import given
from hypothesis import strategies as st

from adapters_runtime.sandbox.pool import (
    IDLE_S,
    LARGE_IDLE_S,
    MOST_EACH,
    MOST_PROFILES,
    QUIET_S,
    Pools,
)


def filled(spares: Pools[str, int], made: list[int]) -> None:
    """Make everything that is missing."""
    while (kind := spares.missing()) is not None:
        made.append(len(made))
        spares.add(kind, made[-1])


def test_one_is_ready_from_the_start() -> None:
    """Before the first step there is a spare of the usual kind, and of no other."""
    spares, made = Pools[str, int]("usual"), []
    filled(spares, made)
    assert spares.take("usual", 1.0) == 0
    assert spares.take("other", 1.0) is None


def test_what_is_used_is_made_again() -> None:
    """A kind that was asked for once is held ready from then on."""
    spares, made = Pools[str, int]("usual"), []
    spares.take("node", 1.0)
    filled(spares, made)
    assert spares.take("node", 2.0) is not None


def test_the_first_made_goes_first() -> None:
    """Of several spares a step gets the one that had the most time to become ready."""
    spares = Pools[str, int]("usual")
    for spare in (1, 2, 3):
        spares.add("usual", spare)
    assert [spares.take("usual", 1.0) for _ in range(4)] == [1, 2, 3, None]


def test_what_is_large_goes_sooner() -> None:
    """One spare is enough for steps one by one; large ones are soon given up."""
    spares, made = Pools[str, int]("usual", is_large=lambda kind: kind == "node"), []
    for kind in ("node", "lua"):
        spares.take(kind, 1.0)
    spares.take("node", 1.0)
    filled(spares, made)
    assert len(list(spares)) == 3
    assert spares.next_surplus_s(1.0) == LARGE_IDLE_S
    assert len(spares.surplus(1.0 + LARGE_IDLE_S)) == 1
    assert spares.take("node", 100.0) is None
    assert spares.take("lua", 100.0) is not None


def test_what_is_large_is_made_for_steps_that_follow_one_another() -> None:
    """However many steps come one by one, nothing is started that none of them uses."""
    spares, made = Pools[str, int]("usual", is_large=lambda kind: kind == "node"), []
    filled(spares, made)
    for now in range(1, 1000, 40):
        assert spares.surplus(float(now)) == []
        assert spares.take("node", float(now)) is None
        assert spares.missing() is None
    for now in (1000.0, 1001.0):
        assert spares.take("node", now) is None
    filled(spares, made)
    assert spares.take("node", 1002.0) is not None


def test_who_has_served_a_step_is_held_until_it_is_quiet() -> None:
    """After a rush all are kept for the next, and one when it has passed."""
    spares, busy = Pools[str, int]("usual"), list(range(8))
    for _ in busy:
        spares.take("usual", 100.0)
    for one in busy:
        assert spares.wants("usual")
        spares.add("usual", one)
    assert spares.surplus(101.0) == []
    assert spares.next_surplus_s(101.0) == QUIET_S - 1
    assert spares.surplus(100.0 + QUIET_S) == busy[1:]
    assert not spares.wants("never heard of")


def test_no_large_one_is_held_that_would_not_be_made() -> None:
    """What was started ahead costs more than a start: one that served a step is kept only if it
    takes the place of one to be made."""
    spares = Pools[str, int]("usual", is_large=lambda kind: kind == "node")
    spares.take("node", 1.0)
    assert not spares.wants("node")
    spares.take("node", 2.0)
    assert spares.wants("node")
    spares.add("node", 1)
    assert not spares.wants("node")


def test_a_rush_gets_more_and_quiet_takes_them_back() -> None:
    """Pools that run out become more, up to a few; after a while there is one, then none."""
    spares, made = Pools[str, int]("usual"), []
    for _ in range(20):
        spares.take("node", 100.0)
    filled(spares, made)
    assert len(list(spares)) == MOST_EACH + 1
    assert len(spares.surplus(100.0 + QUIET_S)) == MOST_EACH - 1
    assert len(spares.surplus(100.0 + IDLE_S)) == 1
    assert len(list(spares)) == 1
    assert spares.missing() is None


@given(
    st.lists(
        st.tuples(st.sampled_from("abcdefgh"), st.floats(0, IDLE_S), st.booleans(), st.booleans()),
        max_size=40,
    )
)
def test_no_spare_is_given_twice(steps: list[tuple[str, float, bool, bool]]) -> None:
    """Whatever happens, a spare leaves the pools once, the pools stay small, and one look is due
    while something may become surplus."""
    spares, made = Pools[str, int]("a"), []
    gone: list[int] = []
    now = 0.0
    for kind, passed, fills, looks in steps:
        now += passed
        taken = spares.take(kind, now)
        gone += [] if taken is None else [taken]
        if fills:
            filled(spares, made)
        if looks:
            gone += spares.surplus(now)
            assert len(list(spares)) <= MOST_PROFILES * MOST_EACH
            assert (spares.next_surplus_s(now) or 0) >= 0
    assert len(gone) == len(set(gone))
    assert set(gone).isdisjoint(spares)


def test_a_dead_spare_is_forgotten() -> None:
    """One that somebody killed is not given to a step, and is replaced."""
    spares, made = Pools[str, int]("a"), []
    filled(spares, made)
    spares.forget(0)
    assert spares.missing() == "a"
    assert spares.take("a", 1.0) is None
