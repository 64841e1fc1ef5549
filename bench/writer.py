"""
How fast the embedded store commits: the bare group commit, and whole transitions on top of it.

`transitions` runs the unit of work that a worker runs for every step: read the execution, change
one step, append two events, commit. `bare_group_commit` hands the writer thread the same
statements, made ready beforehand. Run as a script it prints both and their ratio.
"""

import asyncio
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from adapters_store.sql.cells import text_of
from adapters_store.sql.execution_rows import ADD_EVENT, STAY, write_head
from adapters_store.sql.step_rows import PUT_STEP
from adapters_store.sqlite.statements import perform
from adapters_store.sqlite.store import SqliteStore
from adapters_store.sqlite.writer import DatabaseFile, Writer
from wfcore.model.event import Event, EventKind
from wfcore.model.execution import Execution, ExecutionStatus, StepStatus, evolve
from wfcore.testing import builders as make
from wfcore.testing.builders import NOW
from wfserver.serving.memory import settle_memory

STEPS = 4
ADD_TWO = f"{ADD_EVENT['events'].one}, (?, ?, ?, ?, ?)"
DATA = '{"step":"step_1"}'
STEP = '{"name":"step_1","status":"COMPLETED","started_at":1700000000000,"attempts":1}'


async def _rate(seconds: float, clients: int, one: Callable[[int, int], Awaitable[None]]) -> float:
    """How many times a second *one* ends, with *clients* at once, with memory as in a server."""
    settle_memory()
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


async def _with_executions(path: Path, clients: int) -> SqliteStore:
    store = await SqliteStore.open(path)
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
            unit.put(run)
        await unit.commit()
    return store


async def bare_group_commit(seconds: float, clients: int) -> float:
    """
    Transactions a second of the writer alone: the statements of a transition, on the same
    schema and with as many bytes, but made ready beforehand and nothing read.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "wfcore.db"
        store = await _with_executions(path, clients)
        async with store.view() as view:
            run = await view.get(Execution, "exec_0")
        if run is None:
            raise RuntimeError("an execution is gone")
        body = text_of(write_head(run))
        await store.close()
        writer = Writer(DatabaseFile(path))

        async def one(number: int, turn: int) -> None:
            id = f"exec_{number}"
            data = (NOW, "step.completed", DATA)
            writes = (
                (STAY, (0, turn + 2, body, None, None, id, turn + 1), ("executions", id)),
                (PUT_STEP, (id, turn % STEPS, STEP, DATA, None), None),
                (ADD_TWO, (id, 2 * turn, *data, id, 2 * turn + 1, *data), None),
            )
            await writer.submit(lambda cursor: perform(cursor, writes))

        try:
            return await _rate(seconds, clients, one)
        finally:
            await writer.close()


async def transitions(seconds: float, clients: int) -> float:
    """Transitions a second on the store's own units."""
    with tempfile.TemporaryDirectory() as folder:
        store = await _with_executions(Path(folder) / "wfcore.db", clients)

        async def one(number: int, turn: int) -> None:
            async with store.unit() as unit:
                run = await unit.get(Execution, f"exec_{number}")
                if run is None:
                    raise RuntimeError("an execution is gone")
                result = make.step_result(StepStatus.COMPLETED, output={"count": turn})
                results = {**run.step_results, f"step_{turn % STEPS}": result}
                unit.put(evolve(run, step_results=results, events=run.events + 2))
                for event, kind in enumerate((EventKind.STEP_COMPLETED, EventKind.STEP_STARTED)):
                    data = {"step": f"step_{turn % STEPS}"}
                    unit.append(Event(run.id, run.events + 1 + event, NOW, kind, data))
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
