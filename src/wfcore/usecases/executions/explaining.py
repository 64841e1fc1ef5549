"""
Explanations of an execution's state. Only reads, except for the settling of expired approvals.
"""

from collections.abc import Sequence

from attrs import frozen

from wfcore.model.access import OPERATOR, Principal, Unrestricted
from wfcore.model.approval import Approval
from wfcore.model.execution import Awaits, Execution, ExecutionStatus
from wfcore.model.explanation import Line
from wfcore.model.notice import Notice
from wfcore.model.page import PageRequest
from wfcore.model.workflow import Definition, DefinitionSnapshot, Workflow
from wfcore.ports.records import ApprovalFilter, ExecutionFilter
from wfcore.ports.store import View
from wfcore.rules.auth.access import sees_execution
from wfcore.rules.execution.machine import EXECUTION
from wfcore.rules.execution.mail import mail_id
from wfcore.rules.explain.context import ExplanationContext
from wfcore.rules.explain.explanation import explain, is_due
from wfcore.rules.explain.queue import GroupAhead, Queue, working
from wfcore.time import EpochMs
from wfcore.usecases.executions.executions import read_execution
from wfcore.usecases.reading import execution_of
from wfcore.usecases.services import Services

_MOST_HELD = 1_000


@frozen
class Explanation:
    """
    An execution at an instant (large outputs may be left out), its explanation, and its definition
    if readable.
    """

    run: Execution
    at: EpochMs
    lines: tuple[Line, ...]
    definition: Definition | None = None


async def explain_execution(
    services: Services,
    who: Principal | Unrestricted,
    execution_id: str,
    *,
    serving: bool | None = None,
) -> Explanation:
    """
    The explanation of an execution: why nothing is happening, or what happens next. XP-1, XP-2.
    Raises `NotFound`.

    *serving*: whether a server is running, if the caller knows.
    """
    run = await read_execution(services, who, execution_id, outputs=False)
    now = services.store.now()
    async with services.store.view() as view:
        snapshot = await view.get(DefinitionSnapshot, run.workflow_id, run.revision)
        asks = any(result.approval_id for result in run.step_results.values())
        around = ExplanationContext(
            definition=snapshot.definition if snapshot else None,
            approvals=await _approvals(view, run) if asks else (),
            children=await _children(view, run, who),
            mails=await _mails(view, run),
            queue=await _queue(services, view, who) if is_due(run, now) else None,
            group=await _group(view, run, who),
            serving=serving,
        )
    return Explanation(run, now, explain(run, around, now), around.definition)


async def _approvals(view: View, run: Execution) -> Sequence[Approval]:
    """The approvals of *run*, without their rows."""
    where = ApprovalFilter(execution_id=run.id)
    return (await view.approvals.list(where, PageRequest(1, _MOST_HELD))).rows


async def _queue(services: Services, view: View, who: Principal | Unrestricted) -> Queue:
    alive = working(await view.nodes.list(), services.store.now())
    return Queue(await _held(view), services.policy.places, _asker(who), alive)


def _asker(who: Principal | Unrestricted) -> str | None:
    return None if who is OPERATOR else who.account.id


async def _children(
    view: View, run: Execution, who: Principal | Unrestricted
) -> Sequence[Execution]:
    """The executions that *run* waits for, as far as *who* sees them. XP-2."""
    ids = (result.open_child for result in run.step_results.values())
    found = [await execution_of(view, id) for id in ids if id is not None]
    return [
        one for one in found if one and (who is OPERATOR or sees_execution(one, who.account.id))
    ]


async def _mails(view: View, run: Execution) -> Sequence[Notice]:
    """The mails that steps of *run* wait for. ML-1."""
    waiting = ((key, one) for key, one in run.step_results.items() if one.awaits is Awaits.MAIL)
    ids = [mail_id(run.id, key, one.attempts) for key, one in waiting]
    return await view.some(Notice, ids) if ids else ()


async def _group(view: View, run: Execution, who: Principal | Unrestricted) -> GroupAhead | None:
    """The executions ahead of *run* in its group, by the present limit of its workflow."""
    if run.concurrency_group is None or run.fence > 0:
        return None
    workflow = await view.get(Workflow, run.workflow_id)
    newest = (
        await view.get(DefinitionSnapshot, workflow.id, workflow.revision) if workflow else None
    )
    limit = newest.definition.concurrency if newest else None
    if limit is None:
        return None
    held = await view.groups.held(run.concurrency_group)
    return GroupAhead(held, limit.limit, await _holders(view, run), _asker(who))


async def _holders(view: View, run: Execution) -> Sequence[Execution]:
    """The executions of the same group that were claimed and have not ended, oldest first."""
    found: list[Execution] = []
    for status in ExecutionStatus:
        if status not in EXECUTION.final:
            where = ExecutionFilter(workflow_id=run.workflow_id, statuses=(status,))
            found += (await view.executions.list(where, PageRequest(1, _MOST_HELD))).rows
    held = (
        one for one in found if one.concurrency_group == run.concurrency_group and one.fence > 0
    )
    return sorted(held, key=lambda one: (one.accepted_at, one.id))


async def _held(view: View) -> Sequence[Execution]:
    where = ExecutionFilter(statuses=(ExecutionStatus.RUNNING,))
    running = await view.executions.list(where, PageRequest(1, _MOST_HELD))
    return [run for run in running.rows if run.worker is not None]
