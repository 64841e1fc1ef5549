"""
Schemes of webhook signatures: each sender's own headers, and one rule to verify them.

A scheme defines which bytes are signed, how the signature is written, and which headers hold
timestamp and signatures. Everything else is shared: the tolerance, the comparison in constant time,
several secrets during a rotation. SG-1 to SG-8.

Headers are given by lower-case name, each with all its values, decoded as Latin-1.

Sources: standardwebhooks.com (spec 1.0), GitHub "Validating webhook deliveries", Stripe "Verify
webhook signatures manually", Slack "Verifying requests from Slack".
"""

import hmac
import re
from base64 import b64decode, b64encode
from binascii import Error as NotBase64
from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
from hmac import compare_digest

from attrs import frozen

from wfcore.errors import AuthReason, InvalidInput, Unauthenticated
from wfcore.model.json import JsonObject
from wfcore.model.webhook import Scheme
from wfcore.rules.callback import SECRET_PREFIX
from wfcore.rules.limits import WEBHOOK_TOLERANCE
from wfcore.time import SECOND, EpochMs

Headers = Mapping[str, Sequence[str]]

SIGNATURE_HEADERS = frozenset(
    {
        "x-webhook-signature",
        "webhook-signature",
        "x-hub-signature",
        "x-hub-signature-256",
        "stripe-signature",
        "x-slack-signature",
    }
)
"""The headers with the signatures of all schemes, by lower-case name."""
STANDARD_KEY_BYTES = (24, 64)
"""The length of a key in the specification of Standard Webhooks."""
MAX_SENDER_ID = 255
MIN_SECRET, MAX_SECRET = 6, 1_000
"""
The characters of a secret. Whoever sees one signed body can try all shorter secrets in a moment.
"""
_TOLERANCE_S = WEBHOOK_TOLERANCE // SECOND
_STAMP_DIGITS = 12
_HEX_DIGEST = re.compile(r"[0-9a-fA-F]{64}", re.ASCII)
_PREFIX = "sha256="


def sign(secret: str, body: bytes) -> str:
    """The hex HMAC-SHA256 of the raw body bytes. SG-1."""
    return hmac.new(secret.encode(), body, sha256).hexdigest()


def signature_fits(secret: str, body: bytes, header: str | None) -> bool:
    """
    Whether *header* (`sha256=<hex>`, prefix optional) is the signature of exactly *body*.

    SG-1 to SG-3. Length and alphabet are checked first, so that only well-formed text is compared.
    An empty secret never fits.
    """
    if not secret or header is None:
        return False
    digest = header.strip().removeprefix(_PREFIX)
    if _HEX_DIGEST.fullmatch(digest) is None:
        return False
    return compare_digest(sign(secret, body).encode(), digest.lower().encode())


def by_lower_name(headers: Mapping[str, str | Sequence[str]]) -> Headers:
    """*headers* by name in lower case, each with all its values."""
    found: dict[str, list[str]] = {}
    for name, values in headers.items():
        found.setdefault(name.lower(), []).extend([values] if isinstance(values, str) else values)
    return found


class _Refused(Exception):
    """Raised when a request lacks what the scheme requires; the text is for the webhook's owner."""


@frozen
class _Signed:
    """
    The claim of a request: that these bytes were signed with one of these signatures, at a Unix
    time in seconds.
    """

    message: bytes
    signatures: Sequence[str]
    stamp: str | None = None


@frozen
class _Scheme:
    """
    `read`: the claim of a request. `encode`: the signature of a message as written in the header.
    """

    read: Callable[[Headers, bytes], _Signed]
    encode: Callable[[str, bytes], str]


def verify(
    scheme: Scheme,
    secret: str | Sequence[str],
    headers: Mapping[str, str | Sequence[str]],
    body: bytes,
    now: EpochMs,
) -> None:
    """
    Raises `Unauthenticated` unless *body* was signed with *secret*, recently; the error's `detail`
    names the mismatch. The one check for every scheme. SG-4, SG-5.

    *secret*: one secret, or all secrets that are valid during a rotation. *headers*: the headers of
    the request, by name in any case. *now*: in milliseconds since 1970.
    """
    secrets = (secret,) if isinstance(secret, str) else secret
    headers = by_lower_name(headers)
    try:
        if scheme is Scheme.WFCORE:
            _require_wfcore(secrets, headers, body)
            return
        rule = _SCHEMES[scheme]
        signed = rule.read(headers, body)
        _require_match(rule, secrets, signed)
        _require_recent(signed.stamp, now)
    except _Refused as refused:
        raise Unauthenticated(AuthReason.SIGNATURE_MISMATCH, detail=str(refused)) from None


def _require_wfcore(secrets: Sequence[str], headers: Headers, body: bytes) -> None:
    header = _one(headers, "x-webhook-signature")
    if not any(signature_fits(secret, body, header) for secret in secrets):
        raise _Refused("the signature does not fit the body and the secret")


def _require_match(rule: _Scheme, secrets: Sequence[str], signed: _Signed) -> None:
    """Compares every secret with every signature in the header."""
    wanted = [rule.encode(secret, signed.message).encode() for secret in secrets if secret]
    given = [one.encode("latin-1", "replace") for one in signed.signatures]
    if not any(compare_digest(a, b) for a in wanted for b in given):
        raise _Refused("no signature fits the body and the secret")


def _require_recent(stamp: str | None, now: EpochMs) -> None:
    """
    Raises an error for an old or future stamp. Checked after the signature, so that the time is the
    sender's own.
    """
    if stamp is None:
        return
    late = now // SECOND - int(stamp)
    if abs(late) > _TOLERANCE_S:
        where = "past" if late > 0 else "future"
        raise _Refused(f"its timestamp is {abs(late)} s in the {where}; {_TOLERANCE_S} s may be")


def _one(headers: Headers, name: str) -> str:
    """
    The only value of the header *name*. Raises `_Refused` if it is missing, or has two values.
    """
    found = set(headers.get(name, ()))
    if len(found) != 1:
        raise _Refused(f"the header {name} {'stands there twice' if found else 'is missing'}")
    return found.pop()


def _stamp(text: str, where: str) -> str:
    if not (text.isascii() and text.isdigit() and len(text) <= _STAMP_DIGITS):
        raise _Refused(f"{where} is no Unix time in seconds")
    return text


def _read_standard(headers: Headers, body: bytes) -> _Signed:
    id = _one(headers, "webhook-id")
    if not 1 <= len(id) <= MAX_SENDER_ID:
        raise _Refused(f"webhook-id must have 1 to {MAX_SENDER_ID} characters")
    stamp = _stamp(_one(headers, "webhook-timestamp"), "webhook-timestamp")
    signatures = _one(headers, "webhook-signature").split(" ")
    return _Signed(
        b".".join((id.encode("latin-1", "replace"), stamp.encode(), body)), signatures, stamp
    )


def _read_github(headers: Headers, body: bytes) -> _Signed:
    return _Signed(body, [_one(headers, "x-hub-signature-256")])


def _read_stripe(headers: Headers, body: bytes) -> _Signed:
    parts = [part.partition("=") for part in _one(headers, "stripe-signature").split(",")]
    stamps = [value for name, _, value in parts if name == "t"]
    if len(stamps) != 1:
        raise _Refused("Stripe-Signature must have exactly one t=")
    stamp = _stamp(stamps[0], "t= of Stripe-Signature")
    signatures = [value for name, _, value in parts if name == "v1"]
    return _Signed(stamp.encode() + b"." + body, signatures, stamp)


def _read_slack(headers: Headers, body: bytes) -> _Signed:
    name = "x-slack-request-timestamp"
    stamp = _stamp(_one(headers, name), name)
    message = b":".join((b"v0", stamp.encode(), body))
    return _Signed(message, [_one(headers, "x-slack-signature")], stamp)


def _standard_key(secret: str) -> bytes:
    return b64decode(secret.removeprefix(SECRET_PREFIX), validate=True)


def _encode_standard(secret: str, message: bytes) -> str:
    return f"v1,{b64encode(hmac.digest(_standard_key(secret), message, sha256)).decode()}"


_SCHEMES: Mapping[Scheme, _Scheme] = {
    Scheme.STANDARD: _Scheme(_read_standard, _encode_standard),
    Scheme.GITHUB: _Scheme(_read_github, lambda secret, text: f"sha256={sign(secret, text)}"),
    Scheme.STRIPE: _Scheme(_read_stripe, sign),
    Scheme.SLACK: _Scheme(_read_slack, lambda secret, text: f"v0={sign(secret, text)}"),
}


def sender_headers(
    scheme: Scheme, secret: str, id: str, now: EpochMs, body: bytes
) -> Mapping[str, str]:
    """The headers with which a sender of *scheme* signs *body*, sent under *id*. SG-4."""
    stamp = str(now // SECOND)
    match scheme:
        case Scheme.WFCORE:
            return {"x-webhook-signature": f"sha256={sign(secret, body)}"}
        case Scheme.STANDARD:
            signature = _encode_standard(secret, b".".join((id.encode(), stamp.encode(), body)))
            return {
                "webhook-id": id,
                "webhook-timestamp": stamp,
                "webhook-signature": signature,
            }
        case Scheme.GITHUB:
            signature = f"sha256={sign(secret, body)}"
            return {"x-hub-signature-256": signature, "x-github-delivery": id}
        case Scheme.STRIPE:
            signature = sign(secret, stamp.encode() + b"." + body)
            return {"stripe-signature": f"t={stamp},v1={signature}"}
        case Scheme.SLACK:
            signature = sign(secret, b":".join((b"v0", stamp.encode(), body)))
            return {"x-slack-request-timestamp": stamp, "x-slack-signature": f"v0={signature}"}


@frozen
class SenderId:
    """
    The sender's id of a delivery. `fingerprint`: the value that must be equal in a repetition.
    """

    id: str
    fingerprint: str


_ID_HEADER = {Scheme.STANDARD: "webhook-id", Scheme.GITHUB: "x-github-delivery"}
_ID_FIELD = {Scheme.STRIPE: "id", Scheme.SLACK: "event_id"}


def sender_id(
    scheme: Scheme, headers: Headers, body: bytes, payload: JsonObject
) -> SenderId | None:
    """
    The id under which a delivery starts at most one execution; None if the scheme has no id, or
    GitHub's header is missing. SG-6.

    Standard Webhooks and GitHub send the id as a header, Stripe and Slack in the signed body. A
    Stripe or Slack message without an id is identified by its content. Raises `InvalidInput`.
    """
    header, name = _ID_HEADER.get(scheme), _ID_FIELD.get(scheme)
    if header is not None:
        return _id_in_header(header, headers, body)
    if name is None:
        return None
    said = payload.get(name)
    if isinstance(said, str) and 1 <= len(said) <= MAX_SENDER_ID:
        return SenderId(said, said)
    message = sha256(_SCHEMES[scheme].read(headers, body).message).hexdigest()
    return SenderId(message, message)


def delivery_header_id(headers: Headers, body: bytes) -> SenderId | None:
    """
    The id of a delivery in `webhook-id` or `X-GitHub-Delivery`, whatever the webhook's scheme is;
    None if there is neither. A sender's retry has the same id. SG-6. Raises `InvalidInput`.
    """
    found = (_id_in_header(header, headers, body) for header in _ID_HEADER.values())
    return next(filter(None, found), None)


def _id_in_header(header: str, headers: Headers, body: bytes) -> SenderId | None:
    found = set(headers.get(header, ()))
    if not found:
        return None
    id = found.pop()
    if found or not 1 <= len(id) <= MAX_SENDER_ID:
        raise InvalidInput(header, f"must stand there once, with 1 to {MAX_SENDER_ID} characters")
    return SenderId(id, sha256(body).hexdigest())


def is_ping(scheme: Scheme, headers: Headers) -> bool:
    """Whether this is the delivery with which GitHub tests a new webhook. SG-9."""
    return scheme is Scheme.GITHUB and "ping" in headers.get("x-github-event", ())


def slack_challenge(scheme: Scheme, payload: JsonObject) -> str | None:
    """The text that Slack expects back when the URL is registered. SG-8."""
    if scheme is not Scheme.SLACK or payload.get("type") != "url_verification":
        return None
    challenge = payload.get("challenge")
    return challenge if isinstance(challenge, str) else None


def check_secret(scheme: Scheme, secret: str) -> str:
    """
    Returns *secret* if it has the form that *scheme* requires. SG-7.

    Raises `InvalidInput`, without the secret in the message.
    """
    least = 1 if scheme is Scheme.STANDARD else MIN_SECRET
    if not least <= len(secret) <= MAX_SECRET or not secret.isprintable():
        what = f"must have {MIN_SECRET} to {MAX_SECRET} printable characters"
        raise InvalidInput("secret", what)
    if scheme is Scheme.STANDARD:
        low, high = STANDARD_KEY_BYTES
        try:
            size = len(_standard_key(secret))
        except (NotBase64, ValueError):
            size = 0
        if not low <= size <= high:
            raise InvalidInput(
                "secret", f"must be {SECRET_PREFIX} and the base64 of {low} to {high} bytes"
            )
    return secret


def made_secret(scheme: Scheme, chance: str) -> str:
    """
    A new secret from *chance* (32 base62 characters, which are base64 of 24 bytes). SG-7.

    Raises `InvalidInput` if the sender makes the secrets of the scheme.
    """
    if scheme in (Scheme.STRIPE, Scheme.SLACK):
        raise InvalidInput("secret", f"is required: {scheme} makes the secret and shows it to you")
    return f"{SECRET_PREFIX}{chance}"
