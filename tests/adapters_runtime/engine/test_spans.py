"""Spans are made of what was committed: whatever happens, they are one tree. TR-3."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from attrs import evolve, frozen
from hypothesis import given

from adapters_runtime.engine.journal import ExecutionChange, journalled
from adapters_runtime.engine.spans import Span, spans_of
from tests.wfcore.rules.execution.walker import Walk, walks
from tests.wfcore.usecases.conftest import World, a_world, code, review
from wfcore.model.access import Principal
from wfcore.model.approval import ApprovalStatus, DecisionSource
from wfcore.model.event import EventKind
from wfcore.model.trace import Trace, span_of, span_of_attempt, trace_id_for
from wfcore.model.trigger import Chain
from wfcore.model.workflow import (
    Branch,
    Case,
    ChildStep,
    OnRevise,
    ParallelStep,
    Retry,
    SwitchStep,
    Variable,
    VariableType,
)
from wfcore.ports.runtime import StepEnd
from wfcore.rules.approval.machine import Approve, Choice, Revise
from wfcore.testing.strategies.trees import trees
from wfcore.time import DurationMs
from wfcore.usecases.approvals import approvals, deciding
from wfcore.usecases.approvals.deciding import Decide
from wfcore.usecases.audit.auditing import Origin
from wfcore.usecases.executions import executions, redriving, starting, worker
from wfcore.usecases.upkeep import sweeping

ABOVE = "00f067aa0ba902b7"
TRACE = Trace("4bf92f3577b34da6a3ce929d0e0e4736", ABOVE, sampled=True, recorded=True)


def changes(walk: Walk) -> Iterator[ExecutionChange]:
    """The commits of a walk, in their order."""
    for stage in walk.stages:
        before, after = evolve(stage.before, trace=TRACE), evolve(stage.after, trace=TRACE)
        if after is not before:
            yield ExecutionChange(before, after, stage.outcome.events, 0.0, walk.definition)


@given(walks(definitions=trees()))
def test_the_spans_of_an_execution_are_one_tree(walk: Walk) -> None:
    """
    Each has an id of its own, a parent that is there, and lies within it unless the clock was set
    back; what a process was told to be the parent of its calls is a span, too.
    """
    spans = [span for change in changes(walk) for span in spans_of(change)]
    ids = {one.id: one for one in spans}
    assert len(ids) == len(spans)
    root = ids[span_of(walk.run.id)]
    assert root.parent == ABOVE
    instants = [one.at for one in walk.events]
    for one in spans:
        assert one.began_ns <= one.ended_ns
        holder = root if one is root else ids[one.parent or ""]
        if instants == sorted(instants):
            assert holder.began_ns <= one.began_ns
            assert one.ended_ns <= holder.ended_ns
    postponed = {
        (one.data["step"], one.data["attempt"])
        for one in walk.events
        if one.kind is EventKind.STEP_POSTPONED
    }
    for stage in walk.stages:
        for begun in stage.starts:
            if (begun.step_name, begun.attempt) not in postponed:
                assert span_of_attempt(walk.run.id, begun.step_name, begun.attempt) in ids


@frozen
class Traced:
    """A world, and the spans that were made in it."""

    world: World
    spans: list[Span]

    def named(self, name: str) -> Sequence[Span]:
        return [one for one in self.spans if one.name == name]

    def execution(self, id: str) -> Span:
        (found,) = [one for one in self.spans if one.id == span_of(id)]
        return found


@pytest.fixture(params=[None, "memory:"], ids=["sqlite", "memory"])
async def traced(request: pytest.FixtureRequest, tmp_path: Path) -> object:
    async with a_world(request.param, tmp_path) as made:
        spans: list[Span] = []
        store = journalled(made.services.store, changes=lambda one: spans.extend(spans_of(one)))
        services = evolve(
            made.services,
            store=store,
            tracing=lambda id: Trace(trace_id_for(id), sampled=True, recorded=True),
        )
        yield Traced(evolve(made, services=services), spans)


CANARY = "c4nary-99e1"


async def test_each_attempt_is_a_span_with_its_own_times(traced: Traced) -> None:
    """Each links to the one before; errors are masked and cut. SC-4."""
    world, secret = traced.world, Variable("pin", has_default=True, default=CANARY, secret=True)
    ann = await world.account()
    retry = Retry(3, DurationMs(5))
    flow = await world.workflow(ann, code("one", retry=retry), variables={"pin": secret})
    run_id = await world.start(ann, flow)
    began = world.clock.now()
    lease, jobs = await world.take()
    for number in (1, 2, 3):
        span = span_of_attempt(run_id, "one", number)
        assert jobs[0].environment["TRACEPARENT"] == f"00-{trace_id_for(run_id)}-{span}-01"
        world.clock.advance(7)
        end = StepEnd(error=CANARY + "x" * 900 if number < 3 else None)
        await worker.complete_step(world.services, lease, "one", end)
        world.clock.advance(5)
        lease, jobs = await world.take()
    attempts = traced.named("step one")
    assert [one.ended_ns - one.began_ns for one in attempts] == [7_000_000] * 3
    assert attempts[0].began_ns == began * 1_000_000
    assert [one.error is not None for one in attempts] == [True, True, False]
    assert [len(one.links) for one in attempts] == [0, 1, 1]
    assert CANARY not in str(traced.spans)
    assert max(len(one.error or "") for one in attempts) <= 500


async def test_steps_are_below_the_container_that_holds_them(traced: Traced) -> None:
    """A branch and a case are no spans of their own; what they hold is below their step. TR-3."""
    world = traced.world
    ann = await world.account()
    chosen = SwitchStep("which", (Case("{{ variables.deep }}", (code("deep"),)),))
    both = ParallelStep("both", (Branch("x", (code("flat"),)), Branch("y", (chosen,))))
    deep = {"deep": Variable("deep", VariableType.BOOLEAN, has_default=True, default=True)}
    await world.start(ann, await world.workflow(ann, both, variables=deep))
    lease, jobs = await world.take()
    for job in jobs:
        await world.finish(lease, job.step_name)
    around, inner = traced.named("step both")[0], traced.named("step which")[0]
    parents = {one.name: one.parent for one in traced.spans if one.name.startswith("step ")}
    assert parents["step flat"] == parents["step which"] == around.id
    assert parents["step deep"] == inner.id


async def test_a_start_that_was_postponed_is_no_attempt(traced: Traced) -> None:
    """Nothing of it has run, so there is no span; the attempt has one when it ends. TR-3."""
    world = traced.world
    ann = await world.account()
    run_id = await world.start(ann, await world.workflow(ann, code("one")))
    lease, _ = await world.take()
    await worker.complete_step(world.services, lease, "one", StepEnd(postponed="memory"))
    assert traced.named("step one") == []
    world.clock.advance(600_000)
    lease, _ = await world.take()
    await world.finish(lease, "one")
    assert [one.id for one in traced.named("step one")] == [span_of_attempt(run_id, "one", 1)]


async def test_a_child_is_below_the_step_that_started_it(traced: Traced) -> None:
    """One trace for a family, also where the parent takes the child along into its end."""
    world = traced.world
    ann = await world.account()
    await world.workflow(ann, code("one"), name="child")
    run_id = await world.start(ann, await world.workflow(ann, ChildStep("sub", "child")))
    await world.take()
    await executions.cancel_execution(world.services, ann, run_id)
    whole, step = traced.execution(run_id), traced.named("step sub")[0]
    (child,) = traced.named("workflow child")
    assert (whole.parent, step.parent, child.parent) == (None, whole.id, step.id)
    assert {one.trace.id for one in traced.spans} == {trace_id_for(run_id)}
    assert (child.error, child.attributes["wfcore.execution.status"]) == (None, "CANCELLED")


async def test_each_round_of_an_approval_is_a_span(traced: Traced) -> None:
    """What was put aside has its spans, and what is done again has others. AP-31."""
    world = traced.world
    ann = await world.account()
    flow = await world.workflow(ann, code("draft"), review(on_revise=OnRevise("draft")))
    run_id = await world.start(ann, flow)
    for decision in (Revise(), Approve()):
        lease, _ = await world.take()
        await world.finish(lease, "draft")
        world.clock.advance(60_000)
        await decide(world, ann, run_id, decision)
    await world.take()
    waits = traced.named("step review")
    assert [one.ended_ns - one.began_ns for one in waits] == [60_000_000_000] * 2
    assert len({one.id for one in (*waits, *traced.named("step draft"))}) == 4
    assert traced.execution(run_id).error is None


async def decide(world: World, who: Principal, run_id: str, decision: Choice) -> None:
    """Decide the approval of an execution that is open."""
    found = await approvals.approvals_of(world.services, who, run_id)
    (open,) = [one for one in found if one.status is ApprovalStatus.PENDING]
    asked = Decide(open.id, decision, DecisionSource.API, comment="so")
    await deciding.decide_approval(world.services, who, asked)


async def test_who_comes_after_links_to_who_was_before(traced: Traced) -> None:
    """A chain begins a trace of its own; a redrive joins that of its request. Both link. TR-2."""
    world = traced.world
    ann = await world.account()
    first = await world.workflow(ann, code("a"), name="first")
    await world.workflow(ann, code("b"), name="then", triggers=(Chain("first", 0),))
    cause = await world.start(ann, first)
    lease, _ = await world.take()
    await world.finish(lease, "a")
    (fired,) = await sweeping.sweep(world.services)
    old = fired.execution_id or ""
    lease, _ = await world.take()
    await worker.complete_step(world.services, lease, "b", StepEnd(error="no"))
    above = Trace("5" * 32, ABOVE, sampled=True, recorded=True)
    again = await redriving.redrive(world.services, ann, old, origin=Origin(trace=above))
    lease, _ = await world.take()
    await world.finish(lease, "b")
    chained, redriven = traced.execution(old), traced.execution(again.execution_id)
    assert chained.links == (traced.execution(cause).trace.traceparent(span_of(cause)),)
    assert (chained.parent, chained.trace.id) == (None, trace_id_for(old))
    assert redriven.links == (chained.trace.traceparent(span_of(old)),)
    assert (redriven.parent, redriven.trace.id) == (ABOVE, "5" * 32)


async def test_where_nobody_makes_spans_steps_get_what_the_caller_sent(traced: Traced) -> None:
    """Unchanged, also below a child, with its state; without a caller there is nothing. TR-2."""
    world = traced.world
    ann = await world.account()
    await world.workflow(ann, code("one"), name="child")
    flow = await world.workflow(ann, ChildStep("sub", "child"))
    sent = Trace("6" * 32, ABOVE, sampled=True, state="shop=17")
    await starting.start_execution(world.services, ann, flow, {}, origin=Origin(trace=sent))
    await world.take()
    _, (job,) = await world.take()
    told = {name: value for name, value in job.environment.items() if name.startswith("TRACE")}
    assert told == {"TRACEPARENT": f"00-{'6' * 32}-{ABOVE}-01", "TRACESTATE": "shop=17"}
    assert traced.spans == []
