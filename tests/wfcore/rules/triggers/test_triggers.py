"""Triggers as rules: what applying does to them, and what may start. CH-1 to CH-5, SH-5, SH-7."""

from itertools import count

from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from wfcore.model.access import AccountStatus, Tier
from wfcore.model.execution import ExecutionStatus
from wfcore.model.trigger import Chain, Refusal, Schedule, Trigger, TriggerSpec, TriggerState
from wfcore.rules.triggers.chain import (
    MAX_DEPTH,
    exhausted,
    key_of_id,
    key_of_name,
    keys_of,
    timers_after,
)
from wfcore.rules.triggers.identity import repeats
from wfcore.rules.triggers.trigger import (
    DefinedTrigger,
    applied,
    blocked_by,
    is_news,
    ran,
    refusal,
    refused,
    standing,
)
from wfcore.testing import builders
from wfcore.testing.builders import NOW
from wfcore.testing.strategies.definition import chains, schedules, trigger_specs
from wfcore.time import EpochMs

WORKFLOW = builders.workflow()


def wanted(specs: tuple[TriggerSpec, ...]) -> list[DefinedTrigger]:
    """Triggers as a definition asks for them; chains wait for what they name."""
    return [
        DefinedTrigger(
            spec, key_of_name("acc_1", spec.workflow) if isinstance(spec, Chain) else None
        )
        for spec in specs
    ]


def apply(specs: tuple[TriggerSpec, ...], stored: list[Trigger]) -> tuple[list[Trigger], object]:
    """The triggers that are stored afterwards, and the change."""
    numbers = count(len(stored) + 100)
    change = applied(WORKFLOW, wanted(specs), stored, lambda: f"trg_{next(numbers)}", NOW)
    kept = {one.id: one for one in stored}
    for one in change.gone:
        del kept[one.id]
    for one in (*change.kept, *change.begun):
        kept[one.id] = one
    return list(kept.values()), change


@given(trigger_specs(), trigger_specs())
def test_afterwards_the_triggers_are_those_of_the_definition(first, second) -> None:
    """SH-5: from any triggers to any others, exactly the wanted ones are stored."""
    stored, _ = apply(first, [])
    stored, _ = apply(second, stored)
    assert sorted(map(repr, (one.spec for one in stored))) == sorted(map(repr, second))


@given(trigger_specs())
def test_applying_the_same_again_changes_nothing(specs) -> None:
    """SH-5: nothing begins, nothing goes, nothing is put."""
    stored, _ = apply(specs, [])
    again, change = apply(specs, stored)
    assert again == stored
    assert change == applied(WORKFLOW, [], [], lambda: "", NOW)


@given(trigger_specs(), st.data())
def test_what_waits_for_the_same_keeps_its_runs(specs, data: st.DataObject) -> None:
    """CH-3, SH-5: other terms leave the identity and the number of runs as they are."""
    stored, _ = apply(specs, [])
    stored = [evolve(one, runs=data.draw(st.integers(0, 9))) for one in stored]
    changed = tuple(
        evolve(spec, delay_seconds=spec.delay_seconds + 1, max_runs=5)
        if isinstance(spec, Chain)
        else evolve(spec, missed=None)
        for spec in specs
    )
    after, change = apply(changed, stored)
    assert {(one.id, one.runs) for one in after} == {(one.id, one.runs) for one in stored}
    assert not change.begun  # type: ignore[attr-defined]
    assert not change.gone  # type: ignore[attr-defined]


def test_chains_of_other_ends_keep_their_own_runs() -> None:
    """CH-6, SH-5: of two behind one workflow; one whose ends change is still the one it was."""
    ends = ExecutionStatus.CANCELLED, ExecutionStatus.FAILED
    good, bad = Chain("first"), Chain("first", on=(ExecutionStatus.FAILED,))
    assert not repeats(good, bad)
    assert repeats(bad, Chain("first", on=ends))
    stored, _ = apply([good, bad], [])
    assert len(stored) == 2
    stored = [evolve(one, runs=at + 1) for at, one in enumerate(stored)]
    after, _ = apply([bad, evolve(good, delay_seconds=5)], stored)
    assert {(one.spec.on, one.runs) for one in after} == {(good.on, 1), (bad.on, 2)}
    wider = Chain("first", on=ends)
    after, _ = apply([good, wider], stored)
    assert {(one.spec.on, one.runs) for one in after} == {(good.on, 1), (wider.on, 2)}


@given(st.lists(chains(), max_size=3), st.integers(0, 30), st.integers(0, 3))
def test_each_chain_gets_one_timer_of_its_own(specs, depth: int, runs: int) -> None:
    """CH-1, CH-3: due after the delay, one link deeper, never under one id; none when exhausted."""
    run = builders.execution(
        status=ExecutionStatus.COMPLETED, completed_at=EpochMs(NOW + 7), chain_depth=depth
    )
    triggers = [
        builders.trigger(f"trg_{number}", spec=spec, runs=runs) for number, spec in enumerate(specs)
    ]
    timers = timers_after(run, [*triggers, builders.trigger("schedule")])
    assert [timer.trigger_id for timer in timers] == [
        one.id
        for one, spec in zip(triggers, specs, strict=True)
        if run.status in spec.on and not exhausted(one)
    ]
    assert len({timer.id for timer in timers}) == len(timers)
    by_id = {one.id: one.spec for one in triggers}
    for timer in timers:
        spec = by_id[timer.trigger_id]
        assert timer.due_at == NOW + 7 + 1_000 * spec.delay_seconds
        assert (timer.cause, timer.depth) == (run.id, depth + 1)
    other = timers_after(evolve(run, id="exec_2"), triggers)
    assert not {timer.id for timer in timers} & {timer.id for timer in other}


def test_an_execution_is_waited_for_by_id_and_by_name() -> None:
    """CH-2: by the workflow's id, and by its name among its owner's, not among another's."""
    run = builders.execution(owner_id="acc_9")
    assert set(keys_of(run)) == {key_of_id("wf_1"), key_of_name("acc_1", run.workflow_name)}
    assert key_of_name("acc_1", "x") != key_of_name("acc_2", "x")


@given(st.integers(1, 5), st.integers(0, 10))
def test_a_chain_starts_as_often_as_it_may(most: int, tries: int) -> None:
    """CH-3: of any number of due timers exactly `maxRuns` start."""
    trigger = builders.trigger(spec=Chain("x", 0, most))
    owner, started = builders.account(), 0
    for number in range(tries):
        timer = builders.timer(f"t{number}", depth=1)
        if refusal(trigger, timer, owner, sees=True) is None:
            started += 1
            trigger = ran(trigger, NOW)
    assert started == min(most, tries)
    assert standing(trigger, owner, True, None).state is (
        TriggerState.EXHAUSTED if tries >= most else TriggerState.ACTIVE
    )


@given(
    schedules() | chains(),
    st.sampled_from(Tier),
    st.sampled_from(AccountStatus),
    st.integers(0, 40),
    st.booleans(),
)
def test_what_keeps_a_trigger_from_starting(spec, plan, status, depth, sees) -> None:
    """CH-4, CH-5, SH-7, AC-1: account before plan before depth before sight; else it starts."""
    owner = builders.account(plan=plan, status=status)
    trigger = builders.trigger(spec=spec)
    why = refusal(trigger, builders.timer(depth=depth), owner, sees)
    if status is not AccountStatus.ACTIVE:
        assert why is Refusal.ACCOUNT_BLOCKED
    elif isinstance(spec, Schedule) and plan is Tier.FREE:
        assert why is Refusal.PLAN_LIMIT
    elif depth > MAX_DEPTH:
        assert why is Refusal.CHAIN_TOO_DEEP
    else:
        assert why is (None if sees else Refusal.ACCESS_LOST)
    assert blocked_by(spec, None) is Refusal.ACCOUNT_BLOCKED


@given(st.lists(st.sampled_from((None, *Refusal)), max_size=12))
def test_what_lasts_is_told_once_until_it_starts_again(ends) -> None:
    """SH-7: of a run of refusals by plan or account the first is news; others each; no pause."""
    trigger, before = builders.trigger(), None
    for number, why in enumerate(ends):
        now = EpochMs(NOW + number)
        if why is None:
            trigger = ran(trigger, now)
        else:
            lasting = why in (Refusal.PLAN_LIMIT, Refusal.ACCOUNT_BLOCKED, Refusal.UNREADABLE)
            news = why is not Refusal.PAUSED and not (lasting and before is why)
            assert is_news(trigger, why) is news
            trigger = refused(trigger, why, now)
        before = why
