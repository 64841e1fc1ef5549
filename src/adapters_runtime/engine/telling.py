"""
What a step writes while it runs, kept a second later, so that pages can follow it. EX-28.

A step that ends within that second has its lines stored with its end: it costs no further unit.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from attrs import define, field

from wfcore.usecases.executions.step_jobs import MOST_LOGGED, NO_MORE

LIVE_S = 1.0
Lines = tuple[tuple[str, str], ...]
"""Texts of whole lines, each with its stream, in order."""


@define(eq=False)
class Told:
    """
    What one attempt has written and nobody has stored yet, at most `MOST_LOGGED` characters of an
    attempt. *keep* stores lines; *spawn* runs something as a task of the execution; *turn* lets one
    unit of work at a time pass.
    """

    keep: Callable[[Lines], Awaitable[None]]
    spawn: Callable[[Coroutine[Any, Any, None]], "asyncio.Task[None]"]
    turn: asyncio.Lock
    stored: bool = False
    _lines: list[tuple[str, str]] = field(factory=list)
    _room: int = MOST_LOGGED
    _later: "asyncio.Task[None] | None" = None

    async def say(self, stream: str, text: str) -> None:
        """Lines as they come. Never waits."""
        if self._room < 0:
            return
        if len(text) > self._room:
            text = text[: self._room] + NO_MORE
            self._room = -1
        else:
            self._room -= len(text)
        if self._lines and self._lines[-1][0] == stream:
            text = self._lines.pop()[1] + text
        self._lines.append((stream, text))
        if self._later is None or self._later.done():
            self._later = self.spawn(self._keep_soon())

    async def _keep_soon(self) -> None:
        while self._lines:
            await asyncio.sleep(LIVE_S)
            async with self.turn:
                await self.store()

    async def store(self) -> None:
        """Store what is there, in the turn of the caller."""
        lines, self._lines = tuple(self._lines), []
        if lines:
            self.stored = True
            await self.keep(lines)

    def rest(self) -> Lines:
        """What came with the end, where nothing was stored before it."""
        lines, self._lines = tuple(self._lines), []
        return lines

    def stop(self) -> None:
        """Store nothing more by itself."""
        if self._later is not None:
            self._later.cancel()
