"""What a redrive will do, said beforehand: what stays, what runs, how often it began. EX-35."""

from collections import Counter

import pytest
from attrs import evolve
from hypothesis import assume, given
from hypothesis import strategies as st

from wfcore.errors import Conflict, InvalidInput, NotFound
from wfcore.model.event import EventKind
from wfcore.model.execution import Execution, StepStatus, TriggerSource
from wfcore.model.execution import ExecutionStatus as S
from wfcore.model.workflow import (
    ApprovalStep,
    Branch,
    Case,
    Definition,
    LoopStep,
    ParallelStep,
    Step,
    SwitchStep,
    lists_of,
)
from wfcore.rules.definition.changes import changed_fields
from wfcore.rules.definition.written import document_of
from wfcore.rules.execution.redrive import FROM, RedrivePlan, StepFate, plan_redrive, times_begun
from wfcore.rules.execution.start import Start, accept
from wfcore.testing import builders
from wfcore.testing.builders import NOW
from wfcore.testing.strategies.trees import trees
from wfcore.time import later

from .lineage import Lineage
from .tree_laws import LAWS
from .walker import Stage, Walk, walk_on, walks

ENDED = (*FROM, S.COMPLETED)
ended = walks(definitions=trees()).filter(lambda one: one.run.status in ENDED)
ended_badly = walks(definitions=trees()).filter(lambda one: one.run.status in FROM)


def redriven(old: Walk, definition: Definition, plan: RedrivePlan) -> Walk:
    """The accepted execution of a plan."""
    now = later(max(old.now, old.run.completed_at or old.now), 1)
    start = Start(
        owner_id="acc_1",
        trigger_source=TriggerSource.OPEN_API,
        redrive_of=old.run.id,
        step_results=plan.results,
        put_aside=old.run.put_aside,
    )
    outcome = accept(builders.workflow(), definition, start, "exec_2", now)
    nothing = builders.execution(events=0)
    return Walk(definition, outcome.record, [Stage("accept", nothing, outcome, now)], now)


def done(plan: RedrivePlan) -> set[str]:
    return {key for key, one in plan.results.items() if one.awaits is None}


def outside_loops(definition: Definition) -> list[str]:
    names: list[str] = []

    def read(steps: tuple[Step, ...]) -> None:
        for step in steps:
            names.append(step.name)
            if not isinstance(step, LoopStep):
                for _, inside in lists_of(step):
                    read(inside)

    read(definition.steps)
    return names


@given(ended, st.data())
def test_a_step_that_is_named_runs_and_nothing_behind_it_is_kept(old: Walk, data):
    """EX-35: what stands before it is kept as it was; or the redrive is refused."""
    start = data.draw(st.sampled_from(outside_loops(old.definition)))
    try:
        plan = plan_redrive(old.run, old.definition, old.definition, old.now, start=start)
    except Conflict:
        assume(False)
    tree = Lineage.of(old.definition)
    assert plan.start == start
    assert start not in plan.results
    path = (start, *tree.holders(start))
    for key in path:
        for before in tree.before(key):
            assert plan.results[before] == old.run.step_results[before]
    for key in plan.results:
        above = (key, *tree.holders(key))
        assert not any({*tree.before(one)} & {*path} for one in above), key
    assert {*tree.holders(start)} <= plan.results.keys()
    again = walk_on(data.draw, redriven(old, old.definition, plan))
    assert not done(plan) & {one.step_name for one in again.starts}
    for law in LAWS:
        law(again)


@given(ended, st.data())
def test_nobody_jumps_over_a_step_by_a_redrive(old: Walk, data):
    """EX-35: a redrive from a step before which one has neither ended nor been tolerated."""
    tree = Lineage.of(old.definition)
    start = data.draw(st.sampled_from(outside_loops(old.definition)))
    results = old.run.step_results
    path = (start, *tree.holders(start))
    reached = all(
        tree.done_with(before, results.get(before)) for key in path for before in tree.before(key)
    )
    if not reached:
        with pytest.raises(Conflict):
            plan_redrive(old.run, old.definition, old.definition, old.now, start=start)


@given(ended, st.data())
def test_a_step_that_is_none_or_inside_a_loop_is_refused(old: Walk, data):
    """EX-35: 400 with the name."""
    inside = {step.name for step in old.definition.walk()} - {*outside_loops(old.definition)}
    start = data.draw(st.sampled_from(["never", *inside]))
    with pytest.raises(InvalidInput, match=start):
        plan_redrive(old.run, old.definition, old.definition, old.now, start=start)


def test_a_completed_execution_is_redriven_only_from_a_step():
    """EX-35: without one it is not found, as before."""
    definition = builders.definition(builders.code_step("a"))
    result = builders.step_result(StepStatus.COMPLETED)
    run = builders.execution(status=S.COMPLETED, step_results={"a": result})
    with pytest.raises(NotFound):
        plan_redrive(run, definition, definition, NOW)
    assert plan_redrive(run, definition, definition, NOW, start="a").results == {}


@given(ended_badly, st.data())
def test_the_plan_says_how_often_each_step_had_begun(old: Walk, data):
    """EX-35: over the whole line of redrives, as their event logs say."""
    first = plan_redrive(old.run, old.definition, old.definition, old.now)
    again = walk_on(data.draw, redriven(old, old.definition, first))
    told: Counter[str] = Counter()
    for event in (*old.events, *again.events):
        if event.kind is EventKind.STEP_STARTED:
            told[str(event.data["step"])] += 1
        elif event.kind is EventKind.STEP_POSTPONED:  # nothing of that attempt ran
            told[str(event.data["step"])] -= 1
    begun = times_begun([again.run, old.run])
    workers = {one.step_name for one in (*old.starts, *again.starts)}
    for key in workers:
        assert begun.get(key, 0) == told[key], key


@given(ended_badly)
def test_each_step_has_one_fate(old: Walk):
    """EX-35: what is kept is finished, what is not kept runs or has never begun."""
    plan = plan_redrive(old.run, old.definition, old.definition, old.now)
    fates = {one.key: one for one in plan.steps}
    assert len(fates) == len(plan.steps)
    assert {key for key, one in fates.items() if one.fate is StepFate.KEPT} == done(plan)
    for one in plan.steps:
        if one.fate is StepFate.NEW:
            assert not one.begun
        if one.fate in (StepFate.AGAIN, StepFate.ASKED):
            assert one.begun
    assert {step.name for step in old.definition.walk()} >= {k for k in fates if "." not in k}


@st.composite
def edited(draw, definition: Definition) -> Definition:
    """The definition after an edit: steps renamed, moved, inserted, removed, at every depth."""

    def edit(steps: tuple[Step, ...]) -> tuple[Step, ...]:
        found = [inner(step) for step in steps]
        deed = draw(st.sampled_from(["", "", "rename", "move", "insert", "remove"]))
        at = draw(st.integers(0, len(found) - 1))
        if deed == "rename":
            found[at] = evolve(found[at], name=f"{found[at].name}x")
        elif deed == "move":
            found.insert(draw(st.integers(0, len(found) - 1)), found.pop(at))
        elif deed == "insert":
            found.insert(at, builders.code_step(f"{found[at].name}y"))
        elif deed == "remove" and len(found) > 1:
            del found[at]
        return tuple(found)

    def inner(step: Step) -> Step:
        match step:
            case ParallelStep():
                branches = tuple(evolve(one, steps=edit(one.steps)) for one in step.branches)
                return evolve(step, branches=branches)
            case LoopStep():
                return evolve(step, steps=edit(step.steps))
            case SwitchStep():
                cases = tuple(evolve(one, steps=edit(one.steps)) for one in step.cases)
                last = edit(step.otherwise) if step.otherwise else ()
                return evolve(step, cases=cases, otherwise=last)
        return step

    return evolve(definition, steps=edit(definition.steps), steps_as_written=())


def places(definition: Definition) -> dict[str, object]:
    """Kind, containers and lists of each step."""
    found: dict[str, object] = {}

    def read(steps: tuple[Step, ...], place: tuple[object, ...]) -> None:
        for step in steps:
            found[step.name] = (type(step), *place)
            for path, inside in lists_of(step):
                name = inside[0].name if isinstance(step, SwitchStep) else path
                read(inside, (*place, step.name, name))

    read(definition.steps, ())
    return found


@given(ended, st.data())
def test_only_the_same_step_in_the_same_place_keeps_its_result(old: Walk, data):
    """EX-35: with a newer definition, what is kept stands in both with name, kind and container."""
    new = data.draw(edited(old.definition))
    start = None
    if old.run.status is S.COMPLETED:
        start = data.draw(st.sampled_from(outside_loops(new)))
    try:
        plan = plan_redrive(old.run, old.definition, new, old.now, start=start)
    except Conflict:
        assume(False)
    before, now = places(old.definition), places(new)
    for key in plan.results:
        name = key.rpartition(".")[2]
        assert before[name][0] is now[name][0]
        assert before[name][1::2] == now[name][1::2]
    gone = {one.key for one in plan.steps if one.fate is StepFate.GONE}
    assert gone.isdisjoint(plan.results)
    again = walk_on(data.draw, redriven(old, new, plan))
    assert not done(plan) & {one.step_name for one in again.starts}
    for law in LAWS:
        law(again)


def run_of(status: S = S.FAILED, **results) -> Execution:
    return builders.execution(status=status, step_results=results)


DONE = builders.step_result(StepStatus.COMPLETED)
BAD = builders.step_result(StepStatus.FAILED)
a, b, c = map(builders.code_step, "abc")


def fates(plan: RedrivePlan) -> dict[str, str]:
    return {one.key: one.fate.value for one in plan.steps}


def test_an_approval_is_asked_again_if_it_or_an_input_has_changed():
    """EX-35: and everything behind it runs again; unchanged, it is kept."""
    ask = ApprovalStep("ask", message="well?")
    other = evolve(ask, message="really?")
    definition = builders.definition(a, ask, b, c)
    run = run_of(a=DONE, ask=DONE, b=DONE, c=BAD)
    same = plan_redrive(run, definition, definition, NOW)
    assert fates(same) == {"a": "kept", "ask": "kept", "b": "kept", "c": "again"}
    changed = {"a": "kept", "ask": "asked", "b": "again", "c": "again"}
    assert fates(plan_redrive(run, definition, definition, NOW, same_inputs=False)) == changed
    earlier = plan_redrive(run, definition, definition, NOW, start="a")
    assert fates(earlier) == changed | {"a": "again"}
    newer = builders.definition(a, other, b, c)
    plan = plan_redrive(run, definition, newer, NOW)
    assert fates(plan) == changed
    assert plan.start == "ask"
    with pytest.raises(Conflict, match="ask"):
        plan_redrive(run, definition, newer, NOW, start="c")


def test_an_approval_inside_a_finished_container_is_asked_again():
    """EX-35: the container goes on there, and its other branches stay."""
    ask = ApprovalStep("ask", message="well?")
    both = ParallelStep("both", (Branch("x", (a, ask, b)), Branch("y", (c,))))
    definition = builders.definition(both, builders.code_step("d"))
    run = run_of(both=DONE, a=DONE, ask=DONE, b=DONE, c=DONE, d=BAD)
    plan = plan_redrive(run, definition, definition, NOW, same_inputs=False)
    wanted = {"both": "again", "a": "kept", "ask": "asked", "b": "again", "c": "kept", "d": "again"}
    assert fates(plan) == wanted
    loop = builders.definition(LoopStep("each", [1], "i", (ask,)), b)
    run = run_of(each=DONE, **{"each.0.ask": DONE}, b=BAD)
    plan = plan_redrive(run, loop, loop, NOW, same_inputs=False)
    assert plan.results == {}
    assert fates(plan)["each.0.ask"] == "asked"


def test_a_container_is_kept_whole_only_with_the_same_steps():
    """EX-35: with another step in it, it runs from its beginning."""
    old = builders.definition(ParallelStep("both", (Branch("x", (a,)), Branch("y", (b,)))), c)
    new = builders.definition(ParallelStep("both", (Branch("x", (a,)), Branch("y", ()))), c)
    run = run_of(both=DONE, a=DONE, b=DONE, c=BAD)
    assert plan_redrive(run, old, old, NOW).results.keys() == {"both", "a", "b"}
    assert "both" not in done(plan_redrive(run, old, new, NOW))


def test_a_switch_keeps_its_case_by_the_first_step_of_it():
    """EX-35: wherever the case stands now; a switch without that case runs again."""
    chosen = evolve(BAD, case=0)
    old = builders.definition(SwitchStep("pick", (Case("{{ 1 }}", (a, b)),)))
    moved = builders.definition(
        SwitchStep("pick", (Case("{{ 0 }}", (c,)), Case("{{ 1 }}", (a, b))))
    )
    run = run_of(pick=chosen, a=DONE, b=BAD)
    plan = plan_redrive(run, old, moved, NOW)
    assert plan.results["pick"].case == 1
    assert plan.results["a"] == DONE
    without = builders.definition(SwitchStep("pick", (Case("{{ 1 }}", (c, a)),)))
    assert plan_redrive(run, old, without, NOW).results == {}
    with pytest.raises(Conflict):
        plan_redrive(run, old, moved, NOW, start="c")


def test_the_digest_holds_the_plan_the_inputs_and_other_redrives():
    """EX-35: each of them gives another one."""
    definition = builders.definition(a, b)
    plan = plan_redrive(run_of(a=DONE, b=BAD), definition, definition, NOW)
    other = plan_redrive(run_of(a=DONE, b=evolve(BAD, attempts=2)), definition, definition, NOW)
    digests = [
        plan.digest({}, "exec_1"),
        plan.digest({"x": 1}, "exec_1"),
        plan.digest({}, "exec_9"),
        other.digest({}, "exec_1"),
    ]
    assert len({*digests}) == 4
    assert plan.digest({}, "exec_1") == digests[0]


def test_what_is_gone_is_listed():
    """EX-35: after the steps that are there."""
    old, new = builders.definition(a, b), builders.definition(a, c)
    plan = plan_redrive(run_of(a=DONE, b=BAD), old, new, NOW)
    assert fates(plan) == {"a": "kept", "c": "new", "b": "gone"}


def test_what_a_definition_says_differently_is_listed():
    """EX-35: fields by the names of the document; what a step holds is not its own field."""
    both = ParallelStep("both", (Branch("x", (a,)), Branch("y", (b,))))
    other = evolve(both, branches=(Branch("x", (evolve(a, source="pass"),)), Branch("y", (b,))))
    new = evolve(builders.definition(other, c), description="new")
    documents = document_of(builders.definition(both)), document_of(new)
    assert [*changed_fields(*documents)] == ["description", "a: source"]
    assert [*changed_fields(documents[0], documents[0])] == []


class Counted(dict):
    """Results that count how often somebody goes through all of them."""

    passes = 0

    def __iter__(self):
        self.passes += 1
        return super().__iter__()

    def items(self):
        self.passes += 1
        return super().items()


def test_a_plan_goes_through_the_results_a_few_times_however_many_rounds_there_are():
    """EX-35: loops in loops have thousands of results, and a redrive is decided in one turn."""
    inner = LoopStep("inner", [1, 2], "j", (a,))
    definition = builders.definition(LoopStep("outer", [*range(50)], "i", (inner, b)))
    results = Counted(outer=evolve(BAD, items=[*range(50)]))
    for i in range(50):
        results |= {f"outer.{i}.inner": DONE, f"outer.{i}.b": BAD}
        results |= {f"outer.{i}.inner.{j}.a": DONE for j in range(2)}
    run = evolve(run_of(), step_results=results)
    plan = plan_redrive(run, definition, definition, NOW)
    assert len(plan.results) == 1 + 50 * 3
    assert results.passes < 10
