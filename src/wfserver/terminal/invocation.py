"""One call of the command line: where the data is, how to answer, and the store to work on."""

import os
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from wfcore.usecases.services import Services
    from wfserver.compose import System
    from wfserver.settings import Settings

T = TypeVar("T")


class Session:
    """
    What the shared options said. `store` may hold a password: it is never shown.

    A plain class: this module is read for `wfcore --help`, which attrs would make slower.
    """

    def __init__(self) -> None:
        self.data: str | None = None
        self.store: str | None = None
        self.json = False
        self._environment: Mapping[str, str] | None = None

    def settings(self, **given: Any) -> "Settings":
        """
        The settings of options and environment, which is read once: its keys leave it then.

        Raises `InvalidInput`.
        """
        from wfserver.settings import settings_from, take_environment

        if self._environment is None:
            self._environment = take_environment()
        return settings_from(self._environment, data=self.data, store=self.store, **given)

    def work(self, job: "Callable[[Services], Awaitable[T]]", *, fresh: bool = False) -> T:
        """
        Run *job* on the store, beside a server or without one. *fresh*: the store need not exist
        yet.

        Raises what the job raises, `StoreRefused`, `StoreUnavailable`, and `InvalidInput` if there
        is no data folder or the store's URL is unknown.
        """

        async def on_services(system: "System") -> T:
            return await job(system.services)

        return self.work_in(on_services, fresh=fresh)

    def work_in(self, job: "Callable[[System], Awaitable[T]]", *, fresh: bool = False) -> T:
        """Like `work`, for a job that needs the whole system."""
        import asyncio

        from wfcore.errors import InvalidInput
        from wfserver.compose import open_system

        settings = self.settings()
        if not fresh and settings.store is None and not os.path.lexists(settings.data):
            raise InvalidInput("--data", f"there is no folder {settings.data}; wfcore up makes it")

        async def within() -> T:
            async with AsyncExitStack() as stack:
                try:
                    system = await stack.enter_async_context(open_system(settings))
                except ValueError as error:
                    raise InvalidInput("--store", str(error)) from None
                return await job(system)

        return asyncio.run(within())
