"""The OpenAPI 3.1 document, made from the table of routes and the shapes of the wire."""

from collections.abc import Iterable, Mapping
from typing import Any

from adapters_http.body import dump_json
from adapters_http.config import HttpConfig
from adapters_http.route import Auth, Query, Route
from adapters_http.routes import ROUTES
from wfcore.wire.schema import Schema, Schemas
from wfcore.wire.shapes import ErrorView, RateLimitedView

_MEANING: Mapping[int, str] = {
    200: "Success",
    202: "Accepted",
    204: "Nothing more to come",
    206: "Part of the content",
    400: "Malformed body or parameters",
    401: "No credential that opens this; the cause is never said",
    403: "The account is disabled or locked, or the deed is not permitted",
    404: "Missing, or not visible to the caller",
    408: "The body did not arrive in time",
    409: "The state does not allow it",
    413: "The body is over its limit",
    416: "No such part of the content",
    429: "Rate limit reached; wait for Retry-After",
    500: "Server error",
    503: "The store is unavailable, or the server is stopping; retry later",
}
_KEYS: list[dict[str, list[str]]] = [{"bearer": []}, {"apiKeyHeader": []}, {"apiKeyQuery": []}]
_SECURITY: Mapping[Auth, list[dict[str, list[str]]]] = {
    Auth.OPEN: [],
    Auth.LOGIN: [],
    Auth.KEY: _KEYS,
    Auth.KEY_AFTER_BODY: _KEYS,
    Auth.TRIGGER: [*_KEYS, {"webhookSignature": []}, {}],
    Auth.SESSION: [{"session": []}],
    Auth.DOWNLOAD: [{}, {"bearer": []}, {"apiKeyHeader": []}, {"session": []}],
}
_SCHEMES: Schema = {
    "bearer": {"type": "http", "scheme": "bearer", "description": "An API key"},
    "apiKeyHeader": {"type": "apiKey", "in": "header", "name": "X-API-Key"},
    "apiKeyQuery": {
        "type": "apiKey",
        "in": "query",
        "name": "api_key",
        "description": "Only where headers cannot be set: queries end up in logs and histories",
    },
    "webhookSignature": {"type": "apiKey", "in": "header", "name": "X-Webhook-Signature"},
    "session": {"type": "apiKey", "in": "cookie", "name": "wfcore_session"},
}
_RATE_HEADERS: Schema = {
    "X-RateLimit-Limit": {"schema": {"type": "integer"}},
    "X-RateLimit-Remaining": {"schema": {"type": "integer"}},
    "X-RateLimit-Window": {"schema": {"type": "string", "enum": ["minute", "day"]}},
}
_RETRY: Schema = {"Retry-After": {"schema": {"type": "integer"}, "description": "seconds"}}


def describe(config: HttpConfig, base: str = "") -> bytes:
    """The document as JSON text, for an application that answers below the path *base*."""
    return dump_json(document(config, base))


def document(config: HttpConfig, base: str = "", routes: Iterable[Route] = ROUTES) -> Schema:
    """The document."""
    schemas = Schemas()
    paths: dict[str, dict[str, Any]] = {}
    for route in routes:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route, schemas)
    return {
        "openapi": "3.1.0",
        "info": {"title": "wfcore", "version": config.version, "license": {"name": "MIT"}},
        "servers": [{"url": config.public_url or base or "/"}],
        "paths": paths,
        "components": {"schemas": schemas.found, "securitySchemes": _SCHEMES},
    }


def _operation(route: Route, schemas: Schemas) -> Schema:
    operation: Schema = {
        "operationId": route.id + ("_retained" if "webhook-trigger/{id}" in route.path else ""),
        "summary": route.summary,
        "security": _SECURITY[route.auth],
        "parameters": _parameters(route),
        "responses": {
            str(status): _response(route, status, schemas) for status in _statuses(route)
        },
    }
    if route.scope is not None:
        operation["description"] = f"Needs the scope {route.scope}."
    body = _body(route, schemas)
    if body is not None:
        operation["requestBody"] = body
    return operation


def _parameters(route: Route) -> list[Schema]:
    path = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
        for name in route.names
    ]
    return [
        *path,
        *(_parameter(one, "query") for one in route.query),
        *(_parameter(one, "header") for one in route.headers),
    ]


def _parameter(one: Query, where: str) -> Schema:
    schema = {"type": "array", "items": dict(one.schema)} if one.repeats else dict(one.schema)
    return {"name": one.name, "in": where, "description": one.about, "schema": schema}


def _body(route: Route, schemas: Schemas) -> Schema | None:
    if route.auth is Auth.TRIGGER:
        schema: Schema = {"type": "object", "description": "Any JSON object"}
    elif route.body is not None:
        schema = schemas.ref(route.body, closed=True)
    else:
        return None
    return {"content": {"application/json": {"schema": schema}}}


def _statuses(route: Route) -> list[int]:
    """Every status that the row can answer with."""
    found = {route.status, 500, 503, *route.refuses, *route.also.values()}
    if route.auth is not Auth.OPEN:
        found |= {401, 403}
    if route.limited or route.auth is Auth.LOGIN:
        found.add(429)
    if route.body is not None or route.auth is Auth.TRIGGER:
        found |= {400, 408, 413}
    if route.query or route.headers:
        found.add(400)
    return sorted(found)


def _response(route: Route, status: int, schemas: Schemas) -> Schema:
    response: Schema = {"description": _MEANING[status]}
    if status == route.status:
        shown = schemas.ref(route.returns) if route.returns else {}
        response["content"] = {route.media: {"schema": shown} if shown else {}}
        if route.limited:
            response["headers"] = _RATE_HEADERS
    elif route.html:
        response["content"] = {"text/html": {}}
    elif status >= 400:
        limited = status == 429 and route.limited
        shape = RateLimitedView if limited else ErrorView
        response["content"] = {"application/json": {"schema": schemas.ref(shape)}}
    if status in (429, 503):
        response["headers"] = _RETRY | (_RATE_HEADERS if status == 429 and route.limited else {})
    return response
