"""The cache of decoded records keeps within its bytes: no entry costs more than is counted."""

import gc
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve

from adapters_store.sql import execution_queries
from adapters_store.sql.cells import Cells, Row
from adapters_store.sqlite.store import SqliteStore
from wfcore.model.execution import Execution
from wfcore.model.page import PageRequest
from wfcore.ports.records import ExecutionFilter
from wfcore.rules.limits import MAX_STEP_RESULTS
from wfcore.testing import builders as make
from wfcore.testing.contracts.keeping import keep

MANY = 120
VALUES: dict[str, Any] = {
    "nothing": None,
    "numbers": list(range(1_000, 3_000)),
    "fractions": [n / 7 for n in range(500)],
    "rows": [{"id": f"order-{n}", "amount": n * 1.5, "ok": True, "note": None} for n in range(99)],
    "empty lists": [[]] * 2_000,
    "empty objects": [{}] * 2_000,
    "small objects": [{"a": 1}] * 1_000,
    "names": {f"key{n}": n for n in range(1_000)},
    "text": "x" * 20_000,
    "wide text": "\N{GRINNING FACE}" + "x" * 20_000,
}


def ids() -> list[str]:
    return [f"e{n}" for n in range(MANY)]


@pytest.fixture
async def fresh(tmp_path: Path, request: pytest.FixtureRequest) -> Any:
    """Another store on a file with executions whose step has the given output."""
    path = tmp_path / "wfcore.db"
    writing = await SqliteStore.open(path)
    steps = {"a": make.step_result(output=VALUES[request.param])}
    await keep(writing, *(make.execution(id, step_results=steps) for id in ids()))
    await writing.close()
    fresh = await SqliteStore.open(path, cache_bytes=1 << 30)
    async with fresh.view() as view:
        await view.get(Execution, "e0")  # what the first one costs is paid
    yield fresh
    await fresh.close()


@pytest.mark.parametrize("fresh", VALUES, indirect=True)
async def test_entries_cost_no_more_than_is_counted(fresh: SqliteStore) -> None:
    """Whatever records look like, what they take up is at most what the bound counts."""
    cache = fresh._reads.cache
    counted = cache.filled
    gc.collect()
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    async with fresh.view() as view:
        for id in ids():
            assert await view.get(Execution, id) is not None
    gc.collect()
    taken = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    assert len(cache.entries) == MANY
    assert taken <= (cache.filled - counted) * 1.1
    assert cache.filled - counted <= taken * 4


async def test_the_bound_holds_however_much_is_read_and_written(tmp_path: Path) -> None:
    """The oldest entries make room, whether read or written; large ones never enter."""
    store = await SqliteStore.open(tmp_path / "wfcore.db", cache_bytes=200_000)
    cache = store._reads.cache
    most = 0
    for number in range(150):
        steps = {"a": make.step_result(output=list(range(number)))}
        await keep(store, make.execution(f"e{number}", step_results=steps))
        async with store.view() as view:
            assert await view.get(Execution, f"e{number // 2}") is not None
        most = max(most, cache.filled)
        assert cache.filled == sum(known.size for known in cache.entries.values()) <= 200_000
    assert most > 150_000
    assert 0 < len(cache.entries) < 150
    await keep(store, make.execution("large", variables={"x": "x" * 250_000}))
    async with store.view() as view:
        assert await view.get(Execution, "large") is not None
    assert ("executions", ("large",)) not in cache.entries
    assert cache.entries
    await store.close()


async def test_a_loop_of_as_many_rounds_as_may_be_is_kept(tmp_path: Path) -> None:
    """As it comes, the cache holds it: whoever wrote it never decodes it, others do so once."""
    path = tmp_path / "wfcore.db"
    steps = {
        f"all.{round}.one": make.step_result(output={"checked": "one"})
        for round in range(MAX_STEP_RESULTS)
    }
    writing = await SqliteStore.open(path)
    await keep(writing, make.execution("e1", step_results=steps))
    reading = await SqliteStore.open(path)
    for store, decoded in ((writing, 0), (reading, 1)):
        for _ in range(3):
            async with store.view() as view:
                assert await view.get(Execution, "e1") is not None
        assert store._reads.cache.decoded == decoded
        await store.close()


async def test_an_execution_that_changes_often_counts_once(tmp_path: Path) -> None:
    """After many changes an entry counts about what it does for who reads it anew."""
    path = tmp_path / "wfcore.db"
    store = await SqliteStore.open(path)
    await keep(store, make.execution("e1", events=0, variables={"x": "y" * 2_000}))
    for number in range(60):
        async with store.unit() as unit:
            run = await unit.get(Execution, "e1")
            assert run is not None
            result = make.step_result(output=["x" * 1_000] * (number % 3 + 1))
            steps = {**run.step_results, f"s{number % 5}": result}
            unit.put(evolve(run, step_results=steps, events=number))
            await unit.commit()
    fresh = await SqliteStore.open(path)
    async with fresh.view() as view:
        assert await view.get(Execution, "e1") is not None
    one, other = (s._reads.cache.entries["executions", ("e1",)].size for s in (store, fresh))
    assert other * 0.8 < one < other * 1.2
    await store.close()
    await fresh.close()


async def test_caches_can_be_dropped_while_the_store_is_used(tmp_path: Path) -> None:
    """What is only kept to be fast goes; reads, lists and writes go on as before."""
    store = await SqliteStore.open(tmp_path / "wfcore.db")
    await keep(store, make.execution("e0"))
    async with store.view() as view:
        await view.get(Execution, "e0")
        await view.executions.list(ExecutionFilter(), PageRequest())
    assert store._reads.cache.filled
    await store.drop_caches()
    assert (store._reads.cache.filled, len(store._reads.cache.entries)) == (0, 0)
    async with store.view() as view:
        found = await view.get(Execution, "e0")
        assert found is not None
        page = await view.executions.list(ExecutionFilter(), PageRequest())
    assert [one.id for one in page.rows] == ["e0"]
    async with store.unit() as unit:
        unit.put(found)
        await unit.commit()
    async with store.view() as view:
        changed = await view.get(Execution, "e0")
    assert changed is not None
    assert changed.version == found.version + 1
    await store.close()


async def test_rows_of_a_list_are_decoded_once_for_each_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A list that is asked for again decodes what has changed; a long page caches nothing."""
    store = await SqliteStore.open(tmp_path / "wfcore.db")
    await keep(store, *(make.execution(f"e{n}") for n in range(3)))
    decoded: list[str] = []
    decode = execution_queries.decode_listed

    def counted(row: Row, cells: Cells) -> Execution:
        decoded.append(row[-1])
        return decode(row, cells)

    async def errors(size: int = 20) -> list[str | None]:
        async with store.view() as view:
            found = await view.executions.list(ExecutionFilter(), PageRequest(1, size))
        return [one.error for one in sorted(found.rows, key=lambda one: one.id)]

    monkeypatch.setattr(execution_queries, "decode_listed", counted)
    assert await errors(101) == await errors() == await errors() == [None] * 3
    assert sorted(decoded) == ["e0", "e0", "e1", "e1", "e2", "e2"]
    async with store.unit() as unit:
        run = await unit.get(Execution, "e1")
        assert run is not None
        unit.put(evolve(run, error="changed"))
        await unit.commit()
    assert await errors() == await errors() == [None, "changed", None]
    assert decoded[6:] == ["e1"]
    await store.close()
