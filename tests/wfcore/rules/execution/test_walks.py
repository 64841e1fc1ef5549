"""Whatever the world does to an execution, these promises hold on the whole way."""

from contextlib import suppress

import pytest
from hypothesis import Phase, given, settings

from wfcore.effects import StopSteps, WithdrawApprovals
from wfcore.model.approval import ApprovalStatus, Purpose
from wfcore.model.event import EventKind
from wfcore.model.execution import ExecutionStatus as S
from wfcore.model.execution import ReasonCode, StepStatus, TriggerSource
from wfcore.model.workflow import OnInterrupt
from wfcore.rules.approval.machine import step_output
from wfcore.rules.execution.fold_steps import open_questions
from wfcore.rules.execution.interruption import MAX_RESUMES, may_resume
from wfcore.rules.execution.machine import EXECUTION
from wfcore.rules.execution.scope import name_of
from wfcore.testing.strategies.runs import NO

from .walker import GRACE, LOSSES, Walk, walks

RESUME = OnInterrupt.RESUME
FOREIGN = (TriggerSource.OPEN_API, TriggerSource.WEBHOOK)
ENDED = frozenset({StepStatus.COMPLETED, StepStatus.SKIPPED, StepStatus.FAILED})
TERMINAL = frozenset(EventKind(f"execution.{status.lower()}") for status in EXECUTION.final)


TOLD_BY_OTHERS = (
    EventKind.STEP_LOG,
    EventKind.FAILURE_STARTED,
    EventKind.ARTIFACT_CREATED,
    EventKind.APPROVAL_ASSENTED,
    EventKind.APPROVAL_REMINDER,
    EventKind.NOTICE_FAILED,
    EventKind.APPROVAL_REVISED,
    EventKind.APPROVAL_DELEGATED,
    EventKind.APPROVAL_ESCALATED,
)
"""What no fact of an execution without `onFailure` tells."""


def ended(run):
    """Names of the steps that the planner has done with."""
    return {name for name, result in run.step_results.items() if result.status in ENDED}


@given(walks())
def test_an_execution_whose_questions_are_answered_ends(walk):
    """Retries, resumptions and losses are bounded: the answered execution comes to its end."""
    assert walk.run.status in EXECUTION.final


@given(walks())
def test_events_are_numbered_without_gaps(walk):
    """EX-20: the log counts 1, 2, 3 ... and the record knows its last number."""
    numbers = [event.number for event in walk.events]
    assert numbers == list(range(1, len(numbers) + 1))
    assert walk.run.events == len(numbers)
    for stage in walk.stages:
        assert stage.after.events == stage.before.events + len(stage.outcome.events)


@given(walks())
def test_there_is_one_terminal_event_and_it_is_the_last(walk):
    """EX-9: nothing is told of an execution after its end."""
    kinds = [event.kind for event in walk.events]
    assert [kind for kind in kinds if kind in TERMINAL] == kinds[-1:]


@given(walks())
def test_every_change_of_status_is_told(walk):
    """EX-20: the last `execution.*` event always names the status that the record has."""
    told = None
    for stage in walk.stages:
        for event in stage.outcome.events:
            if event.kind.startswith("execution."):
                told = event.kind
        assert told == f"execution.{stage.after.status.lower()}"


@given(walks())
def test_a_step_starts_at_most_once_per_attempt(walk):
    """
    EX-3: what was begun is never begun again; a further start is a further attempt, or the same
    one where nothing of it had run. EX-27.
    """
    starts = [(start.step_name, start.attempt, start.postponed) for start in walk.starts]
    assert len(set(starts)) == len(starts)
    for name in {name for name, *_ in starts}:
        attempts = sorted({attempt for step, attempt, _ in starts if step == name})
        assert attempts == list(range(1, len(attempts) + 1))


@given(walks())
def test_a_step_is_on_record_as_begun_before_it_starts(walk):
    """EX-3: the record that goes with a start shows the step in flight, and its event."""
    for stage in walk.stages:
        for start in stage.starts:
            begun = stage.after.step_results[start.step_name]
            assert begun.in_flight
            assert begun.attempts == start.attempt
            told = [e.data for e in stage.outcome.events if e.kind is EventKind.STEP_STARTED]
            assert {"step": start.step_name, "attempt": start.attempt} in told


@given(walks())
def test_a_step_starts_only_after_those_before_it(walk):
    """EX-3: a sequence is a sequence."""
    order = [step.name for step in walk.definition.steps]
    for stage in walk.stages:
        for start in stage.starts:
            earlier = order[: order.index(start.step_name)]
            assert set(earlier) <= ended(stage.after)


@given(walks(habits=[("fail", "claim", "approve")]))
def test_no_attempt_starts_before_its_time(walk):
    """DF-9: between two attempts lies the wait that was told."""
    retry_at: dict[str, int] = {}
    for stage in walk.stages:
        for event in stage.outcome.events:
            if event.kind in (EventKind.STEP_RETRYING, EventKind.STEP_POSTPONED):
                retry_at[event.data["step"]] = event.data["retryAt"]
        for start in stage.starts:
            assert retry_at.get(start.step_name, 0) <= stage.now


@given(walks())
def test_what_has_ended_never_changes(walk):
    """EX-3: a completed, skipped or forgiven step keeps its result; progress never drops."""
    for stage in walk.stages[1:]:
        for name in ended(stage.before):
            assert stage.after.step_results[name] == stage.before.step_results[name]


@given(walks())
def test_completed_means_that_nothing_is_left(walk):
    """EX-8: COMPLETED exactly when every step has ended; otherwise there is something to do."""
    every = {step.name for step in walk.definition.steps}
    for stage in walk.stages:
        if stage.after.status is S.COMPLETED:
            assert ended(stage.after) == every
        elif stage.after.status not in EXECUTION.final and stage.after.due_at is None:
            assert ended(stage.after) < every


@given(walks())
def test_a_lease_is_held_exactly_while_something_runs(walk):
    """EX-2: with nothing in flight nobody holds it; whatever is in flight has its worker."""
    for stage in walk.stages:
        assert (stage.after.worker is not None) == bool(stage.after.in_flight)


@given(walks())
def test_the_record_itself_says_what_must_happen_next(walk):
    """EX-19: until the end there is a due instant, a worker, or an open approval on record."""
    for stage in walk.stages:
        run = stage.after
        match run.status:
            case S.AWAITING_APPROVAL:
                assert walk.approvals[waiting_for(run)].expires_at > run.accepted_at
            case S.PENDING | S.RUNNING:
                child = any(one.open_child for one in run.step_results.values())
                assert run.worker is not None or run.due_at is not None or child
            case S.INTERRUPTED:
                grace = stage.now + (0 if may_resume(run, walk.definition) else GRACE)
                waits = stage.before.status is S.INTERRUPTED
                assert run.due_at == (stage.before.due_at if waits else grace)
            case _:
                assert run.due_at is None


def waiting_for(run):
    return next(
        result.approval_id
        for result in run.step_results.values()
        if result.status is StepStatus.AWAITING_APPROVAL
    )


@given(walks())
def test_the_end_leaves_nothing_open(walk):
    """An ended execution has its instant, no worker, no step that runs, no open approval. EX-9."""
    run = walk.run
    assert run.completed_at == walk.stages[-1].now
    assert (run.worker, run.due_at, run.in_flight) == (None, None, ())
    over = {result.status for result in run.step_results.values()}
    assert not over & {StepStatus.RUNNING, StepStatus.AWAITING_APPROVAL}
    assert all(a.status is not ApprovalStatus.PENDING for a in walk.approvals.values())
    assert all(result.completed_at is not None for result in run.step_results.values())
    assert all(stage.after.completed_at is None for stage in walk.stages[:-1])


@given(walks())
def test_the_end_withdraws_approvals_and_stops_steps(walk):
    """EX-7, AP-5: the last outcome asks for both, and stops steps where a worker held it."""
    last = walk.stages[-1]
    withdrawn = [one for one in last.outcome.effects if isinstance(one, WithdrawApprovals)]
    taken_back = {id for one in withdrawn for id in one.approval_ids}
    asked = open_questions(last.before.step_results)
    assert taken_back >= {
        id for id in asked if walk.approvals[id].status is ApprovalStatus.CANCELLED
    }
    if last.before.in_flight and last.did == "cancel":
        assert StopSteps("exec_1") in last.outcome.effects


@given(walks())
def test_each_approval_is_told_once_created_and_once_decided(walk):
    """AP-6: of any sequence of decisions the log tells exactly one for each approval."""
    told: dict[str, list[EventKind]] = {}
    for event in walk.events:
        if event.kind.startswith("approval."):
            told.setdefault(event.data["approvalId"], []).append(event.kind)
    assert told.keys() == walk.approvals.keys()
    for id, approval in walk.approvals.items():
        decided = EventKind(f"approval.{approval.status.lower()}")
        assert told[id] == [EventKind.APPROVAL_CREATED, decided]


@given(walks())
def test_an_approval_pauses_and_its_approval_lets_go_on(walk):
    """EX-4, EX-5: AWAITING_APPROVAL until people decide, then due at once with their rows."""
    for stage in walk.stages[1:]:
        if S.AWAITING_APPROVAL in (stage.after.status, stage.before.status):
            paused = stage.after if stage.after.status is S.AWAITING_APPROVAL else stage.before
            assert walk.approvals[waiting_for(paused)].step_name in paused.step_results
        if stage.did == "approve":
            interrupted = stage.before.status is S.INTERRUPTED
            assert stage.after.status is (S.INTERRUPTED if interrupted else S.RUNNING)
            assert interrupted or stage.after.due_at == stage.now
            (told,) = [e.data for e in stage.outcome.events if e.kind == "approval.approved"]
            approval = walk.approvals[told["approvalId"]]
            result = stage.after.step_results[approval.step_name]
            if approval.purpose is Purpose.BUDGET:
                assert (result.status, result.retry_at) == (StepStatus.RUNNING, stage.now)
                continue
            over = max(stage.now, result.started_at)
            assert (result.status, result.completed_at) == (StepStatus.COMPLETED, over)
            assert result.output == step_output(approval)


@given(walks())
def test_a_step_whose_when_is_false_is_skipped(walk):
    """DF-8: it never starts, has no attempt, and counts as completed."""
    for step in walk.definition.steps:
        result = walk.run.step_results.get(step.name)
        if result is not None and step.when == NO:
            assert (result.status, result.attempts) == (StepStatus.SKIPPED, 0)
            assert step.name not in {start.step_name for start in walk.starts}
        elif result is not None:
            assert result.status is not StepStatus.SKIPPED


@given(walks())
def test_no_step_begins_after_a_rejection(walk):
    """EX-6: rejected or timed out is the end, CANCELLED, with the reason in the record."""
    for stage in walk.stages:
        if stage.did in ("reject", "expire"):
            timed_out = stage.did == "expire"
            code = ReasonCode.APPROVAL_TIMEOUT if timed_out else ReasonCode.APPROVAL_REJECTED
            assert stage is walk.stages[-1]
            assert stage.after.status is S.CANCELLED
            assert stage.after.status_reason.code is code
            assert not stage.starts


@given(walks(sources=FOREIGN, habits=[LOSSES]))
def test_an_interrupted_api_execution_never_runs_again(walk):
    """EX-14: of `open_api` and `webhook` nothing starts after an interruption."""
    interrupted = False
    for stage in walk.stages:
        assert not (interrupted and stage.starts)
        interrupted = interrupted or stage.after.status is S.INTERRUPTED


@given(walks(habits=[LOSSES]))
def test_a_step_that_says_fail_is_not_begun_again(walk):
    """EX-25: whoever started the execution; the step's word wins over the definition's."""
    lost = set()
    for stage in walk.stages:
        begun = {start.step_name for start in stage.starts}
        says = {key: walk.definition.step(name_of(key)).on_interrupt for key in begun & lost}
        assert all((own or walk.definition.on_interrupt) is RESUME for own in says.values())
        if stage.after.status is S.INTERRUPTED and stage.before.in_flight:
            lost = set(stage.before.in_flight)


@given(walks(habits=[LOSSES]))
def test_the_service_resumes_a_few_times_only(walk):
    """EX-12: at most three times, at once or at the end of its grace."""
    left = [stage.after for stage in walk.stages if stage.before.status is S.INTERRUPTED]
    again = sum(run.status is S.RUNNING and run.failing is None for run in left)
    assert again == walk.run.resumes <= MAX_RESUMES


@given(walks())
def test_a_failed_execution_says_what_failed(walk):
    """EX-10, EX-13: FAILED carries an error; nothing else does."""
    assert (walk.run.error is not None) == (walk.run.status is S.FAILED)
    if walk.run.status is S.FAILED:
        assert walk.run.status_reason.code in (
            ReasonCode.STEP_FAILED,
            ReasonCode.TIMEOUT,
            ReasonCode.INTERRUPTED,
        )


@given(walks())
def test_an_output_is_there_only_when_completed(walk):
    """EX-8: the output is null in every other state."""
    assert all(s.after.output is None for s in walk.stages if s.after.status is not S.COMPLETED)


REACHED = {
    **{
        f"ends {status}": lambda w, s=status: w.run.status is s
        for status in sorted(EXECUTION.final)
    },
    **{
        f"tells {kind}": lambda w, k=kind: k in [event.kind for event in w.events]
        for kind in EventKind
        if kind not in TOLD_BY_OTHERS
    },
    **{
        f"does {did}": lambda w, d=did: d in [stage.did for stage in w.stages]
        for did in ("claim_and_die", "time_out", "fail_for_good", "expire", "grace", "cancel")
    },
    "resumes thrice": lambda w: w.run.resumes == MAX_RESUMES,
    "completes after a resumption": lambda w: w.run.resumes and w.run.status is S.COMPLETED,
    "starts a third attempt": lambda w: any(start.attempt == 3 for start in w.starts),
}


class AllMet(Exception):
    """Nothing is left to look for."""


@pytest.fixture(scope="module")
def met() -> set[str]:
    """What is met on the way when walks are drawn until everything was, or patience is over."""
    found: set[str] = set()

    @settings(max_examples=2_000, phases=[Phase.generate], derandomize=True, database=None)
    @given(walks() | walks(sources=[TriggerSource.MANUAL], habits=[LOSSES]))
    def look(walk: Walk) -> None:
        found.update(name for name, meets in REACHED.items() if meets(walk))
        if found == REACHED.keys():
            raise AllMet

    with suppress(AllMet):
        look()
    return found


@pytest.mark.parametrize("name", REACHED)
def test_the_walks_get_around(name: str, met: set[str]):
    """Every ending, every event and every turn is met, so the promises above are tried."""
    assert name in met
