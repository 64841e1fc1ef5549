"""A journal under the store in memory: units are written down, and read at the next start."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from attrs import evolve

from wfcore.errors import Stale, StoreRefused, StoreUnavailable
from wfcore.model.execution import Execution, ExecutionStatus
from wfcore.ports.store import Slots, Store
from wfcore.testing import ManualClock
from wfcore.testing import builders as make
from wfcore.testing.contracts.keeping import Handles, keep
from wfcore.testing.contracts.units import UnitContract
from wfcore.time import HOUR

from .loading import example

own = example("own_store")


class TestJournalStore(Handles, UnitContract):
    """The journal changes how units are written; the queries are those of the core."""

    @pytest.fixture
    async def store(self, tmp_path: Path, clock: ManualClock) -> AsyncIterator[Store]:
        store = own.open_journal(tmp_path / "journal", clock.service_now)
        yield store
        await store.close()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "journal"


def content(path: Path) -> bytes:
    return path.read_bytes()


def leave(path: Path, text: bytes) -> None:
    """Make the file hold exactly that, as a power cut or a stranger might."""
    path.write_bytes(text)


async def stored(path: Path) -> list[str]:
    """The executions that a fresh start finds."""
    store = own.open_journal(path)
    try:
        async with store.view() as view:
            found = [await view.get(Execution, f"exec_{number}") for number in range(5)]
        return [run.id for run in found if run is not None]
    finally:
        await store.close()


async def filled(path: Path, count: int) -> None:
    store = own.open_journal(path)
    for number in range(count):
        await keep(store, make.execution(f"exec_{number}"))
    await store.close()


async def test_what_was_committed_is_there_at_the_next_start(path: Path) -> None:
    """Records, versions and all; and the next commit goes on from there."""
    await filled(path, 3)
    assert await stored(path) == ["exec_0", "exec_1", "exec_2"]
    store = own.open_journal(path)
    with pytest.raises(Stale):
        await keep(store, make.execution("exec_0"))
    await keep(store, make.execution("exec_0", version=1, events=7))
    await store.close()
    store = own.open_journal(path)
    async with store.view() as view:
        run = await view.get(Execution, "exec_0")
    assert run is not None
    assert (run.version, run.events) == (2, 7)
    await store.close()


async def test_a_power_cut_costs_what_nobody_was_told(path: Path) -> None:
    """Wherever the last frame is torn, the ones before it are whole, and writing goes on."""
    await filled(path, 2)
    before = len(content(path))
    await_two = ["exec_0", "exec_1"]
    store = own.open_journal(path)
    await keep(store, make.execution("exec_2"))
    await store.close()
    whole = content(path)
    for cut in range(before, len(whole), 97):
        leave(path, whole[:cut])
        assert await stored(path) == await_two
        leave(path, whole[: cut - 1] + b"\xff" + whole[cut:])
        assert (await stored(path))[:2] in (await_two, await_two[:1])
    leave(path, whole[: before + 9])
    store = own.open_journal(path)
    await keep(store, make.execution("exec_3"))
    await store.close()
    assert await stored(path) == [*await_two, "exec_3"]


async def test_a_disk_that_cannot_write_changes_nothing(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The unit is refused, reading goes on, and so does writing when there is room again."""
    store = own.open_journal(path)
    await keep(store, make.execution("exec_0"))

    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as broken:
        broken.setattr(own.os, "fdatasync", full)
        with pytest.raises(StoreUnavailable):
            await keep(store, make.execution("exec_1"))
    async with store.view() as view:
        assert await view.get(Execution, "exec_1") is None
    await keep(store, make.execution("exec_2"))
    await store.close()
    assert await stored(path) == ["exec_0", "exec_2"]


async def test_a_foreign_file_and_a_second_process_are_refused(path: Path) -> None:
    """By name, and without harm to what is there."""
    leave(path, b"somebody's diary")
    with pytest.raises(StoreRefused, match="no journal"):
        own.open_journal(path)
    assert content(path) == b"somebody's diary"
    leave(path, b"")
    first = own.open_journal(path)
    with pytest.raises(StoreRefused, match="in use"):
        own.open_journal(path)
    await first.close()
    await first.close()
    with pytest.raises(StoreUnavailable):
        await first.ping()


async def test_a_journal_of_old_news_is_written_anew(path: Path) -> None:
    """Many changes of one record do not make every later start slow."""
    store = own.open_journal(path)
    run = make.execution()
    for version in range(50):
        await keep(store, evolve(run, version=version))
    await store.close()
    long = len(content(path))
    await own.open_journal(path).close()
    assert len(content(path)) < long / 4
    store = own.open_journal(path)
    async with store.view() as view:
        found = await view.get(Execution, run.id)
    assert found is not None
    assert found.version == 50
    await store.backup(str(path.with_name("copy")))
    await store.close()
    copy = own.open_journal(path.with_name("copy"))
    assert copy.disk.tables["execution"] == store.disk.tables["execution"]
    await copy.close()


async def test_work_of_a_process_that_ended_is_found_at_once(path: Path) -> None:
    """Whoever held an execution when the process ended is known to be gone. EX-11."""
    store = own.open_journal(path)
    await keep(store, make.execution())
    (run,) = await store.claim("w1", HOUR, Slots(8), 5)
    async with store.view() as view:
        assert list(await view.executions.abandoned(5)) == []
    await store.close()
    store = own.open_journal(path)
    async with store.view() as view:
        assert [one.id for one in await view.executions.abandoned(5)] == [run.id]
    assert run.status is ExecutionStatus.PENDING
    await store.close()
