"""The wait before another try: one formula for steps, AI calls, callbacks and loops."""

from hashlib import blake2b

from attrs import frozen

JITTER = 0.25
"""
The largest part of a wait that may be added to the wait, so that callers that failed together do
not return together.
"""


@frozen
class Backoff:
    """
    The n-th wait is `first * factor ** (n - 1)`, at most `longest`, plus up to the part `JITTER` of
    that wait.

    `first` and `longest` are in the unit of the result. `tries`: the number of tries, for callers
    that give up.
    """

    first: float
    longest: float
    factor: float = 2.0
    tries: int = 1

    def wait(self, tried: int, drawn: float = 0.0) -> float:
        """The wait after *tried* tries. *drawn*: the part of the jitter to add, from 0 to 1."""
        try:
            stated = self.first * self.factor ** (tried - 1)
        except OverflowError:
            stated = self.longest if self.first else 0.0
        return lengthened(min(stated, self.longest), drawn)


def lengthened(wait: float, drawn: float) -> float:
    """*wait* plus the part *drawn* (0 to 1) of the jitter."""
    return wait * (1 + JITTER * drawn)


def draw(seed: str) -> float:
    """A number from 0 to 1, evenly distributed: the same for the same seed."""
    return int.from_bytes(blake2b(seed.encode(), digest_size=8).digest()) / 2**64
