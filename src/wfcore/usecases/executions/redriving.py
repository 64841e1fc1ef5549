"""Redriving: a new execution that keeps what finished steps of an old one returned. EX-17."""

from collections.abc import Sequence

from wfcore.effects import Effect
from wfcore.errors import Conflict
from wfcore.model.access import Principal
from wfcore.model.execution import Execution, ExecutionStatus, TriggerSource
from wfcore.ports.store import Unit
from wfcore.rules.execution.fold import advance
from wfcore.rules.execution.machine import GraceOver
from wfcore.rules.execution.redrive import kept_results
from wfcore.rules.execution.start import Start, id_for
from wfcore.time import EpochMs
from wfcore.usecases.audit.auditing import UNKNOWN, Origin, note
from wfcore.usecases.executions.starting import StartReceipt, accept_start, startable_workflow
from wfcore.usecases.services import Services
from wfcore.usecases.unit_of_work import (
    definition_of,
    execution_for,
    notify,
    retried,
    stage,
)


@retried
async def redrive(
    services: Services,
    who: Principal,
    execution_id: str,
    *,
    source: TriggerSource = TriggerSource.OPEN_API,
    origin: Origin = UNKNOWN,
    once: bool = False,
) -> StartReceipt:
    """
    A new execution that keeps the results of the finished steps of an old one. EX-17. *once*: only
    if nobody has redriven it, of several at one moment one.
    Raises `NotFound` (unknown, invisible, or in a state that cannot be redriven), `Forbidden`,
    `Conflict` (for *once*), `LimitReached` (nothing was changed).
    """
    now = services.store.now()
    async with services.store.unit() as unit:
        old = await execution_for(unit, who, execution_id)
        workflow = await startable_workflow(services, unit, who, old.workflow_id, old.revision)
        definition = await definition_of(unit, old.workflow_id, old.revision)
        before = await unit.executions.redriven_as(old.id)
        if once and before is not None:
            raise Conflict(f"{old.id} was redriven already, as {before}")
        start = Start(
            owner_id=who.account.id,
            trigger_source=source,
            variables=old.variables,
            monitored=old.monitored,
            key_id=who.key.id if who.key else None,
            redrive_of=old.id,
            callback_url=old.callback_url if who.key and who.key.callback_secret else None,
            chain_depth=old.chain_depth,
            step_results=kept_results(old, definition, now),
            put_aside=old.put_aside,
            request_id=origin.request_id,
            trace=origin.trace,
        )
        note(services, unit, "execution.redrive", who, execution_id, origin, execution_id=old.id)
        given_up = await _given_up(unit, old, now)
        id = id_for(f"redrive of {old.id}") if before is None else None
        started = await accept_start(
            services, unit, workflow, start, now, None, old.revision, id=id
        )
    notify(services.wakeup, old.id, given_up)
    return started


async def _given_up(unit: Unit, old: Execution, now: EpochMs) -> Sequence[Effect]:
    """
    An interrupted execution that is redriven has its successor: it is FAILED now, not when its
    grace is over, so that it is not resumed beside it and holds no place in its group. EX-17.
    """
    if old.status is not ExecutionStatus.INTERRUPTED:
        return ()
    return (await stage(unit, advance(old, GraceOver(), now), now)).effects
