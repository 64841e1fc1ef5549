"""What a webhook's request carries, and the id under which it counts once. Contract §6, §11."""

from urllib.parse import parse_qsl

from adapters_http.ask import Ask
from adapters_http.asked import idempotency
from adapters_http.json_text import parse_object
from wfcore.errors import InvalidInput
from wfcore.model.json import JsonObject
from wfcore.model.webhook import AuthMode, Scheme, Webhook
from wfcore.rules.webhook_scheme import sender_id
from wfcore.usecases.starting import Idempotency

FORM = "application/x-www-form-urlencoded"
_FORMS = frozenset({Scheme.GITHUB, Scheme.SLACK})
_MOST_FIELDS = 1_000


def scheme_of(webhook: Webhook) -> Scheme:
    """The scheme that signs its requests; with a key or none, our own."""
    return webhook.scheme if webhook.auth_mode is AuthMode.SIGNATURE else Scheme.WFCORE


def is_form(ask: Ask, webhook: Webhook) -> bool:
    """Whether a body is a form, which GitHub and Slack send. SG-8."""
    media = (ask.header(b"content-type") or "").partition(";")[0].strip().lower()
    return scheme_of(webhook) in _FORMS and media == FORM


def payload_of(ask: Ask, webhook: Webhook) -> JsonObject:
    """
    The object in the body: JSON, or a form; the JSON in a form's field `payload` stands for all
    of it. SG-8. Raises `InvalidInput`.
    """
    if not is_form(ask, webhook):
        return parse_object(ask.raw)
    try:
        text = ask.raw.decode("ascii")
        fields = parse_qsl(text, True, errors="strict", max_num_fields=_MOST_FIELDS)
    except ValueError:
        raise InvalidInput(
            "body", f"must be a form of UTF-8, percent-encoded, of at most {_MOST_FIELDS} fields"
        ) from None
    form = dict(fields)
    return parse_object(form["payload"].encode()) if "payload" in form else form


def once(ask: Ask, webhook: Webhook) -> Idempotency | None:
    """
    The id of a delivery: the sender's own where its scheme has one, which an `Idempotency-Key`
    beside it cannot change; else that. SG-6. Raises `InvalidInput`.
    """
    found = sender_id(scheme_of(webhook), ask.all_headers, ask.raw, ask.json)
    return idempotency(ask) if found is None else Idempotency(found.id, found.fingerprint)
