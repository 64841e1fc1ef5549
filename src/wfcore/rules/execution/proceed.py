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
end, and starting a process is always last.

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
"""

from collections.abc import Callable

from wfcore.effects import Effect, OpenApproval, Outcome, StartChild, StartStep
from wfcore.errors import TemplateFailed
from wfcore.model.approval import ApprovalStatus
from wfcore.model.event import Event
from wfcore.model.execution import ENDED, Execution, ExecutionStatus, StepStatus
from wfcore.model.json import Json
from wfcore.model.workflow import (
    AiStep,
    ApprovalStep,
    ChildStep,
    Definition,
    DelayStep,
    LoopStep,
    OnExceeded,
    ParallelStep,
    Step,
    lists_of,
    needs_worker,
    walk,
)
from wfcore.rules.approval.machine import BY_RULE, Approve, decide, step_output
from wfcore.rules.execution import machine as facts
from wfcore.rules.execution.actions import (
    Action,
    Begin,
    Break,
    Complete,
    Fail,
    Failure,
    Judge,
    Node,
    Plan,
    Refuse,
    Skip,
)
from wfcore.rules.execution.budget import Overrun, allowance, overrun
from wfcore.rules.execution.fold import advance
from wfcore.rules.execution.machine import Fact
from wfcore.rules.execution.open_approval import ask_for_budget, open_approval
from wfcore.rules.execution.plan import Render, earliest, output_of, plan, unfinished
from wfcore.rules.execution.retry import after_failure
from wfcore.rules.execution.scope import keys_seen, name_of, scope
from wfcore.rules.limits import DATA_RESULT, MAX_ROUNDS, MAX_STEP_RESULTS, TEXT_RESULT
from wfcore.time import DurationMs, EpochMs, later

NewId = Callable[[str], str]
"""A new id with that prefix."""


def proceed(
    run: Execution,
    definition: Definition,
    now: EpochMs,
    render: Render,
    new_id: NewId,
    *first: Fact,
) -> Outcome[Execution]:
    """
    Fold *first*, then everything that follows from it at once.

    Raises `IllegalMove` if *first* is not possible.
    """
    progress = _Progress(run, definition, now, render, new_id)
    for fact in first:
        progress.apply(fact)
    while progress.run.status is ExecutionStatus.RUNNING:
        found = plan(definition, progress.run, now, render)
        if found.done:
            progress.finish()
        elif not progress.execute(found.actions):
            progress.suspend(found)
            break
    return Outcome(progress.run, tuple(progress.events), tuple(progress.effects))


class _Progress:
    """Applies one fact after another, and collects their events and effects."""

    def __init__(
        self,
        run: Execution,
        definition: Definition,
        now: EpochMs,
        render: Render,
        new_id: NewId,
    ) -> None:
        self.run = run
        self.definition = definition
        self.now = now
        self.render = render
        self.new_id = new_id
        self.events: list[Event] = []
        self.effects: list[Effect] = []

    def apply(self, fact: Fact) -> None:
        outcome = advance(self.run, fact, self.now)
        self.run = outcome.record
        self.events += outcome.events
        self.effects += outcome.effects

    def execute(self, actions: tuple[Action, ...]) -> bool:
        """
        Execute the most urgent actions; True if a new plan is needed.

        Steps end before others begin, and processes begin last, so that no process begins beside a
        step that fails in the same moment.
        """
        ranked = [(self._rank(action), action) for action in actions]
        first = min((rank for rank, _ in ranked), default=_PROCESS)
        for rank, action in ranked:
            if rank == first and self.run.status is ExecutionStatus.RUNNING:
                self._execute(action)
        return first != _PROCESS

    def _rank(self, action: Action) -> int:
        """How urgent an action is: ends first, then containers, then waits, then processes."""
        if not isinstance(action, Begin):
            return 0
        step = action.at.step
        if isinstance(step, ParallelStep | LoopStep):
            return 1
        waits = not needs_worker(step) or (isinstance(step, AiStep) and self._overrun())
        return 2 if waits else _PROCESS

    def _overrun(self) -> Overrun | None:
        """Why the next AI call would exceed the budget. BU-1."""
        return overrun(allowance(self.definition.budget, self.run))

    def _execute(self, action: Action) -> None:
        if isinstance(action, Begin | Skip | Refuse) and self._is_too_much(action.at):
            return
        match action:
            case Begin(at):
                self._begin(at)
            case Skip(at):
                self.apply(facts.StepSkipped(at.key, self._done_with(at)))
            case Refuse(at, error):
                self._refuse(at, error)
            case Complete(at, output):
                self.apply(facts.StepDone(at.key, output, steps=self._done_with(at)))
            case Judge(at, error, late, permanent):
                how = {"timed_out": late, "permanent": permanent}
                self.apply(after_failure(self.run, at.step, at.key, error, self.now, **how))
            case Fail(at, cause):
                self._fail(at, cause)
            case Break(cause):
                self._fail_with(cause, cause.through)
                self.apply(facts.Failed(cause.error, cause.key, cause.timed_out))

    def _begin(self, at: Node) -> None:
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
            case ChildStep() as step:
                self._start_child(at, step)
            case AiStep() if (over := self._overrun()) is not None:
                self._ask_for_budget(at, over)
            case _:
                self.apply(facts.StepBegun(key))
                begun = self.run.step_results[key]
                self.effects.append(StartStep(key, begun.attempts, begun.postponed))

    def _ask_for_budget(self, at: Node, over: Overrun) -> None:
        """The budget is exceeded: the step fails, or an approval asks for more. BU-1, BU-2."""
        budget = self.definition.budget
        if budget is None or not over.extendable or budget.on_exceeded is OnExceeded.FAIL:
            self._refuse(at, over.why)
            return
        if (open := self._open_budget_question()) is not None:
            self.apply(facts.BudgetReached(at.key, open))
            return
        id = self.new_id("appr")
        approval = ask_for_budget(self.run, at.key, over.why, id, self.now)
        self.apply(facts.BudgetReached(at.key, id))
        self.effects.append(OpenApproval(approval))

    def _open_budget_question(self) -> str | None:
        """
        The open approval for more budget, if another step opened one: the budget is the
        execution's. BU-4.
        """
        for key, result in self.run.step_results.items():
            waits = result.status is StepStatus.AWAITING_APPROVAL
            if waits and isinstance(self.definition.step(name_of(key)), AiStep):
                return result.approval_id
        return None

    def _ask(self, at: Node, step: ApprovalStep) -> None:
        id = self.new_id("appr")
        try:
            fill, fill_rows = self._fill(at), self._fill(at, DATA_RESULT)
            people = self.definition.approver_groups
            approval = open_approval(self.run, step, at.key, id, self.now, fill, fill_rows, people)
            if step.auto_approve is not None and fill(step.auto_approve):
                approval = decide(approval, Approve(), BY_RULE, self.now).record
        except TemplateFailed as failed:
            self._refuse(at, str(failed))
            return
        self.apply(facts.ApprovalOpened(at.key, id))
        attached = keys_seen(self.definition, self.run, at.prefix, step.attachments)
        self.effects.append(OpenApproval(approval, attached))
        if approval.status is ApprovalStatus.APPROVED:
            self.apply(facts.Approved(at.key, id, step_output(approval)))

    def _enter_loop(self, at: Node, step: LoopStep) -> None:
        """The loop keeps its items as they are now, for all rounds. FL-2."""
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

    def _start_child(self, at: Node, step: ChildStep) -> None:
        id, fill = self.new_id("exec"), self._fill(at)
        try:
            inputs = {name: fill(value) for name, value in step.inputs.items()}
        except TemplateFailed as failed:
            self._refuse(at, f"inputs: {failed}")
            return
        self.apply(facts.ChildStarted(at.key, id, self._after(step.timeout_ms)))
        self.effects.append(StartChild(at.key, id, step.workflow, inputs))

    def _fill(self, at: Node, limit: int = TEXT_RESULT) -> Callable[[Json], Json]:
        """Render with the names that are visible to that step."""
        names = scope(self.definition, self.run, at.prefix)
        return lambda value: self.render(value, names, limit)

    def _refuse(self, at: Node, error: str) -> None:
        steps = self._done_with(at) if at.step.continue_on_error else 0
        self.apply(facts.StepFailed(at.key, error, steps=steps))

    def _fail(self, at: Node, cause: Failure) -> None:
        """
        The container fails with a step inside it; what still runs in it is stopped. FL-4, FL-7.
        """
        error, steps = cause.error, self._done_with(at)
        failed = {cause.key, *(node.key for node in cause.through)}
        rest = [key for key in unfinished(at, self.run.step_results) if key not in failed]
        if rest:
            self.apply(facts.StepsCancelled(tuple(rest), f"Step '{cause.key}' failed"))
        if cause.key != at.key:
            self._fail_with(cause, cause.through[:-1])
            error = f"Step '{cause.key}' failed: {cause.error}"
        self.apply(facts.StepFailed(at.key, error, cause.timed_out, steps))

    def _fail_with(self, cause: Failure, through: tuple[Node, ...]) -> None:
        """Fail a step for good, and its containers from the inside outwards."""
        if self.run.step_results[cause.key].status is StepStatus.RUNNING:
            self.apply(facts.StepFailed(cause.key, cause.error, cause.timed_out, steps=0))
        error = f"Step '{cause.key}' failed: {cause.error}"
        for node in through:
            self.apply(facts.StepFailed(node.key, error, cause.timed_out, steps=0))

    def _is_too_much(self, at: Node) -> bool:
        """Too many step results end the execution, whatever the definition tolerates. FL-9."""
        results = self.run.step_results
        count = len(results) + len(self.run.put_aside)
        if count < MAX_STEP_RESULTS or at.key in results:
            return False
        error = f"the execution has {MAX_STEP_RESULTS} step results; it may not have more"
        self.apply(facts.Failed(error, at.key))
        return True

    def _done_with(self, at: Node) -> int:
        """
        How many steps its end accounts for: the step, and those inside that were not counted yet.
        """
        if at.prefix:
            return 1
        results = self.run.step_results
        counted = (results[name] for name in _held(at.step) if name in results)
        return _size(at.step) - sum(one.steps for one in counted if one.status in ENDED)

    def _after(self, timeout: DurationMs | None) -> EpochMs | None:
        return None if timeout is None else later(self.now, timeout)

    def finish(self) -> None:
        """Every step has ended: compute the output now. EX-8."""
        try:
            output: Json = output_of(self.definition, self.run, self.render)
        except TemplateFailed as failed:
            self.apply(facts.Failed(f"output: {failed}"))
            return
        self.apply(facts.Finished(output))

    def suspend(self, found: Plan) -> None:
        """Nothing more can be done now: record what the execution waits for. EX-4, EX-19."""
        if self.run.status is not ExecutionStatus.RUNNING:
            return
        look_at = earliest(found.until, found.deadline)
        if self.run.in_flight:
            if self.run.due_at != look_at:
                self.apply(facts.WakeAt(look_at))
        elif found.until is not None or found.children:
            self.apply(facts.Suspended(look_at))
        elif found.question is not None:
            key, approval_id = found.question
            self.apply(facts.AwaitingApproval(approval_id, key, look_at))
        else:
            raise AssertionError(f"{self.run.id}: nothing to do and nothing to wait for")


_PROCESS = 3


def _size(step: Step) -> int:
    """The number of steps in it, itself included."""
    return sum(1 for _ in walk((step,)))


def _held(step: Step) -> tuple[str, ...]:
    """
    Names of the steps inside it that have a result of their own, which steps in loops have not.
    """
    if isinstance(step, LoopStep):
        return ()
    inside = (one for _, steps in lists_of(step) for one in steps)
    return tuple(name for one in inside for name in (one.name, *_held(one)))
