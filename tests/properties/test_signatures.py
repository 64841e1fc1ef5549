"""HMAC signatures of webhook bodies and of download links. Spec: legacy signature mode."""

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from wfcore.errors import AuthReason, Unauthenticated
from wfcore.model.webhook import Scheme
from wfcore.rules.auth.signature import (
    download_fits,
    sign,
    sign_download,
    signature_fits,
)
from wfcore.rules.webhooks.scheme import require_signed
from wfcore.testing.strategies.values import instants, texts
from wfcore.time import EpochMs

secrets = texts(1)
bodies = st.binary(max_size=60)


def test_a_signature_that_others_have_computed():
    """SG-1: RFC 4231, test case 2."""
    digest = "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"
    assert sign("Jefe", b"what do ya want for nothing?") == digest


@given(secrets, bodies, st.sampled_from(["", "sha256="]), st.booleans(), st.booleans())
def test_a_signed_body_passes(secret, body, prefix, upper, blanks):
    """SG-1, SG-2: with the prefix or without, in either case of hex."""
    digest = sign(secret, body).upper() if upper else sign(secret, body)
    header = f" {prefix}{digest} " if blanks else f"{prefix}{digest}"
    assert signature_fits(secret, body, header)


@given(secrets, bodies.filter(bool), st.data())
def test_any_changed_byte_fails(secret, body, data):
    """SG-1: the raw bytes are signed, so a reformatted body is another body."""
    place = data.draw(st.integers(0, len(body) - 1))
    flip = data.draw(st.integers(1, 255))
    changed = body[:place] + bytes([body[place] ^ flip]) + body[place + 1 :]
    header = f"sha256={sign(secret, body)}"
    for other in (changed, body + b" ", body[:-1], b" " + body):
        assert not signature_fits(secret, other, header)


@given(secrets, secrets, bodies)
def test_another_secret_fails(secret, other, body):
    """SG-1: only the webhook's own secret signs for it."""
    assume(secret != other)
    # HMAC itself pads short secrets with NUL and hashes long ones; ours never get there
    assume(secret.rstrip("\0") != other.rstrip("\0"))
    assert not signature_fits(other, body, sign(secret, body))


@given(secrets, bodies, st.integers(0, 63), st.sampled_from("0123456789abcdef"))
def test_any_changed_digit_fails(secret, body, place, digit):
    """SG-1: all 64 digits count."""
    digest = sign(secret, body)
    assume(digest[place] != digit)
    assert not signature_fits(secret, body, digest[:place] + digit + digest[place + 1 :])


@given(
    secrets,
    bodies,
    st.none() | st.text() | st.text("0123456789abcdefABCDEF=sha é\0", max_size=70),
)
def test_odd_headers_are_mismatches_and_nothing_else(secret, body, header):
    """SG-3: missing, short, not hexadecimal, not even ASCII: 401, never a crash."""
    assert not signature_fits(secret, body, header)
    headers = {} if header is None else {"x-webhook-signature": [header]}
    with pytest.raises(Unauthenticated) as refused:
        require_signed(Scheme.WFCORE, [secret], headers, body, EpochMs(0))
    assert refused.value.reason is AuthReason.SIGNATURE_MISMATCH


@given(secrets, bodies, st.sampled_from(["sha1=", "SHA256=", "sha256=sha256=", "sha256:", "0x"]))
def test_another_prefix_fails(secret, body, prefix):
    """SG-2: the one prefix, at most once."""
    assert not signature_fits(secret, body, prefix + sign(secret, body))


@given(bodies)
def test_an_empty_secret_signs_nothing(body):
    """SG-3: signature mode fails closed."""
    assert not signature_fits("", body, sign("", body))


@given(st.binary(min_size=1), texts(1), instants(), instants())
def test_a_download_link_is_good_until_its_end(key, artifact_id, expires, now):
    """AR-2: the millisecond before `expires` it opens, from then on it does not."""
    signature = sign_download(key, artifact_id, expires)
    for instant in (now, EpochMs(expires - 1), expires):
        fits = download_fits(key, artifact_id, expires, signature, instant)
        assert fits is (instant < expires)


@given(st.binary(min_size=1, max_size=64), texts(1), instants(1), st.integers(1, 10**6))
def test_a_download_link_opens_one_artifact_until_one_instant(key, artifact_id, expires, by):
    """AR-2: neither its artifact nor its end can be changed, nor another key used."""
    signature, now = sign_download(key, artifact_id, expires), EpochMs(0)
    assert not download_fits(key, artifact_id + "x", expires, signature, now)
    assert not download_fits(key, artifact_id, EpochMs(expires + by), signature, now)
    assert not download_fits(key + b"x", artifact_id, expires, signature, now)
    assert not download_fits(key, artifact_id, expires, signature[:-1], now)


@given(st.text() | st.text("0123456789abcdef", min_size=64, max_size=64))
def test_an_odd_download_signature_is_no_crash(signature):
    """AR-2: whatever stands in the link, the answer is no."""
    assert not download_fits(b"key", "art_1", EpochMs(1), signature, EpochMs(0))
