"""One operation of the OpenAPI document for each row of the table of routes."""

import inspect
import re
from collections.abc import Iterator
from typing import Any

import attrs

from adapters_http.downloads import OUTPUT_MEDIA
from adapters_http.openapi.examples import examples
from adapters_http.openapi.tables import (
    COMMON,
    ERRORS,
    PATH_PARAMETERS,
    RATE,
    REPLAYED,
    RETRY,
    SECURITY,
    TAGS,
)
from adapters_http.route import Auth, Parameter, Route
from wfcore.model.access import Scope
from wfcore.usecases.administration.operations import OPERATIONS
from wfcore.usecases.administration.operator import parameters_of
from wfcore.wire.common import ErrorView
from wfcore.wire.converter import wire_name
from wfcore.wire.events import EventView
from wfcore.wire.requests import StartBody
from wfcore.wire.schema import Schema, Schemas
from wfcore.wire.webhooks import CallbackView

_VERSION: Schema = {"type": "integer", "minimum": 1}
_TEXT: Schema = {"type": "string"}
_BINARY: Schema = {"type": "string", "format": "binary"}
_FREE: Schema = {"type": "object", "additionalProperties": True}
_RULE = re.compile(r" [A-Z]{2}-\d+(?: to [A-Z]{2}-\d+)?(?:, [A-Z]{2}-\d+)*\.")


def operation_of(route: Route, schemas: Schemas) -> Schema:
    """The operation for *route*. Adds to *schemas* the shapes to which the operation refers."""
    tag = next(named for word, (named, _) in TAGS.items() if word in route.path)
    retained = "_retained" if "webhook-trigger/{id}" in route.path else ""
    deed = re.sub(f"_{tag.lower().removesuffix('s')}s?$", "", route.handler.__name__)
    operation: Schema = {
        "operationId": f"{tag.lower()}_{deed}{retained}",
        "tags": [tag],
        "summary": route.summary,
        "description": _description(route),
        "security": SECURITY[route.auth],
        "parameters": [*_parameters(route, tag)],
        "responses": {str(status): answer for status, answer in _responses(route, schemas)},
    }
    body = _body(route, schemas)
    if body is not None:
        operation["requestBody"] = body
    if route.body is StartBody:
        ended = {"post": callback(schemas)}
        operation["callbacks"] = {"executionEnded": {"{$request.body#/callbackUrl}": ended}}
    return operation


def _description(route: Route) -> str:
    """The docstring of the handler without rule ids, and the scope that it needs."""
    text = inspect.cleandoc(route.handler.__doc__ or "").replace("\n", " ")
    by_key = route.scope is not None and route.auth is not Auth.SESSION
    admin = route.auth is Auth.ADMIN
    scope = f" Needs the scope {route.scope}." if by_key else ""
    listed = f" Needs the scope {Scope.ADMIN}.\n\n{_operations()}" if admin else ""
    return _RULE.sub("", text) + scope + listed


def _operations() -> str:
    """
    The operations of administration: one line for each operation, with its parameters and its
    docstring.
    """
    lines = []
    for name, operation in OPERATIONS.items():
        parameters = attrs.fields(parameters_of(operation))
        named = (
            f"`{wire_name(one.name)}`" + ("" if one.default is attrs.NOTHING else "?")
            for one in parameters
        )
        about = inspect.cleandoc(operation.__doc__ or "").replace("\n", " ")
        lines.append(f"- `{name}` {', '.join(named)}: {about}")
    return "\n".join(lines)


def _parameters(route: Route, tag: str) -> Iterator[Schema]:
    subject = tag.removesuffix("s").lower()
    for name in route.names:
        owner = "execution" if "/executions/{id}" in route.path else subject
        about = PATH_PARAMETERS[name].format(subject=owner)
        yield {
            "name": name,
            "in": "path",
            "required": True,
            "description": about,
            "schema": _VERSION if name == "number" else {"type": "string", "minLength": 1},
        }
    yield from (_parameter(one, "query") for one in route.query)
    yield from (_parameter(one, "header") for one in route.headers)


def _parameter(one: Parameter, where: str) -> Schema:
    schema = {"type": "array", "items": dict(one.schema)} if one.repeats else dict(one.schema)
    return {"name": one.name, "in": where, "description": one.about, "schema": schema}


def _body(route: Route, schemas: Schemas) -> Schema | None:
    if route.auth is Auth.TRIGGER:
        schema = _FREE | {"description": "The payload: any JSON object, or a form of a sender's"}
        return {
            "content": {
                "application/json": with_example(schema, {"order": 7}),
                "application/x-www-form-urlencoded": with_example(schema, {"order": "7"}),
            }
        }
    if route.auth is Auth.ADMIN:
        schema = _FREE | {"description": "The operation's parameters, those with ? if wanted"}
        example = {"email": "ann@example.org", "plan": "PRO"}
        return {"required": True, "content": {"application/json": with_example(schema, example)}}
    if route.body is None:
        return None
    example = examples()["bodies"][route.body.__name__]
    media = with_example(schemas.ref(route.body, closed=True), example)
    required = bool(schemas.found[route.body.__name__].get("required"))
    return {"required": required, "content": {"application/json": media}}


def _responses(route: Route, schemas: Schemas) -> Iterator[tuple[int, Schema]]:
    """The responses of *route*, by status."""
    for status in _statuses(route):
        if status == route.status:
            yield status, _success(route, schemas, route.returns, status)
        elif status in route.otherwise:
            yield status, _success(route, schemas, route.otherwise[status], status)
        elif status < 400:
            yield status, _also(route, status)
        elif route.html:
            page = {"text/html": _text("text/html", schemas)}
            if status in (404, 431):  # an address that is not one at all: before the row is found
                page["application/json"] = with_example(
                    schemas.ref(ErrorView), ERRORS[status].example
                )
            headers = COMMON | (RETRY if status in (429, 503) else {})
            about = ERRORS[status].about
            yield status, {"description": about, "headers": headers, "content": page}
        else:
            name = "TooManyAttempts" if (status, route.auth) == (429, Auth.LOGIN) else ""
            yield status, {"$ref": f"#/components/responses/{name or ERRORS[status].name}"}


def _statuses(route: Route) -> list[int]:
    """The statuses that *route* can answer with."""
    found = {
        route.status,
        *route.otherwise,
        400,
        431,
        500,
        503,
        *route.refuses,
        *route.also.values(),
    }
    if route.auth is not Auth.OPEN:
        found |= {401, 403}
    if route.limited or route.auth is Auth.LOGIN:
        found.add(429)
    if route.body is not None or route.auth in (Auth.TRIGGER, Auth.ADMIN):
        found |= {408, 413}
    return sorted(found)


def _success(route: Route, schemas: Schemas, returns: type[Any] | None, status: int) -> Schema:
    headers = COMMON | (RATE if route.limited else {})
    if any(one.name == "Idempotency-Key" for one in route.headers):
        headers |= REPLAYED
    content = {media: _text(media, schemas) for media in (route.media, *route.files)}
    if returns is not None:
        example = examples()["views"][returns.__name__]
        content["application/json"] = with_example(schemas.ref(returns), example)
    about = "Accepted" if status == 202 else "Success"
    return {"description": about, "headers": headers, "content": content}


def _text(media: str, schemas: Schemas) -> Schema:
    """The content of a media type without a shape of the wire: text, or a file of any type."""
    texts = examples()["texts"]
    if media == "text/event-stream":
        lines = {"contentMediaType": media, "contentSchema": schemas.ref(EventView)}
        return {"schema": _TEXT | lines, "example": texts[media]}
    if media in texts:
        return {"schema": _TEXT, "example": texts[media]}
    if media == OUTPUT_MEDIA:
        return {"schema": {"description": "Any JSON value"}, "example": [1, 2]}
    return {"schema": _FREE if media.endswith("json") else _BINARY}


def _also(route: Route, status: int) -> Schema:
    """
    A success other than the usual success: the end of a stream, a part of a file, the answer to
    Slack.
    """
    if status == 204:
        return {"description": "The terminal event was seen: nothing more will come"}
    if status == 302:
        location = {"schema": _TEXT, "description": "A URL that opens the file for a minute"}
        about = "The file is in a bucket, to which a link leads where the server is set up so"
        return {"description": about, "headers": COMMON | {"Location": location}}
    if status == 206:
        about = "The part of the file that `Range` asked for"
        return {
            "description": about,
            "headers": COMMON,
            "content": {route.media: {"schema": _BINARY}},
        }
    about = "Slack's question about the address, answered; empty for its commands"
    return {"description": about, "content": {"application/json": {"schema": _FREE}}}


def with_example(schema: Schema, example: Any) -> Schema:
    """A JSON content with a schema and an example."""
    return {"schema": schema, "example": example}


def callback(schemas: Schemas) -> Schema:
    """The request that this server sends to a `callbackUrl` when an execution has ended."""
    signed = {
        "webhook-id": "The same for each attempt: deduplicate by it",
        "webhook-timestamp": "Seconds since 1970 (UTC)",
        "webhook-signature": "Standard Webhooks, by the `callbackSecret` of the key",
    }
    media = with_example(schemas.ref(CallbackView), examples()["callback"])
    return {
        "operationId": "executions_ended",
        "tags": ["Executions"],
        "summary": "An execution has ended",
        "description": "Sent once, and again until it is answered with 2xx: ten times in a day.",
        "security": [],
        "parameters": [
            {"name": name, "in": "header", "required": True, "description": about, "schema": _TEXT}
            for name, about in signed.items()
        ],
        "requestBody": {"required": True, "content": {"application/json": media}},
        "responses": {
            "2XX": {"description": "Received"},
            "410": {"description": "Not wanted: it is not sent again"},
        },
    }
