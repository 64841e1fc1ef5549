"""
Starting the child of a `workflow` step, in the unit in which the step begins. FL-6, FL-9.

The workflow is found with the rights of the author of the definition: by name among the workflows
of the owner of the parent's workflow, or by id among the workflows that this owner may execute. The
child belongs to the owner of the parent. A child is resumed only if its parent is resumed. EX-24.
"""

from attrs import evolve

from wfcore.effects import Effect, Outcome, StartChild
from wfcore.errors import Conflict, Forbidden, InvalidInput, NotFound
from wfcore.model.access import Permission, Share
from wfcore.model.execution import Execution, ExecutionStatus, TriggerSource
from wfcore.model.trace import span_of_attempt
from wfcore.model.workflow import Workflow
from wfcore.ports.store import Unit
from wfcore.rules.auth.access import require_permission
from wfcore.rules.execution.children import given_up, inherited_secrets, require_finite, waits_for
from wfcore.rules.execution.fold import advance
from wfcore.rules.execution.machine import ChildFailed
from wfcore.rules.execution.plan import Render
from wfcore.rules.execution.start import Start
from wfcore.time import EpochMs
from wfcore.usecases.executions.starting import prepared
from wfcore.usecases.reading import execution_of
from wfcore.usecases.unit_of_work import stage


async def start_children(
    unit: Unit, render: Render, outcome: Outcome[Execution], now: EpochMs
) -> Outcome[Execution]:
    """
    Start every child that *outcome* requests. *outcome* is already staged. If a child cannot be
    started, its step gets the reason, as if the child had failed.

    Returns the outcome with the resulting hints.
    """
    hints: list[Effect] = []
    for asked in outcome.effects:
        if isinstance(asked, StartChild):
            parent = await execution_of(unit, outcome.record.id)
            if parent is not None and waits_for(parent, asked.child_id, asked.step_name):
                next = await _child_or_refusal(unit, render, parent, asked, now)
                hints += (await stage(unit, next, now)).effects
    return evolve(outcome, effects=(*outcome.effects, *hints)) if hints else outcome


async def interrupted_too_long(unit: Unit, run: Execution, now: EpochMs) -> list[ChildFailed]:
    """
    The failed children of *run*: one for each step that timed out while its child, or an execution
    below the child, was interrupted. For the step the child has ended. The caller cancels the
    child. EX-26.
    """
    late: list[ChildFailed] = []
    for result in run.step_results.values():
        if result.open_child and result.until is not None and result.until <= now:
            child = await execution_of(unit, result.open_child)
            if child is not None and await _is_interrupted(unit, child):
                late.append(given_up(child))
    return late


async def _is_interrupted(unit: Unit, run: Execution) -> bool:
    """
    Whether *run*, or an open execution below *run*, is interrupted.

    Each execution is written back unchanged. The cancellation reads these executions again, and an
    execution interrupted in between would count as slow. The write makes the commit `Stale` in that
    case, and all executions are read again.
    """
    unit.put(run)
    if run.status is ExecutionStatus.INTERRUPTED:
        return True
    ids = [one.open_child for one in run.step_results.values() if one.open_child]
    below = [await execution_of(unit, id) for id in ids]
    return any([await _is_interrupted(unit, one) for one in below if one is not None])


async def _child_or_refusal(
    unit: Unit, render: Render, parent: Execution, asked: StartChild, now: EpochMs
) -> Outcome[Execution]:
    try:
        return await _child(unit, render, parent, asked, now)
    except (Conflict, Forbidden, InvalidInput) as refusal:
        ended = ChildFailed(asked.step_name, asked.child_id, str(refusal))
        return advance(parent, ended, now)


async def _child(
    unit: Unit, render: Render, parent: Execution, asked: StartChild, now: EpochMs
) -> Outcome[Execution]:
    """
    The outcome with the new child. Raises `Conflict` (no such workflow, a workflow that would start
    itself, or a full group), `Forbidden`, `InvalidInput`.
    """
    workflow = await _workflow(unit, parent.workflow_owner_id, asked.workflow)
    require_finite(workflow, await _with_ancestors(unit, parent))
    start = Start(
        owner_id=parent.owner_id,
        trigger_source=TriggerSource.WORKFLOW,
        variables=asked.inputs,
        secrets=inherited_secrets(parent, asked.inputs),
        monitored=parent.monitored,
        chain_depth=parent.chain_depth,
        parent_id=parent.id,
        parent_step=asked.step_name,
        root_source=parent.root_trigger,
        request_id=parent.request_id,
        trace=parent.trace and parent.trace.below(_span(parent, asked.step_name)),
    )
    about = {"parentExecutionId": parent.id, "parentStep": asked.step_name}
    return (await prepared(unit, render, workflow, start, asked.child_id, now, about))[0]


def _span(parent: Execution, key: str) -> str:
    return span_of_attempt(parent.id, key, parent.step_results[key].attempts)


async def _workflow(unit: Unit, owner_id: str, named: str) -> Workflow:
    found = await unit.workflows.by_name(owner_id, named)
    if found is not None:
        return found
    by_id = await unit.get(Workflow, named)
    share = await unit.get(Share, named, owner_id) if by_id is not None else None
    try:
        return require_permission(by_id, owner_id, share, Permission.EXECUTE)
    except NotFound:
        raise Conflict(f"there is no workflow '{named}'") from None


async def _with_ancestors(unit: Unit, run: Execution) -> tuple[Execution, ...]:
    """The execution and its ancestors, the root last."""
    line = [run]
    while (above := line[-1].parent_id) is not None:
        parent = await execution_of(unit, above)
        if parent is None:
            break
        line.append(parent)
    return tuple(line)
