"""
The composition root: the one place where core and adapters meet.

`open_system` opens what every command needs; `serving.engine` makes a server of the open system.
"""

import asyncio
import os
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any, Unpack

from attrs import frozen

from adapters_http.config import Login
from adapters_runtime.cron import CronCalendar
from adapters_runtime.engine.wakeups import SharedWakeups, Wakeups
from adapters_runtime.expressions.templates import MiniJinjaTemplates
from adapters_runtime.passkeys import WebAuthnPasskeys
from adapters_runtime.passwords import Argon2Passwords
from adapters_runtime.system import StoreTime, SystemClock, SystemIds, SystemTokens
from adapters_store import Opened, open_store, storage_around
from adapters_store.files import LocalFiles
from adapters_store.sql.schema import Schema
from wfcore.installed import install
from wfcore.ports.files import ArtifactFiles
from wfcore.ports.hints import Hints
from wfcore.ports.notices import Notifier
from wfcore.ports.runtime import StepRunner
from wfcore.time import Now
from wfcore.usecases.services import ServiceParts, Services
from wfserver.data.folder import SIGNING_KEY_BYTES, make_data_folder, signing_key
from wfserver.data.seal_keys import sealer_of
from wfserver.definitions.packages import LazyEnvironments
from wfserver.errors import CommandFailed
from wfserver.settings.names import CLOCK_FILE
from wfserver.settings.record import Settings
from wfserver.settings.sharing import ARTIFACTS


@frozen
class System:
    """
    An open store with everything that the use cases need.

    `runner` None: the bundled runner of code steps. `login` None: callers log in with an API key or
    a console session. `notifier` None: notices go over the channels of the settings.
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
    **parts: Unpack[ServiceParts],
) -> AsyncIterator[System]:
    """
    Open the store of *settings*; the data folder is made if it does not exist.

    *parts* replace the bundled parts; the caller closes *parts*. *runner* (for code steps), *login*
    and *notifier* are for a server that is made of the system. *hints* carry hints to other
    processes if the store cannot. *schema*: whether the store is made and migrated.

    Raises `CommandFailed` if the data folder or a key cannot be used, `StoreRefused` for a store
    that is foreign, damaged, newer or incomplete, `StoreUnavailable`, and `ValueError` for a store
    URL of an unknown scheme.
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
            "files": opened.files if settings.artifacts is None else files_at(settings),
            "ids": SystemIds(settings.cell),
            "tokens": SystemTokens(),
            "passwords": Argon2Passwords(),
            "passkeys": WebAuthnPasskeys(),
            "offload": asyncio.to_thread,
            "templates": MiniJinjaTemplates(),
            "wakeup": wakeup,
            "policy": settings.policy,
            "calendar": CronCalendar(),
            "environments": LazyEnvironments(settings.packages_folder, lambda: settings),
        }
        if "signing_key" not in parts:
            defaults["signing_key"], *older = _signing_keys(settings)
            defaults["older_signing_keys"] = tuple(older)
        timed = StoreTime(clock, opened.store.now) if opened.has_clock else clock
        services = Services(**{**defaults, **parts, "clock": timed})
        yield System(settings, services, opened.location, runner, login, notifier)


@asynccontextmanager
async def _storage(
    settings: Settings, parts: ServiceParts, now: Now, schema: Schema
) -> AsyncIterator[Opened]:
    """
    The store in *parts*, or else the store that the settings name, which is closed on leaving.
    """
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


def files_at(settings: Settings) -> ArtifactFiles:
    """
    The files of artifacts, in the place that the settings name.

    Raises `CommandFailed` for a shared folder that does not exist (a file system mounted there
    later would hide its files), and for a bucket that cannot be used with these settings.
    """
    folder = settings.artifacts_folder
    if folder is None:
        return bucket_at(str(settings.artifacts), settings.direct_downloads)
    if settings.artifacts is not None and not folder.is_dir():
        what = f"{folder} of {ARTIFACTS} is not a folder here"
        raise CommandFailed(f"{what}; mount it, or create it where no other server has")
    return LocalFiles(folder)


def bucket_at(url: str, direct: bool = False) -> ArtifactFiles:
    """The bucket at *url*; nothing is sent to it yet. Raises `CommandFailed`."""
    try:
        from adapters_store.objects import ObjectFiles

        return ObjectFiles(url, direct)
    except ModuleNotFoundError as error:
        if error.name != "obstore":
            raise
        raise CommandFailed(f"artifacts in a bucket need a library: {install('objects')}") from None
    except ValueError as error:
        raise CommandFailed(f"{ARTIFACTS}: {error}") from None


@asynccontextmanager
async def _wakeups(hints: Hints | None) -> AsyncIterator[Wakeups]:
    """Hints within this process, and with *hints* also to other processes."""
    made = Wakeups() if hints is None else SharedWakeups(hints)
    try:
        yield made
    finally:
        await made.close()


def _signing_keys(settings: Settings) -> Sequence[bytes]:
    """The keys that sign links, the newest first. A store in memory leaves no key file behind."""
    if settings.signing_keys:
        return [key for _, key in settings.signing_keys]
    if settings.store == "memory:":
        return [os.urandom(SIGNING_KEY_BYTES)]
    return [signing_key(settings.data)]
