"""
Bodies: requests are read within limits and parsed strictly, responses are written and paced.

orjson already refuses NaN, invalid UTF-8, a byte order mark, trailing text and lone surrogates; of
equal keys the last wins. What it lacks is a depth limit below 1,024: `_depth` adds it, without
recursion. Numbers that it would change are judged by `wfcore.rules.numbers`. In the body of a
decision no decimal may be rounded, and `refuse_repeated_keys` finds two equal keys.
"""

import asyncio
import json
from collections import deque
from collections.abc import Awaitable, Callable, Hashable, Mapping, MutableMapping, Sequence
from functools import partial
from itertools import accumulate
from typing import Any, TypeAlias

import orjson
from starlette.requests import ClientDisconnect

from wfcore.errors import InvalidInput, TooLarge
from wfcore.model.json import Json, JsonObject
from wfcore.rules.numbers import kept, outside_of_strings

Receive: TypeAlias = Callable[[], Awaitable[MutableMapping[str, Any]]]

BODY_TIMEOUT_S = 30.0
_LONGEST_LENGTH = 19
"""Digits of a 64-bit number; a longer Content-Length is over any limit."""


class BodyTimeout(Exception):
    """The client did not send its whole body in time: 408, and the connection closes."""


async def read_body(
    receive: Receive,
    headers: Mapping[str, str],
    limit: int,
    *,
    timeout_s: float = BODY_TIMEOUT_S,
    took: Callable[[int], None] = lambda size: None,
) -> bytes:
    """
    The whole body, at most *limit* bytes. *headers* are looked up by lower-case names; *took* is
    called with the size of each part and may raise.

    Raises `TooLarge` over *limit* (the rest, or with a Content-Length all of it, was not read);
    `InvalidInput` if it is compressed or its Content-Length is not a number; `BodyTimeout` if it
    was not complete within *timeout_s*; `ClientDisconnect` if the client left.
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


MAX_DEPTH = 64
"""Arrays and objects inside each other."""

_NO_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))
_STEPS = bytes.maketrans(b"[{]}", b"\x01\x01\xff\xff")
_BLANKS = b" \t\r\n"
_NAME_SHOWN = 80


_Reader: TypeAlias = Callable[[bytes, Callable[[bytes], Json]], Json]
exactly = partial(kept, exact=True)
"""For decisions: no decimal is rounded. NU-2."""


def parse_json(body: bytes, reader: _Reader = kept) -> Json:
    """
    The value of *body*; blank counts as `{}`.

    Raises `InvalidInput` for anything but strict JSON of at most 64 levels, and for a number that
    *reader* refuses: by default one that would be another once it was stored. NU-1.
    """
    if not body.strip(_BLANKS):
        return {}
    if _depth(body) > MAX_DEPTH:
        raise InvalidInput("body", f"JSON is nested over {MAX_DEPTH} levels")
    try:
        return reader(body, orjson.loads)
    except ValueError as error:
        raise InvalidInput("body", f"not valid JSON: {error}") from None


def parse_object(body: bytes, reader: _Reader = kept) -> JsonObject:
    """The object in *body*. Raises `InvalidInput` if it is not an object in strict JSON."""
    value = parse_json(body, reader)
    if not isinstance(value, Mapping):
        raise InvalidInput("body", "must be a JSON object")
    return value


def refuse_repeated_keys(body: bytes, value: Json) -> None:
    """
    Raises `InvalidInput` if an object in *body*, whose value is *value*, repeats a key. AP-26: a
    reader that takes the first of two rows would see another decision than the one made.

    Outside of strings each key has one colon. So if there are as many colons as keys, no key was
    lost; only otherwise a slow reader looks for its name.
    """
    if outside_of_strings(body).count(b":") != _keys_in(value):
        json.loads(body, object_pairs_hook=_without_repeats)


def _keys_in(value: Json) -> int:
    found, waiting = 0, [value]
    while waiting:
        part = waiting.pop()
        if isinstance(part, dict):
            found += len(part)
            waiting.extend(item for item in part.values() if isinstance(item, dict | list))
        elif isinstance(part, list):
            waiting.extend(item for item in part if isinstance(item, dict | list))
    return found


def _without_repeats(pairs: list[tuple[str, Json]]) -> JsonObject:
    found: dict[str, Json] = {}
    for key, value in pairs:
        if key in found:
            raise InvalidInput(key[:_NAME_SHOWN], "stands twice in one object; say it once")
        found[key] = value
    return found


def dump_json(value: object) -> bytes:
    """*value* as JSON; any mapping is an object, any other sequence an array."""
    try:
        return orjson.dumps(value, default=_plain)
    except TypeError:  # an integer beyond 64 bits, half a character: kept by an earlier release
        return json.dumps(value, default=_plain, separators=(",", ":")).encode()


def _plain(value: object) -> object:
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Sequence):
        return list(value)
    raise TypeError(f"{type(value).__name__} has no JSON form")


def _depth(body: bytes) -> int:
    """
    How deep *body* nests: exact for valid JSON, at most the number of brackets, and only computed
    if there are many.

    Outside of strings opening brackets count +1 and closing ones -1 (as signed bytes), and the
    running sum peaks at the depth.
    """
    openings = body.count(b"[") + body.count(b"{")
    if openings <= MAX_DEPTH:
        return openings
    brackets = outside_of_strings(body).translate(_STEPS, _NO_BRACKETS)
    return max(accumulate(memoryview(brackets).cast("b")), default=0)


MOST_KEPT = 1_024
LARGEST_KEPT = 16_384


class Answers:
    """
    Encoded responses by record and its state, at most 16 MB of them: polls ask for the same record
    again and again.
    """

    def __init__(self) -> None:
        self._known: dict[str, tuple[Hashable, bytes]] = {}

    def known(self, id: str, state: Hashable) -> bytes | None:
        """The stored answer for that state; None if there is none."""
        known = self._known.get(id)
        return known[1] if known is not None and known[0] == state else None

    def keep(self, id: str, state: Hashable, body: bytes) -> bytes:
        """
        Keep *body*, which depends only on *state* (the record's version and whatever else may
        change) and on what never changes: emails, names of keys. Returns it.
        """
        if len(body) <= LARGEST_KEPT:
            self._known.pop(id, None)
            self._known[id] = (state, body)
            if len(self._known) > MOST_KEPT:
                del self._known[next(iter(self._known))]
        return body

    def clear(self) -> None:
        """Forget all of them."""
        self._known.clear()


LARGE_RESPONSE = 65_536


class Pace:
    """
    At most one large response is encoded per turn of the event loop: memory given up by slow
    clients is freed only between turns, so a crowd that asks at once would have all of its
    responses in memory. Decision 71.
    """

    def __init__(self) -> None:
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._busy = False

    async def turn(self) -> None:
        """Wait until an answer may be encoded: at once, unless a large one was just encoded."""
        if self._busy:
            mine = asyncio.get_running_loop().create_future()
            self._waiting.append(mine)
            await mine

    def made(self, size: int) -> None:
        """An answer of *size* bytes was encoded."""
        if size > LARGE_RESPONSE and not self._busy:
            self._busy = True
            asyncio.get_running_loop().call_soon(self._next)

    def _next(self) -> None:
        while self._waiting and self._waiting[0].done():  # its client is gone
            self._waiting.popleft()
        self._busy = bool(self._waiting)
        if self._busy:
            self._waiting.popleft().set_result(None)
            asyncio.get_running_loop().call_soon(self._next)
