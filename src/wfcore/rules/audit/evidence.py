"""
Evidence: everything known of one execution, in one document that can be checked without the
service.

`audit.links` are the entries of the audit chain from the first to the last that concerns the
execution: its own entries in full, with the records stored with them; of all others only the hash,
so that nothing about other executions is disclosed. A document has exactly one text, and `hash`
covers all the rest of it, so that the change of a single byte is detected. AL-6, AL-7.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from wfcore.model.approval import Approval, ApprovalStatus
from wfcore.model.event import Anchor, ChainedEntry, ChainPoint
from wfcore.model.json import Json, JsonObject
from wfcore.rules.approval.edited_items import agreed_to
from wfcore.rules.audit.chain import link_hash
from wfcore.rules.canonical import canonical, digest

FORMAT = "wfcore-evidence/1"
DECIDED = frozenset({"approval.approve", "approval.reject", "approval.revise", "approval.expire"})


class Unfit(Exception):
    """The document is not as it was written; the message says what does not match."""


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


def read_evidence(text: str) -> Mapping[str, Any]:
    """
    A document written by `sealed`, after every check that needs nothing else.

    Raises `Unfit`.
    """
    try:
        document = json.loads(text)
        if document["format"] != FORMAT:
            raise Unfit(f"the format is not {FORMAT}")
        _check_chain(document)
        _check_decisions(document)
        _check_acts(document)
        rest = {name: value for name, value in document.items() if name != "hash"}
        if digest(canonical(rest)) != document["hash"]:
            raise Unfit("something outside the audit entries was changed: the hash is another one")
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise Unfit(f"it is no evidence of {FORMAT} ({error})") from None
    if _written(document) != text:
        raise Unfit("it is not written as wfcore writes it: something was added or moved")
    return document  # type: ignore[no-any-return]


def points_of(document: Mapping[str, Any]) -> Sequence[ChainPoint]:
    """
    The points of the chain that the document shows, beginning with the one before its first entry.
    """
    audit = document["audit"]
    points = [ChainPoint(audit["after"]["number"], audit["after"]["hash"])]
    for link in audit["links"]:
        entry = link if isinstance(link, str) else digest(canonical(link["entry"]))
        hash = link_hash(audit["chain"], points[-1], entry)
        points.append(ChainPoint(points[-1].number + 1, hash))
    return points


def _check_chain(document: Mapping[str, Any]) -> None:
    """
    Each entry is in its position, concerns the execution, and has the record that it names. AL-6.
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


ACTS = frozenset({"approved", "rejected", "revised", "expired", "delegated", "escalated"})
"""Of a history what an entry of the audit log tells of."""


def act_of(approval: Approval) -> JsonObject:
    """The last line of the history, for the record of its audit entry: `place` counts from 1."""
    last = approval.history[-1]
    act: JsonObject = {"at": last.at, "action": last.action, "by": last.by, "source": last.source}
    return {**act, "place": len(approval.history)}


def _check_acts(document: Mapping[str, Any]) -> None:
    """
    Who decided or let others decide, when, by which way and with which comment is what the audit
    entries say, in the head of an approval and in its history. AL-6.
    """
    told: dict[str, dict[int, tuple[Any, ...]]] = {}
    ends: dict[str, tuple[str, int]] = {}
    for link in document["audit"]["links"]:
        if isinstance(link, str) or "act" not in link.get("record", ()):
            continue
        entry, act = link["entry"], link["record"]["act"]
        lines = told.setdefault(entry["target"], {})
        lines[act["place"]] = (*_line(act)[:-1], entry["details"]["comment"])
        ends[entry["target"]] = link["record"]["status"], act["place"]
    for approval in document["approvals"]:
        lines = told.get(approval["id"], {})
        first = min(lines, default=None)
        for place, shown in enumerate(approval.get("history", ()), 1):
            known = lines.pop(place, None)
            unknown = first is not None and place >= first and shown["action"] in ACTS
            if (known is not None and _line(shown) != known) or (known is None and unknown):
                raise Unfit(f"line {place} in the history of approval {approval['id']} differs")
        if lines:
            raise Unfit(f"a line is missing in the history of approval {approval['id']}")
        status, place = ends.get(approval["id"], (None, 0))
        if status in (approval["status"],) and status != ApprovalStatus.PENDING:
            last = approval["history"][place - 1]
            head = [approval.get(name) for name in _HEAD]
            if head != [last.get(name) for name in ("at", "by", "source", "comment")]:
                raise Unfit(f"approval {approval['id']} was decided otherwise than its entry says")


_HEAD = ("decidedAt", "decidedBy", "decisionSource", "comment")


def _line(shown: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(shown.get(name) for name in ("at", "action", "by", "source", "comment"))


def _check_decisions(document: Mapping[str, Any]) -> None:
    """Rows and status match the last decision according to its audit entry. AL-6."""
    decided: dict[str, tuple[str, str]] = {}
    for link in document["audit"]["links"]:
        if isinstance(link, str) or link["entry"]["event"] not in DECIDED or "record" not in link:
            continue
        entry, record = link["entry"], link["record"]
        agreed = agreed_to(
            record["rowsAfter"], record.get("attachments", []), record.get("answers", {})
        )
        after = digest(canonical(agreed))
        if entry["details"]["itemsHash"] != after:
            raise Unfit(f"the rows of audit entry {link['number']} are not those of its itemsHash")
        decided[entry["target"]] = after, record["status"]
    for approval in document["approvals"]:
        rows = {group["name"]: group["items"] for group in approval["reviewableGroups"]}
        attached = approval.get("attachments", [])  # a document of an older release has none
        files = [[one["stepName"], one["name"], one["sha256"]] for one in attached]
        agreed = agreed_to(rows, files, approval.get("answers", {}))
        found, said = digest(canonical(agreed)), approval["status"]
        hash, status = decided.get(approval["id"], (found, said))
        if {found} != {approval["itemsHash"], hash}:
            raise Unfit(f"the rows of approval {approval['id']} are not those of its itemsHash")
        if status not in (said, ApprovalStatus.PENDING):
            raise Unfit(
                f"approval {approval['id']} was {status} with its last decision, not {said}"
            )


PROVED = (
    "the entries follow each other; who decided or delegated what, when, why, on which rows, is "
    "theirs"
)
NO_ANCHOR = "not shown: that the entries are those of a log (--anchor)"
NO_SHA256 = "not shown: definition, inputs, results, files, who was asked and when (--sha256)"
IN_LOG = "the entries are those of the anchor's log"
AS_WRITTEN = "the file is the one with that SHA-256, to the last byte"


def proved(*, anchored: bool, known: bool) -> Sequence[str]:
    """What a document that fits shows, and what it does not: anybody can work out its own hash."""
    return (PROVED, IN_LOG if anchored else NO_ANCHOR, AS_WRITTEN if known else NO_SHA256)


def anchor_misfit(document: Mapping[str, Any], anchor: Anchor) -> str | None:
    """Why a document that is consistent in itself does not belong to the log of *anchor*. AL-7."""
    if document["audit"]["chain"] != anchor.chain:
        return f"the anchor is of another log ({anchor.chain})"
    points = {point.number: point.hash for point in points_of(document)}
    if anchor.number not in points:
        shown = f"{min(points)} to {max(points)}"
        return f"it shows entries {shown}, not entry {anchor.number} of the anchor; write it anew"
    if points[anchor.number] != anchor.hash:
        return f"audit entry {anchor.number} is not the one of the anchor"
    return None
