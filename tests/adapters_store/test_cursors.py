"""A walk through a list by cursors, while others write to it over a handle of their own."""

import asyncio
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from attrs import frozen
from hypothesis import given, settings
from hypothesis import strategies as st

from adapters_store.sqlite.store import SqliteStore
from wfcore.model.execution import Execution, ExecutionStatus
from wfcore.model.page import PageRequest
from wfcore.ports.records import ExecutionFilter
from wfcore.testing import builders as make
from wfcore.testing.builders import NOW
from wfcore.testing.contracts.keeping import keep
from wfcore.time import EpochMs

IDS = [f"exec_{letter}" for letter in "abcdefgh"]


@frozen
class Change:
    """Between two pages: an execution that is added (at an instant) or purged."""

    id: str
    at: int | None


changes = st.builds(Change, st.sampled_from(IDS), st.none() | st.integers(0, 3))
walks = st.tuples(
    st.lists(changes, max_size=8),  # before the walk
    st.lists(st.lists(changes, max_size=3), max_size=8),  # between its pages
    st.integers(1, 3),
    st.builds(
        ExecutionFilter,
        owner_id=st.sampled_from((None, "acc_1")),
        statuses=st.sampled_from(((), (ExecutionStatus.PENDING,))),
        oldest_first=st.booleans(),
    ),
)


async def make_change(store: SqliteStore, one: Change) -> None:
    async with store.view() as view:
        known = await view.get(Execution, one.id)
    if one.at is None:
        async with store.unit() as unit:
            unit.purge(one.id)
            await unit.commit()
    elif known is None:
        await keep(store, make.execution(one.id, accepted_at=EpochMs(NOW + one.at)))


async def walk(folder: Path, drawn: Any) -> None:
    before, between, size, where = drawn
    writer = await SqliteStore.open(folder / "wfcore.db")
    reader = await SqliteStore.open(folder / "wfcore.db")
    try:
        for one in before:
            await make_change(writer, one)
        async with reader.view() as view:
            there = {one.id for one in (await view.executions.list(where, PageRequest())).rows}
        seen: list[str] = []
        page: PageRequest | None = PageRequest(size=size)
        rounds = iter(between)
        while page is not None:
            async with reader.view() as view:
                found = await view.executions.list(where, page)
            seen += [one.id for one in found.rows]
            assert len(seen) <= 2 * len(IDS) * (1 + len(between)), "it goes on for ever"
            page = found.rest
            for one in next(rounds, ()):
                await make_change(writer, one)
                there -= {one.id}  # it went, or is another one now
    finally:
        await reader.close()
        await writer.close()
    assert sorted(id for id in seen if id in there) == sorted(there)


@settings(max_examples=60, deadline=None)
@given(walks)
def test_a_walk_shows_what_was_there_throughout_exactly_once(drawn: Any) -> None:
    """Whatever another handle adds and purges between two pages, in either order. PG-5."""
    with TemporaryDirectory() as folder:
        asyncio.run(walk(Path(folder), drawn))
