"""
The commit of units: one statement for the writes of many units.

A unit that only writes records is stored together with other waiting units, in one statement that
is a transaction of its own (`statements`). No unit waits for other units to join: units gather only
while all `WRITERS` connections are busy. If one unit of a batch has lost a race, the statement has
no effect, and each unit is carried out apart, so that only the losing unit fails. A unit that needs
several statements has a transaction to itself, on any connection.

The cancellation of a waiter changes nothing: its unit is written as a whole or not at all. If the
answer of the server is lost, every waiter of the batch gets `StoreUnavailable`; then either all
units of the batch were stored, or no unit was.
"""

import asyncio
import random
from collections import deque
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any

from attrs import define, field

from adapters_store.postgres.audit import link
from adapters_store.postgres.connection import CLASHES, Connection, Pool, lent
from adapters_store.postgres.statements import (
    Statements,
    UnitWrites,
    perform,
    together,
    write_rows,
)
from wfcore.errors import Stale, StoreClosed

WRITERS = 3
MOST = 64
"""The most units of one statement."""
PAUSE_S = 0.02
"""The longest pause before a unit that the server broke off is reported as stale."""

Waiting = tuple[UnitWrites, "asyncio.Future[None]"]


@define(eq=False)
class Committer:
    """
    Group commit over the connections of a pool, in the event loop that uses the pool. *stored* is
    called with the records of a unit, before its waiters learn of the commit.
    """

    pool: Pool
    statements: Statements
    stored: Callable[[Mapping[Any, Any]], None]
    _waiting: deque[Waiting] = field(factory=deque)
    _tasks: set["asyncio.Task[None]"] = field(factory=set)
    _busy: int = 0
    _closed: bool = False

    async def commit(self, unit: UnitWrites) -> None:
        """Store the writes of *unit*. Raises `Stale`, `StoreUnavailable`."""
        if self._closed:
            raise StoreClosed()
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        if unit.alone:
            self._begin(self._apart(unit, future))
        else:
            self._waiting.append((unit, future))
            if self._busy < WRITERS:
                self._busy += 1
                self._begin(self._work())
        await future

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _work(self) -> None:
        """Write the waiting units, until no unit waits."""
        try:
            while self._waiting:
                count = min(MOST, len(self._waiting))
                await self._write([self._waiting.popleft() for _ in range(count)])
        finally:
            self._busy -= 1

    async def _write(self, batch: Sequence[Waiting]) -> None:
        batch = [waiting for waiting in batch if not waiting[1].done()]
        if not batch:
            return
        try:
            async with lent(self.pool) as connection:
                rows = together(self.statements, (unit for unit, _ in batch))
                await write_rows(connection, self.statements, rows)
        except Stale as stale:
            if len(batch) > 1:
                for unit, future in batch:
                    await self._apart(unit, future)
            else:
                _resolve(batch, stale)
        except BaseException as error:  # nobody may wait for ever
            _resolve(batch, error)
            if not isinstance(error, Exception):
                raise
        else:
            for unit, _ in batch:
                self.stored(unit.kept)
            _resolve(batch, None)

    async def _apart(self, unit: UnitWrites, future: "asyncio.Future[None]") -> None:
        try:
            async with lent(self.pool) as connection:
                await self._carry_out(connection, unit)
        except BaseException as error:
            if isinstance(error.__cause__, CLASHES):  # at once they would meet again
                await asyncio.sleep(random.uniform(0, PAUSE_S))  # noqa: S311 - no secret
            _resolve([(unit, future)], error)
            if not isinstance(error, Exception):
                raise
        else:
            self.stored(unit.kept)
            _resolve([(unit, future)], None)

    async def _carry_out(self, connection: Connection, unit: UnitWrites) -> None:
        if not unit.alone:
            await write_rows(connection, self.statements, together(self.statements, [unit]))
            return
        async with connection.transaction():
            await perform(connection, self.statements, unit)
            if unit.audit:
                await link(connection, unit.audit)

    async def close(self) -> None:
        """Store every unit that was passed to `commit`."""
        self._closed = True
        while self._tasks:
            await asyncio.wait(set(self._tasks))


def _resolve(batch: Sequence[Waiting], error: BaseException | None) -> None:
    for _, future in batch:
        if future.done():
            continue
        if error is None:
            future.set_result(None)
        elif isinstance(error, asyncio.CancelledError):
            future.cancel()
        else:
            future.set_exception(error)
