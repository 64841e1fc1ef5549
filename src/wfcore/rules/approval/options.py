"""
What an approver may do besides yes and no, as far as the step allows it: ask for changes, let
somebody else decide, and change what was changed before. AP-12, AP-31, AP-36.
"""

from attrs import evolve

from wfcore.errors import Forbidden, InvalidInput, NoMoreRevisions
from wfcore.model.approval import Approval, Delegation, HistoryEntry
from wfcore.rules.limits import MAX_HISTORY, MAX_HISTORY_ROWS
from wfcore.rules.mailbox import is_name, same_name
from wfcore.time import EpochMs


def require_revisable(approval: Approval, comment: str | None) -> None:
    """
    Raises `InvalidInput` if the step takes no revisions, or nobody says what to change;
    `NoMoreRevisions` after the last one. AP-31.
    """
    if approval.revise_to is None:
        raise InvalidInput("decision", "revise needs a step that says onRevise; approve or reject")
    if not (comment or "").strip():
        raise InvalidInput("comment", "is required: say what is to be changed")
    if approval.revisions_left < 1:
        raise NoMoreRevisions(
            f"Changes were asked for {approval.round - 1} times; approve or reject", approval.id
        )


def require_room(approval: Approval) -> None:
    """Raises `Forbidden` for what could be done for ever, once the history is full. AP-12."""
    sides = (side for one in approval.history for side in (one.rows_before, one.rows_after))
    rows = sum(len(group) for side in sides if side for group in side.values())
    if len(approval.history) >= MAX_HISTORY or rows >= MAX_HISTORY_ROWS:
        raise Forbidden("This was changed too often: approve it as it stands, or reject it")


def delegated(
    approval: Approval, to: str, until: EpochMs, entry: HistoryEntry, account: str
) -> Approval:
    """
    With the delegation, which takes the place of an earlier one of the same person. AP-36.

    Raises `Forbidden` where the step does not allow it, `InvalidInput` for a wrong person or time.
    """
    to, by = to.strip(), entry.by or ""
    if not approval.delegable:
        raise Forbidden("Approvers of this may not let others decide for them")
    if not is_name(to) or same_name(to) in (same_name(by), same_name(account)):
        raise InvalidInput("to", "must be the email or account id of somebody else")
    if not entry.at < until <= approval.expires_at:
        raise InvalidInput("until", "must be in the future, and not after the approval expires")
    one = Delegation(by, account, to, until)
    others = tuple(known for known in approval.delegations if known.account != account)
    return evolve(
        approval,
        delegations=(*others, one),
        history=(*approval.history, evolve(entry, comment=f"to {to}")),
    )
