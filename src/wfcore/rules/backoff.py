"""How long to wait before something is tried again: one law for steps, models, calls and loops."""

from hashlib import blake2b

from attrs import frozen

JITTER = 0.25
"""How much longer than stated a wait may be: what failed together does not come back together."""


@frozen
class Backoff:
    """
    The n-th wait is `first * factor ** (n - 1)`, at most `longest`, and up to `JITTER` longer.

    `first` and `longest` have the unit of the result. `tries`: in all, for callers that give up.
    """

    first: float
    longest: float
    factor: float = 2.0
    tries: int = 1

    def wait(self, tried: int, drawn: float = 0.0) -> float:
        """The wait after *tried* times; *drawn*: by how much of the jitter longer, from 0 to 1."""
        try:
            stated = self.first * self.factor ** (tried - 1)
        except OverflowError:
            stated = self.longest if self.first else 0.0
        return lengthened(min(stated, self.longest), drawn)


def lengthened(wait: float, drawn: float) -> float:
    """*wait*, longer by *drawn* of the jitter."""
    return wait * (1 + JITTER * drawn)


def draw(seed: str) -> float:
    """A number from 0 to 1, evenly: the same for the same seed, whoever asks."""
    return int.from_bytes(blake2b(seed.encode(), digest_size=8).digest()) / 2**64
