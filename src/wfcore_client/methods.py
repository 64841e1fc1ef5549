"""
What both clients share: their methods, made from `calls`, the request that a call makes, and when
it is sent again.

A call's parameters, types and description are written once, in `calls`; a client only says how it
sends one. Decision 98.
"""

import inspect
from collections.abc import Callable
from functools import wraps
from random import random
from typing import Any, ParamSpec, TypeVar
from uuid import uuid4

import httpx2 as httpx

from wfcore.model.execution import ExecutionStatus
from wfcore.rules.backoff import Backoff
from wfcore.rules.execution.machine import EXECUTION
from wfcore_client.calls import Call, once
from wfcore_client.errors import ApiError, RateLimited, ServerTrouble, Unreachable

P = ParamSpec("P")
T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])

TIMEOUT_S = 30.0
LONGEST_WAIT_S = 60
RESTING = frozenset({*EXECUTION.final, ExecutionStatus.AWAITING_APPROVAL})
BACKOFF = Backoff(first=0.5, longest=60.0, tries=5)
"""In seconds: what clients have unless told otherwise."""

TROUBLE = (ApiError, Unreachable)
"""What a call may be sent again after."""

_SELF = inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY)


def keyed(make: Callable[P, Call[T]]) -> Callable[P, Call[T]]:
    """The same call with a fresh idempotency key where none is given, so that it may repeat."""

    @wraps(make)
    def with_key(*args: P.args, **kwargs: P.kwargs) -> Call[T]:
        call = make(*args, **kwargs)
        return call if call.repeatable else once(call, str(uuid4()))

    return with_key


def described(method: F, make: Callable[..., Call[Any]]) -> F:
    """*method* with the name, description and parameters of the call that it sends."""
    signature = inspect.signature(make)
    method.__name__, method.__doc__ = make.__name__, make.__doc__
    method.__signature__ = signature.replace(  # type: ignore[attr-defined]
        parameters=[_SELF, *signature.parameters.values()]
    )
    return method


def request_of(http: httpx.Client | httpx.AsyncClient, call: Call[Any]) -> httpx.Request:
    """The request that *call* is; where it waits for an answer, so much later it times out."""
    waited = float(str(call.query.get("wait", 0)))
    timeout = {part: (limit or 0) + waited for part, limit in http.timeout.as_dict().items()}
    return http.build_request(
        call.method,
        call.address,
        params=dict(call.query),
        json=call.body,
        headers=dict(call.headers),
        timeout=httpx.Timeout(**timeout),
    )


def address_of(http: httpx.Client | httpx.AsyncClient, path: str) -> httpx.URL:
    """A path of the server, which may lie below a mount: on the same host whatever it says."""
    return http.base_url.copy_with(raw_path=f"/{path.lstrip('/')}".encode())


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
