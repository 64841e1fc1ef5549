"""When a call is sent again, and after how long: what the API asks of its clients."""

from random import random
from typing import Any

from wfcore.rules.backoff import Backoff
from wfcore_client.calls import Call
from wfcore_client.errors import ApiError, RateLimited, ServerTrouble, Unreachable

BACKOFF = Backoff(first=0.5, longest=60.0, tries=5)
"""In seconds: what clients have unless told otherwise."""

TROUBLE = (ApiError, Unreachable)
"""What a call may be sent again after."""


def pause(backoff: Backoff, call: Call[Any], trouble: Exception, tried: int) -> float | None:
    """
    How long to wait before sending *call* again after *tried* times; None: raise.

    A full quota did nothing and is waited for, up to `backoff.longest`; trouble and silence may
    have done something, so only what is repeatable is sent again.
    """
    if tried >= backoff.tries:
        return None
    if isinstance(trouble, RateLimited):
        told = float(trouble.retry_after_s)
        return told + random() if told <= backoff.longest else None  # noqa: S311 - no secret
    if call.repeatable and isinstance(trouble, ServerTrouble | Unreachable):
        return backoff.wait(tried, random())  # noqa: S311
    return None
