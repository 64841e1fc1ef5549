"""
Written by client/generate.py from wfcore.rules.backoff: do not edit.

How long to wait before another try: one formula for steps, AI calls, callbacks and loops."""

from dataclasses import dataclass
from hashlib import blake2b

JITTER = 0.25
"""
How much longer than stated a wait may be, so that what failed together does not return together.
"""


@dataclass(frozen=True)
class Backoff:
    """
    The n-th wait is `first * factor ** (n - 1)`, at most `longest`, plus up to `JITTER` of it.

    `first` and `longest` are in the unit of the result. `tries`: the number of tries, for callers
    that give up.
    """

    first: float
    longest: float
    factor: float = 2.0
    tries: int = 1

    def wait(self, tried: int, drawn: float = 0.0) -> float:
        """The wait after *tried* tries; *drawn*: which part of the jitter to add, from 0 to 1."""
        try:
            stated = self.first * self.factor ** (tried - 1)
        except OverflowError:
            stated = self.longest if self.first else 0.0
        return lengthened(min(stated, self.longest), drawn)


def lengthened(wait: float, drawn: float) -> float:
    """*wait* plus the part *drawn* of the jitter."""
    return wait * (1 + JITTER * drawn)


def draw(seed: str) -> float:
    """A number from 0 to 1, evenly distributed: the same for the same seed."""
    return int.from_bytes(blake2b(seed.encode(), digest_size=8).digest()) / 2**64
