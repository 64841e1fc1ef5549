"""
JSON in bodies of requests, parsed strictly.

Strict JSON has no NaN, invalid UTF-8, byte order mark, trailing text or lone surrogate; of equal
keys the last wins. `_depth` limits the depth, without recursion. `wfcore.rules.numbers` checks the
numbers. In the body of a decision no decimal may be rounded, and `refuse_repeated_keys` finds equal
keys.
"""

import json
from collections.abc import Callable, Mapping
from functools import partial
from itertools import accumulate
from typing import TypeAlias

from wfcore.errors import InvalidInput
from wfcore.model.json import Json, JsonObject
from wfcore.rules.numbers import kept, outside_of_strings, strictly

MAX_DEPTH = 64
"""Levels of arrays and objects inside each other."""

_NO_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))
_STEPS = bytes.maketrans(b"[{]}", b"\x01\x01\xff\xff")
_BLANKS = b" \t\r\n"
_NAME_SHOWN = 80

Quick: TypeAlias = Callable[[bytes], Json]
"""A function that parses strict JSON. Raises `ValueError`."""
Reader: TypeAlias = Callable[[bytes, Quick], Json]
exactly = partial(kept, exact=True)
"""The reader for decisions: no decimal is rounded. NU-2."""


def strict_json(body: bytes) -> Json:
    """The value of *body* by the standard library. Raises `ValueError`."""
    value: Json = strictly(body.decode())
    json.dumps(value, ensure_ascii=False).encode()  # raises for a lone surrogate
    return value


def parse_json(body: bytes, reader: Reader = kept, quick: Quick = strict_json) -> Json:
    """
    The value of *body*; a blank body counts as `{}`.

    Raises `InvalidInput` for anything but strict JSON of at most 64 levels, and for a number that
    *reader* refuses: by default a number that storing would change. NU-1.
    """
    if not body.strip(_BLANKS):
        return {}
    if _depth(body) > MAX_DEPTH:
        raise InvalidInput("body", f"JSON is nested over {MAX_DEPTH} levels")
    try:
        return reader(body, quick)
    except ValueError as error:
        raise InvalidInput("body", f"not valid JSON: {error}") from None


def parse_object(body: bytes, reader: Reader = kept, quick: Quick = strict_json) -> JsonObject:
    """The object in *body*. Raises `InvalidInput` if *body* is not an object in strict JSON."""
    value = parse_json(body, reader, quick)
    if not isinstance(value, Mapping):
        raise InvalidInput("body", "must be a JSON object")
    return value


def refuse_repeated_keys(body: bytes, value: Json) -> None:
    """
    Raises `InvalidInput` if an object in *body* repeats a key: readers differ in which of two equal
    keys they take. *value*: the value of *body*. AP-26.

    Outside of strings each key has one colon. So with as many colons as keys, no key is repeated;
    otherwise a slow reader finds the repeated key.
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


def _depth(body: bytes) -> int:
    """
    The depth of *body*, exact for valid JSON. With few brackets, their number serves as the depth.

    Outside of strings an opening bracket counts +1 and a closing one -1 (as signed bytes); the
    largest running sum is the depth.
    """
    openings = body.count(b"[") + body.count(b"{")
    if openings <= MAX_DEPTH:
        return openings
    brackets = outside_of_strings(body).translate(_STEPS, _NO_BRACKETS)
    return max(accumulate(memoryview(brackets).cast("b")), default=0)
