"""
From one fact to the next rest: fold, plan, fold again, until something must be waited for.

The one place where planner and machine meet. Pure; ids for new approvals come as a function
argument. Everything it decides is stored in one unit, so between a step's end and the next
step's beginning there is no state that a crash could catch, and what it leaves says what
must happen next. EX-19.
"""

from collections.abc import Callable

from wfcore.effects import Effect, OpenApproval, Outcome, StartStep
from wfcore.errors import TemplateFailed
from wfcore.instants import DAY, EpochMs, later
from wfcore.model.event import Event
from wfcore.model.execution import Execution, ExecutionStatus
from wfcore.model.workflow import (
    AiStep,
    ApprovalStep,
    Budget,
    CodeStep,
    Definition,
    OnExceeded,
    Retry,
    Step,
)
from wfcore.rules import execution_machine as facts
from wfcore.rules.budget import allowance, overrun
from wfcore.rules.execution import advance
from wfcore.rules.execution_machine import Fact
from wfcore.rules.opening import ask_for_budget, open_approval
from wfcore.rules.plan import Begin, Done, Refuse, Render, Skip, Wait, output_of, plan

MAX_RETRY_WAIT = DAY


class _Journey:
    """Folds facts one after another and keeps what they said and asked for."""

    def __init__(self, run: Execution, now: EpochMs) -> None:
        self.run = run
        self.now = now
        self.events: list[Event] = []
        self.effects: list[Effect] = []

    def feed(self, fact: Fact) -> None:
        outcome = advance(self.run, fact, self.now)
        self.run = outcome.record
        self.events += outcome.events
        self.effects += outcome.effects

    def outcome(self) -> Outcome[Execution]:
        return Outcome(self.run, tuple(self.events), tuple(self.effects))


def proceed(
    run: Execution,
    definition: Definition,
    now: EpochMs,
    render: Render,
    new_id: Callable[[], str],
    *first: Fact,
) -> Outcome[Execution]:
    """
    Fold *first*, then everything that can follow from it right now.

    Raises `IllegalMove` where *first* is not possible.
    """
    journey = _Journey(run, now)
    for fact in first:
        journey.feed(fact)
    while journey.run.status is ExecutionStatus.RUNNING:
        match plan(definition, journey.run, now, render):
            case Begin(step):
                _begin(journey, definition, step, render, new_id)
            case Skip(step):
                journey.feed(facts.StepSkipped(step.name))
            case Refuse(step, error):
                journey.feed(end_badly(step, error))
            case Done():
                journey.feed(_finish(definition, journey.run, render))
            case Wait(until):
                if not journey.run.in_flight:
                    journey.feed(_rest(journey.run, until))
                break
    return journey.outcome()


def _begin(
    journey: _Journey,
    definition: Definition,
    step: Step,
    render: Render,
    new_id: Callable[[], str],
) -> None:
    match step:
        case CodeStep():
            _start(journey, step)
        case AiStep():
            _begin_within(definition.budget, journey, step, new_id)
        case ApprovalStep():
            try:
                approval = open_approval(journey.run, step, new_id(), journey.now, render)
            except TemplateFailed as failed:
                journey.feed(end_badly(step, str(failed)))
                return
            journey.feed(facts.ApprovalOpened(step.name, approval.id))
            journey.effects.append(OpenApproval(approval))
        case _:
            journey.feed(end_badly(step, "this kind of step does not run yet"))


def _start(journey: _Journey, step: CodeStep | AiStep) -> None:
    journey.feed(facts.StepBegun(step.name))
    attempt = journey.run.step_results[step.name].attempts
    journey.effects.append(StartStep(step.name, attempt))


def _begin_within(
    budget: Budget | None, journey: _Journey, step: AiStep, new_id: Callable[[], str]
) -> None:
    """Begin an AI step, unless the budget is spent: then it fails, or people are asked. BU-1."""
    over = overrun(allowance(budget, journey.run))
    if budget is None or over is None:
        _start(journey, step)
    elif over.extendable and budget.on_exceeded is OnExceeded.APPROVE:
        approval = ask_for_budget(journey.run, step.name, over.why, new_id(), journey.now)
        journey.feed(facts.BudgetReached(step.name, approval.id))
        journey.effects.append(OpenApproval(approval))
    else:
        journey.feed(end_badly(step, over.why))


def _finish(definition: Definition, run: Execution, render: Render) -> Fact:
    try:
        return facts.Finished(output_of(definition, run, render))
    except TemplateFailed as failed:
        return facts.Broke(f"output: {failed}")


def _rest(run: Execution, until: EpochMs | None) -> Fact:
    if until is not None:
        return facts.Rested(until)
    for name, result in run.step_results.items():
        if result.approval_id is not None and result.completed_at is None:
            return facts.Paused(result.approval_id, name)
    raise AssertionError(f"{run.id}: nothing to do and nothing to wait for")


def end_badly(step: Step, error: str, timed_out: bool = False) -> Fact:
    """What a step's final failure means: the end, or (`continueOnError`) a way on. EX-10."""
    if step.continue_on_error:
        return facts.StepFailed(step.name, error)
    return facts.Broke(error, step.name, timed_out)


def after_failure(
    step: CodeStep | AiStep,
    attempts: int,
    error: str,
    now: EpochMs,
    *,
    permanent: bool,
    timed_out: bool,
) -> Fact:
    """Another attempt while the step's `retry` has any left, else its final failure. DF-9."""
    if permanent or attempts >= step.retry.attempts:
        return end_badly(step, error, timed_out)
    return facts.StepRetrying(step.name, error, later(now, _wait_ms(step.retry, attempts)))


def _wait_ms(retry: Retry, attempts: int) -> int:
    """`delay * backoff^(n-1)` after the n-th failure, at most a day."""
    try:
        wait = retry.delay_ms * retry.backoff ** (attempts - 1)
    except OverflowError:
        return MAX_RETRY_WAIT if retry.delay_ms else 0
    return int(min(wait, MAX_RETRY_WAIT))
