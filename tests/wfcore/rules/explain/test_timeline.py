"""Axis, rows and differences of executions in numbers: what is cut out, and where bars stand."""

import pytest

from wfcore.model.event import EventKind as E
from wfcore.model.execution import Awaits, StepStatus, Unread, leaving_out
from wfcore.model.review import ApprovalStep
from wfcore.model.workflow import DelayStep, LoopStep
from wfcore.rules.explain.differences import Difference, changed, step_differences
from wfcore.rules.explain.progress import ProgressRow, rows, running_loop
from wfcore.rules.explain.timeline import Axis, Cut, axis, earlier_attempts, ticks
from wfcore.testing import builders as make
from wfcore.testing.builders import NOW
from wfcore.time import EpochMs

S = StepStatus


def at(ms: int) -> EpochMs:
    return EpochMs(NOW + ms)


def ran(since: int, until: int | None, status: StepStatus = S.COMPLETED, **more: object):
    ended = None if until is None else at(until)
    return make.step_result(status, started_at=at(since), completed_at=ended, **more)


def run(*results: object, end: int | None = None, **more: object):
    named = {f"s{number}": result for number, result in enumerate(results)}
    completed = None if end is None else at(end)
    fields = {"step_results": named, "accepted_at": NOW, "completed_at": completed, **more}
    return make.execution(**fields)


def plain(end: int) -> Axis:
    return Axis(((NOW, 0.0), (at(end), 1.0)))


def test_long_waiting_is_cut_out() -> None:
    """Two seconds of work around a hundred of waiting fill the rest of the axis. XP-3."""
    found = axis(run(ran(0, 1_000), ran(101_000, 102_000), end=102_000), None, at(0))
    (begin, since, until, end) = found.points
    assert [one[0] for one in found.points] == [at(0), at(1_000), at(101_000), at(102_000)]
    assert (begin[1], since[1], until[1], end[1]) == pytest.approx((0, 0.47, 0.53, 1))
    (cut,) = found.cuts
    assert (cut.x, cut.width, cut.length) == (pytest.approx(0.47), 0.06, 100_000)
    assert found.place(at(51_000)) == pytest.approx(0.5)
    assert [found.place(at(one)) for one in (-5, 0)] == [0, 0]
    assert [found.place(at(one)) for one in (102_000, 10**9)] == [1, 1]
    assert found.place(at(1)) == pytest.approx(0.47 / 1_000)


@pytest.mark.parametrize(
    ("work", "wait", "is_cut"),
    [(100_000, 40_000, False), (100_000, 40_001, True), (50, 10_000, False), (50, 10_001, True)],
)
def test_a_wait_is_long_beyond_a_fifth_of_the_work(work: int, wait: int, is_cut: bool) -> None:
    """XP-3: of the work alone, not of all the time; and beyond ten seconds, whatever worked."""
    end = 2 * work + wait
    found = axis(run(ran(0, work), ran(work + wait, end), end=end), None, at(0))
    assert bool(found.cuts) is is_cut
    if not is_cut:
        assert found == plain(end)


def test_work_that_overlaps_is_one_piece() -> None:
    """Inside another, across its end, or right after it; no wait is between. XP-3."""
    results = (ran(0, 5_000), ran(1_000, 2_000), ran(4_000, 6_000), ran(6_000, 7_000))
    found = axis(run(*results, ran(50_000, 51_000), end=51_000), None, at(0))
    assert [one.length for one in found.cuts] == [43_000]


def test_of_many_waits_the_eight_longest_are_cut() -> None:
    """Their pieces share two fifths of the axis. XP-3."""
    lengths = [n * 100 for n in (900, 500, 1_000, 800, 700, 600, 1_100, 1_200, 1_300, 1_400)]
    since, results = 0, [ran(0, 10)]
    for length in lengths:
        since += 10 + length
        results.append(ran(since, since + 10))
    found = axis(run(*results, end=since + 10), None, at(0))
    assert [one.length for one in found.cuts] == [one for one in lengths if one > 60_000]
    assert {one.width for one in found.cuts} == {0.05}
    places = [one[1] for one in found.points]
    assert places == sorted(places)
    assert places[-1] == pytest.approx(1)


def test_work_that_takes_no_time_is_seen() -> None:
    """What waits before and after it is cut; the place of each instant is one. XP-3."""
    found = axis(run(ran(50_000, 50_000), end=100_000), None, at(0))
    assert found.cuts == (Cut(0, 0.06, 50_000), Cut(0.06, 0.06, 50_000))
    places = [found.place(at(one)) for one in (0, 50_000, 100_000)]
    assert places == [0, 0.06, 0.12]


def test_what_goes_on_works_until_now() -> None:
    """An execution that just began has an axis of a millisecond. XP-3."""
    assert axis(run(ran(0, None, S.RUNNING)), None, at(7_000)) == plain(7_000)
    assert axis(run(), None, at(0)) == axis(run(end=0), None, at(9)) == plain(1)


DEFINITION = make.definition(DelayStep("s1", 5), ApprovalStep("s2"), LoopStep("s3", [], "x", ()))
PASSIVE = [
    ran(1_000, 90_000, awaits=Awaits.TIME),
    ran(1_000, 90_000, awaits=Awaits.STEPS),
    ran(1_000, 90_000, approval_id="appr_1"),
    ran(1_000, None, S.AWAITING_APPROVAL),
    ran(1_000, None, S.INTERRUPTED),
]


@pytest.mark.parametrize("result", PASSIVE)
def test_what_only_waits_is_no_work(result) -> None:
    """A step that lets time pass, holds others, asks people, or stopped. XP-3."""
    found = axis(run(ran(0, 1_000), result, end=90_000), None, at(0))
    assert [one.length for one in found.cuts] == [89_000]


@pytest.mark.parametrize("name", ["s1", "s2", "s3"])
def test_what_only_waits_is_known_from_the_definition(name: str) -> None:
    """Once it has ended; a step that the definition does not have works. XP-3."""
    results = {"work": ran(0, 1_000), name: ran(1_000, 90_000)}
    found = run(end=90_000, step_results=results)
    assert [one.length for one in axis(found, DEFINITION, at(0)).cuts] == [89_000]
    assert axis(found, None, at(0)) == axis(found, make.definition(), at(0)) == plain(90_000)


def test_a_row_tells_how_far_a_step_is() -> None:
    """Its kind, its rounds, the state that tells most, and its bars. XP-3."""
    loop = LoopStep("each", [], "item", (make.code_step("work"),))
    definition = make.definition(make.code_step("s0"), loop)
    results = {
        "s0": ran(0, 500),
        "each.10.work": ran(500, 1_000, S.FAILED),
        "each.2.work": ran(500, None, S.RUNNING),
        "each.1.work": ran(500, 750, S.FAILED),
    }
    found = run(end=1_000, step_results=results)
    first, each, work = rows(found, definition, plain(1_000), at(1_000), {})
    assert (first.kind, first.took, first.depth, first.loops) == ("python", 500, 0, ())
    assert places(first) == [(0.0, 0.5, S.COMPLETED)]
    assert (each.kind, each.status, each.bars, each.took) == ("loop", None, (), None)
    assert (work.depth, work.loops, work.status, work.took) == (1, ("each",), S.FAILED, None)
    assert [key for key, _ in work.results] == ["each.1.work", "each.2.work", "each.10.work"]
    assert work.counts == {S.FAILED: 2, S.RUNNING: 1}
    failed, running = (0.5, 0.25, S.FAILED), (0.5, 0.5, S.RUNNING)
    assert places(work) == [failed, running, (0.5, 0.5, S.FAILED)]


def places(row: ProgressRow) -> list[tuple[float, float, S]]:
    return [(one.x, one.width, one.status) for one in row.bars]


def bars_of(result, *events: tuple[E, int]) -> list[tuple[int, int, S]]:
    """Of step `s`: from when to when in ms of a second, and the status."""
    told = [
        make.event(n, kind=kind, at=at(ms), data={"step": "s"})
        for n, (kind, ms) in enumerate(events)
    ]
    definition = make.definition(make.code_step("s"))
    found = run(step_results={"s": result})
    (row,) = rows(found, definition, plain(1_000), at(1_000), earlier_attempts(told))
    return [
        (round(one.x * 1_000), round((one.x + one.width) * 1_000), one.status) for one in row.bars
    ]


BEGUN, AGAIN = E.STEP_STARTED, E.STEP_RETRYING


@pytest.mark.parametrize(
    ("result", "events", "bars"),
    [
        (
            ran(0, 900, attempts=3, attempt_at=at(700)),
            [
                (BEGUN, 0),
                (AGAIN, 100),
                (BEGUN, 300),
                (AGAIN, 400),
                (BEGUN, 700),
                (E.STEP_COMPLETED, 900),
            ],
            [(0, 100, S.FAILED), (300, 400, S.FAILED), (700, 900, S.COMPLETED)],
        ),
        (
            ran(0, None, S.RUNNING, attempts=2, attempt_at=at(300), retry_at=at(2_000)),
            [(BEGUN, 0), (AGAIN, 100), (BEGUN, 300), (AGAIN, 400)],
            [(0, 100, S.FAILED), (300, 400, S.FAILED)],
        ),
        (
            ran(0, None, S.RUNNING, attempts=2, attempt_at=at(600)),
            [(BEGUN, 0), (E.EXECUTION_INTERRUPTED, 500), (BEGUN, 600)],
            [(0, 500, S.INTERRUPTED), (600, 1_000, S.RUNNING)],
        ),
        (
            ran(0, 900, attempts=2, attempt_at=at(600)),
            [(BEGUN, 0), (AGAIN, 100), (BEGUN, 300), (E.STEP_POSTPONED, 310), (BEGUN, 600)],
            [(0, 100, S.FAILED), (600, 900, S.COMPLETED)],
        ),
        (
            ran(500, 900, attempts=2, earlier=1),
            [(BEGUN, 0), (AGAIN, 100), (BEGUN, 200), (E.STEP_COMPLETED, 300), (BEGUN, 500)],
            [(500, 900, S.COMPLETED)],
        ),
        (ran(0, 900, attempts=3, attempt_at=at(700)), [], [(0, 900, S.COMPLETED)]),
        (
            ran(0, 900, attempts=3, attempt_at=at(700)),
            [(BEGUN, 0), (AGAIN, 9)],
            [(0, 900, S.COMPLETED)],
        ),
        (ran(0, 0, S.SKIPPED, attempts=0), [], [(0, 0, S.SKIPPED)]),
    ],
)
def test_each_attempt_is_a_bar(result, events, bars) -> None:
    """As long as its events tell of it; what was postponed never ran; else one bar. XP-5."""
    assert bars_of(result, *events) == bars


def test_a_single_round_has_no_time_of_its_own() -> None:
    """It says nothing of the loop. XP-3."""
    definition = make.definition(LoopStep("each", [], "item", (make.code_step("work"),)))
    found = run(end=1_000, step_results={"each.0.work": ran(0, 500)})
    assert [one.took for one in rows(found, definition, plain(1_000), at(0), {})] == [None, None]


def test_what_is_different_between_two_executions() -> None:
    """Each step of either, with what is not the same; a null is not nothing. XP-4."""
    same, other = make.step_result(), make.step_result(S.FAILED, error="no", attempts=2)
    one = make.execution(step_results={"a": same, "b": same, "c": same})
    two = make.execution(step_results={"d": same, "b": other, "a": same})
    assert [*step_differences(one, two)] == [
        Difference("a", same, same, frozenset()),
        Difference("b", same, other, frozenset({"status", "error", "attempts"})),
        Difference("c", same, None, frozenset({"status"})),
        Difference("d", None, same, frozenset({"status"})),
    ]
    assert changed({"a": None, "b": 1, "c": 1}, {"b": 1, "c": 2, "d": None}) == ("a", "c", "d")
    assert changed({"a": None}, {"a": None}) == ()


def test_a_running_loop_says_how_many_rounds_have_begun() -> None:
    """Of how many; its items are not needed, and one that has ended says how long it took. XP-3."""
    inner = LoopStep("inner", "{{ a }}", "one", (DelayStep("nap", 1),))
    definition = make.definition(LoopStep("each", "{{ a }}", "item", (inner,)))
    items = Unread("exec_1", "each", 0, 9_000)
    loop = ran(0, None, S.RUNNING, awaits=Awaits.STEPS, rounds=500)
    begun = {
        "each": leaving_out(loop, items=items),
        "each.0.inner": ran(0, 5, rounds=2),
        "each.0.inner.1.nap": ran(0, 5),
        "each.320.inner": ran(5, None, S.RUNNING, awaits=Awaits.STEPS, rounds=2),
    }
    now = make.execution(step_results=begun)
    assert [(row.begun, row.rounds) for row in rows(now, definition, plain(9), at(9), {})] == [
        (2, 500),
        (0, None),
        (0, None),
    ]
    assert running_loop(now) == (2, 500)
    ended = make.execution(step_results={"each": ran(0, 9, rounds=500)})
    assert rows(ended, definition, plain(9), at(9), {})[0].rounds is None
    assert running_loop(ended) is None


@pytest.mark.parametrize(
    ("length", "times"),
    [
        (471, [0, 200, 400]),
        (134_000, [0, 60_000, 120_000]),
        (7 * 86_400_000, [0, 172_800_000, 345_600_000, 518_400_000]),
        (1, [0, 1]),
    ],
)
def test_marks_stand_at_round_times(length, times) -> None:
    """An axis has at most five marks, each at a round time since the beginning. XP-3."""
    assert [time for _, time in ticks(plain(length))] == times


def test_no_mark_stands_within_a_cut() -> None:
    """Beside a wait that is cut out, marks say the time that has really passed. XP-3."""
    cut = Cut(0.47, 0.06, 7_200_000)
    points = ((0, 0.0), (10_000, 0.47), (7_210_000, 0.53), (7_220_000, 1.0))
    found = ticks(Axis(points, (cut,)))
    assert [time for _, time in found] == [0, 5_000, 10_000, 7_215_000, 7_220_000]
    assert [round(place, 3) for place, _ in found] == [0, 0.235, 0.47, 0.765, 1]
