"""Reading the body of a request within limits of size and time."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import Any, TypeAlias

from starlette.requests import ClientDisconnect

from wfcore.errors import InvalidInput, TooLarge

Receive: TypeAlias = Callable[[], Awaitable[MutableMapping[str, Any]]]

BODY_TIMEOUT_S = 30.0
_LONGEST_LENGTH = 19
"""The digits of a 64-bit number; a longer Content-Length is over any limit."""


class BodyTimeout(Exception):
    """Raised if the body did not arrive in time: the status is 408, and the connection closes."""


async def read_body(
    receive: Receive,
    headers: Mapping[str, str],
    limit: int,
    *,
    timeout_s: float = BODY_TIMEOUT_S,
    took: Callable[[int], None] = lambda size: None,
) -> bytes:
    """
    The whole body, at most *limit* bytes. The names in *headers* are in lower case. *took* is
    called with the size of each part, and may raise.

    Raises `TooLarge` over *limit*, before the rest of the body is read (with a Content-Length:
    before any part); `InvalidInput` for a compressed body or a Content-Length that is not a number;
    `BodyTimeout` after *timeout_s*; `ClientDisconnect` if the client left.
    """
    _refuse_encoding(headers.get("content-encoding", ""))
    _refuse_length(headers.get("content-length"), limit)
    try:
        async with asyncio.timeout(timeout_s):
            return await _collect(receive, limit, took)
    except TimeoutError:
        raise BodyTimeout from None


async def _collect(receive: Receive, limit: int, took: Callable[[int], None]) -> bytes:
    chunks: list[bytes] = []
    size, more = 0, True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        chunk = message.get("body", b"")
        size += len(chunk)
        if size > limit:
            raise TooLarge("Request body", limit)
        took(len(chunk))
        chunks.append(chunk)
        more = message.get("more_body", False)
    return chunks[0] if len(chunks) == 1 else b"".join(chunks)


def _refuse_encoding(encoding: str) -> None:
    if encoding.strip().lower() not in ("", "identity"):
        raise InvalidInput("Content-Encoding", "compressed bodies are not accepted")


def _refuse_length(given: str | None, limit: int) -> None:
    if given is None:
        return
    digits = given.strip()
    if not (digits.isascii() and digits.isdigit()):
        raise InvalidInput("Content-Length", "must be a number")
    if len(digits.lstrip("0")) > _LONGEST_LENGTH or int(digits) > limit:
        raise TooLarge("Request body", limit)
