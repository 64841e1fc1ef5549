"""Three ways to carry a key, tried in order. Spec: ways to carry the key."""

from collections.abc import Callable
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wfcore.errors import AuthReason, Unauthenticated
from wfcore.rules.auth.api_key import Presented, bears_key, parse, presented, presented_key
from wfcore.testing.strategies.values import key_texts

KEYS = st.sampled_from(["one", "two", "three"])
BLANK = st.sampled_from(["", " ", "\t"])
ways = st.none() | BLANK | KEYS


def carried(value: str | None) -> list[str]:
    return [] if value is None else [value]


def bearer(value: str | None) -> list[str]:
    return [] if value is None else [f"Bearer {value}"]


def reason(*carriers) -> AuthReason:
    with pytest.raises(Unauthenticated) as refused:
        presented_key(*carriers)
    return refused.value.reason


@given(ways, ways, ways)
def test_the_first_non_empty_way_wins(authorization, header, query):
    """AU-1: Bearer, then X-API-Key, then the query; an empty one is no way at all."""
    filled = [way for way in (authorization, header, query) if way and way.strip()]
    carriers = (bearer(authorization), carried(header), carried(query))
    if filled:
        assert presented_key(*carriers) == filled[0]
    else:
        assert reason(*carriers) is AuthReason.MISSING


@given(key_texts(), st.sampled_from(["Bearer", "bearer", "BEARER", "bEaReR"]), BLANK, BLANK)
def test_the_scheme_is_case_insensitive(key, scheme, before, after):
    """AU-1: as HTTP has it, and blanks around the key do not matter."""
    assert presented_key([f"{before}{scheme} {before}{key}{after}"], [], []) == key


@given(st.sampled_from(["Basic one", "Digest one", "one", "Bearerone", "Bearer"]), ways, ways)
def test_another_scheme_is_not_the_first_way(authorization, header, query):
    """AU-1: the next way is tried, as if the header were not there."""
    filled = [way for way in (header, query) if way and way.strip()]
    carriers = ([authorization], carried(header), carried(query))
    if filled:
        assert presented_key(*carriers) == filled[0]
    else:
        assert reason(*carriers) is AuthReason.MISSING


@given(st.lists(KEYS, min_size=1, max_size=3), st.sampled_from([0, 1, 2]))
def test_two_different_values_of_one_way_are_malformed(values, way):
    """AU-5: which one a proxy looked at nobody knows; the same value twice is one value."""
    carriers = [[], [], []]
    carriers[way] = [f"Bearer {value}" for value in values] if way == 0 else values
    if len(set(values)) > 1:
        assert reason(*carriers) is AuthReason.MALFORMED
    else:
        assert presented_key(*carriers) == values[0]


@given(KEYS, st.sampled_from(["Basic one", "Digest x", "Bearer other"]), st.booleans(), ways)
def test_two_different_authorization_headers_are_malformed(key, other, first, header):
    """AU-5: also where only one of them is a Bearer, and whatever else is carried."""
    headers = [f"Bearer {key}", other]
    assert reason(headers if first else headers[::-1], carried(header), []) is AuthReason.MALFORMED


FOREIGN = ["", "one", "Basic wfk_1_2", "Bearer x wfk_", "xwfk_1", "wfk"]
OURS = ["wfk_1_2", " wfk_bad", "wfk_"]


@given(st.lists(st.sampled_from(FOREIGN), max_size=2), st.sampled_from([0, 1, 2]), st.data())
def test_a_key_of_ours_is_known_wherever_it_is_carried(foreign, way, data):
    """AU-10: good or bad, beside whatever else; nothing else is taken for one."""
    carriers = [list(foreign), list(foreign), list(foreign)]
    assert not bears_key(*carriers)
    ours = data.draw(st.sampled_from(OURS))
    carriers[way].append(f" bEARER {ours}" if way == 0 else ours)
    assert bears_key(*carriers)


@given(st.lists(st.text(), max_size=2), st.lists(st.text(), max_size=2), st.lists(st.text()))
def test_odd_headers_are_refused_and_nothing_else(authorization, header, query):
    """AU-1: whatever bytes arrive, the answer is a non-empty key or a refusal."""
    with suppress(Unauthenticated):
        assert presented_key(authorization, header, query).strip()


@given(*[st.lists(key_texts() | BLANK, max_size=2).map(tuple)] * 3, st.booleans())
def test_a_remembered_key_is_what_would_be_found_again(authorization, header, query, named):
    """AU-1, AU-2: at first and later, and no refusal is forgotten."""
    carriers = (tuple(f"Bearer {key}" for key in authorization) if named else (), header, query)
    for _ in range(2):
        assert outcome(presented, carriers) == outcome(
            lambda *ways: parse(presented_key(*ways)), carriers
        )


def outcome(find: Callable[..., Presented], carriers: tuple[tuple[str, ...], ...]) -> object:
    try:
        return find(*carriers)
    except Unauthenticated as refused:
        return refused.reason
