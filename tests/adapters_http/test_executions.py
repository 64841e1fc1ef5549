"""Workflows and executions under v1: what each endpoint answers, and when it refuses."""

import asyncio

from tests.support.http_world import World, bearer, code, review
from wfcore.model.access import OPERATOR, Permission, Tier
from wfcore.model.workflow import Variable, VariableType
from wfcore.ports.runtime import StepEnd
from wfcore.rules.definition.written import read_definition
from wfcore.usecases.workflows import workflows

STATUS_FIELDS = {
    "executionId", "workflowId", "workflowName", "triggerSource", "status", "statusReason",
    "currentStep", "completedSteps", "totalSteps", "startedAt", "error", "stepResults", "usage",
    "redriveOf", "reference", "redrivenAs", "parentExecutionId", "workflowVersion", "startedBy",
    "inputs", "earlierResults",
}  # fmt: skip
STEP_FIELDS = {
    "status", "output", "duration", "startedAt", "completedAt", "error", "attempts", "usage",
    "refusedArtifacts",
}  # fmt: skip


async def test_workflows_are_listed_by_name_with_their_steps(world: World):
    """Own and shared workflows, in pages, with exact total; others' are not there. AC-6."""
    bob = await world.account("bob")
    await world.workflow(name="b")
    await world.workflow(name="a", description="first")
    shared = await world.workflow(name="c", owner=bob)
    await world.workflow(name="d", owner=bob)
    await workflows.share_workflow(world.services, OPERATOR, shared, world.ann.id, Permission.VIEW)
    listed = (await world.get("/api/v1/workflows?size=2")).json()
    assert [one["name"] for one in listed["items"]] == ["a", "b"]
    assert (listed["total"], listed["page"], listed["size"]) == (3, 1, 2)
    second = (await world.get("/api/v1/workflows?size=2&page=2")).json()
    assert [one["id"] for one in second["items"]] == [shared]
    first = listed["items"][0]
    assert first["ownerId"] == world.ann.id
    fetch = {"name": "fetch", "kind": "code", "language": "bash", "source": ":"}
    assert first["workflow"] == [fetch]
    assert first["description"] == "first"


async def test_a_workflow_shows_its_variables_but_no_secret_default(world: World):
    """The default of a secret variable is masked. SC-1."""
    token = Variable("token", secret=True, has_default=True, default="hunter2-hunter2")
    limit = Variable("limit", VariableType.NUMBER, has_default=True, default=5)
    id = await world.workflow(variables={"token": token, "limit": limit})
    answer = await world.get(f"/api/v1/workflows/{id}")
    assert [one["default"] for one in answer.json()["variables"]] == ["***", 5]
    assert "hunter2" not in answer.text


async def test_a_workflow_shows_all_that_was_applied(world: World):
    """The shown definition says what was applied; lists leave it out."""
    document = {
        "name": "Whole",
        "variables": {"n": {"type": "number", "description": "How many"}},
        "steps": [{"name": "a", "kind": "code", "language": "bash", "source": ":"}],
        "output": {"n": "{{ variables.n }}"},
        "budget": {"maxCostUsd": "0.5"},
        "onInterrupt": "fail",
        "approverGroups": {"finance": ["eve@example.org"]},
        "concurrency": {"limit": 2},
    }
    applied = read_definition(document)
    id = (await workflows.apply_workflow(world.services, world.ann.id, applied)).id
    shown = (await world.get(f"/api/v1/workflows/{id}")).json()["definition"]
    assert read_definition(shown) == applied
    assert shown.keys() == document.keys()
    execution = await world.start(id, n=1)
    kept = (await world.get(f"/api/v1/executions/{execution}/definition")).json()["definition"]
    assert kept == shown
    assert "definition" not in (await world.get("/api/v1/workflows")).json()["items"][0]


async def test_what_is_invisible_is_as_missing(world: World):
    """The same bytes for what is not there and for what is somebody else's. AC-3, AC-4, AC-5."""
    bob = await world.account("bob")
    foreign = bearer((await world.new_key(bob)).text)
    execution, approval = await world.paused()
    workflow = (await world.get(f"/api/v1/executions/{execution}")).json()["workflowId"]
    paths = {
        "GET": ["workflows/{w}", "executions/{e}", "executions/{e}/result", "approvals/{a}",
                "approvals/execution/{e}", "executions/{e}/artifacts", "executions/{e}/events",
                "executions/{e}/artifacts/x", "executions/{e}/explain"],
        "POST": ["workflows/{w}/executions", "executions/{e}/cancel", "approvals/{a}/approve",
                 "approvals/{a}/reject", "executions/{e}/redrive"],
    }  # fmt: skip
    for method, templates in paths.items():
        for template in templates:
            real = template.format(w=workflow, e=execution, a=approval)
            none = template.format(w="wf_0", e="exec_0", a="appr_0")
            seen = await world.http.request(method, f"/api/v1/{real}", headers=foreign)
            missing = await world.http.request(method, f"/api/v1/{none}", headers=foreign)
            assert (seen.status_code, missing.status_code) == (404, 404), template
            assert seen.content == missing.content


async def test_a_viewer_may_not_start(world: World):
    """Visible but not permitted is 403. AC-2, AC-3."""
    bob = await world.account("bob")
    id = await world.workflow(owner=bob)
    await workflows.share_workflow(world.services, OPERATOR, id, world.ann.id, Permission.VIEW)
    url = f"/api/v1/workflows/{id}/executions"
    assert (await world.post(url)).status_code == 403
    await workflows.share_workflow(world.services, OPERATOR, id, world.ann.id, Permission.EXECUTE)
    assert (await world.post(url)).status_code == 202


async def test_a_start_is_accepted_as_pending(world: World):
    """202 with exactly the documented fields; the status view follows at once. EX-1."""
    workflow = await world.workflow()
    answer = await world.post(f"/api/v1/workflows/{workflow}/executions", {"inputs": {"a": 1}})
    assert answer.status_code == 202
    started = answer.json()
    assert started == {
        "executionId": started["executionId"],
        "status": "PENDING",
        "workflowId": workflow,
        "startedAt": world.clock.now(),
    }
    view = (await world.get(f"/api/v1/executions/{started['executionId']}")).json()
    assert view.keys() == STATUS_FIELDS
    assert (view["status"], view["triggerSource"]) == ("PENDING", "open_api")
    assert (view["completedSteps"], view["totalSteps"], view["currentStep"]) == (0, 1, None)


async def test_inputs_are_checked_against_their_declarations(world: World):
    """A wrong type or a missing required variable is 400, naming it. VM-4, VM-5."""
    count = Variable("count", VariableType.NUMBER, required=True)
    url = f"/api/v1/workflows/{await world.workflow(variables={'count': count})}/executions"
    for inputs, error in (
        ({}, "inputs.count: is required"),
        ({"count": "1"}, "inputs.count: must be a number"),
        ({"count": True}, "inputs.count: must be a number"),
    ):
        answer = await world.post(url, {"inputs": inputs})
        assert (answer.status_code, answer.json()) == (400, {"error": error})
    assert (await world.post(url, {"inputs": {"count": 1, "more": [1]}})).status_code == 202


async def test_the_status_view_follows_the_execution(world: World):
    """currentStep, counts, times and results; completedAt only at the end. EX-22."""
    workflow = await world.workflow(code("one"), code("two", continue_on_error=True), code("three"))
    id = await world.start(workflow)
    await world.run(StepEnd(1), StepEnd(error="no luck"))
    view = (await world.get(f"/api/v1/executions/{id}")).json()
    assert (view["status"], view["currentStep"]) == ("RUNNING", "three")
    assert (view["completedSteps"], view["totalSteps"]) == (2, 3)
    assert "completedAt" not in view
    assert list(view["stepResults"]) == ["one", "two", "three"]
    assert all(step.keys() == STEP_FIELDS for step in view["stepResults"].values())
    assert view["stepResults"]["three"]["duration"] is None
    assert view["usage"] == {"inputTokens": 0, "outputTokens": 0, "costUsd": "0"}


async def test_a_failed_execution_says_which_step_and_why(world: World):
    """error and statusReason name the step; the step that failed it is not completed. EX-10."""
    id = await world.start(await world.workflow(code("one"), code("two")))
    await world.run(StepEnd(1), StepEnd(error="exit status 3"))
    view = (await world.get(f"/api/v1/executions/{id}")).json()
    assert (view["status"], view["completedSteps"]) == ("FAILED", 1)
    assert view["error"] == "Step 'two' failed: exit status 3"
    assert view["statusReason"] == {"code": "STEP_FAILED", "stepName": "two", "approvalId": None}
    assert view["completedAt"] == world.clock.now()


async def test_the_result_is_there_from_the_end_on(world: World):
    """409 before the end; then results, duration and output. EX-8, EX-18."""
    id = await world.start(await world.workflow())
    early = await world.get(f"/api/v1/executions/{id}/result")
    assert early.status_code == 409
    world.clock.advance(1_500)
    await world.run(StepEnd({"n": 1}))
    result = (await world.get(f"/api/v1/executions/{id}/result")).json()
    assert result.keys() == {
        "executionId", "workflowId", "status", "stepResults", "duration", "output", "error",
        "usage", "completedAt", "earlierResults",
    }  # fmt: skip
    assert (result["status"], result["output"], result["duration"]) == ("COMPLETED", {"n": 1}, 1500)


async def test_a_cancelled_execution_has_a_result_without_output(world: World):
    """Cancel answers 200 with the status view; again, or after the end, it is 404. EX-7, EX-21."""
    id, approval = await world.paused()
    answer = await world.post(f"/api/v1/executions/{id}/cancel")
    assert (answer.status_code, answer.json()["status"]) == (200, "CANCELLED")
    assert answer.json()["statusReason"]["code"] == "CANCEL_REQUESTED"
    assert (await world.get(f"/api/v1/executions/{id}/result")).json()["output"] is None
    assert (await world.get(f"/api/v1/approvals/{approval}")).json()["status"] == "CANCELLED"
    for again in (id, "exec_0", await world.finished()):
        assert (await world.post(f"/api/v1/executions/{again}/cancel")).status_code == 404


async def test_executions_are_listed_newest_first_without_results(world: World):
    """Own executions; with one's own workflow, all of that workflow's. AC-4, AC-6."""
    bob = await world.account("bob")
    workflow, other = await world.workflow(), await world.workflow(name="other")
    await workflows.share_workflow(world.services, OPERATOR, workflow, bob.id, Permission.EXECUTE)
    mine = []
    for target in (workflow, other):
        world.clock.advance(1)
        mine.append(await world.start(target))
    foreign = bearer((await world.new_key(bob)).text)
    url = f"/api/v1/workflows/{workflow}/executions"
    theirs = (await world.post(url, headers=foreign)).json()["executionId"]

    async def ids(query: str, **more) -> list[str]:
        listed = (await world.get(f"/api/v1/executions?{query}", **more)).json()
        assert listed["total"] == len(listed["items"])
        assert all(
            one.keys() == STATUS_FIELDS - {"stepResults", "earlierResults", "inputs", "redrivenAs"}
            for one in listed["items"]
        )
        return [one["executionId"] for one in listed["items"]]

    assert await ids("") == [mine[1], mine[0]]
    assert set(await ids(f"workflowId={workflow}")) == {mine[0], theirs}
    assert await ids(f"workflowId={workflow}", headers=foreign) == [theirs]
    assert await ids("status=PENDING&workflowId=") == [mine[1], mine[0]]
    assert await ids("status=") == [mine[1], mine[0]]
    assert await ids("status=FAILED") == []


async def test_an_unknown_status_is_400(world: World):
    """Every state is a filter, and nothing else is."""
    for status in ("PENDING", "RUNNING", "COMPLETED", "FAILED", "CANCELLED", "INTERRUPTED",
                   "AWAITING_APPROVAL"):  # fmt: skip
        assert (await world.get(f"/api/v1/executions?status={status}")).status_code == 200
    for status in ("pending", "DONE", "PENDING,FAILED"):
        answer = await world.get(f"/api/v1/executions?status={status}")
        assert answer.status_code == 400
        assert answer.json()["error"].startswith("status: must be one of PENDING, ")


async def test_an_idempotency_key_gives_the_first_answer_again(world: World):
    """The same bytes, nothing started; another body is a conflict. IK-1, IK-2."""
    url = f"/api/v1/workflows/{await world.workflow()}/executions"
    headers = {**world.bearer, "Idempotency-Key": "once"}
    first = await world.post(url, {"inputs": {}}, headers=headers)
    again = await world.post(url, {"inputs": {}}, headers=headers)
    assert (again.status_code, again.content) == (202, first.content)
    assert again.headers["idempotent-replayed"] == "true"
    assert "idempotent-replayed" not in first.headers
    assert (await world.post(url, {"inputs": {"a": 1}}, headers=headers)).status_code == 409
    assert (await world.get("/api/v1/executions")).json()["total"] == 1


async def test_racing_starts_with_one_key_start_once(world: World):
    """Of many at once exactly one starts; all have its answer. IK-1."""
    url = f"/api/v1/workflows/{await world.workflow()}/executions"
    headers = {**world.bearer, "Idempotency-Key": "race"}
    answers = await asyncio.gather(*(world.post(url, {}, headers=headers) for _ in range(12)))
    assert {answer.status_code for answer in answers} == {202}
    assert len({answer.content for answer in answers}) == 1
    assert sum("idempotent-replayed" not in answer.headers for answer in answers) == 1


async def test_an_idempotency_key_is_short_printable_text(world: World):
    """1 to 255 printable ASCII characters; anything else is 400. IK-1."""
    url = f"/api/v1/workflows/{await world.workflow()}/executions"
    for key in (b"", b"x" * 256, b"\xc3\xbc", b"a\x7f"):
        headers = [(b"Authorization", world.bearer["Authorization"].encode())]
        answer = await world.http.post(url, headers=[*headers, (b"Idempotency-Key", key)])
        assert answer.status_code == 400, key
    headers = {**world.bearer, "Idempotency-Key": "x" * 255}
    assert (await world.post(url, headers=headers)).status_code == 202


async def test_a_wait_ends_when_the_execution_rests(world: World):
    """Status and result with `wait` answer as soon as there is something to say."""
    id = await world.start(await world.workflow())
    waiting = [
        asyncio.create_task(world.get(f"/api/v1/executions/{id}{path}?wait=20"))
        for path in ("", "/result")
    ]
    await asyncio.sleep(0)
    await world.run(StepEnd(7))
    status, result = await asyncio.gather(*waiting)
    assert status.json()["status"] == "COMPLETED"
    assert (result.status_code, result.json()["output"]) == (200, 7)


async def test_a_wait_that_starts_tells_where_it_came_to(world: World):
    """A start with `wait` is 202 with the state in which the execution rests."""
    url = f"/api/v1/workflows/{await world.workflow(review())}/executions?wait=20"
    starting = asyncio.create_task(world.post(url))
    while (await world.get("/api/v1/executions")).json()["total"] == 0:
        assert not starting.done()
    await world.run()
    answer = await starting
    assert (answer.status_code, answer.json()["status"]) == (202, "AWAITING_APPROVAL")


async def test_a_wait_is_a_number_of_seconds(world: World):
    """1 to 60; anything else is 400 and starts nothing."""
    workflow = await world.workflow()
    for wait in ("0", "61", "-1", "x", "1.5", "", "1e1", "00000006099", "9" * 5_000):
        for method, path in (("POST", f"workflows/{workflow}/executions"), ("GET", "executions/x")):
            url = f"/api/v1/{path}?wait={wait}"
            answer = await world.http.request(method, url, headers=world.bearer)
            assert answer.status_code == 400, wait
    assert (await world.get("/api/v1/executions")).json()["total"] == 0


async def test_a_redrive_is_a_new_execution_that_keeps_results(world: World):
    """202 with a new id; redriveOf names the old one; 404 for what cannot be redriven. EX-17."""
    id = await world.start(await world.workflow(code("one"), code("two")))
    assert (await world.post(f"/api/v1/executions/{id}/redrive")).status_code == 404
    await world.run(StepEnd(1), StepEnd(error="no"))
    answer = await world.post(f"/api/v1/executions/{id}/redrive")
    assert (answer.status_code, answer.json()["status"]) == (202, "PENDING")
    view = (await world.get(f"/api/v1/executions/{answer.json()['executionId']}")).json()
    assert (view["redriveOf"], view["completedSteps"]) == (id, 1)
    assert view["stepResults"]["one"]["output"] == 1


async def test_what_was_redriven_names_the_last_redrive(world: World):
    """`redrivenAs` is null, then the redrive, then a later one; the version stays. EX-17."""
    id = await world.start(await world.workflow(code("one")))
    await world.run(StepEnd(error="no"))
    seen = [(await world.get(f"/api/v1/executions/{id}")).json()]
    for _ in range(2):
        world.clock.advance(1)
        again = (await world.post(f"/api/v1/executions/{id}/redrive")).json()["executionId"]
        seen.append((await world.get(f"/api/v1/executions/{id}")).json())
        assert seen.pop(0) | {"redrivenAs": again} == seen[0]
        assert (await world.get(f"/api/v1/executions/{again}")).json()["redrivenAs"] is None


async def test_secret_variables_are_masked_wherever_they_come_out(world: World):
    """Status, result and events show a secret's value nowhere. SC-1."""
    token = Variable("token", secret=True, required=True)
    workflow = await world.workflow(code("one"), code("two"), variables={"token": token})
    id = await world.start(workflow, token="hunter2-hunter2")
    leaking = StepEnd({"said": "it is hunter2-hunter2!", "hunter2-hunter2": ["hunter2-hunter2"]})
    await world.run(leaking, StepEnd(error="bad token hunter2-hunter2"))
    for path in ("", "/result", "/events"):
        answer = await world.get(f"/api/v1/executions/{id}{path}")
        assert answer.status_code == 200
        assert "hunter2" not in answer.text
        assert path == "/events" or "it is ***!" in answer.text
    assert "hunter2" not in (await world.get("/api/v1/executions")).text


async def test_plans_do_not_hinder_reading(world: World):
    """FREE accounts read and start like others; only webhooks need PRO."""
    carl = await world.account("carl", Tier.FREE)
    key = await world.new_key(carl)
    id = await world.workflow(owner=carl)
    url = f"/api/v1/workflows/{id}/executions"
    assert (await world.post(url, headers=bearer(key.text))).status_code == 202


async def test_a_poll_shows_each_change_at_once(world: World):
    """Answers are kept for records that did not change, and only for those."""
    id, _ = await world.paused()
    path = f"/api/v1/executions/{id}"
    first = await world.get(path)
    assert (await world.get(path)).content == first.content
    assert first.json()["status"] == "AWAITING_APPROVAL"
    await world.post(f"{path}/cancel")
    assert (await world.get(path)).json()["status"] == "CANCELLED"


async def test_executions_are_found_by_their_reference(world: World):
    """Exactly that text, in lists and counts; one of 201 characters is 400. EX-38."""
    workflow = await world.workflow()
    url = f"/api/v1/workflows/{workflow}/executions"
    for reference in ("Order 7", "Order 77", None):
        assert (await world.post(url, {"reference": reference})).status_code == 202
    found = (await world.get("/api/v1/executions", params={"reference": "Order 7"})).json()
    assert [one["reference"] for one in found["items"]] == ["Order 7"]
    counts = await world.get("/api/v1/executions/counts", params={"reference": "Order 7"})
    assert sum(counts.json()["counts"].values()) == 1
    wrong = await world.post(url, {"reference": "x" * 201})
    assert (wrong.status_code, "reference" in wrong.json()["error"]) == (400, True)
