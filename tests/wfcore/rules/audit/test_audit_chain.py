"""The chain of the audit log: whatever is changed in it, removed, inserted or moved is found."""

import hashlib
import json
from collections.abc import Sequence

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from wfcore.errors import InvalidInput
from wfcore.model.event import (
    Anchor,
    AuditChain,
    AuditEntry,
    AuditOutcome,
    ChainedEntry,
    ChainPoint,
)
from wfcore.rules.audit.chain import (
    BEGINNING,
    Fault,
    anchor_fault,
    anchor_text,
    end_fault,
    entry_text,
    extended,
    first_fault,
    read_anchor,
    read_entry,
)
from wfcore.rules.canonical import canonical, digest
from wfcore.testing import builders as make
from wfcore.testing.builders import NOW
from wfcore.testing.strategies.values import instants, payloads, texts
from wfcore.time import DAY, DurationMs, EpochMs

KEEP = DurationMs(DAY)
ENTRIES = st.builds(
    AuditEntry,
    texts(1),
    instants(),
    texts(),
    st.sampled_from(AuditOutcome),
    details=st.none() | payloads(),
    ip=st.none() | texts(),
    record_hash=st.none(),
)


def chain_of(entries: Sequence[AuditEntry], *, records: bool = True) -> list[ChainedEntry]:
    """*entries* in one chain; every other one has a record."""
    texts: list[tuple[str, str | None]] = []
    for number, entry in enumerate(entries):
        record = canonical({"rows": [number]}) if records and number % 2 else None
        said = evolve(entry, record_hash=digest(record) if record else None)
        texts.append((entry_text(said), record))
    return extended(AuditChain("c1", BEGINNING, BEGINNING), texts)[1]


def chained(before: ChainPoint, text: str, record: str | None = None) -> ChainedEntry:
    """An entry as it would stand after *before*."""
    (entry,) = extended(AuditChain("c1", BEGINNING, before), [(text, record)])[1]
    return entry


CHAINS = st.lists(ENTRIES, min_size=1, max_size=6).map(chain_of)


def fault_of(linked: Sequence[ChainedEntry], found: Sequence[ChainedEntry]) -> Fault | None:
    """What a check of *found* says where *linked* was written."""
    end, fault = first_fault("c1", BEGINNING, found)
    return fault or end_fault(AuditChain("c1", BEGINNING, linked[-1].point), end)


def swapped(text: str, at: int) -> str:
    """*text* with another character at some place."""
    at %= len(text)
    return text[:at] + ("x" if text[at] != "x" else "y") + text[at + 1 :]


@given(ENTRIES)
def test_an_entry_is_read_as_it_was_written(entry: AuditEntry) -> None:
    """AL-1: its text is canonical, and nothing is lost in it."""
    text = entry_text(entry)
    assert read_entry(text) == entry
    assert canonical(json.loads(text)) == text


def test_a_hash_is_what_the_documentation_says() -> None:
    """AL-1: anybody can work it out without this library."""
    entry = {"at": 1, "event": "e", "id": "aud_1", "outcome": "allowed", "accountId": "acc_1"}
    linked = chain_of([make.audit_entry("aud_1", at=1, event="e", account_id="acc_1")])[0]

    def sha256(value: object) -> str:
        text = json.dumps(value, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()

    link = {"chain": "c1", "entry": sha256(entry), "number": 1, "previous": "0" * 64}
    assert linked.hash == sha256(link)


def test_any_text_has_a_digest() -> None:
    """AL-1: half a surrogate pair, which JSON can name, is no reason not to keep an entry."""
    assert digest("é") == hashlib.sha256("é".encode()).hexdigest()
    assert digest("\ud800") == hashlib.sha256(b"\xed\xa0\x80").hexdigest()


@given(CHAINS)
def test_a_chain_fits(linked: list[ChainedEntry]) -> None:
    """AL-2: nothing is found in what was written, nor in what is left of it in front."""
    assert fault_of(linked, linked) is None
    assert first_fault("c1", linked[0].point, linked[1:])[1] is None


@given(CHAINS, st.data())
def test_whatever_is_changed_is_found(linked: list[ChainedEntry], data: st.DataObject) -> None:
    """AL-2, AL-3: any character of any part of any entry; the first that does not fit is named."""
    index = data.draw(st.integers(0, len(linked) - 1))
    entry = linked[index]
    at = data.draw(st.integers(0, 10_000))
    part = data.draw(st.sampled_from(("text", "hash", "previous", "record", "number")))
    old = getattr(entry, part)
    new = entry.number + at + 1 if part == "number" else "{}" if old is None else swapped(old, at)
    changed = evolve(entry, **{part: new})
    fault = fault_of(linked, [*linked[:index], changed, *linked[index + 1 :]])
    assert fault is not None
    assert fault.number in (entry.number, changed.number)


@given(CHAINS, st.data())
def test_an_entry_written_anew_does_not_fit_the_next(
    linked: list[ChainedEntry], data: st.DataObject
) -> None:
    """AL-2: its own hash is right for its place; the one behind it carries the old one."""
    index = data.draw(st.integers(0, len(linked) - 1))
    before = linked[index - 1].point if index else BEGINNING
    forged = chained(before, entry_text(make.audit_entry("aud_forged")))
    fault = fault_of(linked, [*linked[:index], forged, *linked[index + 1 :]])
    assert fault is not None
    assert fault.number == min(index + 2, len(linked))


@given(CHAINS, st.data())
def test_whatever_is_removed_is_found(linked: list[ChainedEntry], data: st.DataObject) -> None:
    """AL-2: in the middle, in front and at the end; a record without its entry, too."""
    index = data.draw(st.integers(0, len(linked) - 1))
    fault = fault_of(linked, [*linked[:index], *linked[index + 1 :]])
    assert fault is not None
    assert fault.number in (index + 1, index + 2)
    if linked[index].record is not None:
        bare = [*linked[:index], evolve(linked[index], record=None), *linked[index + 1 :]]
        assert fault_of(linked, bare) is not None


@given(CHAINS, st.data())
def test_whatever_is_inserted_is_found(linked: list[ChainedEntry], data: st.DataObject) -> None:
    """AL-2: an entry more, be it made well for its place, is not followed by the next one."""
    index = data.draw(st.integers(0, len(linked)))
    before = linked[index - 1].point if index else BEGINNING
    forged = chained(before, entry_text(make.audit_entry("aud_forged")))
    fault = fault_of(linked, [*linked[:index], forged, *linked[index:]])
    assert fault is not None
    assert fault.number in (index + 1, index + 2)


@given(CHAINS, st.data())
def test_whatever_is_moved_is_found(linked: list[ChainedEntry], data: st.DataObject) -> None:
    """AL-2: entries that were exchanged, with their numbers or leaving these in their order."""
    one, other = (data.draw(st.integers(0, len(linked) - 1)) for _ in range(2))
    if one == other:
        return
    moved = list(linked)
    moved[one], moved[other] = moved[other], moved[one]
    assert fault_of(linked, moved) is not None
    numbered = [evolve(entry, number=number) for number, entry in enumerate(moved, 1)]
    fault = fault_of(linked, numbered)
    assert fault is not None
    assert fault.number == min(one, other) + 1


@given(CHAINS, st.data())
def test_an_end_that_was_cut_off_well_is_seen_by_an_anchor(
    linked: list[ChainedEntry], data: st.DataObject
) -> None:
    """AL-4: the store's own note of the end is cut, too; an anchor from elsewhere knows better."""
    kept = data.draw(st.integers(1, len(linked)))
    last = linked[kept - 1]
    chain = AuditChain("c1", BEGINNING, last.point)
    assert end_fault(chain, last.point) is None
    anchor = Anchor("c1", linked[-1].number, linked[-1].hash, NOW)
    found = last.hash if kept == len(linked) else None
    assert (anchor_fault(chain, anchor, found, KEEP, NOW) is None) == (kept == len(linked))


def test_what_does_not_fit_is_told_in_words() -> None:
    """AL-2, AL-3: an auditor reads which entry it is, and what was done to it."""
    linked = chain_of([make.audit_entry(f"aud_{n}") for n in range(1, 6)])
    one, two, three, four, five = linked
    other = chained(ChainPoint(1, "f" * 64), two.text, two.record)
    for found, number, why in (
        ([one, three], 3, "entry 2 was removed before it"),
        ([one, four], 4, "entries 2 to 3 were removed before it"),
        ([one, two, two], 2, "it was inserted: entry 3 is the first that can be there"),
        (
            [one, evolve(two, hash="f" * 64)],
            2,
            "its hash is not that of its content: it was changed, inserted or moved",
        ),
        (
            [one, other],
            2,
            "it does not follow the entry before it: one of the two was exchanged or moved",
        ),
        (
            [one, evolve(two, record="{}")],
            2,
            "the record that is kept with it (rows before and after) was changed or removed",
        ),
    ):
        _, fault = first_fault("c1", BEGINNING, found)
        assert fault == Fault(number, f"aud_{number}", why)
    assert first_fault("c1", BEGINNING, linked) == (five.point, None)


@pytest.mark.parametrize("text", ["", "{", "[]", "7", '"id"', "null", '{"id": 7}', "[" * 100_000])
def test_any_text_may_stand_in_the_place_of_an_entry(text: str) -> None:
    """AL-2: who wrote it knew how hashes are made; it is told where it is, without an id."""
    entry = chained(BEGINNING, text, record="{}")
    why = "the record that is kept with it (rows before and after) was changed or removed"
    assert first_fault("c1", BEGINNING, [entry]) == (BEGINNING, Fault(1, None, why))


def test_an_anchor_that_is_not_met_says_why() -> None:
    """AL-4: another log, another entry, an end that was cut off, a beginning cut off too soon."""
    point = ChainPoint(4, "a" * 64)
    chain = AuditChain("c1", point, ChainPoint(7, "b" * 64))
    for anchor, found, why in (
        (Anchor("c2", 5, "c" * 64, NOW), "c" * 64, "the anchor is of another log (c2)"),
        (
            Anchor("c1", 8, "c" * 64, NOW),
            None,
            "the anchor knows it, but the log ends with entry 7: what was behind it was removed, "
            "or an older copy restored",
        ),
        (
            Anchor("c1", 3, "c" * 64, EpochMs(NOW - KEEP)),
            None,
            "the anchor knows it, and it was removed before its time (WFCORE_KEEP_AUDIT)",
        ),
        (
            Anchor("c1", 5, "c" * 64, NOW),
            "d" * 64,
            "the anchor knows another entry of that number",
        ),
    ):
        told = anchor_fault(chain, anchor, found, KEEP, NOW)
        assert told == Fault(anchor.number, None, why)
    assert anchor_fault(chain, Anchor("c1", 4, point.hash, NOW), point.hash, KEEP, NOW) is None
    old = Anchor("c1", 3, "c" * 64, EpochMs(NOW - KEEP - 1))
    assert anchor_fault(chain, old, None, KEEP, NOW) is None


def test_an_end_that_is_not_the_one_is_named() -> None:
    """AL-2: the first entry that is missing, or the last one that is not what it should be."""
    chain = AuditChain("c1", BEGINNING, ChainPoint(7, "a" * 64))
    assert end_fault(chain, chain.end) is None
    gone = "it and what followed were removed: the log ended with entry 7"
    assert end_fault(chain, ChainPoint(3, "b" * 64)) == Fault(4, None, gone)
    other = "the log is said to end otherwise than with this entry"
    assert end_fault(chain, ChainPoint(7, "b" * 64)) == Fault(7, None, other)
    assert end_fault(chain, ChainPoint(8, "b" * 64)) == Fault(8, None, other)


def test_an_anchor_knows_its_entry_and_its_log() -> None:
    """AL-4: another log, another entry of that number and a beginning cut too soon are faults."""
    linked = chain_of([make.audit_entry(f"aud_{n}") for n in range(3)])
    chain = AuditChain("c1", linked[1].point, linked[2].point)
    anchor = Anchor("c1", 3, linked[2].hash, NOW)
    assert anchor_fault(chain, anchor, linked[2].hash, KEEP, NOW) is None
    assert anchor_fault(chain, anchor, "0" * 64, KEEP, NOW) is not None
    assert anchor_fault(chain, evolve(anchor, chain="c2"), linked[2].hash, KEEP, NOW) is not None
    early = Anchor("c1", 1, linked[0].hash, NOW)
    assert anchor_fault(chain, early, None, KEEP, NOW) is not None
    assert anchor_fault(chain, early, None, KEEP, NOW + DAY + 1) is None


def test_an_anchor_is_read_as_it_was_written() -> None:
    """AL-4: any other file is refused with the command that writes one."""
    anchor = Anchor("c1", 3, "ab" * 32, NOW)
    assert read_anchor(anchor_text(anchor)) == anchor
    said = json.loads(anchor_text(anchor))
    wrong = ({"at": "x"}, {"number": True}, {"number": -1}, {"number": 2**63}, {"hash": 5})
    others = (json.dumps({**said, **one}) for one in wrong)
    other_format = anchor_text(anchor).replace("anchor/1", "anchor/2")
    fix = "the file is no anchor of an audit log; wfcore audit anchor writes one"
    for text in ("", "[]", "{}", other_format, *others):
        with pytest.raises(InvalidInput) as refused:
            read_anchor(text)
        assert (refused.value.field, refused.value.fix) == ("--anchor", fix)
    for number in (0, 2**63 - 1):
        assert read_anchor(anchor_text(evolve(anchor, number=number))).number == number
