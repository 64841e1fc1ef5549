"""
Signed approvals: the statement that an approver signs, and what an approval keeps of it. SR-1 to
SR-6.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from attrs import evolve

from wfcore.errors import NotConfirmed, PasskeyNeeded
from wfcore.model.access import OPERATOR, Caller, Guest, Unrestricted
from wfcore.model.approval import Approval
from wfcore.model.json import JsonObject
from wfcore.model.passkey import Assertion, Passkey, SignedReceipt
from wfcore.model.review import Assurance
from wfcore.rules.approval.agreement import items_hash
from wfcore.rules.limits import CONFIRMATION
from wfcore.time import EpochMs


def statement_of(
    after: Approval, comment: str | None, account_id: str, passkey: Passkey, at: EpochMs, nonce: str
) -> JsonObject:
    """
    The statement of an approver. *after*: the approval as the decision leaves it, with the rows and
    answers that are released. SR-1.
    """
    return {
        "approvalId": after.id,
        "decision": "approve",
        "itemsHash": items_hash(after),
        "answers": after.answers,
        "comment": comment,
        "accountId": account_id,
        "credentialId": passkey.id,
        "rpId": passkey.rp_id,
        "at": at,
        "nonce": nonce,
    }


def account_to_confirm(who: Caller | Unrestricted) -> str | None:
    """The account whose passkey may confirm a decision of *who*; None: only a page can. SR-6."""
    if isinstance(who, Guest):
        return who.account_id
    return who.account.id if who is not OPERATOR and who.key is None else None


def require_confirmable(approval: Approval, who: Caller | Unrestricted, page: str) -> None:
    """
    Raises `PasskeyNeeded` if the approval needs a passkey that *who* cannot have. *page*: the
    address at which people confirm. SR-6.
    """
    if approval.assurance is Assurance.PASSKEY and account_to_confirm(who) is None:
        raise PasskeyNeeded(f"This is approved with a passkey, by a person signed in at {page}")


def require_early(approval: Approval, passkey: Passkey) -> None:
    """
    Raises `NotConfirmed` for a passkey that was registered after the approval had opened: who takes
    over an account cannot approve what waits. SR-4.
    """
    if passkey.created_at >= approval.created_at:
        raise NotConfirmed("this passkey was registered after the question had been asked")


def receipt_of(
    statement: JsonObject, digests: Sequence[str], passkey: Passkey, assertion: Assertion
) -> SignedReceipt:
    """The receipt of one confirmed statement. SR-2."""
    return SignedReceipt(
        statement,
        tuple(digests),
        passkey.public_key,
        passkey.algorithm,
        passkey.created_at,
        assertion.authenticator_data,
        assertion.client_data,
        assertion.signature,
    )


def with_receipt(after: Approval, receipt: SignedReceipt) -> Approval:
    """The approval with the receipt of its last assent. SR-2."""
    *assents, assent = after.assents
    *history, entry = after.history
    return evolve(
        after,
        assents=(*assents, evolve(assent, receipt=receipt)),
        history=(*history, evolve(entry, receipt=receipt)),
    )


def misfit_of(receipt: SignedReceipt, entry: Mapping[str, Any], approval_id: str) -> str | None:
    """
    The first fact of a history's *entry* (on the wire) that is not the one that was signed; None:
    all are. SR-8.
    """
    said: Mapping[str, Any] = receipt.statement
    if said["approvalId"] != approval_id:
        return "it is of another approval"
    if said["comment"] != entry.get("comment"):
        return "the comment is not the signed one"
    if said["answers"] != (entry.get("answers") or {}):
        return "the answers are not the signed ones"
    if not said["at"] <= entry["at"] < said["at"] + CONFIRMATION:
        return "the time is not the signed one"
    return None
