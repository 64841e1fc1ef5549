"""Records that cannot be read: each is named, none is in the way of another, none is changed."""

import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve

from adapters_store.sql import kinds
from adapters_store.sql.kinds import Kind
from adapters_store.sqlite.store import SqliteStore
from wfcore.errors import Unreadable
from wfcore.model.access import Account, ApiKey, Login, LoginLink, PeopleGroups, Session, Share
from wfcore.model.approval import Approval
from wfcore.model.execution import Artifact, Callback, Execution, Replay
from wfcore.model.node import Node
from wfcore.model.notice import Notice
from wfcore.model.page import PageRequest
from wfcore.model.signing import SigningKeys
from wfcore.model.trigger import Timer, Trigger
from wfcore.model.webhook import Webhook
from wfcore.model.workflow import DefinitionSnapshot, Workflow, WorkflowState
from wfcore.ports.records import ApprovalFilter, ExecutionFilter
from wfcore.ports.store import Slots, View
from wfcore.testing import builders as make
from wfcore.testing.contracts.keeping import keep
from wfcore.time import HOUR, EpochMs

PAGE = PageRequest(1, 50)
NOW = make.NOW
LATE = EpochMs(1 << 50)
SECRET = "sk-do-not-tell"
DAMAGE: Mapping[str, str | bytes] = {
    "no JSON": f'{{"cut": "{SECRET}',
    "another shape": f'{{"status": "{SECRET}"}}',
    "no text": b'{"id": "\xff\xfe' + SECRET.encode() + b'"}',
}
KINDS: Mapping[str, Kind[Any]] = {
    kind.table: kind for kind in vars(kinds).values() if isinstance(kind, Kind)
}

Look = Callable[[View], Awaitable[Any]]
GET: Mapping[str, Look] = {
    "accounts": lambda view: view.get(Account, "one"),
    "api_keys": lambda view: view.get(ApiKey, "one"),
    "sessions": lambda view: view.get(Session, "one"),
    "logins": lambda view: view.get(Login, "one"),
    "login_links": lambda view: view.get(LoginLink, "one"),
    "workflows": lambda view: view.get(Workflow, "one"),
    "definitions": lambda view: view.get(DefinitionSnapshot, "one", 1),
    "workflow_states": lambda view: view.get(WorkflowState, "one"),
    "shares": lambda view: view.get(Share, "one", "acc_2"),
    "approvals": lambda view: view.get(Approval, "one"),
    "artifacts": lambda view: view.get(Artifact, "one"),
    "callbacks": lambda view: view.get(Callback, "one"),
    "notices": lambda view: view.get(Notice, "one"),
    "nodes": lambda view: view.get(Node, "one"),
    "signing_keys": lambda view: view.get(SigningKeys, "one"),
    "people_groups": lambda view: view.get(PeopleGroups, "one"),
    "webhooks": lambda view: view.get(Webhook, "one"),
    "triggers": lambda view: view.get(Trigger, "one"),
    "timers": lambda view: view.get(Timer, "one"),
    "replays": lambda view: view.get(Replay, "one", "k"),
    "executions": lambda view: view.get(Execution, "one"),
}
LISTS: Mapping[str, tuple[Look, ...]] = {
    "accounts": (lambda view: view.accounts.list(PAGE),),
    "api_keys": (lambda view: view.keys.of_account("acc_1"),),
    "workflows": (
        lambda view: view.workflows.list(PAGE),
        lambda view: view.workflows.visible_to("acc_1", PAGE),
    ),
    "approvals": (
        lambda view: view.approvals.list(ApprovalFilter(), PAGE),
        lambda view: view.approvals.of_execution("exec_1"),
        lambda view: view.approvals.due(LATE, 1),
    ),
    "artifacts": (lambda view: view.artifacts.of_execution("exec_1"),),
    "callbacks": (lambda view: view.callbacks.due(1),),
    "notices": (lambda view: view.notices.due(1), lambda view: view.notices.list((), PAGE)),
    "nodes": (lambda view: view.nodes.list(),),
    "executions": (lambda view: view.executions.list(ExecutionFilter(), PAGE),),
    "timers": (lambda view: view.timers.due(LATE, 1),),
    "triggers": (
        lambda view: view.triggers.list(PAGE),
        lambda view: view.triggers.of_workflow("wf_1"),
    ),
    "webhooks": (
        lambda view: view.webhooks.of_owner(None, PAGE),
        lambda view: view.webhooks.all_of_owner("acc_1"),
        lambda view: view.webhooks.of_workflow("wf_1"),
    ),
}


def records(name: str) -> list[Any]:
    """One of each kind, named so."""
    return [
        make.account(name),
        make.key(name),
        Session(name, "acc_1", NOW, NOW),
        Login(name, (NOW,), NOW),
        make.login_link(name),
        make.workflow(name),
        make.snapshot(name),
        WorkflowState(name),
        make.share(name),
        make.approval(name),
        make.artifact(name),
        make.callback(name),
        make.notice(name),
        make.node(name),
        make.signing_keys(id=name),
        make.people_groups(id=name),
        make.webhook(name),
        make.trigger(name),
        Timer(name, "trg_1", NOW),
        evolve(make.replay(), scope=name, key="k"),
        make.execution(name),
    ]


@asynccontextmanager
async def opened(folder: Path) -> AsyncIterator[SqliteStore]:
    store = await SqliteStore.open(folder / "wfcore.db")
    try:
        yield store
    finally:
        await store.close()


async def filled(folder: Path) -> None:
    async with opened(folder) as store:
        await keep(store, *records("one"), *records("two"))


def damage(folder: Path, table: str, stored: str | bytes) -> None:
    """Damage the body of `one`, as a disk or another version would."""
    with closing(sqlite3.connect(folder / "wfcore.db")) as connection, connection:
        key = KINDS[table].key[0] if table in KINDS else "id"
        sql = f"UPDATE {table} SET body = CAST(? AS TEXT) WHERE {key} = 'one'"
        assert connection.execute(sql, (stored,)).rowcount == 1


def row(folder: Path, table: str) -> Any:
    with closing(sqlite3.connect(folder / "wfcore.db")) as connection:
        connection.text_factory = bytes
        key = KINDS[table].key[0] if table in KINDS else "id"
        return connection.execute(f"SELECT body FROM {table} WHERE {key} = 'one'").fetchone()


def test_every_kind_is_tried() -> None:
    """No kind of record is left out here."""
    assert set(GET) == {*KINDS, "executions"}


@pytest.mark.parametrize("how", DAMAGE)
@pytest.mark.parametrize("table", GET)
async def test_one_that_cannot_be_read(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, table: str, how: str
) -> None:
    """It is refused by name, lists show the rest, and neither log nor error tells what it held."""
    await filled(tmp_path)
    damage(tmp_path, table, DAMAGE[how])
    before = row(tmp_path, table)
    async with opened(tmp_path) as store:
        async with store.view() as view:
            for look in LISTS.get(table, ()):
                found = await look(view)
                shown = getattr(found, "rows", found)
                assert [one.id for one in shown] == ["two"]
            with pytest.raises(Unreadable) as refused:
                await GET[table](view)
            for other, look in GET.items():
                assert other == table or await look(view) is not None
        assert refused.value.kind == table
        assert refused.value.id.startswith("one")
        assert [kind for kind, _ in store.unreadable()] == [table]
    assert row(tmp_path, table) == before
    assert SECRET not in caplog.text + str(refused.value) + repr(caplog.records)
    assert {vars(line)["id"] for line in caplog.records} == {refused.value.id}
    assert all(line.exc_info is None for line in caplog.records)


@pytest.mark.parametrize("how", ["no JSON", "no text"])
@pytest.mark.parametrize("part", ["executions", "step_results", "execution_variables"])
async def test_a_claim_leaves_it_behind(tmp_path: Path, part: str, how: str) -> None:
    """The next one is taken; what cannot be read holds no place, and goes on once it can be."""
    async with opened(tmp_path) as store:
        one = make.execution("one", variables={"a": 1}, step_results={"s": make.step_result()})
        await keep(store, one, make.execution("two"))
    key = "id" if part == "executions" else "execution_id"
    with closing(sqlite3.connect(tmp_path / "wfcore.db")) as connection, connection:
        (body,) = connection.execute(f"SELECT body FROM {part} WHERE {key} = 'one'").fetchone()
        sql = f"UPDATE {part} SET body = CAST(? AS TEXT) WHERE {key} = 'one'"
        connection.execute(sql, (DAMAGE[how],))
    async with opened(tmp_path) as store:
        await store.enlist("w1")
        taken = await store.claim("w1", HOUR, Slots(2), 2)
        assert [run.id for run in taken] == ["two"]
        assert await store.claim("w1", HOUR, Slots(2), 2) == []
        await keep(store, make.execution("three"))
        assert [run.id for run in await store.claim("w1", HOUR, Slots(2), 1)] == ["three"]
        async with store.view() as view:
            assert await view.executions.abandoned(1) == []
        with closing(sqlite3.connect(tmp_path / "wfcore.db")) as connection, connection:
            connection.execute(f"UPDATE {part} SET body = ? WHERE {key} = 'one'", (body,))
        async with store.view() as view:
            assert [run.id for run in await view.executions.abandoned(1)] == ["one"]


async def test_many_are_not_in_the_way(tmp_path: Path) -> None:
    """However many cannot be read, what is due behind them is found."""
    async with opened(tmp_path) as store:
        await keep(store, *(Timer(f"t{n}", "trg_1", EpochMs(NOW + n)) for n in range(8)))
    with closing(sqlite3.connect(tmp_path / "wfcore.db")) as connection, connection:
        connection.execute("UPDATE timers SET body = '{' WHERE id < 't7'")
    async with opened(tmp_path) as store, store.view() as view:
        assert [timer.id for timer in await view.timers.due(LATE, 2)] == ["t7"]


async def test_events_behind_those_that_cannot_be_read_are_found(tmp_path: Path) -> None:
    """However many events in a row cannot be read, whoever follows gets the next one."""
    async with opened(tmp_path) as store:
        await keep(store, *(make.event(n, "one") for n in range(1, 9)))
    with closing(sqlite3.connect(tmp_path / "wfcore.db")) as connection, connection:
        connection.execute("UPDATE events SET data = '{' WHERE number < 8")
    async with opened(tmp_path) as store, store.view() as view:
        assert [event.number for event in await view.events.of_execution("one", 0, 2)] == [8]
