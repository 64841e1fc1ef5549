"""
The chain of the audit log: each entry carries the hash of the entry before it. AL-1 to AL-5, AL-9.

    entry   the entry as canonical JSON, without what is null
    hash    SHA-256 of {"chain", "entry": SHA-256 of the entry, "number", "previous"}, canonical

Canonical JSON has its keys sorted, no blanks, and escapes for everything beyond ASCII; all hashes
are in hexadecimal. So an entry can be checked with any JSON library, and a reader who may not read
some of the entries follows the chain by their hashes. Decision 90.
"""

import json
import re
from collections.abc import Container, Iterable, Mapping

from attrs import asdict, astuple, evolve, fields, frozen

from wfcore.errors import InvalidInput
from wfcore.model.event import (
    Anchor,
    AuditChain,
    AuditEntry,
    AuditOutcome,
    ChainedEntry,
    ChainPoint,
)
from wfcore.model.json import Json, JsonObject
from wfcore.rules.canonical import canonical, digest
from wfcore.time import DurationMs, EpochMs

BEGINNING = ChainPoint(0, "0" * 64)
"""The point before the first entry of a chain."""


@frozen
class Fault:
    """The first entry of a chain that does not match: its number, its id if it has one, and why."""

    number: int
    id: str | None
    why: str


_WIRE = {
    one.name: re.sub("_(.)", lambda found: found[1].upper(), one.name) for one in fields(AuditEntry)
}


def entry_text(entry: AuditEntry) -> str:
    """The text of an entry as it is hashed and stored."""
    values: Mapping[str, Json] = asdict(entry, recurse=False)
    return canonical({_WIRE[name]: value for name, value in values.items() if value is not None})


def read_entry(text: str) -> AuditEntry:
    """The inverse of `entry_text`. Raises `ValueError` or `TypeError` for other texts."""
    values = json.loads(text)
    if not isinstance(values, dict):
        raise TypeError
    known = {name: values[wire] for name, wire in _WIRE.items() if wire in values}
    return AuditEntry(**{**known, "outcome": AuditOutcome(str(values.get("outcome")))})


def link_hash(chain: str, before: ChainPoint, entry_digest: str) -> str:
    """The hash of the entry with that digest, following *before*. AL-1."""
    link: JsonObject = {
        "chain": chain,
        "entry": entry_digest,
        "number": before.number + 1,
        "previous": before.hash,
    }
    return digest(canonical(link))


def extended(
    chain: AuditChain, entries: Iterable[tuple[str, str | None]]
) -> tuple[AuditChain, list[ChainedEntry]]:
    """
    *chain* extended by *entries* (each a text and a record), and the same entries in their places
    in the chain. AL-1.
    """
    end, linked = chain.end, list[ChainedEntry]()
    for text, record in entries:
        hash = link_hash(chain.id, end, digest(text))
        linked.append(ChainedEntry(end.number + 1, end.hash, hash, text, record))
        end = ChainPoint(end.number + 1, hash)
    return evolve(chain, end=end), linked


def first_fault(
    chain: str, before: ChainPoint, entries: Iterable[ChainedEntry]
) -> tuple[ChainPoint, Fault | None]:
    """
    The first of *entries* that is not as it was written, and the point up to which the chain holds;
    *before*: the point that the entries should follow. AL-2.
    """
    for entry in entries:
        why = _misfit(chain, before, entry)
        if why is not None:
            return before, Fault(entry.number, _id_of(entry.text), why)
        before = entry.point
    return before, None


def _misfit(chain: str, before: ChainPoint, entry: ChainedEntry) -> str | None:
    """The reason why *entry* cannot be the entry that was written after *before*."""
    expected = before.number + 1
    if entry.number < expected:
        return f"it was inserted: entry {expected} is the first that can be there"
    if entry.number > expected:
        last = entry.number - 1
        gone = f"entry {expected} was" if last == expected else f"entries {expected} to {last} were"
        return f"{gone} removed before it"
    own = link_hash(chain, ChainPoint(entry.number - 1, entry.previous), digest(entry.text))
    if own != entry.hash:
        return "its hash is not that of its content: it was changed, inserted or moved"
    if entry.previous != before.hash:
        return "it does not follow the entry before it: one of the two was exchanged or moved"
    return _record_misfit(entry)


def _record_misfit(entry: ChainedEntry) -> str | None:
    """
    The mismatch between an entry and the record stored with it; None if there is no mismatch. AL-3.
    """
    said = _member(entry.text, "recordHash")
    kept = digest(entry.record) if entry.record is not None else None
    if said == kept:
        return None
    return "the record that is kept with it (rows before and after) was changed or removed"


def _id_of(text: str) -> str | None:
    id = _member(text, "id")
    return id if isinstance(id, str) else None


def _member(text: str, name: str) -> Json:
    """A member of an entry's text, which may be any JSON value."""
    try:
        entry = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return entry.get(name) if isinstance(entry, dict) else None


TRIM = "audit.trim"
"""The event of the entry that retention adds with each cut. Its record is the new start. AL-9."""


def start_record(start: ChainPoint) -> JsonObject:
    """The record of the entry that says where the chain starts from now on."""
    return asdict(start)


def starts_named(entries: Iterable[ChainedEntry]) -> Iterable[ChainPoint]:
    """The starts that the entries of retention in *entries* name."""
    for entry in entries:
        if entry.record is not None and _member(entry.text, "event") == TRIM:
            number, hash = _member(entry.record, "number"), _member(entry.record, "hash")
            if isinstance(number, int) and isinstance(hash, str):
                yield ChainPoint(number, hash)


def start_fault(chain: AuditChain, named: Container[ChainPoint]) -> Fault | None:
    """
    The fault if the chain starts neither where it began nor at a cut that retention recorded; None
    if there is no fault. AL-9.
    """
    if chain.start == BEGINNING or chain.start in named:
        return None
    why = "it and what was before it were removed, and no entry of retention says so"
    return Fault(chain.start.number, None, why)


def end_fault(chain: AuditChain, walked: ChainPoint) -> Fault | None:
    """
    The fault if the entries end elsewhere than the store says; None if there is no fault. AL-2.
    """
    if walked == chain.end:
        return None
    if walked.number < chain.end.number:
        why = f"it and what followed were removed: the log ended with entry {chain.end.number}"
        return Fault(walked.number + 1, None, why)
    return Fault(walked.number, None, "the log is said to end otherwise than with this entry")


def anchor_fault(
    chain: AuditChain, anchor: Anchor, found: str | None, keep: DurationMs, now: EpochMs
) -> Fault | None:
    """
    The fault if the chain no longer contains the entry of *anchor*; None if there is no fault. The
    chain is already known to be consistent. *found*: the hash of the entry with the anchor's
    number; None if there is no such entry. *keep*: how long entries are retained. AL-4.
    """
    if anchor.chain != chain.id:
        return Fault(anchor.number, None, f"the anchor is of another log ({anchor.chain})")
    if anchor.number > chain.end.number:
        why = f"the anchor knows it, but the log ends with entry {chain.end.number}: what was "
        return Fault(anchor.number, None, why + "behind it was removed, or an older copy restored")
    if anchor.number < chain.start.number:
        if anchor.at < now - keep:
            return None
        why = "the anchor knows it, and it was removed before its time (WFCORE_KEEP_AUDIT)"
        return Fault(anchor.number, None, why)
    if found != anchor.hash:
        return Fault(anchor.number, None, "the anchor knows another entry of that number")
    return None


ANCHOR = "wfcore-audit-anchor/1"
_LARGEST = 2**63 - 1
"""The largest number of an entry in any store."""


def anchor_text(anchor: Anchor) -> str:
    """An anchor as JSON text, to be stored elsewhere."""
    return canonical({"format": ANCHOR, **asdict(anchor)})


def read_anchor(text: str) -> Anchor:
    """The inverse of `anchor_text`. Raises `InvalidInput`."""
    try:
        said = json.loads(text)
        anchor = Anchor(**said) if said.pop("format") == ANCHOR else None
        if anchor is None or tuple(map(type, astuple(anchor))) != (str, int, str, int):
            raise ValueError
        if not 0 <= anchor.number <= _LARGEST:
            raise ValueError
        return anchor
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        fix = "the file is no anchor of an audit log; wfcore audit anchor writes one"
        raise InvalidInput("--anchor", fix) from None
