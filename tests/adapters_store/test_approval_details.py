"""What an approval holds beside its head lies apart: lists do not touch it."""

import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path

import pytest
from attrs import evolve

from adapters_store.sql.sealing import AeadSealer, new_key
from adapters_store.sqlite.store import SqliteStore
from wfcore.errors import Unreadable
from wfcore.model.approval import Approval, ApprovalStatus, Assent
from wfcore.model.page import PageRequest
from wfcore.ports.records import ApprovalFilter
from wfcore.testing import builders as make
from wfcore.testing.contracts.keeping import keep
from wfcore.testing.contracts.samples import APPROVAL

PAGE = PageRequest(1, 50)
ASKED = evolve(APPROVAL, status=ApprovalStatus.PENDING)


def change(path: Path, sql: str, *values: str) -> None:
    """By hand, as nobody should."""
    with closing(sqlite3.connect(path)) as database, database:
        database.execute(sql, values)


def count(path: Path) -> int:
    with closing(sqlite3.connect(path)) as database:
        return int(database.execute("SELECT count(*) FROM approval_details").fetchone()[0])


async def test_a_list_of_approvals_opens_no_rows(store: SqliteStore) -> None:
    """The rows may even be lost: only who asks for them is told."""
    await keep(store, ASKED)
    change(store.path, "DELETE FROM approval_details")
    again = await SqliteStore.open(store.path, sealer=store.sealer, cache_bytes=0)
    async with again.view() as view:
        (listed,) = (await view.approvals.list(ApprovalFilter(), PAGE)).rows
        assert listed == evolve(ASKED, version=1).head
        with pytest.raises(Unreadable):
            await view.get(Approval, ASKED.id)
    await again.close()


@pytest.fixture
async def sealed(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    """A sealed store that remembers nothing."""
    sealer = AeadSealer([new_key()])
    store = await SqliteStore.open(tmp_path / "sealed.db", sealer=sealer, cache_bytes=0)
    yield store
    await store.close()


async def test_details_go_with_their_approval(store: SqliteStore) -> None:
    """Also where many executions are purged at once."""
    await keep(store, ASKED)
    async with store.unit() as unit:
        unit.purge(ASKED.execution_id)
        await unit.commit()
    assert count(store.path) == 0


async def test_lists_of_approvals_look_at_columns(sealed: SqliteStore) -> None:
    """Who has assented, and who may not decide alone, is found though the body is sealed."""
    asked = make.approval("appr_1")
    mine = evolve(make.approval("appr_2"), required_approvals=2)
    assented = evolve(
        make.approval("appr_3"),
        required_approvals=2,
        assents=(Assent("x", mine.owner_id, make.NOW),),
    )
    barred = evolve(make.approval("appr_4"), allow_self_approval=False)
    await keep(sealed, asked, mine, assented, barred)
    async with sealed.view() as view:
        waiting = ApprovalFilter(account_id=mine.owner_id, email="a@example.org", waiting=True)
        page = await view.approvals.list(waiting, PAGE)
    assert {one.id for one in page.rows} == {"appr_1", "appr_2"}
