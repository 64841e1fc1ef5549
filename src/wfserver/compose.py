"""
The composition root: the one place where core and adapters meet.

`open_system` gives what every command needs; `Engine` is what makes it a server.
"""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from attrs import frozen

from adapters_runtime.ai.models import WireModels
from adapters_runtime.ai.prices import PriceList, read_prices
from adapters_runtime.ai.step import AiStepRunner
from adapters_runtime.caller import Caller
from adapters_runtime.code_step import CodeStepRunner, StepLimits
from adapters_runtime.courier import HttpCourier
from adapters_runtime.cron import CronCalendar
from adapters_runtime.dispatcher import Dispatcher
from adapters_runtime.passwords import Argon2Passwords
from adapters_runtime.steps import StepRunners
from adapters_runtime.sweeper import Sweeper
from adapters_runtime.system import SystemClock, SystemIds, SystemTokens
from adapters_runtime.templates import MiniJinjaTemplates
from adapters_runtime.wakeups import Wakeups
from adapters_store import open_store
from wfcore.usecases.services import Services
from wfserver.isolation import step_isolation
from wfserver.settings import PRICES, Settings

SIGNING_KEY_FILE = "signing.key"
SIGNING_KEY_BYTES = 32


@frozen
class System:
    """An open store with everything the use cases need."""

    settings: Settings
    services: Services
    wakeups: Wakeups
    location: str


@asynccontextmanager
async def open_system(settings: Settings) -> AsyncIterator[System]:
    """
    Open the store of *settings*, making the data folder if there is none.

    Raises `StoreRefused` for a foreign, damaged or newer store, `StoreUnavailable`, and
    `ValueError` for a store URL that nobody knows.
    """
    settings.data.mkdir(mode=0o700, parents=True, exist_ok=True)
    opened = await open_store(settings.store, settings.data)
    wakeups = Wakeups()
    try:
        services = Services(
            store=opened.store,
            counters=opened.counters,
            files=opened.files,
            clock=SystemClock(),
            ids=SystemIds(),
            tokens=SystemTokens(),
            passwords=Argon2Passwords(),
            templates=MiniJinjaTemplates(),
            wakeup=wakeups,
            signing_key=signing_key(settings.data),
            policy=settings.policy,
            calendar=CronCalendar(),
        )
        yield System(settings, services, wakeups, opened.location)
    finally:
        await opened.counters.close()
        await opened.store.close()


def signing_key(data: Path) -> bytes:
    """The key of download links: made once, kept in the data folder, mode 600."""
    path = data / SIGNING_KEY_FILE
    with suppress(FileExistsError):
        fresh = path.with_suffix(f".{os.getpid()}")
        descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(os.urandom(SIGNING_KEY_BYTES))
            file.flush()
            os.fsync(file.fileno())
        try:
            os.link(fresh, path)
        finally:
            os.unlink(fresh)
    return path.read_bytes()


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
    )


@asynccontextmanager
async def engine(system: System, runner: CodeStepRunner) -> AsyncIterator[Dispatcher]:
    """
    Dispatcher, sweeper and caller at work. On leaving, running steps are drained, then ended.
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
        await courier.close()
        await runner.close()
