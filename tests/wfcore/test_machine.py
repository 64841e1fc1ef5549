"""Machines as data, and the small records beside them."""

from enum import StrEnum

import pytest

from wfcore.errors import IllegalMove
from wfcore.machine import InvalidMachine, Machine, Row


class Light(StrEnum):
    RED = "RED"
    GREEN = "GREEN"


class GoAsked:
    """Somebody waits."""


class Pushed(GoAsked):
    """Somebody waits, and pushed the button."""


class Rushed(Pushed):
    """Somebody waits, and pushed the button again and again."""


class Broken:
    """The bulb is gone."""


LIGHT = Machine(
    name="light",
    initial=Light.RED,
    final=frozenset({Light.GREEN}),
    rows=(Row(Light.RED, GoAsked, Light.GREEN, "XX"),),
)


def test_a_row_leads_to_its_target():
    """State and fact name the next state."""
    assert LIGHT.target(Light.RED, GoAsked) is Light.GREEN
    assert LIGHT.allows(Light.RED, GoAsked)
    assert LIGHT.facts == (GoAsked,)


@pytest.mark.parametrize(("state", "fact"), [(Light.GREEN, GoAsked), (Light.RED, Broken)])
def test_no_row_is_an_illegal_move_that_says_which(state, fact):
    """The refusal names machine, state and fact, in words a caller can read."""
    assert not LIGHT.allows(state, fact)
    with pytest.raises(IllegalMove) as refused:
        LIGHT.target(state, fact)
    assert (refused.value.machine, refused.value.state) == ("light", state)
    assert refused.value.fact == fact.__name__
    assert str(refused.value).startswith(f"light is {state}: ")


def refused(final: frozenset, *rows: Row) -> str:
    """What is said of a light with these rows."""
    with pytest.raises(InvalidMachine) as found:
        Machine("light", Light.RED, final, rows)
    return str(found.value)


def test_two_rows_for_one_pair_are_refused():
    """A table that contradicts itself does not even import."""
    message = refused(frozenset(), *LIGHT.rows, *LIGHT.rows)
    assert message == "light: two rows for one state and fact"


def test_a_row_out_of_a_final_state_is_refused():
    """Also one that leads back to it: what has ended takes no further fact."""
    for target in Light:
        again = Row(Light.GREEN, Broken, target, "XX")
        message = refused(LIGHT.final, *LIGHT.rows, again)
        assert message == "light: GREEN Broken: no row may leave a final state"


def test_a_state_that_no_rows_lead_to_is_refused():
    """Rows that lead there from it alone, or from nowhere, are none."""
    own = Row(Light.GREEN, GoAsked, Light.GREEN, "XX")
    back = Row(Light.GREEN, Broken, Light.RED, "XX")
    for rows in ((), (own,), (back, own), (Row(Light.RED, Broken, Light.RED, "XX"), own)):
        assert refused(frozenset(), *rows) == "light: no rows lead to GREEN"


def test_a_row_is_found_by_the_nearest_base_class():
    """A row for a base class decides for every fact that no nearer row is for."""
    rows = (*LIGHT.rows, Row(Light.RED, Pushed, Light.RED, "YY"))
    light = Machine("light", Light.RED, LIGHT.final, rows)
    assert LIGHT.target(Light.RED, Rushed) is Light.GREEN
    assert light.target(Light.RED, Rushed) is Light.RED
    assert light.row(Light.RED, Pushed) is rows[1]
    assert light.row(Light.RED, GoAsked) is rows[0]
    assert light.allows(Light.RED, Rushed)
    assert light.row(Light.RED, Broken) is None
    assert not light.allows(Light.RED, object)


def test_the_way_to_a_state_is_a_shortest_one():
    """The rows in their order; none to where it begins."""
    step = StrEnum("step", ["A", "B", "C", "D"])
    far = Row(step.A, GoAsked, step.B, "1"), Row(step.B, GoAsked, step.C, "2")
    near = Row(step.A, Broken, step.C, "3")
    last = Row(step.C, Broken, step.D, "4")
    machine = Machine("steps", step.A, frozenset({step.D}), (*far, last, near))
    assert machine.way_to(step.A) == ()
    assert machine.way_to(step.D) == (near, last)


def test_a_refusal_may_be_about_something_that_has_a_name():
    """By default it speaks of the machine; the machine's name stays in what programs read."""
    with pytest.raises(IllegalMove, match="the light at the bridge is GREEN: ") as found:
        LIGHT.target(Light.GREEN, GoAsked, "the light at the bridge")
    assert (found.value.machine, found.value.fact) == ("light", "GoAsked")


def test_messages_speak_of_facts_in_plain_words():
    """`GoAsked` reads "go asked"."""
    with pytest.raises(IllegalMove, match="light is GREEN: go asked is not possible"):
        LIGHT.target(Light.GREEN, GoAsked)
