"""
Bugs to plant: each puts one mistake of the kind that people make into a port or a use case.

A plant gets pytest's monkeypatch and changes things for the length of one test. Those of what
runs stand here, those of what is asked for in `planted_requests`.
"""

from collections.abc import Sequence
from typing import Any

import pytest
from attrs import evolve

from wfcore.errors import LeaseLost
from wfcore.machine import Row
from wfcore.memory import Disk, MemoryStore, writes
from wfcore.memory import store as memory_store
from wfcore.memory.overlay import Overlay
from wfcore.memory.tables import EXECUTIONS
from wfcore.model.execution import Execution, ExecutionStatus, TriggerSource
from wfcore.ports.runtime import StepEnd
from wfcore.ports.store import Slots, Store
from wfcore.ports.system import Clock
from wfcore.rules.execution import children, interruption, machine, proceed
from wfcore.rules.execution.fold import advance
from wfcore.testing.simulator.calls import SimSchedulingPoint
from wfcore.testing.simulator.ports import SimClock
from wfcore.testing.simulator.runner import SimRunner
from wfcore.testing.simulator.worker import SimWorker
from wfcore.testing.simulator.world import World
from wfcore.time import later
from wfcore.usecases import unit_of_work
from wfcore.usecases.executions import starting
from wfcore.usecases.executions import worker as running
from wfcore.usecases.executions.worker import Lease
from wfcore.usecases.services import Services
from wfcore.usecases.unit_of_work import Report
from wfcore.usecases.upkeep import sweeping


def version_unchecked(patch: pytest.MonkeyPatch) -> None:
    """A put stores whatever it is given: updates get lost."""

    def put(self: Overlay, kind: Any, key: Any, record: Any) -> None:
        self.set(kind, key, evolve(record, version=record.version + 1))

    patch.setattr(Overlay, "put", put)


def fence_unchecked(patch: pytest.MonkeyPatch) -> None:
    """A worker writes without asking whether its lease still holds."""

    async def leased(unit: Any, lease: Lease) -> Execution:
        run: Execution | None = await unit.get(Execution, lease.execution_id)
        if run is None or run.status not in (ExecutionStatus.PENDING, ExecutionStatus.RUNNING):
            raise LeaseLost(lease.execution_id)
        return run

    patch.setattr(running, "_leased", leased)


def claim_in_two_steps(patch: pytest.MonkeyPatch) -> None:
    """A claim looks first and takes afterwards; in between others look too."""

    async def claim(
        self: MemoryStore, worker: str, lease_ms: int, slots: Slots, limit: int, **_: object
    ) -> Sequence[Execution]:
        now = self.now()

        def look() -> Sequence[Execution]:
            runs = self.disk.tables[EXECUTIONS.name].values()
            due = [run for run in runs if memory_store.waits(run) and (run.due_at or 0) <= now]
            return due[:limit]

        found = await self._gate("look", worker, look)
        taken = [memory_store._taken(run, worker) for run in found]
        leased = memory_store._leased(taken, now, later(now, lease_ms))
        await self._gate("claim", worker, lambda: self.disk.settle(leased), writes=True)
        return taken

    patch.setattr(MemoryStore, "claim", claim)


def the_rest_is_forgotten(patch: pytest.MonkeyPatch) -> None:
    """A turn that decided enough stops there, and nobody is to go on."""
    patch.setattr(proceed._Progress, "pause", lambda self: self.apply(machine.Suspended(None)))


def requeued_after_death(patch: pytest.MonkeyPatch) -> None:
    """What a dead worker had begun goes back into the queue."""
    patch.setattr(sweeping, "loss", lambda *_: machine.LeaseReturned())


def resumed_for_everybody(patch: pytest.MonkeyPatch) -> None:
    """Recovery resumes interrupted executions, whoever asked for them."""
    patch.setattr(interruption, "RESUMABLE", frozenset(TriggerSource))


def the_child_is_asked(patch: pytest.MonkeyPatch) -> None:
    """Recovery asks what started a child, and not what started the root of its family."""
    by_service = {TriggerSource.WORKFLOW: TriggerSource.MANUAL}

    def asked(run: Execution) -> TriggerSource:
        return by_service.get(run.trigger_source, run.trigger_source)

    patch.setattr(Execution, "root_trigger", property(asked))


def on_interrupt_is_ignored(patch: pytest.MonkeyPatch) -> None:
    """What a definition says of the death of a worker is not looked at."""
    patch.setattr(interruption, "_refused", lambda run, definition: None)


def interrupted_children_are_retried(patch: pytest.MonkeyPatch) -> None:
    """A child that a worker's death ended counts as a failure like any other."""
    patch.setattr(children, "was_interrupted", lambda run: False)


def interruption_counts_as_slowness(patch: pytest.MonkeyPatch) -> None:
    """A child that is interrupted when its step's time is up counts as slow, and is tried again."""

    async def nothing(unit: Any, run: Execution, now: Any) -> list[Any]:
        return []

    patch.setattr(running, "interrupted_too_long", nothing)


def acknowledged_before_durable(patch: pytest.MonkeyPatch) -> None:
    """A commit is answered before it is on the disk: a power cut takes it back."""
    make = Disk.__init__

    def careless(self: Disk, **more: Any) -> None:
        make(self, **{**more, "durable": False})

    patch.setattr(Disk, "__init__", careless)


def begun_is_not_recorded(patch: pytest.MonkeyPatch) -> None:
    """A step starts before its beginning is stored."""
    record = running.begin

    async def begin(services: Services, lease: Lease) -> Any:
        async with services.store.unit() as unit:
            run, definition = await running._held(unit, lease)
            now, claimed = services.store.now(), machine.Claimed()
            outcome = await running._proceed(services, unit, run, definition, now, claimed)
        if outcome.record.in_flight:
            return await running._work(services, lease, definition, outcome)
        return await record(services, lease)

    patch.setattr(running, "begin", begin)


def late_results_count(patch: pytest.MonkeyPatch) -> None:
    """A step that ends after the cancel is recorded all the same."""
    held = running._leased

    async def leased(unit: Any, lease: Lease) -> Execution:
        run: Execution | None = await unit.get(Execution, lease.execution_id)
        if run is not None and run.status is ExecutionStatus.CANCELLED:
            return run
        return await held(unit, lease)

    cancelled, facts = ExecutionStatus.CANCELLED, machine
    ends = (facts.StepDone, facts.StepFailed, facts.StepRetrying, facts.Failed, facts.UsageRecorded)
    rows: Any = machine.EXECUTION._by_pair
    for fact in (*ends, facts.Claimed):
        patch.setitem(rows, (cancelled, fact), Row(cancelled, fact, cancelled, "none"))
    patch.setattr(running, "_leased", leased)
    patch.setattr(running, "_runs", lambda run, step, *which: True)
    patch.setattr(SimWorker, "stop_steps", lambda self, execution_id: None)


def place_is_kept(patch: pytest.MonkeyPatch) -> None:
    """An execution that has ended keeps its worker, and the worker one place less."""
    collect = unit_of_work.stage

    async def keeping(unit: Any, outcome: Any, now: Any) -> Any:
        before = await unit.get(Execution, outcome.record.id)
        if before is not None and outcome.record.completed_at:
            outcome = evolve(outcome, record=evolve(outcome.record, worker=before.worker))
        return await collect(unit, outcome, now)

    patch.setattr(starting, "stage", keeping)


def nobody_polls(patch: pytest.MonkeyPatch) -> None:
    """A worker that nobody wakes never looks: a lost hint is lost work."""
    look = SimWorker._claim_all

    async def claims(self: SimWorker) -> int:
        await look(self)
        return 10**9

    patch.setattr(SimWorker, "_claim_all", claims)


def recovery_is_forgotten(patch: pytest.MonkeyPatch) -> None:
    """Nobody looks for executions whose worker has died."""

    async def recover(services: Services, report: Report) -> int:
        return 0

    patch.setattr(sweeping, "recover", recover)


def heartless(patch: pytest.MonkeyPatch) -> None:
    """Leases are never extended: long steps are taken for lost."""

    async def keep(self: SimWorker) -> None:
        """Do nothing."""

    patch.setattr(SimWorker, "keep_leases", keep)


def recovered_without_looking(patch: pytest.MonkeyPatch) -> None:
    """Recovery takes an execution away although somebody else has claimed it meanwhile."""

    async def recover(services: Services, lost: Execution) -> None:
        now = services.store.now()
        async with services.store.unit() as unit:
            run = await unit.get(Execution, lost.id)
            if run is None or run.worker is None:
                return
            definition = await sweeping.definition_of(unit, run.workflow_id, run.revision)
            lost_it = interruption.loss(run, definition, now, services.policy.grace_ms)
            outcome = advance(run, lost_it, now)
            await unit_of_work.stage(unit, outcome, now)
            await unit.commit()

    patch.setattr(sweeping, "_recover", sweeping.retried(recover))


def work_by_the_wall_clock(patch: pytest.MonkeyPatch) -> None:
    """What is due, and every stamp, goes by a clock that can be set back."""
    patch.setattr(SimClock, "service_now", SimClock.now)


def clock_forgotten(patch: pytest.MonkeyPatch) -> None:
    """A process that starts anew believes the wall clock that was set back before."""
    patch.setattr(SimClock, "remembered", lambda self: None)


def leases_uncompared(patch: pytest.MonkeyPatch) -> None:
    """Recovery takes an execution away whose worker has extended the lease meanwhile."""

    patch.setattr(writes, "require_abandoned", lambda *_: lambda overlay: None)


def leases_by_the_process(patch: pytest.MonkeyPatch) -> None:
    """Each process asks its own clock whether a lease is over, and whether something is due."""

    def store_of(self: World, clock: Clock) -> Store:
        gate = SimSchedulingPoint(store=True)
        return MemoryStore(gate, self.disk, now=clock.service_now, ended=self.ended)

    patch.setattr(World, "store_of", store_of)


def end_recorded_again(patch: pytest.MonkeyPatch) -> None:
    """An end whose answer got lost is recorded a second time."""
    patch.setattr(running, "_runs", lambda run, step, *which: True)


def cut_short_is_postponed(patch: pytest.MonkeyPatch) -> None:
    """A process that stops says of the steps that it ended that they had not begun."""

    def loss(run: Execution, _: Any, now: Any, grace: int) -> machine.Fact:
        if not run.in_flight:
            return machine.LeaseReturned()
        return machine.StepPostponed(run.in_flight[0], "it stopped", now)

    patch.setattr(running, "loss", loss)


def held_back_after_it_began(patch: pytest.MonkeyPatch) -> None:
    """A runner says that a step could not be started after it was."""
    play = SimRunner._played

    async def plays(self: SimRunner, job: Any, say: Any) -> StepEnd:
        end = await play(self, job, say)
        return StepEnd(postponed=end.error) if end.error else end

    patch.setattr(SimRunner, "_played", plays)


def beginning_forgotten(patch: pytest.MonkeyPatch) -> None:
    """A beginning whose answer got lost is not found again: its step never starts."""
    patch.setattr(running, "_in_flight", lambda run: running.Outcome(run))
