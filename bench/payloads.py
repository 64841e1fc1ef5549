"""
What looking costs beside large outputs: 15 steps that gave 4 MB each beside 15 that gave 4 bytes.

`python -m bench.payloads PART FOLDER [URL]` prints figures of one store as JSON: each part in a
process of its own, so that its memory is that of a server that does nothing else. Another process
made the executions.
"""

import asyncio
import json
import os
import sqlite3
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import orjson

from adapters_http.app import create_app
from adapters_runtime.code.runner import CodeStepRunner
from adapters_store.postgres.connection import close_pool, lent, open_pool
from adapters_store.sql.sealing import AeadSealer, new_key
from bench.postgres import new_database
from wfcore.model.access import OPERATOR, Principal, Scope, Tier
from wfcore.model.execution import Execution, StepResult, StepStatus, evolve
from wfcore.model.json import Json
from wfcore.model.workflow import CodeStep, Definition, DelayStep, Language
from wfcore.ports.runtime import StepJob
from wfcore.rules.execution.fold_steps import size_of
from wfcore.time import DurationMs
from wfcore.usecases.accounts import accounts, keys
from wfcore.usecases.administration.lookup import owner_of
from wfcore.usecases.executions import executions, redriving, starting, worker
from wfcore.usecases.services import Services
from wfcore.usecases.workflows import workflows
from wfserver.compose import System, open_system
from wfserver.serving.engine import new_runner
from wfserver.serving.memory import settle_memory
from wfserver.settings.record import settings_from

STEPS, EACH = 15, 4_000_000
KINDS = ("large", "small")
CANCELLED = 3
POLLS = 40
ROW = {"id": 1234567, "name": "a value of some length", "amount": 1234.5, "ok": True}
PAUSE = DelayStep("pause", duration_ms=DurationMs(3_600_000))
AFTER = CodeStep("after", Language.BASH, 'stat -c %s "$WF_CONTEXT"')


def output(kind: str) -> Json:
    """What each step gave: rows of together `EACH` bytes, or four bytes."""
    return [ROW] * (EACH // len(orjson.dumps(ROW))) if kind == "large" else "ab"


def figures(made: Any, folder: Path) -> dict[str, Any]:
    """The figures of a store: in a file, or on the cluster *made*."""
    url = None if made is None else asyncio.run(new_database(made))
    where = [str(folder), *([url] if url else [])]
    seeded = asyncio.run(_seeded(where))
    asked = json.dumps(seeded)
    found: dict[str, Any] = {}
    for part in PARTS:
        argv = [sys.executable, "-m", "bench.payloads", part, *where]
        done = subprocess.run(argv, input=asked, capture_output=True, text=True, check=True)
        found |= json.loads(done.stdout)
    return found


def _opened(where: list[str]) -> Any:
    folder, *url = where
    return open_system(settings_from({}, data=folder, **({"store": url[0]} if url else {})))


async def _seeded(where: list[str]) -> dict[str, Any]:
    """The text of a key, and by kind executions that have got as far as the delay."""
    async with _opened(where) as system:
        services = system.services
        account = await accounts.create_account(services, "ann@example.org", Tier.ENTERPRISE)
        key = await keys.create_key(services, account.id, "key", Scope.ordinary())
        found: dict[str, Any] = {"key": key.text}
        for kind in KINDS:
            found[kind] = [await _one(system, Principal(account), kind) for _ in range(CANCELLED)]
            found[f"{kind} workflow"] = found[kind][0][1]
            found[f"{kind} code"] = (await _one(system, Principal(account), kind, AFTER))[0]
        return found


async def _one(
    system: System, who: Principal, kind: str, last: CodeStep | DelayStep = PAUSE
) -> tuple[str, str]:
    """An execution whose steps but the *last* have ended, and its workflow; a delay has begun."""
    services, now = system.services, system.services.store.now()
    names = [f"s{number}" for number in range(STEPS)]
    code = (CodeStep(name, Language.COMMAND, command=("true",)) for name in names)
    steps = (*code, last)
    workflow = await workflows.apply_workflow(services, who.account.id, Definition(kind, steps))
    started = await starting.start_execution(services, who, workflow.id, {})
    value = output(kind)
    done = StepResult(StepStatus.COMPLETED, now, now, value)
    async with services.store.unit() as unit:
        run = await unit.get(Execution, started.execution_id)
        assert run is not None
        results = dict.fromkeys(names, done)
        unit.put(evolve(run, step_results=results, outputs_size=size_of(value) * STEPS))
        await unit.commit()
    if last is PAUSE:
        (lease,) = await worker.claim(services, "bench", 1, ids=[started.execution_id])
        await worker.begin(services, lease)
    return started.execution_id, workflow.id


async def _measured(where: list[str], seeded: dict[str, Any]) -> dict[str, Any]:
    async with _opened(where) as system:
        looker = Looker(system.services, seeded["key"])
        await looker.ask("GET", "/api/v1/executions")
        settle_memory()
        idle = _memory_mb()
        found = await _looks(looker, seeded)
        found["looks MB"] = _peak_mb() - idle
        found["start large"] = await _start_to_delay(system, seeded["large"][0][0])
        found["start MB"] = _peak_mb() - idle
        found["bytes"] = await _bytes_ms(where)
        return found


async def _measured_code(where: list[str], seeded: dict[str, Any]) -> dict[str, Any]:
    """The figures of a code step behind the outputs, whose context file has all of them."""
    async with _opened(where) as system:
        runner = new_runner(system)
        try:
            await _code_step(system, runner, seeded["small code"])
            settle_memory()
            idle = _memory_mb()
            spent, size = await _code_step(system, runner, seeded["large code"])
        finally:
            await runner.close()
        assert size > STEPS * EACH // 2, size
        return {"code large": spent, "code MB": _peak_mb() - idle}


async def _looks(looker: "Looker", seeded: dict[str, Any]) -> dict[str, Any]:
    """CPU of each look in ms, beside large and small outputs in turns: its cheapest request."""
    costs: dict[str, list[float]] = defaultdict(list)
    for _ in range(POLLS):
        for kind in KINDS:
            id, listed = seeded[kind][0][0], seeded[f"{kind} workflow"]
            poll = f"/api/v1/executions/{id}?outputs=none"
            costs[f"poll {kind}"].append(await looker.cost("GET", poll))
            where_to = f"/api/v1/executions?workflowId={listed}"
            costs[f"list {kind}"].append(await looker.cost("GET", where_to))
    for number in range(CANCELLED):
        for kind in KINDS:
            cancel = f"/api/v1/executions/{seeded[kind][number][0]}/cancel?outputs=none"
            costs[f"cancel {kind}"].append(await looker.cost("POST", cancel))
    return {what: min(each) for what, each in costs.items()}


class Looker:
    """Requests to the application itself."""

    def __init__(self, services: Services, key: str) -> None:
        self._app, self._key = create_app(services), key

    async def cost(self, method: str, path: str) -> float:
        """CPU of a request in ms."""
        began = time.process_time()
        await self.ask(method, path)
        return (time.process_time() - began) * 1_000

    async def ask(self, method: str, path: str) -> None:
        path, _, query = path.partition("?")
        seen: list[int] = []

        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": b"", "more_body": False}

        async def send(message: MutableMapping[str, Any]) -> None:
            seen.append(message.get("status", 0))

        scope = {
            "type": "http", "http_version": "1.1", "method": method, "path": path,
            "scheme": "http", "query_string": query.encode(), "root_path": "",
            "server": ("localhost", 80), "client": ("127.0.0.1", 1), "raw_path": path.encode(),
            "headers": [(b"host", b"localhost"),
                        (b"authorization", b"Bearer " + self._key.encode())],
        }  # fmt: skip
        await self._app(scope, receive, send)
        assert seen[0] == 200, (seen, path)


async def _start_to_delay(system: System, id: str) -> float:
    """CPU in ms from a redrive that keeps all outputs to the delay behind them."""
    services = system.services
    run = await executions.read_execution(services, OPERATOR, id, outputs=False)
    who = await owner_of(services, run.owner_id)
    began = time.process_time()
    started = await redriving.redrive(services, who, id)
    (lease,) = await worker.claim(services, "bench", 1, ids=[started.execution_id])
    await worker.begin(services, lease)
    spent = (time.process_time() - began) * 1_000
    run = await executions.read_execution(services, OPERATOR, started.execution_id, outputs=False)
    assert run.step_results["pause"].until is not None
    return spent


async def _code_step(system: System, runner: CodeStepRunner, id: str) -> tuple[float, int]:
    """The CPU in ms of the server for the execution's last step, and the size of its context."""
    services = system.services
    began = time.process_time()
    (lease,) = await worker.claim(services, "bench", 1, ids=[id])
    (job,) = (await worker.begin(services, lease)).jobs
    assert isinstance(job, StepJob)
    end = await runner.run(job, _ignored)
    spent = (time.process_time() - began) * 1_000
    assert end.error is None, end
    return spent, int(end.output)  # type: ignore[call-overload]


async def _ignored(stream: str, lines: str) -> None:
    """Lines are no concern of this row."""


async def _bytes_ms(where: list[str]) -> float:
    """CPU in ms of opening, sealing and writing so many bytes once: what no copy can avoid."""
    sealer = AeadSealer([new_key()])
    cell = sealer.seal(orjson.dumps(output("large")).decode(), "here")
    insert = _inserted_in_postgres if len(where) > 1 else _inserted_in_file
    began = time.process_time()
    async with insert(where[-1]) as write:
        for number in range(STEPS):
            value = orjson.loads(sealer.open(cell, "here"))
            await write(number, sealer.seal(orjson.dumps(value).decode(), "there"))
    return (time.process_time() - began) * 1_000


Write = Callable[[int, str], Awaitable[object]]


@asynccontextmanager
async def _inserted_in_file(folder: str) -> AsyncIterator[Write]:
    with closing(sqlite3.connect(Path(folder) / "bytes.db")) as database:
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("CREATE TABLE bytes (number INTEGER PRIMARY KEY, cell TEXT)")

        async def write(number: int, cell: str) -> None:
            database.execute("INSERT INTO bytes VALUES (?, ?)", (number, cell))

        yield write
        database.commit()


@asynccontextmanager
async def _inserted_in_postgres(url: str) -> AsyncIterator[Write]:
    pool = await open_pool(url)
    async with lent(pool) as connection:
        await connection.execute("CREATE TABLE bytes (number bigint PRIMARY KEY, cell text)")
        async with connection.transaction():
            yield lambda number, cell: connection.execute(
                "INSERT INTO bytes VALUES ($1, $2)", number, cell
            )
    await close_pool(pool)


def _memory_mb() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def _peak_mb() -> float:
    """Of this process alone: what the system counts for it includes the one that started it."""
    lines = Path("/proc/self/status").read_text().splitlines()
    kib = next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))
    return kib * 1_024 / 1e6


PARTS = {"looks": _measured, "code": _measured_code}

if __name__ == "__main__":
    _, _part, *_where = sys.argv
    print(json.dumps(asyncio.run(PARTS[_part](_where, json.load(sys.stdin)))))
