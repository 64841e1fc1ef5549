"""Walks over tables: ours keep their promises, and a user's own machine is walked alike."""

import re

import pytest
from hypothesis import Phase, settings
from hypothesis.stateful import invariant, run_state_machine_as_test

from wfcore.model.execution import ExecutionStatus, StepStatus
from wfcore.rules.execution import machine as facts
from wfcore.testing import builders as make
from wfcore.testing.contracts.machine import MachineContract, driven_pairs
from wfcore.testing.walks.decisions import ApprovalWalk, WebhookWalk
from wfcore.testing.walks.execution import ExecutionWalk, StepWalk

from .orders import OrderWalk, Paid, Regretted, S, Shipped, SoldOut

QUICKLY = settings(
    max_examples=200,
    database=None,
    deadline=None,
    derandomize=True,
    phases=[Phase.generate, Phase.shrink],
)

TestExecutionWalk = ExecutionWalk.TestCase
TestStepWalk = StepWalk.TestCase
TestApprovalWalk = ApprovalWalk.TestCase
TestWebhookWalk = WebhookWalk.TestCase
TestOrderWalk = OrderWalk.TestCase


class TestExecutionRows(MachineContract):
    walk = ExecutionWalk


class TestStepRows(MachineContract):
    walk = StepWalk


class TestApprovalRows(MachineContract):
    walk = ApprovalWalk


class TestWebhookRows(MachineContract):
    walk = WebhookWalk


class TestOrderRows(MachineContract):
    walk = OrderWalk


def test_an_execution_that_fails_is_asked_nothing_and_fails_no_second_time():
    """A walk draws no rejection of a question that was withdrawn, and no further failure."""
    walk = StepWalk()
    asks = make.step_result(StepStatus.AWAITING_APPROVAL, approval_id="appr_9")
    run = make.execution(status=ExecutionStatus.RUNNING, step_results={"beside": asks})
    walk.begin(run, backoff=0)
    walk.follow(facts.StepBegun("work"))
    for one in (facts.Rejected, facts.Failing):
        assert walk.fitting(one) is not None
    walk.worker_lost()
    walk.follow(facts.FailingAfterGrace())
    for one in (facts.Rejected, facts.Failing, facts.FailingAfterGrace):
        assert walk.fitting(one) is None


def test_a_further_invariant_is_held_against_every_state():
    """A user's invariant sees each record that a walk comes to: a false one is found."""

    class NeverPaid(OrderWalk):
        @invariant()
        def nobody_pays(self) -> None:
            assert getattr(self, "record", None) is None or self.record.paid == 0

    with pytest.raises(AssertionError):
        run_state_machine_as_test(NeverPaid, settings=QUICKLY)


def test_a_further_promise_about_steps_is_held_against_every_step():
    """`check` sees each step with the records before and after it: a false promise is found."""

    class NeverShipped(OrderWalk):
        def check(self, before, fact, after) -> None:
            assert not isinstance(fact, Shipped)

    with pytest.raises(AssertionError):
        run_state_machine_as_test(NeverShipped, settings=QUICKLY)


def test_a_failure_is_told_by_the_names_of_the_facts():
    """The trace of a failure reads as what happened, and is no longer than it must be."""

    class NeverShipped(OrderWalk):
        def check(self, before, fact, after) -> None:
            assert not isinstance(fact, Shipped)

    with pytest.raises(AssertionError) as failed:
        run_state_machine_as_test(NeverShipped, settings=QUICKLY)
    told = "\n".join(failed.value.__notes__)
    assert re.findall(r"fact=(\w+)", told) == ["Paid", "Shipped"], told


def test_the_first_failure_of_a_walk_is_printed_before_it_is_shrunk(
    capsys: pytest.CaptureFixture[str],
):
    """Whoever waits reads at once which promise broke, also if shrinking takes long."""
    folds: list[str] = []

    class NeverShipped(OrderWalk):
        def check(self, before, fact, after) -> None:
            folds.append(capsys.readouterr().out)
            assert not isinstance(fact, Shipped), "shipped"

    NeverShipped.TestCase.settings = settings(QUICKLY, print_blob=False)
    with pytest.raises(AssertionError):
        NeverShipped.TestCase("runTest").runTest()
    printed = [at for at, text in enumerate(folds) if "NeverShipped fails: AssertionError" in text]
    assert len(printed) == 1
    assert printed[0] < len(folds) - 1


def test_a_walk_without_a_strategy_for_a_fact_is_refused():
    """A fact that a table names and a walk forgot is said by name when the class is made."""
    with pytest.raises(TypeError, match="lacks: Paid, Cancelled, Shipped"):
        type("Forgetful", (OrderWalk,), {"facts": {}})


def test_a_row_for_a_base_class_is_driven_with_each_of_its_facts():
    """The contract tries every subclass that a walk has a strategy for, and every row."""
    driven = {(row.state, fact) for row, fact in driven_pairs(OrderWalk)}
    assert driven == {
        (S.OPEN, Paid),
        (S.OPEN, Regretted),
        (S.OPEN, SoldOut),
        (S.PAID, Shipped),
        (S.PAID, Regretted),
        (S.PAID, SoldOut),
    }
