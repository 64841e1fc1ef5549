"""Reading executions: filters and order of lists, starters, inputs, definitions, outputs."""

from tests.support.http_world import World, bearer, code
from wfcore.model.workflow import Variable, VariableType
from wfcore.ports.callbacks import CallbackAnswer
from wfcore.ports.runtime import StepEnd
from wfcore.usecases.executions.callbacks import settle_call, take_calls


async def test_a_poll_need_not_carry_outputs(world: World):
    """`outputs=none` leaves the output of each step out, and nothing else; the step has it."""
    id = await world.finished({"rows": [1, 2]})
    for path in (f"/api/v1/executions/{id}", f"/api/v1/executions/{id}/result"):
        whole, brief = (
            (await world.get(path)).json(),
            (await world.get(f"{path}?outputs=none")).json(),
        )
        assert whole["stepResults"]["fetch"].pop("output") == {"rows": [1, 2]}
        assert brief == whole
        assert (await world.get(f"{path}?outputs=all")).status_code == 400
    step = await world.get(f"/api/v1/executions/{id}/steps/fetch")
    assert step.json()["output"] == {"rows": [1, 2]}
    file = await world.get(f"/api/v1/executions/{id}/steps/fetch?download")
    assert file.json() == {"rows": [1, 2]}
    assert file.headers["content-disposition"] == 'attachment; filename="fetch.json"'
    assert (await world.get(f"/api/v1/executions/{id}/steps/other")).status_code == 404


async def test_lists_of_executions_are_narrowed_and_turned_round(world: World):
    """Several statuses, what started them, a span of time, and the order; nonsense is 400. PG-4."""
    workflow = await world.workflow()
    ids = []
    for _ in range(3):
        ids.append(await world.start(workflow))
        world.clock.advance(10)
    await world.post(f"/api/v1/executions/{ids[1]}/cancel")
    since = world.clock.now() - 20
    for query, shown in (
        ("status=CANCELLED&status=PENDING", ids[::-1]),
        ("status=CANCELLED&status=", ids[1:2]),
        ("triggerSource=open_api&sort=startedAt", ids),
        ("triggerSource=webhook&triggerSource=schedule", []),
        (f"from={since}", ids[:0:-1]),
        (f"to={since}", ids[:1]),
        (f"from={since}&to={since + 10}&sort=-startedAt", ids[1:2]),
        (f"idEnd={ids[1][-6:]}", ids[1:2]),
    ):
        page = (await world.get(f"/api/v1/executions?{query}")).json()
        assert [row["executionId"] for row in page["items"]] == shown, query
        assert page["total"] == len(shown)
    for query, error in (
        ("status=PENDING,FAILED", "for several repeat it"),
        ("triggerSource=mail", "triggerSource: must be one of"),
        ("sort=status", "sort: must be startedAt"),
        ("from=yesterday", "from: must be an instant"),
        ("from=2&to=1", "to: must not lie before from"),
        ("sort=startedAt&sort=startedAt", "sort: stands twice"),
        ("idEnd=abc", "idEnd: "),
    ):
        answer = await world.get(f"/api/v1/executions?{query}")
        assert (answer.status_code, error in answer.json()["error"]) == (400, True), query


async def test_an_execution_says_who_started_what_with_which_inputs(world: World):
    """Version, starter and inputs with secrets masked; the definition as it runs; 404 unseen."""
    declared = {"token": Variable("token", secret=True), "n": Variable("n", VariableType.NUMBER)}
    workflow = await world.workflow(variables=declared)
    id = await world.start(workflow, token="s3cret-value", n=7, note="has s3cret-value in it")
    await world.workflow(code("other"))
    view = (await world.get(f"/api/v1/executions/{id}")).json()
    assert view["inputs"] == {"token": "***", "n": 7, "note": "has *** in it"}
    starter = {
        "accountId": world.ann.id, "email": world.ann.email,
        "keyId": world.key.key.id, "keyName": world.key.key.name,
    }  # fmt: skip
    assert (view["workflowVersion"], view["startedBy"]) == (1, starter)
    (row,) = (await world.get("/api/v1/executions")).json()["items"]
    only_there = ("inputs", "stepResults", "earlierResults", "redrivenAs")
    assert row == {k: v for k, v in view.items() if k not in only_there}
    url = f"/api/v1/executions/{id}/definition"
    shown = (await world.get(url)).json()
    assert (shown["workflowVersion"], [s["name"] for s in shown["workflow"]]) == (1, ["fetch"])
    bob = await world.new_key(await world.account("bob"))
    assert (await world.http.get(url, headers=bearer(bob.text))).status_code == 404


async def test_what_became_of_a_callback_is_told(world: World):
    """Status, attempts, the next one, the last error; of its address the host. CB-5."""
    started = f"/api/v1/workflows/{await world.workflow(code('one'))}/executions"
    run, other = [
        (await world.post(started, asked)).json()["executionId"]
        for asked in ({"callbackUrl": "https://shop.example.org:8443/s3cret?to=s3cret"}, {})
    ]
    told = {
        "executionId": run, "host": "shop.example.org:8443", "status": "PENDING", "attempts": 0,
        "nextAttemptAt": None, "lastError": None,
    }  # fmt: skip
    url = f"/api/v1/executions/{run}/callback"
    assert (await world.get(url)).json() == told
    await world.post(f"/api/v1/executions/{run}/cancel")
    assert (await world.get(url)).json() == told | {"nextAttemptAt": world.clock.now()}
    (call,) = await take_calls(world.services, 8)
    await settle_call(world.services, call, CallbackAnswer(410))
    over = {"status": "FAILED", "attempts": 1, "lastError": "answered 410"}
    assert (await world.get(url)).json() == told | over
    missing = await world.get(f"/api/v1/executions/{other}/callback")
    assert (missing.status_code, missing.json()["error"]) == (404, "Callback not found")


async def test_output_lines_are_read_whoever_started_it(world: World):
    """Rows by step, attempt and stream; `next` goes on; the stream has them if monitored. EX-28."""
    id = await world.start(await world.workflow(code("one"), code("two")))
    await world.run(
        StepEnd(1, lines=(("stdout", "a\nb\n"), ("stderr", "c\n"))),
        StepEnd(2, lines=(("stdout", "d\n"),)),
    )
    url = f"/api/v1/executions/{id}/logs"
    found = (await world.get(url)).json()
    rows = [(row["step"], row["stream"], row["text"]) for row in found["items"]]
    assert rows == [("one", "stdout", "a\nb\n"), ("one", "stderr", "c\n"), ("two", "stdout", "d\n")]
    assert found["items"][0].keys() == {"number", "at", "step", "attempt", "stream", "text"}
    assert (await world.get(f"{url}?after={found['next']}")).json() == {
        "items": [],
        "next": found["next"],
    }
    (second,) = (await world.get(f"{url}?step=two")).json()["items"]
    assert second == found["items"][2]
    first = found["items"][0]["number"]
    assert (await world.get(f"{url}?after={first}")).json()["items"] == found["items"][1:]
    assert "step.log" not in (await world.get(f"/api/v1/executions/{id}/events")).text
    assert [row["text"] for row in (await world.get(f"{url}?search=B")).json()["items"]] == ["b\n"]
    (row,) = (await world.get(f"{url}?stream=stderr")).json()["items"]
    assert row["text"] == "c\n"
    refused = await world.get(f"{url}?stream=out")
    assert (refused.status_code, "stdout, stderr" in refused.text) == (400, True)
    for query in ("after=x", "after=-1", "after=" + "9" * 19):
        refused = await world.get(f"{url}?{query}")
        assert (refused.status_code, "after: must be" in refused.text) == (400, True)
    bob = await world.new_key(await world.account("bob"))
    assert (await world.http.get(url, headers=bearer(bob.text))).status_code == 404
