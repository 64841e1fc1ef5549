"""
The composition root: the one place where core and adapters meet.

`open_system` gives what every command needs; `engine` is what makes it a server.
"""

import asyncio
import os
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any, Unpack

from attrs import frozen

from adapters_http.config import Login
from adapters_runtime.engine.wakeups import SharedWakeups, Wakeups
from adapters_runtime.expressions.templates import MiniJinjaTemplates
from adapters_runtime.passwords import Argon2Passwords
from adapters_runtime.system import CronCalendar, StoreTime, SystemClock, SystemIds, SystemTokens
from adapters_store import Opened, open_store, storage_around
from adapters_store.files import LocalFiles
from adapters_store.schema import Schema
from wfcore.installed import install
from wfcore.ports.files import ArtifactFiles
from wfcore.ports.hints import Hints
from wfcore.ports.notices import Notifier
from wfcore.ports.runtime import StepRunner
from wfcore.time import Now
from wfcore.usecases.services import Parts, Services
from wfserver.data.folder import SIGNING_KEY_BYTES, make_data_folder, signing_key
from wfserver.data.seal_keys import sealer_of
from wfserver.definitions.packages import Environments
from wfserver.failures import Failed
from wfserver.settings.record import Settings
from wfserver.settings.sharing import ARTIFACTS

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
    hints: Hints | None = None,
    schema: Schema = Schema.NEWEST,
    **parts: Unpack[Parts],
) -> AsyncIterator[System]:
    """
    Open the store of *settings*, making the data folder if there is none.

    *parts* replace the bundled ones; their owner closes them. *runner* (for code steps), *login*
    and *notifier* are for the server that is made of the system. *hints*: to other processes, where
    the store knows no way itself. *schema*: whether the store is made and migrated.

    Raises `Failed` where the data folder or a key cannot be used, `StoreRefused` for a store
    that is foreign, damaged, newer or not whole, `StoreUnavailable`, and `ValueError` for a store
    URL that nobody knows.
    """
    make_data_folder(settings.data)
    clock = parts.get("clock") or SystemClock(settings.data / CLOCK_FILE)
    async with (
        _storage(settings, parts, clock.service_now, schema) as opened,
        _wakeups(opened.hints or hints) as wakeup,
    ):
        defaults: dict[str, Any] = {
            "store": opened.store,
            "counters": opened.counters,
            "files": _files(settings, opened),
            "ids": SystemIds(settings.cell),
            "tokens": SystemTokens(),
            "passwords": Argon2Passwords(),
            "offload": asyncio.to_thread,
            "templates": MiniJinjaTemplates(),
            "wakeup": wakeup,
            "policy": settings.policy,
            "calendar": CronCalendar(),
            "environments": Environments(settings),
        }
        if "signing_key" not in parts:
            defaults["signing_key"], *older = _signing_keys(settings)
            defaults["older_signing_keys"] = tuple(older)
        timed = StoreTime(clock, opened.store.now) if opened.has_clock else clock
        services = Services(**{**defaults, **parts, "clock": timed})
        yield System(settings, services, opened.location, runner, login, notifier)


@asynccontextmanager
async def _storage(
    settings: Settings, parts: Parts, now: Now, schema: Schema
) -> AsyncIterator[Opened]:
    """The store that is given or that the settings name; what is opened here is closed here."""
    given = parts.get("store")
    if given is not None:
        opened = await storage_around(given, settings.data)
    else:
        sealer = sealer_of(settings)
        opened = await open_store(
            settings.store, settings.data, settings.cache, sealer, now, settings.direct, schema
        )
    try:
        yield opened
    finally:
        await opened.counters.close()
        if given is None:
            await opened.store.close()


def _files(settings: Settings, opened: Opened) -> ArtifactFiles:
    return opened.files if settings.artifacts is None else files_at(settings)


def files_at(settings: Settings) -> ArtifactFiles:
    """
    The artifacts where the settings say. Raises `Failed` for a shared folder that is not there
    (what is mounted late would hide it), and for a bucket that cannot be used as it is set up.
    """
    folder = settings.artifacts_folder
    if folder is None:
        return bucket_at(str(settings.artifacts), settings.direct_downloads)
    if settings.artifacts is not None and not folder.is_dir():
        what = f"{folder} of {ARTIFACTS} is not a folder here"
        raise Failed(f"{what}; mount it, or create it where no other server has")
    return LocalFiles(folder)


def bucket_at(url: str, direct: bool = False) -> ArtifactFiles:
    """The bucket at *url*, which nobody is asked for yet. Raises `Failed`."""
    try:
        from adapters_store.objects import ObjectFiles

        return ObjectFiles(url, direct)
    except ModuleNotFoundError as error:
        if error.name != "obstore":
            raise
        raise Failed(f"artifacts in a bucket need a library: {install('objects')}") from None
    except ValueError as error:
        raise Failed(f"{ARTIFACTS}: {error}") from None


@asynccontextmanager
async def _wakeups(hints: Hints | None) -> AsyncIterator[Wakeups]:
    """Hints within this process, and to others where there is a way."""
    made = Wakeups() if hints is None else SharedWakeups(hints)
    try:
        yield made
    finally:
        await made.close()


def _signing_keys(settings: Settings) -> Sequence[bytes]:
    """A store in memory takes its links with it, and leaves no key that tells of a service."""
    if settings.signing_keys:
        return [key for _, key in settings.signing_keys]
    if settings.store == "memory:":
        return [os.urandom(SIGNING_KEY_BYTES)]
    return [signing_key(settings.data)]
