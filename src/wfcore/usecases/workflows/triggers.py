"""Triggers of workflows: created and deleted when a definition is applied, and listed."""

from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from heapq import heapify, heappop, heappush

from attrs import evolve

from wfcore.errors import InvalidInput, NotFound, Problem, Unreadable
from wfcore.model.access import OPERATOR, Account, Permission, Principal, Share, Unrestricted
from wfcore.model.execution import ExecutionStatus
from wfcore.model.page import NEWEST, Page, PageRequest
from wfcore.model.trigger import (
    Chain,
    Pause,
    Schedule,
    Trigger,
    TriggerRow,
    TriggerState,
)
from wfcore.model.workflow import Definition, Workflow
from wfcore.ports.store import Unit, View
from wfcore.rules.auth.access import permission_on
from wfcore.rules.definition.triggers import follows_itself
from wfcore.rules.definition.written import unseen_names
from wfcore.rules.paths import below
from wfcore.rules.triggers.chain import key_of_id, key_of_name
from wfcore.rules.triggers.schedule import Following, following, timer_at
from wfcore.rules.triggers.trigger import DefinedTrigger, applied, resumed, standing
from wfcore.time import EpochMs
from wfcore.usecases.audit.auditing import UNKNOWN, Origin, note
from wfcore.usecases.services import Services
from wfcore.usecases.unit_of_work import retried, workflow_for


def following_of(services: Services, schedule: Schedule) -> Following:
    """
    A function that finds the instants of *schedule*. Raises `InvalidInput` without a calendar or
    for an unknown zone.
    """
    calendar = services.calendar
    if calendar is None:
        raise InvalidInput("triggers", "there is no calendar here, so no schedules")
    if problems := calendar.problems(schedule.cron, schedule.timezone):
        raise InvalidInput(*next(iter(problems.items())))
    zone = calendar.zone(schedule.timezone)
    return partial(following, partial(calendar.next_local, schedule.cron), zone)


async def wanted_triggers(
    services: Services, unit: Unit, owner: Account, workflow: Workflow, definition: Definition
) -> tuple[Sequence[DefinedTrigger], Sequence[Problem]]:
    """
    The triggers that *definition* defines for *workflow*, and a problem for each chain that cannot
    be: behind a workflow that does not exist (CH-2), behind the failures of *workflow* itself
    (CH-6), or with templates over executions that *owner* does not see (CH-7).
    """
    problems: list[Problem] = []
    wanted: list[DefinedTrigger] = []
    behind: dict[tuple[str, ExecutionStatus], str] = {}
    for at, spec in enumerate(definition.triggers):
        path = below("triggers", at)
        if isinstance(spec, Schedule):
            wanted.append(DefinedTrigger(spec))
            continue
        found = await _found(unit, owner, spec.workflow)
        if found is None:
            problems.append(Problem(below(path, "workflow"), _unknown(spec)))
            continue
        watched, key = found
        wanted.append(DefinedTrigger(spec, key))
        if watched.id == workflow.id and (message := follows_itself(spec)):
            problems.append(Problem(below(path, "on"), message))
        if watched.owner_id != owner.id:
            problems += unseen_names(definition, services.templates.problems, spec.workflow)
        twins = [behind[watched.id, end] for end in spec.on if (watched.id, end) in behind]
        if twins:
            problems.append(Problem(path, f"repeats {twins[0]}"))
        behind |= {(watched.id, end): path for end in spec.on}
    return wanted, problems


async def arrange(
    services: Services,
    unit: Unit,
    workflow: Workflow,
    wanted: Sequence[DefinedTrigger],
    now: EpochMs,
) -> bool:
    """
    Replace the triggers of *workflow* by the triggers *wanted*; returns whether a timer was set.
    """
    change = applied(
        workflow,
        wanted,
        await unit.triggers.of_workflow(workflow.id),
        lambda: services.ids.new("trg", now),
        now,
    )
    for trigger in change.gone:
        unit.delete(trigger)
    for trigger in (*change.begun, *change.kept):
        unit.put(trigger)
    timers = [_set_first(services, unit, trigger, now) for trigger in change.begun]
    return any(timers)


def _set_first(services: Services, unit: Unit, trigger: Trigger, now: EpochMs) -> bool:
    """
    Set the first timer of a new schedule, for its next instant; returns whether a timer was set.
    """
    if not isinstance(trigger.spec, Schedule):
        return False
    at = following_of(services, trigger.spec)(now)
    if at is not None:
        unit.put(timer_at(trigger, at))
    return at is not None


def _unknown(spec: Chain) -> str:
    return (
        f"{spec.workflow!r} is neither the name of a workflow of the same owner nor the id of one "
        "that the owner can see; apply that one first"
    )


async def _found(view: View | Unit, owner: Account, name: str) -> tuple[Workflow, str] | None:
    """The workflow that a chain of *owner* names, and the key to wait for that workflow. CH-2."""
    by_name = await view.workflows.by_name(owner.id, name)
    if by_name is not None:
        return by_name, key_of_name(owner.id, name)
    by_id = await view.get(Workflow, name)
    if by_id is not None and await sees(view, owner.id, by_id):
        return by_id, key_of_id(by_id.id)
    return None


async def sees(view: View | Unit, account_id: str, workflow: Workflow) -> bool:
    """Whether the account may VIEW the workflow."""
    if workflow.owner_id == account_id:
        return True
    share = await view.get(Share, workflow.id, account_id)
    return permission_on(workflow, account_id, share) is not None


async def shown(view: View | Unit, trigger: Trigger) -> TriggerRow:
    """A trigger with its present state."""
    owner = await view.get(Account, trigger.owner_id)
    watched = True
    if owner is not None and isinstance(trigger.spec, Chain):
        found = await _found(view, owner, trigger.spec.workflow)
        watched = found is not None
    next_at = await view.timers.next_of(trigger.id)
    return TriggerRow(trigger, standing(trigger, owner, watched, next_at))


async def triggers_of(view: View, workflow_id: str) -> tuple[TriggerRow, ...]:
    """The triggers of a workflow, in the order of their creation."""
    return await _shown(view, await view.triggers.of_workflow(workflow_id))


async def _shown(view: View, triggers: Sequence[Trigger]) -> tuple[TriggerRow, ...]:
    """
    The triggers whose records can all be read. Unreadable triggers are left out; the log names
    them.
    """
    rows: list[TriggerRow] = []
    for trigger in triggers:
        with suppress(Unreadable):
            rows.append(await shown(view, trigger))
    return tuple(rows)


MOST_TRIGGERS = 1_000
"""The triggers among which the next firing is searched for."""


async def triggers_seen(services: Services, who: Principal) -> Sequence[tuple[TriggerRow, str]]:
    """
    The triggers of *who* (an operator: of all accounts), newest first, each with its workflow's
    name; at most `MOST_TRIGGERS`.
    """
    page = PageRequest(size=MOST_TRIGGERS, after=NEWEST)
    async with services.store.view() as view:
        found = await _listed(view, who, page)
        rows = await _shown(view, found.rows)
        flows = await view.some(Workflow, {one.trigger.workflow_id for one in rows})
    names = {one.id: one.name for one in flows}
    return [(one, names.get(one.trigger.workflow_id, "")) for one in rows]


def next_fires(
    services: Services, seen: Sequence[tuple[TriggerRow, str]], most: int
) -> Sequence[tuple[EpochMs, TriggerRow, str]]:
    """The next *most* instants at which schedules among *seen* fire, the earliest first."""
    waiting = [
        (one.standing.next_at, place)
        for place, (one, _) in enumerate(seen)
        if one.standing.state is TriggerState.ACTIVE and one.standing.next_at is not None
        and isinstance(one.trigger.spec, Schedule)
    ]  # fmt: skip
    heapify(waiting)
    found: list[tuple[EpochMs, TriggerRow, str]] = []
    while waiting and len(found) < most:
        at, place = heappop(waiting)
        shown, name = seen[place]
        found.append((at, shown, name))
        with suppress(InvalidInput):  # here nobody can read it; its standing says so
            after = following_of(services, shown.trigger.spec)(at)  # type: ignore[arg-type]
            if after is not None:
                heappush(waiting, (after, place))
    return found


async def list_triggers(
    services: Services,
    who: Principal | Unrestricted,
    page: PageRequest,
    workflow_id: str | None = None,
) -> Page[TriggerRow]:
    """
    The triggers of *who* (an operator: of all accounts), newest first; with *workflow_id*, the
    triggers of one workflow that *who* sees. Raises `NotFound`.
    """
    async with services.store.view() as view:
        if workflow_id is None:
            found = await _listed(view, who, page)
            rows = await _shown(view, found.rows)
            return Page(rows, found.total, page.page, page.size, found.next)
        await workflow_for(view, who, workflow_id, Permission.VIEW)
        every = await triggers_of(view, workflow_id)
    return Page(every[page.offset : page.offset + page.size], len(every), page.page, page.size)


async def _listed(view: View, who: Principal | Unrestricted, page: PageRequest) -> Page[Trigger]:
    if who is OPERATOR or who.operator:
        return await view.triggers.list(page)
    return await view.triggers.of_owner(who.account.id, page)


async def pause_trigger(
    services: Services,
    who: Principal | Unrestricted,
    trigger_id: str,
    origin: Origin = UNKNOWN,
    why: str | None = None,
) -> TriggerRow:
    """
    Pause a trigger: the trigger starts nothing until it is resumed. A paused trigger does not
    change. SH-10.

    Needs EDIT on the trigger's workflow, or an operator. Raises `NotFound`, `Forbidden`.
    """
    pause = Pause(services.clock.now(), None if who is OPERATOR else who.account.id, why)
    return await _set_pause(services, who, trigger_id, origin, pause)


async def resume_trigger(
    services: Services, who: Principal | Unrestricted, trigger_id: str, origin: Origin = UNKNOWN
) -> TriggerRow:
    """
    Resume a trigger from its next instant on, with its count of failures at 0. Missed instants stay
    missed. SH-10. Needs the same permission and raises the same errors as `pause_trigger`.
    """
    return await _set_pause(services, who, trigger_id, origin, None)


async def pause_workflow(
    services: Services, who: Principal, workflow_id: str, origin: Origin = UNKNOWN
) -> None:
    """
    Pause every trigger of a workflow; see `pause_trigger`. SH-10. Needs EDIT. Raises `NotFound`,
    `Forbidden`.
    """
    for id in await _own_triggers(services, who, workflow_id):
        await pause_trigger(services, who, id, origin)


async def resume_workflow(
    services: Services, who: Principal, workflow_id: str, origin: Origin = UNKNOWN
) -> None:
    """Resume every trigger of a workflow; see `resume_trigger`. SH-10. Needs EDIT."""
    for id in await _own_triggers(services, who, workflow_id):
        await resume_trigger(services, who, id, origin)


async def _own_triggers(services: Services, who: Principal, workflow_id: str) -> Sequence[str]:
    async with services.store.view() as view:
        await workflow_for(view, who, workflow_id, Permission.EDIT)
        return [one.id for one in await view.triggers.of_workflow(workflow_id)]


async def trigger_for(view: View | Unit, who: Principal | Unrestricted, trigger_id: str) -> Trigger:
    """
    A trigger that *who* may change: with EDIT on the trigger's workflow, or as an operator. Raises
    `NotFound`, also if *who* may not see the trigger, and `Forbidden`.
    """
    trigger = await view.get(Trigger, trigger_id)
    if trigger is None:
        raise NotFound("Trigger")
    try:
        asking = OPERATOR if who is OPERATOR or who.operator else who
        await workflow_for(view, asking, trigger.workflow_id, Permission.EDIT)
    except NotFound:
        raise NotFound("Trigger") from None
    return trigger


async def read_trigger(
    services: Services, who: Principal | Unrestricted, trigger_id: str
) -> tuple[TriggerRow, Workflow]:
    """A trigger that *who* may change, with its workflow. Raises the errors of `trigger_for`."""
    async with services.store.view() as view:
        trigger = await trigger_for(view, who, trigger_id)
        flow = await view.get(Workflow, trigger.workflow_id)
        if flow is None:
            raise NotFound("Trigger")
        return await shown(view, trigger), flow


@retried
async def _set_pause(
    services: Services,
    who: Principal | Unrestricted,
    trigger_id: str,
    origin: Origin,
    pause: Pause | None,
) -> TriggerRow:
    async with services.store.unit() as unit:
        trigger = await trigger_for(unit, who, trigger_id)
        if (trigger.pause is None) is (pause is None):
            return await shown(unit, trigger)
        trigger = evolve(trigger, pause=pause) if pause else resumed(trigger)
        unit.put(trigger)
        event = "trigger.pause" if pause else "trigger.resume"
        note(services, unit, event, who, trigger.id, origin)
        found = await shown(unit, trigger)
        await unit.commit()
    return found
