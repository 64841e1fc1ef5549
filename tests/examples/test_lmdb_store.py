"""A store on LMDB under the store in memory: over two handles, and in two processes."""

import asyncio
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from wfcore.errors import StoreRefused, StoreUnavailable
from wfcore.model.execution import Execution
from wfcore.ports.store import Slots, Store
from wfcore.testing import ManualClock
from wfcore.testing import builders as make
from wfcore.testing.contracts.claims import ClaimContract
from wfcore.testing.contracts.concurrency import ConcurrencyContract
from wfcore.testing.contracts.keeping import Handles, keep
from wfcore.testing.contracts.units import UnitContract
from wfcore.time import HOUR, EpochMs
from wfcore.wire.records import encode_record

from .loading import EXAMPLES, example

own = example("lmdb_store")


class TestLmdbStore(Handles, UnitContract, ClaimContract, ConcurrencyContract):
    """Rows, their transactions and the index are those of LMDB; the queries are of the core."""

    @pytest.fixture
    async def store(self, tmp_path: Path, clock: ManualClock) -> AsyncIterator[Store]:
        store = own.open_store(tmp_path / "data", clock.service_now)
        yield store
        await store.close()

    @pytest.fixture
    async def another(
        self, store: Store, tmp_path: Path, clock: ManualClock
    ) -> AsyncIterator[Store]:
        another = own.open_store(tmp_path / "data", clock.service_now)
        yield another
        await another.close()


CLAIMS = """
import asyncio, sys
from pathlib import Path
from lmdb_store import open_store
from wfcore.ports import Slots

async def claim_all(worker):
    store = open_store(Path(sys.argv[1]))
    print("ready", flush=True)
    sys.stdin.readline()
    while taken := await store.claim(worker, 3_600_000, Slots(99), 1):
        print(taken[0].id, flush=True)
    print("idle", flush=True)
    sys.stdin.readline()  # until somebody kills it

asyncio.run(claim_all(sys.argv[2]))
"""


async def begun(folder: Path, name: str) -> Process:
    """A process that has opened the store and waits to be told to claim."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", CLAIMS, str(folder), name), cwd=EXAMPLES, stdin=PIPE, stdout=PIPE
    )
    assert await line(process) == "ready"
    return process


async def line(process: Process) -> str:
    assert process.stdout is not None
    return (await process.stdout.readline()).decode().strip()


async def claimed(process: Process) -> list[str]:
    """What it says to have claimed until nothing is left."""
    assert process.stdin is not None
    process.stdin.write(b"claim\n")
    return [id async for id in _until_idle(process)]


async def _until_idle(process: Process) -> AsyncIterator[str]:
    while (said := await line(process)) not in ("idle", ""):
        yield said


async def test_two_processes_share_a_file_and_a_kill_loses_nothing(tmp_path: Path) -> None:
    """Each due execution is claimed by one of them, and stays claimed after both are killed."""
    store = own.open_store(tmp_path)
    await keep(store, *(make.execution(f"exec_{number}") for number in range(20)))
    workers = await asyncio.gather(begun(tmp_path, "w1"), begun(tmp_path, "w2"))
    try:
        told = await asyncio.gather(*map(claimed, workers))
    finally:
        for worker in workers:
            worker.kill()
            await worker.wait()
    held = {id: f"w{number}" for number, ids in enumerate(told, 1) for id in ids}
    assert len(held) == len(told[0]) + len(told[1]) == 20
    async with store.view() as view:
        assert {run.id: run.worker for run in await view.some(Execution, held)} == held
        assert list(await view.executions.abandoned(5)) == []  # the leases have not ended
    await store.close()


async def test_a_file_of_others_is_refused(tmp_path: Path) -> None:
    """By name, and it stays as it was."""
    file = tmp_path / "data.mdb"
    file.write_bytes(b"somebody's diary" * 1000)
    with pytest.raises(StoreRefused, match=str(tmp_path)):
        own.open_store(tmp_path)
    assert file.read_bytes() == b"somebody's diary" * 1000


async def test_a_closed_store_is_unavailable(tmp_path: Path) -> None:
    """A read and a claim after the end raise `StoreUnavailable`; closing twice does no harm."""
    store = own.open_store(tmp_path)
    await store.close()
    await store.close()
    for late in (next_due(store), store.claim("w", HOUR, Slots(1), 1)):
        with pytest.raises(StoreUnavailable):
            await late


async def next_due(store: Store) -> EpochMs | None:
    async with store.view() as view:
        return await view.executions.next_due()


async def test_the_index_follows_the_rows(tmp_path: Path) -> None:
    """Who waits is in it; who was claimed, moved or purged is not; a unit sees its own changes."""
    store = own.open_store(tmp_path, lambda: 100)
    early, late = make.execution("a", due_at=5), make.execution("b", due_at=7)
    await keep(store, early, late)
    assert await next_due(store) == 5
    await store.claim("w", HOUR, Slots(5), 1)
    assert await next_due(store) == 7
    async with store.unit() as unit:
        unit.purge("b")
        assert await unit.executions.next_due() is None
        assert await next_due(store) == 7
        await unit.commit()
    assert await next_due(store) is None
    await store.close()


def test_what_is_remembered_is_bounded_by_bytes() -> None:
    """Small rows are decoded once; large ones each time, and never kept."""
    small, large = (encode_record(make.execution(error="x" * n)) for n in (10, own.SMALL))
    for text, times in ((small, 1), (large, 0)):
        own._remembered.cache_clear()
        for _ in range(2):
            key, run = own._decoded(Execution, f'"exec_1"\n{text}'.encode())
            assert (key, run.id) == ("exec_1", "exec_1")
        assert own._remembered.cache_info().currsize == times
