"""The one call that opens everything."""

import asyncio
from pathlib import Path

import pytest

from adapters_store import open_store
from adapters_store.memory import MemoryStore
from adapters_store.sqlite.store import SqliteStore
from wfcore.errors import StoreRefused
from wfcore.model.execution import Execution
from wfcore.testing import builders as make
from wfcore.testing.contracts.keeping import keep


async def test_the_default_is_sqlite_in_the_data_folder(tmp_path: Path) -> None:
    """Without URL everything is in the data folder, which is made."""
    data = tmp_path / "data"
    opened = await open_store(None, data)
    await keep(opened.store, make.execution())
    assert isinstance(opened.store, SqliteStore)
    assert opened.location == str(data / "wfcore.db")
    assert {"wfcore.db", "counters.db"} <= {path.name for path in data.iterdir()}
    await opened.counters.close()
    await opened.store.close()


async def test_a_url_names_the_database(tmp_path: Path) -> None:
    """The path of the URL is the file; counters stay in the data folder."""
    path = tmp_path / "elsewhere" / "my.db"
    opened = await open_store(f"sqlite:///{path}", tmp_path)
    assert opened.location == str(path)
    assert path.exists()
    await opened.counters.close()
    await opened.store.close()


async def test_a_store_serves_the_loop_that_opened_it(tmp_path: Path) -> None:
    """Another event loop is refused before anything is done, and told what it can use. EX-18."""
    opened = await open_store(None, tmp_path)

    async def elsewhere() -> None:
        await keep(opened.store, make.execution())

    with pytest.raises(RuntimeError, match=r"one event loop.*wfcore\.sync"):
        await asyncio.to_thread(asyncio.run, elsewhere())
    async with opened.store.view() as view:
        assert await view.get(Execution, make.execution().id) is None
    await opened.counters.close()
    await opened.store.close()


async def test_memory_leaves_nothing_behind(tmp_path: Path) -> None:
    """A store in memory makes no file."""
    opened = await open_store("memory:", tmp_path)
    await keep(opened.store, make.execution())
    assert isinstance(opened.store, MemoryStore)
    assert list(tmp_path.iterdir()) == []  # noqa: ASYNC240


@pytest.mark.parametrize("url", ["", "wfcore.db", "sqlite://", "sqlite:///", "mysql://host/db"])
async def test_another_url_is_refused_with_advice(tmp_path: Path, url: str) -> None:
    """The error names the URL and what would do."""
    with pytest.raises(ValueError, match="sqlite:///PATH") as error:
        await open_store(url, tmp_path)
    assert repr(url) in str(error.value)


async def test_a_file_that_is_refused_leaves_nothing_open(tmp_path: Path) -> None:
    """A foreign file is refused before counters are made."""
    path = tmp_path / "wfcore.db"
    path.write_text("no database at all" * 100)
    with pytest.raises(StoreRefused):
        await open_store(None, tmp_path)
    assert not (tmp_path / "counters.db").exists()
