"""Whatever happens to an execution, somebody who wonders is told the truth about it."""

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from tests.wfcore.rules.execution.walker import walks
from wfcore.model.approval import ApprovalStatus, Assent
from wfcore.model.execution import ExecutionStatus as S
from wfcore.model.execution import (
    PendingFailure,
    ReasonCode,
    StatusReason,
    StepStatus,
    TriggerSource,
)
from wfcore.model.explanation import Line, Why
from wfcore.model.review import Stage
from wfcore.model.work import Listen
from wfcore.model.workflow import AiStep, OnInterrupt, Variable
from wfcore.rules.execution.machine import EXECUTION
from wfcore.rules.explain.context import ExplanationContext
from wfcore.rules.explain.explanation import explain, is_due
from wfcore.rules.explain.queue import GroupAhead, Queue
from wfcore.testing import builders
from wfcore.testing.builders import NOW
from wfcore.testing.strategies.runs import executions
from wfcore.time import later

ENDS = {S.COMPLETED: Why.COMPLETED, S.FAILED: Why.FAILED, S.CANCELLED: Why.CANCELLED}


def codes(lines):
    return [line.code for line in lines]


@given(walks())
def test_every_stage_of_every_way_has_an_explanation(walk):
    """XP-1: an end says why, everything else what it waits for; the cause comes first."""
    approvals = tuple(walk.approvals.values())
    for stage in walk.stages:
        run = stage.after
        lines = explain(run, ExplanationContext(walk.definition, approvals), stage.now)
        first = lines[0]
        assert all(line.text for line in lines)
        if run.status in EXECUTION.final:
            assert first.code is ENDS[run.status]
        elif run.status is S.INTERRUPTED:
            assert codes(lines)[:2] in (
                [Why.INTERRUPTED, Why.WILL_RESUME],
                [Why.INTERRUPTED, Why.WILL_FAIL],
            )
        elif run.in_flight:
            assert first.code is Why.STEP_RUNNING
            assert first.step_name in run.in_flight
        elif run.status is S.AWAITING_APPROVAL:
            assert first.code is Why.AWAITING_APPROVAL
            assert first.approval_id in walk.approvals
        else:
            waits = run.due_at is not None and run.due_at > stage.now
            assert waits == (first.code in (Why.STEP_RETRYING, Why.STEP_POSTPONED))
            assert waits or first.code is Why.DUE


@given(walks())
def test_an_instant_that_is_told_lies_ahead_and_is_the_one_on_record(walk):
    """XP-1: of what waits for a time the explanation says which."""
    approvals = tuple(walk.approvals.values())
    for stage in walk.stages:
        if stage.after.due_at is None or stage.after.due_at <= stage.now:
            continue
        lines = explain(stage.after, ExplanationContext(walk.definition, approvals), stage.now)
        assert stage.after.due_at in [line.until for line in lines]


@pytest.mark.parametrize("status", S)
@given(data=st.data())
def test_an_explanation_needs_nothing_but_the_execution(status, data):
    """XP-1: where nothing else is known there is still something true to say."""
    run = data.draw(executions(status))
    assert explain(run, ExplanationContext(), NOW)


def test_the_first_step_that_has_not_begun_comes_next():
    """A pending execution says with which step it begins, a running one which comes then."""
    definition = builders.definition(
        builders.code_step("a"), builders.code_step("b", when="{{ x }}")
    )
    fresh = explain(builders.execution(), ExplanationContext(definition), NOW)[-1]
    assert (fresh.code, fresh.step_name, fresh.text) == (
        Why.NEXT_STEP,
        "a",
        "Step 'a' begins first.",
    )
    run = builders.execution(
        status=S.RUNNING, worker="w", step_results={"a": builders.step_result()}
    )
    assert codes(explain(run, ExplanationContext(definition), NOW)) == [Why.MOVING, Why.NEXT_STEP]
    assert (
        "unless its `when` is false" in explain(run, ExplanationContext(definition), NOW)[-1].text
    )


def test_a_running_step_says_when_its_timeout_ends_it():
    """XP-1: from the first attempt's beginning; of later ones the beginning is not on record."""
    definition = builders.definition(builders.code_step("a", timeout_ms=30_000))
    running = builders.step_result(StepStatus.RUNNING, completed_at=None)
    for attempts, until in ((1, later(NOW, 30_000)), (2, None)):
        result = evolve(running, attempts=attempts)
        run = builders.execution(status=S.RUNNING, worker="w", step_results={"a": result})
        line = explain(run, ExplanationContext(definition), NOW)[0]
        assert (line.code, line.until, line.step_name) == (Why.STEP_RUNNING, until, "a")


@pytest.mark.parametrize(
    ("listen", "said"),
    [
        (None, []),
        (Listen.LOOPBACK, ["Others on its machine may connect to step 'a'."]),
        (Listen.ANY, ["Anybody on the network may connect to step 'a'."]),
    ],
)
def test_a_running_step_says_who_may_connect_to_it(listen, said):
    """XP-1, CS-20: beside what it says of its time."""
    step = builders.code_step("a", network=True, listen=listen)
    running = builders.step_result(StepStatus.RUNNING, completed_at=None)
    run = builders.execution(status=S.RUNNING, worker="w", step_results={"a": running})
    lines = list(explain(run, ExplanationContext(builders.definition(step)), NOW))
    assert [str(line.text) for line in lines if "connect" in line.text] == said


@pytest.mark.parametrize(
    ("step", "state", "said"),
    [
        (
            builders.code_step("a", files=("fetch", "lines")),
            {},
            "Step 'a' reads the files of fetch, lines.",
        ),
        (
            builders.code_step("a"),
            {"cursor": Variable("cursor", has_default=True, default="")},
            "State that step 'a' writes counts once it has completed.",
        ),
        (
            AiStep("a", "m", "p", fallback=("m2", "m3")),
            {},
            "If the model of step 'a' fails, these are asked in turn: m2, m3.",
        ),
    ],
)
def test_a_running_step_says_what_its_data_depends_on(step, state, said):
    """XP-1, FI-1, AI-11: the files that it reads, its state, its other models."""
    running = builders.step_result(StepStatus.RUNNING, completed_at=None)
    run = builders.execution(status=S.RUNNING, worker="w", step_results={"a": running})
    definition = builders.definition(step, state=state)
    lines = list(explain(run, ExplanationContext(definition), NOW))
    assert said in [str(line.text) for line in lines]


def test_without_a_server_nothing_goes_on():
    """XP-1: that comes before everything else, and only for what has not ended."""
    around = ExplanationContext(serving=False)
    assert codes(explain(builders.execution(), around, NOW))[0] is Why.NO_SERVER
    ended = builders.execution(status=S.COMPLETED, due_at=None)
    assert codes(explain(ended, around, NOW)) == [Why.COMPLETED]


def test_a_step_that_must_not_begin_again_is_named():
    """XP-1, EX-25: the definition says so, whoever started the execution."""
    step = builders.code_step("pay", on_interrupt=OnInterrupt.FAIL)
    run = builders.execution(
        status=S.INTERRUPTED,
        trigger_source=TriggerSource.MANUAL,
        step_results={"pay": builders.step_result(StepStatus.INTERRUPTED)},
    )
    _, fate, _ = explain(run, ExplanationContext(builders.definition(step)), NOW)
    assert "step 'pay' says `onInterrupt: fail`" in fate.text


@pytest.mark.parametrize(
    ("source", "resumes", "says"),
    [
        (
            TriggerSource.OPEN_API,
            0,
            "it was started by open_api, so its caller must start it again",
        ),
        (TriggerSource.MANUAL, 3, "it was resumed 3 times"),
    ],
)
def test_an_interruption_says_what_will_become_of_it(source, resumes, says):
    """XP-1, EX-13: not resumed, why not, and from when on it is FAILED."""
    run = builders.execution(
        status=S.INTERRUPTED,
        trigger_source=source,
        resumes=resumes,
        due_at=later(NOW, 300_000),
        status_reason=StatusReason(ReasonCode.INTERRUPTED, "pay"),
    )
    because, fate, cure = explain(run, ExplanationContext(), NOW)
    assert (because.code, because.step_name) == (Why.INTERRUPTED, "pay")
    assert "unknown" in because.text
    assert (fate.code, fate.until) == (Why.WILL_FAIL, later(NOW, 300_000))
    assert says in fate.text
    assert cure.code is Why.CAN_REDRIVE


def held(count, owner="acc_1", worker="w1", **fields):
    return [
        builders.execution(
            f"exec_{owner}_{number}", owner_id=owner, worker=worker, status=S.RUNNING, **fields
        )
        for number in range(count)
    ]


def queued(held, places=8, asker="acc_1"):
    run = builders.execution("exec_mine")
    return explain(run, ExplanationContext(queue=Queue(held, places, asker)), NOW)


def test_whoever_waits_for_a_place_is_told_who_has_them():
    """XP-1, XP-2: its own executions by name, those of others by number."""
    others = held(6, "acc_2", workflow_owner_id="acc_2", workflow_name="Secret plans")
    lines = queued([*held(2), *others])
    assert lines[0].code is Why.PLACES_TAKEN
    assert lines[0].text.startswith("All 8 slots are taken: 2 by executions that you see, 6 by")
    assert [line.execution_id for line in lines[1:]] == ["exec_acc_1_0", "exec_acc_1_1"]
    assert not any("acc_2" in line.text or "Secret plans" in line.text for line in lines)


def test_an_account_that_used_its_share_is_told_so():
    """XP-1: seven of eight places are all that one account gets while others have work."""
    assert queued(held(7))[0].code is Why.ACCOUNT_SHARE_USED
    assert queued(held(6))[0].code is Why.DUE
    assert queued(held(7, "acc_2"))[0].code is Why.DUE


def test_a_second_worker_with_room_takes_it():
    """XP-1: places are taken only when they are with every worker."""
    assert queued([*held(8), *held(1, worker="w2")])[0].code is Why.DUE


@given(st.lists(st.sampled_from(["acc_1", "acc_2", "acc_3"]), max_size=30), st.integers(1, 8))
def test_an_explanation_names_only_what_the_asker_sees(owners, places):
    """XP-2: every execution that a line names belongs to the asker or to its workflow."""
    runs = [
        builders.execution(
            f"exec_{number}",
            owner_id=owner,
            workflow_owner_id=owners[0],
            worker="w1",
            status=S.RUNNING,
        )
        for number, owner in enumerate(owners)
    ]
    seen = {run.id for run in runs if "acc_1" in (run.owner_id, run.workflow_owner_id)}
    named = {line.execution_id for line in queued(runs, places)} - {None}
    assert named <= seen


def test_only_what_a_worker_could_take_is_due():
    """Held, later, waiting and ended ones are in no queue."""
    assert is_due(builders.execution(), NOW)
    assert not is_due(builders.execution(due_at=later(NOW, 1)), NOW)
    assert not is_due(builders.execution(worker="w"), NOW)
    assert not is_due(builders.execution(status=S.INTERRUPTED), NOW)


@pytest.mark.parametrize("field", ["error", "retry", "comment"])
def test_no_line_shows_a_secret(field):
    """XP-2, SC-1: errors and comments are masked like everywhere."""
    secret = {"variables": {"token": "hunter2-hunter2"}, "secrets": ("token",)}
    text = "refused: hunter2-hunter2"
    rejected = StatusReason(ReasonCode.APPROVAL_REJECTED, "review", "appr_1")
    failing = builders.step_result(
        StepStatus.RUNNING, error=text, retry_at=later(NOW, 5), completed_at=None
    )
    run = {
        "error": builders.execution(status=S.FAILED, error=text, **secret),
        "retry": builders.execution(status=S.RUNNING, step_results={"a": failing}, **secret),
        "comment": builders.execution(status=S.CANCELLED, status_reason=rejected, **secret),
    }[field]
    approvals = (builders.approval(status=ApprovalStatus.REJECTED, comment=text, decided_by="ann"),)
    texts = "".join(
        line.text for line in explain(run, ExplanationContext(approvals=approvals), NOW)
    )
    assert "refused" in texts
    assert "hunter2" not in texts


@pytest.mark.parametrize(
    ("code", "says"),
    [
        (ReasonCode.CANCEL_REQUESTED, "Somebody asked for its end"),
        (ReasonCode.APPROVAL_TIMEOUT, "Nobody decided approval appr_1 in time"),
        (ReasonCode.APPROVAL_REJECTED, "Approval appr_1 was rejected by ann: too much"),
        (ReasonCode.PARENT_CANCELLED, "The execution that started it has ended"),
    ],
)
def test_a_cancelled_execution_says_by_what(code, says):
    """XP-1, EX-6, EX-7: each reason in words of its own."""
    run = builders.execution(status=S.CANCELLED, status_reason=StatusReason(code, None, "appr_1"))
    approvals = (
        builders.approval(status=ApprovalStatus.REJECTED, comment="too much", decided_by="ann"),
    )
    assert explain(run, ExplanationContext(approvals=approvals), NOW)[0].text.startswith(says)


def test_an_approval_says_who_may_decide():
    """XP-1, AP-10, AP-33: the approvers of now by name, else those whom the default rule names."""
    waiting = builders.step_result(
        StepStatus.AWAITING_APPROVAL, approval_id="appr_1", completed_at=None
    )
    run = builders.execution(
        status=S.AWAITING_APPROVAL, due_at=None, step_results={"review": waiting}
    )
    named = builders.approval(approvers=("ann@example.org", "acc_7"))
    (line,) = explain(run, ExplanationContext(approvals=(named,)), NOW)
    assert "ann@example.org or acc_7" in line.text
    assert (line.until, line.approval_id, line.step_name) == (
        named.expires_at,
        "appr_1",
        "review",
    )
    (line,) = explain(run, ExplanationContext(approvals=(builders.approval(),)), NOW)
    assert "the workflow's owner" in line.text
    stages = (Stage(("ann@example.org",)), Stage(("bob@example.org",)))
    ann = Assent("ann@example.org", "acc_1", NOW, stage=0)
    staged = evolve(named, stages=stages, required_approvals=2, assents=(ann,))
    (line,) = explain(run, ExplanationContext(approvals=(staged,)), NOW)
    assert line.approvers == ("bob@example.org",)
    assert " by bob@example.org; 1 of 2" in line.text


def test_a_quorum_says_how_far_it_is():
    """XP-1, AP-15, AP-18: how many have approved, who, and that the starter may not."""
    waiting = builders.step_result(StepStatus.AWAITING_APPROVAL, approval_id="appr_1")
    run = builders.execution(
        status=S.AWAITING_APPROVAL, due_at=None, step_results={"review": waiting}
    )
    ann = Assent("ann@example.org", "acc_1", NOW)
    asked = builders.approval(required_approvals=2, assents=(ann,), allow_self_approval=False)
    (line,) = explain(run, ExplanationContext(approvals=(asked,)), NOW)
    assert "but not by who started it; 1 of 2 approvals are there (ann@example.org)." in line.text
    (line,) = explain(run, ExplanationContext(approvals=(builders.approval(),)), NOW)
    assert "approvals are there" not in line.text


def test_a_group_names_only_the_holders_that_the_asker_sees():
    """XP-2: whoever waits for a limit learns of others no more than their number."""
    waiting = builders.execution("exec_mine", fence=0)
    holders = [
        builders.execution(
            f"exec_{owner}", owner_id=owner, workflow_owner_id="acc_9", status=S.AWAITING_APPROVAL
        )
        for owner in ("acc_1", "acc_2")
    ]
    ahead = GroupAhead(2, 2, holders, asker="acc_1")
    lines = explain(waiting, ExplanationContext(group=ahead), NOW)
    assert "2 have not ended" in lines[0].text
    assert [line.execution_id for line in lines] == [None, "exec_acc_1"]
    everything = explain(waiting, ExplanationContext(group=GroupAhead(2, 2, holders)), NOW)
    assert [line.execution_id for line in everything] == [None, "exec_acc_1", "exec_acc_2"]


def test_what_is_going_to_fail_says_why_and_what_comes_before():
    """XP-1: the error without secrets, the step that it is of, and the next step of `onFailure`."""
    reason = StatusReason(ReasonCode.STEP_FAILED, "pay")
    run = builders.execution(
        status=S.RUNNING,
        due_at=None,
        worker=None,
        failing=PendingFailure("no hunter22", reason),
        variables={"token": "hunter22"},
        secrets=("token",),
        step_results={"pay": builders.step_result(StepStatus.FAILED)},
    )
    definition = builders.definition(
        builders.code_step("pay"), on_failure=(builders.code_step("tidy"),)
    )
    first, following = explain(run, ExplanationContext(definition), NOW)
    said = "It will fail after its `onFailure` steps: no ***"
    assert first == Line(Why.FAILING, said, step_name="pay")
    assert (following.code, following.step_name) == (Why.NEXT_STEP, "tidy")
