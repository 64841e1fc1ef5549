"""Agents at `/mcp`, with the client of the official SDK over real sockets. MC-1 to MC-5."""

import asyncio
import importlib.util
import json
import re
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from io import BytesIO
from typing import Any

import httpx2
import jsonschema_rs
import pytest

from adapters_http.app import HttpConfig
from tests.support.distribution import missing
from tests.support.http_world import World, code, review
from wfcore.model.access import OPERATOR, Permission, Scope
from wfcore.model.page import PageRequest
from wfcore.model.workflow import DataStep, Variable, VariableType
from wfcore.ports.runtime import LeftFile, StepEnd
from wfcore.usecases.executions import executions
from wfcore.usecases.workflows import workflows

AGENT = {*Scope.ordinary()} - {Scope.APPROVAL_RESPOND}
ERAS = ["2026-07-28", "legacy"]
"""Revisions of the protocol: each request for itself, and those that begin with a handshake."""

if importlib.util.find_spec("mcp") is None:
    missing("no mcp: pip install 'wfcore[mcp]'")


@pytest.fixture
def config() -> HttpConfig:
    return HttpConfig(agents=True, console=True)


@asynccontextmanager
async def agent(
    world: World, *scopes: Scope, owner: Any = None, era: str = ERAS[0]
) -> AsyncIterator[Any]:
    """The SDK's client with a key of these scopes, which cannot decide approvals."""
    from mcp import Client
    from mcp.client.streamable_http import streamable_http_client

    key = (await world.new_key(owner, *(scopes or AGENT))).text
    async with httpx2.AsyncClient(headers={"X-API-Key": key}, trust_env=False) as http:
        transport = streamable_http_client(f"{world.url}/mcp", http_client=http)
        async with Client(transport, mode=era, cache=None) as client:
            yield client


async def names(client: Any) -> set[str]:
    return {tool.name for tool in (await client.list_tools()).tools}


async def tool_of(client: Any, title: str) -> str:
    (found,) = [tool.name for tool in (await client.list_tools()).tools if tool.title == title]
    return str(found)


async def started(world: World) -> str:
    """The id of the newest execution, once there is one."""
    rows: Sequence[Any] = ()
    while not rows:
        found = await executions.list_executions(world.services, OPERATOR, PageRequest(1, 1))
        rows = found.rows
    return str(rows[0].id)


@pytest.mark.parametrize("era", ERAS)
async def test_an_agent_lists_starts_waits_at_an_approval_and_ends(world: World, era: str) -> None:
    """A workflow is a tool; its approval is input_required; what people release is the output."""
    await world.workflow(review(), name="Refund review", description="Reviews refunds.")
    async with agent(world, era=era) as client:
        (tool,) = [one for one in (await client.list_tools()).tools if one.title]
        assert (tool.title, tool.description) == ("Refund review", "Reviews refunds.")
        assert tool.name.startswith("refund_review_")
        called = await client.call_tool(tool.name, {})
        seen = called.structured_content
        assert (seen["state"], seen["status"]) == ("input_required", "AWAITING_APPROVAL")
        assert json.loads(called.content[0].text) == seen
        assert "you cannot" in seen["explanation"]
        id = seen["executionId"]
        (approval,) = (await world.get(f"/api/v1/approvals/execution/{id}")).json()["approvals"]
        assert seen["approvalUrl"] == f"{world.url}/approvals/{approval['id']}"
        asking = asyncio.create_task(client.call_tool("execution_status", {"executionId": id}))
        await world.post(f"/api/v1/approvals/{approval['id']}/approve")
        await world.run()
        seen = (await asyncio.wait_for(asking, 30)).structured_content
    assert (seen["state"], seen["approvalUrl"]) == ("completed", None)
    assert [row["id"] for row in seen["output"]["groups"]["refunds"]] == [1, 2]


async def test_variables_are_the_arguments(world: World) -> None:
    """Types, defaults and what is required; the default of a secret is not shown. MC-1."""
    declared = (
        Variable("order", VariableType.NUMBER, required=True),
        Variable("limit", VariableType.NUMBER, has_default=True, default=100),
        Variable("token", secret=True, has_default=True, default="hunter2"),
        Variable("tags", VariableType.ARRAY),
    )
    step = DataStep("echo", "{{ variables.order }}")
    variables = {one.name: one for one in declared}
    await world.workflow(step, name="Ünïcode — 漢字", variables=variables)
    async with agent(world) as client:
        (tool,) = [one for one in (await client.list_tools()).tools if one.title]
        assert "hunter2" not in tool.model_dump_json()
        assert tool.input_schema["required"] == ["order"]
        assert tool.input_schema["properties"] == {
            "order": {"type": "number"},
            "limit": {"type": "number", "default": 100},
            "token": {"type": "string", "description": "A secret: it is never shown again."},
            "tags": {"type": "array", "items": {}},
        }
        done = await client.call_tool(tool.name, {"order": 7})
        assert (done.structured_content["state"], done.structured_content["output"]) == (
            "completed", 7,
        )  # fmt: skip
        for given, says in (
            ({}, "order: is required"),
            ({"order": "x"}, "order: "),
            ({"order": 1, "limti": 2}, "limti: unknown argument; did you mean limit"),
        ):
            refused = await client.call_tool(tool.name, given)
            assert refused.is_error
            assert says in refused.content[0].text


async def test_two_keys_see_different_tools(world: World) -> None:
    """What a key may start, and what its scopes allow; VIEW alone is no tool. MC-1."""
    shared = await world.workflow(name="Shared")
    seen = await world.workflow(name="Only seen")
    await world.workflow(name="Private")
    bob = await world.account("bob")
    await workflows.share_workflow(world.services, OPERATOR, shared, bob.id, Permission.EXECUTE)
    await workflows.share_workflow(world.services, OPERATOR, seen, bob.id, Permission.VIEW)
    async with agent(world) as ann, agent(world, Scope.WORKFLOW_EXECUTE, owner=bob) as his:
        hers = {tool.title for tool in (await ann.list_tools()).tools} - {None}
        assert hers == {"Shared", "Only seen", "Private"}
        assert {tool.title for tool in (await his.list_tools()).tools} == {"Shared", None}
        assert await names(his) & {"execution_status", "execution_cancel"} == set()
        for title in ("Only seen", "Private"):
            refused = await his.call_tool(await tool_of(ann, title), {})
            assert (refused.is_error, "Tool not found" in refused.content[0].text) == (True, True)
        hidden = await his.call_tool("execution_status", {"executionId": "exec_1"})
        assert (hidden.is_error, "Unauthorized" in hidden.content[0].text) == (True, True)
        started = await his.call_tool(await tool_of(his, "Shared"), {})
        assert set(started.structured_content) == {"executionId", "state", "status"}


async def test_a_name_stays_when_others_come(world: World) -> None:
    """Names that read alike are told apart, and none changes with its neighbours. MC-1."""
    await world.workflow(name="Refund review")
    async with agent(world) as client:
        first = await tool_of(client, "Refund review")
        await world.workflow(name="refund-review!")
        await world.workflow(name="x" * 150)
        found = await names(client)
        assert await tool_of(client, "Refund review") == first
        assert len(found) == 5 + 3
        assert all(len(one) <= 64 and one.replace("_", "a").isalnum() for one in found)


@pytest.mark.parametrize("era", ERAS)
async def test_progress_is_told(world: World, era: str) -> None:
    """Each step that ends is progress of those that there are. MC-2."""
    await world.workflow(code("one"), code("two"), name="Steps")
    told: list[tuple[float, float | None]] = []

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        told.append((progress, total))

    async with agent(world, era=era) as client:
        name = await tool_of(client, "Steps")
        call = asyncio.create_task(client.call_tool(name, {}, progress_callback=hear))
        await started(world)
        await world.run(StepEnd(1), StepEnd(2))
        done = await asyncio.wait_for(call, 30)
    assert (done.structured_content["state"], done.structured_content["output"]) == ("completed", 2)
    assert told == sorted(told)
    assert {total for _, total in told} == {2}


async def test_a_lost_connection_loses_no_execution(world: World) -> None:
    """Whoever leaves while it runs finds the result by its id. MC-2."""
    await world.workflow(name="Long")
    async with agent(world) as client:
        name = await tool_of(client, "Long")
        call = asyncio.create_task(client.call_tool(name, {}))
        id = await started(world)
        call.cancel()
        await asyncio.gather(call, return_exceptions=True)
    await world.run(StepEnd("done"))
    async with agent(world) as client:
        found = await client.call_tool("execution_status", {"executionId": id})
    assert (found.structured_content["state"], found.structured_content["output"]) == (
        "completed", "done",
    )  # fmt: skip


async def test_cancel_is_cancel(world: World) -> None:
    """A call ends an execution; what has ended is refused in words. MC-2."""
    flow = await world.workflow(name="Long")
    id = await world.start(flow)
    async with agent(world) as client:
        found = await client.call_tool("execution_cancel", {"executionId": id})
        assert (found.structured_content["state"], found.is_error) == ("cancelled", False)
        again = await client.call_tool("execution_cancel", {"executionId": id})
        assert again.is_error
        none = await client.call_tool("execution_status", {"executionId": "exec_none"})
        assert (none.is_error, "Execution not found" in none.content[0].text) == (True, True)
        for given in ({}, {"executionId": 7}, {"executionId": id, "waitSeconds": 51}):
            assert (await client.call_tool("execution_status", given)).is_error


async def test_a_failure_is_an_error_in_words(world: World) -> None:
    """A failed execution says why, and no secret of its inputs. MC-3."""
    variables = {"token": Variable("token", secret=True)}
    flow = await world.workflow(name="Fails", variables=variables)
    id = await world.start(flow, token="hunter2-hunter2")
    await world.run(StepEnd(None, error="exit status 3: bad token hunter2-hunter2"))
    async with agent(world) as client:
        found = await client.call_tool("execution_status", {"executionId": id})
    assert (found.is_error, found.structured_content["state"]) == (True, "failed")
    assert "exit status 3" in found.structured_content["explanation"]
    assert "hunter2" not in found.model_dump_json()


async def test_a_repeated_call_starts_once(world: World) -> None:
    """The key for idempotency in `_meta` is that of the header. IK-1."""
    await world.workflow(DataStep("one", 1), name="Once")
    meta = {"wfcore/idempotencyKey": "call-1"}
    async with agent(world) as client:
        name = await tool_of(client, "Once")
        first = await client.call_tool(name, {}, meta=meta)
        again = await client.call_tool(name, {}, meta=meta)
        assert first.structured_content == again.structured_content
        bad = await client.call_tool(name, {}, meta={"wfcore/idempotencyKey": ""})
        assert (bad.is_error, "wfcore/idempotencyKey" in bad.content[0].text) == (True, True)
    assert (await world.get("/api/v1/executions")).json()["total"] == 1


async def test_a_call_may_carry_a_reference(world: World) -> None:
    """In `_meta`, beside the arguments of the workflow. EX-38."""
    await world.workflow(DataStep("one", 1), name="Once")
    async with agent(world) as client:
        name = await tool_of(client, "Once")
        await client.call_tool(name, {}, meta={"wfcore/reference": "Order 7"})
        bad = await client.call_tool(name, {}, meta={"wfcore/reference": 7})
        assert (bad.is_error, "wfcore/reference" in bad.content[0].text) == (True, True)
    (run,) = (await world.get("/api/v1/executions")).json()["items"]
    assert run["reference"] == "Order 7"


async def test_a_redrive_begins_with_its_plan(world: World) -> None:
    """Without the plan's digest nothing starts; a plan that has changed starts nothing. MC-5."""
    variables = {"limit": Variable("limit", VariableType.NUMBER)}
    flow = await world.workflow(code("fetch"), review(), name="Pays", variables=variables)
    id = await world.start(flow, limit=1)
    await world.run(StepEnd(1))
    await world.post(f"/api/v1/executions/{id}/cancel")
    async with agent(world) as client:
        asked = {"executionId": id, "inputs": {"limit": 2}}
        planned = await client.call_tool("execution_redrive", asked)
        assert not planned.is_error
        plan = planned.structured_content["plan"]
        assert [(one["step"], one["plan"], one["begun"]) for one in plan["steps"]] == [
            ("fetch", "kept", 1),
            ("review", "asked", 1),
        ]
        assert (await world.get("/api/v1/executions")).json()["total"] == 1
        sent = {**asked, "digest": plan["digest"]}
        call = asyncio.create_task(client.call_tool("execution_redrive", sent))
        while (await world.get("/api/v1/executions")).json()["total"] == 1:
            """Until the redrive is accepted."""
        await world.run()
        made = (await call).structured_content
        assert made["state"] == "input_required"
        view = (await world.get(f"/api/v1/executions/{made['executionId']}")).json()
        assert (view["redriveOf"], view["inputs"]) == (id, {"limit": 2})
        late = await client.call_tool("execution_redrive", sent)
        assert (late.is_error, "has changed" in late.content[0].text) == (True, True)
        wrong = await client.call_tool("execution_redrive", {"executionId": id, "from": 7})
        assert (wrong.is_error, "from: must be" in wrong.content[0].text) == (True, True)


async def test_an_execution_is_started_again_with_its_inputs(world: World) -> None:
    """Some of them replaced; the reference is taken, too. EX-36."""
    step = DataStep("one", "{{ variables.city }}")
    variables = {"city": Variable("city"), "day": Variable("day")}
    flow = await world.workflow(step, name="Again", variables=variables)
    first = await world.start(flow, city="Oslo", day="Monday")
    async with agent(world) as client:
        given = {"executionId": first, "inputs": {"day": "Friday"}}
        made = (await client.call_tool("execution_start_again", given)).structured_content
        bad = await client.call_tool("execution_start_again", {**given, "inputs": 7})
        assert (bad.is_error, "inputs: must be an object" in bad.content[0].text) == (True, True)
    view = (await world.get(f"/api/v1/executions/{made['executionId']}")).json()
    assert (view["inputs"], view["redriveOf"]) == ({"city": "Oslo", "day": "Friday"}, None)


async def test_the_files_of_an_ended_execution_are_listed(world: World) -> None:
    """With links, for a key that may read artifacts. AR-1."""
    id = await world.start(await world.workflow(name="Leaves"))
    kept = await world.services.files.store("exec", "art_7", BytesIO(b"1,2"))
    left = LeftFile("art_7", "a.csv", kept.storage_key, 3, "text/csv", kept.sha256, True)
    await world.run(StepEnd("done", files=(left,)))
    async with agent(world) as client:
        seen = await client.call_tool("execution_status", {"executionId": id})
    (file,) = seen.structured_content["files"]
    assert (file["name"], file["size"]) == ("a.csv", 3)
    assert (await world.http.get(file["downloadUrl"])).text == "1,2"
    async with agent(world, Scope.WORKFLOW_EXECUTE, Scope.EXECUTION_READ) as client:
        seen = await client.call_tool("execution_status", {"executionId": id})
    assert seen.structured_content["files"] == []


async def test_an_agent_asks_only_people_who_are_known(world: World) -> None:
    """Accounts of this server; strangers are refused by field, and nobody is asked. GT-5."""
    async with agent(world) as client:
        asked = {"message": "Pay?", "approvers": ["stranger@away.example"]}
        refused = await client.call_tool("ask_people", asked)
        assert (refused.is_error, "approvers[0]" in refused.content[0].text) == (True, True)
        assert (await world.get("/api/v1/approvals")).json()["total"] == 0
        asked["approvers"] = [world.ann.email]
        found = (await client.call_tool("ask_people", asked)).structured_content
        assert found["state"] == "input_required"


async def test_an_agent_asks_people_and_cannot_answer(world: World) -> None:
    """It opens a gate; no tool decides; its key is refused where people decide. MC-4, GT-3."""
    async with agent(world) as client:
        rows = [{"id": 1}, {"id": 2}]
        asked = {"message": "Pay?", "groups": [{"name": "pay", "rowKey": "id", "rows": rows}]}
        seen = (await client.call_tool("ask_people", asked)).structured_content
        assert seen["state"] == "input_required"
        id = seen["executionId"]
        (approval,) = (await world.get(f"/api/v1/approvals/execution/{id}")).json()["approvals"]
        found = await names(client)
        assert found == {"execution_status", "execution_cancel", "ask_people"} | found - {""}
        assert not [one for one in found if "approve" in one or "decide" in one]
        for guess in ("approve", "approval_approve", "decide_approval"):
            refused = await client.call_tool(guess, {"approvalId": approval["id"]})
            assert (refused.is_error, "Tool not found" in refused.content[0].text) == (True, True)
        bad = await client.call_tool("ask_people", {"message": ""})
        assert (bad.is_error, "message: must not be empty" in bad.content[0].text) == (True, True)
        await world.post(f"/api/v1/approvals/{approval['id']}/approve",
                         {"editedItems": {"pay": [{"id": 2}]}})  # fmt: skip
        await world.run()
        seen = (await client.call_tool("execution_status", {"executionId": id})).structured_content
    assert (seen["state"], seen["output"]["groups"]) == ("completed", {"pay": [{"id": 2}]})


CALL = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
ACCEPT = {"Accept": "application/json, text/event-stream"}


@pytest.mark.parametrize(
    ("scopes", "headers", "status"),
    [
        (None, {}, 401),
        ({Scope.EXECUTION_READ}, {}, 401),
        (Scope.ordinary(), {}, 403),
        (AGENT, {"Origin": "https://evil.example"}, 403),
        (AGENT, {"Content-Type": "text/plain"}, 400),
        (AGENT, {}, 200),
    ],
    ids=["no key", "no scope", "may decide", "foreign page", "no JSON", "fine"],
)
async def test_who_is_let_in(world: World, scopes: Any, headers: Any, status: int) -> None:
    """A key in a header, which may start and not decide, and no page of another origin. MC-4."""
    key = {"X-API-Key": (await world.new_key(None, *scopes)).text} if scopes else {}
    answer = await world.http.post(
        "/mcp",
        content=json.dumps(CALL),
        headers={"Content-Type": "application/json", **ACCEPT, **key, **headers},
    )
    assert answer.status_code == status, answer.text
    assert answer.headers["x-request-id"]
    if status in (401, 403):
        assert set(answer.json()) == {"error"}
    if status == 200:
        assert answer.headers["x-ratelimit-remaining"] == "299"


async def test_a_key_in_the_address_opens_nothing(world: World) -> None:
    """Addresses are logged: the query carries no key here. MC-4."""
    key = (await world.new_key(None, *AGENT)).text
    answer = await world.http.post(f"/mcp?api_key={key}", json=CALL, headers=ACCEPT)
    assert answer.status_code == 401


async def test_other_methods_and_large_bodies_are_refused(world: World) -> None:
    """There is no stream to open and no session to end; a body has a limit."""
    key = {"X-API-Key": (await world.new_key(None, *AGENT)).text}
    for method in ("GET", "DELETE"):
        answer = await world.http.request(method, "/mcp", headers=key)
        assert (answer.status_code, answer.headers["allow"]) == (405, "POST")
    large = {**CALL, "params": {"x": "a" * 1_048_576}}
    assert (await world.http.post("/mcp", json=large, headers=ACCEPT | key)).status_code == 413
    broken = {"Content-Type": "application/json", **ACCEPT, **key}
    answer = await world.http.post("/mcp", content=b"{", headers=broken)
    assert answer.status_code == 400


async def test_where_agents_are_not_let_in_there_is_nothing(tmp_path: Any) -> None:
    """Without the setting the path does not exist."""
    from tests.support.http_world import a_world

    async with a_world(tmp_path, HttpConfig()) as world:
        assert (await world.post("/mcp", CALL)).status_code == 404


async def test_a_cancelled_question_is_told(world: World) -> None:
    """Who waits for people learns that the execution ended otherwise."""
    async with agent(world) as client:
        seen = (await client.call_tool("ask_people", {"message": "?"})).structured_content
        id = seen["executionId"]
        asking = asyncio.create_task(client.call_tool("execution_status", {"executionId": id}))
        await executions.cancel_execution(world.services, OPERATOR, id)
        found = await asyncio.wait_for(asking, 30)
    assert (found.structured_content["state"], found.is_error) == ("cancelled", False)


async def test_a_desktop_agent_speaks_over_stdin(world: World) -> None:
    """`wfcore mcp` passes on what the server elsewhere offers, progress included. MC-1."""
    from mcp import Client, StdioServerParameters

    await world.workflow(DataStep("one", 1), name="Once")
    told: list[float] = []

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        told.append(progress)

    environment = {"WFCORE_URL": world.url, "WFCORE_KEY": (await world.new_key(None, *AGENT)).text}
    command = StdioServerParameters(
        command=sys.executable, args=["-m", "wfserver", "mcp"], env=environment
    )
    async with Client(command, cache=None) as client:
        name = await tool_of(client, "Once")
        done = await client.call_tool(name, {}, progress_callback=hear)
        assert (done.structured_content["state"], done.structured_content["output"]) == (
            "completed", 1,
        )  # fmt: skip
        assert (await client.call_tool(name, {"x": 1})).is_error
        meta = {"wfcore/idempotencyKey": "call-1"}
        ids = [
            (await client.call_tool(name, {}, meta=meta)).structured_content["executionId"]
            for _ in range(2)
        ]
    assert (told, ids[0] == ids[1]) == ([1], True)


def strict_problems(schema: Any, path: str = "") -> list[str]:
    """What a provider of models refuses of a tool's arguments, all tools with them."""
    found = [] if set(schema) <= KEYWORDS else [f"{path}: {sorted(set(schema) - KEYWORDS)}"]
    kind = schema.get("type")
    if schema and kind not in ("object", "array", "string", "number", "integer", "boolean"):
        found.append(f"{path}: type {kind}")
    if (kind == "array") != ("items" in schema):
        found.append(f"{path}: an array needs items, and nothing else has them")
    inner = schema.get("properties", {})
    if not {*schema.get("required", ())} <= {*inner}:
        found.append(f"{path}: required what is no property")
    found += [f"{path}.{name}: its name" for name in inner if not ARGUMENT.fullmatch(name)]
    below = [*inner.items(), *([("[]", schema["items"])] if "items" in schema else [])]
    return found + [one for name, part in below for one in strict_problems(part, f"{path}.{name}")]


KEYWORDS = {
    *("type", "properties", "required", "additionalProperties", "items", "enum"),
    *("description", "default", "minimum", "maximum"),
}
ARGUMENT = re.compile(r"[a-zA-Z0-9_.-]{1,64}", re.ASCII)


async def test_every_tool_is_one_that_providers_of_models_take(world: World) -> None:
    """Every schema of the list is JSON Schema, and passes where a provider is strict. MC-1."""
    declared = [
        Variable(f"{kind}{at}", kind, **more)
        for kind in VariableType
        for at, more in enumerate(({}, {"required": True}, {"secret": True}))
    ]
    declared.append(Variable("all", VariableType.ARRAY, has_default=True, default=[[1], "a"]))
    step = DataStep("echo", "{{ variables.all }}")
    await world.workflow(step, name="Äll", variables={one.name: one for one in declared})
    async with agent(world) as client:
        listed = (await client.list_tools()).tools
    assert len(listed) == 6
    for tool in listed:
        assert ARGUMENT.fullmatch(tool.name)
        for schema in (tool.input_schema, tool.output_schema):
            jsonschema_rs.meta.validate(schema)
        assert tool.input_schema["type"] == "object"
        assert strict_problems(tool.input_schema) == []
