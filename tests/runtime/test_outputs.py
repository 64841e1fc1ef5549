"""Strict JSON: what a step may say, and what counts as text."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters_runtime.code.outputs import MOST_LEVELS, parse

values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@given(values)
def test_every_json_value_survives(value: Any) -> None:
    """What a step writes as JSON is what comes out."""
    assert parse(json.dumps(value).encode()) == value


@pytest.mark.parametrize("kind", ['{"a":%s}', "[%s]", "[1, %s, 2]"])
def test_levels(kind: str) -> None:
    """Exactly 64 levels are accepted."""

    def nested(levels: int) -> bytes:
        text = "1"
        for _ in range(levels):
            text = kind % text
        return text.encode()

    parse(nested(MOST_LEVELS))
    for levels in (MOST_LEVELS + 1, 900, 100_000):
        with pytest.raises(ValueError):
            parse(nested(levels))


@pytest.mark.parametrize(
    "text",
    [b"", b" ", b"NaN", b"Infinity", b"1e999", b"[1,]", b"1 2", b"\xff", b'"\\ud800"',
     "\N{BYTE ORDER MARK}1".encode(), "1".encode("utf-16")],
)  # fmt: skip
def test_no_json(text: bytes) -> None:
    """What only looks like JSON is none."""
    with pytest.raises(ValueError):
        parse(text)
