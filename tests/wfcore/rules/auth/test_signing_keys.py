"""Which keys sign and verify links, and how their set changes."""

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from wfcore.errors import Conflict, NotFound
from wfcore.model.signing import SigningKeys
from wfcore.rules.auth.signed_links import (
    NO_KEYS,
    RANDOM_LENGTH,
    SIGNING_KEYS,
    Keyring,
    id_of,
    keyring,
    read_signed,
    retired,
    rotated,
    signed,
)
from wfcore.testing.strategies.values import base62, instants, texts
from wfcore.time import EpochMs

UNTIL = EpochMs(9)
keys = st.binary(min_size=1, max_size=32)
many = st.lists(keys, min_size=1, max_size=3, unique_by=id_of)
randoms = st.lists(base62(RANDOM_LENGTH), max_size=3, unique=True)


def made(ring: Keyring, text: str = "said") -> str:
    return ring.signed(lambda key: signed(key, "purpose", text, UNTIL))


def reads(ring: Keyring, token: str, text: str = "said") -> bool:
    found = {read_signed(key, "purpose", one) for key, one in ring.tried(token)}
    return (text, UNTIL) in found


def kept_of(chosen: list[str]) -> SigningKeys:
    kept = NO_KEYS
    for one in chosen:
        kept = rotated(kept, one, EpochMs(1))
    return kept


@given(many, randoms, texts(1))
def test_whatever_a_set_signs_it_verifies(given_keys, chosen, text):
    """SK-1: with the newest kept key, else the first given one, and the signature names it."""
    ring = keyring(given_keys, kept_of(chosen))
    signs = chosen[-1].encode() if chosen else given_keys[0]
    token = made(ring, text)
    assert reads(ring, token, text)
    assert token == f"{id_of(signs)}.{signed(signs, 'purpose', text, UNTIL)}"
    assert not reads(ring, token, text + "x")


@given(many, randoms, base62(RANDOM_LENGTH))
def test_a_rotation_ends_no_link(given_keys, chosen, fresh):
    """SK-1: those of before, and those that another server signs which has not looked again."""
    assume(fresh not in chosen)
    before = kept_of(chosen)
    old, new = keyring(given_keys, before), keyring(given_keys, rotated(before, fresh, UNTIL))
    assert reads(new, made(old))
    assert not reads(old, made(new))
    assert made(new) != made(old)


@given(many, randoms, keys)
def test_links_from_before_ids_are_good_by_the_keys_of_then(given_keys, chosen, other):
    """SK-3: and by none that was made since; nor by a key that nobody has."""
    ring = keyring(given_keys, kept_of(chosen))
    assert all(reads(ring, signed(key, "purpose", "said", UNTIL)) for key in given_keys)
    for key in (other, *(one.encode() for one in chosen)):
        assert reads(ring, signed(key, "purpose", "said", UNTIL)) == (key in given_keys)


@given(many, randoms, st.data())
def test_what_a_retired_key_signed_is_refused(given_keys, chosen, data):
    """SK-2: with its id and without, and nothing else is; the one that signs stays."""
    kept = kept_of(chosen)
    ring = keyring(given_keys, kept)
    id = data.draw(st.sampled_from(list(ring.named)))
    if not chosen or id == id_of(chosen[-1].encode()):
        with pytest.raises(Conflict, match="rotate first"):
            retired(kept, given_keys, id)
        return
    left = keyring(given_keys, retired(kept, given_keys, id))
    for one, key in ring.named.items():
        token = signed(key, "purpose", "said", UNTIL)
        assert reads(left, f"{one}.{token}") == (one != id)
        assert reads(left, token) == (one != id and key in given_keys)
    with pytest.raises(NotFound):
        retired(retired(kept, given_keys, id), given_keys, id)


@given(many, base62(RANDOM_LENGTH))
def test_a_given_key_that_was_retired_stays_so_wherever_it_is_given(given_keys, fresh):
    """SK-2: even a server whose setting says it first neither uses nor accepts it."""
    assume(fresh.encode() not in given_keys)
    kept = retired(kept_of([fresh]), given_keys, id_of(given_keys[0]))
    for order in (given_keys, given_keys[::-1]):
        ring = keyring(order, kept)
        assert not reads(ring, signed(given_keys[0], "purpose", "said", UNTIL))
        assert made(ring).startswith(id_of(fresh.encode()))


@given(st.text() | st.from_regex(r"[0-9a-f]{8}\..{0,20}"), many)
def test_any_other_text_is_signed_by_nobody(text, given_keys):
    """Whatever a client sends: no error, and nothing is read of it."""
    assert not reads(keyring(given_keys, None), text)


@given(instants(), base62(RANDOM_LENGTH))
def test_there_are_not_ever_more_keys(now, fresh):
    """Each is read with every link: the one who rotates is told to retire some."""
    kept = kept_of([f"{number:043}" for number in range(SIGNING_KEYS)])
    with pytest.raises(Conflict, match="retire"):
        rotated(kept, fresh, now)
    assert fresh not in repr(rotated(NO_KEYS, fresh, now))
    assert fresh not in repr(keyring((fresh.encode(),), None))
