"""The public codec gives back every record, and the public names are enough to write a store."""

import inspect
import json
import sqlite3
import typing
from collections.abc import Iterator
from contextlib import closing
from importlib import import_module
from pathlib import Path
from typing import Any

import attrs
import pytest
from attrs import evolve

from adapters_store import CACHE_BYTES
from adapters_store.sql.execution_rows import COLUMNS, write_head
from adapters_store.sqlite.store import SqliteStore
from wfcore.model.event import AuditEntry, Event
from wfcore.model.execution import Execution
from wfcore.model.webhook import Delivery, Tally
from wfcore.ports import RECORDS, decode_record, encode_record
from wfcore.testing import builders as make
from wfcore.testing.contracts import samples
from wfcore.testing.contracts.keeping import keep
from wfdocs.surface import GROUPS

LOGGED = (
    make.event(3, data={"step": "a", "n": [1, None, "\u0000"]}),
    make.audit_entry(details={"a": samples.AWKWARD}),
    make.delivery(payload={"a": samples.AWKWARD}),
    Tally("wh_1", "2023-11-14", 202, 3, make.NOW),
)


@pytest.mark.parametrize("record", [*samples.RECORDS, *LOGGED], ids=lambda one: type(one).__name__)
def test_a_record_is_the_same_after_its_json(record: Any) -> None:
    """Every kind, every awkward value, versions too; the text is JSON that anybody reads."""
    if hasattr(record, "version"):
        record = evolve(record, version=7)
    text = encode_record(record)
    assert decode_record(type(record), text) == record
    assert isinstance(json.loads(text), dict)


def test_what_says_nothing_takes_no_room() -> None:
    """
    None, zero and what is empty, where that is the default; not in what a record holds either: an
    execution has thousands of results. Other defaults may change, and are written.
    """
    run = make.execution(step_results={"a": make.step_result(), "b": make.step_result(postponed=1)})
    stored = json.loads(encode_record(run))
    looked_for = {"output", "refused", "postponed", "steps"}
    assert [{*one} & looked_for for one in stored["step_results"].values()] == [
        {"steps"},
        {"postponed", "steps"},
    ]


def test_a_body_does_not_repeat_what_a_column_holds() -> None:
    """Ids, status and instants of an execution are stored once."""
    assert not {*COLUMNS} & {*write_head(samples.EXECUTION)}


async def test_a_body_of_before_that_repeats_columns_is_read(tmp_path: Path) -> None:
    """What it repeats is of its own time: the columns count."""
    path, run = tmp_path / "wfcore.db", samples.EXECUTION
    store = await SqliteStore.open(path)
    await keep(store, run)
    async with store.view() as view:
        stored = await view.get(Execution, run.id)
    await store.close()
    stale = {"id": "other", "owner_id": "other", "status": "PENDING", "accepted_at": 1}
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("UPDATE executions SET body = json_patch(body, ?)", (json.dumps(stale),))
    again = await SqliteStore.open(path)
    async with again.view() as view:
        assert stored is not None
        assert await view.get(Execution, run.id) == stored
    await again.close()


@pytest.mark.parametrize("cache_bytes", [0, CACHE_BYTES])
@pytest.mark.parametrize("variables", [{}, {"n": 1}])
async def test_variables_have_a_row_where_there_are_any(
    tmp_path: Path, variables: Any, cache_bytes: int
) -> None:
    """Also after further transitions, by whoever knows nothing of them; others have none."""
    path, run = tmp_path / "wfcore.db", make.execution(variables=variables)
    store = await SqliteStore.open(path, cache_bytes=cache_bytes)
    await keep(store, run)
    for changed in ({"events": 1}, {"variables": {}}):
        async with store.unit() as unit:
            found = await unit.get(Execution, run.id)
            assert found is not None
            unit.put(evolve(found, **changed))
            await unit.commit()
        with closing(sqlite3.connect(path)) as database:
            rows = database.execute("SELECT body FROM execution_variables").fetchall()
        assert bool(rows) == bool(variables and "variables" not in changed)
    await store.close()
    again = await SqliteStore.open(path)
    async with again.view() as view:
        found = await view.get(Execution, run.id)
    assert found is not None
    assert found.variables == {}
    await again.close()


def held(kind: Any, seen: set[Any]) -> Iterator[Any]:
    """The classes of our own that a type names, directly or in a field."""
    for part in typing.get_args(kind):
        yield from held(part, seen)
    ours = inspect.isclass(kind) and kind.__module__.startswith("wfcore.")
    if ours and kind not in seen:
        seen.add(kind)
        yield kind
        for field in attrs.fields(kind) if attrs.has(kind) else ():
            yield from held(field.type, seen)


def test_every_record_and_value_is_public() -> None:
    """Whatever a store is given or gives back has a public name."""
    stored = [kind.type for kind in RECORDS] + [Event, AuditEntry, Delivery, Tally]
    found = [one for kind in stored for one in held(kind, set())]
    public = {name for group in GROUPS for name in import_module(group).__all__}
    assert {one.__name__ for one in found} - public == set()
