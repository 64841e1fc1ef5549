"""
Rights. Each question about a right has one answer, which every channel uses. A record that a caller
cannot see does not exist for the caller (404); an act that the caller may not do on a visible
record is forbidden (403).
"""

from collections.abc import Collection

from attrs import evolve

from wfcore.errors import (
    AccountBlocked,
    AuthReason,
    Forbidden,
    InvalidInput,
    NotFound,
    SignInFirst,
    Unauthenticated,
)
from wfcore.model.access import (
    Account,
    AccountStatus,
    Caller,
    Guest,
    Permission,
    Principal,
    Scope,
    Share,
    Unrestricted,
)
from wfcore.model.approval import Approval, ApprovalStatus, Delegation
from wfcore.model.execution import Execution
from wfcore.model.workflow import Links, Workflow
from wfcore.rules.approval.machine import approvers_now, spoken
from wfcore.rules.mailbox import same_name
from wfcore.time import EpochMs

_RANK = {Permission.VIEW: 1, Permission.EXECUTE: 2, Permission.EDIT: 3}


def require_active(account: Account, key_id: str | None = None) -> None:
    """Raises `AccountBlocked` if the account is disabled or locked. AC-1."""
    if account.status is not AccountStatus.ACTIVE:
        raise AccountBlocked(account.id, key_id)


def person(account: Account, scopes: frozenset[Scope], named: Collection[str]) -> Principal:
    """
    The principal of a person at a page. Operators are the accounts that are marked as operators,
    and the accounts whose email is in the server's settings (*named*, as `same_name` writes it).
    AC-7.
    """
    operates = account.operator or same_name(account.email) in named
    return Principal(account, scopes=scopes, operator=operates)


def refuse_admin_key(
    account: Account, scopes: Collection[Scope], named: Collection[str], on_host: bool
) -> None:
    """
    Raises `InvalidInput` if a key of scope ADMIN would be made for an account that is no operator
    (*named* as in `person`), or from elsewhere than the host. AC-8.
    """
    if Scope.ADMIN not in scopes:
        return
    if not on_host:
        fix = "ADMIN is given on the server's host alone: wfcore key create --scope ADMIN"
        raise InvalidInput("scopes", fix)
    if not person(account, frozenset(), named).operator:
        fix = f"ADMIN is for operators; wfcore account set {account.email} --operator makes one"
        raise InvalidInput("scopes", fix)


def refuse_operator_from_elsewhere(
    account: Account, named: Collection[str], on_host: bool, *, before: Account | None, new: bool
) -> None:
    """
    Raises `InvalidInput` if, from elsewhere than the host, an account would become an active
    operator, or an operator would get a *new* password: a stolen key of scope ADMIN could otherwise
    open a way in that outlasts the key. *account*: its state after the change. *before*: its state
    before; None for a new account. AC-10.
    """
    if on_host or not _operates(account, named):
        return
    if new and before is not None and _operates(before, named):
        fix = "an operator gets one on the server's host alone: wfcore account set"
        raise InvalidInput("password", fix)
    if _active(account) and not (before and _active(before) and _operates(before, named)):
        fix = "an operator is made, or activated, on the server's host alone: wfcore account"
        raise InvalidInput("operator", fix)


def _active(account: Account) -> bool:
    return account.status is AccountStatus.ACTIVE


def _operates(account: Account, named: Collection[str]) -> bool:
    return person(account, frozenset(), named).operator


def require_admin(who: Principal, named: Collection[str]) -> Principal:
    """
    The operator of a key of scope ADMIN. Raises an error if the account is no longer an operator.
    AC-8.
    """
    require_scope(who, Scope.ADMIN)
    operator = person(who.account, frozenset(), named).operator
    if not operator:
        raise Forbidden("The key's account is not an operator any more")
    return evolve(who, operator=True)


def require_operator(who: Caller) -> None:
    """
    Raises `NotFound` for callers who are not operators: for them the operators' pages do not exist.
    AC-7.
    """
    if not (isinstance(who, Principal) and who.operator):
        raise NotFound("Page")


def require_scope(who: Principal, scope: Scope) -> None:
    """
    Raises `Unauthenticated` if *who* lacks *scope*. A key grants exactly its own scopes. Without a
    key, a visitor has their own scopes, and a session has no scopes. AU-4, AU-10.
    """
    granted = who.scopes if who.key is None else who.key.scopes
    if scope not in granted:
        key_id = who.key.id if who.key else None
        raise Unauthenticated(AuthReason.SCOPE_MISSING, who.account.id, key_id)


def includes(held: Permission, wanted: Permission) -> bool:
    """Whether *held* includes *wanted*: VIEW < EXECUTE < EDIT. AC-2."""
    return _RANK[held] >= _RANK[wanted]


def permission_on(workflow: Workflow, account_id: str, share: Share | None) -> Permission | None:
    """The account's permission on the workflow; None if the account cannot see it. AC-3."""
    if workflow.owner_id == account_id:
        return Permission.EDIT
    if share is not None and (share.workflow_id, share.account_id) == (workflow.id, account_id):
        return share.permission
    return None


def require_permission(
    workflow: Workflow | None, account_id: str, share: Share | None, wanted: Permission
) -> Workflow:
    """
    The workflow. Raises `NotFound` if the caller cannot see it, `Forbidden` if the caller's
    permission is below *wanted*. AC-3.
    """
    held = permission_on(workflow, account_id, share) if workflow is not None else None
    if workflow is None or held is None:
        raise NotFound("Workflow")
    if not includes(held, wanted):
        raise Forbidden(f"This needs the permission {wanted} on the workflow")
    return workflow


def sees_execution(run: Execution, account_id: str) -> bool:
    """
    Whether the account sees the execution, as the owner of the execution or of the workflow. AC-4.
    """
    return account_id in (run.owner_id, run.workflow_owner_id)


def is_approver(approval: Approval, who: Caller, share: Share | None) -> bool:
    """
    Whether *who* may decide. Approvers are the people whom the step, or its present stage, names;
    if nobody is named, the workflow's owner, the execution's owner and everybody with EDIT. AP-10,
    AP-33. The same holds for a guest, but only for the approval of the guest's link. PL-2. *share*:
    the share of the workflow.
    """
    if isinstance(who, Guest) and who.approval_id != approval.id:
        return False
    if approvers_now(approval):
        return _named(approvers_now(approval), who)
    if who.account_id in (approval.workflow_owner_id, approval.owner_id):
        return True
    return share is not None and includes(share.permission, Permission.EDIT)


def sees_approval(approval: Approval, who: Caller, share: Share | None) -> bool:
    """
    Whether *who* sees the approval: everybody who sees the execution, and the approvers. AC-5.
    """
    owners = (approval.owner_id, approval.workflow_owner_id)
    owns = isinstance(who, Principal) and who.account_id in owners
    was_asked = not named(approval).isdisjoint(names_for(who))
    mine = not isinstance(who, Guest) or who.approval_id == approval.id
    return owns or (was_asked and mine) or is_approver(approval, who, share)


def named(approval: Approval) -> frozenset[str]:
    """
    The people who see the approval by name, in lower case: the approvers, and the people to whom
    they delegated. AP-36.
    """
    names = (*approval.approvers, *(one.to for one in approval.delegations))
    return frozenset(same_name(name) for name in names if name.strip())


def idle(approval: Approval) -> frozenset[str]:
    """
    The named approvers, in lower case, who need not decide now: they belong to another stage, or
    somebody for whom they may decide has decided. AP-38.
    """
    asked = {same_name(name) for name in approvers_now(approval)} - spoken(approval)
    acting = {
        same_name(one.to)
        for one in approval.delegations
        if not asked.isdisjoint((same_name(one.by), same_name(one.account)))
    }
    return named(approval) - asked - acting


def stands_for(approval: Approval, who: Caller, now: EpochMs) -> Delegation | None:
    """
    The delegation by which *who* may decide now; None for approvers, who decide for themselves.
    AP-36.
    """
    if isinstance(who, Guest) and who.approval_id != approval.id:
        return None
    names = names_for(who)
    held = (one for one in delegations_now(approval, now) if same_name(one.to) in names)
    return next(held, None)


def delegations_now(approval: Approval, now: EpochMs) -> tuple[Delegation, ...]:
    """
    The delegations in force now: within their time, and given by somebody who may decide. AP-36.
    """
    asked = {same_name(name) for name in approvers_now(approval)}
    return tuple(
        one
        for one in approval.delegations
        if now < one.until and asked & {same_name(one.by), same_name(one.account)}
    )


def require_other_eyes(
    approval: Approval, who: Caller, given_for: Delegation | None = None
) -> None:
    """
    Raises `Forbidden` if *who*, or the approver in whose place they decide, started the execution
    and the step forbids self-approval. Rejecting is always allowed. AP-18, AP-36.
    """
    starters = {who.account_id, given_for.account if given_for else None}
    if not approval.allow_self_approval and approval.owner_id in starters:
        raise Forbidden("Who started the execution may not approve it; another approver must")


def require_links_open(approval: Approval, who: Caller) -> None:
    """Raises `SignInFirst` for a guest if the step wants its approvers signed in. PL-5."""
    if isinstance(who, Guest) and approval.links is Links.SIGN_IN:
        raise SignInFirst


def _named(approvers: Collection[str], who: Caller) -> bool:
    names = {same_name(name) for name in approvers}
    return not names.isdisjoint(names_for(who))


def names_for(who: Caller) -> set[str]:
    """The names by which a definition may list *who* as an approver."""
    return {same_name(who.email), same_name(who.account_id or who.email)}


def shown_to(approval: Approval, who: Caller | Unrestricted) -> Approval:
    """*approval* as *who* may see it: guests see only the outcome of a closed approval. PL-4."""
    if not isinstance(who, Guest) or approval.status is ApprovalStatus.PENDING:
        return approval
    return evolve(approval, groups=(), history=(), attachments=(), fields=(), answers={})
