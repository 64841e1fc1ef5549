"""Whose file it is, what it may be used for, and what happens when it cannot be written."""
# ruff: noqa: ASYNC240 - nothing else runs in the loop of a test

import asyncio
import sqlite3
import stat
import threading
from contextlib import closing
from pathlib import Path

import pytest

from adapters_store.sqlite import connection, migrate, writer
from adapters_store.sqlite.counters import SqliteCounters
from adapters_store.sqlite.store import SqliteStore
from wfcore.errors import StoreRefused, StoreUnavailable
from wfcore.model.execution import Execution
from wfcore.model.page import PageRequest
from wfcore.ports.records import ExecutionFilter
from wfcore.testing import builders as make
from wfcore.testing.contracts.keeping import keep
from wfcore.time import HOUR

from .conftest import Start, pragma, write_database


async def refused(path: Path) -> str:
    """Why *path* is refused; it must be left as it was."""
    before = path.read_bytes()
    with pytest.raises(StoreRefused) as refusal:
        await SqliteStore.open(path)
    assert path.read_bytes() == before
    assert str(path) in str(refusal.value)
    return str(refusal.value)


async def test_a_file_of_another_application_is_refused(tmp_path: Path) -> None:
    """Tables without our mark, or another mark, are not ours."""
    path = tmp_path / "other.db"
    write_database(path, "CREATE TABLE theirs (x)")
    assert "another application" in await refused(path)
    write_database(path, "PRAGMA application_id = 77")
    assert "0x4d" in await refused(path)


async def test_a_file_that_is_no_database_is_refused(tmp_path: Path) -> None:
    """Some text is not a database."""
    path = tmp_path / "notes.txt"
    path.write_text("what I wanted to say " * 500)
    assert "no SQLite database" in await refused(path)


async def test_a_newer_schema_is_refused(tmp_path: Path) -> None:
    """A file that a newer program migrated is not touched by an older one."""
    path = tmp_path / "wfcore.db"
    await (await SqliteStore.open(path)).close()
    write_database(path, "PRAGMA user_version = 9999")
    assert "9999 is newer" in await refused(path)


async def test_a_damaged_file_is_refused(tmp_path: Path) -> None:
    """A header or schema that was overwritten, or a file cut short, is found before it is used."""
    path = tmp_path / "wfcore.db"
    store = await SqliteStore.open(path)
    await keep(store, *(make.execution(f"e{n}", variables={"x": "x" * 500}) for n in range(200)))
    await store.close()
    whole = path.read_bytes()
    damaged = (
        whole[:16] + bytes(84) + whole[100:],
        whole[:16] + b"\xff" * 84 + whole[100:],
        whole[:40] + b"\x07" * 24 + whole[64:],
        whole[:100] + b"\x07" * 4_096 * 3 + whole[100 + 4_096 * 3 :],
        whole[: 4_096 * 20],
    )
    for content in damaged:
        path.write_bytes(content)
        assert await refused(path)
    path.write_bytes(whole)
    await (await SqliteStore.open(path)).close()


async def test_a_store_opens_while_its_lock_is_held(tmp_path: Path) -> None:
    """Opening what is of the newest schema already waits for nobody's lock, here and in counts."""
    await (await SqliteStore.open(tmp_path / "wfcore.db")).close()
    await (await SqliteCounters.open(tmp_path / "counters.db")).close()
    with (
        closing(sqlite3.connect(tmp_path / "wfcore.db", isolation_level=None)) as one,
        closing(sqlite3.connect(tmp_path / "counters.db", isolation_level=None)) as other,
    ):
        one.execute("BEGIN IMMEDIATE")
        other.execute("BEGIN IMMEDIATE")
        await (await SqliteStore.open(tmp_path / "wfcore.db")).close()
        counters = await SqliteCounters.open(tmp_path / "counters.db")
        assert counters.damaged is None
        await counters.close()


async def test_an_empty_file_is_taken(tmp_path: Path) -> None:
    """A file of no bytes belongs to nobody."""
    path = tmp_path / "wfcore.db"
    path.touch()
    store = await SqliteStore.open(path)
    await store.ping()
    await store.close()


async def test_files_are_for_their_owner_only(tmp_path: Path) -> None:
    """Files are made with mode 600, folders with 700."""
    path = tmp_path / "data" / "wfcore.db"
    store = await SqliteStore.open(path)
    await store.enlist("w1")
    await keep(store, make.execution())
    for file in path.parent.rglob("*"):
        mode = 0o700 if file.is_dir() else 0o600
        assert stat.S_IMODE(file.stat().st_mode) == mode, file
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    await store.close()


async def test_a_new_migration_keeps_what_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An older file is brought to the newest schema, number by number, with its records."""
    path = tmp_path / "wfcore.db"
    store = await SqliteStore.open(path)
    await keep(store, make.execution())
    await store.close()
    newest = migrate.migrations()[-1][0]
    assert pragma(path, "user_version") == newest
    assert pragma(path, "application_id") == migrate.APPLICATION_ID
    more = [*migrate.migrations(), (newest + 1, "CREATE TABLE a (x);\nCREATE TABLE b (y);\n")]
    monkeypatch.setattr(migrate, "migrations", lambda: more)
    store = await SqliteStore.open(path)
    async with store.view() as view:
        assert await view.get(Execution, "exec_1") is not None
    await store.close()
    assert pragma(path, "user_version") == newest + 1


async def test_a_migration_that_fails_leaves_no_trace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A migration is one transaction together with its number."""
    path = tmp_path / "wfcore.db"
    await (await SqliteStore.open(path)).close()
    newest = migrate.migrations()[-1][0]
    broken = (newest + 1, "CREATE TABLE a (x);\nCREATE TABLE accounts (y);\n")
    more = [*migrate.migrations(), broken]
    with monkeypatch.context() as patch:
        patch.setattr(migrate, "migrations", lambda: more)
        with pytest.raises(StoreUnavailable):
            await SqliteStore.open(path)
    assert pragma(path, "user_version") == newest
    await (await SqliteStore.open(path)).close()


async def test_a_copy_is_made_while_writing_goes_on(store: SqliteStore, tmp_path: Path) -> None:
    """A backup is a whole database of one moment, private, and opens as a store."""
    copy = tmp_path / "copy" / "backup.db"
    copy.parent.mkdir()

    async def write(number: int) -> None:
        await keep(store, make.execution(f"e{number}"), make.event(1, f"e{number}"))

    await asyncio.gather(*(write(n) for n in range(40)))
    await asyncio.gather(store.backup(str(copy)), *(write(n) for n in range(40, 80)))
    assert [file.name for file in copy.parent.iterdir()] == ["backup.db"]
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600
    copied = await SqliteStore.open(copy)
    async with copied.view() as view:
        found = await view.executions.list(ExecutionFilter(), PageRequest(1, 200))
        assert found.total >= 40
        for run in found.rows:
            assert len(await view.events.of_execution(run.id, 0, 9)) == 1
    await copied.close()
    with pytest.raises(StoreUnavailable):
        await store.backup(str(tmp_path / "missing" / "backup.db"))


async def test_a_lock_held_by_another_stops_writes_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While another program holds the write lock, reads go on; then writes do again."""
    monkeypatch.setattr(writer, "BUSY_S", 0.01)
    monkeypatch.setattr(writer, "SHORTLY_S", 0.01)
    store = await SqliteStore.open(tmp_path / "wfcore.db")
    await keep(store, make.execution("before"))
    with closing(sqlite3.connect(store.path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreUnavailable):
            await keep(store, make.execution("during"))
        async with store.view() as view:
            assert await view.get(Execution, "before") is not None
            assert (await view.executions.list(ExecutionFilter(), PageRequest())).total == 1
        other.execute("ROLLBACK")
    await keep(store, make.execution("during"))
    await store.close()


async def test_who_waits_for_a_lock_waits_once(
    tmp_path: Path, start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    After a wait in vain, what was queued behind it and the next commits of the same request wait
    only shortly, until the lock was had once.
    """
    waits: list[float] = []
    connect = writer.connect_writer

    def noted(path: Path, busy_s: float) -> sqlite3.Connection:
        waits.append(busy_s)
        return connect(path, busy_s)

    monkeypatch.setattr(writer, "connect_writer", noted)
    monkeypatch.setattr(writer, "BUSY_S", 0.02)
    monkeypatch.setattr(writer, "SHORTLY_S", 0.001)
    store = await SqliteStore.open(tmp_path / "wfcore.db")
    process = start(HOLD, store.path)
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    for _ in range(3):
        with pytest.raises(StoreUnavailable):
            await store.ping()
    process.stdin.write("go\n")
    process.stdin.flush()
    assert process.stdout.readline() == "free\n"
    await store.ping()
    await store.ping()
    assert waits[0] == waits[-1] == 0.02
    assert waits[1:-1] == [0.001] * 3
    await store.close()
    assert connection.BUSY_S + 2 * 0.25 <= 5


async def test_a_read_only_file_can_be_read_and_recovers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Writes to a read-only database are refused until it is writable; reads go on."""
    store = await SqliteStore.open(tmp_path / "wfcore.db")
    with monkeypatch.context() as patch:
        patch.setattr(writer, "connect_writer", lambda path, _: connection.connect(path, "ro"))
        for attempt in (
            store.ping(),
            keep(store, make.execution()),
            store.extend("w", ("e",), HOUR),
        ):
            with pytest.raises(StoreUnavailable):
                await attempt
        async with store.view() as view:
            assert await view.get(Execution, "exec_1") is None
    await store.ping()
    await keep(store, make.execution())
    await store.close()


HOLD = """
import sqlite3, sys
held = sqlite3.connect(sys.argv[1], isolation_level=None)
held.execute("BEGIN IMMEDIATE")
print("held", flush=True)
sys.stdin.readline()
held.execute("ROLLBACK")
print("free", flush=True)
sys.stdin.readline()
"""

FILL_THE_DISK = """
import asyncio, resource, sys
from pathlib import Path
from adapters_store.sqlite.store import SqliteStore
from wfcore.errors import StoreUnavailable
from wfcore.model.execution import Execution
from wfcore.testing import builders as make

async def keep(store, run):
    async with store.unit() as unit:
        unit.put(run)
        await unit.commit()

async def main():
    store = await SqliteStore.open(Path(sys.argv[1]))
    await keep(store, make.execution("before"))
    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, hard))
    kept, refused = [], 0
    for number in range(40):
        try:
            await keep(store, make.execution(f"e{number}", variables={"x": "x" * 20_000}))
            kept.append(number)
        except StoreUnavailable:
            refused += 1
    async with store.view() as view:
        assert await view.get(Execution, "before") is not None
        for number in range(40):
            found = await view.get(Execution, f"e{number}")
            assert (found is not None) == (number in kept), number
    resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
    await keep(store, make.execution("after"))
    await store.close()
    store = await SqliteStore.open(Path(sys.argv[1]))
    async with store.view() as view:
        for id in ("before", "after", *(f"e{number}" for number in kept)):
            assert await view.get(Execution, id) is not None, id
    await store.close()
    print(len(kept), refused)

asyncio.run(main())
"""


async def test_a_full_disk_loses_nothing_and_is_got_over(tmp_path: Path, start: Start) -> None:
    """Refused commits leave nothing, acknowledged ones stay, and it goes on without restart."""
    process = start(FILL_THE_DISK, tmp_path / "wfcore.db")
    kept, refused = map(int, process.communicate(timeout=60)[0].split())
    assert process.returncode == 0
    assert kept > 0
    assert refused > 0


async def test_closing_finishes_what_was_handed_in(tmp_path: Path) -> None:
    """Commits that were handed in before `close` are stored; later ones are refused."""
    path = tmp_path / "wfcore.db"
    store = await SqliteStore.open(path)
    tasks = [asyncio.ensure_future(keep(store, make.execution(f"e{n}"))) for n in range(20)]
    await asyncio.sleep(0)
    await store.close()
    await asyncio.gather(*tasks)
    with pytest.raises(StoreUnavailable) as refusal:
        await keep(store, make.execution("late"))
    assert str(refusal.value) == "The store is closed"
    async with store.view() as view:
        with pytest.raises(StoreUnavailable):
            await view.get(Execution, "e1")
        with pytest.raises(StoreUnavailable):
            await view.executions.next_due()
    store = await SqliteStore.open(path)
    async with store.view() as view:
        assert (await view.executions.list(ExecutionFilter(), PageRequest())).total == 20
    await store.close()


async def test_a_cancelled_list_loses_no_connection(tmp_path: Path) -> None:
    """However many readers go away half-way, lists go on and the store can be closed."""
    before = set(threading.enumerate())
    store = await SqliteStore.open(tmp_path / "wfcore.db")
    await keep(store, make.execution())

    async def count() -> int:
        async with store.view() as view:
            return (await view.executions.list(ExecutionFilter(), PageRequest())).total

    for turns in range(12):
        tasks = [asyncio.ensure_future(count()) for _ in range(4)]
        for _ in range(turns % 4):
            await asyncio.sleep(0)
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        assert await count() == 1
    await store.close()
    assert not [thread for thread in set(threading.enumerate()) - before if "wfcore" in thread.name]
