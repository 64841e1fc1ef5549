"""
Who runs next and what goes wrong: drawn from a seed and noted down, or replayed from notes.

Turns are noted as a list of numbers (0: whoever waits longest). Faults are noted by their site,
a task and the number of its call, so that they stay where they are when other things change.
"""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from random import Random
from typing import Protocol

from attrs import frozen


class Kind(StrEnum):
    """What can go wrong at an await, or with a hint."""

    FAIL = "fail"
    LOSE = "lose the answer"
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


AMOUNTS: Mapping[Kind, Sequence[int]] = {
    Kind.DELAY: (1, 20, 300, 2_500, 7_000),
    Kind.CRASH: (50, 2_000, 9_000),
    Kind.CRASH_AFTER: (50, 2_000, 9_000),
    Kind.POWER_CUT: (100, 4_000),
    Kind.STORE_DOWN: (100, 1_500, 8_000),
    Kind.READ_ONLY: (100, 1_500, 8_000),
    Kind.FREEZE: (300, 3_000, 7_000, 16_000),
    Kind.CLOCK_JUMP: (-90_000, -5_000, 5_000, 90_000, 400_000),
}
"""Milliseconds that a fault may last, or jump."""

READ = (Kind.FAIL, Kind.DELAY, Kind.CRASH, Kind.POWER_CUT, Kind.STORE_DOWN, Kind.FREEZE)
ANYWHERE = (Kind.READ_ONLY, Kind.CLOCK_JUMP, Kind.WAKE)
AT_READ = frozenset({*READ, *ANYWHERE})
AT_WRITE = AT_READ | {Kind.LOSE, Kind.CRASH_AFTER}
AT_RUN = frozenset({Kind.DELAY, Kind.CRASH, Kind.CRASH_AFTER, Kind.POWER_CUT, Kind.FREEZE})
AT_HINT = frozenset({Kind.HINT_LOST, Kind.HINT_TWICE})


@frozen
class Fault:
    """Something that goes wrong; *amount* is its length in ms, 0 where it has none."""

    kind: Kind
    amount: int = 0

    def __str__(self) -> str:
        return f"{self.kind} {self.amount} ms" if self.amount else str(self.kind)


Site = str
"""A task and the number of its call, like `n1.1/claims#7`."""


class Chance(Protocol):
    """Decides everything that the code under simulation does not."""

    def pick(self, count: int) -> int:
        """A number below *count*."""

    def fault(self, label: str, number: int, possible: frozenset[Kind]) -> Fault | None:
        """What goes wrong at call *number* of the task *label*."""

    def calm(self) -> None:
        """From now on nothing goes wrong."""


@frozen
class Temper:
    """
    How unruly a world is: which faults, how many calls apart on average, and how often the
    next turn is anybody's.
    """

    kinds: frozenset[Kind] = frozenset()
    gap: int = 0
    unrest: float = 1.0


class Drawn:
    """Decisions from a seed, noted in `turns` and `faults`."""

    def __init__(self, random: Random, temper: Temper) -> None:
        self.turns: list[int] = []
        self.faults: dict[Site, Fault] = {}
        self._random = random
        self._temper = temper
        self._left = self._gap()

    def pick(self, count: int) -> int:
        draw = self._random.random()
        unrest = self._temper.unrest
        chosen = int(draw / unrest * count) if draw < unrest else 0
        self.turns.append(chosen)
        return chosen

    def fault(self, label: str, number: int, possible: frozenset[Kind]) -> Fault | None:
        self._left -= 1
        if self._left > 0:
            return None
        kinds = sorted(self._temper.kinds & possible)
        if not kinds:
            return None
        self._left = self._gap()
        kind = self._random.choice(kinds)
        fault = Fault(kind, self._random.choice(AMOUNTS.get(kind, (0,))))
        self.faults[f"{label}#{number}"] = fault
        return fault

    def calm(self) -> None:
        self._left = 1 << 60

    def _gap(self) -> int:
        if not self._temper.kinds:
            return 1 << 60
        return 1 + int(self._random.expovariate(1 / self._temper.gap))


class Replayed:
    """Decisions from notes; where they end, the one who waits longest goes on, and all is well."""

    def __init__(self, turns: Sequence[int], faults: Mapping[Site, Fault]) -> None:
        self._turns = iter(turns)
        self._faults = dict(faults)

    def pick(self, count: int) -> int:
        return next(self._turns, 0) % count

    def fault(self, label: str, number: int, possible: frozenset[Kind]) -> Fault | None:
        if not self._faults:
            return None
        fault = self._faults.get(f"{label}#{number}")
        return fault if fault is not None and fault.kind in possible else None

    def calm(self) -> None:
        self._faults.clear()
