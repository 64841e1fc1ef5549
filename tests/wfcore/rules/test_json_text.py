"""Strict JSON by the standard library alone."""

import pytest

from wfcore.errors import InvalidInput
from wfcore.rules.json_text import MAX_DEPTH, parse_object


@pytest.mark.parametrize(
    "body",
    [
        b'{"a": NaN}',
        b'{"a": -Infinity}',
        b'\xef\xbb\xbf{"a": 1}',
        '{"a": 1}'.encode("utf-16"),
        b'{"a": "\xff"}',
        rb'{"a": "\ud800"}',
        b'{"a": 1} x',
        b"[]",
        b'{"a": ' + b"[" * MAX_DEPTH + b"]" * MAX_DEPTH + b"}",
    ],
)
def test_all_but_strict_json_is_refused(body: bytes) -> None:
    """What orjson refuses, the standard library refuses here as well."""
    with pytest.raises(InvalidInput):
        parse_object(body)


def test_strict_json_is_parsed() -> None:
    """Text, numbers and nesting within the bounds; a blank body is an empty object."""
    assert parse_object(b" ") == {}
    assert parse_object('{"a": ["ä", 1.5, {"b": null}]}'.encode()) == {"a": ["ä", 1.5, {"b": None}]}
