"""The client's calls against the server's own table of routes."""

import inspect
import re
from pathlib import Path

import pytest

from adapters_http.route import Auth
from adapters_http.routes import ROUTES
from wfcore_client import AsyncClient, Client, calls, errors
from wfcore_client.calls import ApiCall
from wfcore_client.shapes import Verdict

MADE: tuple[ApiCall, ...] = (
    calls.list_workflows(),
    calls.workflow("w"),
    calls.start("w"),
    calls.list_executions(),
    calls.count_executions(),
    calls.execution("e", outputs=False),
    calls.step("e", "s"),
    calls.result("e", outputs=False),
    calls.logs("e"),
    calls.callback("e"),
    calls.definition("e"),
    calls.explain("e"),
    calls.cancel("e"),
    calls.redrive("e"),
    calls.plan_redrive("e"),
    calls.open_gate("Sure?"),
    calls.gate("e"),
    calls.list_approvals(),
    calls.approval("a"),
    calls.approvals_of("e"),
    calls.approve("a"),
    calls.reject("a"),
    calls.revise("a", "Please"),
    calls.delegate("a", "ann@example.org"),
    calls.decide_several([]),
    calls.list_artifacts("e"),
    calls.artifact("e", "a"),
    calls.trigger("h"),
    calls.decide("a", Verdict.APPROVE),
)
BY_KEY = {Auth.KEY, Auth.KEY_AFTER_BODY, Auth.TRIGGER}
OTHERWISE = {
    "/api/v1/executions/{id}/events": "`events`, a stream",
    "/api/webhook-trigger/{id}": "the retained path of `trigger`",
    "/api/webhook-trigger/approval/{id}/{decision}": "a page for people",
}


def test_every_route_has_a_call() -> None:
    """What a key may do with JSON, the client can do, and it reads the shape that is sent."""
    rows = {
        (route.method, route.path, shape and shape.__name__)
        for route in ROUTES
        if route.auth in BY_KEY and route.path not in OTHERWISE
        for shape in (route.returns, *route.otherwise.values())
    }
    assert {(call.method, call.path, call.returns.__name__) for call in MADE} == rows


@pytest.mark.parametrize("call", MADE, ids=lambda call: f"{call.method} {call.path}")
def test_queries_are_known(call: ApiCall) -> None:
    """Whatever a call can put into its query is a parameter of its route."""
    (row,) = [route for route in ROUTES if (route.method, route.path) == (call.method, call.path)]
    assert call.query.keys() <= {one.name for one in row.query}


def test_both_clients_make_the_same_calls() -> None:
    """The two clients have the same methods with the same parameters."""
    shared = {"in_process"}
    asked = {name for name in vars(AsyncClient) if not name.startswith("_")} - shared
    assert asked == {name for name in vars(Client) if not name.startswith("_")}
    for name in asked:
        one, other = (inspect.signature(getattr(client, name)) for client in (AsyncClient, Client))
        assert str(one.parameters) == str(other.parameters), name


def test_places_are_quoted() -> None:
    """An id cannot lead to another path."""
    assert calls.execution("../x?y=1").address == "/api/v1/executions/..%2Fx%3Fy%3D1"


def test_the_documentation_lists_every_call() -> None:
    """The page about the API names each method of the clients, and each error that they raise."""
    page = (Path(__file__).parents[2] / "docs" / "api.md").read_text()
    _, _, about = page.partition("## From Python")
    listed = set(re.findall(r"`(\w+)`", about.partition("\n## ")[0]))
    methods = {name for name in vars(Client) if name[0] != "_"} - {"close", "send"}
    raised = {name for name in dir(errors) if isinstance(getattr(errors, name), type)}
    assert (
        methods | {name for name in raised if issubclass(vars(errors)[name], Exception)} <= listed
    )
