"""What a start costs with much stored, and `wfcore check`, which reads all of it instead."""

import asyncio
import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from adapters_store.sqlite import vacuum
from adapters_store.sqlite.store import SqliteStore
from wfcore.testing import builders as make
from wfcore.testing.contracts.keeping import keep
from wfserver.commands import compact
from wfserver.data.seal_keys import sealer_of
from wfserver.settings.record import Settings

from .conftest import Call, Running

MANY = 1_500
COMMANDS = (
    ("account", "list"),
    ("account", "set", "ann@example.org", "--plan", "TEAM"),
    ("key", "list", "--account", "ann@example.org"),
    ("workflow", "list"),
    ("trigger", "list"),
    ("webhook", "list"),
    ("execution", "show", "e1"),
    ("execution", "explain", "e1"),
    ("audit",),
    ("doctor",),
)


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> Callable[[], int]:
    """How many steps SQLite has taken since it was asked last, over all connections."""
    taken = 0
    real = sqlite3.connect

    def counted(*arguments: Any, **options: Any) -> sqlite3.Connection:
        def step() -> int:
            nonlocal taken
            taken += 1
            return 0

        connection = real(*arguments, **options)
        connection.set_progress_handler(step, 1)
        return connection

    def asked() -> int:
        nonlocal taken
        found, taken = taken, 0
        return found

    monkeypatch.setattr(sqlite3, "connect", counted)
    return asked


def fill(data: Path, first: int, last: int) -> None:
    """Executions that have ended, each with an event."""

    async def filled() -> None:
        store = await SqliteStore.open(data / "wfcore.db", sealer=sealer_of(Settings(data)))
        for number in range(first, last):
            run = make.execution(f"e{number}", completed_at=make.NOW, due_at=None)
            await keep(
                store, run, make.event(1, run.id), make.audit_entry(f"aud_{number:05}", at=1)
            )
        await store.close()

    asyncio.run(filled())


async def kept(data: Path, *records: Any) -> None:
    store = await SqliteStore.open(data / "wfcore.db", sealer=sealer_of(Settings(data)))
    await keep(store, *records)
    await store.close()


def damage(path: Path) -> None:
    """Overwrite the pages that hold rows of steps, events, indexes ..., not those read at start."""
    with closing(sqlite3.connect(path)) as database:
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        root = database.execute("SELECT max(rootpage) FROM sqlite_schema").fetchone()[0]
    with path.open("r+b") as file:
        file.seek(4_096 * (root + 20))  # the schema's own pages follow the last root
        file.write(os.urandom(4_096 * 20))


def test_a_command_costs_the_same_with_much_stored(
    wfcore: Call, data: Path, steps: Callable[[], int]
) -> None:
    """What was stored is not read, counted or scanned by commands that ask for something else."""
    fill(data, 0, 10)

    def cost(command: tuple[str, ...]) -> int:
        steps()
        assert wfcore(*command).status == 0
        return steps()

    cost(("doctor",))
    few = {command: cost(command) for command in COMMANDS}
    fill(data, 10, MANY)
    many = {command: cost(command) for command in COMMANDS}
    assert {
        command: many[command] for command in COMMANDS if many[command] > few[command] + 200
    } == {}


def test_a_sound_store_passes(wfcore: Call, applied: str, data: Path) -> None:
    """Nothing is found where everything is in order; progress goes to stderr."""
    fill(data, 0, 3)
    asyncio.run(kept(data, make.notice(execution_id=None)))  # of no execution, like a test notice
    said = wfcore("check", "--json")
    assert (said.status, said.json) == (0, {"ok": True, "findings": []})
    assert "records of executions" in said.err
    assert wfcore("check").out == "everything can be read\n"


def test_it_goes_on_beside_a_running_server(call: Call, up: Running) -> None:
    """A running server is no hindrance."""
    assert call("--data", str(up.data), "check", "--json").json["ok"] is True


def test_damaged_pages_are_found_though_the_store_opens(wfcore: Call, data: Path) -> None:
    """A start does not read rows; the check names what is damaged, and exits 1."""
    fill(data, 0, 400)
    damage(data / "wfcore.db")
    assert wfcore("account", "list").status == 0
    said = wfcore("check", "--json")
    assert (said.status, said.json["ok"]) == (1, False)
    assert said.json["findings"][0]["where"] == "database"
    assert "DAMAGE: database: " in wfcore("check").out


def test_rows_that_belong_to_nobody_are_found(wfcore: Call, data: Path) -> None:
    """An execution that was deleted by hand leaves rows: each table that has some is named."""
    fill(data, 0, 3)
    with closing(sqlite3.connect(data / "wfcore.db", isolation_level=None)) as database:
        database.execute("DELETE FROM executions WHERE id = 'e1'")
    said = wfcore("check", "--json")
    assert said.status == 1
    assert [(one["where"], one["what"]) for one in said.json["findings"]] == [
        ("events", "execution_id e1 is not in executions")
    ]


@pytest.mark.parametrize(
    ("sql", "where"),
    [
        ("UPDATE executions SET body = '{' WHERE id = 'e1'", "executions"),
        ("UPDATE events SET kind = 'odd' WHERE execution_id = 'e1'", "events"),
        ("UPDATE accounts SET body = '{}'", "accounts"),
    ],
)
def test_records_that_cannot_be_read_are_named(
    wfcore: Call, data: Path, sql: str, where: str
) -> None:
    """Table and key of each such record are said; the others are read all the same."""
    fill(data, 0, 3)
    with closing(sqlite3.connect(data / "wfcore.db", isolation_level=None)) as database:
        database.execute(sql)
        key = (
            "e1"
            if where != "accounts"
            else database.execute("SELECT id FROM accounts").fetchone()[0]
        )
    findings = wfcore("check", "--json").json["findings"]
    assert [one["where"] for one in findings] == [where]
    assert findings[0]["what"].startswith(key)


def test_artifacts_and_files_are_compared(wfcore: Call, data: Path) -> None:
    """A record without its file is damage; an old folder of no execution only takes up room."""

    asyncio.run(kept(data, make.execution(), make.artifact()))
    orphan = data / "artifacts" / "exec_gone"
    orphan.mkdir(parents=True)
    fresh = data / "artifacts" / "exec_new"
    fresh.mkdir()
    os.utime(orphan, (0, 0))
    said = wfcore("check", "--json")
    assert said.status == 1
    missing, left_over = said.json["findings"]
    assert (missing["harmless"], left_over["harmless"]) == (False, True)
    assert "missing" in missing["what"]
    assert str(orphan) in left_over["what"]


def test_damaged_counts_are_named(wfcore: Call, data: Path) -> None:
    """The file of quota counts is read, too."""
    path = data / "counters.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        rows = [(f"k{n}", "day", 0, 10**15, 1, 1) for n in range(2_000)]
        database.executemany("INSERT INTO counts VALUES (?, ?, ?, ?, ?, ?)", rows)
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    with path.open("r+b") as file:
        file.seek(1_024 * 20)
        file.write(os.urandom(1_024 * 20))
    said = wfcore("check", "--json")
    assert said.status == 1
    assert said.json["findings"][0]["where"] == "counters.db"


def test_what_cannot_be_checked_is_said(call: Call, tmp_path: Path) -> None:
    """No file, no store of ours in memory: a line that says so, and exit status 1."""
    assert "there is no" in call("--data", str(tmp_path), "check").err
    assert "nothing that could be checked" in call("--store", "memory:", "check").err
    assert call("--store", "odd:", "check").status == 1


def test_a_damaged_backup_is_not_restored(
    wfcore: Call, call: Call, data: Path, tmp_path: Path
) -> None:
    """Restoring reads all of the database before it takes its place."""
    fill(data, 0, 400)
    damage(data / "wfcore.db")
    archive, again = tmp_path / "all.tar", tmp_path / "again"
    assert wfcore("backup", str(archive)).status == 0
    said = call("--data", str(again), "restore", str(archive))
    assert said.status == 1
    assert "damaged" in said.err
    assert not again.exists()


def test_room_is_given_back_beside_a_running_server(call: Call, up: Running) -> None:
    """`compact` says what the file took before and takes now; the server goes on."""
    said = call("--data", str(up.data), "compact", "--json")
    assert said.status == 0
    assert said.json["after"] <= said.json["before"]
    assert call("--data", str(up.data), "compact").out.startswith(str(up.data / "wfcore.db"))
    assert call("--data", str(up.data), "check", "--json").json["ok"] is True


@pytest.mark.parametrize("bound", [("_BESIDE_S", -1.0), ("_BESIDE_BYTES", 4_096)])
def test_a_large_old_file_is_not_written_anew_beside_a_server(
    call: Call, up: Running, monkeypatch: pytest.MonkeyPatch, bound: tuple[str, float]
) -> None:
    """What would keep writers waiting for too long is refused, and says what to do."""
    monkeypatch.setattr(compact, "keeps_account", lambda path: False)
    monkeypatch.setattr(compact, *bound)
    monkeypatch.setattr(vacuum, "STEPS", 1)
    said = call("--data", str(up.data), "compact")
    assert said.status == 1
    assert "stop the server" in said.err
