"""Doors that have no passkey: each refuses to approve a signed release, and says where to sign."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from adapters_http.app import HttpConfig
from adapters_runtime.passkeys import WebAuthnPasskeys
from tests.adapters_http.test_agents import agent, tool_of
from tests.support.http_world import World, a_world, review
from wfcore.model.access import Scope
from wfcore.model.workflow import Assurance
from wfcore.usecases.services import Policy

URL = "https://flows.example.org/at"
SIGNED = {"assurance": Assurance.PASSKEY}
CONFIG = HttpConfig(console=True, agents=True, public_url=URL)


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    """A server behind a proxy and below a path, as people know it."""
    parts = {"policy": Policy(public_url=URL), "passkeys": WebAuthnPasskeys()}
    async with a_world(tmp_path, CONFIG, **parts) as made:
        yield made


async def status_of(world: World, id: str) -> str:
    return str((await world.get(f"/api/v1/approvals/{id}")).json()["status"])


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/api/v1/approvals/{id}/approve", {"comment": "fine"}),
        ("/api/webhook-trigger/approval", {"approvalId": "{id}", "decision": "approve"}),
    ],
)
async def test_a_key_is_refused_with_the_address_of_the_page(
    world: World, path: str, body: dict[str, str]
) -> None:
    """403, whatever the key may do otherwise; nothing is decided. SR-6."""
    _, id = await world.paused(**SIGNED)
    sent = {name: value.format(id=id) for name, value in body.items()}
    answer = await world.post(path.format(id=id), sent)
    assert answer.status_code == 403
    assert f"{URL}/approvals/{id}" in answer.text
    assert await status_of(world, id) == "PENDING"


async def test_several_are_refused_one_by_one(world: World) -> None:
    """The signed one names its page; the other one is decided. SR-6, AP-39."""
    _, signed = await world.paused(**SIGNED)
    _, plain = await world.paused()
    both = {id: (await world.get(f"/api/v1/approvals/{id}")).json() for id in (signed, plain)}
    decisions = [
        {"approvalId": id, "decision": "approve", "expectedItemsHash": one["itemsHash"]}
        for id, one in both.items()
    ]
    answer = await world.post("/api/v1/approvals/decisions", {"decisions": decisions})
    assert answer.status_code == 200
    assert f"{URL}/approvals/{signed}" in answer.text
    assert [await status_of(world, id) for id in (signed, plain)] == ["PENDING", "APPROVED"]


async def test_a_click_is_refused_with_the_address_of_the_page(world: World) -> None:
    """The one-click link of mails and chats cannot sign. SR-6, LK-2."""
    _, id = await world.paused(**SIGNED)
    params = {"api_key": world.key.text, "confirm": "1"}
    answer = await world.http.get(f"/api/webhook-trigger/approval/{id}/approve", params=params)
    assert answer.status_code == 403
    assert f"{URL}/approvals/{id}" in answer.text
    assert await status_of(world, id) == "PENDING"


async def test_rejecting_by_key_needs_no_passkey(world: World) -> None:
    """Only what lets something out is signed. SR-1."""
    _, id = await world.paused(**SIGNED)
    answer = await world.post(f"/api/v1/approvals/{id}/reject", {})
    assert (answer.status_code, await status_of(world, id)) == (200, "REJECTED")


async def test_an_agent_is_told_where_to_sign_and_cannot(world: World) -> None:
    """It has the page's address and the reason; no tool and no key of an agent decides. SR-6."""
    await world.workflow(review(**SIGNED), name="Payout")
    async with agent(world) as client:
        called = await client.call_tool(await tool_of(client, "Payout"), {})
        seen = called.structured_content
        listed = await world.get(f"/api/v1/approvals/execution/{seen['executionId']}")
        (id,) = [one["id"] for one in listed.json()["approvals"]]
        assert (seen["state"], seen["approvalUrl"]) == ("input_required", f"{URL}/approvals/{id}")
        assert "approved with a passkey, by a person at its page" in seen["explanation"]
        for tool in ("approve", "decide_approval", "ask_people"):
            refused = await client.call_tool(tool, {"approvalId": id, "decision": "approve"})
            assert refused.is_error
    path = f"/api/v1/approvals/{id}/approve"
    scopes = {*Scope.ordinary()} - {Scope.APPROVAL_RESPOND}
    key = {"X-API-Key": (await world.new_key(None, *scopes)).text}
    assert (await world.http.post(path, json={}, headers=key)).status_code == 401
    refused = await world.post(path, {})
    assert (refused.status_code, f"{URL}/approvals/{id}" in refused.text) == (403, True)
    assert await status_of(world, id) == "PENDING"
