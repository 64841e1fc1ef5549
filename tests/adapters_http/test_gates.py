"""Gates: a program asks people, without a workflow of its own. GT-1 to GT-5."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from adapters_http import request_body
from adapters_http.body import read_body
from tests.support.http_world import ROWS, World, bearer
from wfcore.model.access import OPERATOR, AccountStatus, Scope
from wfcore.model.page import PageRequest
from wfcore.usecases.accounts import keys
from wfcore.usecases.accounts.accounts import set_account
from wfcore.usecases.executions import executions
from wfcore.usecases.upkeep.deleting_accounts import delete_account

ASKED = {
    "message": "Pay {{ these }} refunds?",
    "groups": [
        {
            "name": "to pay",
            "rowKey": "id",
            "rows": ROWS,
            "columns": [
                {"key": "id", "type": "number", "editable": False},
                {"key": "amount", "type": "number"},
            ],
        }
    ],
}


async def agent(world: World) -> dict[str, str]:
    """The headers of a key that asks, and cannot answer."""
    scopes = {*Scope.ordinary()} - {Scope.APPROVAL_RESPOND}
    return bearer((await world.new_key(None, *scopes)).text)


async def asked(world: World, key: dict[str, str], **more: Any) -> dict[str, Any]:
    answer = await world.http.post("/api/v1/gates", headers=key, json={**ASKED, **more})
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


async def gate(world: World, key: dict[str, str], id: str, query: str = "") -> httpx.Response:
    return await world.http.get(f"/api/v1/gates/{id}{query}", headers=key)


async def test_rows_come_back_as_they_were_released(world: World) -> None:
    """What a reviewer releases comes back, edited, under the digest of exactly these rows. GT-1."""
    key = await agent(world)
    opened = await asked(world, key)
    assert (opened["status"], opened["groups"]) == ("PENDING", None)
    approval = (await world.get(f"/api/v1/approvals/{opened['approvalId']}")).json()
    assert approval["approvalMessage"] == ASKED["message"]
    assert approval["itemsHash"] == opened["itemsHash"]
    edited = {"to pay": [{"id": 2, "amount": 19}]}
    body = {"comment": "not the first", "editedItems": edited}
    approved = await world.post(f"/api/v1/approvals/{opened['approvalId']}/approve", body)
    assert approved.status_code == 200, approved.text
    found = (await gate(world, key, opened["executionId"])).json()
    assert (found["status"], found["groups"], found["comment"]) == (
        "APPROVED", edited, "not the first",
    )  # fmt: skip
    assert found["decidedBy"] == "ann@example.org"
    assert found["itemsHash"] == approved.json()["itemsHash"] != opened["itemsHash"]
    assert (await gate(world, key, opened["executionId"])).json() == found


@pytest.mark.parametrize("decision", ["approve", "reject"])
async def test_who_waits_is_answered_when_people_have_decided(world: World, decision: str) -> None:
    """`wait` lasts until the decision, which needs no worker; a rejection releases nothing."""
    key = await agent(world)
    opened = await asked(world, key)
    waiting = asyncio.create_task(gate(world, key, opened["executionId"], "?wait=60"))
    await world.post(f"/api/v1/approvals/{opened['approvalId']}/{decision}")
    found = (await asyncio.wait_for(waiting, 30)).json()
    assert found["status"] == {"approve": "APPROVED", "reject": "REJECTED"}[decision]
    assert found["groups"] == ({"to pay": ROWS} if decision == "approve" else None)


async def test_a_repeated_question_is_asked_once(world: World) -> None:
    """The same key for idempotency gives the same gate; with another body it is a conflict. GT-2"""
    key = await agent(world) | {"Idempotency-Key": "run-7"}
    first = await asked(world, key)
    again = await world.http.post("/api/v1/gates", headers=key, json=ASKED)
    assert again.json() == first
    assert again.headers["idempotent-replayed"] == "true"
    other = await world.http.post("/api/v1/gates", headers=key, json={"message": "Else?"})
    assert other.status_code == 409
    assert (await world.get("/api/v1/approvals")).json()["total"] == 1


async def test_who_asks_cannot_answer(world: World) -> None:
    """A key that may decide opens no gate, and one that may ask decides none. GT-3."""
    refused = await world.post("/api/v1/gates", ASKED)
    assert refused.status_code == 403
    assert "use a key without APPROVAL_RESPOND" in refused.json()["error"]
    key = await agent(world)
    opened = await asked(world, key)
    path = f"/api/v1/approvals/{opened['approvalId']}/approve"
    assert (await world.http.post(path, headers=key)).status_code == 401
    assert (await gate(world, key, opened["executionId"])).json()["status"] == "PENDING"


async def test_starting_the_workflow_of_gates_is_asking(world: World) -> None:
    """Whoever may decide opens no gate by starting its workflow, nor by redriving one. GT-3."""
    key = await agent(world)
    opened = await asked(world, key, groups=[])
    await world.post(f"/api/v1/executions/{opened['executionId']}/cancel")
    (workflow,) = (await world.get("/api/v1/workflows")).json()["items"]
    start = f"/api/v1/workflows/{workflow['id']}/executions"
    again = f"/api/v1/executions/{opened['executionId']}/redrive"
    for path, body in ((start, {"inputs": {"message": "Pay me?"}}), (again, {})):
        refused = await world.post(path, body)
        assert refused.status_code == 403
        assert "use a key without APPROVAL_RESPOND" in refused.json()["error"]
        assert (await world.http.post(path, headers=key, json=body)).status_code == 202


async def test_who_is_deleted_before_the_body_is_there_asks_nothing(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A body that comes late is taken from those who are still let in: nothing is left. AC-9."""
    monkeypatch.setattr(request_body, "LATE_S", -1)
    admitted, deleted = asyncio.Event(), asyncio.Event()

    async def noted(*given: Any) -> bytes:
        admitted.set()
        return await read_body(*given)

    async def late() -> AsyncIterator[bytes]:
        yield b'{"message":'
        await deleted.wait()
        yield b'"?"}'

    monkeypatch.setattr(request_body, "read_body", noted)
    bob = await world.account("bob")
    key = bearer((await world.new_key(bob, Scope.WORKFLOW_EXECUTE)).text)
    asking = asyncio.create_task(world.http.post("/api/v1/gates", headers=key, content=late()))
    async with asyncio.timeout(60):
        await admitted.wait()
        await delete_account(world.services, bob.id)
        deleted.set()
        assert (await asking).status_code == 401
    async with world.services.store.view() as view:
        assert not (await view.workflows.visible_to(bob.id, PageRequest(1, 1))).rows


async def test_questions_that_are_alike_are_one_version(world: World) -> None:
    """Rows and messages make no version; questions in turns find theirs again. GT-4."""
    key = await agent(world)
    other = [{"name": "offers", "rows": []}]
    for at in range(3):
        await asked(world, key, message=f"Number {at}?")
        await asked(world, key, groups=other)
    (workflow,) = (await world.get("/api/v1/workflows")).json()["items"]
    run = (await world.get("/api/v1/executions")).json()["items"][0]
    status = (await world.get(f"/api/v1/executions/{run['executionId']}")).json()
    assert (workflow["name"], workflow["id"]) == ("Gates", run["workflowId"])
    assert status["workflowVersion"] == 2
    await asked(world, key, groups=other, timeout=60_000)
    newest = (await world.get("/api/v1/executions")).json()["items"][0]
    status = (await world.get(f"/api/v1/executions/{newest['executionId']}")).json()
    assert status["workflowVersion"] == 3


async def test_many_ask_at_once(world: World) -> None:
    """Of racing questions each is asked, under its own approvers, and none is lost. GT-4."""
    key = await agent(world)
    names = [(await world.account(f"p{at}")).email for at in range(8)]
    made = await asyncio.gather(*(asked(world, key, approvers=[name]) for name in names))
    async with world.services.store.view() as view:
        for name, one in zip(names, made, strict=True):
            (found,) = await view.approvals.of_execution(one["executionId"])
            assert found.approvers == (name,)


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ({}, "message: is required"),
        ({"message": " "}, "message: must not be empty"),
        ({"message": "?", "rows": []}, "rows: "),
        ({"message": "?", "groups": None}, "groups: "),
        ({"message": "?", "groups": [{"name": "a"}]}, "rows: is required"),
        ({"message": "?", "groups": [{"name": "a", "rows": [1]}]}, "groups[0].rows[0]"),
        (
            {"message": "?", "groups": [{"name": "a", "rows": [{}], "rowKey": "id"}]},
            "groups.a.rows: row 0: id is missing or repeated",
        ),
        (
            {"message": "?", "groups": [{"name": "a", "rows": []}, {"name": "a", "rows": []}]},
            "groups[1].name",
        ),
        (
            {
                "message": "?",
                "groups": [{"name": "a", "rows": [], "columns": [{"key": "b", "type": "enum"}]}],
            },
            "groups[0].columns[0].options: is required",
        ),
        ({"message": "?", "approvers": [""]}, "approvers[0]"),
        ({"message": "?", "timeout": 0}, "timeout"),
    ],
)
async def test_a_mistake_is_named_as_it_was_sent(world: World, body: Any, says: str) -> None:
    """What is wrong with a question is 400 with the field of the request, and asks nobody."""
    answer = await world.http.post("/api/v1/gates", headers=await agent(world), json=body)
    assert answer.status_code == 400, answer.text
    assert says in answer.json()["error"]
    assert (await world.get("/api/v1/approvals")).json()["total"] == 0


async def test_what_is_no_gate_is_not_found(world: World) -> None:
    """Another execution, one of somebody else, and none at all are no gates: 404. GT-1."""
    key = await agent(world)
    other, _ = await world.paused()
    foreign = await world.account("bob")
    theirs = bearer((await world.new_key(foreign, Scope.EXECUTION_READ)).text)
    opened = await asked(world, key)
    assert (await gate(world, key, other)).status_code == 404
    assert (await gate(world, key, "exec_none")).status_code == 404
    assert (await gate(world, theirs, opened["executionId"])).status_code == 404


async def test_a_workflow_of_the_same_name_is_left_alone(world: World) -> None:
    """A workflow that somebody called so is no place for gates: a conflict that says so. GT-4."""
    await world.workflow(name="Gates")
    answer = await world.http.post("/api/v1/gates", headers=await agent(world), json=ASKED)
    assert answer.status_code == 409
    assert "rename or delete it" in answer.json()["error"]


async def test_a_gate_that_is_cancelled_or_over_releases_nothing(world: World) -> None:
    """It ends with its execution, and by the clock: nothing is released then."""
    key = await agent(world)
    first, second = await asked(world, key), await asked(world, key, timeout=60_000)
    await executions.cancel_execution(world.services, OPERATOR, first["executionId"])
    world.clock.advance(60_000)
    found = [(await gate(world, key, one["executionId"])).json() for one in (first, second)]
    assert [(one["status"], one["groups"]) for one in found] == [
        ("CANCELLED", None), ("REJECTED", None),
    ]  # fmt: skip
    assert found[1]["decisionSource"] == "timeout"


async def test_who_asks_chooses_among_people_who_are_known_here(world: World) -> None:
    """An agent names active accounts, or whom the operator trusts: no stranger is mailed. GT-5."""
    key, bob = await agent(world), await world.account("bob")
    for name in (bob.email, bob.id, "BOB@example.org"):
        await asked(world, key, approvers=[name])
    wrong = ["stranger@evil.example", "acc_nothing", "group:board", "{{ variables.message }}"]
    await set_account(world.services, OPERATOR, bob.id, status=AccountStatus.DISABLED)
    for name in (*wrong, "bob@example.org(x)", bob.email):
        refused = await world.http.post(
            "/api/v1/gates", headers=key, json={**ASKED, "approvers": [name]}
        )
        assert refused.status_code == 400, name
        assert "approvers[0]" in refused.json()["error"]


async def test_a_bound_key_asks_its_own_people(world: World) -> None:
    """A key that is bound to approvers asks these, named or not, and nobody else. GT-5."""
    bob, cyd = await world.account("bob"), await world.account("cyd")
    scopes = {*Scope.ordinary()} - {Scope.APPROVAL_RESPOND}
    made = await keys.create_key(
        world.services, world.ann.id, "key", scopes, approvers=[bob.id, "boss@away.example"]
    )
    key = bearer(made.text)
    for given, wanted in (
        ({}, (bob.id, "boss@away.example")),
        ({"approvers": [bob.email]}, (bob.email,)),
        ({"approvers": ["Boss@Away.example"]}, ("Boss@Away.example",)),
    ):
        opened = await asked(world, key, **given)
        async with world.services.store.view() as view:
            (found,) = await view.approvals.of_execution(opened["executionId"])
        assert found.approvers == wanted
    refused = await world.http.post(
        "/api/v1/gates", headers=key, json={**ASKED, "approvers": [cyd.email]}
    )
    assert (refused.status_code, refused.json()["error"]) == (
        400, "approvers[0]: this key is bound to other approvers",
    )  # fmt: skip
    other = await agent(world)
    gate_of_other = await asked(world, other, groups=[], approvers=[cyd.email])
    (workflow,) = (await world.get("/api/v1/workflows")).json()["items"]
    start = f"/api/v1/workflows/{workflow['id']}/executions"
    again = f"/api/v1/executions/{gate_of_other['executionId']}/redrive"
    await world.post(f"/api/v1/executions/{gate_of_other['executionId']}/cancel")
    for path, body in ((start, {"inputs": {"message": "Pay?"}}), (again, {})):
        refused = await world.http.post(path, headers=key, json=body)
        assert (refused.status_code, "bound to other" in refused.text) == (403, True)
