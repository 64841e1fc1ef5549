"""
The OpenAPI 3.1 document, made from the table of routes and the shapes of the wire.

Readers of the document generate clients: operations are grouped by subject, errors are shared
components, every body has an example (`examples.json`), and content other than JSON has a named
format.

Generators name their package by the title, so the title is not `wfcore`. Inline enums would become
`Status1` and `Status2`, so each enum is a component. A nullable primitive is a list of types, and a
free object has `additionalProperties: true`: otherwise the generators for Go and Java write empty
classes. For a `webhooks` object openapi-generator writes code that does not compile. So each
callback is with the operation that names its address, and `?webhooks=true` gives the form with
`webhooks`.
"""

from collections.abc import Iterable
from typing import Any

from adapters_http.browsers import COOKIE, HOST_COOKIE
from adapters_http.config import HttpConfig
from adapters_http.json_text import dump_json
from adapters_http.openapi.operations import callback, operation_of, with_example
from adapters_http.openapi.tables import COMMON, ERRORS, HEADERS, RATE, RETRY, SIGNATURES, TAGS
from adapters_http.route import Route
from adapters_http.routes import ROUTES
from wfcore.wire.common import ErrorView, RateLimitedView
from wfcore.wire.schema import Schema, Schemas

_TITLE = "wfcore HTTP API"
"""
The title. It is not `wfcore`, because generators would name their package like the client that is
shipped.
"""

_ABOUT = """\
Start workflows, follow their executions, decide their approvals, fetch their artifacts.

Names are camelCase, instants are milliseconds since 1970 (UTC), durations are milliseconds. \
A field without a value is null, unless it may be absent. Errors are `{"error": "…"}` and name \
the field and the fix. Every response has `X-Request-Id`."""


def describe(config: HttpConfig, base: str = "", webhooks: bool = False) -> bytes:
    """The document as JSON text, for an application that answers below the path *base*."""
    return dump_json(document(config, base, webhooks=webhooks))


def document(
    config: HttpConfig, base: str = "", routes: Iterable[Route] = ROUTES, *, webhooks: bool = False
) -> Schema:
    """
    The document. *webhooks*: the requests that the server sends are under `webhooks`, and not with
    the operations that ask for them; for tools that know only one of the two forms.
    """
    schemas = Schemas()
    errors = _shared_errors(schemas)
    paths: dict[str, dict[str, Any]] = {}
    for route in routes:
        operation = operation_of(route, schemas)
        if webhooks:
            operation.pop("callbacks", None)
        paths.setdefault(route.path, {})[route.method.lower()] = operation
    sent = {"webhooks": {"executionEnded": {"post": callback(schemas)}}} if webhooks else {}
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
        "tags": [{"name": name, "description": about} for name, about in sorted(TAGS.values())],
        "paths": paths,
        **sent,
        "components": {
            "schemas": dict(sorted(schemas.found.items())),
            "responses": errors,
            "headers": HEADERS,
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
        for name, header in SIGNATURES.items()
    }


def _shared_errors(schemas: Schemas) -> Schema:
    found: Schema = {}
    for status, error in ERRORS.items():
        view = RateLimitedView if status == 429 else ErrorView
        headers = COMMON | (RETRY if status in (429, 503) else {})
        found[error.name] = _error(error.about, schemas.ref(view), error.example, headers)
    found["RateLimited"]["headers"] = COMMON | RETRY | RATE
    attempts = {"error": "Too many failed logins; retry in 60 s"}
    found["TooManyAttempts"] = _error(
        "Too many logins; wait for Retry-After", schemas.ref(ErrorView), attempts, COMMON | RETRY
    )
    return found


def _error(about: str, view: Schema, example: Schema, headers: Schema) -> Schema:
    content = {"application/json": with_example(view, example)}
    return {"description": about, "headers": headers, "content": content}
