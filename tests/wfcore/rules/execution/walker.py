"""
Random walks of one execution, from acceptance to its end, as a service would drive it.

A walk draws what the world does: a step ends well or badly or too late, a worker dies, people
decide or stay silent, a child ends, time passes, somebody cancels. After some such moves the
world turns kind: whatever is asked is answered, so every walk must come to an end.
"""

from collections.abc import Mapping, Sequence
from itertools import count
from unittest import mock

from attrs import define, evolve, field, frozen
from hypothesis import strategies as st

from wfcore.effects import (
    CancelChildren,
    OpenApproval,
    Outcome,
    StartChild,
    StartStep,
    WithdrawApprovals,
)
from wfcore.errors import TemplateFailed
from wfcore.model.approval import Approval, ApprovalStatus, DecisionSource, Purpose
from wfcore.model.execution import Execution, ExecutionStatus, TriggerSource, Usage
from wfcore.model.json import Json
from wfcore.model.workflow import AiStep, Definition
from wfcore.rules.approval.machine import (
    BY_END,
    BY_TIMEOUT,
    Approve,
    Decider,
    Decision,
    Expire,
    Reject,
    Withdraw,
    decide,
    step_output,
)
from wfcore.rules.execution import machine as facts
from wfcore.rules.execution import proceed as proceeding
from wfcore.rules.execution.fold import advance
from wfcore.rules.execution.interruption import after_grace, loss, may_resume
from wfcore.rules.execution.machine import EXECUTION, Fact
from wfcore.rules.execution.retry import after_failure, postponement
from wfcore.rules.execution.scope import name_of
from wfcore.rules.execution.start import Start, accept
from wfcore.testing import builders
from wfcore.testing.builders import NOW
from wfcore.testing.strategies.runs import BOOM, NO, YES, sequences
from wfcore.time import EpochMs, later

GRACE = 300_000
USED = Usage(3_000, 2_000, "100.5")
"""What every call of a model uses."""
CHAOS = 25
PATIENCE = 400
LOSSES = ("claim", "lose_worker", "resume", "approve", "child_done")
HABITS = (
    (),
    ("done", "claim", "approve", "child_done"),
    LOSSES,
    ("fail", "time_out"),
    ("postpone", "look", "claim"),
    ("look", "claim"),
)
"""What the world prefers to do during one walk, so that long and odd ways both turn up."""


def render(
    template: Json, names: Mapping[str, Json], limit: int = 0, inserted: object = None
) -> Json:
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
        """The steps that a worker is told to start."""
        return self._effects(StartStep)

    @property
    def children(self) -> tuple[StartChild, ...]:
        return self._effects(StartChild)

    @property
    def opened(self) -> tuple[OpenApproval, ...]:
        return self._effects(OpenApproval)

    def _effects(self, kind):
        return tuple(effect for effect in self.outcome.effects if isinstance(effect, kind))


def first(choices: Sequence):
    """The kind world's choice."""
    return choices[0]


@define(repr=False)
class Walk:
    """
    The whole way of one execution. `approvals`: as they stand at the end; `children`: for each
    execution that it started whether somebody still waits for it; `choose`: which of the steps
    that run, of the open approvals, of the children the next thing happens to; `folds`: every
    single fact, with the execution before and after it.
    """

    definition: Definition
    run: Execution
    stages: list[Stage]
    now: EpochMs = NOW
    approvals: dict[str, Approval] = field(factory=dict)
    children: dict[str, bool] = field(factory=dict)
    choose: object = first
    folds: list[tuple[Execution, Fact, Execution]] = field(factory=list)

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

    @property
    def open(self) -> list[str]:
        """Ids of the approvals that wait for people."""
        pending = ApprovalStatus.PENDING
        return [id for id, approval in self.approvals.items() if approval.status is pending]

    @property
    def born(self) -> list[str]:
        """Ids of the children that have not ended."""
        return [id for id, waited_for in self.children.items() if waited_for]

    def moves(self) -> list[str]:
        """What can happen next, the kind ones first."""
        run, moves = self.run, []
        if run.status is ExecutionStatus.INTERRUPTED:
            moves += ["resume", "grace"] if may_resume(run, self.definition) else ["grace"]
        elif run.in_flight:
            moves += ["done", "fail", "time_out", "fail_for_good", "lose_worker", "postpone"]
            moves += ["look"] if run.due_at is not None else []
        elif run.due_at is not None and run.status is not ExecutionStatus.AWAITING_APPROVAL:
            moves += ["claim", "claim_and_die"]
        if self.born:
            moves += ["child_done", "child_failed"]
        if self.open:
            moves += ["approve", "reject", "expire"]
        if run.status is ExecutionStatus.AWAITING_APPROVAL and run.due_at is not None:
            moves += ["claim", "claim_and_die"]
        return moves

    def take(self, did: str) -> None:
        """Make one move and record it."""
        before = self.run
        outcome = getattr(self, f"_{did}")()
        self.run = outcome.record
        for effect in outcome.effects:
            match effect:
                case OpenApproval(approval):
                    self.approvals[approval.id] = approval
                case StartChild():
                    self.children[effect.child_id] = True
                case CancelChildren(ids):
                    self.children |= dict.fromkeys(ids, False)
                case WithdrawApprovals(ids):
                    self._withdraw(ids)
        self.stages.append(Stage(did, before, outcome, self.now))

    def _proceed(self, *first: Fact) -> Outcome[Execution]:
        ids = count(len(self.approvals) + len(self.children) + 1)

        def new_id(prefix: str) -> str:
            return f"{prefix}_{next(ids)}_{len(self.stages)}"

        with mock.patch.object(proceeding, "advance", self._fold):
            return proceeding.proceed(self.run, self.definition, self.now, render, new_id, *first)

    def _advance(self, fact: Fact) -> Outcome[Execution]:
        return self._fold(self.run, fact, self.now)

    def _fold(self, run: Execution, fact: Fact, now: EpochMs) -> Outcome[Execution]:
        outcome = advance(run, fact, now)
        self.folds.append((run, fact, outcome.record))
        return outcome

    def _leased(self) -> Execution:
        """What `Store.claim` does: worker and fence, once it is due."""
        self.now = EpochMs(max(self.now, self.run.due_at))
        return evolve(self.run, worker="worker_1", fence=self.run.fence + 1, due_at=None)

    def _claim(self):
        self.run = self._leased()
        return self._proceed(facts.Claimed())

    def _claim_and_die(self):
        self.run = self._leased()
        return self._advance(loss(self.run, self.definition, self.now, GRACE))

    def _look(self):
        """The worker that holds it looks again, when it is time to."""
        self.now = EpochMs(max(self.now, self.run.due_at))
        return self._proceed()

    def _done(self):
        key = self.choose(self.run.in_flight)
        return self._proceed(*self._spent(key), facts.StepDone(key, {"of": key}))

    def _spent(self, key: str) -> tuple[facts.UsageRecorded, ...]:
        """What the attempt in flight used, where it is one that asks a model."""
        asked = isinstance(self.definition.step(name_of(key)), AiStep)
        return (facts.UsageRecorded(key, USED),) if asked else ()

    def _postpone(self):
        """The machine could not start it; once in a while, so that walks come to an end."""
        key = self.choose(self.run.in_flight)
        return self._proceed(postponement(self.run, key, "no room", self.now))

    def _fail(self, permanent: bool = False, timed_out: bool = False):
        key = self.choose(self.run.in_flight)
        step = self.definition.step(name_of(key))
        how = {"permanent": permanent, "timed_out": timed_out}
        failed = after_failure(self.run, step, key, "no", self.now, **how)
        return self._proceed(*self._spent(key), failed)

    def _time_out(self):
        return self._fail(timed_out=True)

    def _fail_for_good(self):
        return self._fail(permanent=True)

    def _lose_worker(self):
        return self._advance(loss(self.run, self.definition, self.now, GRACE))

    def _resume(self):
        return self._advance(facts.Resumed())

    def _grace(self):
        self.now = EpochMs(max(self.now, self.run.due_at))
        return self._advance(after_grace(self.run, self.definition))

    def _cancel(self):
        return self._advance(facts.CancelAsked())

    def _child_done(self, error: str | None = None):
        id = self.choose(self.born)
        self.children[id] = False
        results = self.run.step_results.items()
        key = next((key for key, result in results if result.open_child == id), None)
        assert key is not None, f"nobody waits for {id}, and nobody cancelled it"
        if error is None:
            return self._advance(facts.ChildCompleted(key, id, {"of": key}))
        return self._advance(facts.ChildFailed(key, id, error))

    def _child_failed(self):
        return self._child_done("it failed")

    def _approve(self):
        approval = self._decide(Approve(), Decider("acc_1", DecisionSource.API))
        if approval.purpose is Purpose.BUDGET:
            return self._advance(facts.BudgetExtended(approval.step_name, approval.id))
        released = step_output(approval)
        return self._advance(facts.Approved(approval.step_name, approval.id, released))

    def _reject(self):
        approval = self._decide(Reject(), Decider("acc_1", DecisionSource.LINK))
        return self._advance(facts.Rejected(approval.step_name, approval.id))

    def _expire(self):
        self.now = min(self.approvals[id].expires_at for id in self.open)
        approval = self._decide(Expire(), BY_TIMEOUT, in_time=False)
        return self._advance(facts.Rejected(approval.step_name, approval.id, timed_out=True))

    def _decide(self, decision: Decision, decider: Decider, in_time: bool = True) -> Approval:
        """People decide before it expires; the first one to expire does so."""
        ends = {id: self.approvals[id].expires_at for id in self.open}
        id = self.choose(self.open) if in_time else min(ends, key=ends.__getitem__)
        self.now = EpochMs(min(self.now, ends[id] - 1)) if in_time else self.now
        approval = decide(self.approvals[id], decision, decider, self.now).record
        self.approvals[id] = approval
        return approval

    def _withdraw(self, ids: tuple[str, ...]) -> None:
        for id in set(ids) & set(self.open):
            approval = self.approvals[id]
            self.approvals[id] = decide(approval, Withdraw(), BY_END, self.now).record


def accepted(definition: Definition, source: TriggerSource, **how) -> Walk:
    """A walk that has not begun."""
    start = Start(owner_id="acc_1", trigger_source=source, **how)
    outcome = accept(builders.workflow(), definition, start, "exec_1", NOW)
    nothing = builders.execution(events=0)
    return Walk(definition, outcome.record, [Stage("accept", nothing, outcome, NOW)])


def walk_on(draw: st.DrawFn, walk: Walk, habits: Sequence[tuple[str, ...]] = HABITS) -> Walk:
    """Some moves of chaos, then only kind answers until the end or until patience is over."""
    likes = draw(st.sampled_from(habits))
    walk.choose = lambda choices: draw(st.sampled_from(tuple(choices)))
    for _ in range(draw(st.sampled_from((CHAOS, CHAOS, CHAOS, 5, 0)))):
        if walk.run.status in EXECUTION.final:
            return walk
        walk.now = later(walk.now, draw(st.integers(0, 1_000) | st.just(0)))
        moves = walk.moves()
        likely = [move for move in moves if move in likes] or moves
        walk.take(draw(st.sampled_from((*likely * 20, *moves, "cancel"))))
    walk.choose = first
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
    definitions: st.SearchStrategy[Definition] | None = None,
) -> Walk:
    """An execution of a random definition (a sequence, where nothing is said), whole."""
    chosen = sequences() if definitions is None else definitions
    walk = accepted(draw(chosen), draw(st.sampled_from(sources)))
    return walk_on(draw, walk, habits)
