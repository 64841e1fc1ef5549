"""A service moves to another database: whole, once, and never at work in two places."""

import os
import signal
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, closing
from itertools import count
from pathlib import Path
from typing import Any

import asyncpg
import pytest
from attrs import evolve
from hypothesis import settings
from hypothesis.stateful import precondition, rule, run_state_machine_as_test

from adapters_store.postgres.moving import PostgresSide
from adapters_store.postgres.store import PostgresStore
from adapters_store.sql import moving
from adapters_store.sql.moving import LEFT, MOVED, Mark, MovedTable, move
from adapters_store.sql.sealing import AeadSealer, new_key
from adapters_store.sqlite.moving import SqliteSide
from adapters_store.sqlite.store import SqliteStore
from tests.support.postgres_server import Cluster
from wfcore.errors import StoreRefused, StoreUnavailable
from wfcore.model.access import Account
from wfcore.ports.store import Store
from wfcore.testing import builders as make
from wfcore.testing.comparison.comparing import StoreComparison
from wfcore.testing.contracts.keeping import keep

from .conftest import Start
from .test_sealing import fill, seen

Files = Callable[[Any], Awaitable[None]]
EXAMPLES = int(os.environ.get("MOVE_EXAMPLES", "8"))
BLANK = "DROP SCHEMA public CASCADE; CREATE SCHEMA public"


@pytest.fixture(scope="module")
def fresh(server: Cluster) -> Iterator[str]:
    """The URL of a database of this module's own; see `blank`."""
    server.execute("CREATE DATABASE moved")
    yield server.url("moved")
    server.execute("DROP DATABASE moved WITH (FORCE)")


async def blank(url: str) -> str:
    """*url*, whose database has no table."""
    connection = await asyncpg.connect(url)
    try:
        await connection.execute(BLANK)
    finally:
        await connection.close()
    return url


async def unread(rows: Any) -> None:
    """No files are moved."""


async def opened(where: str | Path) -> Store:
    if isinstance(where, Path):
        return await SqliteStore.open(where)
    return await PostgresStore.open(where)


async def carry(
    source: str | Path,
    target: str | Path,
    log: list[MovedTable] | None = None,
    files: Files = unread,
) -> None:
    """Move, as the command does."""
    async with AsyncExitStack() as stack:
        sides = []
        for one in (source, target):
            if isinstance(one, Path):
                sides.append(stack.enter_context(SqliteSide.opened(one, one.parent)))
            else:
                sides.append(await stack.enter_async_context(PostgresSide.opened(one)))
        await move(sides[0], sides[1], ([] if log is None else log).append, files)


def folder(parent: Path, name: str) -> Path:
    """The path of a database in a folder of its own."""
    (parent / name).mkdir()
    return parent / name / "wfcore.db"


async def test_all_is_there_again_and_back(tmp_path: Path, fresh: str) -> None:
    """Records of every kind, sealed ones too, are the same in PostgreSQL, and in SQLite again."""
    sealer, url = AeadSealer([new_key()]), await blank(fresh)
    old, new = folder(tmp_path, "old"), folder(tmp_path, "new")
    store = await SqliteStore.open(old, sealer=sealer)
    await fill(store)
    before = await seen(store)
    await store.close()
    there: list[MovedTable] = []
    back: list[MovedTable] = []
    await carry(old, url, there)
    moved = await PostgresStore.open(url, sealer=sealer)
    assert await seen(moved) == before
    await moved.close()
    await carry(url, new, back)
    assert {one.table: one.rows for one in there} == {one.table: one.rows for one in back}
    again = await SqliteStore.open(new, sealer=sealer)
    assert await seen(again) == before
    await again.close()


def test_whatever_was_stored_goes_on_elsewhere(fresh: str) -> None:
    """A script that moves between the databases gets the answers of the store in memory."""

    class Moving(StoreComparison):
        moves: "count[int]"
        here: str | Path

        async def open(self, folder: Path) -> Store:
            self.moves, self.parent, self.here = count(), folder, folder / "wfcore.db"
            return await SqliteStore.open(self.here)

        @precondition(lambda self: not self.units)
        @rule()
        def move_on(self) -> None:
            """To the other kind of database."""

            async def on() -> Store:
                await self.store.close()
                if isinstance(self.here, str):
                    there: str | Path = folder(self.parent, f"m{next(self.moves)}")
                else:
                    there = await blank(fresh)
                await carry(self.here, there)
                self.here = there
                store = await opened(there)
                for worker in ("w1", "w2"):
                    await store.enlist(worker)
                return store

            self.store = self._loop.run(on())

    run_state_machine_as_test(Moving, settings=settings(max_examples=EXAMPLES, deadline=None))


KILLED = """
import asyncio, os, signal, sys
from contextlib import AsyncExitStack
from pathlib import Path
from adapters_store.sql import moving
from adapters_store.postgres.moving import PostgresSide
from adapters_store.sqlite.moving import SqliteSide

moving.BATCH_ROWS = 7
moment, left = sys.argv[3], int(sys.argv[4])

def dying(deed):
    def does(self, *given):
        global left
        left -= 1
        if left < 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return deed(self, *given)
    return does

async def opened(stack, where):
    if "://" in where:
        return await stack.enter_async_context(PostgresSide.opened(where))
    return stack.enter_context(SqliteSide.opened(Path(where), Path(where).parent))

async def main():
    async def nothing(rows):
        pass
    async with AsyncExitStack() as stack:
        source, target = [await opened(stack, where) for where in sys.argv[1:3]]
        setattr(type(target), moment, dying(getattr(type(target), moment)))
        await moving.move(source, target, print, nothing)

asyncio.run(main())
"""


@pytest.mark.parametrize("back", [False, True], ids=["there", "back"])
@pytest.mark.parametrize(
    ("moment", "after"), [("begun", 0), ("replace", 0), ("replace", 9), ("replace", 25), ("end", 0)]
)
async def test_a_killed_move_goes_on(
    tmp_path: Path, fresh: str, start: Start, moment: str, after: int, back: bool
) -> None:
    """
    Killed at any moment, at most one of the two can be opened; the same command again moves all,
    also what was written in between. From either kind of database to the other.
    """
    url, path = await blank(fresh), folder(tmp_path, "file")
    source, target = (url, path) if back else (path, url)
    store = await opened(source)
    await fill(store)
    await keep(store, *(make.account(f"acc_{number:03}") for number in range(100, 200)))
    await store.close()
    process = start(KILLED, source, target, moment, after)
    assert process.wait() == -signal.SIGKILL
    open_ones = [name for name in (source, target) if await opens(name)]
    assert open_ones == ([] if moment == "end" else [source] + [target] * (moment == "begun"))
    if open_ones:
        store = await opened(source)
        await keep(store, make.account("acc_150b"))
        await store.close()
    log: list[MovedTable] = []
    await carry(source, target, log)
    rows = {one.table: one.rows for one in log}
    assert rows["accounts"] == 101 + bool(open_ones)
    assert await opens(target)
    assert not await opens(source)


async def opens(where: str | Path) -> bool:
    """Whether a server would begin there."""
    try:
        store = await opened(where)
    except StoreRefused:
        return False
    await store.close()
    return True


async def test_who_has_the_old_database_open_writes_nothing_more(
    tmp_path: Path, fresh: str
) -> None:
    """A server that nobody stopped gets an error instead of a second life, on either side."""
    url, path, back = await blank(fresh), folder(tmp_path, "a"), folder(tmp_path, "b")
    here = await SqliteStore.open(path)
    await keep(here, make.account("acc_1"))
    await carry(path, url)
    with pytest.raises(StoreUnavailable) as refused:
        await keep(here, make.account("acc_2"))
    assert "this database was moved" in str(refused.value.detail)
    await here.close()
    there = await PostgresStore.open(url)
    await carry(url, back)
    with pytest.raises(StoreUnavailable) as refused:
        await keep(there, make.account("acc_2"))
    assert "this database was moved" in str(refused.value.detail)
    await there.close()


async def test_who_has_the_new_database_open_writes_nothing_before_it_is_whole(
    tmp_path: Path, fresh: str
) -> None:
    """A server that was there first does no work that the old one may do, too, on either side."""
    url, path, back = await blank(fresh), folder(tmp_path, "a"), folder(tmp_path, "b")
    here = await SqliteStore.open(path)
    await keep(here, make.account("acc_1"))
    await here.close()
    for source, target, later in ((path, url, "acc_3"), (url, back, "acc_4")):
        there = await opened(target)

        async def refused(rows: Any, there: Store = there) -> None:
            with pytest.raises(StoreUnavailable):
                await keep(there, make.account("acc_2"))

        await carry(source, target, files=refused)
        await keep(there, make.account(later))
        await there.close()


async def test_what_came_in_at_the_last_moment_is_not_filled_over(
    tmp_path: Path, fresh: str
) -> None:
    """Somebody begins to use the new database just before it is marked: it stays theirs."""
    url, path = await blank(fresh), folder(tmp_path, "a")
    await (await SqliteStore.open(path)).close()

    class Late(PostgresSide):
        @asynccontextmanager
        async def begun(self, mark: Mark) -> AsyncIterator[None]:
            there = await opened(url)
            await keep(there, make.account("acc_2"))
            await there.close()
            async with super().begun(mark):
                yield

    with SqliteSide.opened(path, path.parent) as source:
        async with Late.opened(url) as late:
            with pytest.raises(StoreRefused, match="something in accounts"):
                await move(source, late, print, unread)
    there = await opened(url)
    assert await there.view().get(Account, "acc_2")
    await there.close()


async def test_a_database_that_is_not_empty_is_left_untouched(tmp_path: Path, fresh: str) -> None:
    """Neither a service of its own, nor what another one fills, nor where one left, is a target."""
    url, one, two = await blank(fresh), folder(tmp_path, "a"), folder(tmp_path, "b")
    for path in (one, two):
        store = await SqliteStore.open(path)
        await keep(store, make.account("acc_1"))
        await store.close()
    with pytest.raises(StoreRefused, match="something in accounts"):
        await carry(one, two)
    await carry(one, url)
    with pytest.raises(StoreRefused, match="something in accounts"):
        await carry(two, url)
    with pytest.raises(StoreRefused, match="was moved to"):
        await carry(one, url)
    with pytest.raises(StoreRefused, match="was moved to"):
        await carry(two, one)


async def test_every_table_is_moved_by_its_key_or_left_on_purpose(
    tmp_path: Path, fresh: str
) -> None:
    """A table that a migration adds is found out here."""
    await (await PostgresStore.open(await blank(fresh))).close()
    await (await SqliteStore.open(tmp_path / "wfcore.db")).close()
    connection = await asyncpg.connect(fresh)
    found = await connection.fetch(
        "SELECT relname FROM pg_class WHERE relkind = 'r'"
        " AND relnamespace = current_schema()::regnamespace"
    )
    await connection.close()
    with closing(sqlite3.connect(tmp_path / "wfcore.db")) as database:
        tables = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
        both = {row[0] for row in found} | {row[0] for row in database.execute(tables)}
        assert both | {"moving"} == set(MOVED) | LEFT
        for table, key in MOVED.items():
            about = database.execute(f"PRAGMA table_info({table})").fetchall()
            primary = tuple(row[1] for row in sorted(about, key=lambda row: row[5]) if row[5])
            assert key == primary or table in ("group_checks", "audit_chain"), table


async def test_a_second_move_overwrites_nothing_that_the_moved_service_wrote(
    tmp_path: Path, fresh: str
) -> None:
    """Of two moves at once the later one leaves alone what the other has brought to work."""
    url, path = await blank(fresh), tmp_path / "wfcore.db"
    store = await SqliteStore.open(path)
    await keep(store, make.account("acc_1"))
    await store.close()

    class Late(SqliteSide):
        @asynccontextmanager
        async def locked(self) -> AsyncIterator[None]:
            await carry(path, url)
            there = await PostgresStore.open(url)
            await keep(there, make.account("acc_2"))
            await there.close()
            async with super().locked():
                yield

    with Late.opened(path, tmp_path) as late, pytest.raises(StoreRefused, match="another move"):
        async with PostgresSide.opened(url) as target:
            await move(late, target, print, unread)
    there = await PostgresStore.open(url)
    assert await there.view().get(Account, "acc_2")
    await there.close()


async def test_a_broken_move_goes_on_after_names_were_exchanged(
    tmp_path: Path, fresh: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is unique may belong to another row by then, which is copied before its old owner."""
    monkeypatch.setattr(moving, "BATCH_ROWS", 1)
    url, path = await blank(fresh), tmp_path / "wfcore.db"
    store = await SqliteStore.open(path)
    await keep(store, make.account("acc_1"), make.account("acc_2"))

    async def broken(rows: Any) -> None:
        raise KeyboardInterrupt

    with SqliteSide.opened(path, tmp_path) as source, pytest.raises(KeyboardInterrupt):
        async with PostgresSide.opened(url) as target:
            await move(source, target, print, broken)
    one, two = await store.view().some(Account, ["acc_1", "acc_2"])
    await keep(store, evolve(two, email="free@example.org"))
    await keep(store, evolve(one, email=two.email))
    await store.close()
    await carry(path, url)
    there = await PostgresStore.open(url)
    found = await there.view().get(Account, "acc_1")
    assert found is not None
    assert found.email == two.email
    await there.close()
