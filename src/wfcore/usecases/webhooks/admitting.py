"""
Admission of a delivery: every check of a webhook before a delivery starts an execution. WH-13.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial

from attrs import frozen

from wfcore.errors import (
    AccountBlocked,
    Conflict,
    InvalidInput,
    RateLimited,
    StoreUnavailable,
    TooLarge,
    Unauthenticated,
    WfError,
)
from wfcore.model.json import JsonObject
from wfcore.model.webhook import Webhook
from wfcore.rules.auth.rate_limit import Quota
from wfcore.rules.execution.start import NOTHING
from wfcore.rules.json_text import Quick, strict_json
from wfcore.rules.limits import TRIGGER_BODY
from wfcore.rules.webhooks.conditions import header_variables, is_wanted
from wfcore.rules.webhooks.payload import payload_of, scheme_of
from wfcore.rules.webhooks.scheme import (
    Headers,
    by_lower_name,
    delivery_header_id,
    is_ping,
    sender_id,
    slack_challenge,
)
from wfcore.rules.webhooks.webhook import refusal_in_words
from wfcore.usecases.accounts.authenticate import Credentials
from wfcore.usecases.audit.auditing import UNKNOWN, Origin
from wfcore.usecases.executions.idempotency import Idempotency, idempotency_in
from wfcore.usecases.services import Services
from wfcore.usecases.webhooks.deliveries import (
    ignored_reply,
    note_ignored_delivery,
    note_refused_delivery,
)
from wfcore.usecases.webhooks.senders import admit_sender, find_webhook, identify_sender

_LITTLE = 65_536
"""For bodies of up to this many bytes, `when` is evaluated in place instead of a thread."""


@frozen
class AdmittedDelivery:
    """
    A delivery that passed every check; `trigger_webhook` starts an execution from its fields.

    `quota`: the quota that the delivery counted against. `idempotency`: the sender's id of the
    delivery. `from_headers`: the variables from its headers. WH-25. `reply`: the JSON that answers
    a delivery that starts nothing: a question of the sender (Slack's challenge, GitHub's ping), or
    a delivery that `when` ignores. SG-8, SG-9, WH-24.
    """

    webhook: Webhook
    quota: Quota
    payload: JsonObject
    idempotency: Idempotency | None = None
    reply: JsonObject | None = None
    from_headers: JsonObject = NOTHING


async def admit_webhook(
    services: Services,
    webhook: Webhook | str,
    headers: Mapping[str, str | Sequence[str]],
    raw: bytes,
    *,
    keys: Credentials | None = None,
    origin: Origin = UNKNOWN,
    quick: Quick = strict_json,
) -> AdmittedDelivery:
    """
    Check a delivery as the server does: existence, size, credentials, rate, active status, JSON
    object, `when`, in this order. WH-13, WH-24.

    *webhook*: a webhook, or its id. *headers*: the headers of the request, by name in any case.
    *raw*: the bytes of the body, unchanged. *keys*: the API keys of the request; by default the
    keys in *headers*. *quick* parses strict JSON.

    Raises `NotFound`, `TooLarge`, `Unauthenticated`, `AccountBlocked`, `RateLimited`, `Conflict`
    (disabled) and `InvalidInput`. Every refusal except `NotFound`, and every delivery that is
    ignored, is noted for the owner. WH-20.
    """
    found = await find_webhook(services, webhook) if isinstance(webhook, str) else webhook
    carried = by_lower_name(headers)
    try:
        if len(raw) > TRIGGER_BODY:
            raise TooLarge("Request body", TRIGGER_BODY)
        sender = await identify_sender(
            services, found, keys or _keys_in(carried), carried, raw, origin
        )
    except WfError as error:
        await _note_refusal(services, found, error, len(raw))
        raise
    try:
        quota = await admit_sender(services, found, sender)
        payload = _payload(found, carried, raw, quick)
        variables = header_variables(found, carried)
        reply = _reply(found, carried, payload)
        wanted = partial(is_wanted, found, payload, carried, services.templates.render)
        is_large = found.when is not None and len(raw) > _LITTLE
        ignored = reply is None and not (await services.offload(wanted) if is_large else wanted())
        starts = reply is None and not ignored
        id = _idempotency(found, carried, raw, payload) if starts else None
    except WfError as error:
        known = _payload_if_valid(found, carried, raw, quick)
        await _note_refusal(
            services,
            found,
            error,
            len(raw),
            known,
            authenticated=True,
            from_headers=header_variables(found, carried),
        )
        raise
    if ignored:
        await note_ignored_delivery(services, found, payload, variables, len(raw))
        reply = ignored_reply(found.id)
    return AdmittedDelivery(found, quota, payload, id, reply, variables)


REFUSED: Mapping[type[WfError], int] = {
    InvalidInput: 400,
    Unauthenticated: 401,
    AccountBlocked: 403,
    Conflict: 409,
    TooLarge: 413,
    RateLimited: 429,
}
"""The status of a refused delivery, shown to the webhook's owner, by error."""


async def _note_refusal(
    services: Services,
    webhook: Webhook,
    error: WfError,
    size: int,
    payload: JsonObject | None = None,
    *,
    authenticated: bool = False,
    from_headers: JsonObject = NOTHING,
) -> None:
    """Note a refusal for the owner of *webhook*. WH-20."""
    status = REFUSED.get(type(error))
    if status is None:
        return
    reason = refusal_in_words(error) if isinstance(error, Unauthenticated) else str(error)
    with suppress(StoreUnavailable):
        await note_refused_delivery(
            services, webhook, status, reason, authenticated, payload, size, from_headers
        )


def _payload(webhook: Webhook, headers: Headers, raw: bytes, quick: Quick) -> JsonObject:
    content_type = next(iter(headers.get("content-type", ())), None)
    return payload_of(scheme_of(webhook), content_type, raw, quick)


def _payload_if_valid(
    webhook: Webhook, headers: Headers, raw: bytes, quick: Quick
) -> JsonObject | None:
    try:
        return _payload(webhook, headers, raw, quick)
    except InvalidInput:
        return None


def _keys_in(headers: Headers) -> Credentials:
    return Credentials(headers.get("authorization", ()), headers.get("x-api-key", ()))


def _reply(webhook: Webhook, headers: Headers, payload: JsonObject) -> JsonObject | None:
    """The answer to a question of the sender, or None. SG-8, SG-9."""
    challenge = slack_challenge(scheme_of(webhook), payload)
    if challenge is not None:
        return {"challenge": challenge}
    return {"ok": True, "ping": True} if is_ping(scheme_of(webhook), headers) else None


def _idempotency(
    webhook: Webhook, headers: Headers, raw: bytes, payload: JsonObject
) -> Idempotency | None:
    """
    The id of a delivery: the sender's own id if its scheme has one (an `Idempotency-Key` cannot
    change this id); otherwise the `Idempotency-Key`; otherwise the id in a header of another
    scheme. SG-6. Raises `InvalidInput`.
    """
    found = sender_id(scheme_of(webhook), headers, raw, payload)
    if found is None and "idempotency-key" not in headers:
        found = delivery_header_id(headers, raw)
    if found is not None:
        return Idempotency(found.id, found.fingerprint)
    return idempotency_in(headers, raw)
