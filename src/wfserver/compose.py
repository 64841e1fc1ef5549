"""
The composition root: the one place where core and adapters meet.

`open_system` gives what every command needs; `engine` is what makes it a server.
"""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Unpack

from attrs import frozen

from adapters_http.config import Login
from adapters_runtime.engine.wakeups import Wakeups
from adapters_runtime.expressions.templates import MiniJinjaTemplates
from adapters_runtime.passwords import Argon2Passwords
from adapters_runtime.system import CronCalendar, SystemClock, SystemIds, SystemTokens
from adapters_store import Opened, open_store, storage_around
from wfcore.ports.notices import Notifier
from wfcore.ports.runtime import StepRunner
from wfcore.time import Now
from wfcore.usecases.services import Parts, Services
from wfserver.data_folder import SIGNING_KEY_BYTES, make_data_folder, signing_key
from wfserver.packages import Environments
from wfserver.seal_keys import sealer_of
from wfserver.settings import Settings

CLOCK_FILE = "clock.json"
"""What is known of the clocks, see `SystemClock`."""


@frozen
class System:
    """
    An open store with everything the use cases need. `runner`, `login` and `notifier` None: the
    bundled runner of code steps, logins by API key and console session alone, and the channels of
    the settings.
    """

    settings: Settings
    services: Services
    location: str
    runner: StepRunner | None = None
    login: Login | None = None
    notifier: Notifier | None = None


@asynccontextmanager
async def open_system(
    settings: Settings,
    *,
    runner: StepRunner | None = None,
    login: Login | None = None,
    notifier: Notifier | None = None,
    **parts: Unpack[Parts],
) -> AsyncIterator[System]:
    """
    Open the store of *settings*, making the data folder if there is none.

    *parts* replace the bundled ones; their owner closes them. *runner* (for code steps), *login*
    and *notifier* are for the server that is made of the system.

    Raises `Failed` where the data folder or a key cannot be used, `StoreRefused` for a store
    that is foreign, damaged, newer or not whole, `StoreUnavailable`, and `ValueError` for a store
    URL that nobody knows.
    """
    make_data_folder(settings.data)
    clock = parts.get("clock") or SystemClock(settings.data / CLOCK_FILE)
    async with _storage(settings, parts, clock.service_now) as opened:
        defaults: dict[str, Any] = {
            "store": opened.store,
            "counters": opened.counters,
            "files": opened.files,
            "clock": clock,
            "ids": SystemIds(),
            "tokens": SystemTokens(),
            "passwords": Argon2Passwords(),
            "offload": asyncio.to_thread,
            "templates": MiniJinjaTemplates(),
            "wakeup": Wakeups(),
            "policy": settings.policy,
            "calendar": CronCalendar(),
            "environments": Environments(settings),
        }
        if "signing_key" not in parts:
            defaults["signing_key"] = _signing_key(settings)
        services = Services(**{**defaults, **parts})
        yield System(settings, services, opened.location, runner, login, notifier)


@asynccontextmanager
async def _storage(settings: Settings, parts: Parts, now: Now) -> AsyncIterator[Opened]:
    """The store that is given or that the settings name; what is opened here is closed here."""
    given = parts.get("store")
    if given is not None:
        opened = await storage_around(given, settings.data)
    else:
        sealer = sealer_of(settings)
        opened = await open_store(settings.store, settings.data, settings.cache, sealer, now)
    try:
        yield opened
    finally:
        await opened.counters.close()
        if given is None:
            await opened.store.close()


def _signing_key(settings: Settings) -> bytes:
    """A store in memory takes its links with it, and leaves no key that tells of a service."""
    if settings.store == "memory:":
        return os.urandom(SIGNING_KEY_BYTES)
    return signing_key(settings.data)
