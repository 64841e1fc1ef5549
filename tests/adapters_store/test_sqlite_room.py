"""What was deleted gives its room back, beside writers and by `compact`."""

import asyncio
from pathlib import Path

import pytest
from attrs import evolve

from adapters_store.sqlite import vacuum
from adapters_store.sqlite.store import SqliteStore
from wfcore.model.execution import Execution
from wfcore.model.page import PageRequest
from wfcore.ports.records import ExecutionFilter
from wfcore.testing import builders as make
from wfcore.testing.contracts.keeping import keep

from .conftest import pragma, write_database


async def test_room_of_what_was_deleted_goes_back(tmp_path: Path) -> None:
    """A new file shrinks piece by piece, all but a reserve; one of an early version once anew."""
    path = tmp_path / "wfcore.db"
    store = await SqliteStore.open(path)
    names = [f"e{n}" for n in range(100)]
    for id in names:
        await keep(store, make.execution(id, variables={"x": "x" * 200_000}))
    async with store.unit() as unit:
        unit.purge(*names)
        await unit.commit()
    before = pragma(path, "page_count")
    gone = [await store.release(1 << 20)]
    while gone[-1]:
        gone.append(await store.release(1 << 20))
    assert (before - pragma(path, "page_count")) * pragma(path, "page_size") == sum(gone)
    assert sum(gone) > 14 << 20
    assert min(gone[:-1]) >= 1 << 20
    assert path.stat().st_size <= vacuum.RESERVE_BYTES + (2 << 20)
    await store.close()


async def test_room_goes_back_beside_writers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each piece takes its megabyte off the unused pages while others write, until few are left."""
    monkeypatch.setattr(vacuum, "RESERVE_BYTES", 1 << 20)
    path = tmp_path / "wfcore.db"
    store = await SqliteStore.open(path)
    names = [f"e{n}" for n in range(60)]
    for id in names:
        await keep(store, make.execution(id, variables={"x": "x" * 200_000}))
    await keep(store, make.execution("busy", events=0))
    async with store.unit() as unit:
        unit.purge(*names)
        await unit.commit()

    async def write() -> None:
        while True:
            async with store.unit() as unit:
                run = await unit.get(Execution, "busy")
                assert run is not None
                unit.put(evolve(run, events=run.events + 1))
                await unit.commit()

    unused = pragma(path, "freelist_count") * pragma(path, "page_size")
    writing = asyncio.create_task(write())
    pieces = 0
    while await store.release(1 << 20):
        pieces += 1
        assert pieces <= unused >> 20
    left = pragma(path, "freelist_count") * pragma(path, "page_size")
    assert not writing.done()
    writing.cancel()
    await asyncio.wait([writing])
    assert left < 2 << 20 < 10 << 20 < unused
    assert await store.release(1 << 20) == 0
    assert path.stat().st_size < 3 << 20
    await store.close()


async def test_little_room_stays(tmp_path: Path) -> None:
    """Less than a piece beyond the reserve is not given back: it would be taken again soon."""
    store = await SqliteStore.open(tmp_path / "wfcore.db")
    names = [f"e{n}" for n in range(24)]
    await keep(store, *(make.execution(id, variables={"x": "x" * 200_000}) for id in names))
    async with store.unit() as unit:
        unit.purge(*names)
        await unit.commit()
    assert pragma(store.path, "freelist_count") * pragma(store.path, "page_size") > 4 << 20
    assert await store.release(1 << 20) == 0
    await store.close()


async def test_a_file_of_an_early_version_is_written_anew(tmp_path: Path) -> None:
    """Only then it keeps account of its room; what would take too long leaves it as it was."""
    path = tmp_path / "wfcore.db"
    write_database(path, "PRAGMA auto_vacuum = NONE", "CREATE TABLE a (x)", "DROP TABLE a")
    store = await SqliteStore.open(path)
    await keep(store, *(make.execution(f"e{n}") for n in range(300)))
    assert await store.release(1 << 20) == 0
    assert not vacuum.keeps_account(path)
    assert not vacuum.write_anew(path, within_s=-1)
    assert not vacuum.keeps_account(path)
    assert vacuum.write_anew(path)
    assert vacuum.keeps_account(path)
    async with store.view() as view:
        assert (await view.executions.list(ExecutionFilter(), PageRequest())).total == 300
    await store.close()
