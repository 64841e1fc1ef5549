"""Which rows of the machines the worlds have walked along, and which they never reached."""

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from attrs import frozen

from wfcore.machine import Machine
from wfcore.rules.approval.machine import APPROVAL
from wfcore.rules.execution.machine import EXECUTION

WATCHED: tuple[Machine[Any], ...] = (EXECUTION, APPROVAL)


class _Noted(dict[tuple[Any, type], Any]):
    """A machine's targets by state and fact, counting each look-up that finds one."""

    def __init__(self, targets: Mapping[tuple[Any, type], Any]) -> None:
        super().__init__(targets)
        self.walked: Counter[tuple[Any, type]] = Counter()

    def get(self, key: Any, default: Any = None) -> Any:
        """The target, noted."""
        if key in self:
            self.walked[key] += 1
        return super().get(key, default)


@frozen
class Coverage:
    """How often each row was walked, in the order of the tables."""

    rows: Mapping[str, int]

    @property
    def reached(self) -> int:
        return sum(1 for times in self.rows.values() if times)

    @property
    def missing(self) -> tuple[str, ...]:
        return tuple(row for row, times in self.rows.items() if not times)


@contextmanager
def noted() -> Iterator[list[_Noted]]:
    """While it lasts, the machines count their rows. For `coverage_of`."""
    kept = [machine._targets for machine in WATCHED]
    counting = [_Noted(targets) for targets in kept]
    try:
        for machine, targets in zip(WATCHED, counting, strict=True):
            object.__setattr__(machine, "_targets", targets)
        yield counting
    finally:
        for machine, old in zip(WATCHED, kept, strict=True):
            object.__setattr__(machine, "_targets", old)


def coverage_of(counting: list[_Noted]) -> Coverage:
    """What was counted so far."""
    rows: dict[str, int] = {}
    for machine, targets in zip(WATCHED, counting, strict=True):
        for row in machine.rows:
            name = f"{machine.name}: {row.state} {row.fact.__name__}"
            rows[name] = targets.walked[row.state, row.fact]
    return Coverage(rows)
