"""What holds an execution up: budgets, too many results, moves that another one overtakes."""

import pytest
from attrs import evolve

from wfcore.effects import OpenApproval, StartStep
from wfcore.errors import IllegalMove
from wfcore.model.execution import ExecutionStatus, StepStatus, Usage
from wfcore.model.workflow import AiStep, Budget, ChildStep, GroupSpec, OnExceeded, Retry
from wfcore.rules.approval.machine import BY_RULE, Approve, decide, step_output
from wfcore.rules.execution import machine as facts
from wfcore.rules.execution.open_approval import ask_for_budget, open_approval
from wfcore.rules.execution.proceed import proceed
from wfcore.rules.execution.retry import after_failure
from wfcore.rules.limits import DATA_RESULT, TEXT_RESULT
from wfcore.testing import builders
from wfcore.testing.builders import NOW
from wfcore.testing.strategies.runs import NO, YES
from wfcore.time import later

from .scripts import (
    ASK,
    DONE,
    NAP,
    RUNS,
    A,
    B,
    C,
    asked,
    begins,
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

AI = AiStep("ai", "p:m", "p")
SPENT = evolve(DONE, usage=Usage(60, 40, None))
GONE = "the budget is spent: 100 tokens at an unknown price; maxTokens is 100"
UNKNOWN = "the budget has maxCostUsd, and what was spent has no known price"
FAIL, ASKING = Budget(None, 100), Budget(None, 100, OnExceeded.APPROVE)
BOTH = both(A, AI)


def more(key: str = "ai") -> OpenApproval:
    """The question for more budget."""
    return OpenApproval(ask_for_budget(of(), key, GONE, "appr_2", NOW))


@pytest.mark.parametrize("budget", [None, Budget(None, 101), Budget(None, 101, OnExceeded.APPROVE)])
def test_within_the_budget_a_model_is_asked(budget: Budget | None) -> None:
    """BU-1: its call is a process as any other."""
    follows((BOTH,), of({"both": holds(), "a": SPENT}), begins("ai"), budget=budget)
    beside = of({"both": holds(), "old": SPENT})
    follows((BOTH,), beside, begins("a", "ai"), budget=budget)


def test_beyond_the_budget_the_step_fails() -> None:
    """BU-1: with the figures, before anything else begins; other steps know no budget."""
    broke = [facts.StepFailed("ai", GONE, steps=0), facts.Failed(GONE, "ai")]
    follows((A, AI), of({"a": SPENT}), broke, budget=FAIL)
    follows((B, AI), of({"a": SPENT}), begins("b"), budget=FAIL)


def test_beyond_the_budget_people_are_asked() -> None:
    """BU-2: the question goes before what runs; what runs beside it goes on."""
    asks = [facts.BudgetReached("ai", "appr_2"), more()]
    follows(
        (A, AI), of({"a": SPENT}), [*asks, facts.AwaitingApproval("appr_2", "ai")], budget=ASKING
    )
    beside = of({"both": holds(), "old": SPENT})
    follows((BOTH,), beside, [*asks, *begins("a")], budget=ASKING)


def test_nobody_is_asked_for_what_no_yes_can_change() -> None:
    """BU-3: a cost that is not known stays so."""
    budget = Budget("1", None, OnExceeded.APPROVE)
    failed = [facts.StepFailed("ai", UNKNOWN, steps=0), facts.Failed(UNKNOWN, "ai")]
    follows((A, AI), of({"a": SPENT}), failed, budget=budget)


def test_a_child_that_failed_is_tried_again() -> None:
    """DF-9: when its wait is over, and not before."""
    sub = ChildStep("sub", "other", retry=Retry(2, 1_000))
    run = of({"sub": child(error="it failed")})
    again = after_failure(run, sub, "sub", "it failed", NOW)
    assert isinstance(again, facts.StepRetrying)
    follows((sub,), run, [again, facts.Suspended(again.retry_at)])


TOO_MANY = "the execution has 3 step results; it may not have more"


@pytest.mark.parametrize("name", ["begun", "skipped", "refused"])
def test_what_would_be_too_much_is_the_end(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """FL-9: whatever the new result would say; of two new ones the first is blamed."""
    monkeypatch.setattr("wfcore.rules.execution.proceed.MAX_STEP_RESULTS", 3)
    when = {"begun": None, "skipped": NO, "refused": "{{ boom }}"}[name]
    new = [code(key, when=when, continue_on_error=True) for key in ("new", "newer")]
    steps = (A, B, both(*new, continue_on_error=True))
    run = of({"a": DONE, "b": DONE, "both": holds()})
    follows(steps, run, [facts.Failed(TOO_MANY, "new")])


def test_another_attempt_is_not_too_much(monkeypatch: pytest.MonkeyPatch) -> None:
    """FL-9: it has its result; so do those that end."""
    monkeypatch.setattr("wfcore.rules.execution.proceed.MAX_STEP_RESULTS", 2)
    again = builders.step_result(StepStatus.RUNNING, retry_at=NOW)
    follows((A, B), of({"a": DONE, "b": again}), [facts.StepBegun("b"), StartStep("b", 2)])
    done = [facts.Finished(5)]
    follows((A, B), of({"a": DONE, "b": RUNS}), done, facts.StepDone("b", 5))
    monkeypatch.setattr("wfcore.rules.execution.proceed.MAX_STEP_RESULTS", 3)
    follows((A, B, C), of({"a": DONE, "b": DONE}), begins("c"))


def test_results_of_earlier_rounds_count_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """FL-9, AP-31: with those of this one."""
    monkeypatch.setattr("wfcore.rules.execution.proceed.MAX_STEP_RESULTS", 3)
    run = of({"a": DONE}, put_aside={"1/a": DONE, "1/b": DONE})
    follows((A, B), run, [facts.Failed(TOO_MANY, "b")])


@pytest.mark.parametrize("items", [999, 1_000, 1_001])
def test_a_loop_has_at_most_a_thousand_rounds(items: int) -> None:
    """FL-9: counted before the first one begins."""
    loop, many = each(A, items=[0] * items), [0] * items
    error = f"items: gives {items} items; at most 1000"
    fails = [facts.StepFailed("each", error, steps=0), facts.Failed(error, "each")]
    begun = [facts.ContainerStarted("each", None, many), *begins("each.0.a")]
    follows((loop,), of(), fails if items > 1_000 else begun)


def test_two_questions_have_two_ids() -> None:
    """EX-4: the execution waits for the first of them."""
    other = evolve(ASK, name="other")
    opened = asked(other, "other").approval
    follows(
        (both(ASK, other),),
        of({"both": holds()}),
        [
            facts.ApprovalOpened("ask", "appr_2"),
            asked(ASK, "ask"),
            facts.ApprovalOpened("other", "appr_3"),
            OpenApproval(evolve(opened, id="appr_3")),
            facts.AwaitingApproval("appr_2", "ask"),
        ],
    )


def test_what_a_fact_ended_is_not_planned_for() -> None:
    """EX-9: nothing follows the end, an interruption, or a question that is still open."""
    run = of({"a": RUNS})
    follows((A, B), run, (), facts.CancelAsked())
    follows((A, B), run, (), facts.WorkerLost(later(NOW, 5)))
    follows((A, B), of({}, status=ExecutionStatus.PENDING), ())


def test_a_fact_that_is_not_possible_is_refused() -> None:
    """EX-3: with all that was to follow."""
    with pytest.raises(IllegalMove, match="step 'a' is NOT_STARTED: step done is not possible"):
        follows((A,), of(), (), facts.StepDone("a"))


def test_a_record_that_waits_for_nothing_is_no_record() -> None:
    """EX-19: better a loud end than an execution that nobody ever looks at again."""
    lost = of({"a": builders.step_result(StepStatus.CANCELLED)})
    with pytest.raises(AssertionError, match="exec_1: nothing to do and nothing to wait for"):
        proceed(lost, builders.definition(A, NAP), NOW, lambda value, names: value, lambda p: p)


def test_a_rule_approves_as_the_question_opens() -> None:
    """If the template holds, and only then; the step goes on with what was approved. AP-35."""
    group = GroupSpec("rows", "Rows", [{"id": 1}], row_key="id")
    step = evolve(ASK, groups=(group,), auto_approve=YES)
    opening = open_approval(of(), step, "ask", "appr_2", NOW, lambda value: value)
    asks = OpenApproval(evolve(opening, question=opening.message))
    ruled = decide(asks.approval, Approve(), BY_RULE, NOW).record
    opened = facts.ApprovalOpened("ask", "appr_2")
    approved = facts.Approved("ask", "appr_2", step_output(ruled))
    after = [*begins("b"), facts.WakeAt(None)]
    follows((step, B), of(), [opened, OpenApproval(ruled), approved, *after])
    waits = [opened, asks, facts.AwaitingApproval("appr_2", "ask")]
    follows((evolve(step, auto_approve=NO), B), of(), waits)


def test_a_question_has_the_files_of_steps_that_have_begun() -> None:
    """By their keys, as seen where it is asked. AP-29."""
    step = evolve(ASK, attachments=("a", "b", "c"))
    attached = evolve(asked(step, "each.0.ask"), attached=("a", "each.0.b"))
    results = {"a": DONE, "each": holds((1,)), "each.0.b": DONE, "each.1.c": DONE}
    opened, waits = ("each.0.ask", "appr_2"), ("appr_2", "each.0.ask")
    script = [facts.ApprovalOpened(*opened), attached, facts.AwaitingApproval(*waits)]
    follows((A, each(B, step)), of(results), script)


def test_rows_may_be_longer_than_a_text() -> None:
    """Each template knows how much it may give; marks make a message longer for people. LM-10."""
    limits = []

    def render(template, names, limit, inserted=None):
        limits.append((template, limit))
        return [] if template == "rows" else "text"

    step = evolve(ASK, message="m", groups=(GroupSpec("rows", "Rows", "rows"),))
    proceed(of(), builders.definition(step), NOW, render, lambda prefix: f"{prefix}_2")
    assert sorted({*limits}) == [("m", TEXT_RESULT), ("m", DATA_RESULT), ("rows", DATA_RESULT)]


def test_an_attempt_that_was_put_off_says_how_often() -> None:
    """EX-27: to the worker, who begins the same attempt again."""
    late = evolve(RUNS, attempts=0, postponed=3, retry_at=NOW)
    (start,) = proceed(of({"a": late}), builders.definition(A), NOW, seeing, new_ids()).effects
    assert start == StartStep("a", 1, 3)
