"""Accepting an execution into somebody's unit of work: whoever starts, it is done here. EX-1."""

from attrs import evolve

from wfcore.effects import Outcome
from wfcore.instants import EpochMs
from wfcore.model.execution import Execution
from wfcore.model.workflow import Concurrency, OnLimit, Workflow
from wfcore.ports.store import Unit
from wfcore.rules.concurrency import in_lane, require_room
from wfcore.rules.start import Start, accept
from wfcore.usecases._apply import collect
from wfcore.usecases._looking import definition_of
from wfcore.usecases.services import Services


async def accepted(
    services: Services,
    unit: Unit,
    workflow: Workflow,
    start: Start,
    now: EpochMs,
    *,
    revision: int | None = None,
) -> Outcome[Execution]:
    """
    A new execution of the workflow, collected into *unit*; hint after the commit.

    *revision*: another one than the workflow's; the limit is the newest one. CC-5.
    Raises `InvalidInput` for inputs that break the declarations, `LimitReached` where the
    workflow says `onLimit: skip` and is full.
    """
    at = evolve(workflow, revision=revision or workflow.revision)
    definition = await definition_of(unit, at.id, at.revision)
    limit = (await definition_of(unit, workflow.id, workflow.revision)).concurrency
    started = accept(at, definition, start, services.ids.new("exec", now), now)
    started = in_lane(started, limit, services.templates.render)
    if limit is not None and limit.on_limit is OnLimit.SKIP:
        await _claim_room(unit, started.record, limit)
    return await collect(unit, started, now)


async def _claim_room(unit: Unit, run: Execution, limit: Concurrency) -> None:
    """Of racing starts only as many are stored as there is room. CC-4."""
    assert run.lane is not None
    require_room(run, limit, await unit.lanes.unfinished(run.lane))
    unit.lanes.require_room(run.lane, limit.limit)
