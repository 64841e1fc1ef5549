"""The endpoint that starts an execution again, and says beforehand what that means. EX-35."""

import pytest

from tests.support.http_world import World, code
from wfcore.ports.runtime import StepEnd


async def failed(world: World) -> tuple[str, str]:
    """An execution that failed at the second of three steps, and the URL of its redrives."""
    workflow = await world.workflow(code("one"), code("two"), code("three"))
    id = await world.start(workflow, a="x")
    await world.run(StepEnd("first"), StepEnd(error="broken"))
    world.clock.advance(1_000)
    return id, f"/api/v1/executions/{id}/redrive"


async def test_a_dry_run_answers_the_plan_and_starts_nothing(world: World) -> None:
    """200 with what is kept, what runs again, how often it had begun, and a digest."""
    id, url = await failed(world)
    answer = await world.post(url, {"dryRun": True})
    assert answer.status_code == 200, answer.text
    plan = answer.json()
    assert plan == {
        "digest": plan["digest"],
        "from": "two",
        "definition": "same",
        "version": 1,
        "steps": [
            {"step": "one", "plan": "kept", "begun": 1},
            {"step": "two", "plan": "again", "begun": 1},
            {"step": "three", "plan": "new", "begun": 0},
        ],
        "changes": [],
    }
    assert (await world.get(f"/api/v1/executions/{id}")).json()["redrivenAs"] is None


async def test_a_plan_is_carried_out_by_its_digest_once(world: World) -> None:
    """202; the same digest again is 409, since the execution has been redriven meanwhile."""
    _, url = await failed(world)
    wanted = {"from": "one", "inputs": {"a": "y"}}
    digest = (await world.post(url, wanted | {"dryRun": True})).json()["digest"]
    first = await world.post(url, wanted | {"digest": digest})
    assert first.status_code == 202, first.text
    made = (await world.get(f"/api/v1/executions/{first.json()['executionId']}")).json()
    assert (made["inputs"], made["completedSteps"]) == ({"a": "y"}, 0)
    again = await world.post(url, wanted | {"digest": digest})
    assert again.status_code == 409
    assert (await world.post(url, {"digest": digest})).status_code == 409


async def test_the_newest_version_runs_where_it_is_wanted(world: World) -> None:
    """Its number is the plan's version, and what it says differently is listed."""
    _, url = await failed(world)
    await world.workflow(code("one"), code("two", timeout_ms=5_000), code("four"))
    plan = (await world.post(url, {"definition": "newest", "dryRun": True})).json()
    assert [(one["step"], one["plan"]) for one in plan["steps"]] == [
        ("one", "kept"),
        ("two", "again"),
        ("four", "new"),
    ]
    assert (plan["version"], plan["changes"]) == (2, ["two: timeout"])


@pytest.mark.parametrize(
    ("body", "status", "error"),
    [
        ({"from": "none"}, 400, "from"),
        ({"from": "three"}, 409, "two"),
        ({"from": 1}, 400, "from"),
        ({"definition": "older"}, 400, "definition"),
        ({"inputs": []}, 400, "inputs"),
        ({"inputs": {"a": 2**63}}, 400, "inputs.a"),
        ({"dryRun": "yes"}, 400, "dryRun"),
        ({"step": "two"}, 400, "step"),
        ({"digest": "x"}, 409, "plan"),
    ],
)
async def test_what_cannot_be_redriven_is_refused_by_name(
    world: World, body: dict[str, object], status: int, error: str
) -> None:
    """The field or the step stands in the error; nothing is started, nor planned."""
    id, url = await failed(world)
    for dry in ({}, {"dryRun": True}):
        if "digest" in body and dry:
            continue
        answer = await world.post(url, dry | body)
        assert (answer.status_code, error in answer.text) == (status, True), answer.text
    assert (await world.get(f"/api/v1/executions/{id}")).json()["redrivenAs"] is None


async def test_a_completed_execution_is_redriven_only_from_a_step(world: World) -> None:
    """Without `from` it is 404, as it always was."""
    id = await world.finished()
    url = f"/api/v1/executions/{id}/redrive"
    assert (await world.post(url)).status_code == 404
    assert (await world.post(url, {"dryRun": True})).status_code == 404
    assert (await world.post(url, {"from": "fetch"})).status_code == 202


async def test_a_start_like_an_execution_takes_its_inputs(world: World) -> None:
    """Inputs that are given take the place of the old ones. EX-36."""
    id, _ = await failed(world)
    old = (await world.get(f"/api/v1/executions/{id}")).json()
    url = f"/api/v1/workflows/{old['workflowId']}/executions"
    answer = await world.post(url, {"like": id, "inputs": {"b": 1}})
    assert answer.status_code == 202, answer.text
    made = (await world.get(f"/api/v1/executions/{answer.json()['executionId']}")).json()
    assert (made["inputs"], made["redriveOf"]) == ({"a": "x", "b": 1}, None)
    assert (await world.post(url, {"like": "exec_0"})).status_code == 404
