"""
The output lines of a running step, stored within a second, so that pages can follow them. EX-28.

The lines of a step that ends within that second are stored with its end, in the same unit.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from attrs import define, field

from wfcore.usecases.executions.step_jobs import MOST_LOGGED, NO_MORE

LIVE_S = 1.0
Lines = tuple[tuple[str, str], ...]
"""Pairs of (stream, text of whole lines), in order."""


@define(eq=False)
class LiveLines:
    """
    The lines that one attempt has written and that are not stored yet.

    At most `MOST_LOGGED` characters of an attempt are kept. *keep* stores lines; *spawn* runs a
    coroutine as a task of the execution; *turn* admits one unit of work at a time.
    """

    keep: Callable[[Lines], Awaitable[None]]
    spawn: Callable[[Coroutine[Any, Any, None]], "asyncio.Task[None]"]
    turn: asyncio.Lock
    stored: bool = False
    _lines: list[tuple[str, str]] = field(factory=list)
    _room: int = MOST_LOGGED
    _later: "asyncio.Task[None] | None" = None

    async def say(self, stream: str, text: str) -> None:
        """Add lines. Never waits."""
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
        """Store the present lines. The caller holds `turn`."""
        lines, self._lines = tuple(self._lines), []
        if lines:
            self.stored = True
            await self.keep(lines)

    def rest(self) -> Lines:
        """Removes and returns the lines that are not stored, to be stored with the step's end."""
        lines, self._lines = tuple(self._lines), []
        return lines

    def stop(self) -> None:
        """End the delayed storing."""
        if self._later is not None:
            self._later.cancel()
