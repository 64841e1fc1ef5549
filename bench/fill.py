"""Stores that hold much: copies, made by SQL, of executions that use cases or a server made."""

import asyncio
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from adapters_store.sql.packing import resealed
from adapters_store.sqlite.packing import pack
from adapters_store.sqlite.tallies import tally
from wfcore.model.access import Principal
from wfcore.model.execution import TriggerSource
from wfcore.ports.runtime import StepEnd
from wfcore.time import EpochMs
from wfcore.usecases.executions import starting, worker
from wfcore.usecases.services import Services
from wfserver.data.seal_keys import sealer_of
from wfserver.settings.record import Settings

DATABASE = "wfcore.db"
AT_ONCE = 50_000
"""So many copies are written by one transaction: neither a log nor a cache holds all of them."""
WAITING_AT_ONCE = 50
PIECE = 50


async def ended(
    services: Services,
    who: Principal,
    workflow_id: str,
    end: StepEnd,
    source: TriggerSource = TriggerSource.OPEN_API,
) -> str:
    """One of which each step ends so, made by use cases."""
    start = starting.start_execution(services, who, workflow_id, {}, source=source)
    id = (await start).execution_id
    (lease,) = await worker.claim(services, "bench", 1)
    jobs = (await worker.begin(services, lease)).jobs
    while jobs:
        jobs = (await worker.complete_step(services, lease, jobs[0].step_name, end)).jobs
    return id


async def waiting(services: Services, who: Principal, workflow_id: str) -> str:
    """Some that wait, made by use cases: what an approval holds is sealed for its own id."""
    starts = (
        starting.start_execution(services, who, workflow_id, {}) for _ in range(WAITING_AT_ONCE)
    )
    ids = [one.execution_id for one in await asyncio.gather(*starts)]
    leases = await worker.claim(services, "bench", WAITING_AT_ONCE)
    await asyncio.gather(*(worker.begin(services, lease) for lease in leases))
    return ids[0]


def fill(data: Path, models: Sequence[str], wanted: int, last: int, apart_ms: int = 1) -> None:
    """
    *wanted* copies of ended executions, each of *models* in turn: *apart_ms* apart in the order of
    their age, as a server writes them, the newest accepted at *last*.

    They are packed, as they are after a minute; each cell is sealed for its own execution. Results
    and events of a model keep their instants.
    """
    sealer = sealer_of(Settings(data))
    assert sealer is not None

    def sealed(cell: bytes, id: str) -> bytes:
        return resealed(cell, sealer, id, clear=True) or cell

    with closing(sqlite3.connect(data / DATABASE, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = OFF")  # a fill that fails is thrown away
        connection.execute("PRAGMA synchronous = OFF")
        connection.execute("PRAGMA cache_size = -1000000")
        connection.execute("CREATE TEMP TABLE models (turn INTEGER PRIMARY KEY, id TEXT)")
        connection.executemany("INSERT INTO models VALUES (?, ?)", enumerate(models))
        connection.create_function("sealed", 2, sealed)
        pack(connection.cursor(), models, sealer, None)
        copy = _copies(connection)
        first = last - (wanted - 1) * apart_ms
        for begin in range(0, wanted, AT_ONCE):
            end = min(begin + AT_ONCE, wanted)
            values = {"begin": begin, "end": end, "first": first, "apart": apart_ms}
            connection.execute("BEGIN IMMEDIATE")
            connection.execute(copy, {**values, "models": len(models)})
            connection.execute("COMMIT")
        while tally(connection.cursor(), EpochMs(last), AT_ONCE):
            pass
        connection.execute(
            "UPDATE executions SET packed = sealed(packed, id) WHERE id IN (SELECT id FROM models)"
        )
        connection.execute(
            "UPDATE packing_mark SET completed_at = (SELECT max(completed_at) FROM executions)"
        )
        connection.execute("PRAGMA journal_mode = WAL")


def id_of(number: int) -> str:
    """The id of a copy, from 0."""
    return f"exec_0{number:018x}"


def _copies(connection: sqlite3.Connection) -> str:
    """The statement that copies rows for the numbers from :begin up to :end."""
    columns = [row[1] for row in connection.execute("PRAGMA table_info(executions)")]
    accepted_at = ":first + :apart * n"
    id = "'exec_0' || printf('%018x', n)"
    changed = {
        "id": id,
        "packed": f"sealed(r.packed, {id})",
        "accepted_at": accepted_at,
        "completed_at": f"r.completed_at - r.accepted_at + {accepted_at}",
    }
    picked = ", ".join(changed.get(name, f"r.{name}") for name in columns)
    return f"""WITH RECURSIVE numbers (n) AS
        (SELECT :begin UNION ALL SELECT n + 1 FROM numbers WHERE n + 1 < :end)
        INSERT INTO executions ({", ".join(columns)})
        SELECT {picked} FROM numbers CROSS JOIN models m ON m.turn = n % :models
        CROSS JOIN executions r ON r.id = m.id"""


def pack_all(data: Path) -> None:
    """Pack what has ended, as upkeep does a minute later."""
    with closing(sqlite3.connect(data / DATABASE, isolation_level=None)) as connection:
        sealer = sealer_of(Settings(data))
        ids = [id for (id,) in connection.execute("SELECT id FROM executions WHERE body <> ''")]
        for first in range(0, len(ids), PIECE):
            connection.execute("BEGIN IMMEDIATE")
            pack(connection.cursor(), ids[first : first + PIECE], sealer, sealer)
            connection.execute("COMMIT")
