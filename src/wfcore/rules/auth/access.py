"""
Who sees what and who may do what: each question has one answer, used by every channel.

Contract §1. What callers cannot see does not exist for them (404); what they see but may not do is
forbidden (403).
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
    """Raises `AccountBlocked` if the account is disabled or locked. AC-1."""
    if account.status is not AccountStatus.ACTIVE:
        raise AccountBlocked(account.id, key_id)


def require_scope(who: Principal, scope: Scope) -> None:
    """
    Raises `Unauthenticated` if *who* lacks *scope*. A key grants exactly its own scopes; without
    one a visitor has its own, and a session none. AU-4, AU-10.
    """
    granted = who.scopes if who.key is None else who.key.scopes
    if scope not in granted:
        key_id = who.key.id if who.key else None
        raise Unauthenticated(AuthReason.SCOPE_MISSING, who.account.id, key_id)


def includes(held: Permission, wanted: Permission) -> bool:
    """VIEW < EXECUTE < EDIT; each includes the ones before it. AC-2."""
    return _RANK[held] >= _RANK[wanted]


def permission_on(workflow: Workflow, account_id: str, share: Share | None) -> Permission | None:
    """What the account may do with the workflow; None if it cannot see it. AC-3."""
    if workflow.owner_id == account_id:
        return Permission.EDIT
    if share is not None and (share.workflow_id, share.account_id) == (workflow.id, account_id):
        return share.permission
    return None


def require_permission(
    workflow: Workflow | None, account_id: str, share: Share | None, wanted: Permission
) -> Workflow:
    """
    The workflow. Raises `NotFound` if the caller cannot see it, `Forbidden` below *wanted*. AC-3.
    """
    held = permission_on(workflow, account_id, share) if workflow is not None else None
    if workflow is None or held is None:
        raise NotFound("Workflow")
    if not includes(held, wanted):
        raise Forbidden(f"This needs the permission {wanted} on the workflow")
    return workflow


def sees_execution(run: Execution, account_id: str) -> bool:
    """Its owner and the workflow's owner see an execution. AC-4."""
    return account_id in (run.owner_id, run.workflow_owner_id)


def is_approver(approval: Approval, account: Account, share: Share | None) -> bool:
    """
    Who may decide: the approvers that the step names; if it names none, the workflow's owner, the
    execution's owner and everybody with EDIT. *share*: the account's share of the workflow. AP-10.
    """
    if approval.approvers:
        return _named(approval, account)
    if account.id in (approval.workflow_owner_id, approval.owner_id):
        return True
    return share is not None and includes(share.permission, Permission.EDIT)


def sees_approval(approval: Approval, account: Account, share: Share | None) -> bool:
    """Whoever sees the execution, and the approvers. AC-5."""
    owners = (approval.owner_id, approval.workflow_owner_id)
    return account.id in owners or is_approver(approval, account, share)


def _named(approval: Approval, account: Account) -> bool:
    names = {name.strip().lower() for name in approval.approvers}
    return account.id.lower() in names or account.email.lower() in names
