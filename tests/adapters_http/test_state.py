"""The state of a workflow for programs with a session."""

from typing import Any

import httpx
import pytest

from tests.support.http_world import World
from wfcore.model.workflow import Variable, VariableType

STATE = {
    one.name: one
    for one in (
        Variable("cursor", has_default=True, default=""),
        Variable("seen", VariableType.OBJECT),
        Variable("token", secret=True),
    )
}


async def _asked(world: World, method: str, path: str, json: Any = None) -> httpx.Response:
    return await world.http.request(method, path, json=json, headers=await world.sign_in())


async def test_state_is_set_and_read(world: World):
    """Values by name; what is left out stays, null resets; a secret is only said to be there."""
    path = f"/api/workflows/{await world.workflow(state=STATE)}/state"
    first = (await _asked(world, "GET", path)).json()
    assert first["state"] == {"cursor": "", "seen": None}
    assert first["secrets"] == {"token": False}
    body = {"state": {"cursor": "c", "seen": {"a": [1, 2**53]}, "token": "t0ken"}}
    done = await _asked(world, "PUT", path, body)
    assert (done.status_code, "t0ken" in done.text) == (200, False)
    assert done.json()["state"] == {"cursor": "c", "seen": {"a": [1, 2**53]}}
    assert done.json()["secrets"] == {"token": True}
    await _asked(world, "PUT", path, {"state": {"seen": None, "token": None}})
    last = (await _asked(world, "GET", path)).json()
    assert (last["state"], last["secrets"]) == ({"cursor": "c", "seen": None}, {"token": False})


@pytest.mark.parametrize(
    ("given_body", "expected_field"),
    [
        ({"state": {"cursr": "c"}}, "state.cursr"),
        ({"state": {"cursor": 1}}, "state.cursor"),
        ({"state": {"cursor": "x" * 70_000}}, "state.cursor"),
        ({"state": {"cursor": "a\0b"}}, "state.cursor"),
        ({"state": []}, "state"),
        ({}, "state"),
        ({"cursor": "c"}, "cursor"),
    ],
)
async def test_what_is_not_admitted_is_400_by_name(
    world: World, given_body: Any, expected_field: str
):
    """And changes nothing."""
    path = f"/api/workflows/{await world.workflow(state=STATE)}/state"
    refused = await _asked(world, "PUT", path, given_body)
    assert refused.status_code == 400
    assert expected_field in refused.json()["error"]
    assert (await _asked(world, "GET", path)).json()["state"]["cursor"] == ""


async def test_the_state_of_another_owner_is_not_found(world: World):
    """Neither read nor set; an API key without a session is 401. SV-7."""
    path = f"/api/workflows/{await world.workflow(state=STATE)}/state"
    await world.account("bob")
    bob = await world.sign_in("bob")
    for method, json in (("GET", None), ("PUT", {"state": {"cursor": "c"}})):
        answer = await world.http.request(method, path, json=json, headers=bob)
        assert answer.status_code == 404
    assert (await world.get(path)).status_code == 401
