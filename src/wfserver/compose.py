"""
The composition root: the one place where core and adapters meet.

`open_system` gives what every command needs; `engine` is what makes it a server.
"""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from attrs import frozen

from adapters_runtime.cron import CronCalendar
from adapters_runtime.passwords import Argon2Passwords
from adapters_runtime.system import SystemClock, SystemIds, SystemTokens
from adapters_runtime.templates import MiniJinjaTemplates
from adapters_runtime.wakeups import Wakeups
from adapters_store import open_store
from wfcore.usecases.services import Services
from wfserver.packages import Environments
from wfserver.settings import Settings

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
            environments=Environments(settings),
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
