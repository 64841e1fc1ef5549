"""Rounds of changes: what is put aside, counted on and seen of them. AP-31, AP-32."""

from attrs import evolve

from wfcore.model.execution import ExecutionStatus, StepStatus
from wfcore.model.review import ApprovalStep, OnRevise
from wfcore.model.workflow import Branch, LoopStep, ParallelStep
from wfcore.rules.execution import machine as facts
from wfcore.rules.execution.fold import advance
from wfcore.rules.execution.redrive import put_aside, revisions_of
from wfcore.rules.execution.scope import scope
from wfcore.testing import builders as make
from wfcore.testing.builders import NOW
from wfcore.time import later

code = make.code_step
REVIEW = ApprovalStep("review", on_revise=OnRevise("draft"))
BOTH = ParallelStep("both", (Branch("x", (code("in_x"),)), Branch("y", (code("in_y"),))))
LIST = (code("before"), code("draft"), BOTH, code("skipped"), REVIEW, code("after"))
FLAT = make.definition(*LIST)
NAMES = ("before", "draft", "both", "in_x", "review", "after")


def test_what_ran_since_is_put_aside_and_nothing_else() -> None:
    """From the step that is gone back to up to the approval, with all that is inside. AP-31."""
    run = make.execution(step_results={name: make.step_result() for name in NAMES})
    assert put_aside(FLAT, run, "review", "draft") == ("draft", "both", "in_x", "review")


def test_a_round_of_a_loop_goes_back_by_itself() -> None:
    """However deep the approval is; other rounds and branches are not touched. AP-31."""
    inner = LoopStep("inner", [], "cell", (code("deep"),))
    each = LoopStep("each", [], "item", (code("first"), code("draft"), inner, REVIEW))
    tree = make.definition(
        code("top"), ParallelStep("two", (Branch("x", (code("a"),)), Branch("y", (each,))))
    )
    keys = ("top", "two", "a", "each", *(f"each.{n}.{name}" for n in (0, 1, 10) for name in (
        "first", "draft", "inner", "inner.0.deep", "review",
    )))  # fmt: skip
    run = make.execution(step_results={key: make.step_result() for key in keys})
    assert put_aside(tree, run, "each.1.review", "draft") == (
        "each.1.draft",
        "each.1.inner",
        "each.1.inner.0.deep",
        "each.1.review",
    )


def asked(*outputs: object):
    """An execution in which the approval ended so in the rounds before."""
    rounds = {f"{n}/review": make.step_result(output=one) for n, one in enumerate(outputs, 1)}
    return make.execution(put_aside={**rounds, "1/draft": make.step_result(output="old")})


def test_only_wishes_for_changes_count_as_revisions() -> None:
    """An approval that another one of its list set back asked for none. AP-31."""
    run = asked({"decision": "revise"}, {"decision": "approve"}, None, {"decision": "revise"})
    assert revisions_of(run, "review") == 2
    assert revisions_of(run, "draft") == revisions_of(make.execution(), "review") == 0


def test_attempts_are_counted_on_over_the_rounds() -> None:
    """So an attempt names one start of a process; the event says the same number. AP-31, EX-23."""
    aside = {f"{n}/draft": make.step_result(attempts=n) for n in (1, 2)}
    ready = {"status": ExecutionStatus.RUNNING, "worker": "worker_1"}
    run = make.execution(put_aside=aside, **ready)
    for step, before in (("draft", 2), ("before", 0)):
        begun = advance(run, facts.StepBegun(step), later(NOW, 5))
        result = begun.record.step_results[step]
        assert (result.attempts, result.earlier) == (before + 1, before)
        assert [event.data for event in begun.events] == [{"step": step, "attempt": before + 1}]
    begun = advance(run, facts.StepBegun("draft"), NOW).record
    waits = advance(begun, facts.StepRetrying("draft", "no luck", later(NOW, 9)), NOW).record
    again = advance(waits, facts.StepBegun("draft"), later(NOW, 9)).record
    assert again.step_results["draft"].attempts == 4, "set once, as the round begins"


def test_a_question_of_a_later_round_is_counted_on_too() -> None:
    """It began once more; what is told of the approval itself has no attempt. AP-31."""
    run = make.execution(
        put_aside={"1/review": make.step_result()},
        status=ExecutionStatus.RUNNING,
        worker="worker_1",
    )
    opened = advance(run, facts.ApprovalOpened("review", "appr_2"), NOW)
    assert opened.record.step_results["review"].attempts == 2
    assert [event.data for event in opened.events] == [
        {"step": "review", "attempt": 2},
        {"step": "review", "approvalId": "appr_2"},
    ]


REVISING = make.definition(code("draft"), REVIEW)


def test_the_last_answer_is_seen_by_what_it_sends_back() -> None:
    """Until the approval opens anew; before the first time its parts are there and null. AP-32."""
    none = {
        "decision": None,
        "comment": None,
        "decidedBy": None,
        "groups": {},
        "answers": {},
        "receipts": [],
    }
    steps = scope(REVISING, make.execution())["steps"]
    assert steps == {"review": {"status": None, "output": none}}
    run = asked({"comment": "a"}, {"comment": "b"})
    assert scope(REVISING, run)["steps"]["review"]["output"] == {"comment": "b"}
    asks = make.step_result(StepStatus.AWAITING_APPROVAL)
    now = evolve(run, step_results={"review": asks})
    assert scope(REVISING, now)["steps"]["review"] == {
        "status": "AWAITING_APPROVAL",
        "output": None,
    }
    plain = make.definition(code("draft"), ApprovalStep("review"))
    assert scope(plain, run)["steps"] == {}, "one that sends nothing back is not seen before"


def test_a_round_of_a_loop_sees_its_own_answers() -> None:
    """AP-32: those of the same round of the loop."""
    tree = make.definition(LoopStep("each", [], "item", (code("draft"), REVIEW)))
    loop = make.step_result(StepStatus.RUNNING, items=["a", "b"])
    aside = {"1/each.1.review": make.step_result(output={"comment": "one"})}
    run = make.execution(step_results={"each": loop}, put_aside=aside)
    assert scope(tree, run, "each.1.")["steps"]["review"]["output"] == {"comment": "one"}
    assert scope(tree, run, "each.0.")["steps"]["review"]["status"] is None
