"""Request bodies, read within limits of size and time; what a webhook's body carries."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import Any, TypeAlias
from urllib.parse import parse_qsl

from starlette.requests import ClientDisconnect

from adapters_http.json import parse_object
from adapters_http.params import idempotency
from adapters_http.request import Request
from wfcore.errors import InvalidInput, TooLarge
from wfcore.model.json import JsonObject
from wfcore.model.webhook import AuthMode, Scheme, Webhook
from wfcore.rules.webhooks.scheme import sender_id
from wfcore.usecases.executions.starting import Idempotency

Receive: TypeAlias = Callable[[], Awaitable[MutableMapping[str, Any]]]

BODY_TIMEOUT_S = 30.0
_LONGEST_LENGTH = 19
"""Digits of a 64-bit number; a longer Content-Length is over any limit."""


class BodyTimeout(Exception):
    """The client did not send all of its body in time: 408, and the connection closes."""


async def read_body(
    receive: Receive,
    headers: Mapping[str, str],
    limit: int,
    *,
    timeout_s: float = BODY_TIMEOUT_S,
) -> bytes:
    """
    The whole body, at most *limit* bytes. *headers* are looked up by lower-case names.

    Raises:
        TooLarge: over *limit*; the rest, or with a Content-Length all of it, was not read.
        InvalidInput: it is compressed, or its Content-Length is no number.
        BodyTimeout: it was not complete within *timeout_s*.
        ClientDisconnect: the client went away.
    """
    _refuse_encoding(headers.get("content-encoding", ""))
    _refuse_length(headers.get("content-length"), limit)
    try:
        async with asyncio.timeout(timeout_s):
            return await _collect(receive, limit)
    except TimeoutError:
        raise BodyTimeout from None


async def _collect(receive: Receive, limit: int) -> bytes:
    chunks: list[bytes] = []
    size, more = 0, True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        chunk = message.get("body", b"")
        size += len(chunk)
        if size > limit:
            raise TooLarge("Request body", limit)
        chunks.append(chunk)
        more = message.get("more_body", False)
    return chunks[0] if len(chunks) == 1 else b"".join(chunks)


def _refuse_encoding(encoding: str) -> None:
    if encoding.strip().lower() not in ("", "identity"):
        raise InvalidInput("Content-Encoding", "compressed bodies are not accepted")


def _refuse_length(given: str | None, limit: int) -> None:
    if given is None:
        return
    digits = given.strip()
    if not (digits.isascii() and digits.isdigit()):
        raise InvalidInput("Content-Length", "must be a number")
    if len(digits.lstrip("0")) > _LONGEST_LENGTH or int(digits) > limit:
        raise TooLarge("Request body", limit)


FORM = "application/x-www-form-urlencoded"
_FORMS = frozenset({Scheme.GITHUB, Scheme.SLACK})
_MOST_FIELDS = 1_000


def scheme_of(webhook: Webhook) -> Scheme:
    """The scheme that signs its requests; with a key or none, our own."""
    return webhook.scheme if webhook.auth_mode is AuthMode.SIGNATURE else Scheme.WFCORE


def is_form(request: Request, webhook: Webhook) -> bool:
    """Whether a body is a form, which GitHub and Slack send. SG-8."""
    media = (request.header(b"content-type") or "").partition(";")[0].strip().lower()
    return scheme_of(webhook) in _FORMS and media == FORM


def payload_of(request: Request, webhook: Webhook) -> JsonObject:
    """
    The object in the body: JSON, or a form; the JSON in a form's field `payload` stands for all
    of it. SG-8. Raises `InvalidInput`.
    """
    if not is_form(request, webhook):
        return parse_object(request.raw)
    try:
        text = request.raw.decode("ascii")
        fields = parse_qsl(text, True, errors="strict", max_num_fields=_MOST_FIELDS)
    except ValueError:
        raise InvalidInput(
            "body", f"must be a form of UTF-8, percent-encoded, of at most {_MOST_FIELDS} fields"
        ) from None
    form = dict(fields)
    return parse_object(form["payload"].encode()) if "payload" in form else form


def once(request: Request, webhook: Webhook) -> Idempotency | None:
    """
    The id of a delivery: the sender's own where its scheme has one, which an `Idempotency-Key`
    beside it cannot change; else that. SG-6. Raises `InvalidInput`.
    """
    found = sender_id(scheme_of(webhook), request.all_headers, request.raw, request.json)
    return idempotency(request) if found is None else Idempotency(found.id, found.fingerprint)
