"""
What makes a process a server: the loops that run steps, sweep what falls due, and call back.

Apart from `compose`, so that commands which only look at the store load nothing of it.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from adapters_runtime.ai.models import WireModels
from adapters_runtime.ai.prices import PriceList, read_prices
from adapters_runtime.ai.step import AiStepRunner
from adapters_runtime.caller import Caller
from adapters_runtime.code_step import CodeStepRunner, StepLimits
from adapters_runtime.courier import HttpCourier
from adapters_runtime.dispatcher import Dispatcher
from adapters_runtime.steps import StepRunners
from adapters_runtime.sweeper import Sweeper
from wfserver.compose import System
from wfserver.isolation import step_isolation
from wfserver.settings import PRICES, Settings


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


@asynccontextmanager
async def engine(system: System, runner: CodeStepRunner) -> AsyncIterator[Dispatcher]:
    """
    Dispatcher, sweeper and caller at work. On leaving, running steps are drained, then ended, and
    *runner* is closed.
    """
    worker = system.services.ids.new("worker", system.services.clock.now())
    steps = StepRunners(runner, new_ai_runner(system.settings))
    dispatcher = Dispatcher(system.services, steps, system.wakeups, worker)
    sweeper = Sweeper(system.services, system.wakeups, dispatcher.keep_leases)
    courier = HttpCourier(system.settings.policy.private_callbacks)
    caller = Caller(system.services, courier, system.wakeups)
    loops = [asyncio.create_task(loop.run()) for loop in (dispatcher, sweeper, caller)]
    try:
        yield dispatcher
    finally:
        await dispatcher.stop(system.settings.drain_ms / 1_000)
        for loop in loops[1:]:
            loop.cancel()
        await asyncio.gather(*loops, return_exceptions=True)
        await runner.close()
