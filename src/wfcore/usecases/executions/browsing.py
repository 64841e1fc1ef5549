"""
Browsing executions: counts, a search, one execution with its surroundings, and two executions side
by side. PG-6, XP-3, XP-4.
"""

from collections.abc import Iterable, Mapping, Sequence

from attrs import frozen

from wfcore.errors import NotFound, Unreadable
from wfcore.model.access import Permission, Principal, Share, Unrestricted
from wfcore.model.event import Event
from wfcore.model.execution import Artifact, Callback, Execution, ExecutionStatus, Replay
from wfcore.model.page import PageCursor, PageRequest
from wfcore.model.workflow import Definition, DefinitionSnapshot, Workflow
from wfcore.ports.records import ExecutionFilter
from wfcore.ports.store import View
from wfcore.rules.auth.access import includes, permission_on, sees_execution
from wfcore.rules.execution.redrive import REDRIVEN
from wfcore.usecases.executions.callbacks import callback_of
from wfcore.usecases.executions.executions import (
    EVERY_EXECUTION,
    redriven_as,
    visible,
)
from wfcore.usecases.executions.explaining import Explanation, explain_execution
from wfcore.usecases.reading import execution_of
from wfcore.usecases.services import Services
from wfcore.usecases.starter_names import starter_names
from wfcore.usecases.unit_of_work import execution_for

MOST_COUNTED = 1_000
"""The number up to which the executions of a status are counted. PG-6."""
SHORTEST_END = 4
"""The fewest characters with which to search for the end of an id."""
_WORKFLOWS = PageRequest(1, 200)
_MOST_CHILDREN = 100
_MOST_EVENTS = 2_000


async def count_executions(
    services: Services, who: Principal | Unrestricted, where: ExecutionFilter = EVERY_EXECUTION
) -> Mapping[ExecutionStatus, int]:
    """The executions that `list_executions` shows, counted by status up to `MOST_COUNTED`. PG-6."""
    async with services.store.view() as view:
        found = await visible(view, who, where)
        return await view.executions.by_status(found, MOST_COUNTED + 1)


async def find_execution(services: Services, who: Principal, text: str) -> str | None:
    """
    The execution with that id, or the execution started under that idempotency key of the caller.
    IK-1.
    """
    async with services.store.view() as view:
        run = await execution_of(view, text)
        if run is None:
            run = await _started_by(view, who, text)
    return run.id if run and sees_execution(run, who.account.id) else None


async def _started_by(view: View, who: Principal, key: str) -> Execution | None:
    """The first execution started under an idempotency key, of any of the caller's keys."""
    callers = [who.account.id, *(one.id for one in await view.keys.of_account(who.account.id))]
    flows = await view.workflows.visible_to(who.account.id, _WORKFLOWS)
    scopes = [f"start:{caller}:{flow.id}" for caller in callers for flow in flows.rows]
    scopes += [f"webhook:{one.id}" for one in await view.webhooks.all_of_owner(who.account.id)]
    for scope in scopes:
        if (replay := await view.get(Replay, scope, key)) is not None:
            return await execution_of(view, replay.execution_id)
    return None


async def workflow_names(
    services: Services, who: Principal, most: int = _WORKFLOWS.size
) -> Sequence[Workflow]:
    """The first workflows that *who* sees, by name: the choices that narrow a list."""
    first = PageRequest(size=most, after=PageCursor("", ""))
    async with services.store.view() as view:
        return (await view.workflows.visible_to(who.account.id, first)).rows


@frozen
class ExecutionDetail:
    """
    One execution and its surroundings. `definition`: the definition of its revision; None if
    unreadable. `names`: the names of its starters, by id. `children`: the executions that its steps
    started, by id, as far as the caller sees them. `redrives`: whether the caller may redrive the
    execution now. `retried`: the first events, for reading earlier attempts; empty if no step was
    tried again.
    """

    explained: Explanation
    definition: Definition | None
    names: Mapping[str, str]
    children: Mapping[str, Execution]
    artifacts: Sequence[Artifact]
    redriven_as: str | None
    redrives: bool
    callback: Callback | None
    retried: Sequence[Event]

    @property
    def run(self) -> Execution:
        """The execution itself."""
        return self.explained.run


async def read_whole(services: Services, who: Principal, execution_id: str) -> ExecutionDetail:
    """One execution with its surroundings. Raises `NotFound`."""
    explained = await explain_execution(services, who, execution_id)
    run = explained.run
    async with services.store.view() as view:
        workflow = await view.get(Workflow, run.workflow_id)
        share = await view.get(Share, run.workflow_id, who.account.id)
        held = permission_on(workflow, who.account.id, share) if workflow else None
        artifacts = await view.artifacts.of_execution(run.id)
        children = await _children(view, run, who)
        callback = await callback_of(view, run)
        again = any(one.tries > 1 or one.retry_at for one in run.step_results.values())
        events = await view.events.of_execution(run.id, 0, _MOST_EVENTS) if again else ()
    return ExecutionDetail(
        explained,
        explained.definition,
        await starter_names(services, [run]),
        children,
        artifacts,
        await redriven_as(services, run),
        run.status in REDRIVEN and held is not None and includes(held, Permission.EXECUTE),
        callback,
        events,
    )


async def _children(view: View, run: Execution, who: Principal) -> Mapping[str, Execution]:
    ids = [one.child_id for one in run.step_results.values() if one.child_id][:_MOST_CHILDREN]
    found = [await execution_of(view, id) for id in ids]
    return {one.id: one for one in found if one and sees_execution(one, who.account.id)}


async def read_some(
    services: Services, who: Principal, ids: Iterable[str]
) -> Sequence[tuple[Execution, Definition | None, str | None]]:
    """
    The executions of *ids* that *who* sees, each with its definition and the last execution that
    redrives it: for the preview of an action on several executions.
    """
    found = list[tuple[Execution, Definition | None, str | None]]()
    for id in dict.fromkeys(ids):
        try:
            async with services.store.view() as view:
                run = await execution_for(view, who, id)
                snapshot = await view.get(DefinitionSnapshot, run.workflow_id, run.revision)
        except (NotFound, Unreadable):
            continue
        definition = snapshot.definition if snapshot else None
        found.append((run, definition, await redriven_as(services, run)))
    return found
