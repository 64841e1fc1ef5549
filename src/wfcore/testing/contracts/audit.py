"""The promises of a store about the audit log: one chain for all writers, without gaps."""

import asyncio
from collections.abc import Sequence

import pytest

from wfcore.errors import Stale
from wfcore.model.event import AuditEntry, ChainedEntry, ChainPoint
from wfcore.ports.store import Store
from wfcore.rules.audit.chain import (
    BEGINNING,
    end_fault,
    entry_text,
    first_fault,
    read_entry,
)
from wfcore.rules.canonical import canonical, digest
from wfcore.testing import builders as make
from wfcore.testing.contracts.keeping import keep
from wfcore.testing.contracts.lists import at, ids
from wfcore.time import EpochMs

NEVER = EpochMs(0)


async def sound(store: Store) -> Sequence[ChainedEntry]:
    """Return all entries of the chain, verified from start to end."""
    async with store.view() as view:
        chain = await view.audit.chain()
        entries = await view.audit.chained(chain.start.number, 1_000)
    end, fault = first_fault(chain.id, chain.start, entries)
    assert fault is None
    assert end_fault(chain, end) is None
    return entries


def names(entries: Sequence[ChainedEntry]) -> list[str]:
    return [read_entry(entry.text).id for entry in entries]


class AuditContract:
    """The promises about the audit log. See `keeping.Handles` for the fixtures."""

    async def test_the_audit_log_is_read_on_from_an_entry(self, store: Store) -> None:
        """
        `list` returns entries from an instant on, behind a given id, oldest first, up to a limit.
        """
        await keep(store, *(make.audit_entry(f"aud_{n}", at=at(n)) for n in (3, 1, 2, 4)))
        async with store.view() as view:
            assert ids(await view.audit.list(at(2), None, 9)) == ["aud_2", "aud_3", "aud_4"]
            assert ids(await view.audit.list(at(0), "aud_2", 1)) == ["aud_3"]

    async def test_the_audit_log_is_read_from_its_end(self, store: Store) -> None:
        """The log is read by number, newest first, below a given number and up to a limit."""
        for n in (3, 1, 2):
            await keep(store, make.audit_entry(f"aud_{n}", at=at(n)))
        async with store.view() as view:
            found = await view.audit.newest(None, 9)
            assert ids([entry for _, entry in found]) == ["aud_2", "aud_1", "aud_3"]
            assert await view.audit.newest(found[0][0], 1) == found[1:2]
            assert await view.audit.newest(found[2][0], 9) == []

    async def test_entries_are_linked_in_the_order_of_commits(self, store: Store) -> None:
        """AL-1: each entry contains the hash of the entry before, computed over the stored text."""
        async with store.view() as view:
            chain = await view.audit.chain()
            assert (chain.start, chain.end) == (BEGINNING, BEGINNING)
        entries = [make.audit_entry(f"aud_{n}", details={"\u00e9": [n, None]}) for n in (3, 1, 2)]
        await keep(store, entries[0])
        await keep(store, *entries[1:])
        kept = await sound(store)
        assert [entry.text for entry in kept] == list(map(entry_text, entries))
        assert kept[0].previous == BEGINNING.hash
        assert [one.previous for one in kept[1:]] == [one.hash for one in kept[:-1]]
        async with store.view() as view:
            assert ids(await view.audit.list(NEVER, None, 9)) == ["aud_1", "aud_2", "aud_3"]
            assert names(await view.audit.chained(1, 1)) == ["aud_1"]

    async def test_a_unit_that_fails_leaves_no_gap(self, store: Store) -> None:
        """AL-1: an entry that was not committed gets no number."""
        await keep(store, make.audit_entry("aud_1"))
        with pytest.raises(Stale):
            await keep(store, make.audit_entry("aud_2"), make.audit_entry("aud_1"))
        async with store.unit() as unit:
            unit.append(make.audit_entry("aud_3"))
            assert ids(await unit.audit.list(NEVER, None, 9)) == ["aud_1", "aud_3"]
            kept = await unit.audit.chained(0, 9)
            assert names(kept) == ["aud_1", "aud_3"]
            assert ids([one for _, one in await unit.audit.newest(None, 1)]) == ["aud_3"]
            assert (await unit.audit.chain()).end == ChainPoint(kept[1].number, kept[1].hash)
        await keep(store, make.audit_entry("aud_4"))
        assert names(await sound(store)) == ["aud_1", "aud_4"]

    async def test_whoever_writes_writes_into_one_chain(self, store: Store, another: Store) -> None:
        """AL-1: entries of racing units from two handles form one chain."""
        both = (store, another)
        await asyncio.gather(
            *(keep(both[n % 2], make.audit_entry(f"aud_{n:02}")) for n in range(40))
        )
        assert sorted(names(await sound(another))) == [f"aud_{n:02}" for n in range(40)]

    async def test_a_record_is_kept_with_its_entry(self, store: Store) -> None:
        """AL-3: a record is kept unchanged for as long as its entry."""
        text = '{"rows":[1,2]}'
        async with store.unit() as unit:
            unit.append(make.audit_entry("aud_1", record_hash=digest(text)), text)
            unit.append(make.audit_entry("aud_2"))
            await unit.commit()
        assert [entry.record for entry in await sound(store)] == [text, None]

    async def test_entries_of_an_execution_are_found(self, store: Store) -> None:
        """
        The entries of an execution are found in the order of the chain, with their place in the
        chain.
        """
        mine = [make.audit_entry(f"aud_{n}", execution_id="e1") for n in (9, 2)]
        await keep(store, mine[0], make.audit_entry("aud_5", execution_id="e2"), mine[1])
        async with store.view() as view:
            found = await view.audit.of_execution("e1")
        assert [(entry.number, read_entry(entry.text)) for entry in found] == [
            (1, mine[0]),
            (3, mine[1]),
        ]

    async def test_old_entries_go_from_the_beginning(self, store: Store) -> None:
        """
        AL-5: the chain continues from the last deleted entry, even if all entries were deleted.
        """
        await keep(store, *(make.audit_entry(f"aud_{n}", at=at(n)) for n in range(6)))
        assert await store.trim(at(4), NEVER, NEVER, NEVER, 3) == 3
        assert names(await sound(store)) == ["aud_3", "aud_4", "aud_5"]
        assert await store.trim(at(9), NEVER, NEVER, NEVER, 9) == 3
        assert await sound(store) == []
        await keep(store, make.audit_entry("aud_6", at=at(6)))
        assert [entry.number for entry in await sound(store)] == [7]

    async def test_a_cut_is_an_entry_with_the_new_start(self, store: Store) -> None:
        """
        AL-9: the entry about a cut is added with its record in the same transaction, behind all
        others.
        """
        starts: list[ChainPoint] = []

        def trimmed(start: ChainPoint) -> tuple[AuditEntry, str]:
            starts.append(start)
            record = canonical({"number": start.number})
            return make.audit_entry("aud_cut", record_hash=digest(record)), record

        await keep(store, *(make.audit_entry(f"aud_{n}", at=at(n)) for n in range(4)))
        before = await sound(store)
        assert await store.trim(at(2), NEVER, NEVER, NEVER, 9, trimmed) == 2
        assert names(await sound(store)) == ["aud_2", "aud_3", "aud_cut"]
        assert starts == [before[1].point]
        async with store.view() as view:
            assert (await view.audit.chain()).start == starts[0]
        assert (await sound(store))[-1].record == canonical({"number": 2})
        assert await store.trim(at(2), NEVER, NEVER, NEVER, 9, trimmed) == 0
        assert len(starts) == 1

    async def test_a_young_entry_keeps_those_behind_it(self, store: Store) -> None:
        """AL-5: entries are deleted in commit order, so a gap is always an error."""
        await keep(store, *(make.audit_entry(f"aud_{n}", at=at(n)) for n in (1, 9, 2)))
        assert await store.trim(at(5), NEVER, NEVER, NEVER, 9) == 1
        assert names(await sound(store)) == ["aud_9", "aud_2"]
