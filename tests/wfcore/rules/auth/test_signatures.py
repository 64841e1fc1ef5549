"""HMAC signatures of webhook bodies and of download links. Spec: legacy signature mode."""

import re
import string

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from wfcore.errors import AuthReason, PersonalLinkOver, Unauthenticated
from wfcore.model.webhook import Scheme
from wfcore.rules.auth.signed_links import (
    PersonalLink,
    download_fits,
    personal_token,
    read_personal_token,
    read_signed,
    sign_download,
    signed,
)
from wfcore.rules.webhooks.scheme import sign, signature_fits, verify
from wfcore.testing import builders as make
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
        verify(Scheme.WFCORE, [secret], headers, body, EpochMs(0))
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


def link_of(key, expires, email="Ann@Example.org "):
    token = personal_token(key, make.approval(expires_at=expires), email)
    assert re.fullmatch(r"[A-Za-z0-9_.-]+", token)
    return token


@given(st.binary(min_size=1, max_size=64), instants(1), instants())
def test_a_personal_link_says_whose_and_which_until_the_approval_expires(key, expires, now):
    """PL-1: the approval, the email in lower case, and the approval's own expiry."""
    token = link_of(key, expires)
    said = PersonalLink("appr_1", "ann@example.org", expires)
    assert read_personal_token(key, token, EpochMs(expires - 1)) == said
    for instant in (now, expires):
        if instant >= expires:
            with pytest.raises(PersonalLinkOver, match="time to decide is over"):
                read_personal_token(key, token, instant)


@given(st.binary(min_size=1, max_size=60), st.text(), st.data())
def test_nobody_else_makes_a_personal_link(key, junk, data):
    """PL-1: another key, another byte, another way to write the same, text of any kind."""
    expires = EpochMs(2_000_000_000_000)
    token = link_of(key, expires)
    place = data.draw(st.integers(0, len(token) - 1))
    letter = data.draw(st.sampled_from(sorted(set(string.ascii_letters + "-_.=") - {token[place]})))
    forged = token[:place] + letter + token[place + 1 :]
    for bad, by in ((forged, key), (token + "=", key), (junk, key), (token, key + b"x")):
        with pytest.raises(PersonalLinkOver, match="never valid"):
            read_personal_token(by, bad, EpochMs(0))


@given(st.text() | st.text("0123456789abcdef", min_size=64, max_size=64))
def test_an_odd_download_signature_is_no_crash(signature):
    """AR-2: whatever stands in the link, the answer is no."""
    assert not download_fits(b"key", "art_1", EpochMs(1), signature, EpochMs(0))


@given(st.binary(min_size=1), st.text("WXwé:.=", max_size=12), instants())
def test_any_text_is_signed_and_read_again(key, text, expires):
    """Whatever it ends with, and for one purpose only. PL-1."""
    token = signed(key, "purpose", text, expires)
    assert read_signed(key, "purpose", token) == (text, expires)
    assert read_signed(key, "other", token) is None
    assert read_signed(key + b"x", "purpose", token) is None
    for other in (f"{token}.", f".{token}", f"{token}=", token.replace(".", "..")):
        assert read_signed(key, "purpose", other) is None


def test_an_email_may_have_a_colon():
    """It follows the first one: no id has any. PL-1."""
    approval = make.approval()
    token = personal_token(b"key", approval, '"a:b"@example.org')
    read = read_personal_token(b"key", token, EpochMs(approval.expires_at - 1))
    assert (read.approval_id, read.email) == (approval.id, '"a:b"@example.org')
