"""Signed requests at their edges: stamps, lengths, repeated headers, secrets, ids. SG-4 to SG-7."""

from hashlib import sha256

import pytest
from attrs import evolve

from wfcore.errors import InvalidInput, Unauthenticated
from wfcore.model.webhook import Scheme
from wfcore.rules.webhooks.scheme import (
    SenderId,
    check_secret,
    made_secret,
    sender_headers,
    sender_id,
    verify,
)
from wfcore.rules.webhooks.webhook import check_name, rekeyed
from wfcore.testing import builders as make
from wfcore.time import DAY, EpochMs

NOW = EpochMs(1_700_000_000_000)
SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
OTHER = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD"
BODY = b'{"n": 1}'
TIMED = [Scheme.STANDARD, Scheme.STRIPE, Scheme.SLACK]


def headers(scheme: Scheme, *, id: str = "msg_1", now: int = NOW, secret: str = SECRET):
    made = sender_headers(scheme, secret, id, EpochMs(now), BODY)
    return {name: [value] for name, value in made.items()}


def refusal(scheme: Scheme, carried, *secrets: str, body: bytes = BODY) -> str | None:
    """Why it is refused, as its owner is told; None: it is not."""
    try:
        verify(scheme, secrets or (SECRET,), carried, body, NOW)
    except Unauthenticated as refused:
        return refused.detail
    return None


@pytest.mark.parametrize("scheme", Scheme)
def test_body_and_secret_must_fit(scheme: Scheme) -> None:
    """Of several secrets one is enough. SG-4."""
    signed = headers(scheme)
    none_fits = {
        Scheme.WFCORE: "the signature does not fit the body and the secret",
    }.get(scheme, "no signature fits the body and the secret")
    assert refusal(scheme, signed) is None
    assert refusal(scheme, signed, OTHER, SECRET) is None
    assert refusal(scheme, signed, OTHER) == none_fits
    assert refusal(scheme, signed, body=BODY + b" ") == none_fits


def test_our_own_scheme_is_one_header() -> None:
    """As its documentation says. SG-1."""
    assert [*headers(Scheme.WFCORE)] == ["x-webhook-signature"]


@pytest.mark.parametrize("scheme", TIMED)
@pytest.mark.parametrize(("late_s", "fits"), [(-301, 0), (-300, 1), (300, 1), (301, 0)])
def test_a_signature_is_good_for_five_minutes(scheme: Scheme, late_s: int, fits: bool) -> None:
    """To the second, on either side: one that was recorded opens nothing later. SG-5."""
    where = "past" if late_s > 0 else "future"
    said = None if fits else f"its timestamp is 301 s in the {where}; 300 s may be"
    assert refusal(scheme, headers(scheme, now=NOW - late_s * 1_000)) == said


@pytest.mark.parametrize("scheme", TIMED)
def test_a_time_has_at_most_twelve_digits(scheme: Scheme) -> None:
    """More could be a number that takes long to read. SG-5."""
    for digits, said in ((12, "future; 300 s may be"), (13, "is no Unix time in seconds")):
        told = refusal(scheme, headers(scheme, now=10**digits * 1_000 - 1_000))
        assert told
        assert told.endswith(said)


def test_headers_that_are_odd_are_named() -> None:
    """Missing, twice, or with something else in it. SG-4, WH-20."""
    signed = headers(Scheme.STANDARD)
    twice = {**signed, "webhook-id": ["a", "b"]}
    assert refusal(Scheme.STANDARD, twice) == "the header webhook-id stands there twice"
    late = {**signed, "webhook-timestamp": ["soon"]}
    assert refusal(Scheme.STANDARD, late) == "webhook-timestamp is no Unix time in seconds"
    both = {"stripe-signature": ["t=1=2,v1=a"]}
    assert refusal(Scheme.STRIPE, both) == "t= of Stripe-Signature is no Unix time in seconds"
    (value,) = signed["webhook-signature"]
    spaced = {**signed, "webhook-signature": [f"v1,x {value}"]}
    assert refusal(Scheme.STANDARD, spaced) is None
    tabbed = {**signed, "webhook-signature": [f"v1,x\t{value}"]}
    assert refusal(Scheme.STANDARD, tabbed) is not None, "only a blank is between two"


@pytest.mark.parametrize(("length", "good"), [(1, True), (255, True), (256, False)])
def test_an_id_has_1_to_255_characters(length: int, good: bool) -> None:
    """SG-6: in a header it must; of a body that has none it is the message's own."""
    id = "x" * length
    told = refusal(Scheme.STANDARD, headers(Scheme.STANDARD, id=id))
    assert told == (None if good else "webhook-id must have 1 to 255 characters")
    carried = {"x-github-delivery": [id]}
    if good:
        digest = sha256(BODY).hexdigest()
        assert sender_id(Scheme.GITHUB, carried, BODY, {}) == SenderId(id, digest)
    else:
        with pytest.raises(InvalidInput) as refused:
            sender_id(Scheme.GITHUB, carried, BODY, {})
        said = (refused.value.field, refused.value.fix)
        assert said == ("x-github-delivery", "must stand there once, with 1 to 255 characters")
    stripe = sender_id(Scheme.STRIPE, headers(Scheme.STRIPE), BODY, {"id": id})
    own = sha256(f"{NOW // 1_000}.".encode() + BODY).hexdigest()
    assert stripe == (SenderId(id, id) if good else SenderId(own, own))


PRINTABLE = InvalidInput("secret", "must have 6 to 1000 printable characters")
BASE64 = InvalidInput("secret", "must be whsec_ and the base64 of 24 to 64 bytes")


@pytest.mark.parametrize(
    ("scheme", "secret", "wanted"),
    [
        (Scheme.GITHUB, "", PRINTABLE),
        (Scheme.GITHUB, "x" * 5, PRINTABLE),
        (Scheme.GITHUB, "x" * 1_001, PRINTABLE),
        (Scheme.GITHUB, "abcdef\nb", PRINTABLE),
        (Scheme.STANDARD, "whsec_", BASE64),
        (Scheme.STANDARD, f"whsec_!!!!{SECRET[6:]}", BASE64),
    ],
)
def test_what_can_be_no_secret(scheme: Scheme, secret: str, wanted: InvalidInput) -> None:
    """In exact words, and it is not repeated. SG-7."""
    with pytest.raises(InvalidInput) as refused:
        check_secret(scheme, secret)
    assert (refused.value.field, refused.value.fix) == (wanted.field, wanted.fix)


def test_a_secret_may_have_a_thousand_characters() -> None:
    """Or six, if a sender makes such, and none fewer. SG-7."""
    for length in (6, 1_000):
        assert check_secret(Scheme.GITHUB, "x" * length) == "x" * length


def test_who_makes_a_secret_is_told() -> None:
    """Stripe and Slack do. SG-7."""
    for scheme in (Scheme.STRIPE, Scheme.SLACK):
        with pytest.raises(InvalidInput) as refused:
            made_secret(scheme, "x")
        said = (refused.value.field, refused.value.fix)
        assert said == ("secret", f"is required: {scheme} makes the secret and shows it to you")


def test_no_secret_is_made_up_for_a_webhook() -> None:
    """An empty one is refused, and a change of scheme forgets the old one. WH-17, WH-18."""
    webhook = make.webhook(api_key_id=None, secret_key=None)
    with pytest.raises(InvalidInput):
        rekeyed(webhook, Scheme.GITHUB, "", DAY, NOW)
    turned = rekeyed(evolve(webhook, secret_key=SECRET), Scheme.WFCORE, OTHER, DAY, NOW)
    assert turned.old_secret == SECRET
    moved = rekeyed(turned, Scheme.GITHUB, None, DAY, NOW)
    assert (moved.old_secret, moved.old_secret_until) == (None, None)


def test_a_name_with_odd_characters_is_refused_by_its_field() -> None:
    """Of a webhook, or of a key."""
    with pytest.raises(InvalidInput) as refused:
        check_name("a\0b")
    assert refused.value.field == "name"
