"""
Random walks over the table of any machine with a fold, checked at every step.

    class OrderWalk(MachineWalk):
        machine = ORDER
        first = st.builds(Order, st.integers(1, 9))
        facts = {Paid: st.builds(Paid), Shipped: st.builds(Shipped)}

        def fold(self, order, fact):
            return advance(order, fact)

    TestOrder = OrderWalk.TestCase

A fact with a row in the current state may happen; a fact without a row must be refused. To check
more: `check` is called after every step, `@invariant()` (of `hypothesis.stateful`) in every state,
and additional `@rule()`s do other things than folding facts.

`contracts.MachineContract` takes the same class and visits every row once instead of at random.
"""

from collections.abc import Mapping
from copy import deepcopy
from types import MappingProxyType
from typing import Any, ClassVar

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from wfcore.errors import IllegalMove
from wfcore.machine import Machine
from wfcore.testing.builders import NOW
from wfcore.testing.first_failure import BoundedTestCase, tell_first
from wfcore.time import EpochMs, later

Facts = st.SearchStrategy[Any]
NAMED = ("machine", "first", "facts")
"""The class attributes that every walk must define."""


class MachineWalk(RuleBasedStateMachine):
    """
    A random walk over a machine.

    Subclasses name `machine`, `first` (a strategy for the first record), `facts` (a strategy for
    each type of fact; for a base class that a row names, a strategy for each subclass) and `fold`.

    Checked at every step: the fold reaches the state that the table names, is deterministic, and
    does not modify its arguments; a fact without a row is refused. The first failure is reported at
    once; then Hypothesis shrinks it for at most half a minute.
    """

    TestCase = BoundedTestCase()
    machine: ClassVar[Machine[Any]]
    first: ClassVar[Facts]
    facts: ClassVar[Mapping[type, Facts]]
    refusals: ClassVar[tuple[type[Exception], ...]] = (IllegalMove,)
    """The errors that the fold may raise for a fact that has no row."""

    weights: ClassVar[Mapping[type, int]] = MappingProxyType({})
    """The weight with which a type of fact is chosen where it is legal; default 1."""

    begin: ClassVar[Any]
    record: Any
    backoff = 0
    """The number of steps to take before a final one, where there is a choice."""
    taken = 0
    over = False
    """Whether the final state was checked to refuse every fact."""

    def __init__(self) -> None:
        lacking = [name for name in NAMED if not hasattr(self, name)]
        if lacking:
            raise TypeError(f"{type(self).__name__} does not name {', '.join(lacking)}")
        super().__init__()

    def teardown(self) -> None:
        tell_first(type(self))

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if not all(hasattr(cls, name) for name in NAMED):
            return
        missing = [
            fact.__name__
            for fact in cls.machine.facts
            if not any(issubclass(kind, fact) for kind in cls.facts)
        ]
        if missing:
            raise TypeError(f"{cls.__name__}.facts lacks: {', '.join(missing)}")
        cls.begin = _beginning(cls)

    def fold(self, record: Any, fact: Any) -> Any:
        """Return the record after *fact*. Raises one of `refusals` where the table has no row."""
        raise NotImplementedError(f"{type(self).__name__}.fold must fold a fact into a record")

    def state(self, record: Any) -> Any:
        """The state of a record in the machine's sense: its `status`."""
        return record.status

    def fitting(self, fact: type) -> Facts | None:
        """
        The facts of type *fact* that are legal for `self.record` now; None if there are none.

        Override this method where more than the state decides: a step can only end if it has begun.
        """
        return self.facts[fact]

    def check(self, before: Any, fact: Any, after: Any) -> None:
        """Check promises about one step by assertions. Override this method; *fact* was legal."""

    def prepare(self, fact: type) -> None:
        """
        Do what must precede a fact of this type without being a fact: time passes, a store grants a
        lease.

        `MachineContract`, which walks without chance, calls this method. Override it where needed.
        """

    def possible(self, fact: type) -> bool:
        """Whether a fact of type *fact* is legal for the record now."""
        allowed = self.machine.allows(self.state(self.record), fact)
        return allowed and self.fitting(fact) is not None

    def welcome(self, fact: type) -> bool:
        """Whether a fact of type *fact* is possible and does not end the walk too early."""
        if not self.possible(fact):
            return False
        return self.taken >= self.backoff or not self._ends(fact) or self._only_ends()

    def _ends(self, fact: type) -> bool:
        return self.machine.target(self.state(self.record), fact) in self.machine.final

    def _only_ends(self) -> bool:
        return all(self._ends(fact) for fact in self.facts if self.possible(fact))

    def follow(self, fact: Any) -> None:
        """Fold a legal fact into the record and check the result."""
        before, as_it_was = self.record, deepcopy(self.record)
        after = self.fold(before, fact)
        where = self.machine.target(self.state(before), type(fact))
        assert self.state(after) is where, f"{fact!r} led to {self.state(after)}, not {where}"
        assert self.fold(before, fact) == after, f"{fact!r} twice gave two different records"
        assert before == as_it_was, f"{fact!r} changed the record that it was folded into"
        self.record = after
        self.taken += 1
        self.check(before, fact, after)

    def stranger(self, *facts: Any) -> None:
        """
        Check that each of these facts, which have no row, is refused and leaves the record
        unchanged.
        """
        as_it_was = deepcopy(self.record)
        for fact in facts:
            try:
                self.fold(self.record, fact)
            except self.refusals:
                pass
            else:
                raise AssertionError(f"{self.state(self.record)} took {fact!r}, which has no row")
        assert self.record == as_it_was, f"{facts!r} were refused, and changed the record"

    def strangers(self) -> list[type]:
        """The types of facts that have no row in the record's state."""
        state = self.state(self.record)
        return [fact for fact in self.facts if not self.machine.allows(state, fact)]

    def next_facts(self) -> Facts:
        """The facts that are legal now, each type as often as its weight says."""
        welcome = [fact for fact in self.facts if self.welcome(fact)]
        fitting = [self.fitting(fact) for fact in welcome for _ in range(self.weights.get(fact, 1))]
        return st.sampled_from([one for one in fitting if one is not None]).flatmap(_same)

    @precondition(lambda self: self.goes_on())
    @rule(fact=st.runner().flatmap(lambda walk: walk.next_facts()))
    def happens(self, fact: Any) -> None:
        """Fold a fact that has a row in this state."""
        self.follow(fact)

    @precondition(lambda self: self.goes_on())
    @rule(fact=st.runner().flatmap(lambda walk: walk.next_facts()))
    def then(self, fact: Any) -> None:
        """Repeat the rule `happens`, so that Hypothesis chooses it more often."""
        self.follow(fact)

    @precondition(lambda self: self.goes_on())
    @rule(fact=st.runner().flatmap(lambda walk: walk.next_facts()))
    def and_then(self, fact: Any) -> None:
        """Repeat the rule `happens` once more."""
        self.follow(fact)

    def goes_on(self) -> bool:
        """Whether anything may happen to the record."""
        return hasattr(self, "record") and any(map(self.welcome, self.facts))

    @precondition(lambda self: hasattr(self, "record") and bool(self.strangers()))
    @rule(facts=st.runner().flatmap(lambda walk: walk.some_strangers()))
    def refused(self, facts: tuple[Any, ...]) -> None:
        """Try a fact without a row in this state; once in a final state, one fact of every type."""
        self.over = self.state(self.record) in self.machine.final
        self.stranger(*facts)

    def some_strangers(self) -> st.SearchStrategy[tuple[Any, ...]]:
        """The facts that `refused` tries."""
        kinds = self.strangers()
        if self.state(self.record) in self.machine.final and not self.over:
            return st.tuples(*(self.facts[kind] for kind in kinds))
        return st.sampled_from(kinds).flatmap(lambda kind: st.tuples(self.facts[kind]))


class TimedWalk(MachineWalk):
    """A walk with a clock: `self.now` moves between the steps."""

    def __init__(self) -> None:
        super().__init__()
        self.now = NOW

    @rule(by=st.integers(1, 2**20) | st.sampled_from((60_000, 86_400_000)))
    def time_passes(self, by: int) -> None:
        self.now = later(self.now, by)

    def at(self, instant: int) -> None:
        """Move the clock to *instant*, unless *instant* is already past."""
        self.now = EpochMs(max(self.now, instant))


def _same(strategy: Facts) -> Facts:
    return strategy


def _beginning(walk: type[MachineWalk]) -> Any:
    def begin(self: MachineWalk, record: Any, backoff: int) -> None:
        assert self.state(record) is self.machine.initial, "a walk begins in the initial state"
        self.record, self.backoff = record, backoff

    return initialize(record=walk.first, backoff=st.integers(0, 12))(begin)
