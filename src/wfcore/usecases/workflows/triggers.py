"""Triggers of workflows: arranged when a definition is applied, and shown. Contract §4, §8."""

from collections.abc import Sequence
from contextlib import suppress
from functools import partial

from wfcore.errors import InvalidDefinition, InvalidInput, Problem, Unreadable
from wfcore.model.access import Account, Permission, Principal, Share
from wfcore.model.page import Page, PageRequest
from wfcore.model.trigger import Chain, Schedule, Shown, Trigger, TriggerSpec
from wfcore.model.workflow import Definition, Workflow
from wfcore.ports.store import Unit, View
from wfcore.rules.auth.access import permission_on
from wfcore.rules.definition.values import below
from wfcore.rules.triggers.chain import key_of_id, key_of_name
from wfcore.rules.triggers.schedule import Following, following, timer_at
from wfcore.rules.triggers.trigger import Wanted, applied, needs_plan, standing
from wfcore.time import EpochMs
from wfcore.usecases.services import Services
from wfcore.usecases.unit_of_work import workflow_for


def following_of(services: Services, schedule: Schedule) -> Following:
    """When *schedule* fires. Raises `InvalidInput` where there is no calendar, or no such zone."""
    calendar = services.calendar
    if calendar is None:
        raise InvalidInput("triggers", "there is no calendar here, so no schedules")
    if problems := calendar.problems(schedule.cron, schedule.timezone):
        raise InvalidInput(*next(iter(problems.items())))
    zone = calendar.zone(schedule.timezone)
    return partial(following, partial(calendar.next_local, schedule.cron), zone)


async def arrange(
    services: Services,
    unit: Unit,
    owner: Account,
    workflow: Workflow,
    definition: Definition,
    now: EpochMs,
) -> bool:
    """
    Make the triggers of *workflow* those of *definition*; whether any timer was set.

    Raises `InvalidDefinition`: a schedule on plan FREE, a chain behind a workflow that is not
    there. SH-7, CH-2.
    """
    wanted = await _wanted(unit, owner, definition.triggers)
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
    """A new schedule fires from its next instant on."""
    if not isinstance(trigger.spec, Schedule):
        return False
    at = following_of(services, trigger.spec)(now)
    if at is not None:
        unit.put(timer_at(trigger, at))
    return at is not None


async def _wanted(unit: Unit, owner: Account, specs: Sequence[TriggerSpec]) -> Sequence[Wanted]:
    problems: list[Problem] = []
    wanted: list[Wanted] = []
    behind: dict[str, str] = {}
    for at, spec in enumerate(specs):
        path = below("triggers", at)
        if needs_plan(spec, owner.plan):
            problems.append(Problem(path, "schedules need the plan PRO or above"))
        if isinstance(spec, Schedule):
            wanted.append(Wanted(spec))
            continue
        found = await _named(unit, owner, spec.workflow)
        if found is None:
            problems.append(Problem(below(path, "workflow"), _unknown(spec)))
            continue
        watched, key = found
        wanted.append(Wanted(spec, key))
        if behind.setdefault(watched.id, path) != path:
            problems.append(Problem(path, f"repeats {behind[watched.id]}"))
    if problems:
        raise InvalidDefinition(tuple(problems))
    return wanted


def _unknown(spec: Chain) -> str:
    return (
        f"{spec.workflow!r} is neither the name of a workflow of the same owner nor the id of one "
        "that the owner can see; apply that one first"
    )


async def _named(view: View | Unit, owner: Account, name: str) -> tuple[Workflow, str] | None:
    """The workflow that a chain of *owner* means, and the key to wait for it. CH-2."""
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


async def shown(view: View, trigger: Trigger) -> Shown:
    """A trigger with how it stands now."""
    owner = await view.get(Account, trigger.owner_id)
    watched = True
    if owner is not None and isinstance(trigger.spec, Chain):
        found = await _named(view, owner, trigger.spec.workflow)
        watched = found is not None
    next_at = await view.timers.next_of(trigger.id)
    return Shown(trigger, standing(trigger, owner, watched, next_at))


async def triggers_of(view: View, workflow_id: str) -> tuple[Shown, ...]:
    """The triggers of a workflow, in the order in which they came."""
    return await _shown(view, await view.triggers.of_workflow(workflow_id))


async def _shown(view: View, triggers: Sequence[Trigger]) -> tuple[Shown, ...]:
    """Those that rest on nothing that cannot be read; the log names the others."""
    rows: list[Shown] = []
    for trigger in triggers:
        with suppress(Unreadable):
            rows.append(await shown(view, trigger))
    return tuple(rows)


async def list_triggers(
    services: Services, who: Principal | None, page: PageRequest, workflow_id: str | None = None
) -> Page[Shown]:
    """
    All triggers (the operator's list), newest first; with *workflow_id* those of one workflow
    that *who* sees. Raises `NotFound`.
    """
    async with services.store.view() as view:
        if workflow_id is None:
            found = await view.triggers.list(page)
            rows = await _shown(view, found.rows)
            return Page(rows, found.total, page.page, page.size, found.next)
        await workflow_for(view, who, workflow_id, Permission.VIEW)
        every = await triggers_of(view, workflow_id)
    return Page(every[page.offset : page.offset + page.size], len(every), page.page, page.size)
