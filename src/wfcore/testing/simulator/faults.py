"""
The faults: drawn from a seed and recorded, or replayed from a record.

A fault is recorded under its site, a task and the number of its call. The fault stays in place when
other parts of the world are left out.
"""

import re
from collections.abc import Mapping, Sequence
from enum import StrEnum
from random import Random
from typing import Protocol

from attrs import frozen


class FaultKind(StrEnum):
    """The kinds of faults: faults of an await, and faults of a hint."""

    FAIL = "fail"
    LOSE = "lose the answer"
    LOSE_CLAIM = "lose what was claimed"
    DELAY = "delay"
    CRASH = "crash"
    CRASH_AFTER = "crash after"
    POWER_CUT = "power cut"
    STORE_DOWN = "store down"
    READ_ONLY = "store read-only"
    FREEZE = "freeze"
    CLOCK_JUMP = "clock jump"
    WAKE = "wake-up for nothing"
    HINT_LOST = "hint lost"
    HINT_TWICE = "hint twice"


AMOUNTS: Mapping[FaultKind, Sequence[int]] = {
    FaultKind.DELAY: (1, 20, 300, 2_500, 7_000),
    FaultKind.CRASH: (50, 2_000, 9_000),
    FaultKind.CRASH_AFTER: (50, 2_000, 9_000),
    FaultKind.POWER_CUT: (100, 4_000),
    FaultKind.STORE_DOWN: (100, 1_500, 8_000),
    FaultKind.READ_ONLY: (100, 1_500, 8_000),
    FaultKind.FREEZE: (300, 7_000, 16_000),
    FaultKind.CLOCK_JUMP: (-600_000, -90_000, 5_000, 90_000, 400_000),
}
"""The milliseconds that a fault may last, or that a clock may jump."""

READ = (
    FaultKind.FAIL,
    FaultKind.DELAY,
    FaultKind.CRASH,
    FaultKind.POWER_CUT,
    FaultKind.STORE_DOWN,
    FaultKind.FREEZE,
)
ANYWHERE = (FaultKind.READ_ONLY, FaultKind.CLOCK_JUMP, FaultKind.WAKE)
AT_READ = frozenset({*READ, *ANYWHERE})
AT_COMMIT = AT_READ | {FaultKind.LOSE, FaultKind.CRASH_AFTER}
AT_CLAIM = AT_READ | {FaultKind.LOSE_CLAIM}
AT_RUN = frozenset(
    {FaultKind.DELAY, FaultKind.CRASH, FaultKind.CRASH_AFTER, FaultKind.POWER_CUT, FaultKind.FREEZE}
)
AT_HINT = frozenset({FaultKind.HINT_LOST, FaultKind.HINT_TWICE})


@frozen
class InjectedFault:
    """One fault; *amount* is its length in ms, or 0."""

    kind: FaultKind
    amount: int = 0

    def __str__(self) -> str:
        return f"{self.kind} {self.amount} ms" if self.amount else str(self.kind)


Site = str
"""A task and the number of its call, like `n1.1/claims#7`."""


class FaultSource(Protocol):
    """Decides which faults occur."""

    def fault(
        self, label: str, number: int, possible: frozenset[FaultKind]
    ) -> InjectedFault | None:
        """The fault at call *number* of the task *label*, if any."""

    def calm(self) -> None:
        """End all faults from now on."""


@frozen
class Temper:
    """
    The frequency of faults in a world. `kinds`: the kinds that occur. `gap`: the average number of
    calls before a fault, of the calls that this fault could hit. `slow`: a regular expression for
    the labels of slow tasks. One in three calls of a slow task is delayed.
    """

    kinds: frozenset[FaultKind] = frozenset()
    gap: int = 0
    slow: str = ""


SLOW_ONE_IN = 3
SLOW_MS = (300, 2_500, 7_000)
RARE: Mapping[FaultKind, float] = {
    FaultKind.WAKE: 0.2,
    FaultKind.LOSE: 5,
    FaultKind.LOSE_CLAIM: 3,
    FaultKind.CRASH_AFTER: 5,
    FaultKind.HINT_LOST: 6,
    FaultKind.HINT_TWICE: 6,
}
"""How many times rarer the calls are that a fault of this kind can hit."""


class RandomFaults:
    """Faults drawn from a seed, recorded in `faults`."""

    def __init__(self, random: Random, temper: Temper) -> None:
        self.faults: dict[Site, InjectedFault] = {}
        self._random = random
        self._temper = temper
        self._kinds = sorted(temper.kinds)
        self._slow = re.compile(temper.slow) if temper.slow else None
        self._next: FaultKind | None = None
        self._left = 0
        self._draw()

    def fault(
        self, label: str, number: int, possible: frozenset[FaultKind]
    ) -> InjectedFault | None:
        slow = self._slow is not None and FaultKind.DELAY in possible and self._slow.search(label)
        if slow and self._random.randrange(SLOW_ONE_IN) == 0:
            return self._noted(
                label, number, InjectedFault(FaultKind.DELAY, self._random.choice(SLOW_MS))
            )
        if self._next is None or self._next not in possible:
            return None
        self._left -= 1
        if self._left > 0:
            return None
        fault = InjectedFault(self._next, self._random.choice(AMOUNTS.get(self._next, (0,))))
        self._draw()
        return self._noted(label, number, fault)

    def calm(self) -> None:
        self._next = None
        self._slow = None

    def _noted(self, label: str, number: int, fault: InjectedFault) -> InjectedFault:
        self.faults[f"{label}#{number}"] = fault
        return fault

    def _draw(self) -> None:
        """
        Draw the kind of the next fault, and the number of calls that it could hit before it occurs.
        """
        if self._kinds:
            self._next = self._random.choice(self._kinds)
            gap = self._temper.gap / RARE.get(self._next, 1)
            self._left = 1 + int(self._random.expovariate(1 / gap))


class RecordedFaults:
    """A `FaultSource` of the recorded faults alone."""

    def __init__(self, faults: Mapping[Site, InjectedFault]) -> None:
        self._faults = dict(faults)

    def fault(
        self, label: str, number: int, possible: frozenset[FaultKind]
    ) -> InjectedFault | None:
        if not self._faults:
            return None
        fault = self._faults.get(f"{label}#{number}")
        return fault if fault is not None and fault.kind in possible else None

    def calm(self) -> None:
        self._faults.clear()
