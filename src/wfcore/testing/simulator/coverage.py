"""The rows of the state machines that the worlds have used, and the rows that no world has used."""

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from attrs import frozen

from wfcore.machine import Machine, Row
from wfcore.rules.approval.machine import APPROVAL
from wfcore.rules.execution.machine import EXECUTION
from wfcore.rules.execution.step_machine import STEP

WATCHED: tuple[Machine[Any], ...] = (EXECUTION, STEP, APPROVAL)


class _Noted(dict[tuple[Any, type], Row[Any]]):
    """A machine's rows by state and fact. Counts each look-up that finds a row."""

    def __init__(self, rows: Mapping[tuple[Any, type], Row[Any]]) -> None:
        super().__init__(rows)
        self.walked: Counter[tuple[Any, type]] = Counter()

    def get(self, key: Any, default: Any = None) -> Any:
        """Return the row, and count it."""
        if key in self:
            self.walked[key] += 1
        return super().get(key, default)


@frozen
class Coverage:
    """How often each row was used, in the order of the tables."""

    rows: Mapping[str, int]

    @property
    def reached(self) -> int:
        return sum(1 for times in self.rows.values() if times)

    @property
    def missing(self) -> tuple[str, ...]:
        return tuple(row for row, times in self.rows.items() if not times)


@contextmanager
def noted() -> Iterator[list[_Noted]]:
    """Let the machines count the rows that they look up within the block, for `coverage_of`."""
    kept = [machine._by_pair for machine in WATCHED]
    counting = [_Noted(rows) for rows in kept]
    try:
        for machine, rows in zip(WATCHED, counting, strict=True):
            object.__setattr__(machine, "_by_pair", rows)
        yield counting
    finally:
        for machine, old in zip(WATCHED, kept, strict=True):
            object.__setattr__(machine, "_by_pair", old)


def coverage_of(counting: list[_Noted]) -> Coverage:
    """The counts so far."""
    return Coverage(
        {
            f"{machine.name}: {row}": noted.walked[row.state, row.fact]
            for machine, noted in zip(WATCHED, counting, strict=True)
            for row in machine.rows
        }
    )
