"""AI steps through the real server, against a provider on a real socket."""

import json
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.support.model_server import KEY, ModelServer, a_model_server, hangs, refuses, says

from .process import until
from .site import ApiCaller, Site

TOKEN = "tok-71c0de88aa42"
PRICES = {"local:*": {"input": "1000", "output": "2000"}}
"""So that 12 tokens in and 3 out cost 0.018 USD."""
ONCE = {"inputTokens": 12, "outputTokens": 3, "costUsd": "0.018"}

TRIAGE = """
variables:
  report: {type: string, default: It burns}
steps:
  - name: triage
    kind: ai
    model: local:some-model
    system: You sort reports.
    prompt: "Sort: {{ variables.report }}"
    maxTokens: 50
    schema:
      type: object
      properties: {severity: {enum: [low, high]}}
      required: [severity]
  - name: reply
    kind: ai
    model: anthropic:some-model
    prompt: "Reply to a report of {{ steps.triage.output.severity }} severity"
output: "{{ steps }}"
"""
ASK = """
steps:
  - {name: ask, kind: ai, model: "local:some-model", prompt: Say it}
  - {name: after, kind: code, language: bash, source: echo done}
"""
TWICE = """
steps:
  - {name: one, kind: ai, model: "local:some-model", prompt: First}
  - {name: two, kind: ai, model: "local:some-model", prompt: Second}
  - {name: three, kind: ai, model: "local:some-model", prompt: Third}
budget: {maxTokens: 15, maxCostUsd: 5, onExceeded: %s}
"""
LOOP = """
steps:
  - name: each
    kind: loop
    items: [a, b, c, d]
    as: item
    maxParallel: 1
    steps:
      - {name: ask, kind: ai, model: "local:some-model", prompt: "Sort {{ item }}"}
budget: {maxTokens: 30, onExceeded: approve}
"""
BRANCHES = """
steps:
  - {name: first, kind: ai, model: "local:some-model", prompt: First}
  - name: both
    kind: parallel
    branches:
      - name: asked
        steps:
          - {name: second, kind: ai, model: "local:some-model", prompt: Second}
      - name: done
        steps:
          - {name: work, kind: code, language: bash, source: echo worked}
budget: {maxTokens: 15, onExceeded: approve}
"""
LEAKY = """
variables: {token: {type: string, secret: true}}
steps:
  - name: ask
    kind: ai
    model: local:some-model
    prompt: "My token is {{ variables.token }}"
    continueOnError: true
  - name: again
    kind: ai
    model: local:some-model
    prompt: "Still {{ variables.token }}"
  - name: peek
    kind: code
    language: bash
    source: env; cat /proc/$PPID/environ 2>/dev/null | tr '\\0' '\\n'
"""


@pytest.fixture(scope="module")
def provider() -> Iterator[ModelServer]:
    with a_model_server() as made:
        yield made


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory, provider: ModelServer) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("site")
    prices = folder / "prices.json"
    prices.write_text(json.dumps(PRICES))
    settings = {
        "WFCORE_LOG": "debug",
        "WFCORE_AI_LOCAL_BASE_URL": provider.openai,
        "WFCORE_AI_LOCAL_API_KEY": KEY,
        "ANTHROPIC_BASE_URL": provider.url,
        "ANTHROPIC_API_KEY": KEY,
        "WFCORE_AI_PRICES": str(prices),
    }
    with closing(Site(folder / "data", settings)) as made:
        yield made


@pytest.fixture(autouse=True)
def fresh(provider: ModelServer) -> None:
    """Nothing asked, nothing in the script."""
    provider.turns.clear()
    provider.asked.clear()


def ended(caller: ApiCaller, text: str, **inputs: Any) -> dict[str, Any]:
    """The status view of an execution that has ended."""
    return caller.rested(caller.start(caller.workflow(text), **inputs))


def kept_with(text: str, folder: Path) -> list[str]:
    """
    The files below *folder* that hold *text*. By another process: one that opens and closes a
    database file loses the locks that it holds on it.
    """
    found = subprocess.run(["grep", "-rlaF", text, folder], capture_output=True, text=True)
    return found.stdout.splitlines()


def test_answers_are_outputs(ann: ApiCaller, provider: ModelServer) -> None:
    """JSON of one step goes into the prompt of the next; tokens and costs are told. AI-1, AI-7."""
    provider.will(says({"severity": "high"}), says("We are on it.", (100, 20)))
    id = ann.start(ann.workflow(TRIAGE), report="It burns twice")
    result = ann.result(id)
    assert result["status"] == "COMPLETED", result["error"]
    assert [asked.prompt for asked in provider.asked] == [
        "Sort: It burns twice",
        "Reply to a report of high severity",
    ]
    steps = result["stepResults"]
    assert steps["triage"]["output"] == {"severity": "high"}
    assert steps["triage"]["usage"] == ONCE
    assert steps["reply"]["output"] == "We are on it."
    assert steps["reply"]["usage"] == {"inputTokens": 100, "outputTokens": 20, "costUsd": None}
    whole = {"inputTokens": 112, "outputTokens": 23, "costUsd": None}
    assert (result["usage"], ann.view(id)["usage"]) == (whole, whole)


def test_a_second_answer(ann: ApiCaller, provider: ModelServer) -> None:
    """An answer that does not fit is asked for again; both count, and watchers are told. AI-2."""
    provider.will(says("It is bad."), says({"severity": "low"}))
    flow = ann.workflow(TRIAGE)
    body = {"inputs": {}, "enableMonitoring": True}
    id = ann.post(f"/api/v1/workflows/{flow}/executions", body).json()["executionId"]
    usage = ann.result(id)["stepResults"]["triage"]["usage"]
    assert usage == {"inputTokens": 24, "outputTokens": 6, "costUsd": "0.036"}
    told = [event["data"]["data"] for event in ann.events(id)]
    lines = [data["text"] for data in told if data.get("stream") == "ai"]
    assert lines[0] == "local:some-model: 12 input and 3 output tokens, 0.018 USD\n"
    assert "does not fit the schema" in lines[1]
    assert "Sort:" not in "".join(lines)


def test_a_failing_provider(ann: ApiCaller, provider: ModelServer) -> None:
    """The step fails with what the provider said; a busy one is asked again. AI-3."""
    provider.will(refuses(503, "overloaded", {"Retry-After": "0"}), refuses(400, "no such thing"))
    view = ended(ann, ASK)
    assert view["status"] == "FAILED"
    assert view["error"] == "Step 'ask' failed: provider local answered 400: no such thing"
    assert len(provider.asked) == 2


def test_a_missing_provider(ann: ApiCaller) -> None:
    """A provider that is not configured fails its step, naming what to set. AI-8."""
    view = ended(ann, ASK.replace("local:", "nowhere:"))
    assert view["status"] == "FAILED"
    assert "set WFCORE_AI_NOWHERE_BASE_URL for the server" in view["error"]


def test_a_retry_of_the_author(ann: ApiCaller, provider: ModelServer) -> None:
    """`retry` asks again after an answer that was lost; what it used is counted. AI-7, DF-9."""
    provider.will(says("x", (5, None)), says("fine"))
    retry = ASK.replace("prompt: Say it", "prompt: Say it, retry: {attempts: 2, delay: 10ms}")
    view = ended(ann, retry)
    assert view["status"] == "COMPLETED", view["error"]
    assert view["stepResults"]["ask"]["attempts"] == 2
    assert view["usage"] == ONCE


def test_cancel_during_a_call(ann: ApiCaller, provider: ModelServer) -> None:
    """Cancelling an execution closes the connection to the provider. AI-4, EX-7."""
    provider.will(hangs)
    id = ann.start(ann.workflow(ASK))
    until(lambda: provider.asked and provider.connected)
    assert ann.post(f"/api/v1/executions/{id}/cancel").json()["status"] == "CANCELLED"
    until(lambda: provider.connected == 0)
    assert ann.view(id)["stepResults"]["ask"]["status"] == "CANCELLED"


def test_a_timeout(ann: ApiCaller, provider: ModelServer) -> None:
    """A provider that says nothing is given up at the step's timeout. AI-4."""
    provider.will(hangs)
    view = ended(ann, ASK.replace("prompt: Say it", "prompt: Say it, timeout: 300ms"))
    assert view["statusReason"]["code"] == "TIMEOUT"
    assert "ran into its timeout of 0.3 s" in view["error"]
    until(lambda: provider.connected == 0)


def test_a_budget_that_fails(ann: ApiCaller, provider: ModelServer) -> None:
    """A step beyond the budget is not asked, and says what was spent. BU-1."""
    view = ended(ann, TWICE % "fail")
    assert view["status"] == "FAILED"
    assert view["error"] == (
        "Step 'two' failed: the budget is spent: 15 tokens for 0.018 USD; "
        "maxTokens is 15, maxCostUsd is 5"
    )
    assert [asked.prompt for asked in provider.asked] == ["First"]
    assert view["usage"] == ONCE


def test_a_budget_that_people_extend(ann: ApiCaller, provider: ModelServer) -> None:
    """People see what was spent; each yes lets one more budget's worth be spent. BU-2."""
    id, approval_id = ann.paused(ann.workflow(TWICE % "approve"))
    approval = ann.get(f"/api/v1/approvals/{approval_id}").json()
    assert (approval["purpose"], approval["stepName"]) == ("budget", "two")
    assert "15 tokens for 0.018 USD; maxTokens is 15" in approval["approvalMessage"]
    assert len(provider.asked) == 1
    for asked in (2, 3):
        approval_id = ann.open_approval(id)
        assert ann.post(f"/api/v1/approvals/{approval_id}/approve").status_code == 200
        view = ann.rested(id)
        assert len(provider.asked) == asked
    assert view["status"] == "COMPLETED"
    assert view["usage"] == {"inputTokens": 36, "outputTokens": 9, "costUsd": "0.054"}
    assert all(step["attempts"] == 1 for step in view["stepResults"].values())
    told = [event["event"] for event in ann.events(id)]
    assert told.count("approval.created") == told.count("approval.approved") == 2


def test_a_budget_that_people_do_not_extend(ann: ApiCaller, provider: ModelServer) -> None:
    """A no cancels the execution, and nothing more is asked. BU-2."""
    id, approval_id = ann.paused(ann.workflow(TWICE % "approve"))
    assert ann.post(f"/api/v1/approvals/{approval_id}/reject").status_code == 200
    view = ann.view(id)
    assert (view["status"], view["statusReason"]["code"]) == ("CANCELLED", "APPROVAL_REJECTED")
    assert len(provider.asked) == 1


def test_a_budget_over_a_loop(ann: ApiCaller, provider: ModelServer) -> None:
    """Every round is held against the one budget; a yes lets the rounds go on. BU-1, BU-2."""
    id, approval_id = ann.paused(ann.workflow(LOOP))
    assert [asked.prompt for asked in provider.asked] == ["Sort a", "Sort b"]
    approval = ann.get(f"/api/v1/approvals/{approval_id}").json()
    assert (approval["purpose"], approval["stepName"]) == ("budget", "each.2.ask")
    assert ann.post(f"/api/v1/approvals/{approval_id}/approve").status_code == 200
    view = ann.rested(id)
    assert view["status"] == "COMPLETED", view["error"]
    assert [asked.prompt for asked in provider.asked] == [f"Sort {item}" for item in "abcd"]
    assert view["usage"] == {"inputTokens": 48, "outputTokens": 12, "costUsd": "0.072"}
    assert view["stepResults"]["each.3.ask"]["usage"] == ONCE


def test_a_budget_in_a_branch(ann: ApiCaller, provider: ModelServer) -> None:
    """A branch that waits for more budget does not keep the others waiting. BU-2."""
    id, approval_id = ann.paused(ann.workflow(BRANCHES))
    assert ann.view(id)["stepResults"]["work"]["output"] == "worked"
    assert len(provider.asked) == 1
    assert ann.post(f"/api/v1/approvals/{approval_id}/approve").status_code == 200
    result = ann.result(id)
    assert result["status"] == "COMPLETED", result["error"]
    assert result["output"] == {"asked": "hello", "done": "worked"}


def test_an_unknown_price_under_a_budget(ann: ApiCaller, provider: ModelServer) -> None:
    """With maxCostUsd a model without a known price is not asked. BU-3."""
    view = ended(ann, TWICE.replace("local:", "anthropic:") % "approve")
    assert view["status"] == "FAILED"
    assert "anthropic:some-model has no known price" in view["error"]
    assert provider.asked == []


def test_nothing_leaks(site: Site, ann: ApiCaller, provider: ModelServer) -> None:
    """
    Secret values reach the provider and nobody else; the provider's key is in no answer,
    event, log or file, whatever the provider says. AI-6, SC-1, SC-4.
    """
    provider.will(
        refuses(400, f"bad {KEY} and {TOKEN}"), says(f"your key is {KEY}, your token {TOKEN}")
    )
    flow = ann.workflow(LEAKY)
    body = {"inputs": {"token": TOKEN}, "enableMonitoring": True}
    id = ann.post(f"/api/v1/workflows/{flow}/executions?wait=50", body).json()["executionId"]
    assert ann.result(id)["status"] == "COMPLETED"
    assert [TOKEN in asked.prompt for asked in provider.asked] == [True, True]
    shown = [
        ann.get(path).text
        for path in (
            f"/api/v1/executions/{id}",
            f"/api/v1/executions/{id}/result",
            f"/api/v1/executions/{id}/events",
            "/api/v1/executions",
            f"/api/v1/workflows/{flow}",
            "/metrics",
        )
    ]
    assert "your key is ***, your token ***" in shown[1]
    assert "step.log" in shown[2]
    everything = "".join(shown) + site.server.log.read_text()
    assert KEY not in everything
    assert TOKEN not in everything
    assert kept_with("step.log", site.data)
    assert not kept_with(KEY, site.data)


def test_a_call_of_a_killed_server(site: Site, ann: ApiCaller, provider: ModelServer) -> None:
    """A question whose server was killed is INTERRUPTED, and is not asked again. AI-3, EX-11."""
    provider.will(hangs)
    id = ann.start(ann.workflow(ASK))
    until(lambda: provider.asked and provider.connected)
    site.kill()
    until(lambda: provider.connected == 0)
    site.serve()
    until(lambda: ann.view(id)["status"] == "INTERRUPTED")
    step = ann.view(id)["stepResults"]["ask"]
    assert (step["status"], step["usage"]) == ("INTERRUPTED", None)
    assert len(provider.asked) == 1
