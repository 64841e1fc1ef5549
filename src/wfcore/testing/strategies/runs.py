"""Hypothesis strategies for executions, facts about executions, and definitions to run."""

from collections.abc import Mapping
from functools import cache
from typing import Any

from hypothesis import strategies as st

from wfcore.model.execution import (
    Awaits,
    Execution,
    ExecutionStatus,
    PendingFailure,
    ReasonCode,
    RefusedFile,
    StatusReason,
    StepResult,
    StepStatus,
    TriggerSource,
)
from wfcore.model.json import Json
from wfcore.model.workflow import (
    AiStep,
    ApprovalStep,
    Definition,
    GroupSpec,
    OnInterrupt,
    Retry,
    Step,
)
from wfcore.rules.execution import machine as facts
from wfcore.rules.execution.machine import EXECUTION, Fact
from wfcore.testing import builders
from wfcore.testing.builders import NOW
from wfcore.testing.strategies.ai import MODELS, budgets, interruptions, usages
from wfcore.testing.strategies.values import instants, json_values, scalars, texts
from wfcore.time import DurationMs

YES, NO, BOOM = "{{ yes }}", "{{ no }}", "{{ boom }}"
"""The templates that `render` in tests understands: true, false, and a template that fails."""

WORK, REVIEW = "work", "review"
BOTH, SUB, POST = "both", "sub", "post"
_REVIEW = builders.step_result(StepStatus.AWAITING_APPROVAL, approval_id="appr_1")
_SUB = builders.step_result(StepStatus.RUNNING, awaits=Awaits.CHILD, child_id="exec_2")
_POST = builders.step_result(StepStatus.RUNNING, awaits=Awaits.MAIL, until=NOW)
_BOTH = builders.step_result(StepStatus.RUNNING, awaits=Awaits.STEPS)
_LIVELY: Mapping[ExecutionStatus, Mapping[str, StepResult]] = {
    ExecutionStatus.PENDING: {},
    ExecutionStatus.RUNNING: {
        BOTH: _BOTH,
        WORK: builders.step_result(StepStatus.RUNNING),
        REVIEW: _REVIEW,
        SUB: _SUB,
        POST: _POST,
    },
    ExecutionStatus.AWAITING_APPROVAL: {REVIEW: _REVIEW},
    ExecutionStatus.INTERRUPTED: {
        BOTH: _BOTH,
        WORK: builders.step_result(StepStatus.INTERRUPTED),
        REVIEW: _REVIEW,
        SUB: _SUB,
        POST: _POST,
    },
}
"""The results that an execution can have in each state that is not final."""


def executions(status: ExecutionStatus) -> st.SearchStrategy[Execution]:
    """
    Executions in *status*, with step results that are possible in *status*. Raises `TypeError` if
    *status* is no `ExecutionStatus`.
    """
    if not isinstance(status, ExecutionStatus):
        raise TypeError(f"executions takes an ExecutionStatus, not {status!r}")
    return _executions(status)


@cache  # not of the function above, whose types checkers would forget
def _executions(status: ExecutionStatus) -> st.SearchStrategy[Execution]:
    results = _LIVELY.get(status, {WORK: builders.step_result()})
    ended = status in EXECUTION.final
    return st.builds(
        builders.execution,
        status=st.just(status),
        trigger_source=st.sampled_from(TriggerSource),
        step_results=before_it().map(lambda earlier: {**earlier, **results}),
        worker=st.just("worker_1" if status is ExecutionStatus.RUNNING else None),
        completed_at=st.just(NOW if ended else None),
        events=st.integers(1, 50),
        resumes=st.integers(0, 3),
    )


@cache
def before_it() -> st.SearchStrategy[Mapping[str, StepResult]]:
    """The results of earlier steps."""
    ended = st.sampled_from((StepStatus.COMPLETED, StepStatus.SKIPPED, StepStatus.FAILED))
    results = st.builds(builders.step_result, ended, output=scalars())
    return st.dictionaries(st.sampled_from(("one", "two")), results)


def _refused() -> st.SearchStrategy[tuple[RefusedFile, ...]]:
    return st.lists(st.builds(RefusedFile, texts(), texts()), min_size=1, max_size=2).map(tuple)


def pending_failures() -> st.SearchStrategy[PendingFailure]:
    """The failure with which an execution is about to end."""
    reasons = st.builds(StatusReason, st.sampled_from(ReasonCode))
    return st.builds(PendingFailure, texts(), reasons)


def items() -> st.SearchStrategy[Json]:
    """The items of a loop, or None for other steps."""
    return st.none() | st.lists(scalars(), max_size=3)


FACTS: Mapping[type, st.SearchStrategy[Fact]] = {
    facts.Claimed: st.builds(facts.Claimed),
    facts.StepBegun: st.builds(facts.StepBegun, st.just("new")),
    facts.ContainerStarted: st.builds(
        facts.ContainerStarted, st.just("new"), st.none() | instants(NOW), items()
    ),
    facts.DataGiven: st.builds(facts.DataGiven, st.just("new"), json_values()),
    facts.DelayBegun: st.builds(facts.DelayBegun, st.just("new"), instants(NOW)),
    facts.ChildStarted: st.builds(facts.ChildStarted, st.just("new"), st.just("exec_3")),
    facts.ChildCompleted: st.builds(
        facts.ChildCompleted, st.just(SUB), st.just("exec_2"), json_values()
    ),
    facts.ChildFailed: st.builds(facts.ChildFailed, st.just(SUB), st.just("exec_2"), texts()),
    facts.MailQueued: st.builds(facts.MailQueued, st.just("new"), instants(NOW)),
    facts.MailTaken: st.builds(facts.MailTaken, st.just(POST), st.just(1), json_values()),
    facts.MailRefused: st.builds(facts.MailRefused, st.just(POST), st.just(1), texts()),
    facts.StepSkipped: st.builds(facts.StepSkipped, st.just("new"), st.integers(1, 3)),
    facts.StepDone: st.builds(facts.StepDone, st.just(WORK), json_values()),
    facts.UsageRecorded: st.builds(facts.UsageRecorded, st.just(WORK), usages()),
    facts.FilesRefused: st.builds(facts.FilesRefused, st.just(WORK), _refused()),
    facts.StepRetrying: st.builds(facts.StepRetrying, st.just(WORK), texts(), instants(NOW)),
    facts.StepPostponed: st.builds(facts.StepPostponed, st.just(WORK), texts(), instants(NOW)),
    facts.StepFailed: st.builds(
        facts.StepFailed,
        st.sampled_from((BOTH, WORK, SUB, "new")),
        texts(),
        st.booleans(),
        st.integers(0, 2),
    ),
    facts.StepsCancelled: st.builds(
        facts.StepsCancelled, st.sampled_from(((WORK,), (REVIEW, SUB))), texts()
    ),
    facts.Failed: st.builds(
        facts.Failed, texts(), st.sampled_from((None, WORK, "new")), st.booleans()
    ),
    facts.Failing: st.builds(
        facts.Failing, texts(), st.sampled_from((None, WORK, "new")), st.booleans()
    ),
    facts.FailureHandled: st.builds(facts.FailureHandled, pending_failures()),
    facts.WakeAt: st.builds(facts.WakeAt, st.none() | instants(NOW)),
    facts.Suspended: st.builds(facts.Suspended, st.none() | instants(NOW)),
    facts.ApprovalOpened: st.builds(facts.ApprovalOpened, st.just("new"), st.just("appr_2")),
    facts.BudgetReached: st.builds(facts.BudgetReached, st.just("new"), st.just("appr_2")),
    facts.AwaitingApproval: st.builds(
        facts.AwaitingApproval, st.just("appr_1"), st.just(REVIEW), st.none() | instants(NOW)
    ),
    facts.Approved: st.builds(facts.Approved, st.just(REVIEW), st.just("appr_1"), json_values()),
    facts.Revised: st.builds(
        facts.Revised, st.just(REVIEW), st.just("appr_1"), json_values(), st.just(())
    ),
    facts.BudgetExtended: st.builds(facts.BudgetExtended, st.just(REVIEW), st.just("appr_1")),
    facts.Rejected: st.builds(facts.Rejected, st.just(REVIEW), st.just("appr_1"), st.booleans()),
    facts.Finished: st.builds(facts.Finished, json_values()),
    facts.CancelAsked: st.builds(facts.CancelAsked),
    facts.ParentEnded: st.builds(facts.ParentEnded),
    facts.LeaseReturned: st.builds(facts.LeaseReturned),
    facts.WorkerLost: st.builds(facts.WorkerLost, instants(NOW)),
    facts.Resumed: st.builds(facts.Resumed),
    facts.GraceOver: st.builds(facts.GraceOver),
    facts.FailingAfterGrace: st.builds(facts.FailingAfterGrace),
}
"""The facts of each type that fit an execution from `executions`."""


# Sequential definitions


@cache
def retries() -> st.SearchStrategy[Retry]:
    """Retries of up to three attempts."""
    delays = st.integers(1, 100_000).map(DurationMs)
    return st.builds(Retry, st.integers(1, 3), delays, st.sampled_from((1.0, 2.0, 1.5)))


@cache
def conditions() -> st.SearchStrategy[str | None]:
    """Values of a `when`, mostly None."""
    return st.sampled_from((*[None] * 12, YES, YES, NO, BOOM))


@cache
def code_steps(name: str) -> st.SearchStrategy[Step]:
    """Code steps named *name*, with any `retry`."""
    return st.builds(
        builders.code_step,
        st.just(name),
        when=conditions(),
        retry=retries(),
        continue_on_error=st.booleans(),
        on_interrupt=interruptions(),
    )


@cache
def approval_steps(name: str) -> st.SearchStrategy[Step]:
    """Approval steps named *name*, with one group of keyed rows or none."""
    some: tuple[Json, ...] = ([], [{"id": 1, "amount": 7.5}], [{"id": 1}, {"id": "1"}, {"id": 2}])
    rows = st.sampled_from((*some, *some, BOOM))
    group = st.builds(GroupSpec, st.just("rows"), st.just("Rows"), rows, row_key=st.just("id"))
    return st.builds(
        ApprovalStep,
        st.just(name),
        timeout_ms=st.integers(1, 10**9).map(DurationMs),
        groups=st.lists(group, max_size=1).map(tuple),
        when=conditions(),
        continue_on_error=st.booleans(),
    )


@cache
def ai_steps(name: str) -> st.SearchStrategy[Step]:
    """AI steps named *name*, with any `retry`."""
    return st.builds(
        AiStep,
        st.just(name),
        st.sampled_from(MODELS),
        st.just("Say it"),
        when=conditions(),
        retry=retries(),
        continue_on_error=st.booleans(),
        on_interrupt=interruptions(),
    )


@st.composite
def sequences(draw: st.DrawFn) -> Definition:
    """A sequence of one to five steps of any kind, with or without a budget."""
    length = draw(st.integers(1, 5))
    steps = [draw(any_step(f"s{number}")) for number in range(length)]
    return builders.definition(*steps, **draw(outputs()))


@cache
def any_step(name: str) -> st.SearchStrategy[Step]:
    """A step of any kind that contains no other steps."""
    return code_steps(name) | ai_steps(name) | approval_steps(name)


@cache
def outputs() -> st.SearchStrategy[Mapping[str, Any]]:
    """The output of a definition (none, valid, or failing) and its optional budget."""
    values = st.sampled_from((None, None, 7, 7, 7, BOOM))
    return st.tuples(values, st.none() | budgets(), st.sampled_from(OnInterrupt)).map(
        lambda drawn: {
            "has_output": drawn[0] is not None,
            "output": drawn[0],
            "budget": drawn[1],
            "on_interrupt": drawn[2],
        }
    )
