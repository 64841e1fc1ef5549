"""Explanations word by word: each cause in its sentence, with instant, step and ids."""

import time
from typing import Any

import pytest

from wfcore.model.approval import ApprovalStatus, Assent
from wfcore.model.execution import (
    Awaits,
    Execution,
    ReasonCode,
    StatusReason,
    StepStatus,
    Unread,
    leaving_out,
)
from wfcore.model.execution import ExecutionStatus as S
from wfcore.model.execution import TriggerSource as T
from wfcore.model.explanation import Line, Why
from wfcore.model.notice import Notice, NoticeKind
from wfcore.model.workflow import ApprovalStep, Assurance
from wfcore.rules.explain.context import ExplanationContext
from wfcore.rules.explain.explanation import explain
from wfcore.rules.phrase import instant_text
from wfcore.testing import builders as make
from wfcore.testing.builders import NOW
from wfcore.time import EpochMs

SOON = EpochMs(NOW + 5_999)
SAID, SAID_SOON = "2023-11-14 22:13:20Z", "2023-11-14 22:13:25Z"
REDRIVE = Line(
    Why.CAN_REDRIVE,
    "A redrive makes a new execution that begins at the first unfinished step.",
)
DUE = Line(Why.DUE, "It is due: a worker takes it at once.")


def of(run: Execution, around: ExplanationContext | None = None) -> list[Line]:
    return list(explain(run, around or ExplanationContext(), NOW))


def run(**fields: Any) -> Execution:
    return make.execution(**{"status": S.RUNNING, "due_at": None, **fields})


def waits(**fields: Any) -> Execution:
    """An execution whose one step `a` has begun and waits for something."""
    step = {"attempts": 1, "completed_at": None, **fields}
    status = step.pop("status", StepStatus.RUNNING)
    return run(step_results={"a": make.step_result(status, **step)})


# The end


def failed(**fields: Any) -> Execution:
    return run(status=S.FAILED, **fields)


def cancelled(code: ReasonCode | None, step: str | None = None, id: str | None = None) -> Execution:
    return run(status=S.CANCELLED, status_reason=code and StatusReason(code, step, id))


REJECTED = cancelled(ReasonCode.APPROVAL_REJECTED, "review", "appr_1")
BY_ANN = make.approval(status=ApprovalStatus.REJECTED, decided_by="ann", comment="too much")
SILENT = make.approval(status=ApprovalStatus.REJECTED)
OTHER = make.approval("appr_0", status=ApprovalStatus.REJECTED, decided_by="bob", comment="?")


def ended(text: str, code: Why = Why.CANCELLED, **fields: Any) -> list[Line]:
    return [Line(code, text, None, **fields), REDRIVE]


OF_REVIEW = {"step_name": "review", "approval_id": "appr_1"}
ENDS = [
    (
        run(status=S.COMPLETED),
        (),
        [Line(Why.COMPLETED, "Every step has ended; the result is there.")],
    ),
    (failed(), (), ended("It failed", Why.FAILED)),
    (
        failed(error="no disk", status_reason=StatusReason(ReasonCode.STEP_FAILED, "pay")),
        (),
        ended("no disk", Why.FAILED, step_name="pay"),
    ),
    (cancelled(None), (), ended("Somebody asked for its end.")),
    (
        cancelled(ReasonCode.CANCEL_REQUESTED, "pay"),
        (),
        ended("Somebody asked for its end.", step_name="pay"),
    ),
    (
        cancelled(ReasonCode.PARENT_CANCELLED),
        (),
        ended("The execution that started it has ended, and took it along."),
    ),
    (
        cancelled(ReasonCode.APPROVAL_TIMEOUT, "review", "appr_1"),
        (),
        ended(
            "Nobody decided approval appr_1 in time; that counts as a rejection.",
            step_name="review",
            approval_id="appr_1",
        ),
    ),
    (REJECTED, (), ended("Approval appr_1 was rejected.", **OF_REVIEW)),
    (REJECTED, (OTHER, SILENT), ended("Approval appr_1 was rejected.", **OF_REVIEW)),
    (
        REJECTED,
        (OTHER, BY_ANN),
        ended("Approval appr_1 was rejected by ann: too much", **OF_REVIEW),
    ),
]


@pytest.mark.parametrize(("ended_run", "approvals", "lines"), ENDS)
def test_an_end_in_words(ended_run, approvals, lines):
    """XP-1, EX-17: why it ended, of which step and approval; then that it can be redriven."""
    assert of(ended_run, ExplanationContext(approvals=approvals)) == lines


# Steps that have begun


def asked(**fields: Any) -> ExplanationContext:
    fields = {"expires_at": SOON, **fields}
    return ExplanationContext(
        approvals=(make.approval("appr_0"), make.approval("appr_1", **fields))
    )


REVIEW = "Step 'a' waits for a decision on approval appr_1"
FATE = f"Without one it counts as rejected at {SAID_SOON}, and the execution is CANCELLED."
ANYBODY = "the workflow's owner, the execution's owner or somebody with EDIT on the workflow"
ASKS = waits(status=StepStatus.AWAITING_APPROVAL, approval_id="appr_1")
YES = (Assent("ann", "acc_1", NOW), Assent("bob", "acc_2", NOW))
TIMED = ExplanationContext(make.definition(make.code_step("a", timeout_ms=5_999)))
IMPORTING = ExplanationContext(make.definition(make.code_step("a", requirements=("tiny==1.0",))))
CHILD = make.execution("exec_7", status=S.PENDING, workflow_name="Inner")
CHILDREN = ExplanationContext(children=(make.execution("exec_6"), CHILD))
BEGUN = {"status": StepStatus.RUNNING, "completed_at": None, "attempts": 1}
ROUNDS = {
    "a": leaving_out(
        make.step_result(**BEGUN, awaits=Awaits.STEPS, rounds=3), items=Unread("exec_1", "a", 0, 9)
    ),
    **{key: make.step_result() for key in ("a.0.b", "a.0.c", "a.1.b", "a.1.in.4.c", "ab.2.c", "b")},
}
MAIL = Notice(
    id="ntc_1",
    kind=NoticeKind.STEP_MAIL,
    channel="mail",
    to="",
    subject="exec_1",
    created_at=NOW,
    due_at=SOON,
    about={"step": "a"},
    attempts=2,
    last_error="greylisted",
)

STEPS = [
    (
        ASKS,
        asked(),
        (
            Why.AWAITING_APPROVAL,
            f"{REVIEW} by {ANYBODY}. {FATE}",
            *(SOON, "a", "appr_1", None, (), 0, 1),
        ),
    ),
    (
        ASKS,
        asked(approvers=("ann", "bob"), required_approvals=2, allow_self_approval=False),
        (
            Why.AWAITING_APPROVAL,
            f"{REVIEW} by ann or bob, but not by who started it; 0 of 2 approvals are there. "
            f"{FATE}",
            *(SOON, "a", "appr_1", None, ("ann", "bob"), 0, 2),
        ),
    ),
    (
        ASKS,
        asked(approvers=("ann",), assurance=Assurance.PASSKEY),
        (
            Why.AWAITING_APPROVAL,
            f"{REVIEW} by ann. {FATE} It is approved with a passkey, by a person at its page.",
            *(SOON, "a", "appr_1", None, ("ann",), 0, 1),
        ),
    ),
    (
        ASKS,
        asked(approvers=("ann",), required_approvals=3, assents=YES),
        (
            Why.AWAITING_APPROVAL,
            f"{REVIEW} by ann; 2 of 3 approvals are there (ann) (bob). {FATE}",
            *(SOON, "a", "appr_1", None, ("ann",), 2, 3),
        ),
    ),
    (ASKS, ExplanationContext(), (Why.AWAITING_APPROVAL, f"{REVIEW}.", None, "a", "appr_1")),
    (
        ASKS,
        asked(status=ApprovalStatus.APPROVED),
        (Why.AWAITING_APPROVAL, f"{REVIEW}.", None, "a", "appr_1"),
    ),
    (
        waits(retry_at=SOON, error="lost", attempts=2),
        ExplanationContext(),
        (
            Why.STEP_RETRYING,
            f"Attempt 2 of step 'a' failed (lost); the next one starts at {SAID_SOON}.",
            SOON,
            "a",
        ),
    ),
    (
        waits(awaits=Awaits.MAIL, until=SOON),
        ExplanationContext(),
        (
            Why.MAIL_WAITING,
            "Step 'a' waits for a mail server to take its mail; its timeout ends it at "
            f"{SAID_SOON}.",
            SOON,
            "a",
        ),
    ),
    (
        waits(awaits=Awaits.MAIL, until=SOON),
        ExplanationContext(mails=(MAIL,)),
        (
            Why.MAIL_WAITING,
            "Attempt 2 to send the mail of step 'a' failed (greylisted); the next one starts at "
            f"{SAID_SOON}.",
            SOON,
            "a",
        ),
    ),
    (
        waits(retry_at=SOON, error="no room", attempts=0, postponed=2),
        ExplanationContext(),
        (
            Why.STEP_POSTPONED,
            f"Step 'a' could not be started: no room. Nothing of it has run; "
            f"the next try is at {SAID_SOON}.",
            SOON,
            "a",
        ),
    ),
    (
        waits(retry_at=SOON, attempts=0),
        ExplanationContext(),
        (
            Why.STEP_RETRYING,
            f"More budget was approved; step 'a' starts at {SAID_SOON}.",
            SOON,
            "a",
        ),
    ),
    (
        waits(),
        TIMED,
        (
            Why.STEP_RUNNING,
            f"Step 'a' is running, attempt 1, since {SAID}; its timeout ends it at {SAID_SOON}.",
            SOON,
            "a",
        ),
    ),
    (
        waits(attempts=2),
        TIMED,
        (Why.STEP_RUNNING, "Step 'a' is running, attempt 2.", None, "a"),
    ),
    (
        waits(postponed=1),
        TIMED,
        (Why.STEP_RUNNING, "Step 'a' is running, attempt 1.", None, "a"),
    ),
    (
        waits(),
        IMPORTING,
        (Why.STEP_RUNNING, "Step 'a' is running, attempt 1.", None, "a"),
    ),
    (
        waits(),
        ExplanationContext(),
        (Why.STEP_RUNNING, "Step 'a' is running, attempt 1.", None, "a"),
    ),
    (
        waits(),
        ExplanationContext(make.definition(ApprovalStep("a"))),
        (Why.STEP_RUNNING, "Step 'a' is running, attempt 1.", None, "a"),
    ),
    (
        waits(awaits=Awaits.TIME, until=SOON),
        ExplanationContext(),
        (Why.STEP_DELAYED, f"Step 'a' waits until {SAID_SOON}.", SOON, "a"),
    ),
    (
        waits(awaits=Awaits.TIME),
        ExplanationContext(),
        (Why.STEP_DELAYED, "Step 'a' waits until its end.", None, "a"),
    ),
    (
        waits(awaits=Awaits.CHILD, child_id="exec_7", until=SOON),
        CHILDREN,
        (
            Why.CHILD_RUNNING,
            "Step 'a' waits for execution exec_7 of 'Inner', which is PENDING; its timeout ends "
            f"it at {SAID_SOON}.",
            SOON,
            "a",
            None,
            "exec_7",
        ),
    ),
    (
        waits(awaits=Awaits.CHILD, child_id="exec_7"),
        ExplanationContext(),
        (Why.CHILD_RUNNING, "Step 'a' waits for the execution that it started.", None, "a"),
    ),
    (
        run(step_results=ROUNDS),
        ExplanationContext(),
        (Why.STEPS_RUNNING, "Loop 'a' has begun 2 of 3 rounds.", None, "a"),
    ),
    (
        waits(awaits=Awaits.STEPS, items=(), rounds=0, until=SOON),
        ExplanationContext(),
        (
            Why.STEPS_RUNNING,
            f"Loop 'a' has begun 0 of 0 rounds; its timeout ends it at {SAID_SOON}.",
            SOON,
            "a",
        ),
    ),
    (
        waits(awaits=Awaits.STEPS, until=SOON),
        ExplanationContext(),
        (Why.STEPS_RUNNING, f"Step 'a' goes on; its timeout ends it at {SAID_SOON}.", SOON, "a"),
    ),
]


@pytest.mark.parametrize(("waiting", "around", "line"), STEPS)
def test_what_a_step_does_or_waits_for_in_words(waiting, around, line):
    """XP-1, XP-2: who or what is waited for, and when that changes by itself."""
    assert of(waiting, around) == [Line(*line)]


def test_a_step_in_a_round_has_the_timeout_of_its_definition():
    """XP-1: whatever its key begins with; one that the definition does not know has none."""
    results = {key: make.step_result(**BEGUN) for key in ("loop.3.a", "gone")}
    first, second = of(run(step_results=results), TIMED)[:2]
    assert (first.until, first.step_name) == (SOON, "loop.3.a")
    assert second == Line(Why.STEP_RUNNING, "Step 'gone' is running, attempt 1.", step_name="gone")


def test_what_holds_steps_and_has_no_timeout_leaves_the_word_to_them():
    """XP-1: of a `parallel` without a timeout its steps say everything."""
    assert of(waits(awaits=Awaits.STEPS)) == []
    assert of(run(step_results={"a": make.step_result()})) == []


@pytest.fixture
def in_tokyo(monkeypatch):
    """The server's own time zone is another one."""
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.usefixtures("in_tokyo")
def test_instants_are_said_in_utc():
    """XP-1: wherever the server stands, to the second that has begun."""
    assert (instant_text(EpochMs(0)), instant_text(EpochMs(999))) == ("1970-01-01 00:00:00Z",) * 2


# Between the steps


def test_what_comes_next_in_words():
    """XP-1: the first step without a result, and that its `when` decides."""
    steps = make.code_step("a", when="{{ x }}"), make.code_step("b"), make.code_step("c")
    around = ExplanationContext(make.definition(*steps), serving=False)
    server = Line(Why.NO_SERVER, "No server is running here; wfcore serve goes on with it.")
    first = Line(Why.NEXT_STEP, "Step 'a' begins first, unless its `when` is false.", step_name="a")
    assert of(make.execution(), around) == [server, DUE, first]
    begun = {"a": make.step_result()}
    moving = Line(Why.MOVING, "A worker has it and is taking it to its next step.")
    second = Line(Why.NEXT_STEP, "Step 'b' comes next.", step_name="b")
    assert of(run(step_results=begun, worker="w"), around) == [server, moving, second]
    assert of(run(step_results=begun), ExplanationContext(around.definition, serving=True)) == [
        second
    ]


STOPPED = "The worker stopped while {} was running; how much of it was done is unknown."
PAY = StatusReason(ReasonCode.INTERRUPTED, "pay")


@pytest.mark.parametrize(
    ("fields", "step", "fate"),
    [
        (
            {"trigger_source": T.MANUAL, "resumes": 1, "status_reason": PAY, "due_at": SOON},
            "pay",
            (
                Why.WILL_RESUME,
                "The service takes it up again by itself: resumption 2 of at most 3.",
                SOON,
            ),
        ),
        (
            {"trigger_source": T.MANUAL, "resumes": 3, "due_at": SOON},
            None,
            (
                Why.WILL_FAIL,
                f"It is not resumed: it was resumed 3 times. It counts as failed at {SAID_SOON}.",
                SOON,
            ),
        ),
        (
            {"trigger_source": T.WORKFLOW, "parent_id": "exec_0", "root_source": T.OPEN_API},
            None,
            (
                Why.WILL_FAIL,
                "It is not resumed: the root of its family was started by open_api, so its caller "
                "must start it again. It counts as failed.",
                None,
            ),
        ),
        (
            {"trigger_source": T.WEBHOOK, "status_reason": PAY},
            "pay",
            (
                Why.WILL_FAIL,
                "It is not resumed: it was started by webhook, so its caller must start it again. "
                "It counts as failed.",
                None,
            ),
        ),
    ],
)
def test_an_interruption_in_words(fields, step, fate):
    """EX-11 to EX-14: what was running, and whether it is resumed, or FAILED and when."""
    what = f"step '{step}'" if step else "a step"
    cure = [REDRIVE] if fate[0] is Why.WILL_FAIL else []
    interrupted = Line(Why.INTERRUPTED, STOPPED.format(what), step_name=step)
    assert of(run(status=S.INTERRUPTED, **fields)) == [interrupted, Line(*fate), *cure]
