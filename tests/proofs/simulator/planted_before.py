"""
Mistakes that this service once made, planted again: each was found by the simulator.

The world that shows each of them, made small, lies in `kept`.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pytest
from attrs import evolve

from tests.proofs.simulator.planted import beginning_forgotten, end_recorded_again
from tests.proofs.simulator.planted_requests import key_read_twice
from wfcore.ports.store import Slots
from wfcore.testing.simulator.worker import SimWorker
from wfcore.usecases.approvals import deciding, expiry
from wfcore.usecases.executions import worker as running
from wfcore.usecases.executions.worker import Lease
from wfcore.usecases.services import Services


def torn_reads(patch: pytest.MonkeyPatch) -> None:
    """An approval and its execution, read one after the other, are taken for one moment."""

    @contextmanager
    def apart(kind: str, id: str) -> Iterator[None]:
        yield

    patch.setattr(deciding, "stale_if_illegal", apart)
    patch.setattr(expiry, "stale_if_illegal", apart)


def only_steps_keep_leases(patch: pytest.MonkeyPatch) -> None:
    """What is only beginning is not kept alive, however long that takes."""
    keep_all = SimWorker.keep_leases

    async def keep(self: SimWorker) -> None:
        beginning = {id: held for id, held in self.held.items() if not held.steps}
        for id in beginning:
            del self.held[id]
        try:
            await keep_all(self)
        finally:
            self.held.update(beginning)

    patch.setattr(SimWorker, "keep_leases", keep)


def late_claims_begin(patch: pytest.MonkeyPatch) -> None:
    """What was claimed is begun, also under a lease that ended before the answer came."""

    async def claim(services: Services, worker: str, limit: int, **_: object) -> Sequence[Lease]:
        slots, lease_ms = Slots(services.policy.places), services.policy.lease_ms
        taken = await services.store.claim(worker, lease_ms, slots, limit)
        return [Lease(worker, run.id, run.fence) for run in taken]

    patch.setattr(running, "claim", claim)


def looks_forget(patch: pytest.MonkeyPatch) -> None:
    """What a look began, whose answer got lost, is not found by the next one."""
    patch.setattr(running, "_not_started", lambda outcome, started: outcome)


def work_by_the_calendar(patch: pytest.MonkeyPatch) -> None:
    """What follows from an expiry is due by the clock that the deadline was read from."""

    @expiry.retried
    async def expire(services: Services, approval_id: str) -> bool:
        calendar = evolve(services, store=CalendarStore(services))
        return bool(await once(calendar, approval_id))

    once = expiry.expire.__wrapped__  # type: ignore[attr-defined]
    patch.setattr(expiry, "expire", expire)


class CalendarStore:
    """A store that takes the calendar of its process for the time of work."""

    def __init__(self, services: Services) -> None:
        self.now = services.clock.deadline_now
        self.unit, self.view = services.store.unit, services.store.view


ONCE = (
    key_read_twice,
    torn_reads,
    end_recorded_again,
    beginning_forgotten,
    only_steps_keep_leases,
    late_claims_begin,
    looks_forget,
    work_by_the_calendar,
)
