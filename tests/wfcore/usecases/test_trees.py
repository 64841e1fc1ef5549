"""Branches, rounds, delays and approvals in them, on real stores: with every unit of work."""

import asyncio

import pytest

from wfcore.model.access import Principal
from wfcore.model.approval import Approval, ApprovalStatus, DecisionSource
from wfcore.model.execution import Execution, ExecutionStatus, StepStatus, TriggerSource
from wfcore.model.workflow import (
    ApprovalStep,
    Branch,
    CodeStep,
    DelayStep,
    Language,
    LoopStep,
    ParallelStep,
    Step,
)
from wfcore.rules.approval.machine import Approve, Reject
from wfcore.time import HOUR, MINUTE, SECOND
from wfcore.usecases.approvals import approvals, deciding
from wfcore.usecases.approvals.deciding import Decide
from wfcore.usecases.executions import executions, redriving, worker
from wfcore.usecases.upkeep import sweeping
from wfcore.wire.executions import status_view

from .conftest import World, code

S = ExecutionStatus


def both(*branches: tuple[Step, ...], **more: object) -> ParallelStep:
    made = tuple(Branch(f"b{at}", steps) for at, steps in enumerate(branches))
    return ParallelStep("both", made, **more)  # type: ignore[arg-type]


def each(items: object, *steps: Step, **more: object) -> LoopStep:
    return LoopStep("each", items, "item", steps, **more)  # type: ignore[arg-type]


def ask(name: str, **more: object) -> ApprovalStep:
    return ApprovalStep(name, **more)  # type: ignore[arg-type]


async def started(world: World, *steps: Step, **more: object) -> tuple[Principal, str]:
    ann = await world.account()
    return ann, await world.start(ann, await world.workflow(ann, *steps), **more)


async def read(world: World, who: Principal, run_id: str) -> Execution:
    return await executions.read_execution(world.services, who, run_id)


async def open_ones(world: World, who: Principal, run_id: str) -> dict[str, Approval]:
    found = await approvals.approvals_of(world.services, who, run_id)
    return {one.step_name: one for one in found if one.status is ApprovalStatus.PENDING}


async def decide(world: World, who: Principal, approval: Approval, yes: bool = True) -> None:
    asked = Decide(approval.id, Approve() if yes else Reject(), DecisionSource.API)
    await deciding.decide_approval(world.services, who, asked)


async def test_branches_begin_together_and_end_together(world: World) -> None:
    """Branches are handed out at once; what follows begins when the last has ended. FL-1."""
    ann, run_id = await started(world, both((code("a"),), (code("b"), code("c"))), code("last"))
    lease, jobs = await world.take()
    assert [job.step_name for job in jobs] == ["a", "b"]
    assert await world.finish(lease, "a", 1) == ()
    (c,) = await world.finish(lease, "b", 2)
    (last,) = await world.finish(lease, "c", 3)
    assert last.context["steps"]["both"]["output"] == {"b0": 1, "b1": 3}
    assert last.context["steps"]["a"]["output"] == 1
    await world.finish(lease, "last")
    run = await read(world, ann, run_id)
    assert (run.status, run.completed_steps, run.total_steps) == (S.COMPLETED, 5, 5)
    assert c.step_name == "c"


async def test_a_round_knows_its_item_and_its_index(world: World) -> None:
    """By its name in the environment, the context and templates; results by round. FL-2."""
    work = code("work")
    ann, run_id = await started(world, each(["x", {"n": 1}], work, max_parallel=2))
    lease, (first, second) = await world.take()
    assert (first.step_name, second.step_name) == ("each.0.work", "each.1.work")
    assert first.environment["WF_VAR_item"] == "x"
    assert second.environment["WF_VAR_item"] == '{"n":1}'
    assert second.context["item"] == second.context["variables"]["item"] == {"n": 1}
    assert second.context["loop"] == {"index": 1}
    await world.finish(lease, "each.1.work", "second")
    await world.finish(lease, "each.0.work", "first")
    run = await read(world, ann, run_id)
    assert (run.status, run.output) == (S.COMPLETED, ["first", "second"])


async def test_rounds_come_as_others_end(world: World) -> None:
    """With `maxParallel` two rounds are under way, and each end makes room for the next. FL-3."""
    _, _ = await started(world, each([1, 2, 3, 4], code("work"), max_parallel=2))
    lease, jobs = await world.take()
    assert len(jobs) == 2
    (third,) = await world.finish(lease, "each.1.work")
    assert third.step_name == "each.2.work"
    (fourth,) = await world.finish(lease, "each.0.work")
    assert fourth.step_name == "each.3.work"
    assert await world.finish(lease, "each.2.work") == ()


async def test_what_runs_beside_a_failure_is_stopped(world: World) -> None:
    """The end of one step leaves nothing else in flight; a late result changes nothing. FL-4."""
    tolerant = both((code("a"),), (code("b"),), (ask("c"),), continue_on_error=True)
    ann, run_id = await started(world, tolerant, code("after"))
    lease, _ = await world.take()
    (approval,) = (await open_ones(world, ann, run_id)).values()
    work = await worker.complete_step(world.services, lease, "a", world.failed("no"))
    assert [job.step_name for job in work.jobs] == ["after"]
    assert work.in_flight == {"after"}
    run = await read(world, ann, run_id)
    assert run.step_results["b"].status is StepStatus.CANCELLED
    assert run.step_results["both"].error == "Step 'a' failed: no"
    assert (await approvals.read_approval(world.services, ann, approval.id)).status == "CANCELLED"
    assert await world.finish(lease, "b", "late") == (work.jobs[0],)
    assert (await read(world, ann, run_id)).step_results["b"].output is None


async def test_a_delay_goes_on_without_a_worker(world: World) -> None:
    """Nobody holds it meanwhile; it ends at its instant, by whichever worker takes it. FL-5."""
    ann, run_id = await started(world, DelayStep("nap", MINUTE), code("after"))
    await world.take("w1")
    run = await read(world, ann, run_id)
    assert (run.status, run.worker, run.due_at) == (S.RUNNING, None, world.clock.now() + MINUTE)
    world.clock.advance(MINUTE - 1)
    assert not await worker.claim(world.services, "w2", 1)
    world.clock.advance(1)
    _, (job,) = await world.take("w2")
    assert job.step_name == "after"
    assert (await read(world, ann, run_id)).step_results["nap"].duration_ms == MINUTE


async def test_a_delay_beside_a_process_is_looked_at_in_time(world: World) -> None:
    """The worker that holds the execution is told when to look, and goes on then. FL-5."""
    _, _ = await started(world, both((code("a"),), (DelayStep("nap", SECOND), code("b"))))
    (lease,) = await worker.claim(world.services, "w1", 1)
    work = await worker.begin(world.services, lease)
    assert work.due_at == world.clock.now() + SECOND
    held = await worker.heartbeat(world.services, "w1", [lease.execution_id])
    assert held == {lease.execution_id: work.due_at}
    early = await worker.go_on(world.services, lease, {("a", 1)})
    assert (early.jobs, early.due_at) == ((), work.due_at)
    world.clock.advance(SECOND)
    late = await worker.go_on(world.services, lease, {("a", 1)})
    assert [job.step_name for job in late.jobs] == ["b"]
    assert (late.in_flight, late.due_at) == ({"a", "b"}, None)
    again = await worker.go_on(world.services, lease, {("a", 1)})
    assert again == late, "the answer to the look may have got lost: EX-23"


async def test_two_questions_are_open_at_once(world: World) -> None:
    """AWAITING_APPROVAL while both are open, again after the first answer, and then on. EX-4."""
    ann, run_id = await started(world, both((ask("x"),), (ask("y"),)), code("after"))
    await world.take()
    asked = await open_ones(world, ann, run_id)
    assert (set(asked), (await read(world, ann, run_id)).status) == (
        {"x", "y"},
        S.AWAITING_APPROVAL,
    )
    await decide(world, ann, asked["y"])
    assert (await read(world, ann, run_id)).status is S.RUNNING
    assert (await world.take())[1] == ()
    assert (await read(world, ann, run_id)).status is S.AWAITING_APPROVAL
    await decide(world, ann, asked["x"])
    _, (job,) = await world.take()
    assert job.step_name == "after"


async def test_a_decision_while_something_runs_is_for_the_worker(world: World) -> None:
    """RUNNING and held: the decision is stored, the holder is told, and goes on with it. FL-10."""
    ann, run_id = await started(world, both((code("a"),), (ask("x"), code("b"))))
    lease, (a,) = await world.take()
    assert (await read(world, ann, run_id)).status is S.RUNNING
    await decide(world, ann, (await open_ones(world, ann, run_id))["x"])
    run = await read(world, ann, run_id)
    assert (run.status, run.worker, run.due_at) == (S.RUNNING, "w1", world.clock.now())
    assert ("reload", run_id) in world.hints.told
    assert not await worker.claim(world.services, "w2", 1)
    work = await worker.go_on(world.services, lease, {("a", 1)})
    assert ([job.step_name for job in work.jobs], work.due_at) == (["b"], None)
    assert a.step_name == "a"


async def test_a_decision_and_an_end_at_the_same_time_are_both_kept(world: World) -> None:
    """Racing units: whichever is first, the other is done again on top of it. FL-10."""
    ann, run_id = await started(world, both((code("a"),), (ask("x"),)), code("after"))
    lease, _ = await world.take()
    approval = (await open_ones(world, ann, run_id))["x"]
    ends = await asyncio.gather(
        decide(world, ann, approval),
        worker.complete_step(world.services, lease, "a", world.done("a")),
        worker.go_on(world.services, lease),
        return_exceptions=True,
    )
    defects = [end for end in ends if isinstance(end, Exception)]
    assert all(type(end).__name__ == "LeaseLost" for end in defects), defects
    run = await read(world, ann, run_id)
    assert run.step_results["x"].status is run.step_results["a"].status is StepStatus.COMPLETED
    if run.worker is None:
        await world.take("w2")
    assert (await read(world, ann, run_id)).in_flight == ("after",)


async def test_a_no_in_a_branch_ends_everything(world: World) -> None:
    """What runs beside the question is to be stopped, and its worker is told so. EX-6."""
    ann, run_id = await started(world, both((code("a"),), (ask("x"),)))
    await world.take()
    await decide(world, ann, (await open_ones(world, ann, run_id))["x"], yes=False)
    run = await read(world, ann, run_id)
    assert (run.status, run.in_flight) == (S.CANCELLED, ())
    assert ("stop", run_id) in world.hints.told


async def test_an_interrupted_execution_keeps_its_questions(world: World) -> None:
    """The worker died beside an open approval: a yes stays on record, and is used when resumed."""
    ann, run_id = await started(
        world, both((code("a"),), (ask("x"), code("b"))), source=TriggerSource.MANUAL
    )
    await world.take()
    world.clock.advance(MINUTE)
    await sweeping.recover(world.services)
    run = await read(world, ann, run_id)
    assert (run.status, run.step_results["a"].status) == (S.INTERRUPTED, StepStatus.INTERRUPTED)
    await decide(world, ann, (await open_ones(world, ann, run_id))["x"])
    assert (await read(world, ann, run_id)).status is S.INTERRUPTED
    await sweeping.end_graces(world.services)
    _, jobs = await world.take("w2")
    assert [(job.step_name, job.attempt) for job in jobs] == [("a", 2), ("b", 1)]


async def test_nobody_answers_an_interrupted_execution(world: World) -> None:
    """When its grace is over it is FAILED, and the question in a branch is withdrawn. EX-13."""
    ann, run_id = await started(world, both((code("a"),), (ask("x"),)))
    await world.take()
    world.clock.advance(MINUTE)
    await sweeping.sweep(world.services)
    world.clock.advance(5 * MINUTE)
    await sweeping.sweep(world.services)
    run = await read(world, ann, run_id)
    assert run.status is S.FAILED
    assert run.step_results["x"].status is StepStatus.CANCELLED
    assert not await open_ones(world, ann, run_id)


async def test_the_time_of_a_container_ends_its_questions(world: World) -> None:
    """AWAITING_APPROVAL, and due at the timeout: a worker takes it then, and it goes on. FL-7."""
    timed = both((ask("x", timeout_ms=24 * HOUR),), timeout_ms=HOUR, continue_on_error=True)
    ann, run_id = await started(world, timed, code("after"))
    await world.take()
    run = await read(world, ann, run_id)
    assert (run.status, run.due_at) == (S.AWAITING_APPROVAL, world.clock.now() + HOUR)
    world.clock.advance(HOUR)
    _, (job,) = await world.take()
    assert job.step_name == "after"
    run = await read(world, ann, run_id)
    assert run.step_results["both"].error == "ran into its timeout of 3600 s"
    assert not await open_ones(world, ann, run_id)


async def test_an_expiry_beside_a_running_step_ends_the_execution(world: World) -> None:
    """Nobody decided in time: whoever looks finds it CANCELLED, though a step ran. AP-4."""
    ann, run_id = await started(world, both((code("a"),), (ask("x", timeout_ms=SECOND),)))
    await world.take()
    world.clock.advance(SECOND)
    assert (await read(world, ann, run_id)).status is S.CANCELLED


async def test_a_redrive_asks_nobody_twice(world: World) -> None:
    """The question of the interrupted execution is withdrawn with it, at that instant. EX-17."""
    steps = both((ask("ask"),), (code("work"),))
    ann, run_id = await started(world, steps)
    lease, _ = await world.take()
    (asked,) = (await open_ones(world, ann, run_id)).values()
    await worker.hand_back(world.services, lease)
    world.clock.advance(SECOND)
    await redriving.redrive(world.services, ann, run_id)
    assert (await read(world, ann, run_id)).status is S.FAILED
    (withdrawn,) = await approvals.approvals_of(world.services, ann, run_id)
    assert (withdrawn.id, withdrawn.status) == (asked.id, ApprovalStatus.CANCELLED)
    assert withdrawn.history[-1].at == world.clock.now()


async def test_a_redrive_goes_on_inside_a_loop(world: World) -> None:
    """Rounds that had finished are kept, with the items of then; the rest begins. EX-17."""
    ann, run_id = await started(world, each([1, 2, 3], code("work")))
    lease, _ = await world.take()
    await world.finish(lease, "each.0.work", "one")
    await world.finish(lease, "each.1.work", error="broken")
    again = await redriving.redrive(world.services, ann, run_id)
    lease, (job,) = await world.take()
    assert (job.execution_id, job.step_name) == (again.execution_id, "each.1.work")
    await world.finish(lease, "each.1.work", "two")
    await world.finish(lease, "each.2.work", "three")
    run = await executions.read_result(world.services, ann, again.execution_id)
    assert run.output == ["one", "two", "three"]


async def test_a_stopping_worker_begins_nothing_in_another_branch(world: World) -> None:
    """While one step still runs the lease is kept; with its end the rest is another's. EX-15."""
    _, run_id = await started(world, both((code("a"), code("c")), (code("b"),)))
    lease, _ = await world.take("w1")
    done = world.done("x")
    first = await worker.complete_step(world.services, lease, "a", done, go_on=False)
    assert (first.jobs, first.in_flight) == ((), {"b"})
    last = await worker.complete_step(world.services, lease, "b", done, go_on=False)
    assert (last.jobs, last.in_flight) == ((), frozenset())
    lease, (job,) = await world.take("w2")
    assert (lease.execution_id, job.step_name) == (run_id, "c")


async def test_a_command_that_cannot_be_rendered_fails_beside_others(world: World) -> None:
    """What was begun with it in the same unit is stopped before it is ever handed out. FL-4."""
    broken = CodeStep("a", Language.COMMAND, command=("echo", "{{ execution.id.no }}"))
    ann, run_id = await started(world, both((broken,), (code("b"),)))
    _, jobs = await world.take()
    assert jobs == ()
    run = await read(world, ann, run_id)
    assert (run.status, run.step_results["b"].status) == (S.FAILED, StepStatus.CANCELLED)


async def test_the_view_names_what_runs_and_not_what_holds_it(world: World) -> None:
    """`currentStep` is the step inside; progress counts what has ended. EX-22, FL-8."""
    ann, run_id = await started(world, both((code("a"),), (each([1, 2], code("w")),)))
    lease, _ = await world.take()
    view = status_view(await read(world, ann, run_id))
    assert (view.current_step, view.completed_steps, view.total_steps) == ("a", 0, 4)
    await world.finish(lease, "a")
    await world.finish(lease, "each.0.w")
    view = status_view(await read(world, ann, run_id))
    assert (view.current_step, view.completed_steps) == ("each.1.w", 1)
    await world.finish(lease, "each.1.w")
    view = status_view(await read(world, ann, run_id))
    assert (view.current_step, view.completed_steps) == (None, 4)


@pytest.mark.parametrize("count", [1, 40])
async def test_many_ends_at_once_are_all_kept(world: World, count: int) -> None:
    """However many branches end in the same moment, no end and no beginning is lost. EX-3."""
    many = tuple((code(f"s{n}"), code(f"t{n}")) for n in range(count))
    ann, run_id = await started(world, both(*many))
    (lease,) = await worker.claim(world.services, "w1", 1)
    todo = [job.step_name for job in (await worker.begin(world.services, lease)).jobs]
    ran: list[str] = []
    while todo:
        ran += todo
        ends = (worker.complete_step(world.services, lease, name, world.done()) for name in todo)
        works = await asyncio.gather(*ends)
        todo = sorted({job.step_name for work in works for job in work.jobs} - {*ran})
    assert sorted(ran) == sorted(step.name for lane in many for step in lane)
    assert (await read(world, ann, run_id)).status is S.COMPLETED


@pytest.mark.parametrize("beside", [(), (code("a"),), (DelayStep("nap", MINUTE),)])
async def test_a_sweep_is_hinted_at_by_each_approval_that_opens(
    world: World, beside: tuple[Step, ...]
) -> None:
    """Its reminders and its end are deadlines, whatever runs or waits beside it. AP-1."""
    await started(world, both((ask("question"),), beside or (ask("other"),)))
    if any(isinstance(step, CodeStep) for step in beside):
        await world.take()
    assert ("timer", None) in world.hints.told
