"""What one turn decides, what it costs, and what an execution may hold. EX-33, FL-14."""

from collections import Counter

import pytest
from attrs import evolve

from wfcore.model.execution import Execution, ExecutionStatus, StepStatus, TriggerSource
from wfcore.model.workflow import (
    Branch,
    Case,
    ChildStep,
    DataStep,
    DelayStep,
    ParallelStep,
    Step,
    SwitchStep,
)
from wfcore.rules.execution import machine as facts
from wfcore.rules.execution import plan
from wfcore.rules.execution.fold import advance
from wfcore.rules.execution.fold_steps import size_of
from wfcore.rules.execution.proceed import proceed
from wfcore.rules.execution.start import accept
from wfcore.rules.limits import FACTS_AT_ONCE, OUTPUTS_AT_ONCE
from wfcore.testing import builders
from wfcore.testing.builders import NOW
from wfcore.time import DurationMs

from .scripts import (
    ASK,
    RUNS,
    A,
    B,
    both,
    child,
    code,
    each,
    follows,
    holds,
    new_ids,
    of,
    seeing,
)

TWO = (DataStep("d", "four"), DataStep("e", "four"))
DATA = [DataStep(f"d{number}", number) for number in range(5)]
ENDLESS = 10**9


def turn(run: Execution, *steps: object, most: int = FACTS_AT_ONCE, **fields: object):
    return proceed(
        run, builders.definition(*steps, **fields), NOW, seeing, new_ids(), most=most
    ).record


def taken(run: Execution) -> Execution:
    """As the next worker has it."""
    return evolve(advance(run, facts.Claimed(), NOW).record, worker="worker_2")


def test_a_turn_ends_and_the_execution_is_due_at_once() -> None:
    """EX-33: nobody holds it, so whoever is free goes on with it."""
    run = turn(of(), *DATA, most=2)
    assert (list(run.step_results), run.status) == (["d0", "d1"], ExecutionStatus.RUNNING)
    assert (run.worker, run.due_at) == (None, NOW)


def test_while_a_step_runs_its_worker_looks_again_at_once() -> None:
    """EX-33: the lease stays with what is in flight."""
    two = ParallelStep("two", (Branch("a", (A,)), Branch("b", tuple(DATA))))
    run = turn(of({"two": holds(), "a": RUNS}), two, most=2)
    assert (list(run.step_results), run.worker) == (["two", "a", "d0", "d1"], "worker_1")
    assert run.due_at == NOW


def test_processes_begin_together() -> None:
    """FL-3, EX-33: a turn is over before them or after all of them."""
    names = [code(f"s{number}") for number in range(10)]
    run = turn(of({"both": holds()}), both(*names), most=1)
    assert len(run.in_flight) == 10


def test_many_turns_come_to_what_one_would() -> None:
    """EX-33: the same results and the same number of events, whatever a turn may decide."""
    switch = SwitchStep("which", (Case("{{ yes }}", (DATA[0],)),), (DATA[1],))
    tree = each(switch, DATA[2], items=[1, 2, 3], max_parallel=2)
    whole = turn(of(), tree, DATA[3], most=ENDLESS)
    assert whole.status is ExecutionStatus.COMPLETED
    for most in (1, 2, 3, 7):
        run, turns = of(), 0
        while run.status is ExecutionStatus.RUNNING:
            run, turns = turn(taken(run), tree, DATA[3], most=most), turns + 1
        assert dict(run.step_results) == dict(whole.step_results)
        assert (run.events, run.output) == (whole.events, whole.output)
        assert turns > len(run.step_results) // most


def test_a_turn_ends_once_its_outputs_are_large() -> None:
    """EX-33: what is large takes long to store; the next turn has room again."""
    large = [DataStep(f"d{number}", "x" * (OUTPUTS_AT_ONCE // 2)) for number in range(5)]
    run = turn(of(), *large)
    assert list(run.step_results) == ["d0", "d1"]
    assert list(turn(taken(run), *large).step_results) == ["d0", "d1", "d2", "d3"]


@pytest.mark.parametrize("kind", ["in order", "beside one that waits", "redriven"])
def test_the_last_step_of_a_turn_costs_what_the_first_did(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """EX-33: rounds that have ended are not looked at again with each fact."""
    looked = Counter[int]()

    def looks(rounds: int) -> float:
        ended = plan._PlanWalk._has_ended

        def counted(self, branch) -> bool:
            looked[rounds] += 1
            return ended(self, branch)

        with monkeypatch.context() as patch:
            patch.setattr(plan._PlanWalk, "_has_ended", counted)
            items: list[object] = [0] * rounds
            waits = {"each.0.d0": RUNS} if kind == "beside one that waits" else {}
            more = {"redrive_of": "exec_0"} if kind == "redriven" else {}
            loop = each(*DATA, items=items, max_parallel=2 if waits else 1)
            results = {"each": holds(items), **waits}
            turn(of(results, **more), loop, most=ENDLESS)
        return looked[rounds] / rounds

    assert looks(400) <= looks(20) * 1.3


def test_what_results_hold_is_kept_in_sum() -> None:
    """FL-14: outputs of every kind, and the items of a loop for as long as it runs."""
    run = turn(of(), DataStep("d", "four"), each(DATA[2], items=[10, 20]), A)
    held = {"d": "four", "each.0.d2": 2, "each.1.d2": 2}
    assert run.outputs_size == sum(size_of(one) for one in held.values())
    before = run.outputs_size
    run = proceed(
        run, builders.definition(A, B), NOW, seeing, new_ids(), facts.StepDone("a", {"x": 1})
    ).record
    assert run.outputs_size == before + size_of({"x": 1})
    begun = turn(of(), each(A, items=[10, 20]))
    assert begun.outputs_size == len("[10,20]")


SIZE = "the outputs of the execution's steps have {} characters in sum; they may have 20"


@pytest.fixture(name="_small")
def with_little_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wfcore.rules.execution.proceed.MAX_OUTPUTS", 20)


@pytest.mark.usefixtures("_small")
def test_what_would_be_too_large_fails_the_execution() -> None:
    """FL-14: the step that brings it is named with the sum and the limit, and keeps no output."""
    value = facts.DataGiven("one", "x" * 10)
    script = [value, facts.Failed(SIZE.format(24), "two")]
    two = [DataStep(name, "x" * 10, continue_on_error=True) for name in ("one", "two")]
    follows(two, of(), script)
    run = of({"a": RUNS}, outputs_size=15)
    failed = proceed(
        run, builders.definition(A, B), NOW, seeing, new_ids(), facts.StepDone("a", "xxxxx")
    ).record
    assert failed.error == f"Step 'a' failed: {SIZE.format(22)}"
    assert (failed.step_results["a"].output, failed.outputs_size) == (None, 15)


@pytest.mark.usefixtures("_small")
@pytest.mark.parametrize(
    "around",
    [
        each(DataStep("d", "four"), items=[1, 2]),
        both(*TWO),
        SwitchStep("which", (Case("{{ true }}", TWO),)),
    ],
    ids=["loop", "parallel", "switch"],
)
def test_what_a_container_gives_counts_once(around: Step) -> None:
    """FL-14: it repeats what its steps gave, and they have room for all of it."""
    run = turn(of(), around, DataStep("last", "12"))
    assert (run.error, run.outputs_size) == (None, 2 * len('"four"') + len('"12"'))
    assert size_of(*(one.output for one in run.every_result)) > 20
    definition = builders.definition(around, DataStep("last", "12"))
    start = {"owner_id": "acc_1", "trigger_source": TriggerSource.OPEN_API}
    kept = {**start, "step_results": run.step_results}
    again = accept(builders.workflow(), definition, kept, "exec_2", NOW).record
    assert again.outputs_size == run.outputs_size


@pytest.mark.usefixtures("_small")
@pytest.mark.parametrize("step", [A, ASK, ChildStep("sub", "other")], ids=["code", "ask", "child"])
def test_a_step_with_effects_begins_only_where_there_is_room(step: Step) -> None:
    """FL-14: where nothing that it gives could be kept, it is not begun, and the error says so."""
    full = DataStep("full", "x" * 18)
    run = turn(of(), full, step)
    why = "the outputs of the execution's steps have 20 characters in sum already"
    assert run.error == f"Step '{step.name}' failed: {why}; they may have 20"
    assert run.step_results[step.name].attempts == 0
    less = turn(of(), DataStep("less", "x" * 17), step)
    assert less.step_results[step.name].attempts == 1


@pytest.mark.usefixtures("_small")
def test_what_starts_nothing_begins_where_there_is_no_room() -> None:
    """FL-14: a delay, and containers, give nothing of their own."""
    run = turn(of(), DataStep("full", "x" * 18), DelayStep("rest", duration_ms=DurationMs(1_000)))
    assert (run.error, run.step_results["rest"].status) == (None, StepStatus.RUNNING)


@pytest.mark.usefixtures("_small")
@pytest.mark.parametrize("kind", ["child", "approval"])
def test_what_others_bring_counts_too(kind: str) -> None:
    """FL-14: what a child or a person gave is on record, and nothing follows it."""
    if kind == "child":
        step, waits = ChildStep("sub", "other"), child()
        fact: facts.Fact = facts.ChildCompleted("sub", "exec_9", "x" * 30)
    else:
        step, waits = ASK, builders.step_result(StepStatus.AWAITING_APPROVAL, approval_id="appr_9")
        fact = facts.Approved("ask", "appr_9", "x" * 30)
    run = advance(of({step.name: waits}), fact, NOW).record
    run = turn(taken(run), step, B)
    assert run.error == f"after step '{step.name}': {SIZE.format(32)}"
    assert "b" not in run.step_results


@pytest.mark.usefixtures("_small")
@pytest.mark.parametrize("on_failure", [(), (DataStep("tell", "told"),)])
def test_what_else_has_happened_meanwhile_is_late(on_failure: tuple[DataStep, ...]) -> None:
    """FL-14, EX-26: a child is given up in the unit in which another step brings too much."""
    definition = builders.definition(both(A, ChildStep("sub", "other")), on_failure=on_failure)
    run = of({"both": RUNS, "a": RUNS, "sub": child()}, outputs_size=15)
    came = facts.StepDone("a", "xxxxx"), facts.ChildFailed("sub", "exec_9", "given up")
    run = proceed(run, definition, NOW, seeing, new_ids(), *came).record
    assert run.error == f"Step 'a' failed: {SIZE.format(22)}"
    assert run.step_results["sub"].status is StepStatus.CANCELLED


@pytest.mark.usefixtures("_small")
def test_on_failure_has_room_to_tell_of_it() -> None:
    """FL-14, EX-31: as much again."""
    steps = [DataStep("one", "x" * 15), DataStep("two", "x" * 15)]
    run = turn(of(), *steps, on_failure=(DataStep("tell", "told"),))
    assert (run.status, run.step_results["tell"].output) == (ExecutionStatus.FAILED, "told")


def test_a_redrive_takes_along_what_it_keeps() -> None:
    """FL-14, EX-17: kept results count from the beginning."""
    start = {"owner_id": "acc_1", "trigger_source": TriggerSource.OPEN_API}
    kept = {"a": builders.step_result(output="four")}
    workflow, definition = builders.workflow(), builders.definition(A, B)
    run = accept(workflow, definition, {**start, "step_results": kept}, "exec_2", NOW).record
    assert run.outputs_size == len('"four"')
