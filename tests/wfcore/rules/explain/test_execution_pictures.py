"""The axis, the rows and the differences that pages draw of executions."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wfcore.model.execution import Execution, StepResult, StepStatus
from wfcore.model.workflow import (
    ApprovalStep,
    Branch,
    CodeStep,
    Definition,
    Language,
    LoopStep,
    ParallelStep,
)
from wfcore.rules.explain.differences import changed, step_differences
from wfcore.rules.explain.progress import key_of, rounds_of, rows
from wfcore.rules.explain.timeline import axis
from wfcore.testing import builders as make
from wfcore.testing.builders import NOW
from wfcore.time import HOUR, EpochMs, later

DONE, FAILED = StepStatus.COMPLETED, StepStatus.FAILED
LAST = later(NOW, HOUR)


def code(name: str) -> CodeStep:
    return CodeStep(name, Language.BASH, ":")


def result(begin: int, end: int | None = None, status: StepStatus = DONE, **more) -> StepResult:
    ended = None if end is None else EpochMs(NOW + end)
    return StepResult(status, EpochMs(NOW + begin), ended, **more)


def run(results, **more) -> Execution:
    return make.execution(accepted_at=NOW, step_results=results, **more)


FLOW = Definition("flow", (code("a"), ApprovalStep("ask"), code("b")), ())


def test_long_waiting_is_cut_out_of_the_axis() -> None:
    """Of 200 ms of work around an hour's question, each half keeps nearly half. XP-3."""
    asked = result(100, HOUR + 100, approval_id="appr_1")
    ended = run({"a": result(0, 100), "ask": asked, "b": result(HOUR + 100, HOUR + 200)},
                completed_at=EpochMs(NOW + HOUR + 200))  # fmt: skip
    time = axis(ended, FLOW, LAST)
    assert [cut.length for cut in time.cuts] == [HOUR]
    a, ask, b = (row.bars[0] for row in rows(ended, FLOW, time, LAST, {}))
    assert round(a.width, 2) == round(b.width, 2) == 0.47
    assert round(ask.width, 2) == 0.06


def test_a_short_wait_stays() -> None:
    """Waiting that is short beside the work is drawn at its length. XP-3."""
    ended = run({"a": result(0, 900), "b": result(1_000, 2_000)}, completed_at=later(NOW, 2_000))
    assert axis(ended, FLOW, LAST).cuts == ()


@pytest.mark.parametrize(("wait", "cut"), [(100, False), (10_000, False), (10_001, True)])
def test_a_wait_that_one_sees_pass_stays(wait: int, cut: bool) -> None:
    """Up to ten seconds are drawn at their length, also beside steps of milliseconds. XP-3."""
    until = 50 + wait
    ended = run({"a": result(0, 50), "b": result(until, until + 50)},
                completed_at=later(NOW, until + 50))  # fmt: skip
    assert bool(axis(ended, FLOW, LAST).cuts) is cut


@given(st.lists(st.tuples(st.integers(0, 10**9), st.integers(0, 10**9)), max_size=12),
       st.lists(st.integers(-10, 2 * 10**9), max_size=8))  # fmt: skip
def test_the_axis_never_runs_backwards(spans: list[tuple[int, int]], at: list[int]) -> None:
    """Whatever ran when, every instant has a place from 0 to 1, and order is kept. XP-3."""
    results = {f"s{n}": result(min(one), max(one)) for n, one in enumerate(spans)}
    time = axis(run(results), None, EpochMs(NOW + 10**9))
    places = [time.place(EpochMs(NOW + one)) for one in sorted(at)]
    assert places == sorted(places)
    assert all(-1e-9 <= place <= 1 + 1e-9 for place in places)
    assert all(cut.width > 0 and 0 <= cut.x <= 1 for cut in time.cuts)


LOOP = LoopStep("each", [1, 2], "item", (code("inner"),))
NESTED = Definition("nested", (ParallelStep("fork", (Branch("x", (LOOP,)),)), code("last")), ())


def test_a_row_speaks_for_all_rounds() -> None:
    """One row for each step; of rounds the worst counts, in order of their numbers. XP-3."""
    begun = run(
        {
            "fork": result(0, status=StepStatus.RUNNING),
            "each": result(0, status=StepStatus.RUNNING),
            "each.10.inner": result(0, 5),
            "each.2.inner": result(0, 5, FAILED),
        }
    )
    found = rows(begun, NESTED, axis(begun, NESTED, LAST), LAST, {})
    names = [(row.step.name, row.depth, row.loops, row.status) for row in found]
    running = StepStatus.RUNNING
    assert names == [
        ("fork", 0, (), running),
        ("each", 1, (), running),
        ("inner", 2, ("each",), FAILED),
        ("last", 0, (), None),
    ]
    assert [key for key, _ in found[2].results] == ["each.2.inner", "each.10.inner"]
    assert dict(found[2].counts) == {DONE: 1, FAILED: 1}


def test_keys_and_rounds_belong_together() -> None:
    """What a key says of rounds leads back to the key. XP-3."""
    assert rounds_of("outer.2.inner.0.step") == (2, 0)
    assert key_of("step", ("outer", "inner"), (2, 0)) == "outer.2.inner.0.step"
    assert (rounds_of("step"), key_of("step", (), ())) == ((), "step")


def test_what_differs_between_two_executions() -> None:
    """Steps of either, with the fields that are not the same; inputs by name. XP-4."""
    one = run({"a": result(0, 1, output=1), "b": result(1, 2, FAILED, error="no")})
    other = run({"a": result(5, 9, output=1), "b": result(9, 10), "c": result(10, 11)})
    found = {each.name: each.fields for each in step_differences(one, other)}
    assert found == {"a": frozenset(), "b": {"status", "error"}, "c": {"status"}}
    assert changed({"x": 1, "y": None}, {"x": 1, "z": 0}) == ("y", "z")
