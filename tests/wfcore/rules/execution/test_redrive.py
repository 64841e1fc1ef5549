"""Starting, and starting again where an execution stopped. EX-1, EX-17."""

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from wfcore.effects import WakeRunner
from wfcore.errors import InvalidInput, NotFound
from wfcore.model.event import EventKind
from wfcore.model.execution import Awaits, StepResult, StepStatus, TriggerSource
from wfcore.model.execution import ExecutionStatus as S
from wfcore.model.workflow import Branch, LoopStep, ParallelStep, Variable
from wfcore.rules.execution.machine import EXECUTION
from wfcore.rules.execution.redrive import FROM, plan_redrive
from wfcore.rules.execution.start import Start, accept
from wfcore.testing import builders
from wfcore.testing.builders import NOW
from wfcore.testing.strategies.runs import executions, sequences
from wfcore.testing.strategies.trees import trees
from wfcore.time import DurationMs, EpochMs, later

from .lineage import Lineage
from .tree_laws import LAWS
from .walker import Walk, accepted, walk_on, walks

KEPT = (StepStatus.COMPLETED, StepStatus.SKIPPED)
ended_badly = walks().filter(lambda walk: walk.run.status in FROM)
ended_badly_in_a_tree = walks(definitions=trees()).filter(lambda walk: walk.run.status in FROM)


def kept_results(run, definition, now):
    return plan_redrive(run, definition, definition, now).results


@given(sequences(), st.sampled_from(TriggerSource))
def test_an_accepted_execution_is_pending_and_due(definition, source):
    """EX-1: due at once, told by event 1, at the definition's revision of now."""
    workflow = builders.workflow(revision=3)
    start = Start(owner_id="acc_2", trigger_source=source)
    outcome = accept(workflow, definition, start, "exec_1", NOW)
    run = outcome.record
    assert (run.status, run.accepted_at, run.due_at, run.revision) == (S.PENDING, NOW, NOW, 3)
    assert (run.owner_id, run.workflow_owner_id) == ("acc_2", workflow.owner_id)
    assert run.total_steps == len(definition.steps)
    (event,) = outcome.events
    assert (event.number, run.events, event.kind) == (1, 1, EventKind.EXECUTION_PENDING)
    assert outcome.effects == (WakeRunner(),)


def test_inputs_that_break_the_declarations_start_nothing():
    """EX-1, VM-5: the mistake is raised before there is an execution."""
    definition = builders.definition(variables={"v": Variable("v", required=True)})
    start = Start(owner_id="acc_1", trigger_source=TriggerSource.OPEN_API)
    with pytest.raises(InvalidInput, match=r"inputs\.v"):
        accept(builders.workflow(), definition, start, "exec_1", NOW)


@given(sequences(), st.sampled_from([s for s in S if s not in FROM]), st.data())
def test_only_a_stopped_execution_is_redriven(definition, status, data):
    """EX-17: what runs, waits or completed is not found."""
    with pytest.raises(NotFound) as refused:
        kept_results(data.draw(executions(status)), definition, NOW)
    assert str(refused.value) == str(NotFound("Execution"))


@given(ended_badly)
def test_the_finished_steps_before_the_first_unfinished_one_are_kept(walk: Walk):
    """EX-17: a prefix of the sequence, each result as it was, and no more."""
    kept = kept_results(walk.run, walk.definition, NOW)
    order = [step.name for step in walk.definition.steps]
    assert list(kept) == order[: len(kept)]
    for name, result in kept.items():
        assert result == walk.run.step_results[name]
        tolerated = walk.definition.step(name).continue_on_error
        assert result.status in KEPT or (tolerated and result.status is StepStatus.FAILED)
    if len(kept) < len(order):
        first = walk.run.step_results.get(order[len(kept)])
        assert first is None or first.status not in KEPT


@given(sequences(), st.lists(st.sampled_from(StepStatus), max_size=5))
def test_nothing_is_kept_after_a_gap(definition, statuses):
    """EX-17: whatever results there are, those after the first unfinished step are not kept."""
    results = {f"s{n}": builders.step_result(status) for n, status in enumerate(statuses)}
    run = builders.execution(status=S.FAILED, step_results=results)
    kept = kept_results(run, definition, NOW)
    order = [step.name for step in definition.steps]
    assert list(kept) == order[: len(kept)]
    assert all(kept[name] == results[name] for name in kept)


@given(ended_badly, st.data())
def test_a_redriven_execution_begins_at_the_first_unfinished_step(walk: Walk, data):
    """EX-17: it comes to its own end, and no kept step starts again."""
    kept = kept_results(walk.run, walk.definition, NOW)
    again = walk_on(
        data.draw,
        accepted(
            walk.definition, TriggerSource.OPEN_API, step_results=kept, redrive_of=walk.run.id
        ),
    )
    assert again.run.status in EXECUTION.final
    assert again.run.redrive_of == walk.run.id
    assert not kept.keys() & {start.step_name for start in again.starts}
    for name, result in kept.items():
        assert again.run.step_results[name] == result


def test_what_is_kept_of_a_loop_that_failed_in_its_second_round():
    """EX-17: the first round, the finished steps of the second, and what holds them begun anew."""
    x, y, z, w, before, after = map(builders.code_step, ("x", "y", "z", "w", "before", "after"))
    both = ParallelStep("both", (Branch("b0", (y,)), Branch("b1", (z, w))))
    loop = LoopStep("each", [1, 2], "i", (x, both), timeout_ms=DurationMs(700))
    done, failed = builders.step_result(), builders.step_result(StepStatus.FAILED)
    items = evolve(failed, items=[1, 2])
    first = {f"each.0.{name}": done for name in ("x", "both", "y", "z", "w")}
    second = {"each.1.x": done, "each.1.both": failed, "each.1.y": done, "each.1.z": failed}
    results = {"before": done, "each": items, **first, **second, "after": done}
    run = builders.execution(status=S.FAILED, step_results=results)
    anew = StepResult(StepStatus.RUNNING, EpochMs(5), awaits=Awaits.STEPS)
    definition = builders.definition(before, loop, after)
    assert kept_results(run, definition, EpochMs(5)) == {
        "before": done,
        "each": evolve(anew, until=EpochMs(705), items=[1, 2]),
        **first,
        "each.1.x": done,
        "each.1.both": anew,
        "each.1.y": done,
    }
    asked = evolve(run, step_results={**results, "each": evolve(items, attempts=0)})
    assert kept_results(asked, definition, NOW) == {"before": done}


@given(ended_badly_in_a_tree)
def test_in_a_tree_what_is_finished_is_kept_in_every_branch_and_round(walk: Walk):
    """EX-17: of each sequence a prefix; what holds it is kept as well, finished or begun anew."""
    tree = Lineage.of(walk.definition)
    kept = kept_results(walk.run, walk.definition, NOW)
    for key, result in kept.items():
        old = walk.run.step_results[key]
        if result == old:
            inside_done = any(tree.done_with(one, kept.get(one)) for one in tree.holders(key))
            assert tree.done_with(key, result) or inside_done
        else:
            assert not tree.done_with(key, old)
            most = tree.step(key).timeout_ms
            until = None if most is None else later(NOW, most)
            assert result == StepResult(
                StepStatus.RUNNING,
                NOW,
                awaits=Awaits.STEPS,
                until=until,
                items=old.items,
                case=old.case,
                rounds=old.rounds,
            )
        if result.status is not StepStatus.CANCELLED:
            assert {*tree.holders(key)} <= kept.keys()
    for key, old in walk.run.step_results.items():
        open = [one for one in (key, *tree.holders(key)) if one not in kept]
        reached = all(tree.done_with(one, kept.get(one)) for one in tree.before(key))
        if tree.done_with(key, old) and open and {*tree.holders(key)} <= kept.keys():
            assert not reached, f"{key} was finished, and is not kept"


@given(ended_badly_in_a_tree, st.data())
def test_a_redriven_tree_does_the_rest(walk: Walk, data):
    """EX-17: nothing that is kept as finished starts again, and the laws hold on the way."""
    kept = kept_results(walk.run, walk.definition, NOW)
    again = walk_on(
        data.draw,
        accepted(
            walk.definition, TriggerSource.OPEN_API, step_results=kept, redrive_of=walk.run.id
        ),
    )
    assert again.run.status in EXECUTION.final
    done = {key for key, result in kept.items() if result.completed_at is not None}
    assert not done & {start.step_name for start in again.starts}
    for key in done:
        assert again.run.step_results[key] == kept[key]
    for law in LAWS:
        law(again)
