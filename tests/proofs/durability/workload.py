"""
A store at work: three clients at once, each changing executions of its own, so that commits gather.

Each unit puts an execution and appends an event: as many events as its version. What is
acknowledged is said on stdout, a line each. Called with the database and the number of rounds;
ends without closing the store, as a power cut would end it.
"""

import asyncio
import os
import sys
from pathlib import Path

from adapters_store.sqlite.store import SqliteStore
from wfcore.model.execution import Execution, evolve
from wfcore.testing import builders as make

CLIENTS = 3
SIZES = (10, 900, 6_000)
"""Characters of a variable: rows in a page, of a page, over several pages."""


async def client(store: SqliteStore, number: int, rounds: int) -> None:
    for turn in range(rounds):
        id = f"exec_{number}_{turn // 3}"
        async with store.unit() as unit:
            run = await unit.get(Execution, id) or make.execution(id)
            text = "x" * SIZES[(number + turn) % len(SIZES)]
            unit.put(evolve(run, variables={"text": text}))
            unit.append(make.event(turn % 3 + 1, id))
            await unit.commit()
        os.write(1, f"ack {id} {turn % 3 + 1}\n".encode())


async def main() -> None:
    store = await SqliteStore.open(Path(sys.argv[1]))
    async with store.view() as view:
        assert await view.get(Execution, "exec_0_0") is None
    await store.ping()
    os.write(1, b"ready\n")
    await asyncio.gather(*(client(store, number, int(sys.argv[2])) for number in range(CLIENTS)))
    os._exit(0)


asyncio.run(main())
