"""
The composition root: the one place where core and adapters meet.

`open_system` gives what every command needs; `engine` is what makes it a server.
"""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from attrs import frozen

from adapters_runtime.engine.wakeups import Wakeups
from adapters_runtime.expressions.templates import MiniJinjaTemplates
from adapters_runtime.passwords import Argon2Passwords
from adapters_runtime.system import CronCalendar, SystemClock, SystemIds, SystemTokens
from adapters_store import open_store
from wfcore.usecases.services import Services
from wfserver.data_folder import SIGNING_KEY_BYTES, make_data_folder, signing_key
from wfserver.packages import Environments
from wfserver.seal_keys import sealer_of
from wfserver.settings import Settings

CLOCK_FILE = "clock.json"
"""What is known of the clocks, see `SystemClock`."""


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

    Raises `Failed` where the data folder or a key cannot be used, `StoreRefused` for a store
    that is foreign, damaged, newer or not whole, `StoreUnavailable`, and `ValueError` for a store
    URL that nobody knows.
    """
    make_data_folder(settings.data)
    clock, sealer = SystemClock(settings.data / CLOCK_FILE), sealer_of(settings)
    now = clock.service_now
    opened = await open_store(settings.store, settings.data, settings.cache, sealer, now)
    wakeups = Wakeups()
    try:
        services = Services(
            store=opened.store,
            counters=opened.counters,
            files=opened.files,
            clock=clock,
            ids=SystemIds(),
            tokens=SystemTokens(),
            passwords=Argon2Passwords(),
            offload=asyncio.to_thread,
            templates=MiniJinjaTemplates(),
            wakeup=wakeups,
            signing_key=_signing_key(settings),
            policy=settings.policy,
            calendar=CronCalendar(),
            environments=Environments(settings),
        )
        yield System(settings, services, wakeups, opened.location)
    finally:
        await opened.counters.close()
        await opened.store.close()


def _signing_key(settings: Settings) -> bytes:
    """A store in memory takes its links with it, and leaves no key that tells of a service."""
    if settings.store == "memory:":
        return os.urandom(SIGNING_KEY_BYTES)
    return signing_key(settings.data)
