"""The body of a delivery as an object: JSON, or a form from the senders that use forms. SG-8."""

from urllib.parse import parse_qsl

from wfcore.errors import InvalidInput
from wfcore.model.json import JsonObject
from wfcore.model.webhook import AuthMode, Scheme, Webhook
from wfcore.rules.json_text import Quick, parse_object, strict_json
from wfcore.rules.numbers import as_written

FORM = "application/x-www-form-urlencoded"
_MOST_FIELDS = 1_000
_WITH_FORMS = frozenset({Scheme.GITHUB, Scheme.SLACK})


def scheme_of(webhook: Webhook) -> Scheme:
    """The scheme that signs the requests of *webhook*; `WFCORE` if requests are not signed."""
    return webhook.scheme if webhook.auth_mode is AuthMode.SIGNATURE else Scheme.WFCORE


def is_form(content_type: str | None) -> bool:
    """Whether *content_type* is the type of a form."""
    return (content_type or "").partition(";")[0].strip().lower() == FORM


def read_form(body: bytes) -> JsonObject:
    """The fields of a form; of equal names the last. Raises `InvalidInput`. SG-8."""
    try:
        text = body.decode("ascii")
        return dict(parse_qsl(text, True, errors="strict", max_num_fields=_MOST_FIELDS))
    except ValueError:
        raise InvalidInput(
            "body", f"must be a form of UTF-8, percent-encoded, of at most {_MOST_FIELDS} fields"
        ) from None


def payload_of(
    scheme: Scheme, content_type: str | None, body: bytes, quick: Quick = strict_json
) -> JsonObject:
    """
    The object in *body*: JSON, or a form from GitHub or Slack, whose field `payload` may hold the
    JSON. Numbers stay as written: numbers that become variables are checked at that point. NU-1,
    SG-8.

    Raises `InvalidInput`.
    """
    if not (scheme in _WITH_FORMS and is_form(content_type)):
        return parse_object(body, as_written, quick)
    form = read_form(body)
    text = form.get("payload")
    return parse_object(text.encode(), as_written, quick) if isinstance(text, str) else form
