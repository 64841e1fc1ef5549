"""
What is over its time goes: piece by piece, oldest first, until nothing is left. Contract §7, PK-6.

One call of `retain` is one piece, small enough for starts to be answered beside it; who calls it
rests in between and may stop after any. Files go before the rows that name them, so that a crash
leaves rows without files, which the next piece finds again, never files that nobody knows.
"""

from attrs import frozen

from wfcore.instants import DAY, later
from wfcore.rules.limits import REPLAY_WINDOW, SESSION_MAX
from wfcore.usecases.firing import plan_anew
from wfcore.usecases.preparing import prune_packages
from wfcore.usecases.services import Services

EXECUTIONS = 50
RECORDS = 200
ROOM = 1 << 20
"""Bytes given back in one piece."""
KEEP_COUNTERS = 2 * DAY


@frozen
class Retained:
    """
    What a piece did. `executions` and `records` that went; `released`: bytes that were given back
    to the system, once nothing old was left. `more`: the next piece may have something to do.
    """

    executions: int
    records: int
    released: int

    @property
    def more(self) -> bool:
        """Whether anything was done at all: if so, there may be more."""
        return bool(self.executions or self.records or self.released)


async def retain(services: Services) -> Retained:
    """
    One piece of deleting what is over its time: ended executions with artifacts and events,
    audit entries, idempotency records, sessions, logins.
    """
    executions = await _purge_some(services)
    records = await _trim_some(services)
    released = 0 if executions or records else await services.store.release(ROOM)
    return Retained(executions, records, released)


async def _purge_some(services: Services) -> int:
    before = later(services.clock.now(), -services.policy.keep_executions_ms)
    async with services.store.view() as view:
        old = await view.executions.ended_before(before, EXECUTIONS)
    if old:
        await services.files.delete_executions(*old)
        async with services.store.unit() as unit:
            unit.executions.purge(*old)
            await unit.commit()
    return len(old)


async def _trim_some(services: Services) -> int:
    now = services.clock.now()
    return await services.store.trim(
        later(now, -services.policy.keep_audit_ms),
        later(now, -REPLAY_WINDOW),
        later(now, -SESSION_MAX),
        RECORDS,
    )


async def tidy(services: Services) -> None:
    """
    Now and then: old quota counters and packages that nothing needs any more go, and schedules
    are planned anew. PK-6.
    """
    await services.counters.trim(later(services.clock.now(), -KEEP_COUNTERS))
    await prune_packages(services)
    await plan_anew(services)
