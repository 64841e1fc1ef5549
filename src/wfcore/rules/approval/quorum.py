"""
How many must agree, and to what: approvals that need more than one approver. AP-15 to AP-19.

An assent is to the rows as they stand. So whoever changes them begins the count anew, and what
is released at the end is what everybody who counts has agreed to.
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
    Who agrees once *assent* is there: nobody else where it *changed* the rows. AP-15, AP-17.

    Raises `AlreadyDecided` where the same approver has agreed to these rows before, unless
    that one now decides *alone*. AP-16.
    """
    if changed:
        return (assent,)
    if has_assented(approval, assent.account) and not alone:
        left = approval.required_approvals - len(approval.assents)
        raise AlreadyDecided(f"You have approved this already; it needs {left} more", approval.id)
    others = (one for one in approval.assents if one.account != assent.account)
    return (*others, assent)


def has_assented(approval: Approval, account: str) -> bool:
    """Whether that account's assent counts already. AP-16."""
    return any(one.account == account for one in approval.assents)


def require_other_eyes(approval: Approval, account: Account) -> None:
    """
    Raises `Forbidden` where whoever started the execution may not approve it, and that is
    *account*. Rejecting is always open. AP-18.
    """
    if not approval.allow_self_approval and account.id == approval.owner_id:
        raise Forbidden("Who started the execution may not approve it; another approver must")


def items_hash(approval: Approval) -> str:
    """A digest of the rows as they stand: two are the same exactly when the rows are. AP-19."""
    return digest(canonical(rows_of(approval)))


def rows_of(approval: Approval) -> JsonObject:
    """The rows as they stand, by the names of their groups."""
    return {group.name: group.items for group in approval.groups}


def require_seen(approval: Approval, expected: str | None) -> None:
    """Raises `ItemsChanged` where *expected* is given and the rows are other ones. AP-19."""
    if expected is not None and expected != items_hash(approval):
        raise ItemsChanged(
            "expectedItemsHash: the rows are not the ones you saw; read the approval again",
            approval.id,
        )


def due_reminders(approval: Approval, now: EpochMs) -> tuple[EpochMs, ...]:
    """The reminders whose time has come and which nobody has told yet. AP-20."""
    if approval.remind_at is None:
        return ()
    return tuple(at for at in approval.reminders[approval.reminded :] if at <= now)
