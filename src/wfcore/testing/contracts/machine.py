"""
The contract of a machine and its fold: every row is driven once, every other pair is refused.

A row for a base class of facts is driven with each of its facts. A table that contradicts itself is
refused once more here, for machines that were not built by the constructor of `Machine`.

    class TestOrderRows(MachineContract):
        walk = OrderWalk
"""

from collections.abc import Iterator
from typing import Any, ClassVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wfcore.machine import Row
from wfcore.testing.walks.walking import MachineWalk

EXAMPLES = 5
"""The number of different facts with which each row and each state is tried."""


class MachineContract:
    """
    The promises of a machine and its fold. Subclasses name a `walk`, a subclass of `MachineWalk`.
    """

    walk: ClassVar[type[MachineWalk]]

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        if not hasattr(self, "walk"):
            name = type(self).__name__
            pytest.fail(f"{name}.walk must name a subclass of MachineWalk", pytrace=False)
        machine = self.walk.machine
        if "given_row" in metafunc.fixturenames:
            pairs = list(driven_pairs(self.walk))
            ids = [f"{row.state}-{fact.__name__}" for row, fact in pairs]
            metafunc.parametrize(("given_row", "given_fact"), pairs, ids=ids)
        if "given_state" in metafunc.fixturenames:
            metafunc.parametrize("given_state", machine.states, ids=str)

    def test_the_table_agrees_with_itself(self) -> None:
        """No row leaves a final state, and rows lead from the initial state to every other."""
        machine = self.walk.machine
        for row in machine.rows:
            assert row.state not in machine.final, f"{row}: no row may leave a final state"
        reached = {machine.initial, *(row.target for row in machine.rows)}
        assert reached == set(machine.states), "no rows lead to some states"

    def test_the_row_leads_where_it_says(self, given_row: Row[Any], given_fact: type) -> None:
        """Driven from the initial state, the fold reaches the state that the table names."""

        @settings(max_examples=EXAMPLES, database=None)
        @given(st.data())
        def drive(data: st.DataObject) -> None:
            walk = _arrived(self.walk, given_row.state, data)
            _take(walk, given_fact, data)
            assert walk.state(walk.record) is given_row.target

        drive()

    def test_every_fact_without_a_row_is_refused(self, given_state: Any) -> None:
        """The fold refuses each fact without a row, and changes nothing."""

        @settings(max_examples=EXAMPLES, database=None)
        @given(st.data())
        def try_them(data: st.DataObject) -> None:
            walk = _arrived(self.walk, given_state, data)
            for fact_type in walk.strangers():
                walk.stranger(data.draw(walk.facts[fact_type], label=fact_type.__name__))

        try_them()


def driven_pairs(walk: type[MachineWalk]) -> Iterator[tuple[Row[Any], type]]:
    """Every row, with each type of fact that the row decides."""
    for row in walk.machine.rows:
        for fact in walk.facts:
            if walk.machine.row(row.state, fact) is row:
                yield row, fact


def _arrived(make: type[MachineWalk], state: Any, data: st.DataObject) -> MachineWalk:
    """A walk that has reached *state* by a shortest way."""
    walk = make()
    walk.record = data.draw(make.first, label="first")
    kinds = {id(row): fact for row, fact in driven_pairs(make)}
    for row in make.machine.way_to(state):
        _take(walk, kinds[id(row)], data)
    return walk


def _take(walk: MachineWalk, fact_type: type, data: st.DataObject) -> None:
    """
    Fold a fact of type *fact_type*, after another fact if the record is not ready for this type.
    """
    walk.prepare(fact_type)
    if not walk.possible(fact_type):
        _make_possible(walk, fact_type, data)
    _fold(walk, fact_type, data)


def _make_possible(walk: MachineWalk, fact_type: type, data: st.DataObject) -> None:
    here = walk.state(walk.record)
    for fact in walk.facts:
        row = walk.machine.row(here, fact)
        if row is not None and row.target is here and walk.possible(fact):
            before = walk.record
            _fold(walk, fact, data)
            if walk.possible(fact_type):
                return
            walk.record = before
    raise AssertionError(f"no {fact_type.__name__} fits a record in {here}: see `fitting`")


def _fold(walk: MachineWalk, fact_type: type, data: st.DataObject) -> None:
    facts = walk.fitting(fact_type)
    assert facts is not None
    walk.follow(data.draw(facts, label=fact_type.__name__))
