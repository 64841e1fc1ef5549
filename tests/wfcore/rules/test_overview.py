"""The figures of an overview."""

from attrs import evolve

from wfcore.model.execution import ReasonCode, StatusReason
from wfcore.rules.overview import failures, percentile
from wfcore.testing import builders as make
from wfcore.time import DurationMs


def test_percentiles_are_durations_that_occurred() -> None:
    """The duration below which a part lies; None of nothing."""
    lengths = [DurationMs(one) for one in range(100, 0, -1)]
    assert (percentile(lengths, 0.5), percentile(lengths, 0.95)) == (51, 96)
    assert percentile(lengths[:1], 0.95) == 100
    assert percentile([], 0.5) is None


def test_failures_with_the_same_step_and_first_line_are_one() -> None:
    """The most frequent stands first, with its newest execution."""
    reason = StatusReason(ReasonCode.STEP_FAILED, step_name="pay")
    runs = [
        evolve(make.execution(f"exec_{n}"), error=text, status_reason=reason)
        for n, text in enumerate(("other", "\n no money \nline 1", "no money\nline 2"))
    ]
    assert [(one.line, one.step, one.times, one.last) for one in failures(runs)] == [
        ("no money", "pay", 2, "exec_1"),
        ("other", "pay", 1, "exec_0"),
    ]
