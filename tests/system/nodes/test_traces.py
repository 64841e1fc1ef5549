"""Spans of one execution from two servers: one that accepts, one that works. TR-1, TR-3."""

from contextlib import closing
from pathlib import Path

from tests.support.collector import a_collector
from tests.support.postgres_server import Cluster, prepared
from tests.system.scenarios.process import Server
from tests.system.scenarios.site import Site

CALLER, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
FLOW = """
steps:
  - {name: first, kind: code, language: bash, source: 'echo "$TRACEPARENT"'}
  - {name: review, kind: manual_approval, message: Look}
  - {name: second, kind: code, language: bash, source: 'echo "$TRACEPARENT"'}
"""
REQUEST, ROOT = "POST /api/v1/workflows/{id}/executions", "workflow flow"
TREE = {
    REQUEST: ("api", None),
    ROOT: ("worker", REQUEST),
    "accept": ("api", ROOT),
    "claim": ("worker", ROOT),
    "step first": ("worker", ROOT),
    "step review": ("api", ROOT),
    "resume": ("api", ROOT),
    "step second": ("worker", ROOT),
}
"""Each span, which server sent it, and the one above it."""


def test_one_trace_over_two_nodes(tmp_path: Path, server: Cluster) -> None:
    """
    What one server accepted and another one did is one tree: the steps are below the execution, and
    that is below the request, whose caller's trace it is.
    """
    store = prepared(server, "traces_of_two")
    with a_collector() as collector:
        common = {
            **collector.settings,
            "WFCORE_STORE": store,
            "WFCORE_SEAL_KEY_FILE": str(tmp_path / "api" / "seal.key"),
            "WFCORE_WARM": "0",
        }

        def of(role: str) -> dict[str, str]:
            return {**common, "WFCORE_ROLE": role, "OTEL_SERVICE_NAME": role}

        with closing(Site(tmp_path / "api", of("api"), store)) as site:
            works = Server(tmp_path / "worker", of("worker"))
            try:
                ann = site.caller()
                flow = ann.workflow(FLOW, name="flow")
                sent = {"traceparent": f"00-{CALLER}-{SPAN}-01"}
                path = f"/api/v1/workflows/{flow}/executions"
                run = ann.post(path, {"inputs": {}}, headers=sent).json()["executionId"]
                assert ann.rested(run)["status"] == "AWAITING_APPROVAL"
                ann.post(f"/api/v1/approvals/{ann.open_approval(run)}/approve", {})
                steps = ann.result(run)["stepResults"]
                spans = collector.trace(CALLER, lambda found: len(found) >= len(TREE))
            finally:
                works.kill()
    names = {one.id: one.name for one in spans}
    found = [(one.name, (one.resource["service.name"], names.get(one.parent))) for one in spans]
    assert sorted(found) == sorted(TREE.items())
    ids = {one.name: one.id for one in spans}
    (request,) = (one for one in spans if one.name == REQUEST)
    assert request.parent == SPAN
    for name in ("first", "second"):
        assert steps[name]["output"] == f"00-{CALLER}-{ids[f'step {name}']}-01"
