"""What an accepted execution does in the unit that accepts it. EX-34."""

from hypothesis import given
from hypothesis import strategies as st

from wfcore.effects import Outcome, StartChild, StartStep, WakeRunner
from wfcore.model.execution import Execution, ExecutionStatus, TriggerSource
from wfcore.model.workflow import ChildStep, DataStep, Definition, DelayStep, Step, needs_worker
from wfcore.rules.execution import machine as facts
from wfcore.rules.execution.proceed import proceed
from wfcore.rules.execution.start import Start, accept, begun_alone
from wfcore.rules.limits import FACTS_AT_ONCE
from wfcore.testing import builders
from wfcore.testing.builders import NOW
from wfcore.testing.strategies.runs import BOOM, NO
from wfcore.testing.strategies.trees import trees

from .scripts import ASK, NAP, A, both, each, new_ids, seeing

S = ExecutionStatus
CHILD = ChildStep("sub", "other")
D1, D2 = DataStep("d1", 1), DataStep("d2", 2)
START = Start(owner_id="acc_1", trigger_source=TriggerSource.OPEN_API)


def begun(
    definition: Definition, most: int = FACTS_AT_ONCE, **start: object
) -> tuple[Outcome[Execution], Outcome[Execution]]:
    """As it is accepted, and as it is stored."""
    given_start = Start(**{**START, **start})  # type: ignore[typeddict-item]
    accepted = accept(builders.workflow(), definition, given_start, "exec_1", NOW)
    return accepted, begun_alone(accepted, definition, NOW, seeing, new_ids(), most)


def of(*steps: Step, **fields: object) -> Execution:
    _, alone = begun(builders.definition(*steps, **fields))
    return alone.record


@given(trees(), st.integers(1, 8))
def test_it_is_what_a_worker_would_make_of_it(definition: Definition, most: int) -> None:
    """EX-34: the same record, events and effects, or the execution as it was accepted."""
    accepted, alone = begun(definition, most)
    taken = proceed(accepted.record, definition, NOW, seeing, new_ids(), facts.Claimed(), most=most)
    if alone is accepted:
        assert (alone.record.status, alone.effects) == (S.PENDING, (WakeRunner(),))
        assert any(map(_starts_something, definition.walk()))
        return
    assert not any(isinstance(effect, StartStep | StartChild) for effect in taken.effects)
    assert alone.record == taken.record
    assert alone.events == accepted.events + taken.events
    assert alone.effects == taken.effects
    assert [event.number for event in alone.events] == list(range(1, alone.record.events + 1))


def _starts_something(step: Step) -> bool:
    return needs_worker(step) or isinstance(step, ChildStep)


def test_it_goes_to_its_end_or_to_what_it_waits_for() -> None:
    """EX-34: data and containers of it to the end; approvals and delays wait."""
    ended = of(D1, each(D2))
    assert (ended.status, ended.output, ended.completed_at) == (S.COMPLETED, [2, 2], NOW)
    asks = of(D1, ASK, A)
    assert (asks.status, list(asks.step_results)) == (S.AWAITING_APPROVAL, ["d1", "ask"])
    naps = of(NAP, A)
    assert (naps.status, naps.due_at, naps.worker) == (S.RUNNING, NOW + 5, None)


def test_nobody_is_woken_for_what_has_ended() -> None:
    """EX-34: a claim that finds nothing costs a transaction."""
    _, alone = begun(builders.definition(D1))
    assert alone.effects.count(WakeRunner()) == 0


def test_what_needs_a_worker_is_left_to_it() -> None:
    """EX-34: also where it would begin in the middle of the turn; then nothing has been decided."""
    for steps in ((A,), (D1, A), (both(D1, A),), (each(D1, A),), (D1, CHILD)):
        accepted, alone = begun(builders.definition(*steps))
        assert alone is accepted
    passed = DelayStep("nap", 5, when=NO)
    fails = DataStep("fails", BOOM)
    for late in (builders.definition(passed, A), builders.definition(fails, on_failure=(A,))):
        accepted, alone = begun(late)
        assert alone is accepted


def test_a_long_one_is_given_to_a_worker_after_a_turn() -> None:
    """EX-33, EX-34: a start takes no longer than a turn."""
    _, alone = begun(builders.definition(*[DataStep(f"d{n}", n) for n in range(9)]), most=4)
    run = alone.record
    assert (run.status, len(run.step_results), run.due_at) == (S.RUNNING, 4, NOW)
    assert WakeRunner() in alone.effects


def test_one_of_a_concurrency_group_waits_for_its_place() -> None:
    """EX-34, CC-1: the claim alone knows whose turn it is."""
    accepted, _ = begun(builders.definition(D1))
    queued = Outcome(
        builders.execution(concurrency_group="wf_1", status=S.PENDING),
        accepted.events,
        accepted.effects,
    )
    found = begun_alone(queued, builders.definition(D1), NOW, seeing, new_ids(), FACTS_AT_ONCE)
    assert found is queued
