"""What requests bring along of a distributed trace, and the spans that are made of them."""

from collections.abc import Mapping

import pytest

from adapters_http.app import HttpConfig
from adapters_runtime.engine.spans import Span
from tests.support.http_world import World
from wfcore.model.execution import Execution
from wfcore.model.trace import Trace
from wfserver.serving.traces import Traces

ID, ABOVE = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
SENT = {"traceparent": f"00-{ID}-{ABOVE}-01", "tracestate": "shop=17"}


async def trace_of(world: World, path: str, headers: Mapping[str, str]) -> Trace | None:
    """The trace of the execution that a request starts."""
    answer = await world.post(path, {}, headers={**world.bearer, **headers})
    assert answer.status_code in (200, 202), answer.text
    async with world.services.store.view() as view:
        run = await view.get(Execution, answer.json()["executionId"])
    assert run is not None
    return run.trace


async def start_paths(world: World) -> tuple[str, str]:
    """Of the two doors: the API, and a webhook."""
    flow = await world.workflow()
    hook = await world.webhook(flow)
    return f"/api/v1/workflows/{flow}/executions", f"/api/webhooks/{hook}/trigger"


async def test_the_callers_trace_is_kept_with_what_it_starts(world: World) -> None:
    """At each door; what is malformed, or there twice, is as if it had not been sent. TR-1."""
    for path in await start_paths(world):
        assert await trace_of(world, path, SENT) == Trace(ID, ABOVE, True, "shop=17")
        for bad in ("", "00-0-0-01", f"{SENT['traceparent']}, {SENT['traceparent']}"):
            assert await trace_of(world, path, {**SENT, "traceparent": bad}) is None


class Kept:
    """Spans that are kept here; every trace is recorded."""

    def __init__(self) -> None:
        self.spans: list[Span] = []

    def put(self, span: Span) -> None:
        self.spans.append(span)

    def sampled(self, trace_id: str, sent: Trace | None) -> bool:
        return True


class TestWithSpans:
    @pytest.fixture
    def kept(self) -> Kept:
        return Kept()

    @pytest.fixture
    def config(self, kept: Kept) -> HttpConfig:
        return HttpConfig(tracing=Traces(kept))

    async def test_what_a_request_starts_is_below_its_span(self, world: World, kept: Kept) -> None:
        """The span says route and status, and neither path nor query, which may hold tokens."""
        for path in await start_paths(world):
            trace = await trace_of(world, f"{path}?api_key={world.key.text}", SENT)
            span = kept.spans.pop()
            assert trace == Trace(ID, span.id, True, "shop=17", recorded=True)
            assert (span.parent, span.kind, span.error) == (ABOVE, "SERVER", None)
            assert span.name == f"POST {span.attributes['http.route']}"
            assert world.key.text not in str(span)

    async def test_only_what_starts_something_or_belongs_to_a_trace_has_a_span(
        self, world: World, kept: Kept
    ) -> None:
        """Probes, lists and pages would drown what matters; who traces gets all that it does."""
        for path in ("/healthz", "/metrics", "/api/v1/workflows", "/nothing"):
            await world.get(path)
        assert kept.spans == []
        await world.get("/api/v1/workflows", headers={**world.bearer, **SENT})
        await world.post("/api/v1/workflows/none/executions", {})
        names = [(one.name, one.attributes["http.response.status_code"]) for one in kept.spans]
        assert names == [
            ("GET /api/v1/workflows", 200),
            ("POST /api/v1/workflows/{id}/executions", 404),
        ]
