"""Traces of real servers, as a collector receives them over OTLP and HTTP. TR-1 to TR-4."""

from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

import pytest

from tests.support.collector import Collector, Seen, a_collector
from tests.support.model_server import KEY, ModelServer, a_model_server, says
from tests.support.receiver import a_receiver
from wfcore.model.access import Principal
from wfcore.model.execution import TriggerSource
from wfcore.model.trace import Trace
from wfcore.usecases.audit.auditing import Origin
from wfcore.usecases.executions.starting import start_execution

from .process import until
from .site import Site

CALLER, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
SECOND, THIRD = "5bf92f3577b34da6a3ce929d0e0e4736", "6bf92f3577b34da6a3ce929d0e0e4736"
SENT = {"traceparent": f"00-{CALLER}-{SPAN}-01", "tracestate": "shop=17"}
CANARY = "c4nary-71d2"

CHILD = "steps: [{name: inner, kind: code, language: bash, source: 'echo \"$TRACEPARENT\"'}]"
WHOLE = """
variables: {{pin: {{type: string, secret: true, default: {canary}}}}}
steps:
  - name: tell
    kind: code
    language: bash
    source: 'echo "$TRACEPARENT $TRACESTATE"'
  - {{name: sort, kind: ai, model: "local:some-model", prompt: "Sort {{{{ variables.pin }}}}"}}
  - name: sub
    kind: workflow
    workflow: part
  - {{name: review, kind: manual_approval, message: Look}}
  - name: each
    kind: loop
    items: [1, 2]
    as: one
    steps:
      - {{name: work, kind: code, language: bash, source: echo done}}
  - name: fail
    kind: code
    language: bash
    source: 'echo "$WF_VAR_pin" >&2; exit 3'
    retry: {{attempts: 2, delay: 1ms}}
"""


REQUEST, ROOT, SUB = "POST /api/v1/workflows/{id}/executions", "workflow whole", "workflow part"
TREE = [
    (ROOT, REQUEST),
    ("accept", ROOT),
    ("claim", ROOT),
    ("resume", ROOT),
    ("step tell", ROOT),
    ("step sort", ROOT),
    ("chat some-model", "step sort"),
    ("step sub", ROOT),
    (SUB, "step sub"),
    ("accept", SUB),
    ("claim", SUB),
    ("step inner", SUB),
    ("step review", ROOT),
    ("step each", ROOT),
    ("step work", "step each"),
    ("step work", "step each"),
    ("step fail", ROOT),
    ("step fail", ROOT),
    ("POST", ROOT),
]
"""Spans below the one of the request, with their parents."""
MS = 1_000_000


@pytest.fixture(scope="module")
def collector() -> Iterator[Collector]:
    with a_collector() as made:
        yield made


@pytest.fixture(scope="module")
def provider() -> Iterator[ModelServer]:
    with a_model_server() as made:
        yield made


@pytest.fixture(scope="module")
def site(
    tmp_path_factory: pytest.TempPathFactory,
    collector: Collector,
    provider: ModelServer,
    store: str | None,
) -> Iterator[Site]:
    settings = {
        **collector.settings,
        "WFCORE_AI_LOCAL_BASE_URL": provider.openai,
        "WFCORE_AI_LOCAL_API_KEY": KEY,
        "WFCORE_ALLOW_PRIVATE_CALLBACKS": "1",
        "OTEL_RESOURCE_ATTRIBUTES": "deployment.environment.name=test",
        "OTEL_EXPORTER_OTLP_HEADERS": f"authorization={CANARY}",
    }
    with closing(Site(tmp_path_factory.mktemp("site") / "data", settings, store)) as made:
        yield made


def below(spans: Sequence[Seen], parent: Seen) -> list[str]:
    """The names of the spans that *parent* is the parent of, in the order of their ends."""
    return [one.name for one in spans if one.parent == parent.id]


def named(spans: Sequence[Seen], name: str) -> Seen:
    (found,) = [one for one in spans if one.name == name]
    return found


def test_one_trace_for_everything_that_a_request_causes(
    site: Site, collector: Collector, provider: ModelServer
) -> None:
    """
    Request, acceptance, claims, steps, a call of a model, a child, an approval and the callback are
    one tree below the caller's span; what is called is told of it, and nothing shows a secret.
    """
    ann = site.caller()
    provider.turns.append(says("high"))
    ann.workflow(CHILD, name="part")
    flow = ann.workflow(WHOLE.format(canary=CANARY), name="whole")
    with a_receiver() as receiver:
        body = {"inputs": {}, "callbackUrl": receiver.url}
        answer = ann.post(f"/api/v1/workflows/{flow}/executions", body, headers=SENT)
        run_id = answer.json()["executionId"]
        assert ann.rested(run_id)["status"] == "AWAITING_APPROVAL"
        ann.post(f"/api/v1/approvals/{ann.open_approval(run_id)}/approve", {})
        result = ann.result(run_id)
        assert result["status"] == "FAILED"
        (called,) = receiver.wait_for(1)
    spans = collector.trace(CALLER, lambda found: len(found) > len(TREE))
    ids = {one.id: one for one in spans}
    assert len(ids) == len(spans)
    shown = sorted((one.name, ids[one.parent].name) for one in spans if one.parent in ids)
    assert shown == sorted(TREE)
    (request,) = [one for one in spans if one.parent not in ids]
    assert (request.parent, request.state) == (SPAN, "shop=17")
    assert request.attributes["http.response.status_code"] == 202
    for one in spans:
        if one.parent in ids and ids[one.parent] is not request and one.name != "POST":
            assert ids[one.parent].began <= one.began, one
            assert one.ended <= ids[one.parent].ended + MS, one
    told = named(spans, "step tell")
    steps = result["stepResults"]
    assert steps["tell"]["output"] == f"00-{CALLER}-{told.id}-01 shop=17"
    chat = named(spans, "chat some-model")
    assert provider.asked[-1].headers["traceparent"] == f"00-{CALLER}-{chat.id}-01"
    assert chat.attributes == {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "local",
        "gen_ai.request.model": "some-model",
        "gen_ai.output.type": "text",
        "gen_ai.usage.input_tokens": 12,
        "gen_ai.usage.output_tokens": 3,
        "gen_ai.response.finish_reasons": ["stop"],
    }
    first, second = (one for one in spans if one.name == "step fail")
    assert (first.failed, first.attributes["wfcore.step.status"]) == (True, "RETRYING")
    assert second.links == (f"{CALLER}-{first.id}",)
    assert second.attributes["error.type"] == "STEP_FAILED"
    callback = named(spans, "POST")
    assert called.headers["traceparent"] == f"00-{CALLER}-{callback.id}-01"
    assert not any(CANARY.encode() in raw for raw in collector.raw)
    assert {one.resource["service.name"] for one in spans} == {"wfcore"}
    assert {one.resource["deployment.environment.name"] for one in spans} == {"test"}
    path, headers = collector.requests[0]
    assert (path, headers["authorization"]) == ("/v1/traces", CANARY)


GATED = """
steps:
  - name: one
    kind: code
    language: bash
    source: |
      touch "{folder}/begun-$WF_ATTEMPT"
      until [ -e "{folder}/go-$WF_ATTEMPT" ]; do sleep 0.01; done
"""


def test_a_trace_goes_on_after_a_kill_and_on_another_server(
    tmp_path: Path, collector: Collector
) -> None:
    """
    The attempt that was lost is a span that failed, the next one links to it, and both are below
    the span of the execution: of none of them did the second server know before. TR-3.
    """
    settings = {**collector.settings, "WFCORE_LEASE": "4s"}
    with closing(Site(tmp_path / "data", settings)) as site:
        ann = site.caller()
        flow = ann.workflow(GATED.format(folder=site.shared))
        trace = Trace(SECOND, SPAN, sampled=True, recorded=True)
        site.do(
            lambda services: start_execution(
                services,
                Principal(ann.account),
                flow,
                {},
                source=TriggerSource.MANUAL,
                origin=Origin(trace=trace),
            )
        )
        until((site.shared / "begun-1").exists)
        collector.trace(SECOND, lambda found: "claim" in [one.name for one in found])
        site.kill()
        site.serve()
        until((site.shared / "begun-2").exists)
        (site.shared / "go-2").touch()
        spans = collector.trace(SECOND, lambda found: SPAN in [one.parent for one in found])
    (whole,) = [one for one in spans if one.parent == SPAN]
    assert {one.parent for one in spans if one is not whole} == {whole.id}
    lost, again = (one for one in spans if one.step == "one")
    assert (lost.failed, lost.attributes["wfcore.step.status"]) == (True, "INTERRUPTED")
    assert (again.failed, again.attributes["wfcore.step.attempt"]) == (False, 2)
    assert again.links == (f"{SECOND}-{lost.id}",)
    assert sorted(one.name for one in spans if one is not whole and not one.step) == [
        "claim",
        "resume",
    ]
    assert lost.attributes["wfcore.worker"] != again.attributes["wfcore.worker"]


def test_what_follows_from_another_execution_links_to_it(site: Site, collector: Collector) -> None:
    """A chained execution has a trace of its own, a redriven one that of its request."""
    ann = site.caller()
    first = ann.workflow("steps: [{name: fail, kind: code, language: bash, source: exit 1}]")
    run_id = ann.start(first)
    assert ann.result(run_id)["status"] == "FAILED"
    again = ann.post(f"/api/v1/executions/{run_id}/redrive").json()["executionId"]
    spans = collector.wait(lambda found: _whole(found, again))
    old, new = _whole(spans, run_id), _whole(spans, again)
    assert old
    assert new
    assert new.links == (f"{old.trace}-{old.id}",)
    assert new.trace != old.trace


def _whole(spans: Sequence[Seen], run_id: str) -> Seen | None:
    """The span of an execution."""
    key = "wfcore.execution.status"
    found = [one for one in spans if one.attributes.get("wfcore.execution.id") == run_id]
    return next((one for one in found if key in one.attributes), None)
