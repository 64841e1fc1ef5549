"""How fast the shipped strategies make values: what a property test spends before it begins."""

import time
from collections.abc import Mapping

from hypothesis import Phase, given, settings

from wfcore.model.access import Account
from wfcore.model.approval import Approval
from wfcore.model.execution import Execution
from wfcore.model.workflow import Definition
from wfcore.rules.execution.machine import StepDone
from wfcore.testing.strategies.records import values_of

KINDS = (Account, Execution, Approval, StepDone, Definition)
EXAMPLES = 400


def speeds() -> Mapping[str, float]:
    """Values a second of some kinds, Hypothesis' own work included."""
    return {kind.__name__: _speed(kind) for kind in KINDS}


def _speed(kind: type) -> float:
    made = []

    @settings(max_examples=EXAMPLES, phases=[Phase.generate], database=None, deadline=None)
    @given(values_of(kind))
    def make(value: object) -> None:
        made.append(value)

    make()  # the first time pays for building the strategy
    made.clear()
    began = time.perf_counter()
    make()
    return len(made) / (time.perf_counter() - began)
