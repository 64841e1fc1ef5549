"""
From one fact to the next point of rest: fold, plan, fold again, until something must be waited for.

The one place where planner and machines meet. The planner says what should happen next and changes
nothing; the machines say what a fact changes and know no definition. `proceed` turns the actions of
the one into facts for the other, in a loop:

    fold the facts that came in
    while the execution is RUNNING:
        plan
        all steps have ended?        fold Finished
        there are actions?           fold the facts of the most urgent kind, and plan again
        otherwise                    fold WakeAt, Suspended or AwaitingApproval, and stop

It comes to an end because every action that does not start a process brings a step closer to its
end, and starting a process is always last. One call is one turn, and a turn that has decided enough
stops in the middle: the execution is due at once, and the next turn continues from what is stored,
as after any other point of rest. EX-33.

Everything that a call decides is stored in one unit of work. So there is no moment between the end
of a step and the beginning of the next one in which a crash could catch the execution, and what is
stored says itself what must happen next: an instant, a lease, or an open approval (EX-19). A worker
that takes over needs no log of what its predecessor meant to do.

The order of actions is deliberate. What ends a step goes first, since a failure may take with it
what would have begun; then containers, which reveal further actions; then what waits for something
other than a process; processes last, all at once. Planning again after each kind costs a walk, and
saves every special case of the form "unless something failed in the same moment".

A process is begun in two halves. `StepBegun` is on record before the worker may start anything; the
effect `StartStep` says which attempt to start, and is acted upon only when the unit has been
committed. A worker that dies in between leaves a begun step behind, never an unrecorded process. Do
not move an effect before its fact, and do not act on one here: this module is pure, and ids for new
records come in as a function.

What one execution may hold is bounded, and so is what one turn decides. Steps that start no process
cost nothing but what the service itself spends on them, so nothing outside slows them down: a loop
of `data` steps would be decided from its first round to its last in one unit of work, while
everybody else waits, and a loop around one large value would hold the value a thousand times. So
there are three bounds: on the number of step results (FL-9), on the sum of what they hold (FL-14),
and on what a worker decides before it gives the execution back (EX-33).

The sum is kept with the execution and grows with each fact (`fold_steps.size_after`): adding up
ten thousand results again for each of them would cost more than the steps.
"""

from collections.abc import Callable

from attrs import define, evolve

from wfcore.effects import Effect, OpenApproval, Outcome, SendMail, StartChild, StartStep
from wfcore.errors import TemplateFailed
from wfcore.model.approval import ApprovalStatus
from wfcore.model.event import Event
from wfcore.model.execution import Execution, ExecutionStatus
from wfcore.model.json import Json
from wfcore.model.workflow import (
    AiStep,
    ApprovalStep,
    ChildStep,
    DataStep,
    Definition,
    DelayStep,
    LoopStep,
    MailStep,
    OnExceeded,
    ParallelStep,
    Step,
    SwitchStep,
    needs_worker,
)
from wfcore.rules.approval.machine import BY_RULE, Approve, decide, step_output
from wfcore.rules.approval.people import People, require_enough
from wfcore.rules.execution import machine as facts
from wfcore.rules.execution.budget import Overrun, allowance, overrun
from wfcore.rules.execution.fold import advance
from wfcore.rules.execution.fold_steps import size_of
from wfcore.rules.execution.machine import Fact
from wfcore.rules.execution.mail import mail_draft
from wfcore.rules.execution.open_approval import (
    FillText,
    as_text,
    ask_for_budget,
    open_approval,
    open_budget_question,
)
from wfcore.rules.execution.plan import (
    Action,
    Begin,
    Break,
    Complete,
    Fail,
    Judge,
    Plan,
    PlanMemory,
    Refuse,
    Render,
    Skip,
    StepAt,
    earliest,
    output_of,
    plan,
    truthy,
)
from wfcore.rules.execution.retry import after_failure, failing_container, failing_through
from wfcore.rules.execution.scope import keys_seen, scope
from wfcore.rules.limits import (
    DATA_RESULT,
    FACTS_AT_ONCE,
    MAX_OUTPUTS,
    MAX_ROUNDS,
    MAX_STEP_RESULTS,
    MAX_STEPS,
    OUTPUTS_AT_ONCE,
    TEXT_RESULT,
)
from wfcore.rules.masking import mask, secret_values
from wfcore.time import DurationMs, EpochMs, later

NewId = Callable[[str], str]
"""A function that makes a new id with the given prefix."""


def proceed(
    run: Execution,
    definition: Definition,
    now: EpochMs,
    render: Render,
    new_id: NewId,
    *first: Fact,
    most: int = FACTS_AT_ONCE,
    people: People | None = None,
) -> Outcome[Execution]:
    """
    Fold *first*, then its immediate consequences, for one turn of about *most* facts. EX-33.

    *people*: the accounts behind names, for approvals that open; None: every name counts. AP-41,
    AP-42.

    Raises `IllegalMove` if *first* is not possible, `UnreadPeople` for names that *people* lacks.
    """
    progress, memory = _Progress(run, definition, now, render, new_id, people), PlanMemory()
    all(map(progress.take, first))  # as long as they are taken
    turn = progress.turn = _Turn(most, progress.run.outputs_size)
    while progress.run.status is ExecutionStatus.RUNNING:
        if progress.has_too_much():
            continue
        if turn.is_over(progress.run):
            progress.pause()
            break
        found = plan(definition, progress.run, now, render, memory)
        if found.done:
            progress.finish()
        elif not progress.execute(found.actions):
            progress.suspend(found)
            break
    return Outcome(progress.run, tuple(progress.events), tuple(progress.effects))


@define
class _Turn:
    """
    The decisions since a worker took the execution up, beyond the facts that the worker brought.

    A turn is over after `most` facts, or once the outputs have grown by `OUTPUTS_AT_ONCE`. EX-33.
    """

    most: int
    began_with: int
    facts: int = 0

    def is_over(self, run: Execution) -> bool:
        """Whether the worker gives *run* back now."""
        return self.facts >= self.most or run.outputs_size - self.began_with > OUTPUTS_AT_ONCE


class _Progress:
    """Applies one fact after another, and collects their events and effects."""

    def __init__(
        self,
        run: Execution,
        definition: Definition,
        now: EpochMs,
        render: Render,
        new_id: NewId,
        people: People | None,
    ) -> None:
        self.run = run
        self.definition = definition
        self.now = now
        self.render = render
        self.new_id = new_id
        self.people = people
        self.turn = _Turn(0, 0)
        self.events: list[Event] = []
        self.effects: list[Effect] = []

    def take(self, fact: Fact) -> bool:
        """
        Apply a fact that may bring an output. Returns False if the output is too large. The
        execution has then failed, and remaining facts must not be applied. FL-14.
        """
        if isinstance(fact, facts.StepDone | facts.DataGiven):
            if fact.size is None:
                fact = evolve(fact, size=size_of(fact.output))
            error = _too_large(self.run, fact.size or 0)
            if error is not None:
                self._end_as_failed(error, fact.step_name)
                return False
        self.apply(fact)
        return True

    def has_too_much(self) -> bool:
        """End the execution if the output of a person or a child is too large. FL-14."""
        if (error := _too_large(self.run)) is None:
            return False
        self._end_as_failed(f"after step '{_last_to_end(self.run)}': {error}")
        return True

    def pause(self) -> None:
        """
        End the turn: the execution is due at once, here or wherever it is claimed next. EX-33.
        """
        self.apply(facts.WakeAt(self.now) if self.run.in_flight else facts.LeaseReturned())

    def apply(self, *found: Fact) -> None:
        for fact in found:
            outcome = advance(self.run, fact, self.now)
            self.run = outcome.record
            self.events += outcome.events
            self.effects += outcome.effects
        self.turn.facts += len(found)

    def execute(self, actions: tuple[Action, ...]) -> bool:
        """
        Execute the most urgent actions. Returns True if a new plan is needed.

        Steps end before other steps begin, and processes begin last, so that no process begins
        beside a step that fails in the same moment.
        """
        ranked = [(self._rank(action), action) for action in actions]
        first = min((rank for rank, _ in ranked), default=_PROCESS)
        failing = self.run.failing
        for rank, action in ranked:
            goes_on = self.run.status is ExecutionStatus.RUNNING and self.run.failing is failing
            if rank != _PROCESS and self.turn.is_over(self.run):
                break
            if rank == first and goes_on:
                self._execute(action)
        return first != _PROCESS or self.run.failing is not failing

    def _rank(self, action: Action) -> int:
        """The urgency of an action: ends first, then containers, then waits, then processes."""
        if not isinstance(action, Begin):
            return 0
        step = action.at.step
        if isinstance(step, ParallelStep | LoopStep | SwitchStep):
            return 1
        waits = not needs_worker(step) or (isinstance(step, AiStep) and self._overrun())
        return 2 if waits else _PROCESS

    def _overrun(self) -> Overrun | None:
        """The reason why the next AI call would exceed the budget; None if it would not. BU-1."""
        return overrun(allowance(self.definition.budget, self.run))

    def _execute(self, action: Action) -> None:
        if isinstance(action, Begin | Skip | Refuse) and self._is_too_much(action):
            return
        match action:
            case Begin(at):
                self._begin(at)
            case Skip(at):
                self.apply(facts.StepSkipped(at.key, at.accounts_for(self.run.step_results)))
            case Refuse(at, error):
                self._refuse(at, error)
            case Complete(at, output):
                steps = at.accounts_for(self.run.step_results)
                self.apply(facts.StepDone(at.key, output, steps=steps))
            case Judge(at, error, late, permanent):
                how = {"timed_out": late, "permanent": permanent}
                self.apply(after_failure(self.run, at.step, at.key, error, self.now, **how))
            case Fail(at, cause):
                self.apply(*failing_container(self.run, at, cause))
            case Break(cause):
                self.apply(*failing_through(self.run, cause, cause.through))
                self._end_as_failed(cause.error, cause.key, cause.timed_out)

    def _begin(self, at: StepAt) -> None:
        key = at.key
        match at.step:
            case ApprovalStep() as step:
                self._ask(at, step)
            case DelayStep(duration_ms=duration):
                self.apply(facts.DelayBegun(key, later(self.now, duration)))
            case ParallelStep(timeout_ms=timeout):
                self.apply(facts.ContainerStarted(key, self._after(timeout)))
            case LoopStep() as step:
                self._enter_loop(at, step)
            case SwitchStep() as step:
                self._enter_switch(at, step)
            case DataStep() as step:
                self._give(at, step)
            case ChildStep() as step:
                self._start_child(at, step)
            case MailStep() as step:
                self._send_mail(at, step)
            case AiStep() if (over := self._overrun()) is not None:
                self._ask_for_budget(at, over)
            case _:
                self.apply(facts.StepBegun(key))
                begun = self.run.step_results[key]
                self.effects.append(StartStep(key, begun.attempts, begun.postponed))

    def _ask_for_budget(self, at: StepAt, over: Overrun) -> None:
        """
        The budget is exceeded: the step fails, or an approval asks for more. BU-1, BU-2, EX-32.
        """
        budget = self.definition.budget
        final = self.run.failing is not None or not over.extendable
        if budget is None or final or budget.on_exceeded is OnExceeded.FAIL:
            self._refuse(at, over.why)
            return
        if (open := open_budget_question(self.run, self.definition)) is not None:
            self.apply(facts.BudgetReached(at.key, open))
            return
        id = self.new_id("appr")
        approval = ask_for_budget(self.run, at.key, over.why, id, self.now)
        self.apply(facts.BudgetReached(at.key, id))
        self.effects.append(OpenApproval(approval))

    def _ask(self, at: StepAt, step: ApprovalStep) -> None:
        id = self.new_id("appr")
        try:
            fill, fill_rows = self._fill(at), self._fill(at, DATA_RESULT)
            who = self.definition.approver_groups, self.people, self._fill_text(at)
            approval = open_approval(self.run, step, at.key, id, self.now, fill, fill_rows, *who)
            if step.auto_approve is not None and fill(step.auto_approve):
                approval = decide(approval, Approve(), BY_RULE, self.now).record
            if self.people is not None and approval.status is ApprovalStatus.PENDING:
                require_enough(approval, self.people)
        except TemplateFailed as failed:
            self._refuse(at, str(failed))
            return
        self.apply(facts.ApprovalOpened(at.key, id))
        attached = keys_seen(self.run, at.prefix, step.attachments)
        self.effects.append(OpenApproval(approval, attached))
        if approval.status is ApprovalStatus.APPROVED:
            self.apply(facts.Approved(at.key, id, step_output(approval)))

    def _enter_loop(self, at: StepAt, step: LoopStep) -> None:
        """Begin the loop, which keeps its present items for all rounds. FL-2."""
        try:
            items = self._fill(at)(step.items)
        except TemplateFailed as failed:
            self._refuse(at, f"items: {failed}")
            return
        if not isinstance(items, list | tuple):
            self._refuse(at, "items: must give a list")
        elif len(items) > MAX_ROUNDS:
            self._refuse(at, f"items: gives {len(items)} items; at most {MAX_ROUNDS}")
        else:
            self.apply(facts.ContainerStarted(at.key, self._after(step.timeout_ms), items))

    def _enter_switch(self, at: StepAt, step: SwitchStep) -> None:
        """Begin the switch, which keeps its present case, whatever changes later. FL-13."""
        fill = self._fill(at)
        for number, case in enumerate(step.cases):
            try:
                holds = truthy(fill(case.when))
            except TemplateFailed as failed:
                self._refuse(at, f"cases[{number}].when: {failed}")
                return
            if holds:
                break
        else:
            number = len(step.cases)
        self.apply(facts.ContainerStarted(at.key, self._after(step.timeout_ms), case=number))

    def _give(self, at: StepAt, step: DataStep) -> None:
        """Complete a data step. Its value is masked as the output of a program is. FL-12, SC-1."""
        try:
            value = self._fill(at)(step.value)
        except TemplateFailed as failed:
            self._refuse(at, f"value: {failed}")
            return
        self.take(facts.DataGiven(at.key, mask(value, secret_values(self.run))))

    def _start_child(self, at: StepAt, step: ChildStep) -> None:
        id, fill = self.new_id("exec"), self._fill(at)
        try:
            inputs = {name: fill(value) for name, value in step.inputs.items()}
        except TemplateFailed as failed:
            self._refuse(at, f"inputs: {failed}")
            return
        self.apply(facts.ChildStarted(at.key, id, self._after(step.timeout_ms)))
        self.effects.append(StartChild(at.key, id, step.workflow, inputs))

    def _send_mail(self, at: StepAt, step: MailStep) -> None:
        try:
            draft = mail_draft(self.run, step, at.prefix, self._fill(at), self._fill_text(at))
        except TemplateFailed as failed:
            self._refuse(at, str(failed))
            return
        self.apply(facts.MailQueued(at.key, later(self.now, step.timeout_ms)))
        self.effects.append(SendMail(at.key, draft))

    def _fill(self, at: StepAt, limit: int = TEXT_RESULT) -> Callable[[Json], Json]:
        """A function that renders with the names visible to that step."""
        names = scope(self.definition, self.run, at.prefix)
        return lambda value: self.render(value, names, limit)

    def _fill_text(self, at: StepAt) -> FillText:
        names = scope(self.definition, self.run, at.prefix)
        return lambda text, inserted: as_text(self.render(text, names, DATA_RESULT, inserted))

    def _refuse(self, at: StepAt, error: str) -> None:
        steps = at.accounts_for(self.run.step_results) if at.step.continue_on_error else 0
        self.apply(facts.StepFailed(at.key, error, steps=steps))

    def _is_too_much(self, action: Begin | Skip | Refuse) -> bool:
        """
        End the execution if it has too many step results, or no room for the step's output,
        whatever the definition tolerates. FL-9, FL-14.
        """
        at = action.at
        error = _too_many(self.run, at.key)
        if error is None and isinstance(action, Begin):
            error = _no_room(self.run, at.step)
        if error is None:
            return False
        self._end_as_failed(error, at.key)
        return True

    def _end_as_failed(
        self, error: str, step_name: str | None = None, timed_out: bool = False
    ) -> None:
        """
        Fail the execution: at once, or once its `onFailure` steps have run. The results of the
        `onFailure` steps report their own failures. EX-10, EX-31.
        """
        if self.run.failing is not None:
            self.apply(facts.FailureHandled(self.run.failing))
        elif self.definition.on_failure:
            self.apply(facts.Failing(error, step_name, timed_out))
        else:
            self.apply(facts.Failed(error, step_name, timed_out))

    def _after(self, timeout: DurationMs | None) -> EpochMs | None:
        return None if timeout is None else later(self.now, timeout)

    def finish(self) -> None:
        """
        Compute the output after the end of every step, unless the execution is going to fail. EX-8,
        EX-31.
        """
        if self.run.failing is not None:
            self.apply(facts.FailureHandled(self.run.failing))
            return
        try:
            output: Json = output_of(self.definition, self.run, self.render)
        except TemplateFailed as failed:
            self._end_as_failed(f"output: {failed}")
            return
        self.apply(facts.Finished(output))

    def suspend(self, found: Plan) -> None:
        """
        Record the events that the execution waits for, when nothing more can be done now. EX-4,
        EX-19.
        """
        if self.run.status is not ExecutionStatus.RUNNING:
            return
        look_at = earliest(found.until, found.deadline)
        if self.run.in_flight:
            if self.run.due_at != look_at:
                self.apply(facts.WakeAt(look_at))
        elif found.until is not None or found.outside:
            self.apply(facts.Suspended(look_at))
        elif found.question is not None:
            key, approval_id = found.question
            self.apply(facts.AwaitingApproval(approval_id, key, look_at))
        else:
            raise AssertionError(f"{self.run.id}: nothing to do and nothing to wait for")


_PROCESS = 3


def _too_many(run: Execution, key: str) -> str | None:
    """
    The reason why the step *key* may not get a result, because there are too many; None if it may.
    FL-9.
    """
    count = len(run.step_results) + len(run.put_aside)
    most = MAX_STEP_RESULTS + (MAX_STEPS if run.failing else 0)
    if count < most or key in run.step_results:
        return None
    return f"the execution has {MAX_STEP_RESULTS} step results; it may not have more"


def _too_large(run: Execution, more: int = 0) -> str | None:
    """
    The reason why the execution may not hold outputs of *more* characters; None if it may. The
    execution's `onFailure` steps have as much room again, so that they can still report the
    failure. FL-14.
    """
    size = run.outputs_size + more
    if size <= _most(run):
        return None
    return (
        f"the outputs of the execution's steps have {size} characters in sum; "
        f"they may have {MAX_OUTPUTS}"
    )


def _no_room(run: Execution, step: Step) -> str | None:
    """
    The reason why *step* does not begin: it has effects, and its output could not be kept. FL-14.
    """
    acts = needs_worker(step) or isinstance(step, ApprovalStep | ChildStep | MailStep)
    if not acts or run.outputs_size < _most(run):
        return None
    return (
        f"the outputs of the execution's steps have {run.outputs_size} characters in sum already; "
        f"they may have {MAX_OUTPUTS}"
    )


def _most(run: Execution) -> int:
    return MAX_OUTPUTS * (2 if run.failing else 1)


def _last_to_end(run: Execution) -> str:
    """The step that ended last."""
    ended = ((one.completed_at or 0, key) for key, one in run.step_results.items())
    return max(enumerate(ended), key=lambda one: (one[1][0], one[0]))[1][1]
