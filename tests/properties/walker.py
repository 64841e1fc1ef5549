"""
Random walks of one execution, from acceptance to its end, as a service would drive it.

A walk draws what the world does: a step ends well or badly or too late, a worker dies, people
decide or stay silent, somebody cancels. After some such moves the world turns kind: whatever
is asked is answered, so every walk must come to an end.
"""

from collections.abc import Mapping, Sequence
from itertools import count

from attrs import define, evolve, field, frozen
from hypothesis import strategies as st

from wfcore.effects import OpenApproval, Outcome, StartStep
from wfcore.errors import TemplateFailed
from wfcore.instants import EpochMs, later
from wfcore.model.approval import Approval, DecisionSource, Purpose
from wfcore.model.execution import Execution, ExecutionStatus, TriggerSource
from wfcore.model.json import Json
from wfcore.model.usage import Usage
from wfcore.model.workflow import AiStep, CodeStep, Definition
from wfcore.rules import execution_machine as facts
from wfcore.rules.approval import (
    BY_END,
    BY_TIMEOUT,
    Approve,
    Decision,
    Expire,
    Reject,
    Voice,
    Withdraw,
    decide,
    step_output,
)
from wfcore.rules.execution import advance, loss, may_resume
from wfcore.rules.execution_machine import EXECUTION, Fact
from wfcore.rules.proceed import after_failure, proceed
from wfcore.rules.start import Start, accept
from wfcore.testing import builders
from wfcore.testing.builders import NOW
from wfcore.testing.strategies_runs import BOOM, NO, YES, sequences

GRACE = 300_000
USED = Usage(3_000, 2_000, "100.5")
"""What every call of a model uses."""
CHAOS = 25
PATIENCE = 60
LOSSES = ("claim", "lose_worker", "resume", "approve")
HABITS = ((), ("done", "claim", "approve"), LOSSES, ("fail", "time_out"))
"""What the world prefers to do during one walk, so that long and odd ways both turn up."""


def render(template: Json, names: Mapping[str, Json]) -> Json:
    """Templates of these walks: true, false, one that fails, everything else itself."""
    if template == BOOM:
        raise TemplateFailed(BOOM, "boom")
    return template == YES if template in (YES, NO) else template


@frozen
class Stage:
    """One move: what was done at *now* to *before*, and what came out."""

    did: str
    before: Execution
    outcome: Outcome[Execution]
    now: EpochMs

    @property
    def after(self) -> Execution:
        return self.outcome.record

    @property
    def starts(self) -> tuple[StartStep, ...]:
        return tuple(e for e in self.outcome.effects if isinstance(e, StartStep))


@define(repr=False)
class Walk:
    """The whole way of one execution. `approvals`: as they stand at the end."""

    definition: Definition
    run: Execution
    stages: list[Stage]
    now: EpochMs = NOW
    approvals: dict[str, Approval] = field(factory=dict)

    def __repr__(self) -> str:
        """What was done, in order: enough to see why a promise was broken."""
        did = " ".join(stage.did for stage in self.stages)
        return f"<{self.run.trigger_source}: {did} -> {self.run.status}; {self.definition.steps}>"

    def _repr_pretty_(self, printer, cycle: bool) -> None:
        printer.text(repr(self))

    @property
    def events(self):
        return [event for stage in self.stages for event in stage.outcome.events]

    @property
    def starts(self):
        return [start for stage in self.stages for start in stage.starts]

    def moves(self) -> list[str]:
        """What can happen next, the kind ones first."""
        match self.run.status:
            case ExecutionStatus.AWAITING_APPROVAL:
                return ["approve", "reject", "expire"]
            case ExecutionStatus.INTERRUPTED:
                return ["resume", "grace"] if may_resume(self.run) else ["grace"]
            case _ if self.run.in_flight:
                return ["done", "fail", "time_out", "fail_for_good", "lose_worker"]
            case _:
                return ["claim", "claim_and_die"]

    def take(self, did: str) -> None:
        """Make one move and record it."""
        before = self.run
        outcome = getattr(self, f"_{did}")()
        self.run = outcome.record
        for effect in outcome.effects:
            if isinstance(effect, OpenApproval):
                self.approvals[effect.approval.id] = effect.approval
        if self.run.status in EXECUTION.final:
            self._withdraw()
        self.stages.append(Stage(did, before, outcome, self.now))

    def _proceed(self, *first: Fact) -> Outcome[Execution]:
        ids = (f"appr_{number}" for number in count(len(self.approvals) + 1))
        return proceed(self.run, self.definition, self.now, render, lambda: next(ids), *first)

    def _advance(self, fact: Fact) -> Outcome[Execution]:
        return advance(self.run, fact, self.now)

    def _leased(self) -> Execution:
        """What `Store.claim` does: worker and fence, once it is due."""
        self.now = EpochMs(max(self.now, self.run.due_at))
        return evolve(self.run, worker="worker_1", fence=self.run.fence + 1)

    def _claim(self):
        self.run = self._leased()
        return self._proceed(facts.Claimed())

    def _claim_and_die(self):
        self.run = self._leased()
        return self._advance(loss(self.run, self.now, GRACE))

    def _done(self):
        name = self.run.in_flight[0]
        return self._proceed(*self._spent(name), facts.StepDone(name, {"n": 1}))

    def _spent(self, name: str) -> tuple[facts.Spent, ...]:
        """What the attempt in flight used, where it is one that asks a model."""
        asked = isinstance(self.definition.step(name), AiStep)
        return (facts.Spent(name, USED),) if asked else ()

    def _fail(self, permanent: bool = False, timed_out: bool = False):
        name = self.run.in_flight[0]
        step = self.definition.step(name)
        assert isinstance(step, CodeStep | AiStep)
        attempts = self.run.step_results[name].attempts
        failed = after_failure(
            step, attempts, "no", self.now, permanent=permanent, timed_out=timed_out
        )
        return self._proceed(*self._spent(name), failed)

    def _time_out(self):
        return self._fail(timed_out=True)

    def _fail_for_good(self):
        return self._fail(permanent=True)

    def _lose_worker(self):
        return self._advance(loss(self.run, self.now, GRACE))

    def _resume(self):
        return self._advance(facts.Resumed())

    def _grace(self):
        self.now = EpochMs(max(self.now, self.run.due_at))
        return self._advance(facts.GraceOver())

    def _cancel(self):
        return self._advance(facts.CancelAsked())

    def _approve(self):
        approval = self._decide(Approve(), Voice("acc_1", DecisionSource.API))
        output, extends = step_output(approval), approval.purpose is Purpose.BUDGET
        return self._advance(facts.Approved(approval.step_name, approval.id, output, extends))

    def _reject(self):
        approval = self._decide(Reject(), Voice("acc_1", DecisionSource.LINK))
        return self._advance(facts.Rejected(approval.step_name, approval.id))

    def _expire(self):
        self.now = self._waiting().expires_at
        approval = self._decide(Expire(), BY_TIMEOUT)
        return self._advance(facts.Rejected(approval.step_name, approval.id, timed_out=True))

    def _waiting(self) -> Approval:
        results = self.run.step_results.values()
        id = next(r.approval_id for r in results if r.approval_id and not r.completed_at)
        return self.approvals[id]

    def _decide(self, decision: Decision, voice: Voice) -> Approval:
        approval = decide(self._waiting(), decision, voice, self.now).record
        self.approvals[approval.id] = approval
        return approval

    def _withdraw(self) -> None:
        for id, approval in self.approvals.items():
            if approval.status == "PENDING":
                self.approvals[id] = decide(approval, Withdraw(), BY_END, self.now).record


def accepted(definition: Definition, source: TriggerSource, **how) -> Walk:
    """A walk that has not begun."""
    start = Start("acc_1", source, **how)
    outcome = accept(builders.workflow(), definition, start, "exec_1", NOW)
    nothing = builders.execution(events=0)
    return Walk(definition, outcome.record, [Stage("accept", nothing, outcome, NOW)])


def walk_on(draw: st.DrawFn, walk: Walk, habits: Sequence[tuple[str, ...]] = HABITS) -> Walk:
    """Some moves of chaos, then only kind answers until the end or until patience is over."""
    likes = draw(st.sampled_from(habits))
    for _ in range(draw(st.sampled_from((CHAOS, CHAOS, CHAOS, 5, 0)))):
        if walk.run.status in EXECUTION.final:
            return walk
        walk.now = later(walk.now, draw(st.integers(0, 1_000) | st.just(0)))
        if walk.run.status is ExecutionStatus.AWAITING_APPROVAL:
            walk.now = EpochMs(min(walk.now, walk._waiting().expires_at - 1))
        moves = walk.moves()
        likely = [move for move in moves if move in likes] or moves
        walk.take(draw(st.sampled_from((*likely * 20, *moves, "cancel"))))
    for _ in range(PATIENCE):
        if walk.run.status in EXECUTION.final:
            break
        walk.take(walk.moves()[0])
    return walk


@st.composite
def walks(
    draw: st.DrawFn,
    sources: Sequence[TriggerSource] = tuple(TriggerSource),
    habits: Sequence[tuple[str, ...]] = HABITS,
) -> Walk:
    """An execution of a random sequence, whole."""
    walk = accepted(draw(sequences()), draw(st.sampled_from(sources)))
    return walk_on(draw, walk, habits)
