"""What is stored is sealed: by whom it can be read, moved, changed, and with which keys."""

import asyncio
import json
import sqlite3
from collections.abc import AsyncIterator, Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve

from adapters_store.sql.cells import SEALED
from adapters_store.sql.full_check import Finding
from adapters_store.sql.kinds import KINDS
from adapters_store.sql.sealing import AeadSealer, id_of, new_key
from adapters_store.sql.statement import Statement
from adapters_store.sqlite.full_check import check
from adapters_store.sqlite.store import SqliteStore
from wfcore.errors import StoreRefused, Unreadable
from wfcore.model.access import (
    Account,
    ApiKey,
    LoginLink,
    NamedSecret,
    PeopleGroups,
    Scope,
    Session,
)
from wfcore.model.approval import Approval, Group
from wfcore.model.event import Event, EventKind
from wfcore.model.execution import Callback, Execution, Replay, StepResult, StepStatus
from wfcore.model.page import PageRequest
from wfcore.model.signing import SigningKeys
from wfcore.model.webhook import Delivery, DeliveryKind, Webhook
from wfcore.model.workflow import DefinitionSnapshot, WorkflowState
from wfcore.ports.records import ExecutionFilter
from wfcore.ports.system import Sealer
from wfcore.rules.canonical import canonical, digest
from wfcore.testing import SealerContract
from wfcore.testing import builders as make
from wfcore.testing.contracts.keeping import keep

from .conftest import Start

CANARY = 'c4nary "of" \\ a mine/äß'
URL = "https://example.org/hook?token=c4nary"
PAGE = PageRequest(1, 50)
NOW = make.NOW
GROUPS = (Group("rows", "Rows", (), ({"said": CANARY},)),)


class TestAeadSealer(SealerContract):
    @pytest.fixture
    def new_sealer(self) -> Callable[[], Sealer]:
        return lambda: AeadSealer([new_key()])


def records() -> list[Any]:
    """One record of each kind that holds something of somebody's, with a canary in it."""
    loop = StepResult(StepStatus.RUNNING, NOW, items=[{"row": CANARY}])
    done = StepResult(StepStatus.COMPLETED, NOW, NOW, output={"said": [CANARY]})
    run = evolve(
        make.execution("exec_1"),
        variables={"token": CANARY},
        trigger={"payload": CANARY},
        output=CANARY,
        callback_url=URL,
        step_results={"a": done, "b": loop},
    )
    return [
        evolve(make.account("acc_1"), secrets=(NamedSecret("TOKEN", CANARY, NOW),)),
        evolve(make.key("key_1"), callback_secret=CANARY),
        evolve(make.webhook("wh_1"), secret_key=CANARY, old_secret=CANARY),
        run,
        evolve(make.approval("appr_1"), message=CANARY, comment=CANARY, groups=GROUPS),
        evolve(make.notice("ntc_1"), about={"name": CANARY}),
        Callback("exec_1", URL, None, NOW, NOW),
        Replay("acc_1/wf_1", CANARY, "f" * 64, "exec_1", NOW),
        make.workflow("wf_1"),
        WorkflowState("wf_1", {"seen": CANARY}),
        Session("c4nary", "acc_1", NOW, NOW),
        LoginLink("c4nary", "acc_1", NOW, NOW),
        make.signing_keys(CANARY),
        make.people_groups(members={"finance": (CANARY,)}),
    ]


async def fill(store: SqliteStore) -> None:
    """Store all of them, and what belongs to them."""
    await keep(store, *records())
    async with store.unit() as unit:
        for append in (unit.append, unit.log):
            append(Event("exec_1", 1, NOW, EventKind.STEP_LOG, {"text": CANARY}))
        kind = DeliveryKind.SENDER
        unit.deliver(Delivery("dl_1", "wh_1", NOW, kind, 500, True, payload={"token": CANARY}))
        snapshot = make.snapshot("wf_1")
        secret = evolve(snapshot.definition, description=CANARY)
        unit.put(evolve(snapshot, definition=secret))
        record = canonical({"rowsAfter": {"rows": [CANARY]}})
        unit.append(make.audit_entry("aud_1", record_hash=digest(record)), record)
        await unit.commit()


async def seen(store: SqliteStore) -> list[Any]:
    """All that was stored, read again."""
    async with store.view() as view:
        return [
            await view.get(ApiKey, "key_1"),
            await view.get(Webhook, "wh_1"),
            await view.get(Execution, "exec_1"),
            await view.executions.list(ExecutionFilter(), PAGE),
            await view.get(Approval, "appr_1"),
            await view.get(Callback, "exec_1"),
            await view.get(Replay, "acc_1/wf_1", CANARY),
            await view.events.of_execution("exec_1", 0, 10),
            await view.logs.of_execution("exec_1", 0, 10),
            await view.webhooks.deliveries("wh_1"),
            await view.get(DefinitionSnapshot, "wf_1", 1),
            await view.get(WorkflowState, "wf_1"),
            await view.get(Account, "acc_1"),
            await view.get(SigningKeys, "all"),
            await view.get(PeopleGroups, "all"),
            await view.audit.chained(0, 10),
        ]


def cells(path: Path) -> dict[str, list[str]]:
    """Every cell that may be sealed, by table and column; those that say nothing are left out."""
    found: dict[str, list[str]] = {}
    with closing(sqlite3.connect(path)) as database:
        for table, about in SEALED.items():
            for column in about.columns:
                sql = f"SELECT {column} FROM {table} WHERE {column} NOT IN ('null', '{{}}')"
                found[f"{table}.{column}"] = [row[0] for row in database.execute(sql)]
    return found


def run_sql(path: Path, *statements: str) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        for statement in statements:
            database.execute(statement)


@pytest.fixture
def key() -> str:
    return new_key()


@pytest.fixture
async def store(tmp_path: Path, key: str) -> AsyncIterator[SqliteStore]:
    """A sealed store that holds everything."""
    store = await SqliteStore.open(tmp_path / "wfcore.db", sealer=AeadSealer([key]))
    await fill(store)
    yield store
    await store.close()


async def test_nothing_of_anybody_is_in_the_files_in_clear(store: SqliteStore) -> None:
    """No cell says what it holds, in any form; and all of it is read again, also as a list."""
    assert all(cells(store.path).values())
    forms = {CANARY, json.dumps(CANARY)[1:-1], json.dumps(CANARY, ensure_ascii=False)[1:-1]}
    for place, found in cells(store.path).items():
        for cell in found:
            assert cell.startswith("~"), place
            assert not [form for form in (*forms, "c4nary") if form in cell], place
    other = await SqliteStore.open(store.path, sealer=store.sealer)
    found_again = await seen(other)
    await other.close()
    assert repr(found_again[2:4]).count("c4nary") >= 4
    assert found_again[0].callback_secret == CANARY
    assert found_again[6] is not None  # found by the client's own key, which is not kept in clear
    assert (found_again[1].secret_key, found_again[1].old_secret) == (CANARY, CANARY)


async def test_what_was_stored_before_there_was_a_key_is_read_and_sealed(
    tmp_path: Path, key: str
) -> None:
    """Sealing on request what is in clear changes nothing that is read."""
    plain = await SqliteStore.open(tmp_path / "wfcore.db")
    await fill(plain)
    before = await seen(plain)
    assert sum("c4nary" in cell for found in cells(plain.path).values() for cell in found) >= 10
    await plain.close()
    sealer = AeadSealer([key])
    one = await SqliteStore.open(plain.path, sealer=sealer)
    two = await SqliteStore.open(plain.path, sealer=sealer)
    assert await one.reseal(sealer) == 0
    assert await one.reseal(sealer, clear=True) == sum(
        len(found) for found in cells(one.path).values()
    )
    assert {cell[:9] for found in cells(one.path).values() for cell in found} == {f"~{id_of(key)}"}
    assert await seen(two) == await seen(one) == before
    assert await one.reseal(sealer, clear=True) == 0
    for store in (one, two):
        await store.close()


@pytest.mark.parametrize(
    ("table", "column"), [(name, col) for name, about in SEALED.items() for col in about.columns]
)
async def test_a_cell_opens_in_its_own_row_alone(
    store: SqliteStore, tmp_path: Path, table: str, column: str
) -> None:
    """Moved to another row or column, or changed by one character, it is unreadable: not wrong."""
    about = SEALED[table]
    bound = about.bound or about.key
    with closing(sqlite3.connect(store.path)) as database:
        sql = f"SELECT {column}, {', '.join(bound)} FROM {table} WHERE {column} LIKE '~%'"
        cell, *row = database.execute(sql).fetchone()
    sealer = store.sealer
    assert sealer is not None
    place = f"{table}.{column}/{'/'.join(map(str, row))}"
    text = sealer.open(cell[1:], place)
    assert "c4nary" in text
    flipped = cell[1:-6] + ("A" if cell[-6] != "A" else "B") + cell[-5:]
    others = (place + "x", place.replace(".", ".other_", 1), "x" + place)
    for moved, where in [*((cell[1:], other) for other in others), (flipped, place)]:
        with pytest.raises(ValueError, match="changed, or belongs elsewhere"):
            sealer.open(moved, where)


async def test_a_secret_moved_to_another_webhook_is_unreadable(store: SqliteStore) -> None:
    """Who can write to the database cannot give a webhook the secret of another one."""
    await keep(store, evolve(make.webhook("wh_2"), secret_key="other"))
    run_sql(
        store.path,
        "UPDATE webhooks SET version = 9, body ="
        " (SELECT body FROM webhooks WHERE id = 'wh_1') WHERE id = 'wh_2'",
        "UPDATE pulse SET beats = beats + 1",
    )
    async with store.view() as view:
        with pytest.raises(Unreadable):
            await view.get(Webhook, "wh_2")
        assert await view.get(Webhook, "wh_1") is not None


@pytest.mark.parametrize(
    ("table", "column"), [(name, col) for name, about in SEALED.items() for col in about.columns]
)
async def test_a_cell_in_clear_is_refused_where_cells_are_sealed(
    store: SqliteStore, key: str, table: str, column: str
) -> None:
    """SC-10: it is named by the check, and a rotation does not seal it."""
    about = SEALED[table]
    with closing(sqlite3.connect(store.path, isolation_level=None)) as database:
        sql = f"SELECT {column}, {', '.join(about.bound or about.key)} FROM {table}"
        sql += f" WHERE {column} LIKE '~%'"
        cell, *row = database.execute(sql).fetchone()
        assert store.sealer is not None
        text = store.sealer.open(cell[1:], f"{table}.{column}/{'/'.join(map(str, row))}")
        database.execute(f"UPDATE {table} SET {column} = ? WHERE {column} = ?", (text, cell))
        found = [one for one in check(store.path, None, store.sealer) if isinstance(one, Finding)]
        assert ["it is in clear" in one.what for one in found].count(True) == 1
        await store.reseal(AeadSealer([new_key(), key]))
        assert database.execute(sql.replace("LIKE '~%'", "= ?"), (text,)).fetchone()


@pytest.mark.parametrize("kind", [Account, ApiKey, Session, LoginLink])
async def test_sql_lets_nobody_in(store: SqliteStore, kind: type[Any]) -> None:
    """A row that SQL wrote without the seal key makes no operator, key, session or link."""
    forged = {
        Account: evolve(make.account("forged"), operator=True),
        ApiKey: evolve(make.key("forged"), scopes=frozenset(Scope)),
        Session: Session("forged", "acc_1", NOW, NOW),
        LoginLink: LoginLink("forged", "acc_1", NOW, NOW),
    }[kind]
    [(insertion, values, _)] = KINDS[kind].put(forged, None)
    assert isinstance(insertion, Statement)
    with closing(sqlite3.connect(store.path, isolation_level=None)) as database:
        database.execute(insertion.one, values)
    fresh = await SqliteStore.open(store.path, sealer=store.sealer)
    async with fresh.view() as view:
        with pytest.raises(Unreadable):
            await view.get(kind, "forged")
    await fresh.close()


async def test_an_email_finds_the_account_whose_record_has_it(store: SqliteStore) -> None:
    """SC-10: who exchanges two emails by SQL signs in as nobody, in no unit either."""
    await keep(store, make.account("eve"))
    swap = "UPDATE accounts SET email = '{}@example.org' WHERE email = '{}@example.org'"
    pairs = [("x", "eve"), ("eve", "acc_1"), ("acc_1", "x")]
    run_sql(store.path, *(swap.format(*pair) for pair in pairs))
    fresh = await SqliteStore.open(store.path, sealer=store.sealer)
    for name in ("eve", "acc_1"):
        async with fresh.view() as view:
            with pytest.raises(Unreadable):
                await view.accounts.by_email(f"{name}@example.org")
        async with fresh.unit() as unit:
            unit.put(make.account("third"))
            assert await unit.accounts.by_email("third@example.org") is not None
            assert await unit.accounts.by_email(f"{name}@example.org") is None
    await fresh.close()


@pytest.mark.parametrize(
    ("kind", "column"), [(kind.type, name) for kind in KINDS.values() for name in kind.compared]
)
async def test_a_column_that_differs_from_its_record_is_named(
    store: SqliteStore, kind: type[Any], column: str
) -> None:
    """SC-10: by the check, once for each such row, and for no other."""
    with closing(sqlite3.connect(store.path, isolation_level=None)) as database:
        assert not any("its column" in one for one in told(store))
        database.execute("PRAGMA ignore_check_constraints = 1")
        changed = database.execute(f"UPDATE {KINDS[kind].table} SET {column} = 7").rowcount
    said = f" cannot be read: its column {column} is not that of the record"
    assert [one.endswith(said) for one in told(store)].count(True) == changed > 0


def told(store: SqliteStore) -> list[str]:
    findings = check(store.path, None, store.sealer)
    return [f"{one.where}: {one.what}" for one in findings if isinstance(one, Finding)]


@pytest.mark.parametrize("kind", [ApiKey, Session, Webhook])
async def test_rows_moved_to_another_account_are_not_its_own(
    store: SqliteStore, kind: type[Any]
) -> None:
    """SC-10: a list by account leaves out what its record gives to another one."""
    table = KINDS[kind].table
    column = "owner_id" if kind is Webhook else "account_id"
    before = [len(await of_account(store, kind, id)) for id in ("acc_1", "eve")]
    run_sql(
        store.path, f"UPDATE {table} SET {column} = 'eve'", "UPDATE pulse SET beats = beats + 1"
    )
    after = [len(await of_account(store, kind, id)) for id in ("acc_1", "eve")]
    assert (before, after) == ([1, 0], [0, 0])


async def of_account(store: SqliteStore, kind: type[Any], id: str) -> Any:
    async with store.view() as view:
        if kind is Webhook:
            return await view.webhooks.all_of_owner(id)
        return await (view.keys if kind is ApiKey else view.sessions).of_account(id)


@pytest.mark.parametrize("given", ["another key", "no key"])
async def test_a_store_with_the_wrong_key_does_not_open(
    store: SqliteStore, given: str, key: str
) -> None:
    """It says which key is missing and where it looked, and no key; nothing is changed."""
    before = cells(store.path)
    another = new_key()
    sealer = AeadSealer([another], where="/run/keys") if given == "another key" else None
    with pytest.raises(StoreRefused) as refusal:
        await SqliteStore.open(store.path, sealer=sealer)
    said = str(refusal.value)
    assert id_of(key) in said
    assert ("/run/keys" in said) == (sealer is not None)
    assert key not in said
    assert another not in said
    assert cells(store.path) == before
    await (await SqliteStore.open(store.path, sealer=AeadSealer([another, key]))).close()


async def test_a_missing_key_file_is_not_made_anew(store: SqliteStore, tmp_path: Path) -> None:
    """A file that is gone is asked for; a new key would hide that nothing can be read."""
    gone = tmp_path / "seal.key"

    def write(file: Path, content: bytes) -> None:
        file.write_bytes(content)

    with pytest.raises(StoreRefused, match="is not there"):
        await SqliteStore.open(store.path, sealer=AeadSealer(file=gone, write=write))
    assert not gone.exists()


async def test_keys_change_while_others_read_and_write(tmp_path: Path, key: str) -> None:
    """
    A handle that knows the old key alone goes on, reads what the new one sealed, and what it writes
    meanwhile is not lost: it finds the new key in the file.
    """
    file = tmp_path / "seal.key"
    file.write_text(key)
    server = await SqliteStore.open(
        tmp_path / "wfcore.db", cache_bytes=0, sealer=AeadSealer(file=file)
    )
    await fill(server)
    before = await seen(server)
    fresh = new_key()
    file.write_text(f"{fresh}\n{key}\n")
    tool = await SqliteStore.open(server.path, sealer=AeadSealer(file=file))
    assert tool.sealer is not None

    async def write() -> None:
        for number in range(2, 60):
            async with server.unit() as unit:
                unit.append(Event("exec_1", number, NOW, EventKind.STEP_LOG, {"n": CANARY}))
                await unit.commit()

    _, count = await asyncio.gather(write(), tool.reseal(tool.sealer))
    assert count
    found = await seen(server)
    assert found[:7] == before[:7]
    await tool.reseal(tool.sealer)
    assert list(await tool.sealed()) == [id_of(fresh)]
    assert await tool.forget_keys([id_of(key)]) == [id_of(key)]
    file.write_text(fresh)
    assert await seen(server) == await seen(tool)
    for store in (server, tool):
        await store.close()
    await (await SqliteStore.open(server.path, sealer=AeadSealer([fresh]))).close()


async def test_a_key_in_use_is_not_forgotten(store: SqliteStore, key: str) -> None:
    """As long as one cell is sealed with it, a start asks for it."""
    assert await store.forget_keys([id_of(key)]) == []
    with pytest.raises(StoreRefused):
        await SqliteStore.open(store.path, sealer=AeadSealer([new_key()]))


SEAL_SLOWLY = """
import asyncio, sys
from adapters_store.sql.sealing import AeadSealer
from adapters_store.sql import sealing_keys
from adapters_store.sqlite.store import SqliteStore
from pathlib import Path

async def main():
    sealing_keys.BATCH = 1
    sealer = AeadSealer(sys.argv[2:])
    store = await SqliteStore.open(Path(sys.argv[1]), sealer=sealer)
    print("open", flush=True)
    while True:
        await store.reseal(sealer)

asyncio.run(main())
"""


async def test_a_rotation_that_is_killed_loses_nothing(
    store: SqliteStore, key: str, start: Start
) -> None:
    """Killed wherever it was, everything is readable with both keys, and a later one ends it."""
    before = await seen(store)
    fresh = new_key()
    process = start(SEAL_SLOWLY, store.path, fresh, key)
    assert process.stdout is not None
    process.stdout.readline()
    process.kill()
    process.wait()
    both = AeadSealer([fresh, key])
    again = await SqliteStore.open(store.path, sealer=both)
    assert await seen(again) == before
    await again.reseal(both)
    assert list(await again.sealed()) == [id_of(fresh)]
    await again.close()


async def test_damage_is_left_alone_by_a_rotation(store: SqliteStore, key: str) -> None:
    """A cell that cannot be opened stays as it is, is counted, and keeps its key from going."""
    run_sql(store.path, "UPDATE webhooks SET body = substr(body, 1, 40)")
    damaged = cells(store.path)["webhooks.body"]
    both = AeadSealer([new_key(), key])
    await store.reseal(both)
    assert cells(store.path)["webhooks.body"] == damaged
    assert (await store.sealed())[id_of(key)] == 1
    assert await store.forget_keys([id_of(key)]) == []
