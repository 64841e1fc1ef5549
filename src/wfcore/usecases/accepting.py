"""Accepting an execution into somebody's unit of work: whoever starts, it is done here. EX-1."""

from attrs import evolve

from wfcore.effects import Outcome
from wfcore.instants import EpochMs
from wfcore.model.execution import Execution
from wfcore.model.workflow import Concurrency, OnLimit, Workflow
from wfcore.ports.store import Unit
from wfcore.rules.concurrency import in_lane, require_room
from wfcore.rules.plan import Render
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
    id: str | None = None,
) -> Outcome[Execution]:
    """
    A new execution of the workflow, collected into *unit*; hint after the commit.

    *revision*: another one than the workflow's; *id*: made before. Raises `InvalidInput` for
    inputs that break the declarations, `LimitReached` where the workflow says `onLimit: skip`
    and is full.
    """
    id, render = id or services.ids.new("exec", now), services.templates.render
    started = await prepared(unit, render, workflow, start, id, now, revision=revision)
    return await collect(unit, started, now)


async def prepared(
    unit: Unit,
    render: Render,
    workflow: Workflow,
    start: Start,
    id: str,
    now: EpochMs,
    *,
    revision: int | None = None,
) -> Outcome[Execution]:
    """
    The execution as it is to be stored, in its lane, with room claimed where it needs some.

    Whoever starts one because of another one takes that one's `chain_depth` along. The limit is
    that of the workflow's newest definition, whatever the revision. CC-5.
    """
    newest = definition = await definition_of(unit, workflow.id, workflow.revision)
    if revision not in (None, workflow.revision):
        workflow = evolve(workflow, revision=revision)
        definition = await definition_of(unit, workflow.id, workflow.revision)
    started = accept(workflow, definition, start, id, now)
    started = in_lane(started, newest.concurrency, render)
    if newest.concurrency is not None and newest.concurrency.on_limit is OnLimit.SKIP:
        await _claim_room(unit, started.record, newest.concurrency)
    return started


async def _claim_room(unit: Unit, run: Execution, limit: Concurrency) -> None:
    """Of racing starts only as many are stored as there is room. CC-4."""
    assert run.lane is not None
    require_room(run, limit, await unit.lanes.unfinished(run.lane))
    unit.lanes.require_room(run.lane, limit.limit)
