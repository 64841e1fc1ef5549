"""
The common parts of both clients: methods made from `calls`, requests, and repetition.

The parameters, types and description of a call are written once, in `calls`; a client only sends
calls. Decision 111.
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
from wfcore_client.calls import ApiCall, once
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
"""The default backoff of clients, in seconds."""

TROUBLE = (ApiError, Unreachable)
"""The errors after which a call may be sent again."""

_SELF = inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY)


def keyed(make: Callable[P, ApiCall[T]]) -> Callable[P, ApiCall[T]]:
    """*make*, with a new idempotency key if none is given, so that the call may be repeated."""

    @wraps(make)
    def with_key(*args: P.args, **kwargs: P.kwargs) -> ApiCall[T]:
        call = make(*args, **kwargs)
        return call if call.repeatable else once(call, str(uuid4()))

    return with_key


def described(method: F, make: Callable[..., ApiCall[Any]]) -> F:
    """*method* with the name, description and parameters of *make*, whose call it sends."""
    signature = inspect.signature(make)
    method.__name__, method.__doc__ = make.__name__, make.__doc__
    method.__signature__ = signature.replace(  # type: ignore[attr-defined]
        parameters=[_SELF, *signature.parameters.values()]
    )
    return method


def request_of(http: httpx.Client | httpx.AsyncClient, call: ApiCall[Any]) -> httpx.Request:
    """The request for *call*; the time that the server may wait is added to the timeout."""
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
    """The address of *path* on the client's own host, whatever *path* contains."""
    return http.base_url.copy_with(raw_path=f"/{path.lstrip('/')}".encode())


def pause(backoff: Backoff, repeatable: bool, trouble: Exception, tried: int) -> float | None:
    """
    The wait in seconds before the next attempt, after *tried* attempts; None: raise *trouble*.

    A full quota has done nothing, so it is waited for, up to `backoff.longest`. After a server
    error or silence something may have been done, so only *repeatable* calls are sent again. The
    wait is never shorter than the server requested.
    """
    requested = float(trouble.retry_after_s or 0) if isinstance(trouble, ApiError) else 0.0
    if tried >= backoff.tries or requested > backoff.longest:
        return None
    if isinstance(trouble, RateLimited):
        return requested + random()  # noqa: S311 - no secret
    if repeatable and isinstance(trouble, ServerTrouble | Unreachable):
        return max(backoff.wait(tried, random()), requested)  # noqa: S311
    return None


class Part:
    """
    A file while it is downloaded, beside its place, under its name with `.part`.

    After a lost connection, `headers` request the rest. Use it as a context manager: an unfinished
    file is removed on leaving.
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
        """The headers that request the missing part."""
        plain = {"Accept-Encoding": "identity"}
        if not self._file.tell():
            return plain
        known = f'"{self._artifact.sha256}"'
        return {**plain, "Range": f"bytes={self._file.tell()}-", "If-Range": known}

    @property
    def whole(self) -> bool:
        """Whether all bytes have come."""
        return self._file.tell() >= self._artifact.size > 0

    def begin(self, status: int) -> None:
        """Begin a response: after *status* 206 the file goes on, otherwise it starts again."""
        if status != 206:
            self._file.seek(0)
            self._file.truncate()
            self._digest = sha256()

    def add(self, chunk: bytes) -> None:
        """Append *chunk*."""
        self._file.write(chunk)
        self._digest.update(chunk)

    def finish(self) -> Path:
        """
        Move the file to its place. Raises `Corrupted` for content that the server did not store.
        """
        if self._digest.hexdigest() != self._artifact.sha256:
            raise Corrupted(f"{self._artifact.name}: not the content that the server stored")
        self._file.close()
        return self._beside.replace(self._to)
