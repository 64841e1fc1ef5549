"""
What makes a process a server: the loops that run steps, sweep what falls due, and call back.

Apart from `compose`, so that commands which only look at the store load nothing of it.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

from adapters_runtime.ai.models import WireModels
from adapters_runtime.ai.prices import PriceList, read_prices
from adapters_runtime.ai.runner import AiStepRunner, StepRunners
from adapters_runtime.code.runner import CodeStepRunner, StepLimits
from adapters_runtime.engine.callbacks import CallbackLoop, HttpCallbackClient
from adapters_runtime.engine.retention import Retention
from adapters_runtime.engine.scheduler import Scheduler
from adapters_runtime.engine.worker import Worker
from wfcore.errors import NotReady
from wfserver.compose import System
from wfserver.isolation import step_isolation
from wfserver.settings import PRICES, Settings

log = logging.getLogger("wfcore.server")

_ENDING_S = 2.0
"""How long it may take to end steps and loops that were told to, each."""


def new_ai_runner(settings: Settings) -> AiStepRunner:
    """The AI step runner. Raises `InvalidInput` for prices that cannot be read."""
    own = read_prices(settings.prices, PRICES) if settings.prices else {}
    providers = settings.providers
    return AiStepRunner(WireModels(providers), PriceList(own, providers), at_once=settings.ai_calls)


def new_runner(system: System, port: int | None = None) -> CodeStepRunner:
    """
    The code step runner of this process; its folders lie in the data folder.

    *port*: where the server listens, which no step reaches.
    """

    def new_artifact_id() -> str:
        return system.services.ids.new("art", system.services.clock.now())

    settings = system.settings
    steps = settings.steps
    return CodeStepRunner(
        settings.data / "steps",
        system.services.files,
        new_artifact_id,
        StepLimits(
            memory=steps.memory, processes=steps.processes, disk=steps.disk, inodes=steps.files
        ),
        isolation=step_isolation(settings, port),
        environments=system.services.environments,
        warm=steps.warm,
    )


class Engine:
    """The loops of a server: whether each does its work, and how they end."""

    def __init__(self, system: System, runner: CodeStepRunner) -> None:
        services, wakeups = system.services, system.wakeups
        worker = services.ids.new("worker", services.clock.now())
        steps = StepRunners(runner, new_ai_runner(system.settings))
        self.worker = Worker(services, steps, wakeups, worker)
        scheduler = Scheduler(services, wakeups, self.worker.keep_leases)
        callback_client = HttpCallbackClient(system.settings.policy.private_callbacks)
        caller, retention = CallbackLoop(services, callback_client, wakeups), Retention(services)
        self._parts = (self.worker, scheduler, caller, retention)
        self._settings = system.settings
        self._clock = services.clock
        self._drained = False

    def begin(self) -> None:
        """Start the loops."""
        self._tasks = [asyncio.create_task(part.run(), name=part.loop.name) for part in self._parts]

    def check(self) -> None:
        """
        Raises `NotReady` while a loop is down, or leaves what is due, or the machine lacks what it
        takes to start a step. Decisions 58 and 70.
        """
        bound_s = self._settings.stalled_ms / 1_000
        found = [self.worker.trouble(bound_s)]
        # All but retention: without it the disk fills up some day, but callers are served.
        found += [part.loop.trouble(bound_s) for part in self._parts[1:-1]]
        if lacking := self.worker.shortages.now:
            found.append(f"steps cannot be started: {lacking}")
        if any(found):
            raise NotReady("; ".join(filter(None, found)))

    def gauges(self) -> Mapping[str, float]:
        """For the metrics: places, and each loop with the age of the oldest work due for it."""
        now, loops = self._clock.deadline_now(), [part.loop for part in self._parts]
        up = {f'wfcore_loop_up{{loop="{one.name}"}}': float(one.up) for one in loops}
        ages = {
            f'wfcore_oldest_due_seconds{{loop="{one.name}"}}': one.overdue_s(now) for one in loops
        }
        return {
            "wfcore_executions_running": self.worker.running,
            "wfcore_places": self._settings.policy.places,
            "wfcore_steps_postponed": self.worker.shortages.total,
            "wfcore_machine_short": self.worker.shortages.now is not None,
            **up,
            **ages,
        }

    async def drain(self) -> None:
        """Let running steps end in the time that the settings give, then end them. Once."""
        if self._drained:
            return
        self._drained = True
        drain_s = self._settings.drain_ms / 1_000
        try:
            async with asyncio.timeout(drain_s + _ENDING_S):
                await self.worker.stop(drain_s)
        except TimeoutError:
            log.error("executions could not be given back in time")

    async def end(self) -> None:
        """Drain, and end the loops; one that does not end is left behind, and named."""
        await self.drain()
        for part in self._parts:
            part.loop.stop()
        _, late = await asyncio.wait(self._tasks, timeout=_ENDING_S / 2)
        for task in late:
            task.cancel()
        if late:
            _, late = await asyncio.wait(late, timeout=_ENDING_S / 4)
        for task in late:
            log.error("a loop does not end", extra={"loop": task.get_name()})


@asynccontextmanager
async def engine(system: System, runner: CodeStepRunner) -> AsyncIterator[Engine]:
    """
    Worker, scheduler and callback loop at work. On leaving, running steps are drained, then ended,
    and *runner* is closed.
    """
    working = Engine(system, runner)
    working.begin()
    try:
        yield working
    finally:
        await working.end()
        await runner.close()
