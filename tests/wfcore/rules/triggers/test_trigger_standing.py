"""What a trigger is made of when it begins, when it may start, and how it is said to stand."""

from typing import Any

import pytest
from attrs import evolve

from wfcore.model.access import AccountStatus, Tier
from wfcore.model.trigger import (
    Chain,
    Refusal,
    Schedule,
    Timer,
    Trigger,
    TriggerStanding,
    TriggerState,
)
from wfcore.rules.triggers.chain import MAX_DEPTH
from wfcore.rules.triggers.schedule import timer_at
from wfcore.rules.triggers.trigger import (
    DefinedTrigger,
    TriggerChange,
    applied,
    is_news,
    ran,
    refusal,
    refused,
    standing,
)
from wfcore.testing import builders
from wfcore.testing.builders import NOW
from wfcore.time import EpochMs

DAILY = Schedule("0 9 * * *")
BEHIND = Chain("Import", 5, 2)
LATER = EpochMs(NOW + 60_000)


def test_what_begins_belongs_to_its_workflow() -> None:
    """A new trigger: its workflow's, its workflow's owner's, from now on. CH-3, SH-5."""
    workflow = builders.workflow(id="wf_7", owner_id="acc_7")
    wanted = [DefinedTrigger(DAILY), DefinedTrigger(BEHIND, "name:Import")]
    ids = iter(("trg_1", "trg_2"))
    assert applied(workflow, wanted, [], lambda: next(ids), NOW) == TriggerChange(
        begun=(
            Trigger("trg_1", "wf_7", "acc_7", DAILY, NOW, None),
            Trigger("trg_2", "wf_7", "acc_7", BEHIND, NOW, "name:Import"),
        )
    )


def test_a_chain_is_known_by_what_it_waits_for() -> None:
    """It stays where it waits for the same by another name, not for another by the same. CH-3."""
    stored = builders.trigger(spec=BEHIND, watches="key_1", runs=1)
    named = Chain("wf_1", 5, 2)
    kept = applied(
        builders.workflow(), [DefinedTrigger(named, "key_1")], [stored], lambda: "new", NOW
    )
    assert kept == TriggerChange(kept=(evolve(stored, spec=named),))
    other = applied(
        builders.workflow(), [DefinedTrigger(BEHIND, "key_2")], [stored], lambda: "new", NOW
    )
    assert ([one.watches for one in other.begun], other.gone) == (["key_2"], (stored,))


def test_a_timer_stands_for_one_instant_of_its_schedule() -> None:
    """The same instant has the same id, so that it cannot be put twice. SH-1."""
    assert timer_at(builders.trigger("trg_5"), LATER) == Timer(f"trg_5@{LATER}", "trg_5", LATER)


@pytest.mark.parametrize(
    ("depth", "why"), [(MAX_DEPTH, None), (MAX_DEPTH + 1, Refusal.CHAIN_TOO_DEEP)]
)
def test_how_deep_a_chain_may_be(depth: int, why: Refusal | None) -> None:
    """The last link that is allowed starts, and none behind it. CH-4."""
    timer, owner = builders.timer(depth=depth), builders.account(plan=Tier.PRO)
    assert refusal(builders.trigger(spec=BEHIND), timer, owner, sees=True) is why


FREE = builders.account(plan=Tier.FREE)
LOCKED = builders.account(status=AccountStatus.LOCKED)
PRO = builders.account(plan=Tier.PRO)
STANDING: list[tuple[dict[str, Any], Any, bool, TriggerState, str | None]] = [
    ({}, PRO, False, TriggerState.ACTIVE, None),
    ({}, FREE, True, TriggerState.BLOCKED, "Schedules need the plan PRO or above"),
    (
        {"spec": BEHIND},
        LOCKED,
        True,
        TriggerState.BLOCKED,
        "The account of its owner is disabled or locked",
    ),
    (
        {},
        None,
        True,
        TriggerState.BLOCKED,
        "The account of its owner is disabled or locked",
    ),
    ({"spec": BEHIND, "runs": 1}, FREE, True, TriggerState.ACTIVE, None),
    (
        {"spec": BEHIND, "runs": 2},
        FREE,
        False,
        TriggerState.EXHAUSTED,
        "It has started as often as `maxRuns` allows",
    ),
    (
        {"spec": BEHIND},
        FREE,
        False,
        TriggerState.BLOCKED,
        "The workflow 'Import' is not there, or not visible any more",
    ),
]


@pytest.mark.parametrize(("fields", "owner", "watched", "state", "why"), STANDING)
def test_how_a_trigger_stands(
    fields: dict[str, Any], owner: Any, watched: bool, state: TriggerState, why: str | None
) -> None:
    """Its state, why in these words, and its next time, if it has one. SH-7, CH-3, CH-5."""
    trigger = builders.trigger(**fields)
    assert standing(trigger, owner, watched, LATER) == TriggerStanding(state, why, LATER)


def test_a_schedule_without_a_next_time_is_over_and_a_chain_is_not() -> None:
    """A chain waits for others, and has no time of its own."""
    over = TriggerStanding(TriggerState.EXHAUSTED, "The schedule names no further time")
    assert standing(builders.trigger(), PRO, True, None) == over
    assert standing(builders.trigger(spec=BEHIND), PRO, True, None).state is TriggerState.ACTIVE


def test_what_came_of_a_trigger_is_kept() -> None:
    """Each start is counted; a refusal is kept with its time, and does not undo a start."""
    once = ran(builders.trigger(runs=3), NOW)
    assert (once.runs, once.last_run_at) == (4, NOW)
    told = refused(once, Refusal.PLAN_LIMIT, LATER)
    assert told == evolve(once, refusal=Refusal.PLAN_LIMIT, refused_at=LATER)
    assert not is_news(told, Refusal.PLAN_LIMIT)
    assert not is_news(evolve(told, last_run_at=LATER), Refusal.PLAN_LIMIT)
    assert is_news(ran(told, EpochMs(LATER + 1)), Refusal.PLAN_LIMIT)
    fresh = refused(builders.trigger(), Refusal.PLAN_LIMIT, EpochMs(0))
    assert not is_news(fresh, Refusal.PLAN_LIMIT)
    assert is_news(ran(fresh, EpochMs(1)), Refusal.PLAN_LIMIT)
