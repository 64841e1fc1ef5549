"""
The loop that deletes records whose retention is over, at a low rate.

It is separate from the scheduler, so that even a long deletion never delays deadlines.
"""

import asyncio
import logging

from adapters_runtime.engine.loops import FailureLog, Loop
from wfcore.usecases.audit.auditing import note_repeated
from wfcore.usecases.services import Services
from wfcore.usecases.upkeep.retention import delete_expired, run_upkeep
from wfcore.usecases.upkeep.sweeping import DUTY

log = logging.getLogger("wfcore.retention")

INTERVAL_S = 300.0
TIDY_S = 3_600.0
LEAST_REST_S = 0.005
REST = 1.0
"""The rest after a piece, as a multiple of its duration: half of the time is left to other work."""


class Retention:
    """Deletes in pieces until nothing old is left, then every five minutes; tidies once an hour."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self.loop = Loop("retention", self._round, asyncio.Event())
        self._tidied = float("-inf")
        self._gone = 0
        self._left_out: set[str] = set()
        self._failures, self._tidy_failures = FailureLog("retention"), FailureLog("retention")

    async def run(self) -> None:
        """Delete until `stop` of `loop`, which takes effect after each piece."""
        await self.loop.run()

    async def _round(self) -> float:
        """Delete one piece; returns how many seconds to rest."""
        clock = asyncio.get_running_loop()
        began = clock.time()
        await note_repeated(self._services, self._services.clock.now())
        done = await delete_expired(self._services, self._failures, self._left_out)
        self._gone += done.executions
        took = clock.time() - began
        if clock.time() - self._tidied >= TIDY_S:
            self._tidied = clock.time()
            self._tidy_failures.begin()
            await run_upkeep(self._services, self._tidy_failures)
        if done.more:
            return max(took * REST, LEAST_REST_S)
        self._end_pieces()
        return INTERVAL_S

    def _end_pieces(self) -> None:
        """Log that nothing is left to delete. Raises the error of the first duty that failed."""
        if self._gone:
            log.info("executions over their time are gone", extra={"executions": self._gone})
        failed = [one.error for one in self._failures.failed if one.kind == DUTY]
        self._gone = 0
        self._left_out.clear()
        self._failures.begin()
        if failed:
            raise failed[0]
