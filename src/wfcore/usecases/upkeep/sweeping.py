"""
The duties that become due by themselves: a loop, not a start-up action.

Each duty is a row in the store; a lost sweep costs a delay, never work.
"""

from collections.abc import Sequence
from contextlib import suppress

from wfcore.errors import IllegalMove, Stale
from wfcore.model.execution import Execution
from wfcore.rules.execution.fold import advance
from wfcore.rules.execution.interruption import after_grace, loss
from wfcore.time import DurationMs, EpochMs
from wfcore.usecases.approvals.expiry import expire_due, remind_due
from wfcore.usecases.notices.telling import tell_outcome
from wfcore.usecases.reading import execution_of
from wfcore.usecases.services import Services
from wfcore.usecases.unit_of_work import (
    Report,
    apart,
    at_once,
    definition_of,
    notify,
    retried,
    stage,
)
from wfcore.usecases.workflows.firing import FiringResult, fire_due

BATCH = 100
SWEEP = "sweep"
SWEEPS_MISSED = 3
"""The missed sweeps after which another machine takes over from a busy or lost machine."""
DUTY = "duty"
"""The kind of a `DutyFailure` for a whole duty."""


async def sweep(
    services: Services, report: Report = at_once, *, deadlines: bool = True
) -> Sequence[FiringResult]:
    """
    Do everything that is due now; returns the results of due triggers. *deadlines* False:
    `next_deadline` shows that no approval and no trigger is due. `retention` deletes old records.

    A duty or record that fails is passed to *report*, which by default raises; with another
    *report* the sweep continues. Does nothing if another machine is elected to sweep. Raises
    `StoreUnavailable`.
    """
    if not await services.store.elect(SWEEP, DurationMs(SWEEPS_MISSED * services.policy.sweep_ms)):
        return ()
    duties = (recover, expire_due, remind_due, end_graces) if deadlines else (recover, end_graces)
    for duty in duties:
        with apart(report, DUTY, duty.__name__):
            await duty(services, report)
    fired: list[FiringResult] = []
    if not deadlines:
        return fired
    with apart(report, DUTY, fire_due.__name__):
        fired += await fire_due(services, report)
    return fired


async def recover(services: Services, report: Report = at_once) -> int:
    """
    Handle executions whose worker is gone: executions with a step in flight are INTERRUPTED, other
    executions continue. Returns the number of these executions. EX-11, EX-15.
    """
    async with services.store.view() as view:
        lost = await view.executions.abandoned(BATCH)
    for run in lost:
        with apart(report, "executions", run.id), suppress(Stale):
            await _recover(services, run)
    return len(lost)


async def _recover(services: Services, lost: Execution) -> None:
    """
    Recover *lost*. Not repeated on `Stale`: either the worker is still alive, or the next sweep
    finds the execution again.
    """
    now = services.store.now()
    async with services.store.unit() as unit:
        run = await execution_of(unit, lost.id)
        if run is None or (run.worker, run.fence) != (lost.worker, lost.fence):
            return
        unit.require_abandoned(run)
        definition = await definition_of(unit, run.workflow_id, run.revision)
        outcome = advance(run, loss(run, definition, now, services.policy.grace_ms), now)
        outcome = await stage(unit, outcome, now)
        await unit.commit()
    notify(services.wakeup, run.id, outcome.effects)


async def end_graces(services: Services, report: Report = at_once) -> int:
    """
    Resume the interrupted executions that the service may resume; end the executions that nobody
    resumed in time. Returns the number of these executions. EX-12, EX-13.
    """
    async with services.store.view() as view:
        over = await view.executions.grace_over(BATCH)
    for run in over:
        with apart(report, "executions", run.id):
            await _end_grace(services, run.id)
    return len(over)


@retried
async def _end_grace(services: Services, execution_id: str) -> None:
    now = services.store.now()
    async with services.store.unit() as unit:
        run = await execution_of(unit, execution_id)
        if run is None or run.due_at is None or run.due_at > now:
            return
        try:
            definition = await definition_of(unit, run.workflow_id, run.revision)
            outcome = advance(run, after_grace(run, definition), now)
        except IllegalMove:
            return
        outcome = await tell_outcome(services, unit, await stage(unit, outcome, now))
        await unit.commit()
    notify(services.wakeup, run.id, outcome.effects)


async def next_deadline(services: Services) -> EpochMs | None:
    """
    The next expiry or reminder of an approval, or the next timer of a trigger; None without any.
    """
    async with services.store.view() as view:
        known = await view.approvals.next_deadline(), await view.timers.next_due()
    return min((at for at in known if at is not None), default=None)
