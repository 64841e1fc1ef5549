"""What flows through executions on a real server: files, triggers, state, references, people."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from wfcore.model.access import OPERATOR, Scope
from wfcore.usecases.accounts.groups import change_group, create_group

from .process import until
from .site import ApiCaller, Site

FILES = """
variables:
  word: {type: string, default: first}
steps:
  - name: fetch
    kind: code
    language: bash
    source: |
      mkdir "$WF_ARTIFACTS/sub"
      printf %s "$WF_VAR_word" > "$WF_ARTIFACTS/a.csv"
      echo 3,4 > "$WF_ARTIFACTS/sub/b.csv"
  - name: lines
    kind: loop
    items: [x, y]
    as: name
    steps:
      - name: mark
        kind: code
        language: bash
        source: echo "$WF_VAR_name" > "$WF_ARTIFACTS/line"
  - {name: empty, kind: code, language: bash, source: "true"}
  - name: load
    kind: code
    language: python
    files: [fetch, lines, empty]
    source: |
      import json, os
      root, found = os.environ["WF_FILES"], []
      for at, folders, names in os.walk(root):
          found += [os.path.relpath(os.path.join(at, one), root) for one in [*folders, *names]]
      try:
          open(os.path.join(root, "fetch", "a.csv"), "w")
          written = True
      except OSError:
          written = False
      known = json.load(open(os.environ["WF_CONTEXT"]))["files"]
      text = open(os.path.join(root, "fetch", "a.csv")).read()
      print(json.dumps({"found": sorted(found), "known": known, "text": text, "wrote": written}))
"""
PLACES = [
    *("empty", "fetch", "fetch/a.csv", "fetch/sub", "fetch/sub/b.csv"),
    *("lines.0.mark", "lines.0.mark/line", "lines.1.mark", "lines.1.mark/line"),
]
FAILS = "steps: [{name: say, kind: code, language: bash, source: 'exit 3'}]"
TELLS = """
variables:
  cause: {type: string}
  how: {type: string}
steps:
  - name: say
    kind: code
    language: python
    source: |
      import json, os
      print(json.dumps(json.load(open(os.environ["WF_CONTEXT"]))["trigger"]))
triggers:
  - kind: DELAYED_COMPLETION
    workflow: WORKFLOW
    delaySeconds: 0
    on: [FAILED]
    inputs: {cause: "{{ trigger.executionId }}", how: "{{ trigger.status }}"}
"""
TRIGGER = {
    *("kind", "scheduledFor", "scheduledAt", "executionId", "workflowId", "workflowName"),
    *("status", "output", "webhookId"),
}
STATE = """
variables:
  next: {type: string}
  ends: {type: number, default: 0}
state:
  cursor: {type: string, default: none}
steps:
  - name: move
    kind: code
    language: bash
    source: |
      printf '{"cursor": "%s"}' "$WF_VAR_next" > "$WF_STATE"
      grep -o '"state":[^}]*}' "$WF_CONTEXT"
      exit "$WF_VAR_ends"
output: "{{ state.cursor }}"
"""
ASKS = """
variables:
  who: {type: array, default: []}
steps:
  - {name: review, kind: manual_approval, message: Look, approvers: APPROVERS}
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A site that knows one address of somebody without an account."""
    settings = {"WFCORE_GATE_APPROVERS": "lawyer@away.example"}
    with closing(Site(tmp_path_factory.mktemp("site") / "data", settings)) as made:
        yield made


def completed(ann: ApiCaller, id: str) -> dict[str, Any]:
    """The result of an execution that completes."""
    found = ann.result(id)
    assert found["status"] == "COMPLETED", found
    return found


def session(ann: ApiCaller, method: str, path: str, body: Any = None) -> Any:
    return ann.site.http.request(method, path, json=body, headers=ann.sign_in())


def runs(ann: ApiCaller, workflow_id: str, more: str = "") -> list[dict[str, Any]]:
    answer = ann.get(f"/api/v1/executions?workflowId={workflow_id}{more}")
    assert answer.status_code == 200, answer.text
    return list(answer.json()["items"])


def test_files_of_earlier_steps_lie_where_the_contract_says(site: Site, ann: ApiCaller) -> None:
    """Also in a redrive after kill -9; whoever reads them writes none. FI-1, FI-2, FI-3, FI-4."""
    flow = ann.workflow(FILES)
    first = completed(ann, ann.start(flow))["stepResults"]["load"]["output"]
    assert (first["found"], first["text"], first["wrote"]) == (PLACES, "first", False)
    by_name = {(one["step"], one["name"]): one for one in first["known"]}
    assert set(by_name) == {
        *(("fetch", "a.csv"), ("fetch", "sub/b.csv")),
        *(("lines.0.mark", "line"), ("lines.1.mark", "line")),
    }
    one = by_name["fetch", "a.csv"]
    assert set(one) == {"step", "name", "path", "size", "sha256", "contentType"}
    assert (one["path"].endswith("/fetch/a.csv"), one["size"]) == (True, 5)
    id = runs(ann, flow)[0]["executionId"]
    site.kill()
    site.serve()
    again = ann.post(f"/api/v1/executions/{id}/redrive", {"from": "load"}).json()["executionId"]
    assert completed(ann, again)["stepResults"]["load"]["output"] == first
    listed = ann.get(f"/api/v1/executions/{again}/artifacts").json()
    assert len(listed["artifacts"]) == 4


def test_a_step_that_cannot_be_earlier_is_a_mistake_with_its_line(ann: ApiCaller) -> None:
    """By path and line, with the nearest name. FI-1."""
    text = f"name: {ann.site.fresh('flow')}{FILES.replace('[fetch, lines, empty]', '[fetsh]')}"
    answer = session(ann, "POST", "/api/workflows", {"definition": text})
    assert answer.status_code == 400
    (mistake,) = answer.json()["mistakes"]
    assert mistake["path"] == "steps[3].files[0]"
    assert "fetch" in mistake["message"]
    assert text.splitlines()[mistake["line"] - 1].strip() == "files: [fetsh]"


def test_a_chain_learns_what_it_follows(ann: ApiCaller) -> None:
    """Of failures alone; every documented name is there. CH-6, CH-7, EX-37, SH-12."""
    first = ann.workflow(FAILS)
    then = ann.workflow(TELLS.replace("WORKFLOW", first))
    fine = ann.workflow("steps: [{name: say, kind: code, language: bash, source: echo 1}]")
    cause = ann.start(first)
    assert ann.result(cause)["status"] == "FAILED"
    completed(ann, ann.start(fine))
    until(lambda: runs(ann, then))
    (run,) = runs(ann, then)
    told = completed(ann, run["executionId"])["stepResults"]["say"]["output"]
    assert set(told) == TRIGGER
    assert (told["kind"], told["executionId"], told["status"]) == (
        "delayed_completion",
        cause,
        "FAILED",
    )
    assert (told["workflowId"], told["scheduledFor"]) == (first, None)
    assert ann.view(run["executionId"])["inputs"] == {"cause": cause, "how": "FAILED"}


def test_inputs_that_do_not_fit_start_nothing(ann: ApiCaller) -> None:
    """The failure stands with the trigger; there is no start without the inputs. SH-12."""
    first = ann.workflow("steps: [{name: say, kind: data, value: [1]}]\noutput: many")
    text = TELLS.replace("WORKFLOW", first).replace("[FAILED]", "[COMPLETED]")
    text = text.replace("how: {type: string}", "how: {type: number}")
    then = ann.workflow(text.replace("trigger.status", "trigger.output"))
    completed(ann, ann.start(first))

    def trouble() -> str | None:
        (trigger,) = ann.get(f"/api/v1/workflows/{then}").json()["triggers"]
        return str(trigger["lastRefusalDetail"] or "") or None

    assert "how" in str(until(trouble))
    assert runs(ann, then) == []


def test_state_is_taken_with_the_success_of_its_step(site: Site, ann: ApiCaller) -> None:
    """Not from a failure; the next execution reads it, over kill -9. SV-2, SV-3, SV-7."""
    flow = ann.workflow(STATE)
    state = f"/api/workflows/{flow}/state"
    assert session(ann, "GET", state).json()["state"] == {"cursor": "none"}
    assert completed(ann, ann.start(flow, next="c1"))["output"] == "c1"
    assert ann.result(ann.start(flow, next="c2", ends=3))["status"] == "FAILED"
    assert session(ann, "GET", state).json()["state"] == {"cursor": "c1"}
    site.kill()
    site.serve()
    seen = completed(ann, ann.start(flow, next="c3"))["stepResults"]["move"]["output"]
    assert '"cursor":"c1"' in seen.replace(" ", "")
    assert session(ann, "PUT", state, {"state": {"cursor": "c9"}}).status_code == 200
    assert session(ann, "GET", state).json()["state"] == {"cursor": "c9"}


def test_a_reference_is_found_by_its_text(ann: ApiCaller) -> None:
    """The definition's template, the start's in its place, at most 200 characters. EX-38."""
    flow = ann.workflow(
        "variables: {order: {type: string}}\n"
        'reference: "Order {{ variables.order }}"\n'
        "steps: [{name: say, kind: data, value: 1}]"
    )
    mine, path = ann.start(flow, order="7"), f"/api/v1/workflows/{flow}/executions"
    own = ann.post(path, {"inputs": {"order": "8"}, "reference": "Case 8"}).json()["executionId"]
    assert [one["executionId"] for one in runs(ann, flow, "&reference=Order 7")] == [mine]
    assert [one["executionId"] for one in runs(ann, flow, "&reference=Case 8")] == [own]
    assert runs(ann, flow, "&reference=Order 8") == []
    assert ann.post(path, {"inputs": {"order": "9"}, "reference": "x" * 201}).status_code == 400
    again = ann.post(path, {"like": own}).json()["executionId"]
    assert (ann.view(again)["reference"], ann.view(again)["inputs"]) == ("Case 8", {"order": "8"})


def asking(ann: ApiCaller, approvers: str) -> str:
    return ann.workflow(ASKS.replace("APPROVERS", approvers))


def test_approvers_may_come_from_data(ann: ApiCaller, bob: ApiCaller) -> None:
    """Accounts and known addresses count; nobody who counts fails the step. AP-41, AP-42."""
    flow = asking(ann, '["{{ variables.who }}"]')
    _, approval_id = ann.paused(flow, who=[bob.account.email, "stranger@away.example"])
    detail = bob.get(f"/api/v1/approvals/{approval_id}").json()
    assert detail["approvers"] == [bob.account.email]
    assert ann.post(f"/api/v1/approvals/{approval_id}/approve").status_code == 403
    assert bob.post(f"/api/v1/approvals/{approval_id}/approve").status_code == 200
    _, approval_id = ann.paused(flow, who=["Lawyer@Away.example"])
    assert ann.get(f"/api/v1/approvals/{approval_id}").json()["approvers"] == [
        "Lawyer@Away.example"
    ]
    lost = ann.result(ann.start(flow, who=["stranger@away.example"]))
    assert (lost["status"], "review" in lost["error"]) == ("FAILED", True)


def test_a_group_of_the_server_decides(site: Site, ann: ApiCaller, bob: ApiCaller) -> None:
    """Its members as they are when the approval opens, by page and by API. AP-49."""
    name = site.fresh("group")
    site.do(lambda services: create_group(services, OPERATOR, name, [bob.account.email]))
    flow = asking(ann, f"[group:{name}]")
    _, first = ann.paused(flow)
    eve = site.caller()
    members = [eve.account.email], [bob.account.email]
    site.do(lambda services: change_group(services, OPERATOR, name, *members))
    _, second = ann.paused(flow)
    for who, id, status in ((eve, first, 404), (bob, first, 200), (eve, second, 200)):
        assert session(who, "GET", f"/approvals/{id}").status_code == status
    assert eve.post(f"/api/v1/approvals/{first}/approve").status_code == 404
    assert bob.post(f"/api/v1/approvals/{first}/approve").status_code == 200
    assert eve.post(f"/api/v1/approvals/{second}/approve").status_code == 200
    text = f"name: {site.fresh('flow')}{ASKS.replace('APPROVERS', f'[group:{name}x]')}"
    refused = session(ann, "POST", "/api/workflows", {"definition": text})
    assert (refused.status_code, f"did you mean {name}?" in refused.text) == (400, True)


@pytest.mark.parametrize(
    ("who", "status"),
    [("BOB", 200), ("lawyer@away.example", 200), ("stranger@away.example", 400)],
)
def test_a_gate_asks_only_people_who_are_known(
    ann: ApiCaller, bob: ApiCaller, who: str, status: int
) -> None:
    """Active accounts, and whom the operator allows. GT-5."""
    named = bob.account.email if who == "BOB" else who
    key = ann.site.key(ann.account, Scope.WORKFLOW_EXECUTE)  # which decides nothing itself
    agent = ApiCaller(ann.site, ann.account, key)
    answer = agent.post("/api/v1/gates", {"message": "Pay?", "approvers": [named]})
    assert (answer.status_code, "approvers[0]" in answer.text) == (status, status == 400)


REPAIRED = """
variables:
  limit: {type: number, default: 1}
steps:
  - {name: fetch, kind: code, language: bash, source: 'echo x > "$WF_ARTIFACTS/a"; echo 1'}
  - {name: review, kind: manual_approval, message: Look}
  - {name: pay, kind: code, language: bash, source: 'exit STATUS'}
"""


@pytest.fixture
def broken(ann: ApiCaller) -> tuple[str, str, str]:
    """The name and id of a workflow, and an execution that failed behind an approval."""
    name = ann.site.fresh("flow")
    flow = ann.workflow(REPAIRED.replace("STATUS", "3"), name)
    id, approval_id = ann.paused(flow)
    assert ann.post(f"/api/v1/approvals/{approval_id}/approve").status_code == 200
    assert ann.rested(id)["status"] == "FAILED"
    return name, flow, id


def planned(ann: ApiCaller, id: str, **body: Any) -> dict[str, Any]:
    answer = ann.post(f"/api/v1/executions/{id}/redrive", {"dryRun": True, **body})
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


def fates(plan: dict[str, Any]) -> list[tuple[str, str, int]]:
    return [(one["step"], one["plan"], one["begun"]) for one in plan["steps"]]


def test_a_repair_goes_on_with_the_newest_version(
    ann: ApiCaller, broken: tuple[str, str, str]
) -> None:
    """By a plan that says what runs twice; its digest is good once. EX-17, EX-35."""
    name, flow, id = broken
    plan = planned(ann, id)
    kept = [("fetch", "kept", 1), ("review", "kept", 1)]
    assert fates(plan) == [*kept, ("pay", "again", 1)]
    assert ann.workflow(REPAIRED.replace("STATUS", "0"), name) == flow
    newest = planned(ann, id, definition="newest")
    assert (newest["version"], newest["from"], bool(newest["changes"])) == (2, "pay", True)
    body = {"definition": "newest", "digest": newest["digest"]}
    path = f"/api/v1/executions/{id}/redrive"
    made = ann.post(path, body)
    assert made.status_code == 202, made.text
    assert ann.post(path, body).status_code == 409
    again = made.json()["executionId"]
    completed(ann, again)
    view = ann.view(again)
    assert (view["redriveOf"], view["workflowVersion"]) == (id, 2)
    assert [one["stepName"] for one in ann.get(
        f"/api/v1/executions/{again}/artifacts").json()["artifacts"]] == ["fetch"]  # fmt: skip


def test_other_inputs_ask_people_again(ann: ApiCaller, broken: tuple[str, str, str]) -> None:
    """And all behind the approval runs again; inputs are judged as at a start. EX-35."""
    _, _, id = broken
    plan = planned(ann, id, inputs={"limit": 2})
    assert fates(plan) == [("fetch", "kept", 1), ("review", "asked", 1), ("pay", "again", 1)]
    path = f"/api/v1/executions/{id}/redrive"
    assert ann.post(path, {"inputs": {"limit": "many"}}).status_code == 400
    made = ann.post(path, {"inputs": {"limit": 2}, "digest": plan["digest"]}).json()
    assert ann.rested(made["executionId"])["status"] == "AWAITING_APPROVAL"
    assert ann.view(made["executionId"])["inputs"] == {"limit": 2}


def test_nobody_jumps_over_a_step(ann: ApiCaller, broken: tuple[str, str, str]) -> None:
    """A step before `from` has a result, or the redrive is refused by its name. EX-35."""
    _, flow, _ = broken
    id, _approval = ann.paused(flow)
    ann.post(f"/api/v1/executions/{id}/cancel")
    refused = ann.post(f"/api/v1/executions/{id}/redrive", {"from": "pay"})
    assert (refused.status_code, "review" in refused.text) == (409, True)


def test_a_start_like_another_is_of_the_same_workflow(ann: ApiCaller) -> None:
    """The execution of another workflow is 400; inputs are merged over. EX-36."""
    flow = ann.workflow("variables: {a: {type: string}, b: {type: string}}\n" + FAILS)
    other, id = ann.workflow(FAILS), ann.start(flow, a="1", b="2")
    path = "/api/v1/workflows/{}/executions"
    assert ann.post(path.format(other), {"like": id}).status_code == 400
    made = ann.post(path.format(flow), {"like": id, "inputs": {"b": "3"}}).json()["executionId"]
    assert ann.view(made)["inputs"] == {"a": "1", "b": "3"}


def test_a_file_that_is_gone_refuses_the_redrive_by_name(
    site: Site, ann: ApiCaller, broken: tuple[str, str, str]
) -> None:
    """409 with the step. EX-35."""
    _, _, id = broken
    (file,) = ann.get(f"/api/v1/executions/{id}/artifacts").json()["artifacts"]
    for path in Path(site.data).rglob(f"*{file['id']}*"):
        path.unlink()
    refused = ann.post(f"/api/v1/executions/{id}/redrive")
    assert (refused.status_code, "fetch" in refused.text) == (409, True)
