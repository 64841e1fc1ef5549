"""
What both clients share: their methods, made from `calls`, the request that a call makes, and when
it is sent again.

A call's parameters, types and description are written once, in `calls`; a client only says how it
sends one. Decision 111.
"""

import inspect
from collections.abc import Callable
from functools import wraps
from hashlib import sha256
from pathlib import Path
from random import random
from typing import Any, ParamSpec, Self, TypeVar
from uuid import uuid4

import httpx2 as httpx

from wfcore_client.backoff import Backoff
from wfcore_client.calls import Call, once
from wfcore_client.errors import ApiError, Corrupted, RateLimited, ServerTrouble, Unreachable
from wfcore_client.shapes import FINAL_STATUSES, ArtifactView, ExecutionStatus

P = ParamSpec("P")
T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])

TIMEOUT_S = 30.0
LONGEST_WAIT_S = 60
RECONNECT_S = 1.0
RESTING = frozenset({*FINAL_STATUSES, ExecutionStatus.AWAITING_APPROVAL})
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


def pause(backoff: Backoff, repeatable: bool, trouble: Exception, tried: int) -> float | None:
    """
    How long to wait before the same is sent again after *tried* times; None: raise.

    A full quota did nothing and is waited for, up to `backoff.longest`; trouble and silence may
    have done something, so only what is *repeatable* is sent again. Never before the server said.
    """
    told = float(trouble.retry_after_s or 0) if isinstance(trouble, ApiError) else 0.0
    if tried >= backoff.tries or told > backoff.longest:
        return None
    if isinstance(trouble, RateLimited):
        return told + random()  # noqa: S311 - no secret
    if repeatable and isinstance(trouble, ServerTrouble | Unreachable):
        return max(backoff.wait(tried, random()), told)  # noqa: S311
    return None


class Part:
    """
    A file while it is downloaded: beside its place, under its name with `.part`.

    After a lost connection the rest is asked for. Use it as a context: what is not finished by
    then is removed.
    """

    def __init__(self, artifact: ArtifactView, to: str | Path) -> None:
        self._artifact = artifact
        self._to = Path(to)
        self._beside = self._to.with_name(f"{self._to.name}.part")
        self._file = self._beside.open("wb")
        self._digest = sha256()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()
        self._beside.unlink(missing_ok=True)

    @property
    def headers(self) -> dict[str, str]:
        """What to send for what is still missing."""
        plain = {"Accept-Encoding": "identity"}
        if not self._file.tell():
            return plain
        known = f'"{self._artifact.sha256}"'
        return {**plain, "Range": f"bytes={self._file.tell()}-", "If-Range": known}

    @property
    def whole(self) -> bool:
        """Whether every byte is here."""
        return self._file.tell() >= self._artifact.size > 0

    def begin(self, status: int) -> None:
        """A response with *status*: 206 goes on, anything else is all of it again."""
        if status != 206:
            self._file.seek(0)
            self._file.truncate()
            self._digest = sha256()

    def add(self, chunk: bytes) -> None:
        """What came next."""
        self._file.write(chunk)
        self._digest.update(chunk)

    def finish(self) -> Path:
        """Put it in its place. Raises `Corrupted` unless it is what the server stored."""
        if self._digest.hexdigest() != self._artifact.sha256:
            raise Corrupted(f"{self._artifact.name}: not the content that the server stored")
        self._file.close()
        return self._beside.replace(self._to)
