"""
What both clients share: their methods, made from `calls`, and the request that a call makes.

A call's parameters, types and description are written once, in `calls`; a client only says how it
sends one. Decision 98.
"""

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec, TypeVar
from uuid import uuid4

import httpx2 as httpx

from wfcore.model.execution import ExecutionStatus
from wfcore.rules.execution.machine import EXECUTION
from wfcore_client.calls import Call, once

P = ParamSpec("P")
T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])

TIMEOUT_S = 30.0
LONGEST_WAIT_S = 60
RESTING = frozenset({*EXECUTION.final, ExecutionStatus.AWAITING_APPROVAL})
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
