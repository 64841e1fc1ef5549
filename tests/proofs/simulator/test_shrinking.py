"""A failing world is made small, and is still the same failure."""

from collections.abc import Callable

import pytest
from attrs import evolve

from wfcore.testing.simulator import play, shrink_scenario, simulate, violation_kind

from . import planted, planted_requests


@pytest.mark.parametrize(
    "plant", [planted.requeued_after_death, planted.heartless, planted_requests.key_read_twice]
)
def test_a_failure_shrinks_to_what_it_needs(
    monkeypatch: pytest.MonkeyPatch, plant: Callable[[pytest.MonkeyPatch], None]
) -> None:
    """Few acts and faults are left, and without any of the acts nothing is broken that way."""
    plant(monkeypatch)
    failures = simulate(range(1, 501), failures=10).failures
    failure = max(failures, key=lambda failure: len(failure.scenario.acts))
    small, kind = shrink_scenario(failure.scenario, failure.broken), violation_kind(failure.broken)
    assert violation_kind(play(small).broken) == kind
    assert len(small.acts) <= 4 < len(failure.scenario.acts)
    assert len(small.faults) <= 3
    for act in small.acts:
        others = tuple(other for other in small.acts if other is not act)
        assert violation_kind(play(evolve(small, acts=others)).broken) != kind


def test_a_trace_tells_what_was_broken(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its last line names the promise, and the lines before say how it came to that."""
    planted.requeued_after_death(monkeypatch)
    (failure,) = simulate(range(1, 501)).failures
    trace = play(shrink_scenario(failure.scenario, failure.broken), traced=True).trace
    assert f"broken: {violation_kind(failure.broken)}: " in trace[-1]
    assert any("start step" in line for line in trace)
    assert any(" meets: " in line for line in trace)
