"""The senders' schemes: what they publish, what a signature covers, two secrets at once."""

from base64 import b64encode
from collections.abc import Mapping

import pytest
from attrs import evolve
from hypothesis import assume, given
from hypothesis import strategies as st

from wfcore.errors import AuthReason, Conflict, InvalidInput, Unauthenticated
from wfcore.model.webhook import AuthMode, Scheme
from wfcore.model.workflow import Variable
from wfcore.rules.limits import DELIVERY_PAYLOAD, MAX_SECRET_OVERLAP
from wfcore.rules.webhooks.scheme import (
    SenderId,
    check_secret,
    made_secret,
    sender_headers,
    sender_id,
    slack_challenge,
    verify,
)
from wfcore.rules.webhooks.webhook import (
    bound,
    current_secrets,
    keeps_payload,
    may_be_replayed,
    refusal_in_words,
    rekeyed,
)
from wfcore.testing import builders as make
from wfcore.time import DAY, DurationMs, EpochMs

NOW = make.NOW
SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
OTHER = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD"
SENDERS = [scheme for scheme in Scheme if scheme is not Scheme.WFCORE]
TIMED = [Scheme.STANDARD, Scheme.STRIPE, Scheme.SLACK]
schemes = st.sampled_from(SENDERS)
bodies = st.binary(max_size=60)
SLACK_BODY = (
    b"token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow"
    b"&channel_id=G8PSS9T3V&channel_name=foobar&user_id=U2CERLKJA&user_name=roadrunner"
    b"&command=%2Fwebhook-collect&text=&response_url=https%3A%2F%2Fhooks.slack.com%2Fcommands"
    b"%2FT1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN"
    b"&trigger_id=398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c"
)


def carried(headers: Mapping[str, str]) -> dict[str, list[str]]:
    """Headers as a request has them."""
    return {name: [value] for name, value in headers.items()}


def fits(scheme: Scheme, secrets, headers, body: bytes, now: int = NOW) -> bool:
    refused = None
    try:
        verify(scheme, secrets, headers, body, EpochMs(now))
    except Unauthenticated as error:
        refused = error
    assert refused is None or refused.detail
    assert refused is None or refused.reason is AuthReason.SIGNATURE_MISMATCH
    return refused is None


PUBLISHED = [
    pytest.param(
        Scheme.STANDARD,
        SECRET,
        {
            "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
            "webhook-timestamp": "1614265330",
            "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
        },
        b'{"test": 2432232314}',
        1614265330,
        id="standard",
    ),
    pytest.param(
        Scheme.GITHUB,
        "It's a Secret to Everybody",
        {
            "x-hub-signature-256": "sha256="
            "757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"
        },
        b"Hello, World!",
        0,
        id="github",
    ),
    pytest.param(
        Scheme.SLACK,
        "8f742231b10e8888abcd99yyyzzz85a5",
        {
            "x-slack-request-timestamp": "1531420618",
            "x-slack-signature": "v0="
            "a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503",
        },
        SLACK_BODY,
        1531420618,
        id="slack",
    ),
]
"""The examples in the documentation of Standard Webhooks, GitHub and Slack."""


@pytest.mark.parametrize(("scheme", "secret", "headers", "body", "at"), PUBLISHED)
def test_published_examples_fit(scheme, secret, headers, body, at):
    """SG-4: each sender's own example passes, and with another body it does not."""
    assert fits(scheme, [secret], carried(headers), body, at * 1_000)
    assert not fits(scheme, [secret], carried(headers), body + b" ", at * 1_000)


@given(schemes, bodies, st.sampled_from(["msg_1", "a.b", "é"]))
def test_what_a_sender_signs_passes(scheme, body, id):
    """SG-4: what `sender_headers` makes is what `verify` takes."""
    id = id.encode().decode("latin-1") if scheme is Scheme.GITHUB else id.replace("é", "e")
    headers = sender_headers(scheme, SECRET, id, NOW, body)
    assert fits(scheme, [SECRET], carried(headers), body)


@given(schemes, bodies.filter(bool), st.data())
def test_any_changed_byte_of_the_body_is_refused(scheme, body, data):
    """SG-4: one byte more, less or other, and the door stays shut."""
    place = data.draw(st.integers(0, len(body) - 1))
    flip = data.draw(st.integers(1, 255))
    headers = carried(sender_headers(scheme, SECRET, "msg_1", NOW, body))
    changed = body[:place] + bytes([body[place] ^ flip]) + body[place + 1 :]
    for other in (changed, body + b" ", body[:-1], b" " + body):
        assert not fits(scheme, [SECRET], headers, other)


SIGNED_HEADERS = [
    (Scheme.STANDARD, "webhook-id"),
    (Scheme.STANDARD, "webhook-timestamp"),
    (Scheme.STANDARD, "webhook-signature"),
    (Scheme.GITHUB, "x-hub-signature-256"),
    (Scheme.STRIPE, "stripe-signature"),
    (Scheme.SLACK, "x-slack-request-timestamp"),
    (Scheme.SLACK, "x-slack-signature"),
]


@given(st.sampled_from(SIGNED_HEADERS), bodies, st.data())
def test_any_changed_byte_of_a_signed_header_is_refused(where, body, data):
    """SG-4: id, timestamp and signature, each byte of them, in any case of letters."""
    scheme, name = where
    headers = dict(sender_headers(scheme, SECRET, "msg_1", NOW, body))
    value = headers[name]
    place = data.draw(st.integers(0, len(value) - 1))
    other = data.draw(st.characters(min_codepoint=33, max_codepoint=255))
    assume(other != value[place])
    headers[name] = value[:place] + other + value[place + 1 :]
    assert not fits(scheme, [SECRET], carried(headers), body)


@given(st.sampled_from(SIGNED_HEADERS), bodies, st.text(max_size=30))
def test_missing_repeated_and_odd_headers_are_refused(where, body, odd):
    """SG-4: without a header, with two, or with anything else in it: 401, never a crash."""
    scheme, name = where
    headers = carried(sender_headers(scheme, SECRET, "msg_1", NOW, body))
    value = headers[name][0]
    assume(odd != value)
    for values in ([], [value, odd], [odd, value], [odd], [""]):
        assert not fits(scheme, [SECRET], headers | {name: values}, body)
    assert fits(scheme, [SECRET], headers | {name: [value, value]}, body)


@given(schemes, bodies)
def test_another_secret_or_none_is_refused(scheme, body):
    """SG-4: also one that would be another scheme's; an empty secret signs nothing."""
    headers = carried(sender_headers(scheme, SECRET, "msg_1", NOW, body))
    for secrets in ([OTHER], [], [""]):
        assert not fits(scheme, secrets, headers, body)
    for other in Scheme:
        if other is not scheme:
            assert not fits(other, [SECRET], headers, body)


@given(st.sampled_from(TIMED), st.integers(-400, 400))
def test_a_signature_is_good_for_five_minutes(scheme, late):
    """SG-5: to either side of the sender's clock, to the second, and the owner is told how far."""
    headers = carried(sender_headers(scheme, SECRET, "msg_1", NOW, b"{}"))
    assert fits(scheme, [SECRET], headers, b"{}", NOW + late * 1_000) == (abs(late) <= 300)


@pytest.mark.parametrize(("late", "said"), [(301, "301 s in the past"), (-400, "400 s in the fut")])
def test_the_owner_is_told_how_far_a_clock_is_off(late, said):
    """SG-5: the detail has the seconds and the direction."""
    headers = carried(sender_headers(Scheme.SLACK, SECRET, "", NOW, b"{}"))
    with pytest.raises(Unauthenticated, match="Unauthorized") as refused:
        verify(Scheme.SLACK, [SECRET], headers, b"{}", EpochMs(NOW + late * 1_000))
    assert said in str(refused.value.detail)


def test_several_signatures_and_several_secrets():
    """SG-4: senders that rotate sign twice, receivers that rotate have two: one fit is enough."""
    body = b"{}"
    one, two = (sender_headers(Scheme.STANDARD, key, "m", NOW, body) for key in (SECRET, OTHER))
    name = "webhook-signature"
    both = {**one, name: f"v1a,odd {two[name]} {one[name]}"}
    assert fits(Scheme.STANDARD, [SECRET], carried(both), body)
    assert fits(Scheme.STANDARD, [OTHER, SECRET], carried(one), body)
    old, new = (sender_headers(Scheme.STRIPE, key, "", NOW, body) for key in (OTHER, SECRET))
    name = "stripe-signature"
    both = {name: f"{old[name]},{new[name].partition(',')[2]},v0=odd"}
    assert fits(Scheme.STRIPE, [SECRET], carried(both), body)
    twice = {name: f"{old[name]},{new[name]}"}
    assert not fits(Scheme.STRIPE, [SECRET], carried(twice), body)


@pytest.mark.parametrize(
    ("scheme", "headers", "said"),
    [
        (Scheme.WFCORE, {}, "the header x-webhook-signature is missing"),
        (Scheme.STANDARD, {}, "the header webhook-id is missing"),
        (Scheme.STANDARD, {"webhook-id": ""}, "webhook-id must have 1 to 255 characters"),
        (Scheme.STRIPE, {"stripe-signature": "v1=a"}, "Stripe-Signature must have exactly one t="),
        (
            Scheme.STRIPE,
            {"stripe-signature": "t=soon,v1=a"},
            "t= of Stripe-Signature is no Unix time in seconds",
        ),
        (
            Scheme.SLACK,
            {"x-slack-request-timestamp": "-1"},
            "x-slack-request-timestamp is no Unix time in seconds",
        ),
    ],
)
def test_the_owner_reads_what_is_wrong_with_a_signature(scheme, headers, said):
    """WH-20: which header it is, and what it should hold."""
    with pytest.raises(Unauthenticated) as refused:
        verify(scheme, [SECRET], carried(headers), b"{}", NOW)
    assert refused.value.detail == said


@given(schemes, bodies, st.dictionaries(st.sampled_from(["id", "event_id"]), st.text(max_size=5)))
def test_a_delivery_has_one_id(scheme, body, payload):
    """SG-6: the sender's, and of what has none its own signed message; never one from outside."""
    headers = carried(sender_headers(scheme, SECRET, "msg_1", NOW, body))
    found = sender_id(scheme, headers, body, payload)
    again = sender_id(scheme, {**headers, "idempotency-key": ["x"]}, body, payload)
    assert found is not None
    assert found == again
    if scheme in (Scheme.STANDARD, Scheme.GITHUB):
        assert found.id == "msg_1"
        assert found.fingerprint != SenderId("msg_1", "").fingerprint
        return
    said = payload.get("id" if scheme is Scheme.STRIPE else "event_id")
    assert found == SenderId(said, said) if said else len(found.id) == 64
    later = carried(sender_headers(scheme, SECRET, "", EpochMs(NOW + 1_000), body))
    assert (sender_id(scheme, later, body, payload) == found) == bool(said)


def test_ids_that_are_none():
    """SG-6: our own scheme has none, GitHub's may be missing, an odd one is refused by name."""
    assert sender_id(Scheme.WFCORE, {"webhook-id": ["a"]}, b"", {}) is None
    assert sender_id(Scheme.GITHUB, {}, b"", {}) is None
    for odd in ([""], ["x" * 256], ["a", "b"]):
        with pytest.raises(InvalidInput, match="x-github-delivery"):
            sender_id(Scheme.GITHUB, {"x-github-delivery": odd}, b"", {})


def test_secrets_are_checked_by_scheme():
    """SG-7: Standard Webhooks wants base64 of 24 to 64 bytes; the text is never repeated."""
    for size, good in ((23, False), (24, True), (64, True), (65, False)):
        secret = b64encode(b"x" * size).decode()
        for text in (secret, f"whsec_{secret}"):
            if good:
                assert check_secret(Scheme.STANDARD, text) == text
                continue
            with pytest.raises(InvalidInput, match="24 to 64 bytes") as refused:
                check_secret(Scheme.STANDARD, text)
            assert secret not in str(refused.value)
    for scheme in Scheme:
        for odd in ("", "x", "5 one", "x" * 1_001, "a\nb and more", "a\0b and more"):
            with pytest.raises(InvalidInput, match="secret"):
                check_secret(scheme, odd)
    with pytest.raises(InvalidInput):
        check_secret(Scheme.STANDARD, "whsec_é§")
    assert check_secret(Scheme.GITHUB, "It's a Secret") == "It's a Secret"


def test_who_makes_the_secret():
    """SG-7: we do, but for senders that make their own."""
    for scheme in (Scheme.WFCORE, Scheme.STANDARD, Scheme.GITHUB):
        assert check_secret(scheme, made_secret(scheme, "A" * 32)) == f"whsec_{'A' * 32}"
    for scheme in (Scheme.STRIPE, Scheme.SLACK):
        with pytest.raises(InvalidInput, match="secret"):
            made_secret(scheme, "A" * 32)


def test_only_slacks_question_is_answered():
    """SG-8: its type and its scheme both count, and a challenge that is no text is none."""
    asked = {"type": "url_verification", "challenge": "abc"}
    assert slack_challenge(Scheme.SLACK, asked) == "abc"
    assert slack_challenge(Scheme.STRIPE, asked) is None
    assert slack_challenge(Scheme.SLACK, {**asked, "type": "event_callback"}) is None
    assert slack_challenge(Scheme.SLACK, {**asked, "challenge": 1}) is None


def signed_webhook(**fields):
    return make.webhook(**{"api_key_id": None, "secret_key": SECRET, **fields})


@given(st.integers(0, MAX_SECRET_OVERLAP), st.integers(-1, 1))
def test_both_secrets_are_good_until_the_overlap_is_over(overlap, beside):
    """WH-19: up to that instant and no longer; the new one from the first."""
    turned = rekeyed(signed_webhook(), Scheme.WFCORE, OTHER, DurationMs(overlap), NOW)
    assert current_secrets(turned, EpochMs(NOW + overlap)) == (OTHER,)
    at = EpochMs(NOW + overlap + beside)
    wanted = (OTHER, SECRET) if beside < 0 else (OTHER,)
    assert current_secrets(turned, at) == wanted
    assert SECRET not in repr(turned)
    assert OTHER not in repr(turned)


def test_a_change_of_scheme_ends_the_overlap():
    """WH-18: no old secret in the new scheme, and the one it has must fit that."""
    turned = rekeyed(signed_webhook(), Scheme.WFCORE, OTHER, DAY, NOW)
    moved = rekeyed(turned, Scheme.STANDARD, None, DurationMs(0), NOW)
    assert (moved.scheme, current_secrets(moved, NOW)) == (Scheme.STANDARD, (OTHER,))
    with pytest.raises(InvalidInput, match="base64"):
        rekeyed(signed_webhook(secret_key="s"), Scheme.STANDARD, None, DAY, NOW)


def test_what_cannot_be_rekeyed():
    """WH-17, WH-18: a bound key, a webhook without secret, an overlap beyond 30 days."""
    with pytest.raises(Conflict, match=r"^A webhook bound to a key takes no signatures$"):
        rekeyed(make.webhook(), Scheme.GITHUB, SECRET, DAY, NOW)
    with pytest.raises(InvalidInput, match=r"^secret: is required: this webhook has none$"):
        rekeyed(signed_webhook(secret_key=None), Scheme.GITHUB, None, DAY, NOW)
    for overlap in (-1, MAX_SECRET_OVERLAP + 1):
        with pytest.raises(InvalidInput, match=r"^overlap: must be 0 to 2592000000 milliseconds"):
            rekeyed(signed_webhook(), Scheme.WFCORE, OTHER, DurationMs(overlap), NOW)
    for overlap in (0, MAX_SECRET_OVERLAP):
        turned = rekeyed(signed_webhook(), Scheme.WFCORE, OTHER, DurationMs(overlap), NOW)
        assert turned.old_secret_until == NOW + overlap


def test_rekeying_in_small_ways():
    """WH-19: the same secret again changes nothing; an open webhook becomes a signed one."""
    same = rekeyed(signed_webhook(), Scheme.WFCORE, SECRET, DAY, NOW)
    assert same == signed_webhook()
    closed = rekeyed(signed_webhook(secret_key=None), Scheme.WFCORE, SECRET, DAY, NOW)
    assert (closed.auth_mode, closed.old_secret) == (AuthMode.SIGNATURE, None)
    keyed = bound(rekeyed(signed_webhook(), Scheme.WFCORE, OTHER, DAY, NOW), "key_1")
    assert (keyed.old_secret, keyed.old_secret_until) == (None, None)
    half = evolve(signed_webhook(), old_secret=OTHER)
    assert current_secrets(half, NOW) == (SECRET,)


def test_what_is_kept_of_a_refused_delivery():
    """WH-21: not a large body, and none for a workflow that takes secrets."""
    plain = make.definition(variables={"a": Variable("a")})
    secret = make.definition(variables={"a": Variable("a"), "b": Variable("b", secret=True)})
    assert keeps_payload(plain, DELIVERY_PAYLOAD)
    assert not keeps_payload(plain, DELIVERY_PAYLOAD + 1)
    assert not keeps_payload(secret, 1)


def test_what_may_be_replayed():
    """WH-22: what started an execution, or was kept."""
    assert may_be_replayed(make.delivery(execution_id="exec_1"))
    assert may_be_replayed(make.delivery(payload={}))
    assert not may_be_replayed(make.delivery())


@pytest.mark.parametrize("reason", AuthReason)
def test_every_reason_has_words(reason):
    """WH-20: what the audit log says in a word, the owner reads in a sentence."""
    words = refusal_in_words(Unauthenticated(reason))
    assert len(words.split()) > 3
    assert refusal_in_words(Unauthenticated(reason, detail="so")) == "so"
