"""The typed client against the real server."""

from dataclasses import replace
from pathlib import Path

import pytest

from wfcore_client import AsyncClient, BadRequest, Client, Conflict, NotFound, Unauthorized
from wfcore_client.shapes import ApprovalStatus, EventKind, ExecutionStatus

from .flows import ECHO, REFUNDS
from .site import ApiCaller


@pytest.fixture
def client(ann: ApiCaller):
    with Client(ann.site.server.url, ann.key.text) as made:
        yield made


def test_a_whole_execution(ann: ApiCaller, client: Client, tmp_path: Path) -> None:
    """Start, rest, look, decide with edited rows, follow, fetch the result and the file."""
    started = client.start(ann.workflow(REFUNDS), {"customer": "Ann"})
    assert client.rest(started.execution_id).status is ExecutionStatus.AWAITING_APPROVAL
    (open_one,) = client.approvals_of(started.execution_id).approvals
    approval = client.approval(open_one.id)
    (group,) = approval.reviewable_groups
    rows = [{**group.items[0], "amount": 7}]
    with pytest.raises(Conflict):
        client.approve(replace(approval, items_hash="0" * 64))
    decided = client.approve(approval, {"refunds": rows}, "ok")
    assert decided.status is ApprovalStatus.APPROVED
    kinds = [event.kind for event in client.events(started.execution_id)]
    assert (kinds[0], kinds[-1]) == (EventKind.EXECUTION_PENDING, EventKind.EXECUTION_COMPLETED)
    assert client.result(started.execution_id).status is ExecutionStatus.COMPLETED
    (artifact,) = client.list_artifacts(started.execution_id).artifacts
    assert b'"amount":7' in client.download(artifact, tmp_path / "paid").read_bytes()


def test_refusals_are_typed(ann: ApiCaller, client: Client) -> None:
    """Each refusal is an exception of its own with the server's words."""
    workflow_id = ann.workflow(REFUNDS)
    with pytest.raises(NotFound, match="404"):
        client.execution("exec_unknown")
    with pytest.raises(BadRequest, match="limit"):
        client.start(workflow_id, {"limit": "many"})
    started = client.start(workflow_id, wait_s=20)
    with pytest.raises(Conflict):
        client.result(started.execution_id)
    with Client(ann.site.server.url, "wfk_wrong") as stranger, pytest.raises(Unauthorized):
        stranger.list_workflows()


def test_the_same_key_starts_once(ann: ApiCaller, client: Client) -> None:
    """With an idempotency key a start may be sent again, and starts nothing then."""
    workflow_id = ann.workflow(ECHO)
    first, second = (client.start(workflow_id, idempotency_key="once") for _ in range(2))
    assert first.execution_id == second.execution_id
    assert client.list_executions(workflow_id).total == 1


async def test_asyncio(ann: ApiCaller) -> None:
    """The client for asyncio does the same."""
    workflow_id = ann.workflow(ECHO)
    async with AsyncClient(ann.site.server.url, ann.key.text) as client:
        started = await client.start(workflow_id, {"word": "hello"})
        assert [event.number async for event in client.events(started.execution_id)]
        assert (await client.result(started.execution_id, wait_s=20)).output == "hello"
        assert (await client.explain(started.execution_id)).lines
