"""
Evidence: all records of one execution, in one document that can be checked without the service.

`audit.links` are the entries of the audit chain from the first to the last that concerns the
execution. The execution's own entries are complete and include their stored records; of all other
entries only the hash is shown, so that nothing about other executions is disclosed. A document has
exactly one text, and `hash` covers all other fields, so that the change of a single byte is
detected. AL-6, AL-7.
"""

import json
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from attrs import frozen

from wfcore.model.approval import Approval, ApprovalStatus
from wfcore.model.event import Anchor, ChainedEntry, ChainPoint
from wfcore.model.json import Json, JsonObject
from wfcore.model.review import Assurance
from wfcore.rules.approval.agreement import agreed_to, hash_of
from wfcore.rules.approval.receipts import misfit_of
from wfcore.rules.audit.chain import link_hash
from wfcore.rules.canonical import canonical, digest
from wfcore.rules.receipt import Verifies, read_receipt, receipt_document, receipt_fault

FORMAT = "wfcore-evidence/1"
DECIDED = frozenset({"approval.approve", "approval.reject", "approval.revise", "approval.expire"})
TOLD = DECIDED | {"approval.delegate", "approval.escalate"}


class Unfit(Exception):
    """Raised when a document is not as it was written; the message names the mismatch."""


def links_of(execution_id: str, entries: Sequence[ChainedEntry]) -> list[Json]:
    """The entries of a section of the chain, in the document's form."""
    return [_link(execution_id, entry) for entry in entries]


def _link(execution_id: str, entry: ChainedEntry) -> Json:
    shown = json.loads(entry.text)
    if shown.get("executionId") != execution_id:
        return digest(entry.text)
    record = {"record": json.loads(entry.record)} if entry.record is not None else {}
    return {
        "number": entry.number,
        "previous": entry.previous,
        "hash": entry.hash,
        "entry": shown,
        **record,
    }


def sealed(document: JsonObject) -> str:
    """The text of a document with its hash. A document has exactly one text."""
    whole = {**document, "format": FORMAT}
    return _written({**whole, "hash": digest(canonical(whole))})


def _written(document: Any) -> str:
    return json.dumps(document, sort_keys=True, indent=1) + "\n"


def _never(key: bytes, algorithm: int, signature: bytes, signed: bytes) -> bool:
    return False


def read_evidence(text: str, verifies: Verifies = _never) -> Mapping[str, Any]:
    """
    A document written by `sealed`, after every check that needs the document alone. *verifies*:
    checks the signatures of receipts; by default no signature fits.

    Raises `Unfit`.
    """
    try:
        document = json.loads(text)
        if document["format"] != FORMAT:
            raise Unfit(f"the format is not {FORMAT}")
        _check_chain(document)
        _check_approvals(document)
        _check_decisions(document)
        _check_acts(document)
        _check_receipts(document, verifies)
        rest = {name: value for name, value in document.items() if name != "hash"}
        if digest(canonical(rest)) != document["hash"]:
            raise Unfit("something outside the audit entries was changed: the hash is another one")
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise Unfit(f"it is no evidence of {FORMAT} ({error})") from None
    if _written(document) != text:
        raise Unfit("it is not written as wfcore writes it: something was added or moved")
    return document  # type: ignore[no-any-return]


def points_of(document: Mapping[str, Any]) -> Sequence[ChainPoint]:
    """The points of the chain in the document, beginning with the point before the first entry."""
    audit = document["audit"]
    points = [ChainPoint(audit["after"]["number"], audit["after"]["hash"])]
    for link in audit["links"]:
        entry = link if isinstance(link, str) else digest(canonical(link["entry"]))
        hash = link_hash(audit["chain"], points[-1], entry)
        points.append(ChainPoint(points[-1].number + 1, hash))
    return points


def _check_chain(document: Mapping[str, Any]) -> None:
    """
    Check that each entry is in its position, concerns the execution, and has the record that it
    names. AL-6.
    """
    points = points_of(document)
    for before, after, link in zip(points, points[1:], document["audit"]["links"], strict=False):
        if isinstance(link, str):
            continue
        name = f"audit entry {after.number}"
        if (link["number"], link["previous"], link["hash"]) != (
            after.number,
            before.hash,
            after.hash,
        ):
            raise Unfit(f"{name} was changed or moved, or one before it was: its hash differs")
        if link["entry"]["executionId"] != document["executionId"]:
            raise Unfit(f"{name} is of another execution")
        record = digest(canonical(link["record"])) if "record" in link else None
        if link["entry"].get("recordHash") != record:
            raise Unfit(f"the record of {name} was changed, added or removed")
    end = document["audit"]["end"]
    if ChainPoint(end["number"], end["hash"]) != points[-1]:
        raise Unfit("an audit entry of another execution was changed, added or removed")


def _check_approvals(document: Mapping[str, Any]) -> None:
    """
    Check that no approval is in the document twice, and that every approval is there that an entry
    with a record concerns, unless the execution was deleted with all of its approvals. AL-6.
    """
    ids = [approval["id"] for approval in document["approvals"]]
    for id, times in Counter(ids).items():
        if times > 1:
            raise Unfit(f"approval {id} is there {times} times")
    if not ids and document.get("execution") is None:
        return
    for link in document["audit"]["links"]:
        if isinstance(link, str) or link["entry"]["event"] not in TOLD or "record" not in link:
            continue
        if link["entry"]["target"] not in ids:
            raise Unfit(f"the approval of audit entry {link['number']} is missing")


ACTS = frozenset({"approved", "rejected", "revised", "expired", "delegated", "escalated"})
"""The actions in an approval's history that have an entry in the audit log."""


def act_of(approval: Approval) -> JsonObject:
    """The last line of the history, for the record of its audit entry. `place` counts from 1."""
    last = approval.history[-1]
    act: JsonObject = {"at": last.at, "action": last.action, "by": last.by, "source": last.source}
    if last.receipt is not None:
        act = {**act, "receiptHash": digest(canonical(receipt_document(last.receipt)))}
    return {**act, "place": len(approval.history)}


def _check_acts(document: Mapping[str, Any]) -> None:
    """
    Check that the person, time, channel, comment and rows of each decision and delegation are the
    same in the audit entries, in the head of the approval and in its history. AL-6.
    """
    told = _acts(document)
    for approval in document["approvals"]:
        id, history = approval["id"], approval.get("history", ())
        lines = told.get(id, {})
        for place, shown in enumerate(history, 1):
            known = lines.get(place)
            unknown = bool(lines) and place >= min(lines) and shown["action"] in ACTS
            if _differs(shown, known) if known else unknown:
                raise Unfit(f"line {place} in the history of approval {id} differs")
        if lines and max(lines) > len(history):
            raise Unfit(f"a line is missing in the history of approval {id}")
        ended = _ended(approval, lines)
        if ended is not None and [approval.get(name) for name in _HEAD] != ended:
            raise Unfit(f"approval {id} was decided otherwise than its entry says")


def untold(document: Mapping[str, Any]) -> str | None:
    """
    The first decision or delegation without an audit entry in the document: retention has deleted
    the entry, or the line was made up. AL-6.
    """
    told = _acts(document)
    for approval in document["approvals"]:
        lines = told.get(approval["id"], {})
        for place, shown in enumerate(approval.get("history", ()), 1):
            if shown["action"] in ACTS and place not in lines:
                who = f"line {place} in the history of approval {approval['id']}"
                return f"no audit entry in it tells of {who} ({shown['action']})"
        if approval["status"] in _DECISIONS and _ended(approval, lines) is None:
            return f"no audit entry in it tells who decided approval {approval['id']}"
    return None


_DECISIONS = (ApprovalStatus.APPROVED, ApprovalStatus.REJECTED, ApprovalStatus.REVISED)


def _acts(document: Mapping[str, Any]) -> Mapping[str, Mapping[int, Mapping[str, Any]]]:
    """The links whose records concern a line of a history, by approval and place."""
    told: dict[str, dict[int, Mapping[str, Any]]] = {}
    for link in document["audit"]["links"]:
        if not isinstance(link, str) and "act" in link.get("record", ()):
            lines = told.setdefault(link["entry"]["target"], {})
            lines[link["record"]["act"]["place"]] = link
    return told


def _ended(approval: Mapping[str, Any], lines: Mapping[int, Mapping[str, Any]]) -> Any:
    """
    The head of the approval according to the entry of its decision; None if there is no such entry.
    """
    last = lines[max(lines)] if lines else None
    if last is None or last["record"]["status"] != approval["status"]:
        return None
    if approval["status"] == ApprovalStatus.PENDING:
        return None
    at, _, *rest = _line(last["record"]["act"])
    return [at, *rest[:-1], last["entry"]["details"]["comment"]]


def _differs(shown: Mapping[str, Any], link: Mapping[str, Any]) -> bool:
    """Whether a line of a history differs from its entry."""
    record = link["record"]
    if _line(shown) != (*_line(record["act"])[:-1], link["entry"]["details"]["comment"]):
        return True
    receipt = shown.get("receipt")
    hash = None if receipt is None else digest(canonical(receipt))
    if hash != record["act"].get("receiptHash"):
        return True
    rows = [shown.get("rowsBefore"), shown.get("rowsAfter")]
    said = [record.get("rowsBefore"), record.get("rowsAfter")]
    if rows == [None, None]:
        return canonical(said[0]) != canonical(said[1])
    return canonical(rows) != canonical(said)


_HEAD = ("decidedAt", "decidedBy", "decisionSource", "comment")


def _line(shown: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(shown.get(name) for name in ("at", "action", "by", "source", "comment"))


def _check_decisions(document: Mapping[str, Any]) -> None:
    """Check that rows and status match the last decision according to its audit entry. AL-6."""
    decided: dict[str, tuple[str, str]] = {}
    for link in document["audit"]["links"]:
        if isinstance(link, str) or link["entry"]["event"] not in DECIDED or "record" not in link:
            continue
        entry, record = link["entry"], link["record"]
        agreed = agreed_to(
            record["rowsAfter"], record.get("attachments", []), record.get("answers", {})
        )
        after = hash_of(agreed)
        if entry["details"]["itemsHash"] != after:
            raise Unfit(f"the rows of audit entry {link['number']} are not those of its itemsHash")
        decided[entry["target"]] = after, record["status"]
    for approval in document["approvals"]:
        rows = {group["name"]: group["items"] for group in approval["reviewableGroups"]}
        files = [[one["stepName"], one["name"], one["sha256"]] for one in approval["attachments"]]
        agreed = agreed_to(rows, files, approval.get("answers", {}))
        found, said = hash_of(agreed), approval["status"]
        hash, status = decided.get(approval["id"], (found, said))
        if {found} != {approval["itemsHash"], hash}:
            raise Unfit(f"the rows of approval {approval['id']} are not those of its itemsHash")
        if status not in (said, ApprovalStatus.PENDING):
            raise Unfit(
                f"approval {approval['id']} was {status} with its last decision, not {said}"
            )


def _check_receipts(document: Mapping[str, Any], verifies: Verifies) -> None:
    """
    Check that each receipt fits itself, its line of the history, the account of the line's audit
    entry and the rows; and that a signed release has a receipt for each of its people. SR-8.
    """
    acts = _acts(document)
    for approval in document["approvals"]:
        id, signed = approval["id"], approval.get("assurance") == Assurance.PASSKEY
        for place, entry in enumerate(approval.get("history", ()), 1):
            name, receipt = f"line {place} in the history of approval {id}", entry.get("receipt")
            if receipt is None and signed and entry["action"] == "approved":
                raise Unfit(f"{name} has no receipt")
            if receipt is None:
                continue
            link = acts.get(id, {}).get(place)
            fault = _receipt_fault(receipt, entry, id, link, verifies)
            if fault is not None:
                raise Unfit(f"the receipt of {name} does not fit: {fault}")
        _check_release(approval, signed)


def _receipt_fault(
    written: Any,
    entry: Mapping[str, Any],
    approval_id: str,
    link: Mapping[str, Any] | None,
    verifies: Verifies,
) -> str | None:
    try:
        receipt = read_receipt(written)
    except ValueError as error:
        return str(error)
    said = receipt.statement
    fault = receipt_fault(receipt, verifies) or misfit_of(receipt, entry, approval_id)
    if fault is None and link is not None:
        who = str(link["entry"].get("accountId"))
        if not who.startswith(BY_EMAIL) and said["accountId"] != who:
            fault = "the person is not the one who signed"
        elif said["itemsHash"] != link["entry"]["details"]["itemsHash"]:
            fault = "the rows are not the signed ones"
    return fault


BY_EMAIL = "mailto:"
"""The beginning of the identity of a person with a personal link; see `Guest`."""


def _check_release(approval: Mapping[str, Any], signed: bool) -> None:
    """Check that the counted receipts are of the released rows, one for each person. SR-8."""
    id, receipts = approval["id"], approval.get("receipts", ())
    known = [entry.get("receipt") for entry in approval.get("history", ())]
    people = {receipt["statement"]["accountId"] for receipt in receipts}
    for receipt in receipts:
        if receipt not in known:
            raise Unfit(f"a receipt of approval {id} is not in its history")
        if receipt["statement"]["itemsHash"] != approval["itemsHash"]:
            raise Unfit(f"the released rows of approval {id} are not the signed ones")
    released = signed and approval["status"] == ApprovalStatus.APPROVED
    if released and not len(people) == len(receipts) >= approval["requiredApprovals"]:
        raise Unfit(f"approval {id} lacks the receipt of a person")


@frozen
class SigningKeyUse:
    """A key that signed a receipt in a document: whose account, and the key itself."""

    account_id: str
    credential_id: str
    public_key: str


def keys_in(document: Mapping[str, Any]) -> Sequence[SigningKeyUse]:
    """The keys that signed receipts in a document, each once. SR-8."""
    receipts = (
        entry["receipt"]
        for approval in document["approvals"]
        for entry in approval.get("history", ())
        if entry.get("receipt") is not None
    )
    found = (
        SigningKeyUse(one["statement"]["accountId"], one["statement"]["credentialId"], key)
        for one in receipts
        if (key := one["publicKey"])
    )
    return list(dict.fromkeys(found))


def key_lines(used: Sequence[SigningKeyUse], trusted: Collection[tuple[str, str]]) -> Sequence[str]:
    """
    For each key that signed, whether *trusted* (pairs of account and public key, known from
    elsewhere) has it. SR-8.
    """
    return [
        f"signed by {one.account_id} with key {one.credential_id}: "
        + (TRUSTED if (one.account_id, one.public_key) in trusted else ONLY_HERE)
        for one in used
    ]


TRUSTED = "key named by --trust"
ONLY_HERE = "key known only from this file (--trust)"


PROVED = (
    "the entries follow each other; who decided or delegated what, when, why, on which rows, is "
    "theirs"
)
NO_ANCHOR = "not shown: that the entries are those of a log (--anchor)"
NO_SHA256 = "not shown: definition, inputs, results, files, who was asked and when (--sha256)"
IN_LOG = "the entries are those of the anchor's log"
AS_WRITTEN = "the file is the one with that SHA-256, to the last byte"


def proved(*, anchored: bool, known: bool, gap: str | None = None) -> Sequence[str]:
    """
    The facts that a matching document proves, and the facts that it does not prove, because
    everybody can compute a hash anew. *gap*: the result of `untold`.
    """
    decisions = PROVED if gap is None else f"not shown by the entries: who decided ({gap})"
    return (decisions, IN_LOG if anchored else NO_ANCHOR, AS_WRITTEN if known else NO_SHA256)


def anchor_misfit(document: Mapping[str, Any], anchor: Anchor) -> str | None:
    """The reason why a consistent document does not belong to the log of *anchor*. AL-7."""
    if document["audit"]["chain"] != anchor.chain:
        return f"the anchor is of another log ({anchor.chain})"
    points = {point.number: point.hash for point in points_of(document)}
    if anchor.number not in points:
        shown = f"{min(points)} to {max(points)}"
        return f"it shows entries {shown}, not entry {anchor.number} of the anchor; write it anew"
    if points[anchor.number] != anchor.hash:
        return f"audit entry {anchor.number} is not the one of the anchor"
    return None
