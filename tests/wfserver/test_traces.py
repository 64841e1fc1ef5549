"""Spans on their way to a collector: who decides, what is lost, and what it costs to have none."""

import json
import subprocess
import sys
from collections.abc import Iterator

import pytest

from adapters_runtime.engine.spans import Span
from tests.support.collector import Collector, a_collector
from wfcore.errors import InvalidInput
from wfcore.model.trace import Trace
from wfserver.serving import otlp
from wfserver.serving.otlp import otlp_spans
from wfserver.serving.server import open_traces
from wfserver.serving.traces import Traces
from wfserver.settings.record import settings_from

ID, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
RECORDED = Trace(ID, SPAN, sampled=True, recorded=True)


@pytest.fixture
def collector(monkeypatch: pytest.MonkeyPatch) -> Iterator[Collector]:
    with a_collector() as made:
        for name, value in made.settings.items():
            monkeypatch.setenv(name, value)
        yield made


@pytest.mark.parametrize(
    ("sampler", "of_nobody", "of_a_caller"),
    [
        (None, True, {True: True, False: False}),
        ("always_off", False, {True: False, False: False}),
        ("always_on", True, {True: True, False: True}),
        ("parentbased_always_off", False, {True: True, False: False}),
    ],
)
async def test_the_sampler_of_the_environment_decides(
    collector: Collector,
    monkeypatch: pytest.MonkeyPatch,
    sampler: str | None,
    of_nobody: bool,
    of_a_caller: dict[bool, bool],
) -> None:
    """Once, as an execution is accepted: what is not recorded is passed on as it came. TR-2."""
    if sampler is not None:
        monkeypatch.setenv("OTEL_TRACES_SAMPLER", sampler)
    async with otlp_spans() as spans:
        traces = Traces(spans)
        assert (traces.begin("exec_1") is not None) is of_nobody
        assert traces.began(None).recorded is of_nobody
        for sampled, recorded in of_a_caller.items():
            sent = Trace(ID, SPAN, sampled, "a=1")
            passed_on = traces.began(sent)
            assert (passed_on.id, passed_on.state, passed_on.recorded) == (ID, "a=1", recorded)
            assert (passed_on == sent) is not recorded


async def test_a_part_of_all_traces_is_the_same_part_on_every_server(
    collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A ratio is taken of ids, which follow from those of executions."""
    monkeypatch.setenv("OTEL_TRACES_SAMPLER", "traceidratio")
    monkeypatch.setenv("OTEL_TRACES_SAMPLER_ARG", "0.5")
    async with otlp_spans() as one, otlp_spans() as other:
        here, there = (
            [number for number in range(64) if Traces(spans).begin(f"exec_{number}")]
            for spans in (one, other)
        )
    assert here == there
    assert 0 < len(here) < 64


async def test_a_collector_that_does_not_answer_is_not_waited_for(
    collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What there is no room for is dropped at once; a stop waits its time and no longer. TR-4."""
    collector.hangs = True
    monkeypatch.setattr(otlp, "FLUSH_S", 0.05)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "600")
    monkeypatch.setenv("OTEL_BSP_MAX_QUEUE_SIZE", "4")
    monkeypatch.setenv("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "2")
    async with otlp_spans() as spans:
        for number in range(100):
            spans.put(Span(RECORDED, f"{number:016x}", None, "work", 1, 2))
    assert collector.spans == []


async def test_what_is_queued_is_sent_before_a_server_ends(
    collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also if it would not have been sent for a long time yet; values are cut as it is said."""
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "600000")
    monkeypatch.setenv("OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT", "5")
    monkeypatch.setenv("OTEL_SERVICE_NAME", "payments")
    async with otlp_spans() as spans:
        spans.put(Span(RECORDED, "1" * 16, SPAN, "work", 1, 2, {"a": "123456789", "b": 7}))
    (seen,) = collector.spans
    assert (seen.trace, seen.id, seen.parent, seen.began, seen.ended) == (ID, "1" * 16, SPAN, 1, 2)
    assert (seen.attributes, seen.resource["service.name"]) == ({"a": "12345", "b": 7}, "payments")


async def test_traces_need_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who asks for them without it is told what to install; who does not needs nothing."""
    monkeypatch.setitem(sys.modules, "wfserver.serving.otlp", None)
    async with open_traces(settings_from({})) as traces:
        assert traces is None
    with pytest.raises(InvalidInput, match=r"WFCORE_TRACES: needs the extra otel: pip install"):
        async with open_traces(settings_from({"WFCORE_TRACES": "1"})):
            pass


async def test_the_switch_of_the_sdk_switches_them_off(
    collector: Collector, monkeypatch: pytest.MonkeyPatch, tmp_path: object
) -> None:
    """`OTEL_SDK_DISABLED` is what every program with OpenTelemetry obeys."""
    monkeypatch.setenv("OTEL_SDK_DISABLED", "true")
    async with open_traces(settings_from({"WFCORE_TRACES": "1"})) as traces:
        assert traces is None


def test_a_server_without_traces_loads_nothing_for_them() -> None:
    """Nothing of OpenTelemetry, nor of what it needs."""
    loads = (
        "import json, sys, wfserver.serving.server, wfserver.serving.engine;"
        "print(json.dumps(sorted(sys.modules)))"
    )
    ran = subprocess.run((sys.executable, "-c", loads), capture_output=True, timeout=60, check=True)
    packages = {name.partition(".")[0] for name in json.loads(ran.stdout)}
    assert not packages & {"opentelemetry", "google", "requests", "urllib3"}
