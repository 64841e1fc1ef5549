"""
The OpenAPI 3.1 document, made from the table of routes and the shapes of the wire.

It is written for people who generate a client from it: operations are grouped by subject, errors
are shared components, every body has an example (`openapi_examples`), and what is not JSON says
what it is instead.

Generators name their package by the title, so that is not `wfcore`. Inline enums become `Status1`
and `Status2`: each is a component. A nullable primitive is a list of types, and a free object says
`additionalProperties: true`: otherwise Go and Java write empty classes. Of a `webhooks` object
openapi-generator writes code that does not compile: callbacks stand with the operation that names
their address, and `?webhooks=true` gives the other form.
"""

import inspect
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import attrs

from adapters_http.auth import COOKIE, HOST_COOKIE
from adapters_http.body import dump_json
from adapters_http.config import HttpConfig
from adapters_http.downloads import OUTPUT_MEDIA
from adapters_http.errors import ERRORS
from adapters_http.openapi_examples import BODIES, CALLBACK, TEXTS, VIEWS
from adapters_http.route import Auth, Query, Route
from adapters_http.routes import ROUTES
from wfcore.model.access import Scope
from wfcore.usecases.administration.operations import OPERATIONS
from wfcore.usecases.administration.operator import parameters_of
from wfcore.wire.common import ErrorView, RateLimitedView
from wfcore.wire.converter import plain, wire_name
from wfcore.wire.events import EventView
from wfcore.wire.requests import StartBody
from wfcore.wire.schema import Schema, Schemas
from wfcore.wire.webhooks import CallbackView

_TITLE = "wfcore HTTP API"
"""Not `wfcore`: generators would name their package like the client that is shipped."""

_ABOUT = """\
Start workflows, follow their executions, decide their approvals, fetch their artifacts.

Names are camelCase, instants are milliseconds since 1970 (UTC), durations are milliseconds. \
A field without a value is null, unless it may be absent. Errors are `{"error": "…"}` and name \
the field and the fix. Every response has `X-Request-Id`."""

_TAGS: Mapping[str, tuple[str, str]] = {
    "admin": ("Administration", "What the command line does, from elsewhere"),
    "artifacts": ("Artifacts", "Files that executions left"),
    "gates": ("Gates", "Questions to people by programs without a workflow, such as agents"),
    "approval": ("Approvals", "Questions to people, and their decisions"),
    "webhook": ("Webhooks", "Triggers for other systems, and their management by session"),
    "keys": ("Keys", "API keys, by session"),
    "usage": ("Usage", "What keys and models have used, by session"),
    "triggers": ("Triggers", "Schedules and chains, by session"),
    "audit": ("Audit", "Who did what, and what was refused, by session"),
    "accounts": ("Accounts", "People, for operators, by session"),
    "notices": ("Notices", "What people are told by mail and chat, for operators, by session"),
    "session": ("Sessions", "Signing in at the console"),
    "v1/executions": ("Executions", "Reading, following, cancelling and redriving executions"),
    "/workflows": ("Workflows", "Workflows, and starting them; their versions by session"),
    "": ("Operations", "Health, metrics and this description"),
}
"""The subject of a path: that of the first of these words in it."""

_KEYS: list[dict[str, list[str]]] = [{"bearer": []}, {"apiKeyHeader": []}, {"apiKeyQuery": []}]
_SIGNATURES: Mapping[str, str] = {
    "webhookSignature": "X-Webhook-Signature",
    "standardWebhooks": "webhook-signature",
    "githubSignature": "X-Hub-Signature-256",
    "stripeSignature": "Stripe-Signature",
    "slackSignature": "X-Slack-Signature",
}
_SIGNED: list[dict[str, list[str]]] = [{name: []} for name in _SIGNATURES]
_SECURITY: Mapping[Auth, list[dict[str, list[str]]]] = {
    Auth.OPEN: [],
    Auth.LOGIN: [],
    Auth.KEY: _KEYS,
    Auth.KEY_AFTER_BODY: _KEYS,
    Auth.TRIGGER: [*_KEYS, *_SIGNED, {}],
    Auth.SESSION: [{"session": []}],
    Auth.ADMIN: [{"bearer": []}, {"apiKeyHeader": []}],
    Auth.DOWNLOAD: [{}, {"bearer": []}, {"apiKeyHeader": []}, {"session": []}],
}
_NAMES: Mapping[str, str] = {
    "aid": "The artifact's id",
    "decision": "approve or reject, in any case",
    "deliveryId": "The delivery's id",
    "executionId": "The execution's id",
    "id": "The id of the {subject}",
    "operation": "By noun and verb, as `account.create`",
    "number": "The version, from 1 on",
    "key": "The step's name; in a loop `loop.<index>.<name>`",
}
_INTEGER: Schema = {"type": "integer"}
_VERSION: Schema = {"type": "integer", "minimum": 1}
_HEADERS: Schema = {
    "RequestId": {"schema": {"type": "string"}, "description": "In the operator's log, too"},
    "RateLimit": {"schema": _INTEGER, "description": "Requests that the window allows"},
    "RateRemaining": {"schema": _INTEGER, "description": "Requests left in the window"},
    "RateWindow": {
        "schema": {"type": "string", "enum": ["minute", "day"]},
        "description": "The tighter of the two windows",
    },
    "RetryAfter": {"schema": _INTEGER, "description": "Seconds to wait"},
    "Replayed": {
        "schema": {"type": "string", "enum": ["true"]},
        "description": "The first answer to the same Idempotency-Key; nothing was started",
    },
}
_COMMON = {"X-Request-Id": {"$ref": "#/components/headers/RequestId"}}
_RATE = {
    "X-RateLimit-Limit": {"$ref": "#/components/headers/RateLimit"},
    "X-RateLimit-Remaining": {"$ref": "#/components/headers/RateRemaining"},
    "X-RateLimit-Window": {"$ref": "#/components/headers/RateWindow"},
}
_RETRY = {"Retry-After": {"$ref": "#/components/headers/RetryAfter"}}
_REPLAYED = {"Idempotent-Replayed": {"$ref": "#/components/headers/Replayed"}}
_TEXT: Schema = {"type": "string"}
_BINARY: Schema = {"type": "string", "format": "binary"}
_FREE: Schema = {"type": "object", "additionalProperties": True}
_RULE = re.compile(r" [A-Z]{2}-\d+(?: to [A-Z]{2}-\d+)?(?:, [A-Z]{2}-\d+)*\.")


def describe(config: HttpConfig, base: str = "", webhooks: bool = False) -> bytes:
    """The document as JSON text, for an application that answers below the path *base*."""
    return dump_json(document(config, base, webhooks=webhooks))


def document(
    config: HttpConfig, base: str = "", routes: Iterable[Route] = ROUTES, *, webhooks: bool = False
) -> Schema:
    """
    The document. *webhooks*: what the server sends stands under `webhooks`, and not with the
    operation that asks for it, for tools that know only the one or the other.
    """
    schemas = Schemas()
    errors = _shared_errors(schemas)
    paths: dict[str, dict[str, Any]] = {}
    for route in routes:
        operation = _operation(route, schemas)
        if webhooks:
            operation.pop("callbacks", None)
        paths.setdefault(route.path, {})[route.method.lower()] = operation
    sent = {"webhooks": {"executionEnded": {"post": _callback(schemas)}}} if webhooks else {}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": _TITLE,
            "version": config.version,
            "description": _ABOUT,
            "contact": {"name": "The operator of this server"},
            "license": {"name": "MIT License", "identifier": "MIT"},
        },
        "servers": [{"url": config.public_url or base or "/"}],
        "tags": [{"name": name, "description": about} for name, about in sorted(_TAGS.values())],
        "paths": paths,
        **sent,
        "components": {
            "schemas": dict(sorted(schemas.found.items())),
            "responses": errors,
            "headers": _HEADERS,
            "securitySchemes": _schemes(config, base),
        },
    }


def _schemes(config: HttpConfig, base: str) -> Schema:
    url = config.public_url or ""
    at_root = url.startswith("https:") and url.count("/") == 2 and not base
    return {
        "bearer": {"type": "http", "scheme": "bearer", "description": "An API key"},
        "apiKeyHeader": {"type": "apiKey", "in": "header", "name": "X-API-Key"},
        "apiKeyQuery": {
            "type": "apiKey",
            "in": "query",
            "name": "api_key",
            "description": "Only where headers cannot be set: queries end up in logs and histories",
        },
        "session": {"type": "apiKey", "in": "cookie", "name": HOST_COOKIE if at_root else COOKIE},
    } | {
        name: {"type": "apiKey", "in": "header", "name": header}
        for name, header in _SIGNATURES.items()
    }


def _operation(route: Route, schemas: Schemas) -> Schema:
    tag = next(named for word, (named, _) in _TAGS.items() if word in route.path)
    retained = "_retained" if "webhook-trigger/{id}" in route.path else ""
    deed = re.sub(f"_{tag.lower().removesuffix('s')}s?$", "", route.handler.__name__)
    operation: Schema = {
        "operationId": f"{tag.lower()}_{deed}{retained}",
        "tags": [tag],
        "summary": route.summary,
        "description": _description(route),
        "security": _SECURITY[route.auth],
        "parameters": [*_parameters(route, tag)],
        "responses": {str(status): answer for status, answer in _responses(route, schemas)},
    }
    body = _body(route, schemas)
    if body is not None:
        operation["requestBody"] = body
    if route.body is StartBody:
        ended = {"post": _callback(schemas)}
        operation["callbacks"] = {"executionEnded": {"{$request.body#/callbackUrl}": ended}}
    return operation


def _description(route: Route) -> str:
    """What the handler says of itself, and the scope that it takes."""
    said = inspect.cleandoc(route.handler.__doc__ or "").replace("\n", " ")
    by_key = route.scope is not None and route.auth is not Auth.SESSION
    admin = route.auth is Auth.ADMIN
    scope = f" Needs the scope {route.scope}." if by_key else ""
    listed = f" Needs the scope {Scope.ADMIN}.\n\n{_operations()}" if admin else ""
    return _RULE.sub("", said) + scope + listed


def _operations() -> str:
    """Each operation of administration, with its parameters and what it does."""
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
        about = _NAMES[name].format(subject=owner)
        yield {
            "name": name,
            "in": "path",
            "required": True,
            "description": about,
            "schema": _VERSION if name == "number" else {"type": "string", "minLength": 1},
        }
    yield from (_parameter(one, "query") for one in route.query)
    yield from (_parameter(one, "header") for one in route.headers)


def _parameter(one: Query, where: str) -> Schema:
    schema = {"type": "array", "items": dict(one.schema)} if one.repeats else dict(one.schema)
    return {"name": one.name, "in": where, "description": one.about, "schema": schema}


def _body(route: Route, schemas: Schemas) -> Schema | None:
    if route.auth is Auth.TRIGGER:
        schema = _FREE | {"description": "The payload: any JSON object, or a form of a sender's"}
        return {
            "content": {
                "application/json": _json(schema, {"order": 7}),
                "application/x-www-form-urlencoded": _json(schema, {"order": "7"}),
            }
        }
    if route.auth is Auth.ADMIN:
        schema = _FREE | {"description": "The operation's parameters, those with ? if wanted"}
        example = {"email": "ann@example.org", "plan": "PRO"}
        return {"required": True, "content": {"application/json": _json(schema, example)}}
    if route.body is None:
        return None
    media = _json(schemas.ref(route.body, closed=True), BODIES[route.body])
    required = bool(schemas.found[route.body.__name__].get("required"))
    return {"required": required, "content": {"application/json": media}}


def _responses(route: Route, schemas: Schemas) -> Iterator[tuple[int, Schema]]:
    """Every response that the row has, by its status."""
    for status in _statuses(route):
        if status == route.status:
            yield status, _success(route, schemas)
        elif status < 400:
            yield status, _also(route, status)
        elif route.html:
            page = {"text/html": _text("text/html", schemas)}
            if status in (404, 431):  # an address that is not one at all: before the row is found
                page["application/json"] = _json(schemas.ref(ErrorView), ERRORS[status].example)
            headers = _COMMON | (_RETRY if status in (429, 503) else {})
            about = ERRORS[status].about
            yield status, {"description": about, "headers": headers, "content": page}
        else:
            name = "TooManyAttempts" if (status, route.auth) == (429, Auth.LOGIN) else ""
            yield status, {"$ref": f"#/components/responses/{name or ERRORS[status].name}"}


def _statuses(route: Route) -> list[int]:
    """Every status that the route can answer with."""
    found = {route.status, 400, 431, 500, 503, *route.refuses, *route.also.values()}
    if route.auth is not Auth.OPEN:
        found |= {401, 403}
    if route.limited or route.auth is Auth.LOGIN:
        found.add(429)
    if route.body is not None or route.auth in (Auth.TRIGGER, Auth.ADMIN):
        found |= {408, 413}
    return sorted(found)


def _success(route: Route, schemas: Schemas) -> Schema:
    headers = _COMMON | (_RATE if route.limited else {})
    if any(one.name == "Idempotency-Key" for one in route.headers):
        headers |= _REPLAYED
    content = {media: _text(media, schemas) for media in (route.media, *route.files)}
    if route.returns is not None:
        view = schemas.ref(route.returns)
        content["application/json"] = _json(view, plain(VIEWS[route.returns]))
    about = "Accepted" if route.status == 202 else "Success"
    return {"description": about, "headers": headers, "content": content}


def _text(media: str, schemas: Schemas) -> Schema:
    """What is not one of our shapes: text, files of any type, and this description itself."""
    if media == "text/event-stream":
        lines = {"contentMediaType": media, "contentSchema": schemas.ref(EventView)}
        return {"schema": _TEXT | lines, "example": TEXTS[media]}
    if media in TEXTS:
        return {"schema": _TEXT, "example": TEXTS[media]}
    if media == OUTPUT_MEDIA:
        return {"schema": {"description": "Any JSON value"}, "example": [1, 2]}
    return {"schema": _FREE if media.endswith("json") else _BINARY}


def _also(route: Route, status: int) -> Schema:
    """Further successes: the end of a stream, a part of a file, what Slack wants to hear."""
    if status == 204:
        return {"description": "The terminal event was seen: nothing more will come"}
    if status == 302:
        location = {"schema": _TEXT, "description": "A URL that opens the file for a minute"}
        about = "The file is in a bucket, to which a link leads where the server is set up so"
        return {"description": about, "headers": _COMMON | {"Location": location}}
    if status == 206:
        about = "The part of the file that `Range` asked for"
        return {
            "description": about,
            "headers": _COMMON,
            "content": {route.media: {"schema": _BINARY}},
        }
    about = "Slack's question about the address, answered; empty for its commands"
    return {"description": about, "content": {"application/json": {"schema": _FREE}}}


def _shared_errors(schemas: Schemas) -> Schema:
    found: Schema = {}
    for status, error in ERRORS.items():
        view = RateLimitedView if status == 429 else ErrorView
        headers = _COMMON | (_RETRY if status in (429, 503) else {})
        found[error.name] = _error(error.about, schemas.ref(view), error.example, headers)
    found["RateLimited"]["headers"] = _COMMON | _RETRY | _RATE
    attempts = {"error": "Too many failed logins; retry in 60 s"}
    found["TooManyAttempts"] = _error(
        "Too many logins; wait for Retry-After", schemas.ref(ErrorView), attempts, _COMMON | _RETRY
    )
    return found


def _error(about: str, view: Schema, example: Schema, headers: Schema) -> Schema:
    content = {"application/json": _json(view, example)}
    return {"description": about, "headers": headers, "content": content}


def _json(schema: Schema, example: Any) -> Schema:
    return {"schema": schema, "example": example}


def _callback(schemas: Schemas) -> Schema:
    """What is posted to a `callbackUrl`: by the server, to whoever started the execution."""
    signed = {
        "webhook-id": "The same for each attempt: deduplicate by it",
        "webhook-timestamp": "Seconds since 1970 (UTC)",
        "webhook-signature": "Standard Webhooks, by the `callbackSecret` of the key",
    }
    media = _json(schemas.ref(CallbackView), CALLBACK)
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
