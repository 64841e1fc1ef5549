"""How long to wait before asking again: what the provider says, or longer each time. AI-3."""

from hashlib import sha256

from attrs import frozen

_SPREAD = 0.25
"""How much longer a wait may be, so that many who were refused at once do not come back at once."""


@frozen
class Backoff:
    """`tries` in all; the n-th wait is `first_s * 2 ** (n - 1)`, at most `longest_s`."""

    tries: int = 4
    first_s: float = 0.5
    longest_s: float = 8.0

    def pause_s(self, asked: int, retry_after_s: float | None, seed: str) -> float:
        """
        The wait after *asked* tries, never shorter than the provider asked for. Its chance is
        drawn from *seed*: the same seed, the same wait.
        """
        own = min(self.longest_s, self.first_s * 2.0 ** (asked - 1))
        return max(own, retry_after_s or 0.0) * (1 + _SPREAD * _draw(f"{seed}/{asked}"))


def _draw(seed: str) -> float:
    """From 0 to 1, evenly."""
    return int.from_bytes(sha256(seed.encode()).digest()[:6], "big") / float(1 << 48)
