"""
The contract of a machine and its fold: every row is driven once, every other pair is refused.

    class TestOrderRows(MachineContract):
        walk = OrderWalk
"""

from typing import Any, ClassVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wfcore.machine import Row
from wfcore.testing.walks.walking import MachineWalk

EXAMPLES = 5
"""How many different facts each row and each state is tried with."""


class MachineContract:
    """Subclasses name a `walk`, a subclass of `MachineWalk`."""

    walk: ClassVar[type[MachineWalk]]

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        if not hasattr(self, "walk"):
            name = type(self).__name__
            pytest.fail(f"{name}.walk must name a subclass of MachineWalk", pytrace=False)
        machine = self.walk.machine
        if "row" in metafunc.fixturenames:
            ids = [f"{row.state}-{row.fact.__name__}" for row in machine.rows]
            metafunc.parametrize("row", machine.rows, ids=ids)
        if "state" in metafunc.fixturenames:
            metafunc.parametrize("state", machine.states, ids=str)

    def test_the_row_leads_where_it_says(self, row: Row[Any]) -> None:
        """Driven from the beginning, the fold goes where the table says."""

        @settings(max_examples=EXAMPLES, database=None)
        @given(st.data())
        def drive(data: st.DataObject) -> None:
            walk = _arrived(self.walk, row.state, data)
            _take(walk, row.fact, data)
            assert walk.state(walk.record) is row.target

        drive()

    def test_every_fact_without_a_row_is_refused(self, state: Any) -> None:
        """Where the table says nothing, the fold refuses and changes nothing."""

        @settings(max_examples=EXAMPLES, database=None)
        @given(st.data())
        def try_them(data: st.DataObject) -> None:
            walk = _arrived(self.walk, state, data)
            for fact_type in walk.strangers():
                walk.stranger(data.draw(walk.facts[fact_type], label=fact_type.__name__))

        try_them()


def _arrived(make: type[MachineWalk], state: Any, data: st.DataObject) -> MachineWalk:
    """A walk that has come to *state* by the shortest way."""
    walk = make()
    walk.record = data.draw(make.first, label="first")
    for row in make.machine.way_to(state):
        _take(walk, row.fact, data)
    return walk


def _take(walk: MachineWalk, fact_type: type, data: st.DataObject) -> None:
    """Fold such a fact, after one that makes it possible where the record is not ready for it."""
    walk.prepare(fact_type)
    if not walk.possible(fact_type):
        _make_possible(walk, fact_type, data)
    _fold(walk, fact_type, data)


def _make_possible(walk: MachineWalk, fact_type: type, data: st.DataObject) -> None:
    here = walk.state(walk.record)
    for row in walk.machine.rows:
        if row.state is here and row.target is here and walk.possible(row.fact):
            before = walk.record
            _fold(walk, row.fact, data)
            if walk.possible(fact_type):
                return
            walk.record = before
    raise AssertionError(f"no {fact_type.__name__} fits a record in {here}: see `fitting`")


def _fold(walk: MachineWalk, fact_type: type, data: st.DataObject) -> None:
    facts = walk.fitting(fact_type)
    assert facts is not None
    walk.follow(data.draw(facts, label=fact_type.__name__))
