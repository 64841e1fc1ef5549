"""The audit log in SQLite: one chain for all processes, and no row can be changed unseen."""

import sqlite3
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest
from attrs import evolve, frozen

from adapters_store.sql.audit import Audit
from adapters_store.sql.sealing import AeadSealer, new_key
from adapters_store.sqlite.audit import ADD_AUDIT, link
from adapters_store.sqlite.store import SqliteStore
from wfcore.model.event import AuditChain, ChainPoint
from wfcore.ports.store import Store
from wfcore.rules.audit.chain import BEGINNING, entry_text
from wfcore.rules.canonical import digest
from wfcore.testing import builders as make
from wfcore.testing.contracts.keeping import keep
from wfcore.testing.fakes import CountingIds, ManualClock
from wfcore.time import DAY, EpochMs
from wfcore.usecases.audit.auditing import trimmed
from wfcore.usecases.audit.evidence import AuditCheck, audit_anchor, check_audit
from wfcore.usecases.services import Policy

from .conftest import Start, write_database

APPEND = """
import asyncio, sys
from pathlib import Path
from adapters_store.sqlite.store import SqliteStore
from wfcore.testing import builders as make

async def main():
    store = await SqliteStore.open(Path(sys.argv[1]))
    async def one(client):
        for number in range(20):
            async with store.unit() as unit:
                unit.append(make.audit_entry(f"aud_{sys.argv[2]}_{client}_{number}"))
                await unit.commit()
    await asyncio.gather(*(one(client) for client in range(4)))
    await store.close()
asyncio.run(main())
"""


@frozen
class Some:
    """As much of the services as a check of the log needs."""

    store: Store
    clock: ManualClock = ManualClock()
    policy: Policy = Policy()
    ids: CountingIds = CountingIds()


async def cut(store: Store, before: int, limit: int = 9) -> int:
    """As retention does it."""
    never, made = EpochMs(0), partial(trimmed, Some(store))
    return await store.trim(EpochMs(before), never, never, never, limit, made)  # type: ignore[arg-type]


async def checked(store: Store) -> AuditCheck:
    return await check_audit(Some(store))  # type: ignore[arg-type]


async def fill(store: Store) -> None:
    """Six entries: two have gone by retention, which the fourth says; the fifth has rows."""
    record = '{"rows":[1]}'
    await keep(store, *(make.audit_entry(f"aud_{n}", at=EpochMs(n)) for n in range(3)))
    assert await cut(store, 2) == 2
    async with store.unit() as unit:
        kept = make.audit_entry("aud_4", at=EpochMs(4), record_hash=digest(record))
        unit.append(kept, record)
        unit.append(make.audit_entry("aud_5", at=EpochMs(5), execution_id="e1"))
        await unit.commit()


COLUMNS = ("previous", "hash", "body", "record")
CHANGES = (
    *(
        f"UPDATE audit SET {column} = replace({column}, substr({column}, 9, 1), 'x')"
        f" WHERE number = {number}"
        for number in range(3, 7)
        for column in COLUMNS
        if column != "record" or number == 5
    ),
    *(f"DELETE FROM audit WHERE number = {number}" for number in range(3, 7)),
    "DELETE FROM audit WHERE number > 4",
    "DELETE FROM audit",
    *(f"UPDATE audit SET number = {number} WHERE number = 6" for number in (1, 7, 99)),
    *(f"UPDATE audit SET record = {text} WHERE number = 6" for text in ("'{}'", "''")),
    "UPDATE audit SET record = NULL WHERE number = 5",
    "UPDATE audit SET body = body || ' ' WHERE number = 4",
    "UPDATE audit SET body = '' WHERE number = 4",
    "UPDATE audit SET body = '[5]' WHERE number = 4",
    """UPDATE audit SET body = json_set(body, '$.x', 1) WHERE number = 4""",
    *(
        f"INSERT INTO audit (number, previous, hash, body) SELECT {number}, previous, hash,"
        " json_set(body, '$.id', 'aud_9') FROM audit WHERE number = 3"
        for number in (1, 2, 7, 99)
    ),
    "UPDATE audit SET number = 99 WHERE number = 3; UPDATE audit SET number = 3 WHERE number = 4;"
    "UPDATE audit SET number = 4 WHERE number = 99",
    *(f"UPDATE audit SET {column} = x'00ff' WHERE number = 4" for column in COLUMNS),
    *(
        "PRAGMA ignore_check_constraints = 1; INSERT INTO audit (number, previous, hash, body)"
        f" SELECT {number}, previous, hash, json_set(body, '$.id', 'aud_9')"
        " FROM audit WHERE number = 3"
        for number in (0, -7)
    ),
    "DELETE FROM audit_chain",
    *(f"UPDATE audit_chain SET {column} = 'x'" for column in ("start_number", "end_number")),
    *(
        f"UPDATE audit_chain SET {column} = {column} || '1'"
        for column in ("id", "start_hash", "end_hash")
    ),
    *(
        f"UPDATE audit_chain SET {column} = {column} {by}"
        for column in ("start_number", "end_number")
        for by in ("+ 1", "- 1")
    ),
)


@pytest.mark.parametrize("change", CHANGES)
async def test_any_change_of_the_table_is_found(store: SqliteStore, change: str) -> None:
    """AL-2: a byte, a row, a place, the note of beginning and end; nothing before it is."""
    await fill(store)
    assert (await checked(store)).fault is None
    with closing(sqlite3.connect(store.path)) as database, database:
        database.executescript(change)
        assert database.total_changes
    assert (await checked(store)).fault is not None


async def test_a_chain_whose_head_was_deleted_is_no_chain(store: SqliteStore) -> None:
    """It is shown as one without a name that never began, which no entry belongs to."""
    await fill(store)
    write_database(store.path, "DELETE FROM audit_chain")
    async with store.view() as view:
        assert await view.audit.chain() == AuditChain("", BEGINNING, BEGINNING)


async def test_an_id_or_an_age_cannot_differ_from_what_was_hashed(store: SqliteStore) -> None:
    """AL-2: what is looked for is computed from the text, and can be set by nobody."""
    await fill(store)
    with closing(sqlite3.connect(store.path)) as database, database:
        for column in ("id", "at", "execution_id"):
            with pytest.raises(sqlite3.OperationalError, match="generated column"):
                database.execute(f"UPDATE audit SET {column} = 1")


async def test_a_log_that_was_cut_off_well_is_seen_by_an_anchor(store: SqliteStore) -> None:
    """AL-4: with the note of the end cut, too, only an anchor kept elsewhere knows."""
    await fill(store)
    anchor = await audit_anchor(Some(store))  # type: ignore[arg-type]
    with closing(sqlite3.connect(store.path)) as database, database:
        database.execute("DELETE FROM audit WHERE number = 6")
        database.execute(
            "UPDATE audit_chain SET (end_number, end_hash) ="
            " (SELECT number, hash FROM audit WHERE number = 5)"
        )
    assert (await checked(store)).fault is None
    found = await check_audit(Some(store), [anchor])  # type: ignore[arg-type]
    assert found.fault is not None
    assert (found.fault.number, "removed" in found.fault.why) == (6, True)


async def test_an_anchor_of_what_retention_took_is_no_fault(store: SqliteStore) -> None:
    """AL-4, AL-5: what was over its time need not be there; what was not must be."""
    clock = ManualClock()
    await keep(store, *(make.audit_entry(f"aud_{n}", at=clock.now()) for n in range(3)))
    anchor = await audit_anchor(Some(store))  # type: ignore[arg-type]
    await keep(store, make.audit_entry("aud_3", at=EpochMs(clock.now() + DAY)))
    await cut(store, clock.now() + 1, 2)
    for _ in range(2):
        some = Some(store, clock)
        assert (await check_audit(some, [anchor])).fault is None  # type: ignore[arg-type]
        await cut(store, clock.now() + 1, 2)
    earlier = evolve(anchor, number=2)
    assert (await check_audit(Some(store, clock), [earlier])).fault  # type: ignore[arg-type]
    clock.advance(91 * DAY)
    found = await check_audit(Some(store, clock), [earlier])  # type: ignore[arg-type]
    assert found.fault is None


@pytest.mark.parametrize("sealed", [False, True])
async def test_a_beginning_that_was_cut_off_does_not_fit(tmp_path: Path, sealed: bool) -> None:
    """
    AL-9: nor with an anchor of an entry that is left, nor with an entry in clear that says that
    retention did it.
    """
    sealer = AeadSealer([new_key()]) if sealed else None
    store = await SqliteStore.open(tmp_path / "wfcore.db", sealer=sealer)
    await fill(store)
    anchor = await audit_anchor(Some(store))  # type: ignore[arg-type]
    assert (await checked(store)).fault is None
    with closing(sqlite3.connect(store.path, isolation_level=None)) as database:
        number, hash = database.execute(
            "SELECT number, hash FROM audit WHERE number = 5"
        ).fetchone()
        database.execute("UPDATE audit_chain SET start_number = ?, start_hash = ?", (number, hash))
        database.execute("DELETE FROM audit WHERE number <= 5")
    found = await check_audit(Some(store), [anchor])  # type: ignore[arg-type]
    assert found.fault is not None
    assert (found.fault.number, "no entry of retention" in found.fault.why) == (5, True)
    if sealed:
        forger = await SqliteStore.open(tmp_path / "forged.db")
        made, record = trimmed(Some(forger), ChainPoint(number, hash))  # type: ignore[arg-type]
        with closing(sqlite3.connect(store.path, isolation_level=None)) as database:
            for values in link(database.cursor(), [(entry_text(made), record)]):
                database.execute(ADD_AUDIT.one, values)
        assert (await checked(store)).fault is not None
        await forger.close()
    await store.close()


async def test_sealed_rows_are_checked_in_clear(tmp_path: Path) -> None:
    """AL-2, AL-3: sealed anew with another key they still fit; changed or exchanged they do not."""
    key = new_key()
    store = await SqliteStore.open(tmp_path / "wfcore.db", sealer=AeadSealer([key]))
    try:
        await fill(store)
        with closing(sqlite3.connect(store.path)) as database:
            (cell,) = database.execute("SELECT record FROM audit WHERE number = 5").fetchone()
            assert cell.startswith("~")
        assert (await checked(store)).fault is None
        newer = AeadSealer([new_key(), key])
        await store.reseal(newer)
        again = await SqliteStore.open(store.path, sealer=newer)
        assert (await checked(again)).fault is None
        with closing(sqlite3.connect(store.path)) as database, database:
            database.execute("UPDATE audit SET record = ? WHERE number = 5", (cell[:-2] + "xx",))
        found = await checked(again)
        assert found.fault is not None
        assert (found.fault.number, found.fault.id) == (5, "aud_4")
        await again.close()
    finally:
        await store.close()


async def test_several_processes_write_one_chain(store: SqliteStore, start: Start) -> None:
    """AL-1: two processes with several clients each; every entry is there, one behind another."""
    processes = [start(APPEND, store.path, name) for name in "ab"]
    assert [process.wait(60) for process in processes] == [0, 0]
    found = await checked(store)
    assert (found.fault, found.entries) == (None, 160)


async def test_it_is_checked_while_retention_takes_what_is_read(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """AL-5: a piece of retention between two reads is no fault; entries added meanwhile neither."""
    monkeypatch.setattr("wfcore.usecases.audit.evidence.BATCH", 2)
    await keep(store, *(make.audit_entry(f"aud_{n}", at=EpochMs(n)) for n in range(8)))
    read, times = Audit.chained, 0

    async def beside(self: Audit, after: int, limit: int) -> object:
        nonlocal times
        times += 1
        if times == 2:
            await cut(store, 5)
            await keep(store, make.audit_entry("aud_8", at=EpochMs(8)))
        return await read(self, after, limit)

    monkeypatch.setattr(Audit, "chained", beside)
    found = await checked(store)
    assert (found.fault, found.entries) == (None, 5)
