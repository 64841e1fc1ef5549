"""Machines as data, and the small records beside them."""

from enum import StrEnum

import pytest

from wfcore.errors import IllegalMove
from wfcore.machine import Machine, Row


class Light(StrEnum):
    RED = "RED"
    GREEN = "GREEN"


class GoAsked:
    """Somebody waits."""


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


def test_two_rows_for_one_pair_are_refused():
    """A table that contradicts itself does not even import."""
    with pytest.raises(ValueError, match="two rows"):
        Machine("light", Light.RED, frozenset(), (*LIGHT.rows, *LIGHT.rows))


def test_messages_speak_of_facts_in_plain_words():
    """`GoAsked` reads "go asked"."""
    with pytest.raises(IllegalMove, match="light is GREEN: go asked is not possible"):
        LIGHT.target(Light.GREEN, GoAsked)
