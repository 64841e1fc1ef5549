"""Vectors of signatures: of incoming webhook triggers, and of outgoing callbacks."""

from base64 import b64decode, b64encode
from typing import Any

from wfcore.rules.callback import SECRET_PREFIX, signed
from wfcore.rules.webhooks.scheme import sign, signature_fits
from wfcore.time import EpochMs

ABOUT = (
    "HMAC signatures. Bodies are given as base64 of their raw bytes: sign those, never a body "
    "that was parsed and written again."
)


def _body(data: bytes) -> str:
    return b64encode(data).decode()


SECRET = "a shared secret"  # noqa: S105 - a vector
UNICODE = "sécret ✓"
ORDER = b'{"order":"A-1","amount":12.5}'
SPACED = b'{ "order": "A-1", "amount": 12.5 }'
BODIES = {
    "a JSON object": (SECRET, ORDER),
    "the same object, written with blanks": (SECRET, SPACED),
    "an empty body": (SECRET, b""),
    "bytes that are no text": (SECRET, bytes(range(256))),
    "a body in another alphabet": (SECRET, '{"name":"Grüße ✓"}'.encode()),
    "a secret in another alphabet is signed as UTF-8": (UNICODE, ORDER),
    "the second test case of RFC 4231": ("Jefe", b"what do ya want for nothing?"),
    "a secret longer than a block of SHA-256": ("x" * 100, ORDER),
}
TRIGGER = {
    name: {"secret": secret, "bodyBase64": _body(body)} for name, (secret, body) in BODIES.items()
}
_GOOD = sign(SECRET, ORDER)


def _header(header: str | None, body: bytes = ORDER, secret: str = SECRET) -> dict[str, Any]:
    return {"secret": secret, "bodyBase64": _body(body), "header": header}


HEADERS = {
    "with the prefix": _header(f"sha256={_GOOD}"),
    "without the prefix": _header(_GOOD),
    "in capital letters": _header(f"sha256={_GOOD.upper()}"),
    "with blanks around it": _header(f"  sha256={_GOOD} "),
    "no header": _header(None),
    "an empty header": _header(""),
    "the prefix alone": _header("sha256="),
    "another prefix": _header(f"sha512={_GOOD}"),
    "the prefix in capital letters": _header(f"SHA256={_GOOD}"),
    "a digit too few": _header(_GOOD[:-1]),
    "a digit too many": _header(_GOOD + "0"),
    "one digit is another": _header(("0" if _GOOD[0] != "0" else "1") + _GOOD[1:]),
    "no hexadecimal digits": _header("g" * 64),
    "of another body": _header(sign(SECRET, SPACED)),
    "of another secret": _header(sign("another", ORDER)),
    "an empty secret signs nothing": _header(sign("", ORDER), secret=""),
}
KEY = SECRET_PREFIX + _body(bytes(range(24)))
CALLBACKS = {
    "a message": {
        "secret": KEY,
        "executionId": "exec_1",
        "nowMs": 1_700_000_000_123,
        "bodyBase64": _body(b'{"type":"execution.completed"}'),
    },
    "the example of Standard Webhooks": {
        "secret": f"{SECRET_PREFIX}MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
        "executionId": "p5jXN8AQM9LWM0D4loKWxJek",
        "nowMs": 1_614_265_330_000,
        "bodyBase64": _body(b'{"test": 2432232314}'),
    },
    "the same message, tried again": {
        "secret": KEY,
        "executionId": "exec_1",
        "nowMs": 1_700_000_030_123,
        "bodyBase64": _body(b'{"type":"execution.completed"}'),
    },
}


def _signed(given: Any) -> Any:
    digest = sign(given["secret"], b64decode(given["bodyBase64"]))
    return {"header": f"sha256={digest}"}


def _fits(given: Any) -> Any:
    body = b64decode(given["bodyBase64"])
    return {"fits": signature_fits(given["secret"], body, given["header"])}


def _callback(given: Any) -> Any:
    at = EpochMs(given["nowMs"])
    return dict(signed(given["secret"], given["executionId"], at, b64decode(given["bodyBase64"])))


GROUPS = {
    "trigger": ("The header X-Webhook-Signature that signs a trigger's body.", TRIGGER, _signed),
    "accepted": ("Which headers the service takes for that body.", HEADERS, _fits),
    "callback": (
        "The headers of a callback (Standard Webhooks): HMAC-SHA256 over `id.timestamp.body` "
        "with the base64 part of the secret as the key.",
        CALLBACKS,
        _callback,
    ),
}
