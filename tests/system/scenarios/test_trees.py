"""Steps that hold steps, on a whole server: real processes beside one another. FL-1 to FL-7."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from wfcore.testing.contracts.steps import alive

from .flows import SLOW
from .process import ledger, until
from .site import ApiCaller, Site

MEETING = """
steps:
  - name: both
    kind: parallel
    branches:
      - name: left
        steps: [{{name: a, kind: code, language: bash, source: '{a}'}}]
      - name: right
        steps: [{{name: b, kind: code, language: python, source: '{b}'}}]
output: "{{{{ steps.both.output }}}}"
"""

ROUNDS = """
variables:
  words: {{type: array, default: [x, y, z]}}
steps:
  - name: each
    kind: loop
    items: "{{{{ variables.words }}}}"
    as: word
    maxParallel: 2
    steps:
      - name: say
        kind: code
        language: bash
        source: |
          echo "$WF_STEP_NAME" >> {folder}/ledger
          until [ -e {folder}/$WF_VAR_word ]; do sleep 0.02; done
          printf %s "$WF_VAR_word"
      - name: shout
        kind: code
        language: command
        command: [echo, "{{{{ word }}}} {{{{ loop.index }}}}"]
"""

NAP = """
steps:
  - {{name: before, kind: code, language: bash, source: 'echo before >> {folder}/ledger'}}
  - {{name: nap, kind: delay, duration: 2s}}
  - {{name: after, kind: code, language: bash, source: 'echo after >> {folder}/ledger'}}
"""

QUESTIONS = """
steps:
  - name: both
    kind: parallel
    branches:
      - name: left
        steps: [{name: first, kind: manual_approval, message: First}]
      - name: right
        steps:
          - {name: second, kind: manual_approval, message: Second}
          - {name: then, kind: code, language: bash, source: echo then}
"""

BESIDE = """
steps:
  - name: both
    kind: parallel
    branches:
      - name: slow
        steps:
          - name: wait
            kind: code
            language: bash
            source: 'until [ -e {folder}/go ]; do sleep 0.02; done'
      - name: asked
        steps:
          - {{name: ask, kind: manual_approval, message: Go}}
          - {{name: then, kind: code, language: bash, source: 'touch {folder}/go'}}
"""

TOGETHER = """
steps:
  - name: both
    kind: parallel
    branches:
      - name: left
        steps:
          - name: long
            kind: code
            language: bash
            source: |
              setsid -f sleep 600 >/dev/null 2>&1
              touch {folder}/up
              sleep 600
            timeout: 15m
      - name: right
        steps:
          - name: broken
            kind: code
            language: bash
            source: 'until [ -e {folder}/up ]; do sleep 0.02; done; exit 7'
"""


@pytest.fixture
def own(tmp_path: Path) -> Iterator[Site]:
    """A site of its own, for tests that end the server."""
    with closing(Site(tmp_path / "data", {"WFCORE_INTERRUPTED_GRACE": "300ms"})) as made:
        yield made


def folder_of(site: Site, ann: ApiCaller) -> Path:
    """A folder that only this test's steps write to."""
    folder = site.shared / site.fresh("folder")
    folder.mkdir(mode=0o777)
    folder.chmod(0o777)
    return folder


def test_branches_run_at_the_same_time(site: Site, ann: ApiCaller) -> None:
    """Each of two steps waits for a sign of the other: only together they can end. FL-1."""
    folder = folder_of(site, ann)
    a = f"touch {folder}/a; until [ -e {folder}/b ]; do sleep 0.02; done; echo 1"
    met = f'iter(lambda: os.path.exists("{folder}/a"), True)'
    b = f'import os, time; open("{folder}/b", "w"); [time.sleep(0.02) for _ in {met}]; print(2)'
    result = ann.result(ann.start(ann.workflow(MEETING.format(a=a, b=b))))
    assert (result["status"], result["output"]) == ("COMPLETED", {"left": 1, "right": 2})


def test_a_loop_goes_through_its_items(site: Site, ann: ApiCaller) -> None:
    """Two rounds at a time, each with its item; a third one starts when one has ended. FL-2."""
    folder = folder_of(site, ann)
    noted = ledger(folder)
    execution_id = ann.start(ann.workflow(ROUNDS.format(folder=folder)))
    until(lambda: len(noted.read_text().split()) == 2)
    assert ann.view(execution_id)["currentStep"] == "each.0.say"
    (folder / "y").touch()
    until(lambda: len(noted.read_text().split()) == 3)
    assert sorted(noted.read_text().split()) == [f"each.{n}.say" for n in range(3)]
    (folder / "x").touch()
    (folder / "z").touch()
    result = ann.result(execution_id)
    assert result["output"] == ["x 0", "y 1", "z 2"]
    assert result["stepResults"]["each.1.say"]["output"] == "y"
    view = ann.view(execution_id)
    assert (view["completedSteps"], view["totalSteps"]) == (3, 3)


def test_a_delay_outlives_the_server(own: Site) -> None:
    """kill -9 in the middle: it ends when it would have, and nothing runs twice. FL-5."""
    ann = own.caller()
    noted = ledger(own.shared)
    execution_id = ann.start(ann.workflow(NAP.format(folder=own.shared)))
    until(lambda: ann.view(execution_id)["currentStep"] == "nap")
    own.kill()
    own.serve()
    result = ann.result(execution_id)
    assert result["status"] == "COMPLETED"
    assert result["stepResults"]["nap"]["duration"] >= 2_000
    assert noted.read_text() == "before\nafter\n"


def child(site: Site, ann: ApiCaller, text: str) -> str:
    """The name of a new workflow."""
    workflow_id = ann.workflow(text)
    return str(ann.get(f"/api/v1/workflows/{workflow_id}").json()["name"])


def parent(ann: ApiCaller, name: str, inputs: str = "{}") -> str:
    return ann.workflow(
        f"steps: [{{name: sub, kind: workflow, workflow: {name}, inputs: {inputs}}}]"
    )


def test_a_child_gives_its_output(site: Site, ann: ApiCaller) -> None:
    """What the other workflow makes of the inputs is the step's output. FL-6."""
    double = """
variables: {n: {type: number, required: true}}
steps: [{name: d, kind: code, language: bash, source: 'echo $((WF_VAR_n * 2))'}]
"""
    execution_id = ann.start(parent(ann, child(site, ann, double), "{n: 21}"))
    result = ann.result(execution_id)
    assert (result["status"], result["output"]) == ("COMPLETED", 42)
    child_id = result["stepResults"]["sub"]["executionId"]
    view = ann.view(child_id)
    assert (view["triggerSource"], view["parentExecutionId"]) == ("workflow", execution_id)


def test_a_child_is_cancelled_with_its_parent(site: Site, ann: ApiCaller) -> None:
    """At once, with every process that it started. FL-6, EX-7."""
    execution_id = ann.start(parent(ann, child(site, ann, SLOW)))
    until(lambda: "sub" in ann.view(execution_id)["stepResults"])
    child_id = ann.view(execution_id)["stepResults"]["sub"]["executionId"]
    until(lambda: alive(f"WF_EXECUTION_ID={child_id}"))
    assert ann.post(f"/api/v1/executions/{execution_id}/cancel").status_code == 200
    view = ann.view(child_id)
    assert (view["status"], view["statusReason"]["code"]) == ("CANCELLED", "PARENT_CANCELLED")
    until(lambda: not alive(f"WF_EXECUTION_ID={child_id}"))


def test_a_childs_end_is_told_though_the_server_was_killed(own: Site) -> None:
    """The child waits for people over a kill -9; its end reaches the parent all the same. FL-6."""
    ann = own.caller()
    asks = "steps: [{name: ask, kind: manual_approval, message: Look}]"
    execution_id = ann.start(parent(ann, child(own, ann, asks)))
    until(lambda: "sub" in ann.view(execution_id)["stepResults"])
    child_id = ann.view(execution_id)["stepResults"]["sub"]["executionId"]
    assert ann.rested(child_id)["status"] == "AWAITING_APPROVAL"
    own.kill()
    own.serve()
    approval_id = ann.open_approval(child_id)
    assert ann.post(f"/api/v1/approvals/{approval_id}/approve").status_code == 200
    result = ann.result(execution_id)
    assert (result["status"], result["output"]["decision"]) == ("COMPLETED", "approve")


def test_two_questions_in_two_branches(site: Site, ann: ApiCaller) -> None:
    """Both open at once; each answer lets its branch go on, the last one the whole. EX-4."""
    execution_id = ann.start(ann.workflow(QUESTIONS))
    assert ann.rested(execution_id)["status"] == "AWAITING_APPROVAL"
    answer = ann.get(f"/api/v1/approvals/execution/{execution_id}").json()
    asked = {one["stepName"]: one["id"] for one in answer["approvals"]}
    assert asked.keys() == {"first", "second"}
    assert ann.post(f"/api/v1/approvals/{asked['second']}/approve").status_code == 200
    until(lambda: ann.view(execution_id)["stepResults"].get("then", {}).get("completedAt"))
    until(lambda: ann.view(execution_id)["status"] == "AWAITING_APPROVAL")
    assert ann.post(f"/api/v1/approvals/{asked['first']}/approve").status_code == 200
    assert ann.result(execution_id)["status"] == "COMPLETED"


def test_a_decision_is_carried_on_beside_a_running_step(site: Site, ann: ApiCaller) -> None:
    """The step behind the approval ends the one that runs: neither has to wait. FL-10."""
    folder = folder_of(site, ann)
    execution_id = ann.start(ann.workflow(BESIDE.format(folder=folder)))
    until(lambda: "ask" in ann.view(execution_id)["stepResults"])
    assert ann.view(execution_id)["status"] == "RUNNING"
    approval_id = ann.open_approval(execution_id)
    assert ann.post(f"/api/v1/approvals/{approval_id}/approve").status_code == 200
    assert ann.result(execution_id)["status"] == "COMPLETED"


def test_a_failure_ends_the_processes_beside_it(site: Site, ann: ApiCaller) -> None:
    """FAILED at once; the other branch's process tree is dead, its daemons too. FL-4, CS-7."""
    folder = folder_of(site, ann)
    execution_id = ann.start(ann.workflow(TOGETHER.format(folder=folder)))
    result = ann.result(execution_id)
    assert (result["status"], result["stepResults"]["long"]["status"]) == ("FAILED", "CANCELLED")
    assert "Step 'broken' failed" in result["error"]
    until(lambda: not alive(f"WF_EXECUTION_ID={execution_id}"))
    kinds = [event["event"] for event in ann.events(execution_id)]
    assert kinds[-1] == "execution.failed"
