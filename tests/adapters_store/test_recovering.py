"""A log that a killed process left is recovered by one; the others wait for it off their loops."""

import asyncio
from pathlib import Path

import pytest

from adapters_store.sqlite.store import SqliteStore
from wfcore.errors import StoreUnavailable
from wfcore.model.execution import Execution
from wfcore.testing import builders as make
from wfcore.testing.contracts.keeping import keep

from .conftest import Start

RECOVER = """
import fcntl, sys
WRITE, RECOVERY, HEADER = 120, 122, 96
with open(sys.argv[1] + "-shm", "r+b") as index:
    for lock in (WRITE, RECOVERY):
        fcntl.lockf(index, fcntl.LOCK_EX, 1, lock)
    index.write(bytes(HEADER))
    index.flush()
    print("recovering", flush=True)
    sys.stdin.readline()
"""
"""What a process does to the index of the log while it recovers it: locks it, writes it anew."""

KILLED = """
import asyncio, os, signal, sys
from pathlib import Path
from adapters_store.sqlite.store import SqliteStore
from wfcore.testing import builders as make
from wfcore.testing.contracts.keeping import keep

async def main():
    store = await SqliteStore.open(Path(sys.argv[1]))
    for number in range(20):
        await keep(store, make.execution(f"e{number}"))
    os.kill(os.getpid(), signal.SIGKILL)

asyncio.run(main())
"""


async def read(store: SqliteStore, id: str = "e1") -> bool:
    async with store.view() as view:
        return await view.get(Execution, id) is not None


async def turns(number: int = 200) -> None:
    for _ in range(number):
        await asyncio.sleep(0)


async def test_a_read_outlasts_a_recovery(tmp_path: Path, start: Start) -> None:
    """While another process recovers the log, a read waits in a thread and the loop turns."""
    store = await SqliteStore.open(tmp_path / "wfcore.db")
    await keep(store, make.execution("e1"), make.execution("e2"))
    assert await read(store)
    other = start(RECOVER, store.path)
    assert other.stdin is not None
    assert other.stdout is not None
    assert other.stdout.readline() == "recovering\n"
    reading = asyncio.gather(read(store), read(store, "e2"), read(store, "none"))
    await turns()
    assert not reading.done()
    other.stdin.write("go\n")
    other.stdin.flush()
    assert await reading == [True, True, False]
    await store.close()


async def test_it_is_opened_with_a_reader(tmp_path: Path, start: Start) -> None:
    """
    Opened behind a `kill -9`, with others that open and leave at the same moment: the connection
    of the loop is there before anybody asks, and no read is refused.
    """
    path = tmp_path / "wfcore.db"
    assert start(KILLED, path).wait() != 0
    assert path.with_name("wfcore.db-wal").stat().st_size
    for _ in range(5):
        store, other = await asyncio.gather(SqliteStore.open(path), SqliteStore.open(path))
        assert store._reads._inline is not None
        found = asyncio.gather(store.ping(), other.close(), *(read(store) for _ in range(9)))
        assert (await found)[2:] == [True] * 9
        await store.close()


async def test_a_close_waits_for_what_is_being_opened(tmp_path: Path, start: Start) -> None:
    """No connection is left behind by a reader that is opened while the store is closed."""
    store = await SqliteStore.open(tmp_path / "wfcore.db")
    store._reads._lost(OSError())
    reading = asyncio.ensure_future(read(store))
    await turns(1)
    await store.close()
    with pytest.raises(StoreUnavailable):
        await reading
    assert store._reads._inline is None
