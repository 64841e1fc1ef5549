"""When a call is sent again, and after how long: what the API asks of its clients."""

from random import random
from typing import Any

from attrs import frozen

from wfcore_client.calls import Call
from wfcore_client.errors import ApiError, RateLimited, ServerTrouble, Unreachable


@frozen
class Backoff:
    """
    *tries* in all, with pauses that double from *first_s*, half of each by chance.

    A full quota is waited for up to *longest_s*; everything longer is raised.
    """

    tries: int = 5
    first_s: float = 0.5
    longest_s: float = 60.0

    def pause(self, call: Call[Any], trouble: Exception, tried: int) -> float | None:
        """
        How long to wait before sending *call* again after *tried* times; None: raise.

        A refused quota did nothing and is waited for; trouble and silence may have done
        something, so only what is repeatable is sent again.
        """
        if tried >= self.tries:
            return None
        if isinstance(trouble, RateLimited):
            told = float(trouble.retry_after_s)
            return told + random() if told <= self.longest_s else None  # noqa: S311 - no secret
        if call.repeatable and isinstance(trouble, ServerTrouble | Unreachable):
            most: float = self.first_s * 2 ** (tried - 1)
            return min(most * (0.5 + random() / 2), self.longest_s)  # noqa: S311
        return None


PATIENT = Backoff()
"""What clients have unless told otherwise."""

TROUBLE = (ApiError, Unreachable)
"""What a call may be sent again after."""
