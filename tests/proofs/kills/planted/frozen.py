"""
A server freezes between a claim and what it begins, and keeps no lease after it has woken.

No bug by itself: the fencing number alone keeps it from doing anything with what somebody else
has taken over. EX-16.
"""

from threading import Event, Lock
from typing import Any

from adapters_runtime.engine.worker import Worker
from adapters_store.sqlite.writer import Writer
from tests.proofs.kills import faults
from wfcore.usecases.executions import worker
from wfcore.usecases.executions.worker import Lease, Work
from wfcore.usecases.services import Services


def plant() -> None:
    faults.expect()
    begin, keep = worker.begin, Worker.keep_leases
    carry_out, writing = Writer._carry_out, Lock()
    woken = Event()

    def locking(self: Writer, batch: Any) -> Any:
        with writing:
            return carry_out(self, batch)

    async def late(services: Services, lease: Lease) -> Work:
        with writing:  # frozen in the middle of a transaction it would keep everybody out
            frozen = faults.freeze(lease.execution_id)
        if not frozen:
            return await begin(services, lease)
        woken.set()
        try:
            return await begin(services, lease)
        finally:
            faults.over()

    async def keep_leases(self: Worker) -> None:
        if not woken.is_set():
            await keep(self)

    Writer._carry_out = locking  # type: ignore[method-assign]
    worker.begin = late
    Worker.keep_leases = keep_leases  # type: ignore[method-assign]
