"""
Backfill: starting a schedule for instants of a past period, each at most once. SH-11.

The id of an execution that a schedule starts is derived from trigger and instant, here as in
`firing`. So a second execution for an instant would be a second record with the same id, which no
store accepts. Idempotency records would not suffice: they are kept for 24 hours.
"""

from collections.abc import Sequence

from attrs import frozen

from wfcore.errors import Conflict, InvalidInput, NotFound
from wfcore.model.access import Account, Principal, Unrestricted
from wfcore.model.json import JsonObject
from wfcore.model.trigger import Refusal, Schedule, Trigger
from wfcore.model.workflow import Workflow
from wfcore.rules.triggers.schedule import MOST_BACKFILLED, instants, start_id, timer_at
from wfcore.rules.triggers.trigger import refusal
from wfcore.time import EpochMs
from wfcore.usecases.audit.auditing import UNKNOWN, Origin, note
from wfcore.usecases.reading import execution_of
from wfcore.usecases.services import Services
from wfcore.usecases.unit_of_work import notify, retried
from wfcore.usecases.workflows.firing import instant_facts, start_by
from wfcore.usecases.workflows.triggers import following_of, trigger_for


@frozen
class BackfillResult:
    """
    An instant, and either the execution that was started for the instant (`now`: by this call;
    otherwise before) or the reason why there is no execution. In a preview, an instant without
    execution and reason would be started.
    """

    at: EpochMs
    execution_id: str | None = None
    now: bool = False
    refusal: Refusal | None = None


async def preview_backfill(
    services: Services,
    who: Principal | Unrestricted,
    trigger_id: str,
    since: EpochMs,
    until: EpochMs,
) -> Sequence[BackfillResult]:
    """
    The results that `backfill` would have; nothing is changed. Needs EDIT on the workflow, or an
    operator.

    Raises `NotFound`, `Forbidden`; `InvalidInput` for a chain, and for a period that is empty, not
    past, or has more than `MOST_BACKFILLED` instants.
    """
    async with services.store.view() as view:
        trigger = await trigger_for(view, who, trigger_id)
        found = _instants(services, trigger, since, until)
        owner = await view.get(Account, trigger.owner_id)
        ids = {start_id(trigger, at): at for at in found}
        there = {id for id in ids if await execution_of(view, id) is not None}
    return [
        BackfillResult(at, id)
        if id in there
        else BackfillResult(at, refusal=_refusal(trigger, at, owner))
        for id, at in ids.items()
    ]


async def backfill(
    services: Services,
    who: Principal | Unrestricted,
    trigger_id: str,
    since: EpochMs,
    until: EpochMs,
    origin: Origin = UNKNOWN,
) -> Sequence[BackfillResult]:
    """
    Start the schedule for each instant from *since* on and before *until*, oldest first. Each
    instant is a unit of its own: after a crash the same call starts the remaining instants. Raises
    the errors of `preview_backfill`.
    """
    found = await _begun(services, who, trigger_id, since, until, origin)
    return [await _start_for(services, trigger_id, at) for at in found]


@retried
async def _begun(
    services: Services,
    who: Principal | Unrestricted,
    trigger_id: str,
    since: EpochMs,
    until: EpochMs,
    origin: Origin,
) -> Sequence[EpochMs]:
    """The instants of the period, after an entry in the audit log."""
    async with services.store.unit() as unit:
        trigger = await trigger_for(unit, who, trigger_id)
        found = _instants(services, trigger, since, until)
        details: JsonObject = {"from": since, "until": until, "instants": len(found)}
        note(services, unit, "trigger.backfill", who, trigger.id, origin, details)
        await unit.commit()
    return found


@retried
async def _start_for(services: Services, trigger_id: str, at: EpochMs) -> BackfillResult:
    async with services.store.unit() as unit:
        trigger = await unit.get(Trigger, trigger_id)
        workflow = await unit.get(Workflow, trigger.workflow_id) if trigger else None
        if trigger is None or workflow is None:
            raise NotFound("Trigger")
        id = start_id(trigger, at)
        if await execution_of(unit, id) is not None:
            return BackfillResult(at, id)
        if why := _refusal(trigger, at, await unit.get(Account, trigger.owner_id)):
            return BackfillResult(at, refusal=why)
        about: JsonObject = {"triggerId": trigger.id, "scheduledFor": at, "backfill": True}
        assert isinstance(trigger.spec, Schedule)
        facts = instant_facts(services, trigger.spec, at)
        try:
            started = await start_by(services, unit, trigger, workflow, about, facts, id)
        except InvalidInput:
            return BackfillResult(at, refusal=Refusal.INVALID_INPUT)
        except Conflict:
            return BackfillResult(at, refusal=Refusal.LIMIT_REACHED)
        await unit.commit()
    notify(services.wakeup, id, started.effects)
    return BackfillResult(at, id, now=True)


def _instants(
    services: Services, trigger: Trigger, since: EpochMs, until: EpochMs
) -> Sequence[EpochMs]:
    if not isinstance(trigger.spec, Schedule):
        raise InvalidInput("id", "is a chain; only schedules have instants to make up for")
    if since >= until:
        raise InvalidInput("until", "must be after the beginning of the period")
    if until > services.clock.deadline_now():
        raise InvalidInput("until", "lies ahead; from now on the schedule starts by itself")
    found = instants(following_of(services, trigger.spec), since, until)
    if len(found) > MOST_BACKFILLED:
        raise InvalidInput(
            "until", f"the period has more than {MOST_BACKFILLED} instants; take a shorter one"
        )
    return found


def _refusal(trigger: Trigger, at: EpochMs, owner: Account | None) -> Refusal | None:
    return refusal(trigger, timer_at(trigger, at), owner, sees=True)
