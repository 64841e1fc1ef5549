"""
Six mistakes that are made when a service grows past one machine, to plant in real servers.

Each function is called in a server process before it serves; see `chaos.node`. The clock of the
process as that of leases is planted in the database: `LEASES_BY_THE_PROCESS`.
"""

import asyncio
from collections import Counter
from itertools import count
from typing import Any

from attrs import evolve

from adapters_runtime.engine.worker import Worker
from adapters_store.postgres import claims, groups
from adapters_store.postgres.statements import Lock
from adapters_store.sql.execution_queries import CLAIMABLE
from wfcore.model.event import Event
from wfcore.model.execution import Execution
from wfcore.ports.store import Unit
from wfcore.rules.execution import fold
from wfcore.time import HOUR
from wfcore.usecases.executions import worker
from wfcore.usecases.executions.worker import Lease, Work
from wfcore.usecases.services import Services
from wfserver.serving import serve

AHEAD = "chaos.ahead"
"""A parameter of a node's connections: by how many milliseconds its clock is wrong."""
LEASES_BY_THE_PROCESS = f"""
CREATE OR REPLACE FUNCTION wfcore_now() RETURNS bigint LANGUAGE sql STABLE AS $$
    SELECT (extract(epoch FROM statement_timestamp()) * 1000)::bigint
        + coalesce(current_setting('{AHEAD}', true), '0')::bigint $$"""


def no_group_lock() -> None:
    """Whoever counts a group holds a lock that nobody else asks for."""
    numbers = count()

    def lock(group: str) -> Lock:
        return Lock(f"group {group} {id(numbers)} {next(numbers)}")

    groups.lock = lock


def no_skip_locked() -> None:
    """A claim takes what it has seen, whether or not somebody else was faster."""
    picked = f"AND {CLAIMABLE}\n    ORDER BY id FOR UPDATE SKIP LOCKED"
    assert picked in claims.TAKE
    claims.TAKE = claims.TAKE.replace(picked, "")


def hints_only() -> None:
    """Nothing is looked for: what nobody was told of is not found."""
    opened = serve.open_system

    def open_system(settings: Any, **parts: Any) -> Any:
        never = dict.fromkeys(("poll_ms", "sweep_ms", "reconcile_ms"), HOUR)
        return opened(evolve(settings, policy=evolve(settings.policy, **never)), **parts)

    serve.open_system = open_system


def sequence_instead_of_row() -> None:
    """Events are numbered by a sequence, which goes on where a unit was not stored."""
    numbers: Counter[str] = Counter()

    def numbered(run: Execution, now: Any, events: Any) -> tuple[Event, ...]:
        told = []
        for kind, data in events:
            numbers[run.id] = max(numbers[run.id], run.events) + 1
            told.append(Event(run.id, numbers[run.id], now, kind, data))
        return tuple(told)

    fold._numbered = numbered


def fence_unchecked() -> None:
    """
    Whoever held an execution once goes on with it, and does not hear that it was taken away.

    Between a claim and what it begins there is time for somebody else, which is no bug.
    """
    begin = worker.begin

    async def leased(unit: Unit, lease: Lease) -> Execution:
        run = await unit.get(Execution, lease.execution_id)
        assert run is not None
        return run

    async def late(services: Services, lease: Lease) -> Work:
        await asyncio.sleep(1)
        return await begin(services, lease)

    async def keep_leases(self: Worker) -> None:
        mine = {lease.execution_id for lease in self._held}
        if mine:
            await worker.heartbeat(self._services, self.worker, mine)

    worker._leased = leased
    worker.begin = late
    Worker.keep_leases = keep_leases  # type: ignore[method-assign]
