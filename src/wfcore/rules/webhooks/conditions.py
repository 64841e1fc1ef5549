"""
The conditions of a webhook: which deliveries start anything, and which headers become variables.
WH-24, WH-25.

`when` is a template over `payload` and `headers`. Credentials are in neither: an author of a
webhook does not get the keys and signatures of its senders.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from wfcore.errors import InvalidInput, TemplateFailed
from wfcore.model.json import Json, JsonObject
from wfcore.model.webhook import Webhook
from wfcore.rules.definition.values import is_one_template
from wfcore.rules.execution.plan import truthy
from wfcore.rules.paths import below
from wfcore.rules.webhooks.scheme import SIGNATURE_HEADERS, Headers

CREDENTIALS = frozenset({"authorization", "proxy-authorization", "x-api-key", "cookie"})
"""The headers that carry credentials, by lower-case name."""
HIDDEN = CREDENTIALS | SIGNATURE_HEADERS
_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,200}", re.ASCII)
_KNOWN = {"payload": None, "headers": None}


class LenientRender(Protocol):
    """`Templates.render`, where missing fields may be null."""

    def __call__(
        self, value: Json, names: Mapping[str, Json], *, missing_is_null: bool
    ) -> Json: ...


def check_when(
    when: object, problems_of: Callable[[str, Mapping[str, None]], Sequence[str]]
) -> str | None:
    """`when`: exactly one template over `payload` and `headers`. Raises `InvalidInput`."""
    if when is None or when == "":
        return None
    if not isinstance(when, str) or not is_one_template(when.strip()):
        raise InvalidInput("when", "must be exactly one template {{ … }}")
    if problems := problems_of(when.strip(), _KNOWN):
        raise InvalidInput("when", "; ".join(problems))
    return when.strip()


def check_headers(headers: object, mapping: Mapping[str, str] | None) -> Mapping[str, str] | None:
    """
    `headers`: variable name to header name. *mapping*: the `variableMapping` beside it. Raises
    `InvalidInput`, also for a header that carries credentials.
    """
    if headers is None:
        return None
    if not isinstance(headers, Mapping):
        raise InvalidInput("headers", "must be an object")
    for name, header in headers.items():
        field = below("headers", name)
        if not name or "\0" in name or not isinstance(header, str):
            raise InvalidInput(field, "must be the name of a header")
        if _HEADER_NAME.fullmatch(header) is None:
            raise InvalidInput(field, f"{header[:80]!r} is no name of a header")
        if header.lower() in HIDDEN:
            raise InvalidInput(field, f"{header} carries credentials, which are no variables")
        if name in (mapping or ()):
            raise InvalidInput(field, "is in variableMapping, too")
    return dict(headers) or None


def header_variables(webhook: Webhook, headers: Headers) -> JsonObject:
    """The variables that the headers of a delivery set; a missing header sets nothing. WH-25."""
    named = {name: header.lower() for name, header in (webhook.headers or {}).items()}
    return {name: ", ".join(headers[one]) for name, one in named.items() if one in headers}


def is_wanted(
    webhook: Webhook, payload: JsonObject, headers: Headers, render: LenientRender
) -> bool:
    """
    Whether a delivery may start an execution. A missing field is null. Raises `InvalidInput` if
    `when` has no value. WH-24.
    """
    if webhook.when is None:
        return True
    shown: dict[str, Json] = {
        name: ", ".join(values) for name, values in headers.items() if name not in HIDDEN
    }
    names = {"payload": payload, "headers": _AnyCase(shown)}
    try:
        return truthy(render(webhook.when, names, missing_is_null=True))
    except TemplateFailed as failed:
        raise InvalidInput("when", failed.why) from None


class _AnyCase(dict[str, Json]):
    """Headers by their names in any case."""

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and super().__contains__(name.lower())

    def __getitem__(self, name: str) -> Json:
        return super().__getitem__(name.lower())
