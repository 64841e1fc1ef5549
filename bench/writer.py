"""
How fast the embedded store commits: the bare group commit, and whole transitions on top of it.

`bare_group_commit` hands jobs of three statements to the writer thread; `transitions` runs the
unit of work that a worker runs for every step: read the execution, change one step, append two
events, commit. Run as a script it prints both and their ratio.
"""

import asyncio
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from attrs import evolve

from adapters_store.sql.connection import Cursor, connect
from adapters_store.sql.writer import Writer
from adapters_store.sqlite import SqliteStore
from wfcore.model.event import Event, EventKind
from wfcore.model.execution import ExecutionStatus, StepStatus
from wfcore.testing import builders as make
from wfcore.testing.builders import NOW

SCHEMA = """
PRAGMA journal_mode = WAL;
CREATE TABLE heads (id TEXT PRIMARY KEY, version INTEGER NOT NULL, body TEXT NOT NULL);
CREATE TABLE steps (id TEXT, position INTEGER, body TEXT, PRIMARY KEY (id, position))
    WITHOUT ROWID;
CREATE TABLE log (id TEXT, number INTEGER, body TEXT, PRIMARY KEY (id, number)) WITHOUT ROWID;
"""
BODY = '{"workflow_name": "Refunds", "total_steps": 4}' + " " * 350
STEPS = 4


async def _rate(seconds: float, clients: int, one: Callable[[int, int], Awaitable[None]]) -> float:
    """How many times a second *one* ends, with *clients* at once."""
    done = 0
    end = time.perf_counter() + seconds

    async def client(number: int) -> None:
        nonlocal done
        turn = 0
        while time.perf_counter() < end:
            await one(number, turn)
            turn += 1
            done += 1

    begin = time.perf_counter()
    await asyncio.gather(*(client(number) for number in range(clients)))
    return done / (time.perf_counter() - begin)


async def bare_group_commit(seconds: float, clients: int) -> float:
    """Transactions a second of the writer alone: a checked UPDATE, an upsert, an INSERT."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "bare.db"
        with connect(path, "rwc") as connection:
            connection.executescript(SCHEMA)
            rows = [(f"id_{number}", BODY) for number in range(clients)]
            connection.executemany("INSERT INTO heads VALUES (?, 0, ?)", rows)
        connection.close()
        writer = Writer(path)

        async def one(number: int, turn: int) -> None:
            def job(cursor: Cursor) -> None:
                id = f"id_{number}"
                cursor.execute(
                    "UPDATE heads SET version = ?, body = ? WHERE id = ? AND version = ?",
                    (turn + 1, BODY, id, turn),
                )
                if cursor.rowcount != 1:
                    raise RuntimeError("a version was skipped")
                cursor.execute(
                    "INSERT INTO steps VALUES (?, ?, ?)"
                    " ON CONFLICT (id, position) DO UPDATE SET body = excluded.body",
                    (id, turn % STEPS, BODY),
                )
                cursor.execute("INSERT INTO log VALUES (?, ?, ?)", (id, turn, "{}"))

            await writer.submit(job)

        try:
            return await _rate(seconds, clients, one)
        finally:
            await writer.close()


async def transitions(seconds: float, clients: int) -> float:
    """Transitions a second on the store's own units."""
    with tempfile.TemporaryDirectory() as folder:
        store = await SqliteStore.open(Path(folder) / "wfcore.db")
        async with store.unit() as unit:
            for number in range(clients):
                run = make.execution(
                    f"exec_{number}",
                    status=ExecutionStatus.RUNNING,
                    variables={"order": number, "text": "x" * 200},
                    total_steps=STEPS,
                    due_at=None,
                    worker="w1",
                )
                unit.executions.put(run)
            await unit.commit()

        async def one(number: int, turn: int) -> None:
            async with store.unit() as unit:
                run = await unit.executions.get(f"exec_{number}")
                if run is None:
                    raise RuntimeError("an execution is gone")
                result = make.step_result(StepStatus.COMPLETED, output={"count": turn})
                results = {**run.step_results, f"step_{turn % STEPS}": result}
                unit.executions.put(evolve(run, step_results=results, events=run.events + 2))
                for event, kind in enumerate((EventKind.STEP_COMPLETED, EventKind.STEP_STARTED)):
                    data = {"step": f"step_{turn % STEPS}"}
                    unit.events.append(Event(run.id, run.events + 1 + event, NOW, kind, data))
                await unit.commit()

        try:
            return await _rate(seconds, clients, one)
        finally:
            await store.close()


async def _main(seconds: float, clients: int) -> None:
    bare = await bare_group_commit(seconds, clients)
    cpu = time.process_time()
    whole = await transitions(seconds, clients)
    cpu = (time.process_time() - cpu) / (whole * seconds) * 1e6
    print(f"bare {bare:,.0f}/s  transitions {whole:,.0f}/s  ratio {whole / bare:.2f}")
    print(f"CPU of a transition {cpu:.0f} µs, {clients} clients")


if __name__ == "__main__":
    asyncio.run(_main(float(sys.argv[1]) if len(sys.argv) > 1 else 3.0, 32))
