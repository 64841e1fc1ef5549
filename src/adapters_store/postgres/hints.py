"""
Hints by LISTEN and NOTIFY, sent after the commit that they announce. Decision 172.

A transaction that notifies takes a lock of the whole database until it is flushed. So hints have
transactions of their own, which are small, do not wait for the disk, and come at most every few
milliseconds: the transactions that accept executions never wait for the lock.

Listening needs a session, which a pooler in transaction mode does not give: hence *direct*, a URL
past the pooler. Every few seconds a process sends a message to itself. If the message does not
arrive, the connection is half open, or a pooler swallows notifications: then the process connects
anew, and meanwhile all changes are found by polling.
"""

import asyncio
import logging
from collections.abc import Callable, Collection
from contextlib import suppress
from typing import Any
from uuid import uuid4

from attrs import define, field

from adapters_store.hints import hints_in, texts_of
from adapters_store.postgres.connection import (
    APPLICATION,
    CONNECT_S,
    Connection,
    DriverError,
    Pool,
    lent,
)
from adapters_store.postgres.greeting import connected
from wfcore.errors import Stale, StoreUnavailable
from wfcore.ports.hints import Hint
from wfcore.rules.backoff import Backoff

log = logging.getLogger("wfcore.hints")

CHANNEL = "wfcore"
NOTIFY = """SELECT set_config('synchronous_commit', 'off', true), pg_notify($1, message)
    FROM unnest($2::text[]) AS message"""
ECHO = "echo"
ECHO_S = 10.0
LATE_S = 5.0
UNHEARD = "hints of other servers are not heard; what they store is found by polling"
BACKOFF = Backoff(first=0.25, longest=10.0)
"""The pauses in seconds after a lost connection."""


class _Unheard(Exception):
    """Raised if the message of this process to itself did not arrive."""


@define(eq=False)
class PostgresHints:
    """Implements `wfcore.ports.hints.Hints`: sends over *pool*, listens at *direct*."""

    pool: Pool
    direct: str
    echo_s: float = ECHO_S
    late_s: float = LATE_S
    _name: str = field(factory=lambda: uuid4().hex[:12])
    echo: asyncio.Event = field(factory=asyncio.Event)
    """Set once the message of this process to itself has arrived."""

    async def tell(self, hints: Collection[Hint]) -> None:
        """Send *hints*; a hint that cannot be sent now is lost."""
        with suppress(StoreUnavailable, Stale):
            await self._send([f"{self._name} {message}" for message in texts_of(hints)])

    async def _send(self, messages: Collection[str]) -> None:
        async with lent(self.pool) as connection:
            await connection.fetch(NOTIFY, CHANNEL, list(messages))

    async def hear(self, heard: Callable[[Hint], None]) -> None:
        """Call *heard* for each hint of another process; a lost connection is replaced."""
        lost = 0
        while True:
            try:
                await self._listen(heard)
            except (_Unheard, StoreUnavailable, Stale, *DriverError) as error:
                if self.echo.is_set() or not lost:
                    log.warning(UNHEARD, extra={"error": type(error).__name__})
                    lost = 0
            lost += 1
            await asyncio.sleep(BACKOFF.wait(lost))

    async def _listen(self, heard: Callable[[Hint], None]) -> None:
        """Listen until the connection is lost. Raises the error that ended the connection."""
        self.echo.clear()
        about = {"application_name": f"{APPLICATION} hints"}
        connection: Connection = await connected(
            self.direct, timeout=CONNECT_S, server_settings=about
        )
        lost = asyncio.Event()

        def on_message(_: Any, __: int, ___: str, text: str) -> None:
            sender, _, rest = text.partition(" ")
            if sender == self._name:
                self.echo.set()
                return
            for hint in hints_in(rest):
                heard(hint)

        try:
            connection.add_termination_listener(lambda _: lost.set())
            await connection.add_listener(CHANNEL, on_message)
            while not lost.is_set():
                await self._require_echo()
                with suppress(TimeoutError):
                    async with asyncio.timeout(self.echo_s):
                        await lost.wait()
            raise _Unheard
        finally:
            connection.terminate()

    async def _require_echo(self) -> None:
        """Send a message to this process. Raises `_Unheard` if the message does not arrive soon."""
        self.echo.clear()
        await self._send([f"{self._name} {ECHO}"])
        try:
            async with asyncio.timeout(self.late_s):
                await self.echo.wait()
        except TimeoutError:
            raise _Unheard from None
