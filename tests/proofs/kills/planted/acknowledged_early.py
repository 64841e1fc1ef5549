"""How to plant an answer that is given before what it promises is stored."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from types import ModuleType
from typing import Any

from attrs import evolve

from wfcore.errors import Stale
from wfcore.usecases.services import Services

LATE_S = 5  # longer than a server lives between two kills, however slow the machine is
_commits: set["asyncio.Task[None]"] = set()


class _LateUnit:
    """A unit whose commit returns at once and happens a little later."""

    def __init__(self, entered: Any) -> None:
        self._entered = entered

    def __getattr__(self, name: str) -> Any:
        return getattr(self._unit, name)

    async def __aenter__(self) -> "_LateUnit":
        self._unit = await self._entered.__aenter__()
        return self

    async def __aexit__(self, *_: object) -> None:
        """Nothing: the unit goes on."""

    async def commit(self) -> None:
        task = asyncio.create_task(self._commit())
        _commits.add(task)
        task.add_done_callback(_commits.discard)

    async def _commit(self) -> None:
        await asyncio.sleep(LATE_S)
        with suppress(Stale):
            await self._unit.commit()


class _LateStore:
    def __init__(self, store: Any) -> None:
        self._store = store

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def unit(self) -> _LateUnit:
        return _LateUnit(self._store.unit())


def acknowledge_early(module: ModuleType, name: str) -> None:
    """Let the use case *name* of *module* answer before its unit is stored."""
    use_case: Callable[..., Awaitable[Any]] = getattr(module, name)

    async def early(services: Services, *args: Any, **kwargs: Any) -> Any:
        late = evolve(services, store=_LateStore(services.store))
        return await use_case(late, *args, **kwargs)

    setattr(module, name, early)
