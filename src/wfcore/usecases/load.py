"""
Finding what a caller asks for, with the access rules applied: invisible is not there.

`who` None is the operator at the command line, beside the store: it sees everything.
"""

from wfcore.errors import NotFound
from wfcore.model.access import Permission, Principal, Share
from wfcore.model.approval import Approval
from wfcore.model.execution import Execution
from wfcore.model.workflow import Definition, DefinitionSnapshot, Workflow
from wfcore.ports.store import Unit, View
from wfcore.rules.auth.access import require_permission, sees_approval, sees_execution


async def workflow_for(
    view: View | Unit, who: Principal | None, workflow_id: str, wanted: Permission
) -> Workflow:
    """The workflow. Raises `NotFound`, `Forbidden`."""
    workflow = await view.get(Workflow, workflow_id)
    if who is None:
        if workflow is None:
            raise NotFound("Workflow")
        return workflow
    share = None
    if workflow is not None and workflow.owner_id != who.account.id:
        share = await view.get(Share, workflow_id, who.account.id)
    return require_permission(workflow, who.account.id, share, wanted)


async def execution_for(view: View | Unit, who: Principal | None, execution_id: str) -> Execution:
    """The execution. Raises `NotFound`."""
    run = await view.get(Execution, execution_id)
    if run is None or not (who is None or sees_execution(run, who.account.id)):
        raise NotFound("Execution")
    return run


async def approval_for(
    view: View | Unit, who: Principal | None, approval_id: str
) -> tuple[Approval, Share | None]:
    """The approval, and the caller's share on its workflow. Raises `NotFound`."""
    approval = await view.get(Approval, approval_id)
    if approval is None:
        raise NotFound("Approval")
    if who is None:
        return approval, None
    share = await view.get(Share, approval.workflow_id, who.account.id)
    if not sees_approval(approval, who.account, share):
        raise NotFound("Approval")
    return approval, share


async def definition_of(view: View | Unit, workflow_id: str, revision: int) -> Definition:
    """The definition that executions of that revision keep. Snapshots are never deleted."""
    snapshot = await view.get(DefinitionSnapshot, workflow_id, revision)
    if snapshot is None:
        raise NotFound("Definition")
    return snapshot.definition
