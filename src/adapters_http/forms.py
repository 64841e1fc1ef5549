"""URL-encoded text: the fields of a form, the parameters of a query string."""

from typing import Any
from urllib.parse import parse_qsl

from wfcore.errors import InvalidInput
from wfcore.model.json import JsonObject
from wfcore.rules.variables import NO_NUL

FORM = "application/x-www-form-urlencoded"
_MOST_FIELDS, _MOST_PARAMETERS = 1_000, 100


def is_form(content_type: str | None) -> bool:
    """Whether *content_type* is that of a form."""
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


def nested(form: JsonObject) -> JsonObject:
    """The form with fields like `answers.reason` as an object `answers`."""
    found: dict[str, Any] = {}
    for name, text in form.items():
        head, dot, key = name.partition(".")
        if dot and isinstance(inner := found.setdefault(head, {}), dict):
            inner[key] = text
        elif not dot:
            found[name] = text
    return found


def read_query(query: bytes) -> list[tuple[str, str]]:
    """The parameters of a query string. Raises `InvalidInput` if there are too many."""
    try:
        return parse_qsl(query.decode("latin-1"), True, max_num_fields=_MOST_PARAMETERS)
    except ValueError:
        raise InvalidInput("query", f"at most {_MOST_PARAMETERS} parameters") from None


def without_nul(name: str, text: str) -> str:
    """*text*. Raises `InvalidInput` if it has NUL characters, which some stores cannot read."""
    if "\0" in text:
        raise InvalidInput(name, NO_NUL)
    return text
