"""Durations as people write them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wfcore.rules.definition.values import MAX_DURATION, parse_duration

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


FORM = (
    "must be a duration: a number with ms, s, m, h or d (like 30s), "
    "or a whole number of milliseconds"
)
RANGE = "must be more than 0 and at most 365d"
WHOLE = "must be a whole number of milliseconds"
NONE: list[tuple[str | int, str]] = [
    *((text, FORM) for text in ("", "-1s", "1", "1 s", "1S", "1w", "1e3s", "٣s", "1s\n", ".5s")),
    *((text, FORM) for text in (f"{10**15}ms", f"0.{10**15}s", "1.s", "xs")),
    *((text, RANGE) for text in ("0s", "0.0ms", "366d", "365.1d", 0, -1, MAX_DURATION + 1)),
    *((text, WHOLE) for text in ("0.5ms", "1.0005s", "1000.1ms")),
]


@pytest.mark.parametrize(("text", "message"), NONE)
def test_these_are_no_durations(text: str | int, message: str) -> None:
    """Close, and refused: another form, out of the range, a part of a millisecond."""
    with pytest.raises(ValueError, match="must be") as caught:
        parse_duration(text)
    assert str(caught.value) == message


def test_fractions_are_fine_where_they_come_out_whole() -> None:
    """1.5s is 1500 ms."""
    assert (parse_duration("1.5s"), parse_duration("0.25h")) == (1_500, 900_000)
    assert type(parse_duration("1.5s")) is int
    assert parse_duration("365.0d") == MAX_DURATION == 365 * UNITS["d"]


@pytest.mark.parametrize("written", [0, "0s", "0.0d"])
def test_nothing_is_a_duration_only_where_it_may_be(written):
    """Where it may not, it is refused; where it may, everything else is read as ever."""
    assert parse_duration(written, zero=True) == 0
    with pytest.raises(ValueError, match="must be"):
        parse_duration(written)
    assert parse_duration(1, zero=True) == 1
    with pytest.raises(ValueError, match="more than 0"):
        parse_duration(-1, zero=True)
