"""Files that vanish: while nobody looks, and under a store that is open."""

import os
import shutil
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from adapters_store import open_store
from adapters_store.sqlite.database_file import LOG, NOTE, noted_commit
from adapters_store.sqlite.store import SqliteStore
from adapters_store.sqlite.writer import DatabaseFile
from wfcore.errors import StoreDisplaced, StoreRefused, StoreUnavailable
from wfcore.model.execution import Execution
from wfcore.model.page import PageRequest
from wfcore.ports.records import ExecutionFilter
from wfcore.testing import builders as make
from wfcore.testing.contracts.keeping import keep

from .conftest import Start

COMMIT_AND_WAIT = """
import asyncio, sys
from pathlib import Path
from adapters_store.sqlite.database_file import noted_commit
from adapters_store.sqlite.store import SqliteStore
from wfcore.testing import builders as make

async def main():
    store = await SqliteStore.open(Path(sys.argv[1]))
    for number in range(5):
        async with store.unit() as unit:
            unit.put(make.execution(f"e{number}"))
            await unit.commit()
    async with asyncio.timeout(60):
        while noted_commit(store.path) < 5:
            await asyncio.sleep(0)
    print("kept", flush=True)
    await asyncio.to_thread(sys.stdin.read)

asyncio.run(main())
"""


def contents(folder: Path) -> dict[str, bytes]:
    """What every file below *folder* holds, but for the index of the log: any look changes that."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.stat().st_size and not path.name.endswith("-shm")
    }


async def refused(path: Path) -> str:
    """Why *path* is refused. Every file is left as it was."""
    before = contents(path.parent)
    with pytest.raises(StoreRefused) as refusal:
        await open_store(None, path.parent)
    assert contents(path.parent) == before
    assert str(path.parent) in str(refusal.value)
    return str(refusal.value)


def killed_after_five(path: Path, start: Start) -> None:
    """A database that a killed process left: five commits, all of them in the log."""
    process = start(COMMIT_AND_WAIT, path)
    assert process.stdout is not None
    assert process.stdout.readline() == "kept\n"
    process.send_signal(signal.SIGKILL)
    process.wait()


@pytest.mark.parametrize("size", [None, 0])
@pytest.mark.parametrize(
    "name", ["signing.key", "first.key", "counters.db", "artifacts/exec_1/art_1", "wfcore.db-wal"]
)
async def test_a_missing_database_beside_other_data_is_refused(
    tmp_path: Path, name: str, size: int | None
) -> None:
    """Whatever a first start makes after its database tells that this is no first start."""
    path = tmp_path / "wfcore.db"
    other = tmp_path / name
    other.parent.mkdir(parents=True, exist_ok=True)
    other.write_bytes(b"x" * 32)
    if size is not None:
        path.touch()
    said = await refused(path)
    state = "missing" if size is None else "empty"
    assert said.startswith(f"{path} is {state}, but a service was here: ")
    assert other.relative_to(tmp_path).parts[0] in said


async def test_a_restore_that_was_broken_off_is_no_service(tmp_path: Path) -> None:
    """As long as its folder is there nothing is begun beside it, and the cure is told."""
    (tmp_path / "restoring").mkdir()
    said = await refused(tmp_path / "wfcore.db")
    assert said.endswith("run wfcore restore again, which begins anew")


async def test_what_a_first_start_finds_does_not_stop_it(tmp_path: Path) -> None:
    """Empty folders, and what a file system or an earlier attempt puts there, are no service."""
    for name in ("lost+found", "artifacts", "workers", "steps"):
        (tmp_path / name).mkdir()
    (tmp_path / "wfcore.db").touch()
    (tmp_path / "wfcore.db-wal").touch()
    opened = await open_store(None, tmp_path)
    await opened.counters.close()
    await opened.store.close()


async def test_the_log_of_an_empty_database_is_kept(tmp_path: Path, start: Start) -> None:
    """Where the database was emptied its log holds all there is; SQLite would delete it."""
    path = tmp_path / "wfcore.db"
    killed_after_five(path, start)
    whole = path.read_bytes()
    path.write_bytes(b"")
    assert "wfcore.db-wal" in await refused(path)
    path.write_bytes(whole)
    store = await SqliteStore.open(path)
    async with store.view() as view:
        assert (await view.executions.list(ExecutionFilter(), PageRequest())).total == 5
    await store.close()


@pytest.mark.parametrize("damage", [Path.unlink, lambda log: os.truncate(log, 40_000)])
async def test_a_lost_log_is_told(
    tmp_path: Path, start: Start, damage: Callable[[Path], None]
) -> None:
    """A database without the commits of its log is refused, until somebody says to go on."""
    path = tmp_path / "wfcore.db"
    killed_after_five(path, start)
    assert noted_commit(path) == 5
    damage(path.with_name(path.name + LOG))
    said = await refused(path)
    for part in ("commit 5", "wfcore.db-wal", "delete wfcore.db-commit"):
        assert part in said
    path.with_name(path.name + NOTE).unlink()
    store = await SqliteStore.open(path)
    await keep(store, make.execution("after"))
    await store.close()


async def test_an_older_copy_is_told(tmp_path: Path) -> None:
    """A copy from before the last commits is no continuation of what was acknowledged."""
    path, copy = tmp_path / "wfcore.db", tmp_path / "copy"
    store = await SqliteStore.open(path)
    await keep(store, make.execution("one"))
    await store.backup(str(copy))
    await keep(store, make.execution("two"))
    await store.close()
    copy.replace(path)
    assert "an older copy" in await refused(path)


@pytest.mark.parametrize(
    "text",
    [b"", b"what?", b"\xff" * 42, b"9\n", b"%020d %020d" % (9, 1), b"%020d %020d" % (1, 1)],
)
async def test_a_note_that_says_less_stops_nobody(tmp_path: Path, text: bytes) -> None:
    """The note may lag or be unreadable: only one that is ahead tells of a loss."""
    path = tmp_path / "wfcore.db"
    store = await SqliteStore.open(path)
    await keep(store, make.execution("one"))
    await keep(store, make.execution("two"))
    await store.close()
    path.with_name(path.name + NOTE).write_bytes(text)
    store = await SqliteStore.open(path)
    await keep(store, make.execution("three"))
    await store.close()
    assert noted_commit(path) == 3


async def test_a_note_goes_on_after_it_was_closed(store: SqliteStore) -> None:
    """Closing it twice is closing it once, and the next commit opens it again."""
    file = DatabaseFile(store.path)
    for commit in (7, 8):
        file.note(commit)
        assert noted_commit(store.path) == commit
        file.close()
        file.close()


async def test_two_processes_never_note_too_much(store: SqliteStore, start: Start) -> None:
    """However many commit, what is noted has been committed: any of them can be opened again."""
    others = [await SqliteStore.open(store.path) for _ in range(2)]
    for number in range(10):
        for each, other in enumerate(others):
            await keep(other, make.execution(f"e{each}_{number}"))
        await (await SqliteStore.open(store.path)).close()
    for other in others:
        await other.close()


def replaced(path: Path) -> None:
    copy = path.with_name("copy")
    shutil.copyfile(path, copy)
    copy.replace(path)


def emptied(path: Path) -> None:
    fresh = path.with_name("fresh")
    fresh.touch()
    fresh.replace(path)


@pytest.mark.parametrize("tail", ["", LOG])
@pytest.mark.parametrize("lose", [Path.unlink, replaced, emptied])
async def test_a_file_that_goes_while_it_is_open_stops_writing(
    tmp_path: Path,
    tail: str,
    lose: Callable[[Path], None],
) -> None:
    """What would be written to a file without a name is refused, by name; open readers go on."""
    store = await SqliteStore.open(tmp_path / "wfcore.db")
    await keep(store, make.execution("before"))
    async with store.view() as view:
        assert await view.get(Execution, "before") is not None
    lose(tmp_path / f"wfcore.db{tail}")
    for attempt in (store.ping(), keep(store, make.execution("lost")), store.ping()):
        with pytest.raises(StoreDisplaced, match="removed or replaced") as error:
            await attempt
        assert f"wfcore.db{tail} was" in error.value.detail
    async with store.view() as view:
        assert await view.get(Execution, "before") is not None
    with pytest.raises(StoreUnavailable):
        await store.backup(str(tmp_path / "backup"))
    await store.close()


async def test_a_file_that_is_put_back_is_written_again(
    tmp_path: Path,
) -> None:
    """The same file at its place again is all that is needed: no restart."""
    path, aside = tmp_path / "wfcore.db", tmp_path / "aside"
    store = await SqliteStore.open(path)
    await keep(store, make.execution("before"))
    path.rename(aside)
    with pytest.raises(StoreDisplaced):
        await keep(store, make.execution("lost"))
    aside.rename(path)
    await keep(store, make.execution("after"))
    async with store.view() as view:
        assert await view.get(Execution, "lost") is None
    await store.close()


async def test_another_file_is_never_read_or_written_for_this_one(
    tmp_path: Path,
) -> None:
    """A connection that is made anew must lead to the same file."""
    other = await SqliteStore.open(tmp_path / "other" / "wfcore.db")
    await keep(other, make.execution("theirs"))
    await other.close()
    store = await SqliteStore.open(tmp_path / "wfcore.db")
    (tmp_path / "other" / "wfcore.db").replace(store.path)
    with pytest.raises(StoreDisplaced):
        await keep(store, make.execution("ours"))
    async with store.view() as view:
        assert await view.get(Execution, "theirs") is None
    store._reads._lost(OSError())  # as after an error of the disk
    async with store.view() as view:
        with pytest.raises(StoreDisplaced):
            await view.get(Execution, "theirs")
        with pytest.raises(StoreDisplaced):
            await view.executions.list(ExecutionFilter(), PageRequest())
    await store.close()
