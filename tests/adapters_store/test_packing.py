"""Ended executions in one cell: whatever was there is read, changed and deleted as before."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st

from adapters_store.sql import packing
from adapters_store.sql.full_check import Finding
from adapters_store.sql.sealing import AeadSealer, id_of, new_key
from adapters_store.sqlite.connection import Cursor
from adapters_store.sqlite.full_check import check
from adapters_store.sqlite.packing import LAG, MOST_BYTES, Pack, ended_next, pack
from adapters_store.sqlite.store import SqliteStore
from wfcore.errors import Stale, Unreadable
from wfcore.model.event import Event, EventKind
from wfcore.model.execution import Execution, ExecutionStatus, StepResult, StepStatus
from wfcore.model.page import PageRequest
from wfcore.ports.records import ExecutionFilter
from wfcore.ports.store import Store
from wfcore.ports.system import Sealer
from wfcore.testing import ManualClock
from wfcore.testing import builders as make
from wfcore.testing.contracts import samples
from wfcore.testing.contracts.keeping import keep
from wfcore.time import EpochMs

from .test_sealing import CANARY

NOW = make.NOW
PAGE = PageRequest(1, 50)
ROWS = ("events", "step_results", "execution_variables")
ENDED = evolve(
    make.execution("e1", status=ExecutionStatus.COMPLETED, completed_at=NOW, due_at=None),
    variables={"token": CANARY},
    output={"said": CANARY},
    callback_url="https://example.org/hook?token=c4nary",
    step_results={
        "a": StepResult(StepStatus.COMPLETED, NOW, NOW, output={"said": [CANARY]}),
        "b": StepResult(StepStatus.COMPLETED, NOW, NOW, items=[{"row": CANARY}]),
    },
)
EVENTS = (make.event(1, "e1", data={"said": CANARY}), make.event(2, "e1"), make.event(3, "e1"))


def pack_all(cursor: Cursor, sealer: Sealer | None) -> None:
    """Whatever has ended, however short ago."""
    ids = [id for (id,) in cursor.execute("SELECT id FROM executions").fetchall()]
    pack(cursor, ids, sealer, sealer)


@pytest.fixture
def key() -> str:
    return new_key()


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
async def store(tmp_path: Path, key: str, clock: ManualClock) -> AsyncIterator[SqliteStore]:
    """A sealed store without a cache that holds an ended execution."""
    sealer = AeadSealer([key])
    store = await SqliteStore.open(tmp_path / "wfcore.db", None, 0, sealer, clock.service_now)
    await keep(store, ENDED, *EVENTS)
    yield store
    await store.close()


async def packed(store: SqliteStore, clock: ManualClock) -> None:
    """Let upkeep pack all there is."""
    clock.advance(LAG + 1)
    while await store.pack(2):
        pass


def count(store: SqliteStore, table: str, where: str = "true") -> int:
    with closing(sqlite3.connect(store.path)) as database:
        sql = f"SELECT count(*) FROM {table} WHERE {where}"
        return int(database.execute(sql).fetchone()[0])


def cells(store: SqliteStore) -> int:
    """How many executions are packed, with nothing left of their rows."""
    assert not [name for name in ROWS if count(store, name)]
    return count(store, "executions", "packed IS NOT NULL AND body = ''")


async def seen(store: Store) -> list[Any]:
    """The execution, its events, and the list it is in."""
    async with store.view() as view:
        return [
            await view.get(Execution, "e1"),
            *await view.events.of_execution("e1", 0, 99),
            await view.executions.list(ExecutionFilter(), PAGE),
        ]


datas = st.dictionaries(st.text(max_size=3), st.integers() | st.text(max_size=5), max_size=2)
events = st.lists(st.tuples(st.integers(0, 1 << 45), st.sampled_from(EventKind), datas), max_size=5)
texts = st.text(max_size=9)
results = st.builds(
    StepResult,
    st.sampled_from(StepStatus),
    st.integers(0, 1 << 45).map(EpochMs),
    output=st.none() | texts | datas,
    items=st.none() | st.lists(datas, max_size=2),
)
runs = st.builds(
    lambda of, **given: evolve(of, id="e1", version=0, **given),
    st.sampled_from((ENDED, samples.EXECUTION)),
    status=st.sampled_from(
        (ExecutionStatus.COMPLETED, ExecutionStatus.FAILED, ExecutionStatus.CANCELLED)
    ),
    completed_at=st.integers(0, NOW).map(EpochMs),
    step_results=st.dictionaries(st.text("ab.1", min_size=1, max_size=4), results, max_size=4),
    put_aside=st.dictionaries(st.sampled_from(("1/a", "2/b")), results),
    variables=datas,
    output=st.none() | texts | datas,
    secrets=st.sampled_from(((), ("token",))),
)


@settings(max_examples=25, deadline=None)
@given(
    run=runs, said=events, sealed=st.booleans(), after=st.integers(0, 6), limit=st.integers(1, 6)
)
def test_whatever_was_stored_is_read_again(
    tmp_path_factory: pytest.TempPathFactory,
    run: Execution,
    said: list[Any],
    sealed: bool,
    after: int,
    limit: int,
) -> None:
    """Whole, listed, and every part of its log: before and after it was packed."""

    async def compared() -> None:
        path = tmp_path_factory.mktemp("packed") / "wfcore.db"
        sealer = AeadSealer([new_key()]) if sealed else None
        store = await SqliteStore.open(path, cache_bytes=0, sealer=sealer)
        log = [
            Event("e1", n, EpochMs(at), kind, data) for n, (at, kind, data) in enumerate(said, 1)
        ]
        await keep(store, run, *log)

        async def look() -> Any:
            async with store.view() as view:
                part = await view.events.of_execution("e1", after, limit)
            return [*await seen(store), part]

        before = await look()
        assert await store.pack(9) == 1
        assert cells(store) == 1
        assert await look() == before
        assert before[-1] == log[after : after + limit]
        await store.close()

    asyncio.run(compared())


async def test_what_ended_a_minute_ago_is_packed_once(
    store: SqliteStore, clock: ManualClock
) -> None:
    """Not before, not what goes on, and not again; it costs nothing when there is nothing to do."""
    going = make.execution("e2", status=ExecutionStatus.RUNNING)
    await keep(store, going)
    clock.advance(LAG)
    assert await store.pack(9) == 0
    clock.advance(1)
    before = await seen(store)
    assert await store.pack(9) == 1
    assert await seen(store) == before
    assert count(store, "executions", "packed IS NOT NULL") == 1
    assert await store.pack(9) == 0


async def test_nothing_is_in_clear(store: SqliteStore, clock: ManualClock) -> None:
    """What was sealed in rows is sealed in the cell, and only there."""
    await packed(store, clock)
    assert cells(store) == 1
    with closing(sqlite3.connect(store.path)) as database:
        row = database.execute("SELECT * FROM executions").fetchone()
    assert "c4nary" not in str(row)
    assert b"c4nary" not in b"".join(one for one in row if isinstance(one, bytes))


async def test_what_ended_can_change_later(store: SqliteStore, clock: ManualClock) -> None:
    """A late put counts, with events behind those that are packed; both can be packed again."""
    await packed(store, clock)
    async with store.unit() as unit:
        run = await unit.get(Execution, "e1")
        assert run is not None
        unit.put(evolve(run, events=4, output="late", step_results={"b": run.step_results["a"]}))
        unit.append(make.event(4, "e1"))
        await unit.commit()
    before = await seen(store)
    assert before[0].output == "late"
    assert list(before[0].step_results) == ["b"]
    assert [one.number for one in before[1:-1]] == [1, 2, 3, 4]
    async with store.view() as view:
        parts = [await view.events.of_execution("e1", n, 2) for n in range(5)]
    assert [[one.number for one in part] for part in parts] == [[1, 2], [2, 3], [3, 4], [4], []]
    await store._writer.submit(lambda cursor: pack_all(cursor, store.sealer))
    assert cells(store) == 1
    assert await seen(store) == before


async def test_a_cached_record_does_not_hide_that_rows_are_gone(
    tmp_path: Path, clock: ManualClock
) -> None:
    """Whoever knows an execution from before another process packed it writes all of it."""
    path = tmp_path / "wfcore.db"
    one, other = [await SqliteStore.open(path, now=clock.service_now) for _ in range(2)]
    await keep(one, ENDED, *EVENTS)
    await packed(other, clock)
    async with one.unit() as unit:
        run = await unit.get(Execution, "e1")
        assert run is not None
        unit.put(evolve(run, error="late"))
        await unit.commit()
    found = (await seen(other))[0]
    assert found == evolve(ENDED, error="late", version=2)
    assert await seen(one) == await seen(other)
    for store in (one, other):
        await store.close()


async def test_a_put_between_looking_and_packing_is_packed(
    store: SqliteStore, clock: ManualClock
) -> None:
    """The cell is made of what is stored at that moment; two that pack the same do no harm."""
    clock.advance(LAG + 1)
    found = await store._reads.rows(ended_next(store.now(), 9))
    other = await SqliteStore.open(store.path, None, 0, store.sealer, clock.service_now)
    async with other.unit() as unit:
        run = await unit.get(Execution, "e1")
        assert run is not None
        unit.put(evolve(run, output="late"))
        unit.append(make.event(4, "e1"))
        await unit.commit()
    before = await seen(other)
    for handle in (store, other, store):
        await handle._writer.submit(Pack.of(found, store.sealer))
        assert await seen(other) == await seen(store) == before
    assert cells(store) == 1
    await other.close()


async def test_a_packed_number_is_given_once(store: SqliteStore, clock: ManualClock) -> None:
    """Also by who does not put the execution."""
    await packed(store, clock)
    for number in (1, 3):
        with pytest.raises(Stale):
            await keep(store, make.event(number, "e1"))
    await keep(store, make.event(4, "e1"))
    with pytest.raises(Stale):
        await keep(store, make.event(4, "e1"))


async def test_what_cannot_be_read_stays_as_it_is(store: SqliteStore, clock: ManualClock) -> None:
    """It stops nobody, and is told as before; what is missing an event, or large, stays as well."""
    for n in range(2, 9):
        await keep(store, evolve(ENDED, id=f"e{n}"), make.event(1, f"e{n}"))
    await keep(store, make.event(3, "e8"), evolve(ENDED, id="e9", output="x" * MOST_BYTES))
    with closing(sqlite3.connect(store.path)) as database, database:
        for sql in (
            "UPDATE executions SET body = '{' WHERE id = 'e2'",
            "UPDATE executions SET body = CAST(x'7bff7d' AS TEXT) WHERE id = 'e3'",
            "UPDATE step_results SET output = '~x' WHERE execution_id = 'e4' AND position = 0",
            "UPDATE events SET data = '[' WHERE execution_id = 'e5'",
            "UPDATE execution_variables SET body = '' WHERE execution_id = 'e6'",
        ):
            assert database.execute(sql).rowcount == 1
    await packed(store, clock)
    with closing(sqlite3.connect(store.path)) as database:
        found = database.execute("SELECT id FROM executions WHERE packed IS NOT NULL ORDER BY id")
        assert [id for (id,) in found] == ["e1", "e7"]
    async with store.view() as view:
        with pytest.raises(Unreadable):
            await view.get(Execution, "e2")
        assert await view.get(Execution, "e5") is not None
        assert [run.id for run in (await view.executions.list(ExecutionFilter(), PAGE)).rows][:2]


async def test_keys_change(store: SqliteStore, clock: ManualClock, key: str) -> None:
    """A rotation seals cells anew; until then their key is in use, as with a damaged one."""
    await keep(store, evolve(ENDED, id="e2"))
    await packed(store, clock)
    before, fresh = await seen(store), new_key()
    both = AeadSealer([fresh, key])
    assert await store.forget_keys([id_of(key)]) == []
    tool = await SqliteStore.open(store.path, None, 0, both, clock.service_now)
    with closing(sqlite3.connect(store.path)) as database, database:
        database.execute("UPDATE executions SET packed = substr(packed, 1, 60) WHERE id = 'e2'")
    assert await tool.reseal(both) == 1
    assert await tool.sealed() == {id_of(fresh): 1, id_of(key): 1}
    assert await tool.forget_keys([id_of(key)]) == []
    with closing(sqlite3.connect(store.path)) as database, database:
        database.execute("DELETE FROM executions WHERE id = 'e2'")
    assert await tool.forget_keys([id_of(key)]) == [id_of(key)]
    only = await SqliteStore.open(store.path, None, 0, AeadSealer([fresh]), clock.service_now)
    assert (await seen(only))[:-1] == before[:-1]
    for one in (tool, only):
        await one.close()


async def test_what_was_packed_in_clear_is_sealed_later(tmp_path: Path, clock: ManualClock) -> None:
    """A store that gets a key reads no cell in clear until it is sealed on request."""
    plain = await SqliteStore.open(tmp_path / "wfcore.db", None, 0, None, clock.service_now)
    await keep(plain, ENDED, *EVENTS)
    await packed(plain, clock)
    before = await seen(plain)
    assert await plain.sealed() == {None: 1}
    await plain.close()
    sealer = AeadSealer([new_key()])
    store = await SqliteStore.open(plain.path, None, 0, sealer, clock.service_now)
    with pytest.raises(Unreadable):
        await seen(store)
    assert await store.reseal(sealer) == 0
    assert await store.reseal(sealer, clear=True) == 1
    assert await store.sealed() == {sealer.keys[0]: 1}
    assert await seen(store) == before
    await store.close()


@pytest.mark.parametrize("change", ["id", "number", "byte", "end"])
async def test_damage_within_a_cell_is_found(
    store: SqliteStore, clock: ManualClock, change: str
) -> None:
    """Moved, changed or cut: it cannot be read, the full check names it, and others go on."""
    await keep(store, evolve(ENDED, id="e2"), make.event(1, "e2"))
    await packed(store, clock)
    assert not [one for one in check(store.path, None, store.sealer) if isinstance(one, Finding)]
    new = {
        "id": "(SELECT packed FROM executions WHERE id = 'e2')",
        "number": "CAST(substr(packed, 1, 4) || x'07' || substr(packed, 6) AS BLOB)",
        "byte": "CAST(substr(packed, 1, 40) || x'00ff' || substr(packed, 43) AS BLOB)",
        "end": "substr(packed, 1, length(packed) - 1)",
    }[change]
    with closing(sqlite3.connect(store.path)) as database, database:
        database.execute(f"UPDATE executions SET packed = {new} WHERE id = 'e1'")
        database.execute("UPDATE pulse SET beats = beats + 1")
    found = [one for one in check(store.path, None, store.sealer) if isinstance(one, Finding)]
    assert [one.what for one in found] == ["e1 cannot be read: ValueError"]
    async with store.view() as view:
        with pytest.raises(Unreadable):
            await view.get(Execution, "e1")
        assert await view.events.of_execution("e1", 0, 9) == []
        assert len(await view.events.of_execution("e2", 0, 9)) == 1
        assert [run.id for run in (await view.executions.list(ExecutionFilter(), PAGE)).rows] == [
            "e2"
        ]


async def test_events_that_cannot_be_read_are_found(store: SqliteStore, clock: ManualClock) -> None:
    """The full check reads those of a cell, although the rest of it can be read."""
    await packed(store, clock)
    with closing(sqlite3.connect(store.path)) as database, database:
        (cell,) = database.execute("SELECT packed FROM executions").fetchone()
        parts = packing.parts_of(cell, store.sealer, "e1")._replace(events='[[1,"none.such"]]')
        broken = packing.cell_of(parts, 1, store.sealer, "e1")
        database.execute("UPDATE executions SET packed = ?", (broken,))
    found = [one for one in check(store.path, None, store.sealer) if isinstance(one, Finding)]
    assert [one.what for one in found] == ["e1 cannot be read: ValueError"]
    async with store.view() as view:
        assert await view.get(Execution, "e1") is not None
        assert await view.events.of_execution("e1", 0, 9) == []


async def test_a_purge_leaves_nothing(store: SqliteStore, clock: ManualClock) -> None:
    """Neither the cell nor what was appended to it."""
    await packed(store, clock)
    await keep(store, make.event(4, "e1"))
    async with store.unit() as unit:
        unit.purge("e1")
        await unit.commit()
    assert [count(store, name) for name in (*ROWS, "executions")] == [0, 0, 0, 0]


CELL = "0100000001c35936a394be28c539d84ce432144741082c6ab840716d800044875e2c00"


def test_the_form_of_before_is_read() -> None:
    """A cell in clear as the first release wrote it: its dictionary never changes."""
    cell = bytes.fromhex(CELL)
    parts = packing.parts_of(cell, None, "e1")
    assert packing.entries_of(parts) == [(NOW, "step.started", {"step": "a", "attempt": 1})]
    assert parts.head == '{"workflow_name":"flow","revision":1,"variables":{"n":1}}'
    assert parts.steps == '[{"name":"a","status":"COMPLETED"}]'
    with pytest.raises(ValueError, match="it was cut"):
        packing.parts_of(cell[:-2], None, "e1")
