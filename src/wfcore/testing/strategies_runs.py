"""Hypothesis strategies: executions, the facts that move them, sequential definitions."""

from collections.abc import Mapping
from functools import cache

from attrs import evolve
from hypothesis import strategies as st

from wfcore.instants import DurationMs
from wfcore.model.artifact import RefusedFile
from wfcore.model.execution import (
    Execution,
    ExecutionStatus,
    StepResult,
    StepStatus,
    TriggerSource,
)
from wfcore.model.json import Json
from wfcore.model.workflow import AiStep, ApprovalStep, Definition, GroupSpec, Retry, Step
from wfcore.rules import execution_machine as facts
from wfcore.rules.execution_machine import EXECUTION, Fact
from wfcore.testing import builders
from wfcore.testing.builders import NOW
from wfcore.testing.strategies import instants, json_values, scalars, texts
from wfcore.testing.strategies_ai import MODELS, budgets, usages

YES, NO, BOOM = "{{ yes }}", "{{ no }}", "{{ boom }}"
"""Templates as `render` in tests understands them: true, false, and one that fails."""

WORK, REVIEW = "work", "review"
_LIVELY: Mapping[ExecutionStatus, Mapping[str, StepStatus]] = {
    ExecutionStatus.PENDING: {},
    ExecutionStatus.RUNNING: {WORK: StepStatus.RUNNING, REVIEW: StepStatus.AWAITING_APPROVAL},
    ExecutionStatus.AWAITING_APPROVAL: {REVIEW: StepStatus.AWAITING_APPROVAL},
    ExecutionStatus.INTERRUPTED: {WORK: StepStatus.INTERRUPTED},
}


@cache
def executions(status: ExecutionStatus) -> st.SearchStrategy[Execution]:
    """An execution in *status*, with step results that such a one can have."""
    lively = _LIVELY.get(status, {WORK: StepStatus.COMPLETED})
    results = {name: builders.step_result(held) for name, held in lively.items()}
    if REVIEW in results:
        results[REVIEW] = evolve(results[REVIEW], approval_id="appr_1")
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
    """Results of steps that ended before."""
    ended = st.sampled_from((StepStatus.COMPLETED, StepStatus.SKIPPED, StepStatus.FAILED))
    results = st.builds(builders.step_result, ended, output=scalars())
    return st.dictionaries(st.sampled_from(("one", "two")), results)


def _refused() -> st.SearchStrategy[tuple[RefusedFile, ...]]:
    return st.lists(st.builds(RefusedFile, texts(), texts()), min_size=1, max_size=2).map(tuple)


FACTS: Mapping[type, st.SearchStrategy[Fact]] = {
    facts.Claimed: st.builds(facts.Claimed),
    facts.StepBegun: st.builds(facts.StepBegun, st.sampled_from((WORK, "new"))),
    facts.StepSkipped: st.builds(facts.StepSkipped, st.just("new")),
    facts.StepDone: st.builds(facts.StepDone, st.just(WORK), json_values()),
    facts.Spent: st.builds(facts.Spent, st.just(WORK), usages()),
    facts.Refused: st.builds(facts.Refused, st.just(WORK), _refused()),
    facts.StepRetrying: st.builds(facts.StepRetrying, st.just(WORK), texts(), instants(NOW)),
    facts.StepFailed: st.builds(facts.StepFailed, st.sampled_from((WORK, "new")), texts()),
    facts.Broke: st.builds(
        facts.Broke, texts(), st.sampled_from((None, WORK, "new")), st.booleans()
    ),
    facts.Rested: st.builds(facts.Rested, instants(NOW)),
    facts.ApprovalOpened: st.builds(facts.ApprovalOpened, st.just("new"), st.just("appr_2")),
    facts.BudgetReached: st.builds(
        facts.BudgetReached, st.sampled_from((WORK, "new")), st.just("appr_2")
    ),
    facts.Paused: st.builds(facts.Paused, st.just("appr_1"), st.just(REVIEW)),
    facts.Approved: st.builds(
        facts.Approved, st.just(REVIEW), st.just("appr_1"), json_values(), st.booleans()
    ),
    facts.Rejected: st.builds(facts.Rejected, st.just(REVIEW), st.just("appr_1"), st.booleans()),
    facts.Finished: st.builds(facts.Finished, json_values()),
    facts.CancelAsked: st.builds(facts.CancelAsked),
    facts.LeaseReturned: st.builds(facts.LeaseReturned),
    facts.WorkerLost: st.builds(facts.WorkerLost, instants(NOW)),
    facts.Resumed: st.builds(facts.Resumed),
    facts.GraceOver: st.builds(facts.GraceOver),
}
"""Of each type of fact, the ones that fit an execution from `executions`."""


# Sequential definitions


@cache
def retries() -> st.SearchStrategy[Retry]:
    """Up to three attempts."""
    delays = st.integers(0, 100_000).map(DurationMs)
    return st.builds(Retry, st.integers(1, 3), delays, st.sampled_from((1.0, 2.0, 1.5)))


@cache
def conditions() -> st.SearchStrategy[str | None]:
    """No `when`, mostly."""
    return st.sampled_from((*[None] * 12, YES, YES, NO, BOOM))


@cache
def code_steps(name: str) -> st.SearchStrategy[Step]:
    """Code steps of that name, with any `retry`."""
    return st.builds(
        builders.code_step,
        st.just(name),
        when=conditions(),
        retry=retries(),
        continue_on_error=st.booleans(),
    )


@cache
def approval_steps(name: str) -> st.SearchStrategy[Step]:
    """Approval steps of that name, with one group of keyed rows or none."""
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
    """AI steps of that name, with any `retry`."""
    return st.builds(
        AiStep,
        st.just(name),
        st.sampled_from(MODELS),
        st.just("Say it"),
        when=conditions(),
        retry=retries(),
        continue_on_error=st.booleans(),
    )


@st.composite
def sequences(draw: st.DrawFn) -> Definition:
    """A definition of one to five steps of any kind, one after another, with a budget or not."""
    length = draw(st.integers(1, 5))
    steps = [draw(any_step(f"s{number}")) for number in range(length)]
    output = draw(st.sampled_from((None, None, 7, 7, 7, BOOM)))
    budget = draw(st.none() | budgets())
    return builders.definition(*steps, has_output=output is not None, output=output, budget=budget)


@cache
def any_step(name: str) -> st.SearchStrategy[Step]:
    """A step of any kind."""
    return code_steps(name) | ai_steps(name) | approval_steps(name)
