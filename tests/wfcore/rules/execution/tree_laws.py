"""Promises about executions of any tree of steps. Each is given a whole walk. FL-1 to FL-13."""

import re
from collections import Counter
from itertools import takewhile

from tests.wfcore.rules.execution.lineage import UNDER_WAY, Lineage
from tests.wfcore.rules.execution.walker import Walk
from wfcore.effects import CancelChildren
from wfcore.model.approval import Purpose
from wfcore.model.event import EventKind
from wfcore.model.execution import Awaits, StepStatus, TriggerSource
from wfcore.model.execution import ExecutionStatus as S
from wfcore.model.workflow import DelayStep, LoopStep, ParallelStep, SwitchStep
from wfcore.rules.execution.machine import EXECUTION
from wfcore.rules.execution.plan import plan
from wfcore.rules.limits import MAX_IN_FLIGHT

FREE = ("cancel", "reject", "expire", "grace")
"""Ends that come from outside, whatever the steps do."""


def starts_nothing_twice(walk: Walk) -> None:
    """EX-3: of each attempt, approval and child there is one; what holds steps is entered once."""
    told = Counter(
        (event.data["step"], event.data["attempt"], event.kind)
        for event in walk.events
        if event.kind in (EventKind.STEP_STARTED, EventKind.STEP_POSTPONED)
    )
    for (step, attempt, kind), times in told.items():
        if kind is EventKind.STEP_STARTED:  # EX-27: what was postponed did not begin
            assert times - told[step, attempt, EventKind.STEP_POSTPONED] in (0, 1), told
    begun = [(start.step_name, start.attempt, start.postponed) for start in walk.starts]
    assert len(begun) == len(set(begun))
    assert all(told[step, attempt, EventKind.STEP_STARTED] for step, attempt, _ in begun)
    under_way: set[str] = set()
    for event in walk.events:
        if event.kind is EventKind.STEP_STARTED:
            assert event.data["step"] not in under_way, f"{event.data} once more"
            under_way.add(event.data["step"])
        elif event.kind in (EventKind.STEP_RETRYING, EventKind.STEP_POSTPONED):
            under_way.discard(event.data["step"])
        elif event.kind is EventKind.EXECUTION_INTERRUPTED:
            under_way.clear()
    opened = [effect.approval for stage in walk.stages for effect in stage.opened]
    asked = [one.step_name for one in opened if one.purpose is Purpose.STEP]  # budgets: each time
    assert len(asked) == len(set(asked))


def nothing_begins_before_its_time(walk: Walk) -> None:
    """EX-3: a step begins when those before it in its sequence are done with, and not sooner."""
    tree = Lineage.of(walk.definition)
    for stage in walk.stages:
        for key in begun_in(stage):
            for earlier in tree.before(key):
                result = stage.after.step_results.get(earlier)
                assert tree.done_with(earlier, result), f"{key} before the end of {earlier}"


def nothing_begins_in_what_is_over(walk: Walk) -> None:
    """FL-4, FL-8: what was skipped, has failed or ended holds nothing that begins."""
    tree = Lineage.of(walk.definition)
    for stage in walk.stages:
        for start in stage.starts:
            assert stage.after.step_results[start.step_name].in_flight
        for key in begun_in(stage):
            for holder in tree.holders(key):
                before = stage.before.step_results.get(holder)
                assert before is None or before.status is StepStatus.RUNNING, f"{key} in {holder}"


def begun_in(stage):
    """The keys of the steps that were started in one move."""
    kind = EventKind.STEP_STARTED
    return [event.data["step"] for event in stage.outcome.events if event.kind is kind]


def nothing_goes_on_in_what_is_over(walk: Walk) -> None:
    """FL-4: when something has ended, nothing in it runs, waits or asks any more."""
    tree = Lineage.of(walk.definition)
    for stage in walk.stages:
        results = stage.after.step_results
        for key, result in results.items():
            if result.status in UNDER_WAY:
                for holder in tree.holders(key):
                    assert results[holder].status is StepStatus.RUNNING, f"{key} in {holder}"


def whoever_is_not_waited_for_is_cancelled(walk: Walk) -> None:
    """FL-6: a child that has not ended and is waited for no more is cancelled in the same unit."""
    for stage in walk.stages:
        before, after = (
            {one.open_child for one in run.step_results.values() if one.open_child}
            for run in (stage.before, stage.after)
        )
        dropped = {
            id
            for effect in stage.outcome.effects
            if isinstance(effect, CancelChildren)
            for id in effect.execution_ids
        }
        born = {effect.child_id for effect in stage.children}
        ended = {stage.did} & {"child_done", "child_failed"}
        assert dropped >= (before | born) - after - (before - after if ended else set())
        assert not dropped & after


def no_more_lanes_than_allowed(walk: Walk) -> None:
    """FL-3: never more branches or rounds are under way than `maxParallel`."""
    tree = Lineage.of(walk.definition)
    for stage in walk.stages:
        results = stage.after.step_results
        for key, result in results.items():
            step = tree.step(key)
            if result.awaits is not Awaits.STEPS or not isinstance(step, LoopStep | ParallelStep):
                continue
            most = step.max_parallel or 100
            open = [
                prefix
                for prefix, steps in tree.lanes_of(key, stage.after)
                if prefix + steps[0].name in results
                and not tree.done_with(
                    prefix + steps[-1].name, results.get(prefix + steps[-1].name)
                )
            ]
            assert len(open) <= most, f"{key} has {len(open)} lanes"


def no_more_processes_than_allowed(walk: Walk) -> None:
    """FL-3: at most ten steps of one execution run at the same time."""
    assert all(len(stage.after.in_flight) <= MAX_IN_FLIGHT for stage in walk.stages)


def completed_exactly_when_nothing_is_left(walk: Walk) -> None:
    """EX-8: COMPLETED when everything has ended that there is to do, in every branch and round."""
    tree = Lineage.of(walk.definition)

    def over(key: str, run) -> bool:
        result = run.step_results.get(key)
        if not tree.done_with(key, result):
            return False
        if result.status is not StepStatus.COMPLETED:
            return True
        branches_of = tree.lanes_of(key, run)
        return all(over(prefix + one.name, run) for prefix, steps in branches_of for one in steps)

    for stage in walk.stages:
        left = [one.name for one in walk.definition.steps if not over(one.name, stage.after)]
        if stage.after.status is S.COMPLETED:
            assert not left
        elif stage.after.status in (S.RUNNING, S.AWAITING_APPROVAL) and not stage.after.due_at:
            assert left


def progress_never_goes_back(walk: Walk) -> None:
    """FL-8: `completedSteps` only grows, and is `totalSteps` exactly when all is done."""
    total = walk.run.total_steps
    counts = [stage.after.completed_steps for stage in walk.stages]
    assert counts == sorted(counts), counts
    for stage, count in zip(walk.stages, counts, strict=True):
        assert count <= total
        if stage.after.status is S.COMPLETED:
            assert count == total
        elif stage.after.status not in EXECUTION.final and not stage.after.due_at:
            assert count < total


def awaiting_means_that_nothing_else_can_run(walk: Walk) -> None:
    """EX-4: AWAITING_APPROVAL with an open approval, and nothing that runs or will by itself."""
    for stage in walk.stages:
        run = stage.after
        if run.status is not S.AWAITING_APPROVAL:
            continue
        assert any(one.status is StepStatus.AWAITING_APPROVAL for one in run.step_results.values())
        for result in run.step_results.values():
            assert not result.in_flight
            assert result.retry_at is None
            assert result.open_child is None
            assert result.awaits is not Awaits.TIME


def whoever_waits_for_nothing_but_people_says_so(walk: Walk) -> None:
    """EX-4: a RUNNING execution without worker and due instant waits for an execution."""
    for stage in walk.stages:
        run = stage.after
        if run.status is S.RUNNING and run.worker is None and run.due_at is None:
            assert any(one.open_child for one in run.step_results.values())


def nothing_is_left_to_do(walk: Walk) -> None:
    """EX-19: at rest there is nothing that the planner would do at once; it is done already."""
    for stage in walk.stages:
        run = stage.after
        rests = run.status in (S.AWAITING_APPROVAL, S.RUNNING) and not run.due_at
        if rests and stage.did not in ("child_done", "child_failed"):
            assert plan(walk.definition, run, stage.now, lambda value, names: value).actions == ()


def delays_take_their_time(walk: Walk) -> None:
    """FL-5: a delay completes when its duration is over, and not a moment sooner."""
    tree = Lineage.of(walk.definition)
    for key, result in walk.run.step_results.items():
        step = tree.step(key)
        if isinstance(step, DelayStep) and result.status is StepStatus.COMPLETED:
            assert result.duration_ms >= step.duration_ms
            assert result.output is None


def nothing_outlives_its_timeout(walk: Walk) -> None:
    """FL-7: whenever an execution is looked at, what holds steps is not over its time."""
    for stage in walk.stages:
        if stage.did in ("done", "look", "claim") and stage.after.status is S.RUNNING:
            for result in stage.after.step_results.values():
                assert result.until is None or result.until > stage.now


def a_switch_stays_with_its_case(walk: Walk) -> None:
    """FL-13: what begins in a switch is of one case, the first that held, and of no other."""
    tree = Lineage.of(walk.definition)
    chosen: dict[str, int | None] = {}
    for stage in walk.stages:
        for key, result in stage.after.step_results.items():
            if isinstance(tree.step(key), SwitchStep):
                if result.status is not StepStatus.SKIPPED and result.attempts:
                    assert result.case == chosen.setdefault(key, result.case)
            elif (holder := tree.holder(key)) and isinstance(tree.step(holder), SwitchStep):
                assert tree.lane(key)[0] == stage.after.step_results[holder].case


def what_holds_steps_says_what_came_out(walk: Walk) -> None:
    """
    FL-1, FL-2, FL-13: the last output of each branch by its name, of each round in a list, of the
    case that held.
    """
    tree = Lineage.of(walk.definition)
    results = walk.run.step_results
    for key, result in results.items():
        step = tree.step(key)
        if result.status is not StepStatus.COMPLETED:
            continue
        if isinstance(step, ParallelStep):
            assert list(result.output) == [branch.name for branch in step.branches]
        elif isinstance(step, LoopStep):
            assert len(result.output) == len(step.items)
        elif not isinstance(step, SwitchStep):
            continue
        values = result.output
        if isinstance(step, ParallelStep):
            values = result.output.values()
        elif isinstance(step, SwitchStep):
            values = [result.output] if tree.lanes_of(key, walk.run) else []
        for (prefix, steps), value in zip(tree.lanes_of(key, walk.run), values, strict=True):
            done = [results[prefix + one.name] for one in steps]
            outputs = [one.output for one in done if one.status is StepStatus.COMPLETED]
            assert value == (outputs[-1] if outputs else None)


def a_failure_goes_as_far_as_nobody_tolerates_it(walk: Walk) -> None:
    """
    FL-4: what failed and is not tolerated has ended what holds it, up to one that tolerates.
    Of several that failed in the same moment the first one is the reason; the rest is stopped.
    """
    tree = Lineage.of(walk.definition)
    last = walk.stages[-1]
    if last.did in FREE or walk.run.status not in (S.FAILED, S.COMPLETED):
        return
    results = walk.run.step_results
    for key, result in results.items():
        if result.status is StepStatus.FAILED and not tree.step(key).continue_on_error:
            holder = tree.holder(key)
            ended = walk.run.status if holder is None else results[holder].status
            assert ended.value in ("FAILED", "CANCELLED"), f"{key} failed, {holder} did not"
            assert holder is not None or walk.run.status is S.FAILED
        if result.status is StepStatus.FAILED and (blamed := blamed_in(result.error)):
            chain = [blamed, *takewhile(lambda one: one != key, tree.holders(blamed))]  # noqa: B023
            assert {results[one].status for one in chain} == {StepStatus.FAILED}, chain
    if walk.run.status is S.FAILED and (blamed := blamed_in(walk.run.error)):
        assert walk.run.status_reason.step_name == blamed
        chain = [blamed, *tree.holders(blamed)]
        assert {results[one].status for one in chain} == {StepStatus.FAILED}, chain


def blamed_in(error: str | None) -> str | None:
    """The key of the step that an error speaks of."""
    found = re.match(r"Step '(.+?)' failed: ", error or "")
    return found[1] if found else None


def what_callers_started_never_runs_again(walk: Walk) -> None:
    """EX-14: of `open_api` and `webhook` no process starts after an interruption."""
    interrupted = False
    for stage in walk.stages:
        if walk.run.trigger_source in (TriggerSource.OPEN_API, TriggerSource.WEBHOOK):
            assert not (interrupted and stage.starts)
        interrupted = interrupted or stage.after.status is S.INTERRUPTED


LAWS = (
    what_callers_started_never_runs_again,
    starts_nothing_twice,
    nothing_begins_before_its_time,
    nothing_begins_in_what_is_over,
    nothing_goes_on_in_what_is_over,
    whoever_is_not_waited_for_is_cancelled,
    no_more_lanes_than_allowed,
    no_more_processes_than_allowed,
    completed_exactly_when_nothing_is_left,
    progress_never_goes_back,
    awaiting_means_that_nothing_else_can_run,
    whoever_waits_for_nothing_but_people_says_so,
    nothing_is_left_to_do,
    delays_take_their_time,
    nothing_outlives_its_timeout,
    a_switch_stays_with_its_case,
    what_holds_steps_says_what_came_out,
    a_failure_goes_as_far_as_nobody_tolerates_it,
)
