"""
Quorum: approvals that require more than one approver. AP-15 to AP-19.

Approvers approve the rows as they stand. Changing the rows restarts the count, so what is finally
released is what every counted approver has approved.
"""

from wfcore.errors import AlreadyDecided, Forbidden, ItemsChanged
from wfcore.model.access import Account
from wfcore.model.approval import Approval, Assent
from wfcore.model.json import JsonObject
from wfcore.rules.audit.chain import canonical, digest
from wfcore.time import EpochMs


def with_assent(
    approval: Approval, assent: Assent, *, changed: bool = False, alone: bool = False
) -> tuple[Assent, ...]:
    """
    The approvers who count after *assent*; only that one if it *changed* the rows. AP-15, AP-17.

    Raises `AlreadyDecided` if the same approver has approved these rows before, unless they now
    decide *alone*. AP-16.
    """
    if changed:
        return (assent,)
    if has_assented(approval, assent.account) and not alone:
        left = approval.required_approvals - len(approval.assents)
        raise AlreadyDecided(f"You have approved this already; it needs {left} more", approval.id)
    others = (one for one in approval.assents if one.account != assent.account)
    return (*others, assent)


def has_assented(approval: Approval, account: str) -> bool:
    """Whether that account already counts as an approver. AP-16."""
    return any(one.account == account for one in approval.assents)


def require_other_eyes(approval: Approval, account: Account) -> None:
    """
    Raises `Forbidden` if *account* started the execution and the step forbids self-approval.
    Rejecting is always allowed. AP-18.
    """
    if not approval.allow_self_approval and account.id == approval.owner_id:
        raise Forbidden("Who started the execution may not approve it; another approver must")


def items_hash(approval: Approval) -> str:
    """A digest of the rows as they stand: equal exactly if the rows are equal. AP-19."""
    return digest(canonical(rows_of(approval)))


def rows_of(approval: Approval) -> JsonObject:
    """The rows as they stand, by group name."""
    return {group.name: group.items for group in approval.groups}


def require_seen(approval: Approval, expected: str | None) -> None:
    """Raises `ItemsChanged` if *expected* is given and the rows have changed. AP-19."""
    if expected is not None and expected != items_hash(approval):
        raise ItemsChanged(
            "expectedItemsHash: the rows are not the ones you saw; read the approval again",
            approval.id,
        )


def due_reminders(approval: Approval, now: EpochMs) -> tuple[EpochMs, ...]:
    """The reminders that are due and were not sent yet. AP-20."""
    if approval.remind_at is None:
        return ()
    return tuple(at for at in approval.reminders[approval.reminded :] if at <= now)
