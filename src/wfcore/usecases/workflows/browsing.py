"""Lists of workflows with their recent activity, and one workflow with its surroundings."""

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress

from attrs import evolve, frozen

from wfcore.errors import NotFound, Unreadable
from wfcore.model.access import Account, Permission, Principal, Share, Unrestricted
from wfcore.model.page import Page, PageRequest
from wfcore.model.trigger import Pause, Trigger
from wfcore.model.webhook import Webhook
from wfcore.model.workflow import Definition, DefinitionSnapshot, Workflow
from wfcore.ports.records import HOURS, Activity, LatestExecution
from wfcore.ports.store import View
from wfcore.rules.auth.access import includes, permission_on
from wfcore.rules.named_secrets import kept_secret
from wfcore.rules.triggers.trigger import pause_of
from wfcore.time import HOUR, EpochMs
from wfcore.usecases.services import Services
from wfcore.usecases.unit_of_work import definition_of, workflow_for
from wfcore.usecases.workflows.triggers import triggers_of
from wfcore.usecases.workflows.workflows import WorkflowRow


@frozen
class WorkflowSummary:
    """
    A workflow without its definition, the caller's permission on the workflow, its activity, and
    its `LATEST` newest executions, the newest first. `pause`: if nothing starts the workflow by
    itself, the pause; `paused_by`: the email of the person who paused it.
    """

    workflow: Workflow
    permission: Permission
    activity: Activity
    latest: Sequence[LatestExecution] = ()
    pause: Pause | None = None
    paused_by: str | None = None


LATEST = 30
"""The newest executions of a workflow that its page and its row in the list show."""


async def list_summaries(
    services: Services, who: Principal, page: PageRequest
) -> Page[WorkflowSummary]:
    """The workflows that *who* sees, by name; no definition is read. AC-3, AC-4."""
    me, since = who.account.id, day_of(services.store.now())
    async with services.store.view() as view:
        found = await view.workflows.visible_to(me, page)
        ids = [one.id for one in found.rows]
        did = await view.workflows.activity(ids, me, since)
        ran = await view.workflows.latest(ids, me, LATEST)
        pauses = await _pauses(view, ids)
        rows = [
            WorkflowSummary(
                one,
                await _held(view, one, me),
                did.get(one.id, Activity()),
                ran.get(one.id, ()),
                *pauses.get(one.id, (None, None)),
            )
            for one in found.rows
        ]
    return Page(tuple(rows), found.total, found.page, found.size, found.next)


async def _pauses(view: View, ids: Collection[str]) -> Mapping[str, tuple[Pause, str | None]]:
    """The pauses of the workflows *ids* of which no trigger is active, each with an email."""
    triggers = defaultdict[str, list[Trigger]](list)
    for one in await view.triggers.of_workflows(ids):
        triggers[one.workflow_id].append(one)
    pauses = {id: pause for id, some in triggers.items() if (pause := pause_of(some))}
    people = await view.some(Account, {one.by for one in pauses.values() if one.by})
    emails = {one.id: one.email for one in people}
    return {id: (pause, emails.get(pause.by or "")) for id, pause in pauses.items()}


async def list_startable(
    services: Services, who: Principal, page: PageRequest
) -> Page[WorkflowRow]:
    """
    One page of the workflows that *who* sees, without workflows that *who* may not start, with
    definitions. AC-2.
    """
    async with services.store.view() as view:
        found = await view.workflows.visible_to(who.account.id, page)
        rows: list[WorkflowRow] = []
        for one in found.rows:
            if includes(await _held(view, one, who.account.id), Permission.EXECUTE):
                with suppress(Unreadable):  # its definition; the log names it
                    rows.append(WorkflowRow(one, await definition_of(view, one.id, one.revision)))
    return Page(tuple(rows), found.total, found.page, found.size, found.next)


async def startable_by(
    services: Services, who: Principal, named: Callable[[Workflow], bool]
) -> str | None:
    """
    The id of the only workflow that *named* accepts and *who* may start; None for no such workflow,
    or several. No definition is read.
    """
    after, found = None, list[str]()
    async with services.store.view() as view:
        while True:
            page = PageRequest(size=_LOOKED_THROUGH, after=after)
            seen = await view.workflows.visible_to(who.account.id, page)
            for one in filter(named, seen.rows):
                if includes(await _held(view, one, who.account.id), Permission.EXECUTE):
                    found.append(one.id)
            if (after := seen.next) is None:
                return found[0] if len(found) == 1 else None


_LOOKED_THROUGH = 200


def day_of(now: EpochMs) -> EpochMs:
    """The beginning of the hours of an `Activity`; the last hour is the present hour."""
    return EpochMs(max(now - now % HOUR - (HOURS - 1) * HOUR, 0))


async def _held(view: View, workflow: Workflow, account_id: str) -> Permission:
    share = None
    if workflow.owner_id != account_id:
        share = await view.get(Share, workflow.id, account_id)
    return permission_on(workflow, account_id, share) or Permission.VIEW


@frozen
class WorkflowDetail:
    """
    One workflow and its surroundings for one account: the account's own webhooks and, for the
    workflow's owner, the shares, each with the email of its holder. `owner`: an email. `latest`:
    the `LATEST` newest executions, the newest first. `pause` and `paused_by`: as in a
    `WorkflowSummary`.
    """

    defined: WorkflowRow
    permission: Permission
    owner: str
    activity: Activity
    webhooks: Sequence[Webhook]
    shares: Sequence[tuple[Share, str]]
    latest: Sequence[LatestExecution] = ()
    pause: Pause | None = None
    paused_by: str | None = None


async def read_workflow_whole(
    services: Services, who: Principal, workflow_id: str
) -> WorkflowDetail:
    """One workflow with its surroundings, for its page. Raises `NotFound`."""
    me = who.account.id
    async with services.store.view() as view:
        workflow = await workflow_for(view, who, workflow_id, Permission.VIEW)
        definition = await definition_of(view, workflow.id, workflow.revision)
        did = await view.workflows.activity([workflow.id], me, day_of(services.store.now()))
        owns = workflow.owner_id == me
        shares = await view.shares.of_workflow(workflow.id) if owns else ()
        people = await view.some(Account, {workflow.owner_id, *(one.account_id for one in shares)})
        emails = {one.id: one.email for one in people}
        hooks = await view.webhooks.of_workflow(workflow.id)
        return WorkflowDetail(
            WorkflowRow(workflow, definition, await triggers_of(view, workflow.id)),
            await _held(view, workflow, me),
            emails.get(workflow.owner_id, workflow.owner_id),
            did.get(workflow.id, Activity()),
            [hook for hook in hooks if hook.owner_id == me],
            [(one, emails.get(one.account_id, one.account_id)) for one in shares],
            (await view.workflows.latest([workflow.id], me, LATEST)).get(workflow.id, ()),
            *(await _pauses(view, [workflow.id])).get(workflow.id, (None, None)),
        )


async def read_permitted(
    services: Services, who: Principal, workflow_id: str
) -> tuple[WorkflowRow, Permission]:
    """One workflow with its definition, and the permission of *who*. Raises `NotFound`."""
    async with services.store.view() as view:
        workflow = await workflow_for(view, who, workflow_id, Permission.VIEW)
        definition = await definition_of(view, workflow.id, workflow.revision)
        return WorkflowRow(workflow, definition), await _held(view, workflow, who.account.id)


MOST_VERSIONS = 2**31 - 1
"""The largest version number that every store can search for."""


async def read_version(
    services: Services, who: Principal | Unrestricted, workflow_id: str, number: int
) -> tuple[Workflow, DefinitionSnapshot, DefinitionSnapshot | None]:
    """
    One version of a workflow, and the version before. Secrets of the present definition are masked
    in both versions. SC-9. Raises `NotFound`.
    """
    async with services.store.view() as view:
        workflow = await workflow_for(view, who, workflow_id, Permission.VIEW)
        found = await stored_version(view, workflow.id, number)
        before = await view.get(DefinitionSnapshot, workflow.id, number - 1)
        present = await definition_of(view, workflow.id, workflow.revision)
    return workflow, masked_version(found, present), before and masked_version(before, present)


async def stored_version(view: View, workflow_id: str, number: int) -> DefinitionSnapshot:
    """The version *number* of a workflow. Raises `NotFound`, also for a number of no version."""
    if not 0 < number <= MOST_VERSIONS:
        raise NotFound("Version")
    found = await view.get(DefinitionSnapshot, workflow_id, number)
    if found is None:
        raise NotFound("Version")
    return found


def masked_version(snapshot: DefinitionSnapshot, present: Definition) -> DefinitionSnapshot:
    """*snapshot* with the variables secret that the *present* definition keeps secret. SC-9."""
    return evolve(snapshot, definition=kept_secret(snapshot.definition, present.secrets))
