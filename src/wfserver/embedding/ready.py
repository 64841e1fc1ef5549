"""
Services with all their parts, for programs that embed the core: in memory, or in a folder.

`wfcore.in_memory`, `wfcore.on_sqlite` and `wfcore.on_postgres` are the functions of this module,
because only this package may put core and adapters together; the core names them in its stub and
imports none of them. An extra is imported at its first use.
"""

import os
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Unpack

from adapters_runtime.cron import CronCalendar
from adapters_runtime.engine.wakeups import Wakeups
from adapters_runtime.expressions.templates import MiniJinjaTemplates
from adapters_runtime.system import SystemClock, SystemIds, SystemTokens
from adapters_store import POSTGRES
from adapters_store.memory import MemoryCounters, MemoryStore
from wfcore.errors import InvalidInput, MissingExtra
from wfcore.installed import install
from wfcore.memory import MemoryFiles
from wfcore.model.workflow import Definition
from wfcore.ports.system import Passwords
from wfcore.usecases.services import ServiceParts, Services


def in_memory(**parts: Unpack[ServiceParts]) -> Services:
    """
    Services over a store in memory, which ends with this process. *parts* replace the defaults.

    A base installation has neither passwords nor a calendar, so it refuses definitions with
    schedules; the extra `server` has both.
    """
    clock = parts.get("clock") or SystemClock()
    defaults: dict[str, Any] = {
        "store": MemoryStore(now=clock.service_now),
        "counters": MemoryCounters(),
        "files": MemoryFiles(),
        "clock": clock,
        "ids": SystemIds(),
        "tokens": SystemTokens(),
        "passwords": _LatePasswords(),
        "templates": MiniJinjaTemplates(),
        "wakeup": Wakeups(),
        "signing_key": os.urandom(32),
        "calendar": CronCalendar() if find_spec("cronsim") else None,
    }
    return Services(**{**defaults, **parts})


@asynccontextmanager
async def on_sqlite(folder: str | Path, **parts: Unpack[ServiceParts]) -> AsyncIterator[Services]:
    """
    Services over SQLite in *folder*, which is made if it does not exist; closed on leaving.

    *folder* is a data folder of the server: `wfcore --data FOLDER` works on the same executions, at
    the same time if need be. *parts* replace the defaults; the caller closes *parts*. Settings are
    not read from the environment.

    Raises `MissingExtra` on a base installation, and the errors of `open_system`.
    """
    with _needing("on_sqlite"):
        from wfserver.compose import open_system
        from wfserver.settings.record import settings_from
    async with open_system(settings_from({}, data=str(folder)), **parts) as system:
        yield system.services


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
    if not url.startswith(POSTGRES):
        raise InvalidInput("url", "must begin with postgresql://")
    if find_spec("asyncpg") is None:
        raise MissingExtra("on_postgres", "postgres", "asyncpg", install("postgres"))
    with _needing("on_postgres"):
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
    with _needing("definition_from_yaml"):
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
            with _needing("passwords"):
                from adapters_runtime.passwords import Argon2Passwords
            self._loaded = Argon2Passwords()
        return self._loaded


@contextmanager
def _needing(what: str) -> Iterator[None]:
    """
    Raises `MissingExtra` for an import that fails in the context, for want of the extra `server`.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        raise MissingExtra(what, "server", error.name or "", install("server")) from error
