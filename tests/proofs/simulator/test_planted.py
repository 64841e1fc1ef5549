"""The simulator bites: each planted bug is found, soon, and as what it is."""

from collections.abc import Callable

import pytest

from wfcore.testing.simulator import (
    play,
    shrink_scenario,
    simulate,
    summarize_trace,
    violation_kind,
)

from . import (
    planted,
    planted_bounds,
    planted_mails,
    planted_repairs,
    planted_requests,
    planted_reviews,
    planted_starts,
    planted_state,
)

WORLDS = 500
Plant = Callable[[pytest.MonkeyPatch], None]

REFUSED = "defect"
"""A machine of the core had no row for it: it raised where it should not have been asked."""

PLANTS: tuple[tuple[Plant, set[str]], ...] = (
    (
        planted.version_unchecked,
        {"lost update", "decided twice", "result changed", "told twice"},
    ),
    (
        planted.fence_unchecked,
        {"no end", "late result", "result changed", "started twice", "forgotten", "lease unheeded"},
    ),
    (planted.claim_in_two_steps, {"lost update", "too many places", "group too full"}),
    (planted.requeued_after_death, {"started twice"}),
    (planted.resumed_for_everybody, {"began again"}),
    (planted.the_child_is_asked, {"began again"}),
    (planted.on_interrupt_is_ignored, {"began again"}),
    (planted.interrupted_children_are_retried, {"began again"}),
    (planted.interruption_counts_as_slowness, {"began again"}),
    (planted.acknowledged_before_durable, {"unknown", "decision undone", "cancel undone", "ghost"}),
    (planted.begun_is_not_recorded, {"not recorded"}),
    (planted.late_results_count, {"after the end", "result changed", REFUSED}),
    (planted.place_is_kept, {"place kept"}),
    (planted.nobody_polls, {"no end"}),
    (planted.recovery_is_forgotten, {"no end"}),
    (planted.heartless, {"interrupted for nothing"}),
    (
        planted.recovered_without_looking,
        {"interrupted for nothing", "taken away", "lease unheeded"},
    ),
    (planted.work_by_the_wall_clock, {"no end", "ran backwards"}),
    (planted.clock_forgotten, {"no end", "ran backwards"}),
    (planted.leases_uncompared, {"lease unheeded"}),
    (planted.leases_by_the_process, {"interrupted for nothing", "lease unheeded"}),
    (planted.end_recorded_again, {"result changed", "late result", REFUSED}),
    (planted.cut_short_is_postponed, {"started twice"}),
    (planted.held_back_after_it_began, {"started twice"}),
    (planted.the_rest_is_forgotten, {"no end", "waits for nobody", "forgotten"}),
    (planted.beginning_forgotten, {"interrupted for nothing", "no end"}),
    (planted_requests.second_decision_acknowledged, {"decided twice", "decision undone"}),
    (planted_requests.expiry_overrides, {"decided twice", "decided alone", "never told"}),
    (planted_requests.approvals_outlive, {"asks after the end"}),
    (planted_requests.link_and_account_are_two, {"two voices"}),
    (planted_requests.a_round_is_forgotten, {"result changed"}),
    (
        planted_requests.retried_without_reading,
        {"after the end", "result changed", "fence", "not recorded", "no end"},
    ),
    (planted_requests.events_get_lost, {"events"}),
    (planted_requests.key_in_a_unit_of_its_own, {"started twice", "another answer"}),
    (planted_requests.key_read_twice, {"started twice", "another answer"}),
    (planted_requests.quota_in_two_steps, {"quota overrun"}),
    (planted_requests.each_branch_asks_for_budget, {"asked twice"}),
    (planted_requests.room_unclaimed, {"too many webhooks"}),
    (planted_bounds.one_branch_too_many, {"too many branches"}),
    (planted_bounds.jitter_shortens, {"retried early"}),
    (planted_bounds.delegations_outlive, {"delegated too long"}),
    (planted_bounds.told_by_account_alone, {"told wrongly"}),
    (planted_reviews.rules_are_people, {"too few"}),
    (planted_reviews.the_last_stage_is_enough, {"too few"}),
    (planted_reviews.a_delegate_is_another_voice, {"two voices"}),
    (planted_reviews.delegations_never_end, {"stood in too long"}),
    (planted_reviews.escalated_at_each_look, {"escalated twice"}),
    (planted_reviews.revised_for_ever, {"too many rounds"}),
    (planted_reviews.attempts_are_not_counted, {"told twice"}),
    (planted_reviews.the_decided_is_asked, {"told in vain"}),
    (planted_reviews.a_failure_is_the_end, {"never told"}),
    (planted_reviews.the_next_stage_is_not_told, {"never told"}),
    (planted_reviews.notices_in_a_unit_of_their_own, {"never told"}),
    (planted_mails.the_cancelled_get_mail, {"mailed in vain"}),
    (planted_mails.mails_are_lost, {"never mailed"}),
    (planted_mails.the_taken_goes_out_again, {"mailed twice", "mailed in vain"}),
    (planted_repairs.a_kept_step_runs, {"kept step ran"}),
    (planted_repairs.the_unfinished_is_kept, {"kept wrongly"}),
    (planted_repairs.redriven_under_any_id, {"redriven twice"}),
    (planted_repairs.files_are_left_behind, {"wrong files"}),
    (planted_repairs.files_of_failed_attempts, {"wrong files"}),
    (planted_repairs.a_failure_makes_another_message, {"another message"}),
    (planted_starts.timer_fires_before_it_goes, {"started twice"}),
    (planted_starts.triggers_forget_their_inputs, {"started without its inputs"}),
    (planted_starts.timers_in_a_unit_of_their_own, {"completion forgotten", "no end"}),
    (planted_starts.timer_id_by_chance, {"started twice"}),
    (planted_starts.groups_are_ignored, {"group too full"}),
    (planted_starts.room_is_only_looked_at, {"group too full"}),
    (planted_state.state_in_a_unit_of_its_own, {"state without result"}),
    (planted_state.state_is_forgotten, {"result without state"}),
)
"""Each mistake, and the kinds of violations that it may be found as."""
RARE: dict[Plant, int] = {
    planted.interrupted_children_are_retried: 501,
    planted.leases_uncompared: 501,
    planted_requests.expiry_overrides: 530,
    planted_repairs.files_are_left_behind: 1_001,
    planted_reviews.a_delegate_is_another_voice: 501,
}
"""What few worlds meet: with which of them to begin, since the first ones take long for nothing."""


@pytest.mark.parametrize(("plant", "found_as"), PLANTS, ids=[one.__name__ for one, _ in PLANTS])
def test_a_planted_bug_is_found(
    monkeypatch: pytest.MonkeyPatch, plant: Plant, found_as: set[str]
) -> None:
    """Within 500 worlds some promise is broken by a service with this bug."""
    plant(monkeypatch)
    first = RARE.get(plant, 1)
    found = simulate(range(first, first + WORLDS)).failures
    assert found, "no world broke a promise"
    assert violation_kind(found[0].broken) in found_as, found[0].broken


BOUNDS = [plant for plant, _ in PLANTS if plant.__module__ == planted_bounds.__name__]
LINES = 10


@pytest.mark.parametrize("plant", BOUNDS, ids=[one.__name__ for one in BOUNDS])
def test_a_broken_bound_is_shown_in_ten_lines(
    monkeypatch: pytest.MonkeyPatch, plant: Plant
) -> None:
    """The shrunk world tells how the bound was broken in at most ten lines."""
    plant(monkeypatch)
    (failure,) = simulate(range(1, 1 + WORLDS)).failures
    played = play(shrink_scenario(failure.scenario, failure.broken), traced=True)
    lines = summarize_trace(played.trace, played.broken)
    assert len(lines) <= LINES, "\n".join(lines)
