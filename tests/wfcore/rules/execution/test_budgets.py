"""Usage adds up exactly, and no call begins beyond the budget."""

from decimal import Decimal
from fractions import Fraction
from itertools import count
from typing import Any

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from wfcore.effects import OpenApproval, Outcome, StartStep, WithdrawApprovals
from wfcore.model.approval import Approval, DecisionSource, Purpose
from wfcore.model.execution import Execution, ExecutionStatus, StepStatus, Usage
from wfcore.model.workflow import AiStep, Branch, Budget, Definition, OnExceeded, ParallelStep
from wfcore.rules.approval.machine import Approve, Decider, decide
from wfcore.rules.execution import machine as facts
from wfcore.rules.execution.budget import (
    NOTHING,
    PICO,
    UNPRICED,
    Allowance,
    Overrun,
    added,
    allowance,
    ended_cost,
    in_usd,
    overrun,
    total,
    without,
)
from wfcore.rules.execution.fold import advance
from wfcore.rules.execution.proceed import proceed
from wfcore.rules.numbers import cost_text
from wfcore.testing import builders
from wfcore.testing.builders import NOW, step_result
from wfcore.testing.strategies.ai import budgets, usages
from wfcore.time import EpochMs

S = ExecutionStatus


def exact(usage: Usage) -> tuple[int, int, Fraction | None]:
    cost = None if usage.cost_usd is None else Fraction(usage.cost_usd)
    return usage.input_tokens, usage.output_tokens, cost


@given(st.lists(usages(priced=True), max_size=20))
def test_sums_are_exact(used: list[Usage]) -> None:
    """The total of an execution is the sum of its steps to the last digit. AI-7."""
    results = [step_result(usage=one) for one in used]
    into, out, cost = exact(total(results))
    assert (into, out) == (
        sum(one.input_tokens for one in used),
        sum(o.output_tokens for o in used),
    )
    assert cost == sum(Fraction(one.cost_usd or 0) for one in used)


@given(st.lists(st.tuples(usages(), st.booleans()), max_size=9), st.sampled_from(S))
def test_what_an_execution_cost_is_its_own(used: list[tuple[Usage, bool]], status: S) -> None:
    """Once it has ended: all that steps spent since it was accepted, kept results aside. AI-10."""
    results = {
        f"s{n}": step_result(usage=one, started_at=EpochMs(NOW - kept))
        for n, (one, kept) in enumerate(used)
    }
    found = ended_cost(builders.execution(status=status, step_results=results))
    own = [one.cost_usd for one, kept in used if not kept]
    if status not in (S.COMPLETED, S.FAILED, S.CANCELLED) or not any(Decimal(c or 1) for c in own):
        assert found is None
    elif None in own:
        assert found == UNPRICED
    else:
        assert Fraction(found or 0, 10**PICO) == sum(Fraction(cost or 0) for cost in own)
        assert Fraction(in_usd(found or 0)) == sum(Fraction(cost or 0) for cost in own)


def test_a_cost_beyond_every_price_is_the_greatest_number() -> None:
    """A price that was mistyped by a million stops nobody's work."""
    spent = {"s": step_result(usage=Usage(1, 1, "1e9"))}
    assert ended_cost(builders.execution(status=S.FAILED, step_results=spent)) == (1 << 63) - 1


@given(st.lists(usages(), min_size=1), usages())
def test_one_unknown_cost_makes_the_sum_unknown(used: list[Usage], unknown: Usage) -> None:
    """The cost of an execution is null when a model used has no known price. AI-7."""
    unpriced = evolve(unknown, cost_usd=None)
    assert total(step_result(usage=one) for one in (*used, unpriced)).cost_usd is None


@pytest.mark.parametrize(
    ("cost", "text"),
    [("0", "0"), ("0.00", "0"), ("1E+2", "100"), ("10.500", "10.5"), ("1e-9", "0.000000001")],
)
def test_a_cost_is_written_in_plain_digits(cost: str, text: str) -> None:
    """No exponent, no zeros at the end, and a whole number without a point. AI-7."""
    assert cost_text(Decimal(cost)) == text
    assert cost_text(Decimal("100")) == "100"


@given(usages(priced=True), usages(priced=True))
def test_what_was_added_can_be_taken_away(one: Usage, other: Usage) -> None:
    """Taking away what was added gives exactly what was there. AI-7."""
    assert without(added(one, other), other) == one


@given(budgets(), usages())
def test_a_budget_is_spent_exactly_when_a_limit_is_reached(budget: Budget, spent: Usage) -> None:
    """Below every limit a call may be made; at one, or at an unknown price, not. BU-1, BU-3."""
    over = overrun(Allowance(budget, spent))
    into, out, cost = exact(spent)
    unknown = budget.max_cost_usd is not None and cost is None
    tokens = budget.max_tokens is not None and into + out >= budget.max_tokens
    money = bool(budget.max_cost_usd and cost is not None and cost >= Fraction(budget.max_cost_usd))
    assert (over is not None) == (unknown or tokens or money)
    assert over is None or over.extendable == (not unknown)


@given(budgets(), usages(), usages())
def test_an_allowance_shrinks_by_what_is_spent(budget: Budget, spent: Usage, more: Usage) -> None:
    """Within a step the next call is held against what the ones before it used. BU-1."""
    assert Allowance(budget, spent).after(more) == Allowance(budget, added(spent, more))


@pytest.mark.parametrize(
    ("budget", "spent", "why"),
    [
        (
            Budget("1", None),
            Usage(1, 1, "1.00"),
            "the budget is spent: 2 tokens for 1.00 USD; maxCostUsd is 1",
        ),
        (
            Budget(None, 2),
            Usage(1, 1, None),
            "the budget is spent: 2 tokens at an unknown price; maxTokens is 2",
        ),
        (
            Budget("1", 3),
            Usage(2, 2, "0"),
            "the budget is spent: 4 tokens for 0 USD; maxTokens is 3, maxCostUsd is 1",
        ),
    ],
)
def test_why_no_call_may_be_made(budget: Budget, spent: Usage, why: str) -> None:
    """What was spent and what the limits are, in words that people can decide on. BU-1, BU-2."""
    assert overrun(Allowance(budget, spent)) == Overrun(why)
    unknown = "the budget has maxCostUsd, and what was spent has no known price"
    assert overrun(Allowance(Budget("1", 9), Usage())) is None
    assert overrun(Allowance(Budget("1", 9), Usage(0, 0, None))) == Overrun(unknown, False)


def test_no_budget_no_limit() -> None:
    """A workflow without a budget is never held up. BU-1."""
    assert overrun(allowance(None, builders.execution())) is None


class Journey:
    """An execution of AI steps, driven as a worker would; its calls use what the test says."""

    def __init__(self, budget: Budget | None, steps: int = 4, tree: Any = (), **more: Any) -> None:
        asked = tree or [AiStep(f"s{n}", "p:m", "p", **more) for n in range(steps)]
        self.definition: Definition = builders.definition(*asked, budget=budget)
        self.run: Execution = builders.execution()
        self.begun: list[str] = []
        self.asked: list[Approval] = []
        self._ids = count(1)
        self.go(facts.Claimed())

    def go(self, *first: facts.Fact) -> None:
        self._take(
            proceed(
                self.run,
                self.definition,
                NOW,
                lambda value, names: value,
                lambda prefix: f"{prefix}_{next(self._ids)}",
                *first,
            )
        )

    def _take(self, outcome: Outcome[Execution]) -> None:
        self.run = outcome.record
        for effect in outcome.effects:
            match effect:
                case StartStep(name):
                    self.begun.append(name)
                case OpenApproval(approval):
                    self.asked.append(approval)
                case _:
                    pass

    def ends(self, used: Usage) -> None:
        """The call in flight ends well, having used so much."""
        (name,) = self.run.in_flight
        self.go(facts.UsageRecorded(name, used), facts.StepDone(name, "said"))

    def approve(self) -> None:
        decider = Decider("ann@example.org", DecisionSource.API)
        approval = decide(self.asked[-1], Approve(), decider, NOW).record
        granted = facts.BudgetExtended(approval.step_name, approval.id)
        self._take(advance(self.run, granted, NOW))
        self.go(facts.Claimed())


@given(budgets(), st.lists(usages(priced=True), min_size=1, max_size=4))
def test_no_call_begins_beyond_the_budget(budget: Budget, used: list[Usage]) -> None:
    """A step begins exactly as long as what was spent is below the limits. BU-1."""
    journey = Journey(evolve(budget, on_exceeded=OnExceeded.FAIL), steps=len(used))
    spent = NOTHING
    for usage in used:
        held = allowance(journey.definition.budget, journey.run)
        assert held == Allowance(journey.definition.budget, spent)
        if overrun(held) is not None:
            assert journey.run.status is S.FAILED
            assert "the budget is spent" in (journey.run.error or "")
            break
        journey.ends(usage)
        spent = added(spent, usage)
    assert total(journey.run.step_results.values()) == spent


@given(budgets(), st.lists(usages(priced=True), min_size=4, max_size=4))
def test_people_can_extend_a_budget(budget: Budget, used: list[Usage]) -> None:
    """With `approve` every step runs in the end: each approval allows as much again. BU-2."""
    journey = Journey(evolve(budget, on_exceeded=OnExceeded.APPROVE))
    for usage in used:
        if not journey.run.in_flight:
            assert journey.run.status is S.AWAITING_APPROVAL
            journey.approve()
        journey.ends(usage)
    assert (journey.run.status, journey.begun) == (S.COMPLETED, ["s0", "s1", "s2", "s3"])
    assert all(result.attempts == 1 for result in journey.run.step_results.values())


def test_what_people_are_asked() -> None:
    """The approval belongs to the step, and shows what was spent and the limits. BU-2."""
    journey = Journey(Budget("0.5", 100, OnExceeded.APPROVE))
    journey.ends(Usage(80, 20, "0.25"))
    (approval,) = journey.asked
    assert (approval.step_name, approval.purpose) == ("s1", Purpose.BUDGET)
    assert approval.message == (
        "s1: the budget is spent: 100 tokens for 0.25 USD; maxTokens is 100, maxCostUsd is 0.5. "
        "Approving allows as much again; rejecting cancels."
    )
    waiting = journey.run.step_results["s1"]
    assert (waiting.status, waiting.attempts) == (StepStatus.AWAITING_APPROVAL, 0)
    assert journey.begun == ["s0"]


BRANCHES = tuple(Branch(f"b{n}", (AiStep(f"s{n}", "p:m", "Hi"),)) for n in range(1, 4))


def asked_by_branches() -> Journey:
    """Three branches that meet a budget which was spent before them."""
    tree = (AiStep("s0", "p:m", "Hi"), ParallelStep("both", BRANCHES))
    journey = Journey(Budget(None, 1, OnExceeded.APPROVE), tree=tree)
    journey.ends(Usage(1, 0, "0"))
    return journey


def test_branches_open_one_approval() -> None:
    """However many steps meet the spent budget, people are asked once, and told once. BU-4."""
    journey = asked_by_branches()
    (approval,) = journey.asked
    waiting = [journey.run.step_results[f"s{n}"] for n in (1, 2, 3)]
    assert {one.approval_id for one in waiting} == {approval.id}
    assert {one.status for one in waiting} == {StepStatus.AWAITING_APPROVAL}
    assert journey.run.status is S.AWAITING_APPROVAL


def test_one_yes_lets_all_branches_go_on() -> None:
    """Each of them begins its first attempt. BU-4."""
    journey = asked_by_branches()
    journey.approve()
    assert journey.begun == ["s0", "s1", "s2", "s3"]
    assert set(journey.run.in_flight) == {"s1", "s2", "s3"}
    assert len(journey.asked) == 1


def test_one_no_stops_all_branches() -> None:
    """The execution is CANCELLED; every step that asked is REJECTED, nothing is left open. BU-4."""
    journey = asked_by_branches()
    (approval,) = journey.asked
    outcome = advance(journey.run, facts.Rejected("s1", approval.id), NOW)
    assert outcome.record.status is S.CANCELLED
    results = [outcome.record.step_results[f"s{n}"].status for n in (1, 2, 3)]
    assert results == [StepStatus.REJECTED] * 3
    assert [event.kind for event in outcome.events if event.kind.startswith("approval.")] == [
        "approval.rejected"
    ]


def test_the_question_outlives_the_branch_that_asked_first() -> None:
    """As long as one step waits for it; who asked last takes it back. BU-4, AP-5."""
    journey = asked_by_branches()
    (approval,) = journey.asked
    some = advance(journey.run, facts.Claimed(), NOW).record
    some = advance(some, facts.StepsCancelled(("s1", "s2"), "no"), NOW)
    assert not any(isinstance(one, WithdrawApprovals) for one in some.effects)
    granted = facts.BudgetExtended("s1", approval.id)
    after = advance(some.record, granted, NOW).record
    assert after.step_results["s3"].retry_at == NOW
    assert after.step_results["s1"].status is StepStatus.CANCELLED
    none = advance(some.record, facts.StepsCancelled(("s3",), "no"), NOW)
    assert none.effects == (WithdrawApprovals((approval.id,)),)
    assert [event.kind for event in none.events] == ["approval.cancelled"]


def test_a_rejection_ends_it() -> None:
    """A no to more budget cancels the execution as any rejection does. BU-2, EX-6."""
    journey = Journey(Budget(None, 1, OnExceeded.APPROVE))
    journey.ends(Usage(1, 0, None))
    rejected = facts.Rejected("s1", journey.asked[-1].id)
    run = advance(journey.run, rejected, NOW).record
    assert run.status is S.CANCELLED
    assert run.step_results["s1"].status is StepStatus.REJECTED


def test_an_unknown_price_is_no_question_for_people() -> None:
    """No approval makes a price known: with maxCostUsd the step fails. BU-3."""
    journey = Journey(Budget("1", None, OnExceeded.APPROVE))
    journey.ends(Usage(1, 1, None))
    assert (journey.run.status, journey.asked) == (S.FAILED, [])
    assert "has no known price" in (journey.run.error or "")


def test_a_failed_call_is_spent_too() -> None:
    """What failed attempts used counts for the step and against the budget. AI-7, BU-1."""
    journey = Journey(Budget(None, 30))
    journey.go(facts.UsageRecorded("s0", Usage(10, 5, "1")), facts.StepRetrying("s0", "lost", NOW))
    assert journey.begun == ["s0", "s0"]
    journey.go(facts.UsageRecorded("s0", Usage(10, 5, "1")), facts.StepRetrying("s0", "lost", NOW))
    assert journey.run.status is S.FAILED
    assert journey.run.step_results["s0"].usage == Usage(20, 10, "2")


def test_a_tolerated_step_fails_alone() -> None:
    """With `continueOnError` steps beyond the budget fail without a call, and it goes on. BU-1."""
    journey = Journey(Budget(None, 10), continue_on_error=True)
    journey.ends(Usage(10, 0, "0"))
    assert (journey.run.status, journey.begun) == (S.COMPLETED, ["s0"])


@pytest.mark.parametrize("kept", [{}, {"s0": step_result(usage=Usage(900, 100, "9"))}])
def test_what_a_redrive_keeps_is_not_spent_again(kept: Any) -> None:
    """A new execution has its whole budget, whatever the kept results had used. BU-1, EX-17."""
    from wfcore.model.execution import TriggerSource
    from wfcore.rules.execution.start import Start, accept

    definition = builders.definition(budget=Budget("1", 100))
    start = Start(owner_id="acc_1", trigger_source=TriggerSource.MANUAL, step_results=kept)
    run = accept(builders.workflow(), definition, start, "exec_2", NOW).record
    held = allowance(definition.budget, run)
    assert held is not None
    assert exact(held.spent) == (0, 0, 0)
