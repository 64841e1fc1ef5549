"""One call of the command line: its shared options, and the store or the server to work on."""

import os
from collections import ChainMap
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from wfserver.terminal.perform import KEY, URL, Perform

if TYPE_CHECKING:
    from adapters_store.sql.schema import Schema
    from wfcore.model.workflow import Definition
    from wfcore.usecases.administration.operator import Operation, Operator
    from wfserver.compose import System
    from wfserver.settings.record import Settings

T = TypeVar("T")


class Invocation:
    """
    The shared options of one call. `store` may hold a password, and the key opens everything: both
    are never shown.

    A plain class, because `wfcore --help` imports this module and attrs would slow it down.
    """

    def __init__(self) -> None:
        self.data: str | None = None
        self.store: str | None = None
        self.url: str | None = None
        self.settings_file: str | None = None
        self.json = False
        self._environment: ChainMap[str, str] | None = None

    @property
    def environment(self) -> "ChainMap[str, str]":
        """
        The environment over the file of settings. It is read once, which removes the keys from the
        process's own environment.

        Raises `InvalidInput` for a file that cannot be read.
        """
        from wfserver.settings.record import take_environment

        if self._environment is None:
            self._environment = take_environment(self.settings_file)
        return self._environment

    @property
    def elsewhere(self) -> str | None:
        """
        The URL of the server to work with; None: commands work on the data folder of this host.
        """
        url = self.url or self.environment.get(URL)
        return url.rstrip("/") if url else None

    def settings(self, *, offline: bool = False, **given: Any) -> "Settings":
        """
        The settings of options and environment. *offline*: for a command that needs no service, so
        that the environment may name a server elsewhere.

        Raises `WrongSetting` with all settings that are wrong, and `UsageError` if a server
        elsewhere was named, because that server has settings of its own.
        """
        from wfcore.errors import InvalidInput
        from wfserver.settings.file import WrongSetting
        from wfserver.settings.record import settings_from

        if (self.url if offline else self.elsewhere) is not None:
            raise _needs_its_host()
        environment: Mapping[str, str] = self.environment
        wrong: dict[str, str] = {}
        while True:
            try:
                found = settings_from(environment, data=self.data, store=self.store, **given)
            except InvalidInput as error:
                again = error.field in wrong
                wrong.setdefault(error.field, error.fix)
                if error.field in environment and not again:
                    environment = {**environment, error.field: ""}  # as if it were not set
                    continue
            if not wrong:
                return found
            (field, fix), *others = wrong.items()
            raise WrongSetting(field, "\n".join([fix, *(": ".join(one) for one in others)]))

    def perform(self, operation: "Operation[Any]", /, **parameters: Any) -> Any:
        """
        The answer of one operation, as JSON: beside the store, or by the server elsewhere.

        Raises the errors of the operation, `StoreRefused`, `StoreUnavailable`, `InvalidInput` if
        there is no data folder or the store's URL has an unknown scheme, and `CommandFailed` for a
        refusal by the server.
        """
        with self.operations() as perform:
            return perform(operation, **parameters)

    @contextmanager
    def operations(self, *, fresh: bool = False) -> Iterator[Perform]:
        """
        A `Perform` for several operations; raises as `perform`. *fresh*: the store may be made.
        """
        if self.elsewhere is not None:
            from wfserver.terminal.http_client import administration

            yield administration(self.elsewhere, self.environment.get(KEY))
            return
        import asyncio

        from wfcore.errors import InvalidInput

        with asyncio.Runner() as runner:
            stack = AsyncExitStack()
            system = runner.run(self._entered(stack, fresh))
            at = _operator(system)

            def perform(operation: "Operation[Any]", /, **parameters: Any) -> Any:
                try:
                    return runner.run(_awaited(operation(at, **parameters)))
                except InvalidInput as error:
                    raise InvalidInput(_option(error.field), error.fix) from None

            try:
                yield perform
            finally:
                runner.run(stack.aclose())

    def work_in(
        self,
        job: "Callable[[System], Awaitable[T]]",
        *,
        fresh: bool = False,
        schema: "Schema | None" = None,
    ) -> T:
        """
        The result of *job*, run with the system of this host. *fresh*: the store may be made.
        *schema*: whether the store is made and migrated; by default only made. Raises as `perform`.
        """
        import asyncio

        async def within() -> T:
            async with AsyncExitStack() as stack:
                return await job(await self._entered(stack, fresh, schema))

        return asyncio.run(within())

    def _local(self, fresh: bool) -> "Settings":
        from wfcore.errors import InvalidInput

        settings = self.settings()
        if not fresh and settings.store is None and not os.path.lexists(settings.data):
            raise InvalidInput("--data", f"there is no folder {settings.data}; wfcore up makes it")
        return settings

    async def _entered(
        self, stack: AsyncExitStack, fresh: bool, schema: "Schema | None" = None
    ) -> "System":
        from adapters_store.sql.schema import Schema
        from wfserver.compose import open_system
        from wfserver.settings.file import WrongSetting

        opened = open_system(self._local(fresh), schema=schema or Schema.PRESENT)
        try:
            return await stack.enter_async_context(opened)
        except ValueError as error:
            raise WrongSetting("--store", str(error)) from None


async def _awaited(answer: Awaitable[T]) -> T:
    return await answer


def _operator(system: "System") -> "Operator":
    from wfcore.usecases.administration.operator import Operator
    from wfserver.data.pidfile import base_url, is_serving

    def read(text: bytes) -> "Definition":
        from wfserver.definitions.read import checked

        return checked(text, "", javascript=settings.steps.javascript)

    def warnings(definition: "Definition") -> Sequence[str]:
        from wfserver.doctor.providers import missing_from

        return missing_from(definition, settings.providers)

    settings = system.settings
    return Operator(
        system.services,
        read,
        base_url=base_url(settings),
        serving=is_serving(settings),
        warnings=warnings,
    )


def _option(parameter: str) -> str:
    """The name of *parameter* for people: the command's option of that name, if it has one."""
    import click

    ctx = click.get_current_context(silent=True)
    for one in ctx.command.params if ctx else ():
        if isinstance(one, click.Option) and one.name == parameter:
            return one.opts[-1]
    return parameter


def _needs_its_host() -> Exception:
    import click

    ctx = click.get_current_context(silent=True)
    path = ctx.command_path if ctx else "this command"
    return click.UsageError(
        f"{path} works on the data folder of its host: run it there, without --url and {URL}"
    )
