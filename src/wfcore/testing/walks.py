"""
Random walks over the table of a machine, checked at every step. For any machine with a fold.

    class OrderWalk(MachineWalk):
        machine = ORDER
        first = st.builds(Order, st.integers(1, 9))
        facts = {Paid: st.builds(Paid), Shipped: st.builds(Shipped)}

        def fold(self, order, fact):
            return advance(order, fact)

    TestOrder = OrderWalk.TestCase

Each fact becomes a rule that Hypothesis may choose wherever the table has a row for it, and a
fact without a row must be refused. More promises: `check` sees every step, `@invariant()`
(of `hypothesis.stateful`) every state, further `@rule()`s do what facts do not.

`contracts.MachineContract` takes the same class and goes along every row once, not at random.
"""

import re
from collections.abc import Mapping
from copy import deepcopy
from typing import Any, ClassVar

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from wfcore.errors import IllegalMove
from wfcore.instants import EpochMs, later
from wfcore.machine import Machine
from wfcore.testing.builders import NOW

Facts = st.SearchStrategy[Any]


class MachineWalk(RuleBasedStateMachine):
    """
    Subclasses name `machine`, `first` (a strategy for the first record), `facts` (for each
    type of fact a strategy) and `fold`.

    It holds of every step: the fold lands where the table says, gives the same for the same
    arguments, and leaves what it was given as it was; a fact without a row is refused.
    """

    machine: ClassVar[Machine[Any]]
    first: ClassVar[Facts]
    facts: ClassVar[Mapping[type, Facts]]
    refusals: ClassVar[tuple[type[Exception], ...]] = (IllegalMove,)
    """What the fold may raise for a fact that has no row."""

    record: Any

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if not all(hasattr(cls, name) for name in ("machine", "first", "facts")):
            return
        missing = [fact.__name__ for fact in cls.machine.facts if fact not in cls.facts]
        if missing:
            raise TypeError(f"{cls.__name__}.facts lacks: {', '.join(missing)}")
        for name, found in _rules_of(cls).items():
            setattr(cls, name, found)

    def fold(self, record: Any, fact: Any) -> Any:
        """The record after *fact*. Raises one of `refusals` where the table has no row."""
        raise NotImplementedError

    def state(self, record: Any) -> Any:
        """The state of a record in the machine's sense: its `status`."""
        return record.status

    def fitting(self, fact: type) -> Facts | None:
        """
        Facts of that type that can happen to `self.record` now; None: there is none.

        Override it where more than the state decides: a step can only end that has begun.
        """
        return self.facts[fact]

    def check(self, before: Any, fact: Any, after: Any) -> None:
        """Promises about one step, as assertions. Override it; the facts were legal."""

    def prepare(self, fact: type) -> None:
        """
        What must come before such a fact and is none itself: time passes, a store leases.

        For `MachineContract`, which goes its way without chance. Override it where needed.
        """

    def possible(self, fact: type) -> bool:
        """Whether a fact of that type may be folded into the record as it is."""
        allowed = self.machine.allows(self.state(self.record), fact)
        return allowed and self.fitting(fact) is not None

    def follow(self, fact: Any) -> None:
        """Fold a legal fact into the record and check what came out."""
        before, as_it_was = self.record, deepcopy(self.record)
        after = self.fold(before, fact)
        where = self.machine.target(self.state(before), type(fact))
        assert self.state(after) is where, f"{fact!r} led to {self.state(after)}, not {where}"
        assert self.fold(before, fact) == after, f"{fact!r} twice gave two different records"
        assert before == as_it_was, f"{fact!r} changed the record that it was folded into"
        self.record = after
        self.check(before, fact, after)

    def stranger(self, fact: Any) -> None:
        """A fact without a row must be refused, and leave the record as it was."""
        as_it_was = deepcopy(self.record)
        try:
            self.fold(self.record, fact)
        except self.refusals:
            pass
        else:
            raise AssertionError(f"{self.state(self.record)} took {fact!r}, which has no row")
        assert self.record == as_it_was, f"{fact!r} was refused, and changed the record"

    def strangers(self) -> list[type]:
        """The types of facts that have no row in the record's state."""
        state = self.state(self.record)
        return [fact for fact in self.facts if not self.machine.allows(state, fact)]

    @precondition(lambda self: hasattr(self, "record") and bool(self.strangers()))
    @rule(
        fact=st.runner().flatmap(
            lambda walk: st.sampled_from(walk.strangers()).flatmap(walk.facts.__getitem__)
        )
    )
    def refused(self, fact: Any) -> None:
        """One fact that has no row."""
        self.stranger(fact)


class TimedWalk(MachineWalk):
    """A walk with a clock: `self.now` moves between the steps."""

    def __init__(self) -> None:
        super().__init__()
        self.now = NOW

    @rule(by=st.integers(1, 2**20) | st.sampled_from((60_000, 86_400_000)))
    def time_passes(self, by: int) -> None:
        self.now = later(self.now, by)

    def at(self, instant: int) -> None:
        """Let time pass until *instant*, where that is still to come."""
        self.now = EpochMs(max(self.now, instant))


def _rules_of(walk: type[MachineWalk]) -> Mapping[str, Any]:
    """The rules that the table and the strategies make, by the name that a trace gives them."""

    def begin(self: MachineWalk, record: Any) -> None:
        assert self.state(record) is self.machine.initial, "a walk begins in the initial state"
        self.record = record

    rules: dict[str, Any] = {"begin": initialize(record=walk.first)(begin)}
    for fact in walk.machine.facts:
        rules[_rule_name(fact)] = _following(fact)
    return rules


def _following(fact_type: type) -> Any:
    def follow(self: MachineWalk, fact: Any) -> None:
        self.follow(fact)

    follow.__name__ = _rule_name(fact_type)
    fitting = st.runner().flatmap(lambda walk: walk.fitting(fact_type))
    return precondition(lambda self: self.possible(fact_type))(rule(fact=fitting)(follow))


def _rule_name(fact: type) -> str:
    """`StepDone` → `step_done`; a name that the walk itself uses gets a trailing underscore."""
    name = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", fact.__name__).lower()
    return f"{name}_" if hasattr(MachineWalk, name) or name == "begin" else name
