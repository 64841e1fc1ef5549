"""The pages about HTTP: routes, shapes and errors, from the table of routes."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from adapters_http.config import HttpConfig
from adapters_http.errors import STATUS
from adapters_http.openapi.document import document
from adapters_http.route import Auth, Route
from adapters_http.routes import ROUTES
from wfcore.errors import AuthReason
from wfdocs.markdown import code, first_paragraph, table

_AUTH: Mapping[Auth, str] = {
    Auth.OPEN: "nobody is asked",
    Auth.KEY: "key",
    Auth.KEY_AFTER_BODY: "key, after the size of the body",
    Auth.TRIGGER: "the webhook's own: key, signature or nothing",
    Auth.SESSION: "console session",
    Auth.ADMIN: "an operator's key with the scope ADMIN, in a header",
    Auth.LOGIN: "email and password",
    Auth.DOWNLOAD: "signed link, key or session",
}


def routes_page() -> str:
    """The page of routes, each with its credentials, parameters and answers."""
    described = document(HttpConfig())
    rows = [(f"[{code(name(route))}](#{_anchor(route)})", route.summary) for route in ROUTES]
    return (
        "# Routes\n\n"
        "Written from `adapters_http.routes.ROUTES`, from which the server looks up, checks and "
        "describes every request. The same as OpenAPI 3.1: `GET /openapi.json`.\n\n"
        "Every answer has `X-Request-Id`. Where a key is asked for, answers carry "
        "`X-RateLimit-Limit`, `X-RateLimit-Remaining` and `X-RateLimit-Window` of the tighter "
        "window.\n\n"
        f"{table(('Route', 'What'), rows)}\n## Each route\n\n"
        + "\n".join(_route(one, described["paths"]) for one in ROUTES)
        + "\n## Shapes\n\n"
        "Documented fields are always there, null where they have no value, unless a shape says "
        "otherwise.\n\n" + "\n".join(_shapes(described["components"]["schemas"]))
    )


def name(route: Route) -> str:
    """The method and path of a route."""
    return f"{route.method} {route.path}"


def _anchor(route: Route) -> str:
    return "route-" + re.sub(r"[^a-z0-9]+", "-", name(route).lower()).strip("-")


def _route(route: Route, paths: Mapping[str, Any]) -> str:
    operation = paths[route.path][route.method.lower()]
    whose = "; of visitors, those" if route.auth is Auth.SESSION else ""
    scope = f"{whose} with {code(route.scope)}" if route.scope else ""
    given = _link(route.returns.__name__) if route.returns else route.media
    refusals = ", ".join(status for status in operation["responses"] if status >= "300")
    lines = [
        f"({_anchor(route)})=\n### {code(name(route))}\n",
        f"{operation['description'] if route.auth is Auth.ADMIN else route.summary + '.'}\n",
        f"- For: {_AUTH[route.auth]}{scope}",
        *(f"- Body: {one}" for one in _body(route)),
        *(
            f"- {one['in'].capitalize()} {code(one['name'])}: {one['description']}"
            for one in operation["parameters"]
            if one["in"] != "path"
        ),
        f"- Answers: {route.status}, {given}",
        f"- Refuses with: {refusals}",
    ]
    return "\n".join(lines) + "\n"


def _body(route: Route) -> Iterator[str]:
    if route.body is not None:
        yield _link(route.body.__name__)
    elif route.auth is Auth.TRIGGER:
        yield "any JSON object"


def _shapes(schemas: Mapping[str, Any]) -> Iterator[str]:
    for name, schema in sorted(schemas.items()):
        yield f"(shape-{name.lower()})=\n### {name}\n"
        if schema.get("description"):
            yield schema["description"] + "\n"
        required = set(schema.get("required", ()))
        rows = [
            (code(field) + ("" if field in required else " (may be absent)"), kind(shown))
            for field, shown in schema.get("properties", {}).items()
        ]
        yield table(("Field", "Type"), rows) if rows else "No fields.\n"


def kind(schema: Any) -> str:
    """The values that a schema allows, in words."""
    if not isinstance(schema, Mapping) or not schema:
        return "any JSON"
    if "$ref" in schema:
        return _link(schema["$ref"].rpartition("/")[2])
    if "anyOf" in schema:
        return " or ".join(dict.fromkeys(kind(one) for one in schema["anyOf"]))
    if "enum" in schema:
        return " ".join(code(one) for one in schema["enum"])
    match schema.get("type"):
        case "array":
            return f"list of {kind(schema.get('items'))}"
        case "object" if isinstance(schema.get("additionalProperties"), Mapping):
            return f"object of {kind(schema['additionalProperties'])}"
        case list() as several:
            return " or ".join(map(str, several))
        case None:
            return "any JSON"
        case one:
            return str(one)


def _link(name: str) -> str:
    return f"[{name}](#shape-{name.lower()})"


def errors_page() -> str:
    """The page of errors with their statuses, and the reasons of a 401 in the audit log."""
    rows = [
        (str(status), code(error.__name__), first_paragraph(error.__doc__))
        for error, status in sorted(STATUS.items(), key=lambda pair: (pair[1], pair[0].__name__))
    ]
    also = [
        (code(f"{route.method} {route.path}"), code(error.__name__), str(status))
        for route in ROUTES
        for error, status in route.also.items()
    ]
    reasons = [(code(reason.value),) for reason in AuthReason]
    return (
        "# Errors\n\n"
        "Written from `adapters_http.errors.STATUS` and the table of routes. The body is always "
        '`{"error": "…"}`; a 429 has more (see [RateLimitedView](#shape-ratelimitedview)). An '
        "error that is not in the table is a defect: 500, and nothing is said of it.\n\n"
        f"{table(('Status', 'Error', 'When'), rows)}\n"
        "## Routes that say it differently\n\n"
        f"{table(('Route', 'Error', 'Status there'), also)}\n"
        "## Reasons of a 401\n\n"
        "The caller is never told. `wfcore audit` shows:\n\n"
        f"{table(('Reason',), reasons)}"
    )
