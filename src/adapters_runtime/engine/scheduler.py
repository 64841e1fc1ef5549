"""The scheduler: the loop that sweeps, periodically and at the instant of each known deadline."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable

from adapters_runtime.engine.loops import FailureLog, Loop
from wfcore.model.trigger import Refusal
from wfcore.time import EpochMs
from wfcore.usecases.services import Services
from wfcore.usecases.upkeep.sweeping import DUTY, next_deadline, sweep
from wfcore.usecases.workflows.firing import FiringResult

log = logging.getLogger("wfcore.scheduler")


class Scheduler:
    """
    Sweeps as often as policy says (`sweep_ms`), and at every known deadline.

    *before* is called before each sweep. A worker of the same process renews its leases there, so
    that a process that was suspended does not sweep its own leases as lost.
    """

    def __init__(
        self, services: Services, before: Callable[[], Awaitable[None]] | None = None
    ) -> None:
        self._services = services
        due = asyncio.Event()
        self.loop = Loop("scheduler", self._round, due)
        services.wakeup.listen(timer=due.set)
        self._failures = FailureLog("scheduler")
        self._before = before

    async def run(self) -> None:
        """Sweep until `stop` of `loop`. A sweep that fails is logged and tried again."""
        await self.loop.run()

    async def _round(self) -> float:
        """Sweep once; returns how many seconds to sleep."""
        if self._before is not None:
            await self._before()
        self._failures.begin()
        over = self._is_over(await next_deadline(self._services))
        fired = await sweep(self._services, self._failures, deadlines=over)
        _log_refusals(fired)
        for failed in self._failures.failed:
            if failed.kind == DUTY:
                raise failed.error
        due = await next_deadline(self._services) if over else self.loop.oldest_due
        return self._pause(due, progress=bool(fired))

    def _is_over(self, due: EpochMs | None) -> bool:
        """Whether *due*, the next deadline, has passed by either clock of deadlines."""
        self.loop.oldest_due = due
        now = max(self._services.clock.deadline_now(), self._services.store.now())
        return due is not None and due <= now

    def _pause(self, due: EpochMs | None, progress: bool) -> float:
        """
        The seconds until the next deadline. A deadline that has passed without *progress* was left
        out, and waits for the next periodic sweep.
        """
        self.loop.oldest_due = due
        longest_s = self._services.policy.sweep_ms / 1_000
        if due is None:
            return longest_s
        left = (due - self._services.clock.deadline_now()) / 1_000
        if left <= 0 and not progress:
            return longest_s
        return min(max(left, 0.005), longest_s)


def _log_refusals(fired: Iterable[FiringResult]) -> None:
    """Log each trigger that was due and started nothing."""
    for one in fired:
        if one.refusal is not None:
            about = {
                "trigger_id": one.trigger_id,
                "workflow_id": one.workflow_id,
                "reason": one.refusal.value,
            }
            level = logging.INFO if one.refusal is Refusal.PAUSED else logging.WARNING
            log.log(level, "a trigger started nothing", extra=about)
