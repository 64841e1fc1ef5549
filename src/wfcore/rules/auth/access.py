"""
Who sees what and may do what: each question has one answer here, asked at every door.

Contract §1. What a caller cannot see does not exist for it (404); what it sees but may not
do is forbidden (403).
"""

from wfcore.errors import AccountBlocked, AuthReason, Forbidden, NotFound, Unauthenticated
from wfcore.model.access import (
    Account,
    AccountStatus,
    Permission,
    Principal,
    Scope,
    Share,
)
from wfcore.model.approval import Approval
from wfcore.model.execution import Execution
from wfcore.model.workflow import Workflow

_RANK = {Permission.VIEW: 1, Permission.EXECUTE: 2, Permission.EDIT: 3}


def require_active(account: Account, key_id: str | None = None) -> None:
    """Raises `AccountBlocked` for a disabled or locked account. AC-1."""
    if account.status is not AccountStatus.ACTIVE:
        raise AccountBlocked(account.id, key_id)


def require_scope(who: Principal, scope: Scope) -> None:
    """Raises `Unauthenticated` where *who* lacks *scope*; sessions carry none. AU-4, AU-10."""
    if scope not in who.granted:
        key_id = who.key.id if who.key else None
        raise Unauthenticated(AuthReason.SCOPE_MISSING, who.account.id, key_id)


def includes(held: Permission, wanted: Permission) -> bool:
    """VIEW < EXECUTE < EDIT; each includes the ones before it. AC-2."""
    return _RANK[held] >= _RANK[wanted]


def permission_on(workflow: Workflow, account_id: str, share: Share | None) -> Permission | None:
    """What the account may do with the workflow; None: it does not see it. AC-3."""
    if workflow.owner_id == account_id:
        return Permission.EDIT
    if share is not None and (share.workflow_id, share.account_id) == (workflow.id, account_id):
        return share.permission
    return None


def require_permission(
    workflow: Workflow | None, account_id: str, share: Share | None, wanted: Permission
) -> Workflow:
    """The workflow. Raises `NotFound` where it is invisible, `Forbidden` below *wanted*. AC-3."""
    held = permission_on(workflow, account_id, share) if workflow is not None else None
    if workflow is None or held is None:
        raise NotFound("Workflow")
    if not includes(held, wanted):
        raise Forbidden(f"This needs the permission {wanted} on the workflow")
    return workflow


def sees_execution(run: Execution, account_id: str) -> bool:
    """Its owner and the workflow's owner see it. AC-4."""
    return account_id in (run.owner_id, run.workflow_owner_id)


def is_approver(approval: Approval, account: Account, share: Share | None) -> bool:
    """
    Who may decide: the step's approvers where it names some; else the workflow's owner, the
    execution's owner and those with EDIT. *share*: the account's, on the workflow. AP-10.
    """
    if approval.approvers:
        return _named(approval, account)
    if account.id in (approval.workflow_owner_id, approval.owner_id):
        return True
    return share is not None and includes(share.permission, Permission.EDIT)


def sees_approval(approval: Approval, account: Account, share: Share | None) -> bool:
    """Those who see the execution, and its approvers. AC-5."""
    owners = (approval.owner_id, approval.workflow_owner_id)
    return account.id in owners or is_approver(approval, account, share)


def _named(approval: Approval, account: Account) -> bool:
    names = {name.strip().lower() for name in approval.approvers}
    return account.id.lower() in names or account.email.lower() in names
