"""The table of routes, the look-up made from it, and the description made from it."""

import json
import re

import pytest

from adapters_http.app import HttpConfig
from adapters_http.dispatch import RouteTree
from adapters_http.handlers import operations
from adapters_http.openapi.document import document
from adapters_http.route import Auth, Route
from adapters_http.routes import ROUTES
from tests.support.http_world import World
from wfcore.model.access import Scope
from wfcore.rules.definition.check import definition_schema
from wfcore.wire import requests

V1 = {
    ("GET", "/api/v1/workflows", Scope.WORKFLOW_READ),
    ("GET", "/api/v1/workflows/{id}", Scope.WORKFLOW_READ),
    ("POST", "/api/v1/workflows/{id}/executions", Scope.WORKFLOW_EXECUTE),
    ("GET", "/api/v1/executions", Scope.EXECUTION_READ),
    ("GET", "/api/v1/executions/{id}", Scope.EXECUTION_READ),
    ("GET", "/api/v1/executions/{id}/result", Scope.EXECUTION_READ),
    ("POST", "/api/v1/executions/{id}/cancel", Scope.EXECUTION_CANCEL),
    ("GET", "/api/v1/approvals", Scope.APPROVAL_RESPOND),
    ("GET", "/api/v1/approvals/{id}", Scope.APPROVAL_RESPOND),
    ("GET", "/api/v1/approvals/execution/{executionId}", Scope.APPROVAL_RESPOND),
    ("POST", "/api/v1/approvals/{id}/approve", Scope.APPROVAL_RESPOND),
    ("POST", "/api/v1/approvals/{id}/reject", Scope.APPROVAL_RESPOND),
    ("GET", "/api/v1/executions/{id}/artifacts", Scope.ARTIFACT_READ),
    ("GET", "/api/v1/executions/{id}/artifacts/{aid}", Scope.ARTIFACT_READ),
}
OPEN = {"/healthz", "/readyz", "/metrics", "/openapi.json", "/schema/definition.json"}


def test_the_fourteen_v1_endpoints_are_there_with_their_scopes():
    """Every v1 endpoint of the specification is a row with the scope that it names. AU-4."""
    rows = {(route.method, route.path, route.scope) for route in ROUTES}
    assert rows >= V1
    assert len(V1) == 14


def test_nothing_is_open_that_should_not_be():
    """Only health, metrics and descriptions ask for nobody; each v1 row takes a key. AU-8."""
    assert {route.path for route in ROUTES if route.auth is Auth.OPEN} == OPEN
    v1 = [route for route in ROUTES if route.path.startswith("/api/v1/")]
    assert {route.auth for route in v1} == {Auth.KEY}


def test_a_row_without_authentication_cannot_be_built():
    """Authentication is declared on every row, and a key needs its scope. AU-4."""
    with pytest.raises(TypeError):
        Route("GET", "/x", handler=operations.healthz, summary="x")  # type: ignore[call-arg]
    with pytest.raises(ValueError, match="do not fit"):
        Route("GET", "/x", Auth.KEY, operations.healthz, "x")
    with pytest.raises(ValueError, match="do not fit"):
        Route("GET", "/x", Auth.OPEN, operations.healthz, "x", Scope.WORKFLOW_READ)


def test_what_a_row_says_without_saying_so():
    """The names in its path, and that people look at it; who does is asked for no exact query."""
    row = Route("GET", "/{a}/b/{c}", Auth.SESSION, operations.healthz, "x", media="text/html")
    assert (row.names, row.html, row.tolerant, row.limited) == (("a", "c"), True, True, False)
    row = Route("GET", "/a", Auth.KEY, operations.healthz, "x", Scope.WORKFLOW_READ)
    assert (row.names, row.html, row.tolerant, row.limited) == ((), False, False, True)


def test_visitors_need_a_scope_or_a_reason():
    """A row that no visitor opens gives none, and one has no two. AU-11."""
    reason = {"visitors": "it shows nothing"}
    with pytest.raises(ValueError, match="GET /a: visitors need its scope, or a reason"):
        Route("GET", "/a", Auth.OPEN, operations.healthz, "x", **reason)
    with pytest.raises(ValueError, match="GET /a: visitors need its scope, or a reason"):
        Route("GET", "/a", Auth.PAGE, operations.healthz, "x", Scope.WORKFLOW_READ, **reason)
    for scope, more, wanted in (
        (None, reason, frozenset()),
        (None, {}, frozenset(Scope.ordinary())),
        (Scope.WORKFLOW_READ, {}, {Scope.WORKFLOW_READ}),
    ):
        row = Route("GET", "/a", Auth.PAGE, operations.healthz, "x", scope, **more)
        assert row.visitor_scopes == wanted


def test_two_rows_for_one_door_are_refused():
    """A path and method stand once in the table."""
    row = Route("GET", "/x/{id}", Auth.OPEN, operations.healthz, "x")
    with pytest.raises(ValueError, match="two rows"):
        RouteTree([row, row])


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: f"{route.method} {route.path}")
def test_every_row_is_found(route: Route):
    """The look-up finds each row by its path, with the values of its parameters."""
    path = route.path
    for at, name in enumerate(route.names):
        path = path.replace(f"{{{name}}}", f"v{at}")
    methods, values = RouteTree(ROUTES).find(path)
    assert methods[route.method] is route
    assert values == [f"v{at}" for at in range(len(route.names))]


@pytest.mark.parametrize(
    "path",
    ["", "/", "/api", "/api/v1/", "/api/v1/workflows/", "/api/v1/workflows//executions",
     "//healthz", "/api/v1/workflows/a\0b", "/api/v1/workflows/a\nb", "/HEALTHZ",
     "/api/v1/executions/a/b/c/d"],
)  # fmt: skip
def test_what_is_no_path_of_the_table_is_not_found(path: str):
    """Empty, unprintable and surplus segments lead nowhere."""
    assert not RouteTree(ROUTES).find(path)[0]


def test_approval_is_no_webhook():
    """The static path of approval responses goes before the retained trigger path."""
    lookup = RouteTree(ROUTES)
    assert lookup.find("/api/webhook-trigger/approval")[0]["POST"].auth is Auth.KEY_AFTER_BODY
    assert lookup.find("/api/webhook-trigger/wh_1")[0]["POST"].auth is Auth.TRIGGER


def test_the_description_is_valid_openapi():
    """The document is OpenAPI 3.1 and has every row with a name of its own."""
    from openapi_spec_validator import validate  # takes seconds, and every worker imports modules

    described = json.loads(json.dumps(document(HttpConfig(public_url="https://wf.example.org"))))
    validate(described)
    operations_of = [op for path in described["paths"].values() for op in path.values()]
    assert len(operations_of) == len(ROUTES)
    assert len({op["operationId"] for op in operations_of}) == len(ROUTES)
    start = described["components"]["schemas"]["StartBody"]
    assert start["additionalProperties"] is False
    status = described["components"]["schemas"]["StatusView"]
    assert "completedAt" not in status["required"]
    assert {"error", "statusReason", "stepResults"} <= set(status["required"])


async def test_what_the_server_sends_can_be_had_as_webhooks(world: World):
    """The same description, with the message about an end where tools look for webhooks. CB-1."""
    from openapi_spec_validator import validate

    plain = (await world.http.get("/openapi.json?webhooks=false")).json()
    found = (await world.http.get("/openapi.json?webhooks=true")).json()
    validate(found)
    asked = [op for path in plain["paths"].values() for op in path.values() if "callbacks" in op]
    assert len(asked) == 1
    assert '"callbacks"' not in json.dumps(found)
    (sent,) = {
        json.dumps(path) for op in asked for path in op["callbacks"]["executionEnded"].values()
    }
    assert json.dumps(found.pop("webhooks")["executionEnded"]) == sent
    assert "webhooks" not in plain
    for operation in asked:
        del operation["callbacks"]
    assert found == plain


async def test_the_schema_of_definitions_is_served(world: World):
    """Editors need no credential to complete and check definitions. DF-10."""
    answer = await world.http.get("/schema/definition.json")
    assert answer.headers["content-type"] == "application/schema+json"
    assert answer.json() == json.loads(json.dumps(definition_schema()))


STRICT = [
    route
    for route in ROUTES
    if route.path.startswith("/api/v1/") or route.auth in (Auth.SESSION, Auth.LOGIN, Auth.ADMIN)
]


def test_strict_rows_are_those_of_v1_and_the_console():
    """PG-3: health, webhooks, links, pages and downloads ignore what others add."""
    assert [route for route in ROUTES if not route.tolerant] == STRICT


OPENED = [route for route in STRICT if route.auth is not Auth.ADMIN]
"""By what every account may have."""


@pytest.mark.parametrize("route", OPENED, ids=lambda route: f"{route.method} {route.path}")
async def test_unknown_query_parameters_are_400(world: World, route: Route):
    """PG-3: after the credentials and before anything is looked for, on every strict row."""
    path = re.sub("{.*?}", "x", route.path)
    session = await world.sign_in() if "api/v1" not in path else {}
    body = {"email": "a@b", "password": "x"} if route.auth is Auth.LOGIN else {}
    if route.body is requests.WebhookBody:
        body = {"workflowId": "x", "name": "n", "apiKeyId": "k"}
    if route.body is requests.NoticeTestBody:
        body = {"channel": "mail"}
    if route.body is requests.ReviseBody:
        body = {"comment": "shorter"}
    if route.body is requests.DefinitionBody:
        body = {"definition": ""}
    if route.body is requests.DefinitionChangeBody:
        body = {"definition": "", "version": 1}
    if route.body is requests.RestoreBody:
        body = {"version": 1}
    if route.body is requests.ShareBody:
        body = {"permission": "VIEW"}
    if route.body is requests.StateBody:
        body = {"state": {}}
    if route.body is requests.SecretBody:
        body = {"value": "x"}
    if route.body is requests.InvitationBody:
        body = {"email": "x@example.org"}
    if route.body is requests.GroupBody:
        body = {"name": "x"}
    if route.body is requests.KeyBody:
        body = {"name": "x", "scopes": []}
    if route.body is requests.GateBody:
        body = {"message": "x"}
    if route.body is requests.DelegateBody:
        body = {"to": "x"}
    if route.body is requests.DecisionsBody:
        body = {"decisions": []}
    content = None if route.body is None else json.dumps(body)
    send = {"content": content, "headers": session or world.bearer}
    answer = await world.http.request(route.method, f"{path}?sizes=1", **send)
    assert answer.status_code == 400, answer.text
    assert answer.json()["error"].startswith("sizes: unknown query parameter; ")
    assert ("did you mean size?" in answer.text) == ("size" in [one.name for one in route.query])
    for one in route.query:
        answer = await world.http.request(route.method, f"{path}?{one.name}=1&{one.name}=2", **send)
        assert (answer.status_code, answer.json()["error"][: len(one.name)]) == (400, one.name)
    if route.auth is Auth.KEY:
        url = f"{path}?api_key={world.key.text}"
        answer = await world.http.request(route.method, url, content=content)
        assert "unknown query" not in answer.text


async def test_tolerant_rows_ignore_what_was_added(world: World):
    """PG-3: a mailer's and a sender's parameters change nothing; two meanings are still 400."""
    _, id = await world.paused()
    link = f"/api/webhook-trigger/approval/{id}/approve?utm_source=mail"
    assert (await world.get(link)).status_code == 200
    assert (await world.get(f"{link}&comment=a&comment=b")).status_code == 400
    execution, artifact = await world.with_artifact()
    url = f"/api/v1/executions/{execution}/artifacts/{artifact}"
    signed = (await world.get(url)).json()["downloadUrl"]
    assert (await world.http.get(f"{signed}&fbclid=1")).status_code == 200
    hook = await world.webhook()
    assert (await world.post(f"/api/webhooks/{hook}/trigger?x=1&x=2")).status_code == 202
    assert (await world.http.get("/healthz?now")).status_code == 200
