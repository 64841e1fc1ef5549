"""
What each fact about an execution as a whole changes: the record, its events, what follows.

Each meets one that has a step in every place where steps can be, and everything that others
must learn of when it ends.
"""

from typing import Any

import pytest
from attrs import evolve, frozen

from wfcore.effects import (
    CallBack,
    CancelChildren,
    DeadlineSet,
    Effect,
    Outcome,
    SetTimers,
    StopSteps,
    TellParent,
    WakeRunner,
    WithdrawApprovals,
)
from wfcore.model.event import Event, EventKind
from wfcore.model.execution import (
    Awaits,
    Callback,
    Execution,
    ExecutionStatus,
    ReasonCode,
    StatusReason,
    StepResult,
    StepStatus,
)
from wfcore.rules.execution import machine as facts
from wfcore.rules.execution.fold import advance, announce
from wfcore.testing import builders
from wfcore.testing.builders import NOW
from wfcore.time import later

THEN = later(NOW, 5_000)
SOON = later(NOW, 60_000)
S = ExecutionStatus
K = EventKind

RESULTS = {
    "done": builders.step_result(output="kept"),
    "skipped": builders.step_result(StepStatus.SKIPPED),
    "forgiven": builders.step_result(StepStatus.FAILED, error="no"),
    "asks": builders.step_result(StepStatus.AWAITING_APPROVAL, approval_id="appr_1"),
    "other": builders.step_result(StepStatus.AWAITING_APPROVAL, approval_id="appr_2"),
    "holds": builders.step_result(StepStatus.RUNNING, awaits=Awaits.STEPS, until=SOON, items=[1]),
    "sub": builders.step_result(StepStatus.RUNNING, awaits=Awaits.CHILD, child_id="exec_2"),
    "again": builders.step_result(StepStatus.RUNNING, error="no luck", retry_at=SOON),
    "lost": builders.step_result(StepStatus.INTERRUPTED, error="The worker stopped"),
    "work": builders.step_result(StepStatus.RUNNING),
}
LIVE = ("asks", "other", "holds", "sub", "again", "lost", "work")
URL = "https://example.org/told"


def of(status: S = S.RUNNING, **fields: Any) -> Execution:
    """An execution whose end a parent and a caller wait for."""
    ready = {"status": status, "worker": "worker_1", "due_at": SOON, "events": 7, "resumes": 1}
    told = {"parent_id": "exec_0", "callback_url": URL, "key_id": "key_1"}
    return builders.execution(**{"step_results": RESULTS, **ready, **told, **fields})


def ended(
    name: str, error: str | None, status: StepStatus = StepStatus.CANCELLED, **more: Any
) -> dict[str, StepResult]:
    """The step's result when it has ended."""
    nothing = {"retry_at": None, "awaits": None, "until": None}
    ended = evolve(RESULTS[name], status=status, completed_at=THEN, error=error, **nothing, **more)
    return {name: ended}


def all_ended(error: str, *but: str) -> dict[str, StepResult]:
    """Every step that has not ended CANCELLED, except *but*."""
    all_of_them = [ended(name, error) for name in LIVE if name not in but]
    return {**RESULTS, **{name: one for each in all_of_them for name, one in each.items()}}


WITHDRAWN = tuple(
    (K.APPROVAL_CANCELLED, {"step": step, "approvalId": id})
    for step, id in (("asks", "appr_1"), ("other", "appr_2"))
)
CALLBACK = CallBack(Callback("exec_1", URL, "key_1", THEN, due_at=THEN))
END = (
    WithdrawApprovals(("appr_1", "appr_2")),
    CancelChildren(("exec_2",)),
    SetTimers(),
    StopSteps("exec_1"),
    TellParent("exec_0"),
    CALLBACK,
    DeadlineSet(),
)
ENDED = {"completed_at": THEN, "worker": None, "due_at": None}
BROKEN = "Step 'work' failed: no luck"


@frozen
class Case:
    """*fact* makes *changes* to *before*, tells *events*, and *effects* follow."""

    fact: Any
    before: Execution
    changes: dict[str, Any]
    events: tuple[tuple[EventKind, dict[str, Any]], ...] = ()
    effects: tuple[Effect, ...] = ()


CASES = {
    "a claim": Case(
        facts.Claimed(),
        of(S.PENDING),
        {"status": S.RUNNING, "due_at": None},
        ((K.EXECUTION_RUNNING, {}),),
    ),
    "a lease that is given back": Case(
        facts.LeaseReturned(), of(), {"worker": None, "due_at": THEN}, (), (WakeRunner(),)
    ),
    "a look that is due": Case(facts.WakeAt(NOW), of(), {"due_at": NOW}),
    "a rest": Case(
        facts.Suspended(NOW), of(), {"worker": None, "due_at": NOW}, (), (WakeRunner(),)
    ),
    "a rest until somebody else acts": Case(
        facts.Suspended(None), of(), {"worker": None, "due_at": None}
    ),
    "a pause": Case(
        facts.AwaitingApproval("appr_1", "asks", NOW),
        of(),
        {"status": S.AWAITING_APPROVAL, "worker": None, "due_at": NOW},
        ((K.EXECUTION_AWAITING_APPROVAL, {"step": "asks", "approvalId": "appr_1"}),),
        (DeadlineSet(), WakeRunner()),
    ),
    "a good end": Case(
        facts.Finished({"rows": 1}),
        of(step_results={"done": RESULTS["done"]}, parent_id=None, callback_url=None),
        {**ENDED, "status": S.COMPLETED, "output": {"rows": 1}},
        ((K.EXECUTION_COMPLETED, {}),),
        (SetTimers(),),
    ),
    "an end that leaves room in a group": Case(
        facts.Finished(None),
        of(
            step_results={"done": RESULTS["done"]},
            parent_id=None,
            callback_url=None,
            concurrency_group="wf_1",
        ),
        {**ENDED, "status": S.COMPLETED},
        ((K.EXECUTION_COMPLETED, {}),),
        (SetTimers(), WakeRunner()),
    ),
    "a cancellation": Case(
        facts.CancelAsked(),
        of(),
        {
            **ENDED,
            "status": S.CANCELLED,
            "status_reason": StatusReason(ReasonCode.CANCEL_REQUESTED),
            "step_results": all_ended("Cancelled"),
        },
        (*WITHDRAWN, (K.EXECUTION_CANCELLED, {"reason": "CANCEL_REQUESTED"})),
        END,
    ),
    "the end of the parent": Case(
        facts.ParentEnded(),
        of(callback_url=None),
        {
            **ENDED,
            "status": S.CANCELLED,
            "status_reason": StatusReason(ReasonCode.PARENT_CANCELLED),
            "step_results": all_ended("The execution that started this one has ended"),
        },
        (*WITHDRAWN, (K.EXECUTION_CANCELLED, {"reason": "PARENT_CANCELLED"})),
        END[:-2],
    ),
    "a failure of a step that runs": Case(
        facts.Failed("no luck", "work", timed_out=True),
        of(),
        {
            **ENDED,
            "status": S.FAILED,
            "error": BROKEN,
            "status_reason": StatusReason(ReasonCode.TIMEOUT, "work"),
            "step_results": {
                **all_ended("Another step failed"),
                **ended("work", "no luck", StepStatus.FAILED, reason=ReasonCode.TIMEOUT, steps=0),
            },
        },
        (
            (K.STEP_FAILED, {"step": "work", "error": "no luck"}),
            *WITHDRAWN,
            (K.EXECUTION_FAILED, {"reason": "TIMEOUT", "step": "work", "error": BROKEN}),
        ),
        tuple(one for one in END if not isinstance(one, StopSteps)),
    ),
    "a failure of a step that has failed": Case(
        facts.Failed("no", "forgiven"),
        of(),
        {
            **ENDED,
            "status": S.FAILED,
            "error": "Step 'forgiven' failed: no",
            "status_reason": StatusReason(ReasonCode.STEP_FAILED, "forgiven"),
            "step_results": all_ended("Another step failed"),
        },
        (
            *WITHDRAWN,
            (
                K.EXECUTION_FAILED,
                {
                    "reason": "STEP_FAILED",
                    "step": "forgiven",
                    "error": "Step 'forgiven' failed: no",
                },
            ),
        ),
        END,
    ),
    "a failure of a step that had not begun": Case(
        facts.Failed("too many", "new"),
        of(step_results={"done": RESULTS["done"]}),
        {
            **ENDED,
            "status": S.FAILED,
            "error": "Step 'new' failed: too many",
            "status_reason": StatusReason(ReasonCode.STEP_FAILED, "new"),
            "step_results": {
                "done": RESULTS["done"],
                "new": StepResult(
                    StepStatus.FAILED,
                    THEN,
                    THEN,
                    error="too many",
                    attempts=0,
                    reason=ReasonCode.STEP_FAILED,
                    steps=0,
                ),
            },
        },
        (
            (K.STEP_FAILED, {"step": "new", "error": "too many"}),
            (
                K.EXECUTION_FAILED,
                {
                    "reason": "STEP_FAILED",
                    "step": "new",
                    "error": "Step 'new' failed: too many",
                },
            ),
        ),
        (SetTimers(), TellParent("exec_0"), CALLBACK, DeadlineSet()),
    ),
    "a failure of the output": Case(
        facts.Failed("output: boom"),
        of(parent_id=None, callback_url=None, step_results={"done": RESULTS["done"]}),
        {
            **ENDED,
            "status": S.FAILED,
            "error": "output: boom",
            "status_reason": StatusReason(ReasonCode.STEP_FAILED),
        },
        ((K.EXECUTION_FAILED, {"error": "output: boom"}),),
        (SetTimers(),),
    ),
    "the loss of the worker": Case(
        facts.WorkerLost(SOON),
        of(due_at=NOW),
        {
            "status": S.INTERRUPTED,
            "worker": None,
            "due_at": SOON,
            "status_reason": StatusReason(ReasonCode.INTERRUPTED, "work"),
            "step_results": {
                **RESULTS,
                **ended("work", "The worker stopped", StepStatus.INTERRUPTED),
            },
        },
        ((K.EXECUTION_INTERRUPTED, {"reason": "INTERRUPTED", "step": "work"}),),
        (DeadlineSet(), StopSteps("exec_1")),
    ),
    "the loss of a worker that ran nothing": Case(
        facts.WorkerLost(SOON),
        of(due_at=NOW, step_results={"done": RESULTS["done"]}),
        {
            "status": S.INTERRUPTED,
            "worker": None,
            "due_at": SOON,
            "status_reason": StatusReason(ReasonCode.INTERRUPTED),
        },
        ((K.EXECUTION_INTERRUPTED, {"reason": "INTERRUPTED"}),),
        (DeadlineSet(), StopSteps("exec_1")),
    ),
    "a resumption": Case(
        facts.Resumed(),
        of(S.INTERRUPTED, status_reason=StatusReason(ReasonCode.INTERRUPTED, "work")),
        {"status": S.RUNNING, "due_at": THEN, "resumes": 2, "status_reason": None},
        ((K.EXECUTION_RUNNING, {}),),
        (WakeRunner(),),
    ),
    "the end of the grace": Case(
        facts.GraceOver(),
        of(S.INTERRUPTED, status_reason=StatusReason(ReasonCode.INTERRUPTED, "work")),
        {
            **ENDED,
            "status": S.FAILED,
            "error": "Execution interrupted",
            "step_results": all_ended("Execution interrupted", "lost"),
        },
        (*WITHDRAWN, (K.EXECUTION_FAILED, {"error": "Execution interrupted"})),
        END,
    ),
    "a no": Case(
        facts.Rejected("asks", "appr_1"),
        of(),
        {
            **ENDED,
            "status": S.CANCELLED,
            "status_reason": StatusReason(ReasonCode.APPROVAL_REJECTED, "asks", "appr_1"),
            "step_results": {
                **all_ended("An approval was rejected"),
                **ended("asks", "Rejected", StepStatus.REJECTED),
            },
        },
        (
            (K.APPROVAL_REJECTED, {"step": "asks", "approvalId": "appr_1"}),
            WITHDRAWN[1],
            (
                K.EXECUTION_CANCELLED,
                {"reason": "APPROVAL_REJECTED", "step": "asks", "approvalId": "appr_1"},
            ),
        ),
        (WithdrawApprovals(("appr_2",)), *END[1:]),
    ),
    "silence": Case(
        facts.Rejected("asks", "appr_1", timed_out=True),
        of(S.AWAITING_APPROVAL, step_results={"asks": RESULTS["asks"]}),
        {
            **ENDED,
            "status": S.CANCELLED,
            "status_reason": StatusReason(ReasonCode.APPROVAL_TIMEOUT, "asks", "appr_1"),
            "step_results": ended("asks", "Nobody decided in time", StepStatus.REJECTED),
        },
        (
            (K.APPROVAL_REJECTED, {"step": "asks", "approvalId": "appr_1"}),
            (
                K.EXECUTION_CANCELLED,
                {"reason": "APPROVAL_TIMEOUT", "step": "asks", "approvalId": "appr_1"},
            ),
        ),
        (SetTimers(), TellParent("exec_0"), CALLBACK, DeadlineSet()),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_a_fact_changes_this_and_nothing_else(name: str) -> None:
    """EX-3, EX-20: the record, the events in their order and what follows are exactly these."""
    case = CASES[name]
    events = tuple(Event("exec_1", 8 + n, THEN, *one) for n, one in enumerate(case.events))
    record = evolve(case.before, events=7 + len(events), **case.changes)
    assert advance(case.before, case.fact, THEN) == Outcome(record, events, case.effects)


def test_what_is_told_beside_the_facts_is_numbered_with_them() -> None:
    """EX-20: output lines and artifacts move nothing but the number of the last event."""
    run = of()
    new = ((K.STEP_LOG, {"line": "a"}), (K.ARTIFACT_CREATED, {"id": "art_1"}))
    events = (Event("exec_1", 8, THEN, *new[0]), Event("exec_1", 9, THEN, *new[1]))
    assert announce(run, new, THEN) == Outcome(evolve(run, events=9), events)
