"""
State machines as data.

A machine is a table of rows: state, fact, next state, and the rule that says so. A *fact* is a type
whose instances say what has happened (`StepDone`, `CancelAsked`), never what somebody would like.
State and fact alone decide where a record goes. If a target seems to depend on data, there are two
facts in one, and they want to be split (a child that ended well, a child that ended badly): a table
with conditions could no longer be read, drawn or tried row by row.

So a machine does two things only. `target` says where a fact leads, or refuses it; a pair without a
row is refused, always. And the rows can be read by anyone: the diagrams, `wfcore states`, the
shortest way to any state, and the tests that drive every row and offer every state what it must
refuse are made from the same rows that decide. What a fact changes beside the state is the business
of a fold next to the table, which asks `target` first and is held against the table by
`wfcore.testing.MachineContract`.

Facts may share a base class, and a row may name it: the nearest class in the order of inheritance
(`type.__mro__`) that has a row decides. That lets one row speak for a family of facts (every fact
about a step, every abort of an execution) while a single fact of the family goes another way by a
row of its own.

A table that contradicts itself does not import: two rows for one state and fact, a row out of a
final state, or a state that no rows lead to are `InvalidMachine`. Do not work around that with a
state that is final "almost always"; a final state is a promise to everyone who keeps a record of
it.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Generic, TypeVar

from attrs import field, frozen

from wfcore.errors import IllegalMove

S = TypeVar("S", bound=StrEnum)


class InvalidMachine(ValueError):
    """A table that contradicts itself. The message names the machine and the row or state."""


@frozen
class Row(Generic[S]):
    """From *state*, *fact* leads to *target*; *rule* names the sentence that says so."""

    state: S
    fact: type
    target: S
    rule: str

    def __str__(self) -> str:
        return f"{self.state} {self.fact.__name__}"


@frozen
class Machine(Generic[S]):
    """A named table of rows. Raises `InvalidMachine` for one that contradicts itself."""

    name: str
    initial: S
    final: frozenset[S]
    rows: tuple[Row[S], ...]
    _by_pair: Mapping[tuple[S, type], Row[S]] = field(init=False, repr=False, eq=False)
    _ways: Mapping[S, tuple[Row[S], ...]] = field(init=False, repr=False, eq=False)

    def __attrs_post_init__(self) -> None:
        by_pair = {(row.state, row.fact): row for row in self.rows}
        if len(by_pair) != len(self.rows):
            raise InvalidMachine(f"{self.name}: two rows for one state and fact")
        for row in self.rows:
            if row.state in self.final:
                raise InvalidMachine(f"{self.name}: {row}: no row may leave a final state")
        ways = _shortest_ways(self.initial, self.rows)
        for state in self.states:
            if state not in ways:
                raise InvalidMachine(f"{self.name}: no rows lead to {state}")
        object.__setattr__(self, "_by_pair", by_pair)
        object.__setattr__(self, "_ways", ways)

    def row(self, state: S, fact: type) -> Row[S] | None:
        """The row for *fact*, or for the nearest of its base classes that has one."""
        for kind in fact.__mro__:
            found = self._by_pair.get((state, kind))
            if found is not None:
                return found
        return None

    def target(self, state: S, fact: type, subject: str = "") -> S:
        """The state that *fact* leads to. Raises `refusal` where the table has no row."""
        row = self.row(state, fact)
        if row is None:
            raise self.refusal(state, fact, subject)
        return row.target

    def refusal(self, state: S, fact: type, subject: str = "") -> IllegalMove:
        """Says that *fact* is not possible for *subject*, by default the machine's name."""
        message = f"{subject or self.name} is {state}: {_words(fact)} is not possible"
        return IllegalMove(message, self.name, str(state), fact.__name__)

    def allows(self, state: S, fact: type) -> bool:
        """Whether the table has a row for this pair."""
        return any((state, kind) in self._by_pair for kind in fact.__mro__)

    @property
    def facts(self) -> tuple[type, ...]:
        """Every fact type that some row names, in order of first appearance."""
        return tuple(dict.fromkeys(row.fact for row in self.rows))

    @property
    def states(self) -> tuple[S, ...]:
        """Every state, in the order of its enumeration."""
        return tuple(type(self.initial))

    def way_to(self, state: S) -> tuple[Row[S], ...]:
        """The rows of a shortest way from the initial state to *state*."""
        return self._ways[state]


def _shortest_ways(initial: S, rows: tuple[Row[S], ...]) -> Mapping[S, tuple[Row[S], ...]]:
    """By state, the rows of a shortest way there; without the states that no rows lead to."""
    ways: dict[S, tuple[Row[S], ...]] = {initial: ()}
    reached = [initial]
    for here in reached:
        for row in rows:
            if row.state == here and row.target not in ways:
                ways[row.target] = (*ways[here], row)
                reached.append(row.target)
    return ways


def _words(fact: type) -> str:
    """`CancelAsked` → "cancel asked", for messages."""
    name = fact.__name__
    return "".join(f" {c.lower()}" if c.isupper() else c for c in name).strip()
