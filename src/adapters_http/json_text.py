"""JSON text: the strict parser of the core with orjson, and the writing of responses."""

import json
from collections.abc import Mapping, Sequence
from functools import partial

import orjson

from wfcore.rules import json_text

parse_json = partial(json_text.parse_json, quick=orjson.loads)
parse_object = partial(json_text.parse_object, quick=orjson.loads)


def dump_json(value: object) -> bytes:
    """*value* as JSON; any mapping is an object, any other sequence an array."""
    try:
        return orjson.dumps(value, default=_plain)
    except TypeError:  # orjson writes no integer beyond 64 bits and no half character
        return json.dumps(value, default=_plain, separators=(",", ":")).encode()


def _plain(value: object) -> object:
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Sequence):
        return list(value)
    raise TypeError(f"{type(value).__name__} has no JSON form")
