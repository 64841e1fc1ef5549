"""Whatever the world does to an execution of a tree of steps, the laws of control flow hold."""

import inspect
from collections.abc import Callable, Iterator
from functools import cache
from itertools import chain

import pytest
from attrs import evolve
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from wfcore.errors import IllegalMove
from wfcore.machine import Row
from wfcore.model.execution import Awaits, StepStatus, TriggerSource
from wfcore.model.execution import ExecutionStatus as S
from wfcore.model.workflow import (
    ApprovalStep,
    Branch,
    ChildStep,
    CodeStep,
    Definition,
    DelayStep,
    LoopStep,
    ParallelStep,
    Retry,
)
from wfcore.rules.execution import fold_steps, plan, proceed, retry
from wfcore.rules.execution.machine import EXECUTION, StepBegun
from wfcore.rules.execution.plan import Begin, Complete
from wfcore.rules.execution.scope import name_of
from wfcore.rules.execution.step_machine import STEP, StepState
from wfcore.rules.limits import MAX_IN_FLIGHT
from wfcore.testing import builders
from wfcore.testing.strategies.trees import trees

from . import test_walks
from .tree_laws import LAWS
from .tree_reach import REACHED
from .walker import Walk, accepted, first, walks

TIME = Awaits.TIME
SEQUENTIAL = (
    "test_a_step_starts_only_after_those_before_it",
    "test_completed_means",
    "test_an_interrupted_api_execution_never_runs_again",
)
"""Promises of `test_walks` about sequences or chosen walks; a law says the same of trees."""
COMMON = {
    name: test.hypothesis.inner_test
    for name, test in vars(test_walks).items()
    if hasattr(test, "hypothesis")
    and list(inspect.signature(test.hypothesis.inner_test).parameters) == ["walk"]
    and not name.startswith(SEQUENTIAL)
}


def draw(examples: int, see: Callable[[Walk], None], number: int = 0) -> None:
    """
    Walks through trees until *see* raises; other ones for another *number*.

    Hypothesis also draws from the constants of the modules that happen to be loaded, so they are
    the same only in a run of the same tests.
    """

    @seed(number)
    @settings(
        max_examples=examples,
        phases=[Phase.generate],
        database=None,
        report_multiple_bugs=False,
        suppress_health_check=list(HealthCheck),
    )
    @given(walks(definitions=trees()))
    def one(walk: Walk) -> None:
        see(walk)

    one()


@pytest.fixture(scope="module")
def many() -> list[Walk]:
    """Walks that all laws are held against."""
    found: list[Walk] = []
    draw(600, found.append)
    return found


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.__name__)
def test_the_law_holds(law, many):
    """Each law of `tree_laws` holds for every one of the same many walks."""
    for walk in many:
        law(walk)


@pytest.mark.parametrize("name", COMMON)
def test_what_holds_for_sequences_holds_for_trees(name, many):
    """The promises about events, attempts, approvals, ends do not depend on the shape. EX-20."""
    for walk in many:
        COMMON[name](walk)


@settings(max_examples=60)
@given(walks(definitions=trees()))
def test_every_law_holds_for_new_walks(walk):
    """FL-1 to FL-10: found by chance and made small where one breaks; and every walk ends."""
    hold_all(walk)


def hold_all(walk: Walk) -> None:
    assert walk.run.status in EXECUTION.final
    for law in LAWS:
        law(walk)


@pytest.mark.parametrize("name", REACHED)
def test_the_walks_get_around_in_trees(name, many):
    """Every kind of step comes to every end, and the odd turns are taken: the laws are tried."""
    assert any(REACHED[name](walk) for walk in chain(many, more()))


def more() -> Iterator[Walk]:
    """Others, for what is rare."""
    for number in range(1, 10):
        yield from some(number)


@cache
def some(number: int) -> list[Walk]:
    found: list[Walk] = []
    draw(300, found.append, number)
    return found


# The order of things


def outcome_of(key: str, definition: Definition) -> str:
    """How a step ends in a world in which that does not depend on when: fixed by its key."""
    step = definition.step(name_of(key))
    drawn = sum(map(ord, key)) % 4
    if isinstance(step, CodeStep | ChildStep) and step.continue_on_error and drawn == 0:
        return "fails"
    return "flickers" if isinstance(step, CodeStep) and drawn == 1 else "succeeds"


def answered(walk: Walk) -> Walk:
    """Every question is answered as `outcome_of` says; *choose* says which is asked next."""
    for _ in range(2_000):
        if walk.run.status in EXECUTION.final:
            return walk
        moves = walk.moves()
        if walk.run.in_flight:
            end_one(walk, walk.choose(walk.run.in_flight))
        elif "approve" in moves and (walk.run.due_at is None or walk.choose((True, False))):
            walk.take("approve")
        elif walk.born and (walk.run.due_at is None or walk.choose((True, False))):
            walk.take("child_done")
        else:
            walk.take("claim")
    raise AssertionError("no end")


def end_one(walk: Walk, key: str) -> None:
    """An attempt of that step ends as it must."""
    choose, walk.choose = walk.choose, lambda choices: key
    how = outcome_of(key, walk.definition)
    left = walk.definition.step(name_of(key)).retry.attempts
    flickers = how == "flickers" and walk.run.step_results[key].attempts < left
    walk.take("fail" if how == "fails" or flickers else "done")
    walk.choose = choose


def came_out(walk: Walk):
    """What does not depend on instants and ids."""
    results = {
        key: (one.status, shown(one.output), one.attempts, one.steps)
        for key, one in walk.run.step_results.items()
    }
    return walk.run.status, shown(walk.run.output), results, walk.run.completed_steps


def shown(output):
    return str(output)


@settings(max_examples=60)
@given(trees(mild=True), st.data())
def test_the_same_facts_in_another_order_give_the_same_result(definition, data):
    """FL-11: which branch, round or approval comes first changes nothing of what comes out."""
    straight = answered(accepted(definition, TriggerSource.MANUAL))
    other = accepted(definition, TriggerSource.MANUAL)
    other.choose = lambda choices: data.draw(st.sampled_from(tuple(choices)))
    assert came_out(answered(other)) == came_out(straight)
    assert straight.run.status is S.COMPLETED


# Limits at run time


def walked(*steps, **fields) -> Walk:
    """An execution of these steps, begun."""
    walk = accepted(builders.definition(*steps, **fields), TriggerSource.MANUAL)
    walk.take("claim")
    return walk


def test_no_more_than_ten_processes_run_at_once():
    """FL-3: of 25 branches ten begin; each that ends makes room for one more."""
    branches = tuple(Branch(f"b{n}", (builders.code_step(f"s{n}"),)) for n in range(25))
    walk = walked(ParallelStep("wide", branches))
    flying = [len(walk.run.in_flight)]
    while walk.run.status is S.RUNNING:
        walk.take("done")
        flying.append(len(walk.run.in_flight))
    assert flying == [MAX_IN_FLIGHT] * 16 + list(range(9, -1, -1))
    assert walk.run.status is S.COMPLETED


def test_a_loop_over_too_many_items_fails():
    """FL-9: what a template gives is counted before the first round begins."""
    loop = LoopStep("each", [0] * 1_001, "item", (builders.code_step(),))
    walk = walked(loop)
    assert walk.run.error == "Step 'each' failed: items: gives 1001 items; at most 1000"
    assert walked(evolve(loop, items=[0] * 1_000)).run.status is S.RUNNING


def test_too_many_results_end_the_execution(monkeypatch):
    """FL-9: whatever is tolerated, an execution does not grow without end."""
    monkeypatch.setattr("wfcore.rules.execution.proceed.MAX_STEP_RESULTS", 12)
    work = builders.code_step(continue_on_error=True)
    walk = walked(LoopStep("each", [0] * 20, "item", (work,), continue_on_error=True))
    while walk.run.status is S.RUNNING:
        walk.take("done")
    assert walk.run.status is S.FAILED
    assert "the execution has 12 step results; it may not have more" in walk.run.error
    assert len(walk.run.step_results) == 13


def test_a_loop_over_nothing_is_done_at_once():
    """FL-2: no items, no rounds, an empty list."""
    walk = walked(LoopStep("each", [], "item", (builders.code_step(),)))
    assert (walk.run.status, walk.run.output, walk.run.completed_steps) == (S.COMPLETED, [], 2)


def test_a_skipped_container_counts_with_all_that_it_holds():
    """FL-8: nothing of it is entered, and progress is complete."""
    loop = LoopStep("each", [1, 2], "item", (builders.code_step("a"), builders.code_step("b")))
    both = ParallelStep("both", (Branch("x", (loop,)), Branch("y", (DelayStep("nap", 5),))))
    walk = walked(evolve(both, when="{{ no }}"))
    assert list(walk.run.step_results) == ["both"]
    assert walk.run.completed_steps == walk.run.total_steps == 5


def test_a_child_that_fails_is_tried_again_and_then_given_up():
    """FL-6, DF-9: each attempt is an execution of its own; the last error is the step's."""
    walk = walked(ChildStep("sub", "Other", retry=Retry(2, 1_000)))
    walk.take("child_failed")
    walk.take("claim")
    assert walk.run.step_results["sub"].retry_at is not None
    walk.take("claim")
    assert len(walk.children) == 2
    walk.take("child_failed")
    walk.take("claim")
    assert (walk.run.status, walk.run.error) == (S.FAILED, "Step 'sub' failed: it failed")


def test_what_is_stopped_says_why():
    """FL-4: the blamed step by its key, what held it, and what was beside it."""
    boom = builders.code_step("boom")
    beside = Branch("y", (ApprovalStep("ask"),))
    walk = walked(
        LoopStep("each", [1], "item", (ParallelStep("both", (Branch("x", (boom,)), beside)),)),
    )
    walk.choose = first
    walk.take("fail_for_good")
    run = walk.run
    assert run.error == "Step 'each.0.boom' failed: no"
    assert run.status_reason.step_name == "each.0.boom"
    statuses = {key: (one.status.value, one.error) for key, one in run.step_results.items()}
    assert statuses == {
        "each": ("FAILED", "Step 'each.0.boom' failed: no"),
        "each.0.both": ("FAILED", "Step 'each.0.boom' failed: no"),
        "each.0.boom": ("FAILED", "no"),
        "each.0.ask": ("CANCELLED", "Another step failed"),
    }


# The laws bite


def siblings_are_not_stopped(monkeypatch):
    monkeypatch.setattr(retry, "unfinished", lambda at, results: ())


def every_lane_at_once(monkeypatch):
    monkeypatch.setattr(plan, "most_at_once", lambda step: 100)


def what_was_skipped_is_entered(monkeypatch):
    step_of = plan._PlanWalk._step

    def step(self, at, result):
        skipped = result is not None and result.status is StepStatus.SKIPPED
        if skipped and isinstance(at.step, ParallelStep):
            way = self._inside(at, result)
            done = bool(self.actions) and isinstance(self.actions[-1], Complete)
            return plan._Way.ENDED if done else way
        return plan._Way.ENDED if skipped else step_of(self, at, result)

    monkeypatch.setattr(plan._PlanWalk, "_step", step)
    monkeypatch.setattr(plan, "_PAST", frozenset({StepStatus.COMPLETED}))


def what_runs_is_begun_again(monkeypatch):
    running = plan._PlanWalk._running

    def again(self, at, result):
        if result.in_flight and result.attempts < 3:
            return self._move(Begin(at))
        return running(self, at, result)

    monkeypatch.setattr(plan._PlanWalk, "_running", again)
    begins = Row(StepState.RUNNING, StepBegun, StepState.RUNNING, "none")
    monkeypatch.setitem(STEP._by_pair, (begins.state, begins.fact), begins)


def delays_are_short(monkeypatch):
    monkeypatch.setattr(plan._PlanWalk, "_is_over", lambda self, result: True)


def what_never_began_counts_as_ended(monkeypatch):
    has_ended = plan._PlanWalk._has_ended

    def ended(self, branch):
        return not self._has_begun(branch) or has_ended(self, branch)

    monkeypatch.setattr(plan._PlanWalk, "_has_ended", ended)


def children_are_left_alone(monkeypatch):
    monkeypatch.setattr(fold_steps, "_cancel_child", lambda result: ())


def approvals_pause_too_early(monkeypatch):
    rest = proceed._Progress.suspend

    def pause(self, found):
        rest(self, evolve(found, until=None, outside=0) if found.question else found)

    monkeypatch.setattr(proceed._Progress, "suspend", pause)


def what_it_holds_counts_twice(monkeypatch):
    monkeypatch.setattr(plan, "_held", lambda step: ())


def failures_stay_where_they_are(monkeypatch):
    for module in (proceed, retry):
        monkeypatch.setattr(module, "failing_through", lambda run, cause, through: ())


def timeouts_are_forgotten(monkeypatch):
    monkeypatch.setattr(plan._PlanWalk, "_is_over", lambda self, result: result.awaits is TIME)


BUGS = (
    siblings_are_not_stopped,
    every_lane_at_once,
    what_was_skipped_is_entered,
    what_runs_is_begun_again,
    delays_are_short,
    what_never_began_counts_as_ended,
    children_are_left_alone,
    approvals_pause_too_early,
    what_it_holds_counts_twice,
    failures_stay_where_they_are,
    timeouts_are_forgotten,
)


@pytest.mark.parametrize("plant", BUGS, ids=lambda plant: plant.__name__)
def test_a_planted_bug_is_caught(plant, monkeypatch):
    """The laws bite: with the bug planted, one of them breaks within the same many walks."""
    plant(monkeypatch)
    with pytest.raises((AssertionError, KeyError, IllegalMove)):
        draw(600, hold_all)
