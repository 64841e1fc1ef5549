"""
Services with all their parts, for programs that embed the core: in memory, or in a folder.

`wfcore.in_memory`, `wfcore.on_sqlite` and `wfcore.on_postgres` are the functions of this module,
because only this package may put core and adapters together; the core names them in its stub and
imports none of them. Each function imports what it puts together, when it is called, and so before
the first execution: a program that only names one of them loads no adapter (decision 286).
"""

import asyncio
import os
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from wfcore.errors import InvalidInput, MissingExtra
from wfcore.model.workflow import Definition
from wfcore.ports.system import Clock, Passwords
from wfcore.usecases.services import Policy, ServiceParts, Services

if TYPE_CHECKING:
    from wfserver.settings.record import Settings


def in_memory(**parts: Unpack[ServiceParts]) -> Services:
    """
    Services over a store in memory, which ends with this process. *parts* replace the defaults.

    A base installation has neither passwords nor a calendar, so it refuses definitions with
    schedules; the extra `server` has both.
    """
    from adapters_runtime.system import SystemClock
    from adapters_store.memory import MemoryCounters, MemoryStore
    from wfcore.memory import MemoryFiles

    clock = parts.get("clock") or SystemClock()
    defaults: dict[str, Any] = {
        **_defaults(clock),
        "store": MemoryStore(now=clock.service_now),
        "counters": MemoryCounters(),
        "files": MemoryFiles(),
        "signing_key": os.urandom(32),
    }
    return Services(**{**defaults, **parts})


@asynccontextmanager
async def on_sqlite(folder: str | Path, **parts: Unpack[ServiceParts]) -> AsyncIterator[Services]:
    """
    Services over SQLite in *folder*, which is made if it does not exist; closed on leaving.

    *folder* is a data folder of the server: `wfcore --data FOLDER` works on the same executions, at
    the same time if need be. *parts* replace the defaults; the caller closes *parts*. Settings are
    not read from the environment. Without a policy, new accounts get the plan that the server would
    give them in *folder*.

    Raises `MissingExtra` without the extra `sqlite`, `CommandFailed` if *folder* or a key in it
    cannot be used, and the errors of `open_store`.
    """
    from adapters_runtime.system import SystemClock
    from wfserver.definitions.packages import LazyEnvironments
    from wfserver.settings.names import CLOCK_FILE, plan_of_new_accounts

    data = Path(folder)
    clock = parts.get("clock") or SystemClock(data / CLOCK_FILE)
    with _needing("on_sqlite", "sqlite"):
        from adapters_store import open_store, storage_around
        from wfserver.data.folder import SEAL_KEY_FILE, make_data_folder, signing_key
        from wfserver.data.seal_keys import sealer_with

        make_data_folder(data)
        if "store" in parts:
            opened = await storage_around(parts["store"], data)
        else:
            sealer = sealer_with(data / SEAL_KEY_FILE)
            opened = await open_store(None, data, sealer=sealer, now=clock.service_now)
    defaults: dict[str, Any] = {
        **_defaults(clock),
        "store": opened.store,
        "counters": opened.counters,
        "files": opened.files,
        "offload": asyncio.to_thread,
        "policy": Policy(default_plan=plan_of_new_accounts(data)),
        "environments": LazyEnvironments(data / "packages", partial(_settings, data)),
    }
    try:
        if "signing_key" not in parts:
            defaults["signing_key"] = signing_key(data)
        yield Services(**{**defaults, **parts})
    finally:
        await defaults["wakeup"].close()
        await opened.counters.close()
        if "store" not in parts:
            await opened.store.close()


def _settings(data: Path) -> "Settings":
    with _needing("packages of steps", "server"):
        from wfserver.settings.record import settings_from
    return settings_from({}, data=str(data))


def _defaults(clock: Clock) -> dict[str, Any]:
    """The parts that need no store."""
    from adapters_runtime.cron import CronCalendar
    from adapters_runtime.engine.wakeups import Wakeups
    from adapters_runtime.expressions.templates import MiniJinjaTemplates
    from adapters_runtime.system import SystemIds, SystemTokens

    return {
        "clock": clock,
        "ids": SystemIds(),
        "tokens": SystemTokens(),
        "passwords": _LatePasswords(),
        "templates": MiniJinjaTemplates(),
        "wakeup": Wakeups(),
        "calendar": CronCalendar() if find_spec("cronsim") else None,
    }


@asynccontextmanager
async def on_postgres(
    url: str, folder: str | Path, **parts: Unpack[ServiceParts]
) -> AsyncIterator[Services]:
    """
    Services over the PostgreSQL database at *url*, which several processes and machines may share;
    closed on leaving. *folder*: the data folder with artifacts and keys, which all processes must
    share as well. *parts* replace the defaults; the caller closes *parts*.

    Raises `MissingExtra` without the extras `server` and `postgres`, `InvalidInput` for a URL of
    another store, and the errors of `open_system`.
    """
    from adapters_store import POSTGRES

    if not url.startswith(POSTGRES):
        raise InvalidInput("url", "must begin with postgresql://")
    if find_spec("asyncpg") is None:
        raise _missing("on_postgres", "postgres", "asyncpg")
    with _needing("on_postgres", "server"):
        from wfserver.compose import open_system
        from wfserver.settings.record import settings_from
    async with open_system(settings_from({}, data=str(folder), store=url), **parts) as system:
        yield system.services


def definition_from_yaml(text: str | bytes, source: str = "") -> Definition:
    """
    The definition in *text*, YAML or JSON, with its templates, schedules and schemas checked.

    *source*: the name of the text in errors. Raises `InvalidDefinition` with every mistake, its
    path and its line, and `MissingExtra` on a base installation.
    """
    with _needing("definition_from_yaml", "server"):
        from wfserver.definitions.read import checked
    written = text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass")
    return checked(written, source, runs_here=False)


class _LatePasswords:
    """Argon2, loaded at the first sign-in, because most programs have logins of their own."""

    async def hash(self, password: str) -> str:
        return await self._here.hash(password)

    async def verify(self, password: str, hashed: str | None) -> bool:
        return await self._here.verify(password, hashed)

    @property
    def _here(self) -> Passwords:
        if not hasattr(self, "_loaded"):
            with _needing("passwords", "server"):
                from adapters_runtime.passwords import Argon2Passwords
            self._loaded = Argon2Passwords()
        return self._loaded


@contextmanager
def _needing(what: str, extra: str) -> Iterator[None]:
    """Raises `MissingExtra` for an import that fails in the context, for want of *extra*."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise _missing(what, extra, error.name or "") from error


def _missing(what: str, extra: str, package: str) -> MissingExtra:
    from wfcore.installed import install

    return MissingExtra(what, extra, package, install(extra))
