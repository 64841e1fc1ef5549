"""
Firing timers: schedules and chains start their workflows. SH-1, CH-1.

A start and the consumption of its timer are one unit: a crash leaves both or neither, and of
several servers one commits. A refused start leaves its reason in the audit log and at the trigger.
"""

from collections.abc import Sequence

from attrs import evolve, frozen

from wfcore.effects import Outcome
from wfcore.errors import Conflict, InvalidInput
from wfcore.model.access import Account
from wfcore.model.execution import Execution, TriggerSource
from wfcore.model.json import JsonObject
from wfcore.model.page import PageRequest
from wfcore.model.trigger import Chain, Refusal, Schedule, Timer, Trigger
from wfcore.model.workflow import Workflow
from wfcore.ports.store import Unit
from wfcore.rules.execution.start import Start
from wfcore.rules.triggers.facts import followed, inputs_of, scheduled
from wfcore.rules.triggers.schedule import Due, due, planned_ahead, start_id, timer_at
from wfcore.rules.triggers.trigger import is_news, ran, refusal, refused
from wfcore.time import MINUTE, EpochMs, later
from wfcore.usecases.audit.auditing import note_skipped
from wfcore.usecases.executions.starting import enqueue
from wfcore.usecases.notices.telling import pause_if_failing, tell_refused
from wfcore.usecases.reading import execution_of
from wfcore.usecases.services import Services
from wfcore.usecases.state import state_of, with_state
from wfcore.usecases.unit_of_work import (
    Report,
    apart,
    at_once,
    definition_of,
    notify,
    retried,
)
from wfcore.usecases.workflows.triggers import following_of, sees

BATCH = 100
MOST_AHEAD = 1_000
"""The timers among which timers of chains are searched for while the time of work is ahead."""
POSTPONED_BY = MINUTE


@frozen
class FiringResult:
    """The result of a due timer: an execution, or the reason why no execution was started."""

    trigger_id: str
    workflow_id: str
    execution_id: str | None = None
    refusal: Refusal | None = None


async def fire_due(services: Services, report: Report = at_once) -> Sequence[FiringResult]:
    """
    Fire due timers, oldest first. If many timers are due, only a part is fired, so that other
    duties get their turn; the next call fires the next part.
    """
    until, work = services.clock.deadline_now(), services.store.now()
    async with services.store.view() as view:
        most = MOST_AHEAD if until < work else BATCH
        found = await view.timers.due(max(until, work), most)
    ends: list[FiringResult] = []
    for timer in [one for one in found if one.cause or one.due_at <= until][:BATCH]:
        with apart(report, "timers", timer.id):
            end = await fire(services, timer.id)
            ends += [end] if end is not None else []
    return ends


@retried
async def fire(services: Services, timer_id: str) -> FiringResult | None:
    """
    Consume one timer and start its workflow. Returns None if the timer was consumed before or its
    trigger is gone. A timer of a schedule is compared with the clock of deadlines, so that a clock
    that jumps fires nothing early (SH-8). A timer of a chain follows a completion and is compared
    with the time of work (EX-30).
    """
    until = services.clock.deadline_now()
    async with services.store.unit() as unit:
        timer = await unit.get(Timer, timer_id)
        until = services.store.now() if timer and timer.cause else until
        if timer is None or timer.due_at > until:
            return None
        trigger = await unit.get(Trigger, timer.trigger_id)
        workflow = await unit.get(Workflow, trigger.workflow_id) if trigger else None
        if trigger is None or workflow is None:
            unit.delete(timer)
            await unit.commit()
            return None
        try:
            for_instant = await _consumed(services, unit, timer, trigger, until)
        except InvalidInput:
            return await _postponed(services, unit, timer, trigger, until)
        return await _fire(services, unit, timer, trigger, workflow, for_instant)


async def _fire(
    services: Services,
    unit: Unit,
    timer: Timer,
    trigger: Trigger,
    workflow: Workflow,
    for_instant: EpochMs | None,
) -> FiringResult:
    owner = await unit.get(Account, trigger.owner_id)
    why = refusal(trigger, timer, owner, await _sees_cause(unit, timer, trigger, owner))
    if why is not None or for_instant is None:
        return await _refused(services, unit, trigger, why or Refusal.MISSED)
    id = start_id(trigger, for_instant) if isinstance(trigger.spec, Schedule) else None
    if id is not None and await execution_of(unit, id) is not None:  # by a backfill, just before
        await unit.commit()
        return FiringResult(trigger.id, workflow.id, id)
    about = _about(timer, trigger, for_instant)
    try:
        facts = await _facts(services, unit, timer, trigger, for_instant)
        started = await start_by(services, unit, trigger, workflow, about, facts, id, timer.depth)
    except InvalidInput as wrong:
        return await _refused(services, unit, trigger, Refusal.INVALID_INPUT, str(wrong))
    except Conflict:
        return await _refused(services, unit, trigger, Refusal.LIMIT_REACHED)
    await unit.commit()
    notify(services.wakeup, started.record.id, started.effects)
    return FiringResult(trigger.id, workflow.id, started.record.id)


async def start_by(
    services: Services,
    unit: Unit,
    trigger: Trigger,
    workflow: Workflow,
    about: JsonObject,
    facts: JsonObject,
    id: str | None,
    depth: int = 0,
) -> Outcome[Execution]:
    """
    Stage the execution that *trigger* starts, and record the start with the trigger. *facts*: the
    names below `trigger`. *depth*: the depth of the chain. Raises `InvalidInput` for inputs that do
    not fit, `Conflict` if the workflow's limit is reached; then nothing is staged. SH-12.
    """
    is_schedule = isinstance(trigger.spec, Schedule)
    source = TriggerSource.SCHEDULE if is_schedule else TriggerSource.DELAYED_COMPLETION
    definition = await definition_of(unit, workflow.id, workflow.revision)
    state = await state_of(unit, workflow.id, definition)
    render = with_state(services.templates.render, state)
    start = Start(
        owner_id=trigger.owner_id,
        trigger_source=source,
        variables=inputs_of(trigger.spec, source, facts, render),
        trigger=facts,
        chain_depth=depth,
        trigger_id=trigger.id,
    )
    now = services.store.now()
    outcome = await enqueue(services, unit, workflow, start, now, about, id=id)
    after = await unit.get(Trigger, trigger.id)  # knows how it ended, if it has already: EX-34
    unit.put(ran(after or trigger, services.clock.now()))
    return outcome


async def _facts(
    services: Services, unit: Unit, timer: Timer, trigger: Trigger, for_instant: EpochMs
) -> JsonObject:
    """
    The names below `trigger` for a start. Raises `InvalidInput` if a chain has inputs and the
    followed execution is gone.
    """
    spec = trigger.spec
    if isinstance(spec, Schedule):
        return instant_facts(services, spec, for_instant)
    run = await execution_of(unit, timer.cause) if timer.cause else None
    if run is not None:
        return followed(run, trigger.owner_id)
    if spec.inputs:
        raise InvalidInput("inputs", "the execution that was followed is no longer stored")
    return {}


def instant_facts(services: Services, spec: Schedule, at: EpochMs) -> JsonObject:
    """The names below `trigger` for a start by a schedule at one of its instants."""
    assert services.calendar is not None  # it gave the instant
    return scheduled(at, services.calendar.zone(spec.timezone))


async def _refused(
    services: Services, unit: Unit, trigger: Trigger, why: Refusal, detail: str | None = None
) -> FiringResult:
    """
    Store a refusal with the trigger, and write a notice if the refusal is new. Wrong inputs may
    pause the trigger. *detail*: the mistake in the inputs.
    """
    if is_news(trigger, why):
        note_skipped(services, unit, "trigger.fire", why.value, trigger.owner_id, trigger.id)
        await tell_refused(services, unit, trigger, why, detail)
    after = refused(trigger, why, services.clock.now(), detail)
    unit.put(after)
    if why is Refusal.INVALID_INPUT:
        await pause_if_failing(services, unit, after)
    await unit.commit()
    return FiringResult(trigger.id, trigger.workflow_id, refusal=why)


async def _postponed(
    services: Services, unit: Unit, timer: Timer, trigger: Trigger, until: EpochMs
) -> FiringResult:
    """
    Postpone a timer whose schedule this server cannot read. Another server may read the schedule,
    or this server later.
    """
    unit.put(evolve(timer, due_at=later(until, POSTPONED_BY)))
    return await _refused(services, unit, trigger, Refusal.UNREADABLE)


async def _consumed(
    services: Services, unit: Unit, timer: Timer, trigger: Trigger, until: EpochMs
) -> EpochMs | None:
    """
    The instant for which to start; None: the instant was missed. The timer is deleted; a schedule
    gets its next timer in the same unit, whatever the result of the start.

    Raises `InvalidInput` if the schedule cannot be read here; the timer is then kept.
    """
    spec = trigger.spec
    if isinstance(spec, Chain):
        unit.delete(timer)
        return timer.due_at
    found = _due(services, spec, timer, until)
    unit.delete(timer)
    if found.next_at is not None:
        following = timer_at(trigger, found.next_at)
        if await unit.get(Timer, following.id) is None:
            unit.put(following)
    return found.start_for


def _due(services: Services, spec: Schedule, timer: Timer, until: EpochMs) -> Due:
    policy = services.policy
    missed = spec.missed or policy.missed
    find = following_of(services, spec)
    return due(timer.due_at, until, policy.schedule_grace_ms, missed, find)


async def _sees_cause(unit: Unit, timer: Timer, trigger: Trigger, owner: Account | None) -> bool:
    """
    Whether the chain's owner can still see the workflow whose completion is the cause. If that
    workflow was deleted in the meantime, its completion still counts.
    """
    run = await execution_of(unit, timer.cause) if timer.cause else None
    watched = await unit.get(Workflow, run.workflow_id) if run else None
    return watched is None or await sees(unit, trigger.owner_id, watched)


def _about(timer: Timer, trigger: Trigger, for_instant: EpochMs | None) -> JsonObject:
    """The details of the start in the first event of the execution."""
    cause: JsonObject = {"completedExecutionId": timer.cause} if timer.cause else {}
    return {"triggerId": trigger.id, "scheduledFor": for_instant, **cause}


async def plan_anew(services: Services, report: Report = at_once) -> int:
    """
    Give a new instant to schedules that were planned under a clock far ahead; these schedules would
    otherwise not fire before that time. Returns the number of these schedules. Failures are passed
    to *report*. SH-9.
    """
    if services.calendar is None:
        return 0
    now, count = services.clock.deadline_now(), 0
    page: PageRequest | None = PageRequest(size=BATCH)
    while page is not None:
        async with services.store.view() as view:
            found = await view.triggers.list(page)
        for trigger in found.rows:
            if isinstance(trigger.spec, Schedule) and planned_ahead(trigger, now):
                with apart(report, "triggers", trigger.id):
                    count += await _plan(services, trigger, trigger.spec, now)
        page = found.rest
    return count


@retried
async def _plan(services: Services, trigger: Trigger, spec: Schedule, now: EpochMs) -> bool:
    try:
        at = following_of(services, spec)(now)
    except InvalidInput:
        return False
    async with services.store.unit() as unit:
        due_at = await unit.timers.next_of(trigger.id)
        if at is None or due_at is None or due_at <= at:
            return False
        timer = await unit.get(Timer, timer_at(trigger, due_at).id)
        if timer is None:
            return False
        unit.delete(timer)
        unit.put(timer_at(trigger, at))
        await unit.commit()
    services.wakeup.timer()
    return True
