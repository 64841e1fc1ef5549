"""Executions as their callers see them: status, result, cancel, lists, events."""

import json

import pytest

from wfcore.testing.contracts.steps import alive

from .flows import ECHO, REVIEW, SLOW
from .process import until
from .site import ApiCaller, Site, told

ENDED = {"COMPLETED", "FAILED", "CANCELLED"}


def running(ann: ApiCaller, step: str = "wait") -> str:
    """An execution of SLOW whose step is really running."""
    execution_id = ann.start(ann.workflow(SLOW))
    until(lambda: alive(f"WF_EXECUTION_ID={execution_id}"))
    assert ann.view(execution_id)["currentStep"] == step
    return execution_id


def test_status_view(ann: ApiCaller) -> None:
    """The status view says where the execution is; `completedAt` comes at the end. EX-22."""
    execution_id, approval_id = ann.paused(ann.workflow(REVIEW))
    view = ann.view(execution_id)
    assert view["status"] == "AWAITING_APPROVAL"
    assert (view["currentStep"], view["completedSteps"], view["totalSteps"]) == ("review", 0, 2)
    assert (view["error"], view["triggerSource"]) == (None, "open_api")
    assert "completedAt" not in view
    ann.post(f"/api/v1/approvals/{approval_id}/approve")
    view = ann.rested(execution_id)
    assert (view["currentStep"], view["completedSteps"], view["totalSteps"]) == (None, 2, 2)
    assert view["completedAt"] >= view["startedAt"]
    step = view["stepResults"]["after"]
    assert (step["status"], step["output"], step["attempts"]) == ("COMPLETED", "done", 1)
    assert 0 <= step["duration"] <= view["completedAt"] - view["startedAt"]


def test_result_before_the_end(ann: ApiCaller) -> None:
    """Before the end there is no result: 409; afterwards there is. EX-18."""
    execution_id, approval_id = ann.paused(ann.workflow(REVIEW))
    answer = ann.get(f"/api/v1/executions/{execution_id}/result")
    assert (answer.status_code, list(answer.json())) == (409, ["error"])
    ann.post(f"/api/v1/approvals/{approval_id}/approve")
    assert ann.result(execution_id)["output"] == "done"


def test_a_failed_step(ann: ApiCaller) -> None:
    """A failed step fails the execution, with an error that names it and says why. EX-10, CS-6."""
    flow = "steps: [{name: bad, kind: code, language: bash, source: 'echo oh dear >&2; exit 3'}]"
    view = ann.rested(ann.start(ann.workflow(flow)))
    assert view["status"] == "FAILED"
    assert all(part in view["error"] for part in ("bad", "3", "oh dear"))
    assert view["statusReason"]["code"] == "STEP_FAILED"
    assert ann.result(view["executionId"])["output"] is None


def test_a_step_over_its_time(ann: ApiCaller) -> None:
    """A step over its timeout fails, and nothing of it lives on. CS-6, CS-7."""
    view = ann.rested(ann.start(ann.workflow(SLOW.replace("15m", "200ms"))))
    assert (view["status"], view["statusReason"]["code"]) == ("FAILED", "TIMEOUT")
    until(lambda: not alive(f"WF_EXECUTION_ID={view['executionId']}"))


def test_cancel_while_running(ann: ApiCaller) -> None:
    """Cancelling ends the execution at once, and its processes with it. EX-7, CS-7."""
    execution_id = running(ann)
    until(lambda: len(alive(f"WF_EXECUTION_ID={execution_id}")) >= 2)
    answer = ann.post(f"/api/v1/executions/{execution_id}/cancel")
    assert (answer.status_code, answer.json()["status"]) == (200, "CANCELLED")
    until(lambda: not alive(f"WF_EXECUTION_ID={execution_id}"))
    view = ann.view(execution_id)
    assert view["statusReason"]["code"] == "CANCEL_REQUESTED"
    assert list(view["stepResults"]) == ["wait"]


def test_cancel_while_waiting(ann: ApiCaller) -> None:
    """Cancelling what waits takes the question back, which nobody can answer any more. AP-5."""
    execution_id, approval_id = ann.paused(ann.workflow(REVIEW))
    assert ann.post(f"/api/v1/executions/{execution_id}/cancel").status_code == 200
    assert ann.get(f"/api/v1/approvals/{approval_id}").json()["status"] == "CANCELLED"
    assert ann.post(f"/api/v1/approvals/{approval_id}/approve").status_code == 404
    assert "after" not in ann.view(execution_id)["stepResults"]


def test_cancel_after_the_end(ann: ApiCaller) -> None:
    """What has ended, or is not there, cannot be cancelled: 404. EX-21, EX-9."""
    execution_id = ann.start(ann.workflow(ECHO))
    assert ann.rested(execution_id)["status"] == "COMPLETED"
    for id in (execution_id, "exec_none"):
        assert ann.post(f"/api/v1/executions/{id}/cancel").status_code == 404
    assert ann.view(execution_id)["status"] == "COMPLETED"


def test_lists(ann: ApiCaller, bob: ApiCaller) -> None:
    """
    Lists hold exactly the caller's executions, newest first, by workflow and by status, and
    say the page that was asked for. AC-6, PG-1, PG-2, LM-4.
    """
    echo, review = ann.workflow(ECHO), ann.workflow(REVIEW)
    done = [ann.start(echo, word=str(number)) for number in range(3)]
    for id in done:
        assert ann.rested(id)["status"] == "COMPLETED"
    waiting, _ = ann.paused(review)
    bob.paused(bob.workflow(REVIEW))

    def listed(query: str = "") -> tuple[list[str], int]:
        answer = ann.get(f"/api/v1/executions{query}").json()
        return [one["executionId"] for one in answer["items"]], answer["total"]

    assert listed() == ([waiting, *reversed(done)], 4)
    assert listed(f"?workflowId={echo}") == ([*reversed(done)], 3)
    assert listed("?status=AWAITING_APPROVAL") == ([waiting], 1)
    assert listed(f"?workflowId={echo}&status=FAILED") == ([], 0)
    assert listed("?page=2&size=3") == ([done[0]], 4)
    page = ann.get("/api/v1/executions?page=2&size=9999").json()
    assert (page["page"], page["size"], page["items"], page["total"]) == (2, 200, [], 4)
    assert ann.get("/api/v1/executions?status=NONE").status_code == 400
    assert ann.get("/api/v1/executions?page=0").status_code == 400


def test_waiting_for_a_start(ann: ApiCaller) -> None:
    """With `wait` the start answers as soon as the execution rests."""
    path = f"/api/v1/workflows/{ann.workflow(ECHO)}/executions?wait=50"
    answer = ann.post(path, {"inputs": {"word": "now"}})
    assert (answer.status_code, answer.json()["status"]) == (202, "COMPLETED")


def test_redrive(ann: ApiCaller) -> None:
    """A failed execution is begun again at its first unfinished step, as a new one. EX-17."""
    gate = ann.site.shared / "gate"
    flow = f"""
steps:
  - {{name: once, kind: code, language: bash, source: 'echo $RANDOM'}}
  - {{name: door, kind: code, language: command, command: [cat, '{gate}']}}
"""
    old = ann.rested(ann.start(ann.workflow(flow)))
    assert old["status"] == "FAILED"
    gate.write_text("open")
    answer = ann.post(f"/api/v1/executions/{old['executionId']}/redrive")
    assert answer.status_code == 202
    new = ann.rested(answer.json()["executionId"])
    assert (new["status"], new["redriveOf"]) == ("COMPLETED", old["executionId"])
    assert new["stepResults"]["once"]["output"] == old["stepResults"]["once"]["output"]
    assert new["stepResults"]["door"]["output"] == "open"


def test_event_stream(ann: ApiCaller) -> None:
    """
    The stream tells every event live, numbered from 1 without gaps, until the terminal one;
    with `Last-Event-ID` it goes on where a reader stopped. EX-20.
    """
    execution_id, approval_id = ann.paused(ann.workflow(REVIEW))
    path = f"/api/v1/executions/{execution_id}/events"
    text = ""
    with ann.site.http.stream("GET", path, headers=ann.bearer) as stream:
        for part in stream.iter_text():
            text += part
            if "execution.awaiting_approval\n" in text and approval_id:
                answer = ann.post(f"/api/v1/approvals/{approval_id}/approve")
                assert answer.status_code == 200
                approval_id = ""
    events = told(text)
    assert [event["id"] for event in events] == list(range(1, len(events) + 1))
    kinds = [event["event"] for event in events]
    assert kinds[0] == "execution.pending"
    assert kinds.index("approval.created") < kinds.index("approval.approved")
    assert [kind for kind in kinds if kind.rpartition(".")[2].upper() in ENDED][-1] == kinds[-1]
    assert kinds[-1] == "execution.completed"
    rest = ann.get(path, headers={**ann.bearer, "Last-Event-ID": "3"}).text
    assert told(rest) == events[3:]
    over = {**ann.bearer, "Last-Event-ID": str(len(events))}
    assert ann.get(path, headers=over).status_code == 204


def test_output_lines(ann: ApiCaller) -> None:
    """With `enableMonitoring` the step's lines are in the events; they are kept without. EX-28."""
    flow = ann.workflow("steps: [{name: a, kind: code, language: bash, source: 'echo one'}]")
    for wanted in (True, False):
        path = f"/api/v1/workflows/{flow}/executions?wait=50"
        answer = ann.post(path, {"enableMonitoring": wanted}).json()
        lines = [
            event["data"]["data"]["text"]
            for event in ann.events(answer["executionId"])
            if event["event"] == "step.log"
        ]
        assert ("one" in "".join(lines)) is wanted
        kept = ann.get(f"/api/v1/executions/{answer['executionId']}/logs").json()["items"]
        told = [(row["step"], row["stream"], row["attempt"]) for row in kept]
        assert (told, kept[0]["text"]) == ([("a", "stdout", 1)], "one\n")


@pytest.mark.parametrize("body", ["{", "[]", '{"inputs": 1}', '{"input": {}}', '{"inputs": NaN}'])
def test_malformed_starts(ann: ApiCaller, body: str) -> None:
    """A body that is no JSON object of the documented fields is 400 and starts nothing. ER-1."""
    path = f"/api/v1/workflows/{ann.workflow(ECHO)}/executions"
    answer = ann.site.http.post(path, content=body, headers=ann.bearer)
    assert (answer.status_code, list(answer.json())) == (400, ["error"])
    assert ann.get("/api/v1/executions").json()["total"] == 0


def test_inputs_are_checked(ann: ApiCaller) -> None:
    """A wrong type or a missing required variable is 400 and named. VM-4, VM-5."""
    flow = ann.workflow(
        "variables: {n: {type: number, required: true}}\n"
        "steps: [{name: a, kind: code, language: bash, source: ':'}]"
    )
    for inputs in ({}, {"n": "one"}, {"n": True}):
        answer = ann.post(f"/api/v1/workflows/{flow}/executions", {"inputs": inputs})
        assert (answer.status_code, "n" in json.dumps(answer.json())) == (400, True)


def test_unknown_paths(site: Site, ann: ApiCaller) -> None:
    """Unknown paths are 404 and other methods 405, in the shape of all errors. ER-1."""
    for method, path, status in (
        ("GET", "/api/v2/workflows", 404),
        ("PUT", "/api/v1/workflows", 405),
        ("POST", "/api/webhooks/wh_none/trigger", 404),
    ):
        answer = site.http.request(method, path, headers=ann.bearer)
        assert (answer.status_code, list(answer.json())) == (status, ["error"])
        assert answer.headers["x-request-id"]
