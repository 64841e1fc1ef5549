"""URL-encoded text: the parameters of a query string, and nested fields of a form."""

from typing import Any
from urllib.parse import parse_qsl

from wfcore.errors import InvalidInput
from wfcore.model.json import JsonObject
from wfcore.rules.variables import NO_NUL

_MOST_PARAMETERS = 100


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
