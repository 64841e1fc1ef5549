"""
Verifying callbacks: whether a message to a `callbackUrl` comes from the server, and its content.

The signature is that of Standard Webhooks, https://www.standardwebhooks.com: HMAC-SHA256 of id,
timestamp and the raw body, by the `callbackSecret` of the key that started the execution.
"""

import json
import time
from base64 import b64decode, b64encode
from collections.abc import Mapping, Sequence
from hashlib import sha256
from hmac import compare_digest, digest

from wfcore_client.answers import shaped
from wfcore_client.shapes import CallbackView

TOLERANCE_S = 300
"""The greatest difference of a timestamp from now."""

_PREFIX = "whsec_"


class CallbackRefused(Exception):
    """The message is not the server's, or too old: answer with 400, and do nothing."""


def verify_callback(
    secret: str | Sequence[str],
    headers: Mapping[str, str],
    body: bytes,
    *,
    now_s: float | None = None,
) -> CallbackView:
    """
    The content of a callback. *body*: the raw bytes. *secret*: one secret, or several during a
    rotation.

    A message may come twice: deduplicate by the header `webhook-id`. Raises `CallbackRefused`, and
    `ValueError` for a malformed secret.
    """
    given = {name.lower(): value for name, value in headers.items()}
    id, at = given.get("webhook-id", ""), given.get("webhook-timestamp", "")
    _require_recent(at, time.time() if now_s is None else now_s)
    message = b".".join((id.encode(), at.encode(), body))
    secrets = [secret] if isinstance(secret, str) else secret
    signatures = given.get("webhook-signature", "").split()
    if not any(_signs(one, message, signature) for one in secrets for signature in signatures):
        raise CallbackRefused("webhook-signature: does not sign this body with this secret")
    try:
        return shaped(CallbackView, json.loads(body))
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise CallbackRefused(f"body: not a callback: {error!r}") from None


def _require_recent(at: str, now_s: float) -> None:
    if not (at.isascii() and at.isdigit() and len(at) < 16):
        raise CallbackRefused("webhook-timestamp: must be seconds since 1970")
    if abs(int(at) - now_s) > TOLERANCE_S:
        raise CallbackRefused(f"webhook-timestamp: more than {TOLERANCE_S} seconds from now")


def _signs(secret: str, message: bytes, signature: str) -> bool:
    key = b64decode(secret.removeprefix(_PREFIX), validate=True)
    wanted = f"v1,{b64encode(digest(key, message, sha256)).decode()}"
    return compare_digest(wanted.encode(), signature.encode())
