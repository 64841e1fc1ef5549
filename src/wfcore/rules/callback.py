"""
Callbacks: their allowed addresses, their signature, their retries.

The signature follows the Standard Webhooks scheme.
"""

import json
from base64 import b64decode, b64encode
from collections.abc import Mapping
from datetime import UTC, datetime
from hashlib import sha256
from hmac import digest
from urllib.parse import urlsplit

from attrs import evolve

from wfcore.errors import InvalidInput
from wfcore.model.execution import Callback, CallbackStatus, Execution
from wfcore.model.json import JsonObject
from wfcore.rules.address import is_public, numeric
from wfcore.time import HOUR, MINUTE, SECOND, DurationMs, EpochMs, later

SECRET_PREFIX = "whsec_"  # noqa: S105 - what a secret begins with
SECRET_LENGTH = 32
"""Base62 characters, which are base64 of 24 bytes: 190 bits of randomness."""

LONGEST_URL = 2_048
DELAYS = (
    DurationMs(30 * SECOND),
    DurationMs(2 * MINUTE),
    DurationMs(10 * MINUTE),
    DurationMs(30 * MINUTE),
    DurationMs(HOUR),
    DurationMs(2 * HOUR),
    DurationMs(4 * HOUR),
    DurationMs(8 * HOUR),
    DurationMs(9 * HOUR),
)
"""The times from the beginning of one attempt to the next: ten attempts in a day."""

GONE = 410
FIELD = "callbackUrl"


def check_url(url: str, allow_private: bool) -> str:
    """
    Returns *url* if its text alone allows a callback to it. CB-4.

    The addresses of a host name are checked before each call. Raises `InvalidInput`.
    """
    host = _host(url)
    if not allow_private and not _may_be_public(host):
        raise InvalidInput(FIELD, "must not be a private or loopback address")
    return url


def _host(url: str) -> str:
    """The IP address in *url*; None if its host is a name."""
    if len(url) > LONGEST_URL:
        raise InvalidInput(FIELD, f"is longer than {LONGEST_URL:,} characters")
    if not url.isascii() or not url.isprintable() or " " in url:
        raise InvalidInput(FIELD, "must be an address of printable ASCII characters")
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise InvalidInput(FIELD, "is not an address") from None
    host = parts.hostname
    if parts.scheme not in ("http", "https") or not host or port == 0:
        raise InvalidInput(FIELD, "must be an address that begins with http:// or https://")
    if parts.username is not None or parts.password is not None:
        raise InvalidInput(FIELD, "must not have a user name or a password")
    if parts.fragment:
        raise InvalidInput(FIELD, "must not have a fragment (#…)")
    return host


def _may_be_public(host: str) -> bool:
    if host.rstrip(".") == "localhost" or host.rstrip(".").endswith(".localhost"):
        return False
    try:
        return is_public(numeric(host) or host)
    except ValueError:
        return True  # a name: checked when it is resolved


def owed(run: Execution, url: str, now: EpochMs) -> Callback:
    """The callback that the end of *run* makes due at once. CB-1."""
    return Callback(run.id, url, run.key_id, now, due_at=now)


def message(run: Execution) -> JsonObject:
    """
    The callback's content: the identity and status of an ended execution, without its results.
    CB-2.
    """
    reason = run.status_reason
    at = run.completed_at or run.accepted_at
    return {
        "type": f"execution.{run.status.lower()}",
        "timestamp": datetime.fromtimestamp(at / 1_000, UTC).isoformat(timespec="milliseconds"),
        "data": {
            "executionId": run.id,
            "workflowId": run.workflow_id,
            "workflowName": run.workflow_name,
            "triggerSource": run.trigger_source.value,
            "status": run.status.value,
            "statusReason": reason.code.value if reason else None,
            "error": run.error,
            "startedAt": run.accepted_at,
            "completedAt": run.completed_at,
            "redriveOf": run.redrive_of,
        },
    }


def body_of(run: Execution) -> bytes:
    """The bytes of the message."""
    return json.dumps(message(run)).encode()


def signed(secret: str, id: str, now: EpochMs, body: bytes) -> Mapping[str, str]:
    """
    The headers of one attempt: id, timestamp in seconds, and the signature of id, timestamp and
    body. CB-2.

    Raises `ValueError` for an invalid secret.
    """
    key = b64decode(secret.removeprefix(SECRET_PREFIX), validate=True)
    told_id, at = f"msg_{id}", str(now // 1_000)
    signature = digest(key, b".".join((told_id.encode(), at.encode(), body)), sha256)
    return {
        "webhook-id": told_id,
        "webhook-timestamp": at,
        "webhook-signature": f"v1,{b64encode(signature).decode()}",
    }


def attempted(callback: Callback, now: EpochMs) -> Callback:
    """
    The callback with an attempt that begins now; stored before anything is sent.

    The callback already holds the instant of the next attempt, so nothing is lost if this process
    dies. CB-3.
    """
    attempts = callback.attempts + 1
    due_at = later(now, DELAYS[min(attempts, len(DELAYS)) - 1])
    return evolve(callback, attempts=attempts, due_at=due_at)


def answered(callback: Callback, status: int | None, error: str | None) -> Callback:
    """
    The callback after an answer (*status*) or a failure to get one (*error*). CB-3.

    Any 2xx completes the callback; 410 or the tenth failure gives the callback up; otherwise the
    callback stays due.
    """
    if status is not None and 200 <= status < 300:
        return evolve(callback, status=CallbackStatus.DELIVERED, due_at=None, last_error=None)
    told = error or f"answered {status}"
    if status == GONE or callback.attempts > len(DELAYS):
        return evolve(callback, status=CallbackStatus.FAILED, due_at=None, last_error=told)
    return evolve(callback, last_error=told)


def put_off(callback: Callback, why: str, now: EpochMs) -> Callback:
    """
    The callback after an attempt that sent nothing because the machine lacked a resource. The
    attempt does not count as one of the ten; the next attempt is due as after a first failure.
    CB-3, EX-27.
    """
    attempts, due_at = callback.attempts - 1, later(now, DELAYS[0])
    return evolve(callback, attempts=attempts, due_at=due_at, last_error=why)
