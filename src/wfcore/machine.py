"""
State machines as data.

A machine is a table of rows (state, fact type, next state, rule id). The pair (state, fact)
alone decides where a record goes; if it seemed to depend on data, the fact is two facts. From
the same rows come `target`, the way to any state, the diagrams, and tests that walk every pair.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Generic, TypeVar

from attrs import field, frozen

from wfcore.errors import IllegalMove

S = TypeVar("S", bound=StrEnum)


@frozen
class Row(Generic[S]):
    """From *state*, *fact* leads to *target*; *rule* names the sentence that says so."""

    state: S
    fact: type
    target: S
    rule: str


@frozen
class Machine(Generic[S]):
    """A named table of rows. Two rows for one (state, fact) are refused at import."""

    name: str
    initial: S
    final: frozenset[S]
    rows: tuple[Row[S], ...]
    _targets: Mapping[tuple[S, type], S] = field(init=False, repr=False)

    def __attrs_post_init__(self) -> None:
        targets = {(row.state, row.fact): row.target for row in self.rows}
        if len(targets) != len(self.rows):
            raise ValueError(f"{self.name}: two rows for one state and fact")
        object.__setattr__(self, "_targets", targets)

    def target(self, state: S, fact: type) -> S:
        """The state that *fact* leads to. Raises `IllegalMove` where the table has no row."""
        found = self._targets.get((state, fact))
        if found is None:
            message = f"{self.name} is {state}: {_words(fact)} is not possible"
            raise IllegalMove(message, self.name, str(state), fact.__name__)
        return found

    def allows(self, state: S, fact: type) -> bool:
        """Whether the table has a row for this pair."""
        return (state, fact) in self._targets

    @property
    def facts(self) -> tuple[type, ...]:
        """Every fact type that some row names, in order of first appearance."""
        return tuple(dict.fromkeys(row.fact for row in self.rows))

    @property
    def states(self) -> tuple[S, ...]:
        """Every state, in the order of its enumeration."""
        return tuple(type(self.initial))

    def way_to(self, state: S) -> tuple[Row[S], ...]:
        """
        The rows of a shortest way from the initial state to *state*.

        Raises `ValueError` where no row leads there.
        """
        ways: dict[S, tuple[Row[S], ...]] = {self.initial: ()}
        while state not in ways:
            steps = [row for row in self.rows if row.state in ways and row.target not in ways]
            if not steps:
                raise ValueError(f"{self.name}: no way to {state}")
            reached = ways.copy()
            for row in steps:
                reached.setdefault(row.target, (*ways[row.state], row))
            ways = reached
        return ways[state]


def _words(fact: type) -> str:
    """`CancelAsked` → "cancel asked", for messages."""
    name = fact.__name__
    return "".join(f" {c.lower()}" if c.isupper() else c for c in name).strip()
