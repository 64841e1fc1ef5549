"""
The fixtures of the store contract: the handles, the time and the records of a store under test.
"""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import pytest

from wfcore.model.event import AuditEntry, Event
from wfcore.ports.store import Store, Unit
from wfcore.testing.fakes import ManualClock

Elapse = Callable[[int], Awaitable[None]]
"""A function that lets so many milliseconds of a store's time pass."""

PATIENCE_S = 60
STANDS_STILL = (
    "the store's time does not pass: let `store.now()` tell the time of the database, or give the "
    "store `clock.service_now` of the fixture `clock`"
)


class Handles:
    """
    The fixtures of `StoreContract`. Subclasses provide `store`: an empty store, closed after the
    test. The other fixtures are optional and have defaults.
    """

    @pytest.fixture
    def clock(self) -> ManualClock:
        """
        A clock that starts at `builders.NOW`, for a `store` whose time can be set:
        `now=clock.service_now`. For any other store the suite waits a few milliseconds where time
        must pass.
        """
        return ManualClock()

    @pytest.fixture
    def another(self, store: Store) -> Store:
        """
        A second handle on the same medium with its own connections, as in another process. Returns
        the same handle for a medium that only one process may use.
        """
        return store

    @pytest.fixture
    def broken(self) -> Store:
        """A store whose medium has failed or disappeared after the store was opened."""
        pytest.skip("no fixture `broken`: a store whose database fails since it was opened")

    @pytest.fixture
    def elapse(self, store: Store, clock: ManualClock) -> Elapse:
        """A function that advances `clock`, or waits if the store has its own time."""
        return partial(pass_time, store, clock)


async def pass_time(store: Store, clock: ManualClock, ms: int) -> None:
    """Let *ms* of the store's time pass. Fails if the store's time stands still."""
    until = store.now() + ms
    clock.advance(ms)
    try:
        async with asyncio.timeout(PATIENCE_S):
            while store.now() < until:  # noqa: ASYNC110 - a time that nobody can move
                await asyncio.sleep(0.001)
    except TimeoutError:
        raise AssertionError(STANDS_STILL) from None


def collect(unit: Unit, *records: Any) -> None:
    """Put every record (append every log entry) into *unit*."""
    for record in records:
        if isinstance(record, Event | AuditEntry):
            unit.append(record)
        else:
            unit.put(record)


async def keep(store: Store, *records: Any) -> None:
    """Store every record in one unit."""
    async with store.unit() as unit:
        collect(unit, *records)
        await unit.commit()
