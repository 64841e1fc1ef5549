"""API keys: their form, and every reason for which one is not good now."""

from hashlib import sha256
from itertools import zip_longest
from string import printable

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from wfcore.errors import AuthReason, Unauthenticated
from wfcore.model.access import ApiKey
from wfcore.rules.auth.api_key import (
    ALPHABET,
    CHECKSUM_LENGTH,
    PREFIX,
    RANDOM_LENGTH,
    Presented,
    check,
    checksum,
    compose,
    hash_secret,
    parse,
    secret_of,
    without_keys,
)
from wfcore.testing import builders
from wfcore.testing.strategies.values import base62, instants, key_ids, key_texts
from wfcore.time import EpochMs

OLD, NEW, WRONG = (Presented("key_1", secret) for secret in ("old", "new", "wrong"))
KEY = builders.key("key_1", secret_hash=hash_secret("new"))


def refusal(key: ApiKey | None, presented: Presented, now: EpochMs) -> AuthReason:
    with pytest.raises(Unauthenticated) as refused:
        check(key, presented, now)
    assert str(refused.value) == "Unauthorized"
    return refused.value.reason


@given(key_ids(), base62(RANDOM_LENGTH))
def test_a_composed_key_parses_to_its_parts(id, random):
    """AU-2: prefix, id and secret, joined by underscores."""
    text = compose(id, random)
    assert text == f"{PREFIX}_{id}_{random}{checksum(id, random)}"
    assert parse(text) == Presented(id, secret_of(text))
    assert secret_of(text).startswith(random)


@given(key_ids(), base62(RANDOM_LENGTH))
def test_the_checksum_is_one_that_others_can_compute(id, random):
    """AU-2: the last six base62 digits of the first eight bytes of a SHA-256; scanners know it."""
    number = int(sha256(f"{id}_{random}".encode()).hexdigest()[:16], 16)
    digits = ""
    for _ in range(CHECKSUM_LENGTH):
        number, digit = divmod(number, 62)
        digits = ALPHABET[digit] + digits
    assert checksum(id, random) == digits


@given(st.lists(st.text(), min_size=1, max_size=4), st.lists(key_texts(), max_size=3))
def test_no_key_survives_in_a_text(around, keys):
    """SC-4: wherever somebody put a key, of it only the prefix is left, and all else as it was."""
    around = [text.replace("wfk", "") for text in around]
    pairs = list(zip_longest(around, keys[: len(around)], fillvalue=""))
    text = " ".join(f"{before}<{key}>" for before, key in pairs)
    shown = " ".join(f"{before}<{'wfk_***' if key else ''}>" for before, key in pairs)
    assert without_keys(text) == shown


@given(key_texts(), st.data())
def test_every_single_character_change_is_malformed(key, data):
    """AU-2: a mistyped key is told from a wrong one before any look-up."""
    place = data.draw(st.integers(0, len(key) - 1))
    letter = data.draw(
        st.sampled_from(ALPHABET + "_") | st.sampled_from(printable) | st.characters()
    )
    changed = key[:place] + letter + key[place + 1 :]
    if changed != key:
        malformed(changed)


@given(key_texts(), st.integers(0), st.text(ALPHABET + " \n_é", min_size=1, max_size=3))
def test_a_cut_or_lengthened_key_is_malformed(key, length, more):
    """AU-2: every character counts, and there are no others, no blank and no line end."""
    malformed(key[: length % len(key)])
    malformed(key + more)
    malformed(more + key)


@given(st.text() | st.text("wfk_"))
def test_anything_else_is_malformed(text):
    """AU-2: and nothing else is ever raised."""
    malformed(text)


def malformed(text: str) -> None:
    with pytest.raises(Unauthenticated) as refused:
        parse(text)
    assert refused.value.reason is AuthReason.MALFORMED


@given(key_texts())
def test_a_presented_key_shows_no_secret(key):
    """SC-4: not in its repr, and what is stored is a hash."""
    presented = parse(key)
    assert repr(presented) == f"Presented(id={presented.id!r})"
    assert presented.secret[:-CHECKSUM_LENGTH] not in hash_secret(presented.secret)


def test_the_secret_is_long_enough():
    """AU-2: at least 190 bits beside the checksum of six characters."""
    assert len(ALPHABET) == len(set(ALPHABET)) == 62
    assert len(ALPHABET) ** RANDOM_LENGTH >= 2**190
    assert CHECKSUM_LENGTH == 6


@given(instants())
def test_an_unknown_key_and_a_wrong_secret_are_refused(now):
    """AU-3: each with its reason, for the audit log only."""
    assert refusal(None, NEW, now) is AuthReason.UNKNOWN_KEY
    assert refusal(KEY, WRONG, now) is AuthReason.BAD_SECRET
    assert check(KEY, NEW, now) is KEY


@given(instants(), instants())
def test_a_key_is_good_until_its_expiry(expires_at, now):
    """AU-3: the millisecond before it is good, from `expires_at` on it is not."""
    key = evolve(KEY, expires_at=expires_at)
    for instant in (now, EpochMs(expires_at - 1), expires_at, EpochMs(expires_at + 1)):
        if instant < expires_at:
            assert check(key, NEW, instant) is key
        else:
            assert refusal(key, NEW, instant) is AuthReason.EXPIRED


@given(instants(), st.none() | instants(), instants())
def test_a_revoked_key_is_never_good_again(revoked_at, expires_at, now):
    """AU-3: from the next request on, whatever the clock says, expired or not."""
    key = evolve(KEY, revoked_at=revoked_at, expires_at=expires_at)
    assert refusal(key, NEW, now) is AuthReason.REVOKED


@given(instants(), instants())
def test_after_a_rotation_the_old_secret_is_good_for_a_while(until, now):
    """AU-7: both secrets open until the overlap ends; from then on only the new one."""
    key = evolve(KEY, previous_hash=hash_secret("old"), previous_until=until)
    for instant in (now, EpochMs(until - 1), until):
        assert check(key, NEW, instant) is key
        if instant < until:
            assert check(key, OLD, instant) is key
        else:
            assert refusal(key, OLD, instant) is AuthReason.BAD_SECRET


@given(instants(), st.booleans(), st.booleans())
def test_an_overlap_needs_both_a_secret_and_an_end(now, hashed, ends):
    """AU-7: half a rotation opens nothing, and neither does the empty secret."""
    key = evolve(
        KEY,
        previous_hash=hash_secret("old") if hashed else None,
        previous_until=EpochMs(now + 1) if ends else None,
    )
    assert refusal(key, Presented("key_1", ""), now) is AuthReason.BAD_SECRET
    if not (hashed and ends):
        assert refusal(key, OLD, now) is AuthReason.BAD_SECRET


@given(instants())
def test_a_wrong_secret_learns_nothing_of_the_key(now):
    """AU-3: of a revoked or expired key only its holder's attempts are noted as such."""
    for key in (evolve(KEY, revoked_at=now), evolve(KEY, expires_at=now)):
        assert refusal(key, WRONG, now) is AuthReason.BAD_SECRET
