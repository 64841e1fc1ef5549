"""GET /api/v1/executions/{id}/explain."""

from tests.support.http_world import World, bearer
from wfcore.model.access import Scope


async def test_an_explanation_has_the_documented_shape(world: World):
    """XP-1: what it waits for, whom to ask, and until when, in text and in fields."""
    execution, approval = await world.paused()
    answer = await world.get(f"/api/v1/executions/{execution}/explain")
    assert answer.status_code == 200
    said = answer.json()
    (line,) = said.pop("lines")
    assert said == {
        "executionId": execution,
        "status": "AWAITING_APPROVAL",
        "at": world.clock.now(),
    }
    assert approval in line.pop("text")
    assert line == {
        "code": "AWAITING_APPROVAL",
        "until": world.clock.now() + 86_400_000,
        "stepName": "review",
        "approvalId": approval,
        "approvers": [],
        "given": 0,
        "required": 1,
        "executionId": None,
    }


async def test_an_explanation_needs_execution_read(world: World):
    """Its scope is EXECUTION_READ; without it the answer is 401. AU-4."""
    execution = await world.start(await world.workflow())
    for scope, status in ((Scope.EXECUTION_READ, 200), (Scope.EXECUTION_CANCEL, 401)):
        key = await world.new_key(None, scope)
        url = f"/api/v1/executions/{execution}/explain"
        assert (await world.get(url, headers=bearer(key.text))).status_code == status
