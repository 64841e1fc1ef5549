"""Items that come in one after the other, handed on in batches."""

import asyncio
from collections.abc import Callable
from typing import Generic, TypeVar

from attrs import define, field

T = TypeVar("T")

MOST = 64
"""Items of a batch."""
LONGEST_S = 0.01


@define(eq=False)
class Batcher(Generic[T]):
    """
    Collects what the turns of an event loop bring, so that much of it is done at once: a batch for
    a database costs much for itself and little for each item.

    Delivers once *quiet_turns* in a row brought nothing more, at the latest when there are `MOST`
    items or the first one has waited `LONGEST_S`. An idle turn takes some microseconds.
    """

    deliver: Callable[[list[T]], None]
    quiet_turns: int
    _items: list[T] = field(factory=list)
    _before: int = 0
    _quiet: int = 0
    _by: float = 0.0

    def add(self, item: T) -> None:
        """Wait with *item* for more. Called from the event loop."""
        if not self._items:
            loop = asyncio.get_running_loop()
            self._before = self._quiet = 0
            self._by = loop.time() + LONGEST_S
            loop.call_soon(self._turn, loop)
        self._items.append(item)

    def _turn(self, loop: asyncio.AbstractEventLoop) -> None:
        count = len(self._items)
        self._quiet = self._quiet + 1 if count == self._before else 0
        self._before = count
        if self._quiet < self.quiet_turns and count < MOST and loop.time() < self._by:
            loop.call_soon(self._turn, loop)
        else:
            self.flush()

    def flush(self) -> None:
        """Deliver what was collected, now."""
        if self._items:
            items, self._items = self._items, []
            self.deliver(items)
