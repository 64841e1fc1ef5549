"""
Client JSON in and answers out: strict, quick, and never a surprise for the caller.

orjson already refuses NaN, invalid UTF-8, a byte order mark, trailing text, lone surrogates and
numbers beyond a double; integers beyond 64 bits become doubles and of equal keys the last wins.
What it lacks is a depth limit below 1,024: `_depth` adds it, without recursion. Where two equal
keys must not pass (the body of a decision), `refuse_repeated_keys` finds them.
"""

import json
from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import cast

import orjson

from wfcore.errors import InvalidInput
from wfcore.model.json import Json, JsonObject

MAX_DEPTH = 64
"""Arrays and objects inside each other. Contract §6."""

_NO_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))
_STEPS = bytes.maketrans(b"[{]}", b"\x01\x01\xff\xff")
_BLANKS = b" \t\r\n"
_NAME_SHOWN = 80


def parse_json(body: bytes) -> Json:
    """
    The value of *body*; nothing but blanks counts as `{}`.

    Raises `InvalidInput` for whatever is not strict JSON of at most 64 levels.
    """
    if not body.strip(_BLANKS):
        return {}
    if _depth(body) > MAX_DEPTH:
        raise InvalidInput("body", f"JSON is nested over {MAX_DEPTH} levels")
    try:
        return cast(Json, orjson.loads(body))
    except orjson.JSONDecodeError as error:
        raise InvalidInput("body", f"not valid JSON: {error}") from None


def parse_object(body: bytes) -> JsonObject:
    """The object in *body*. Raises `InvalidInput` where it is no object, or no strict JSON."""
    value = parse_json(body)
    if not isinstance(value, Mapping):
        raise InvalidInput("body", "must be a JSON object")
    return value


def refuse_repeated_keys(body: bytes, value: Json) -> None:
    """
    Raises `InvalidInput` where an object in *body*, whose value is *value*, has a key twice.
    AP-26: a reader that takes the first of two rows is shown another decision than was made.

    Outside of strings each key has one colon. So as many colons as keys means that no key got
    lost; only where one did, a slow reader looks for its name.
    """
    if _outside_of_strings(body).count(b":") != _keys_in(value):
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
    return orjson.dumps(value, default=_plain)


def _plain(value: object) -> object:
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Sequence):
        return list(value)
    raise TypeError(f"{type(value).__name__} has no JSON form")


def _depth(body: bytes) -> int:
    """
    How deep *body* nests: exact for valid JSON, at most the number of brackets, and only
    worked out where these are many.

    Outside of strings opening brackets count +1 and closing ones -1 (as signed bytes), and the
    running sum peaks at the depth.
    """
    openings = body.count(b"[") + body.count(b"{")
    if openings <= MAX_DEPTH:
        return openings
    brackets = _outside_of_strings(body).translate(_STEPS, _NO_BRACKETS)
    return max(accumulate(memoryview(brackets).cast("b")), default=0)


def _outside_of_strings(body: bytes) -> bytes:
    """Valid JSON without its strings: without escapes, every second piece between quotes."""
    unescaped = body.replace(b"\\\\", b"").replace(b'\\"', b"")
    return b"".join(unescaped.split(b'"')[::2])
