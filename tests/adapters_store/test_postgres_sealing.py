"""Sealed cells in PostgreSQL: how keys change, and what is in clear in the place of sealed."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from adapters_store.postgres.store import PostgresStore
from adapters_store.sql.cells import SEALED
from adapters_store.sql.full_check import Finding
from adapters_store.sql.packing import CellParts, cell_of
from adapters_store.sql.sealing import AeadSealer, id_of, new_key
from tests.support.postgres_server import emptied
from wfcore.errors import StoreRefused, Unreadable
from wfcore.model.event import Event, EventKind
from wfcore.testing import builders as make

from .test_sealing import CANARY, NOW, fill, seen


@pytest.fixture
def key() -> str:
    return new_key()


@pytest.fixture
async def store(database: str, key: str) -> AsyncIterator[PostgresStore]:
    """A sealed store that holds everything, and an execution that SQLite had packed."""
    store = await PostgresStore.open(await emptied(database), sealer=AeadSealer([key]))
    await fill(store)
    packed = cell_of(CellParts("{}", "[]", "", "[]"), 0, store.sealer, "exec_1")
    await run(store, "UPDATE executions SET packed = $1", packed)
    yield store
    await store.close()


async def run(store: PostgresStore, sql: str, *values: Any) -> list[Any]:
    async with store.pool.acquire() as connection:
        return list(await connection.fetch(sql, *values))


async def test_a_rotation_seals_everything_anew(
    store: PostgresStore, key: str, database: str
) -> None:
    """All is read as before, with the new key alone; the old one is no longer required."""
    before, count = await seen(store), (await store.sealed())[id_of(key)]
    fresh = new_key()
    both = await PostgresStore.open(database, sealer=AeadSealer([fresh, key]))
    assert both.sealer is not None
    assert count > sum(len(one.columns) for one in SEALED.values())
    assert await both.reseal(both.sealer) == count
    assert await both.sealed() == {id_of(fresh): count}
    assert await both.forget_keys([id_of(key)]) == [id_of(key)]
    await both.close()
    with pytest.raises(StoreRefused, match=id_of(fresh)):
        await PostgresStore.open(database, sealer=AeadSealer([key]))
    again = await PostgresStore.open(database, sealer=AeadSealer([fresh]))
    assert await seen(again) == before
    await again.close()


async def test_a_key_in_use_is_not_forgotten(store: PostgresStore, key: str) -> None:
    """As long as one cell is sealed with it, damaged ones too, a start asks for it."""
    await run(store, "UPDATE webhooks SET body = substr(body, 1, 40)")
    await store.reseal(AeadSealer([new_key(), key]))
    assert (await store.sealed())[id_of(key)] == 1
    assert await store.forget_keys([id_of(key)]) == []


async def test_keys_change_while_others_write(
    store: PostgresStore, key: str, database: str, tmp_path: Path
) -> None:
    """What a server writes meanwhile is kept: a rotation replaces only what it has read."""
    file = tmp_path / "seal.key"
    file.write_text(key)
    server = await PostgresStore.open(database, sealer=AeadSealer(file=file))
    fresh = new_key()
    file.write_text(f"{fresh}\n{key}\n")
    sealer = AeadSealer(file=file)

    async def write() -> None:
        for number in range(2, 60):
            async with server.unit() as unit:
                unit.append(Event("exec_1", number, NOW, EventKind.STEP_LOG, {"n": CANARY}))
                unit.put(make.webhook(f"wh_n{number}"))
                await unit.commit()

    await asyncio.gather(write(), store.reseal(sealer))
    await store.reseal(sealer)
    assert list(await store.sealed()) == [id_of(fresh)]
    file.write_text(fresh)
    assert len(await run(store, "SELECT 1 FROM webhooks")) == 59
    assert [one.what async for one in server.check() if isinstance(one, Finding)] == []
    await server.close()


async def test_what_was_written_since_it_was_read_is_left_to_the_next_pass(
    store: PostgresStore, key: str
) -> None:
    """A change between reading a batch and replacing its cells is not undone."""
    from adapters_store.sql.sealing_keys import Resealing, page

    work = Resealing(AeadSealer([new_key(), key]))
    sql, _ = page("webhooks", None)
    rows = [tuple(row) for row in await run(store, sql)]
    await run(store, "UPDATE webhooks SET body = 'newer'")
    for change, values in work.changes("webhooks", rows):
        from adapters_store.postgres.connection import numbered

        await run(store, numbered(change), *values)
    assert [row[0] for row in await run(store, "SELECT body FROM webhooks")] == ["newer"]


@pytest.mark.parametrize(
    ("table", "column"), [(name, col) for name, about in SEALED.items() for col in about.columns]
)
async def test_a_cell_in_clear_is_refused_where_cells_are_sealed(
    store: PostgresStore, key: str, table: str, column: str
) -> None:
    """SC-10: it is named by the check, counted as in clear, and a rotation does not seal it."""
    about = SEALED[table]
    names = ", ".join(about.bound or about.key)
    [(cell, *row)] = await run(
        store, f"SELECT {column}, {names} FROM {table} WHERE {column} LIKE '~%' LIMIT 1"
    )
    assert store.sealer is not None
    text = store.sealer.open(cell[1:], f"{table}.{column}/{'/'.join(map(str, row))}")
    await run(store, f"UPDATE {table} SET {column} = $1 WHERE {column} = $2", text, cell)
    if table == "executions":
        await run(store, "UPDATE executions SET packed = NULL")
    found = [one async for one in store.check() if isinstance(one, Finding)]
    assert ["it is in clear" in one.what for one in found].count(True) == 1
    assert (await store.sealed())[None] == 1
    both = AeadSealer([new_key(), key])
    await store.reseal(both)
    assert await run(store, f"SELECT 1 FROM {table} WHERE {column} = $1", text)
    await store.reseal(both, clear=True)
    assert None not in await store.sealed()


async def test_rows_that_belong_to_nobody_are_found(store: PostgresStore) -> None:
    """An execution that was deleted by hand leaves rows: each table that has some is named."""
    await run(store, "DELETE FROM executions")
    found = {one.where async for one in store.check() if isinstance(one, Finding)}
    assert {"events", "logs", "approvals", "step_results", "execution_variables"} <= found


async def test_an_email_finds_the_account_whose_record_has_it(store: PostgresStore) -> None:
    """SC-10: an email that SQL gave to another row finds nobody, and the check names the row."""
    assert not any("its column" in one for one in await told(store))
    await run(store, "UPDATE accounts SET email = 'eve@example.org'")
    async with store.view() as view:
        with pytest.raises(Unreadable):
            await view.accounts.by_email("eve@example.org")
    (found,) = (one for one in await told(store) if "its column" in one)
    assert found.endswith(" cannot be read: its column email is not that of the record")


async def told(store: PostgresStore) -> list[str]:
    return [one.what async for one in store.check() if isinstance(one, Finding)]
