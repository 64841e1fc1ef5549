"""Durations as people write them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wfcore.rules.duration import MAX_DURATION, parse_duration

UNITS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}


@given(st.integers(1, 365), st.sampled_from(sorted(UNITS)))
def test_a_number_with_a_unit_is_that_many(number: int, unit: str) -> None:
    """n units are n times the unit."""
    assert parse_duration(f"{number}{unit}") == number * UNITS[unit]


@given(st.integers(1, MAX_DURATION))
def test_a_bare_integer_is_milliseconds(number: int) -> None:
    """As on the wire."""
    assert parse_duration(number) == parse_duration(f"{number}ms") == number


@given(st.text() | st.from_regex(r"[0-9.]+[a-z]*"))
def test_any_text_is_a_duration_in_range_or_a_value_error(text: str) -> None:
    """Nothing else comes out."""
    try:
        duration = parse_duration(text)
    except ValueError:
        return
    assert 0 < duration <= MAX_DURATION


@pytest.mark.parametrize(
    "text", ["", "0s", "-1s", "1", "1 s", "1S", "366d", "1w", "0.5ms", "1e3s", "٣s", "1s\n", ".5s"]
)
def test_these_are_no_durations(text: str) -> None:
    """Close, and refused."""
    with pytest.raises(ValueError, match="must be"):
        parse_duration(text)


def test_fractions_are_fine_where_they_come_out_whole() -> None:
    """1.5s is 1500 ms."""
    assert (parse_duration("1.5s"), parse_duration("0.25h")) == (1_500, 900_000)
