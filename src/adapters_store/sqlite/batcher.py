"""Items that arrive one after the other, delivered in batches."""

import asyncio
from collections.abc import Callable
from typing import Generic, TypeVar

from attrs import define, field

T = TypeVar("T")

MOST = 64
"""The most items of a batch, before it is delivered."""
LONGEST_S = 0.01


@define(eq=False)
class Batcher(Generic[T]):
    """
    Collects the items that arrive in several turns of an event loop, so that many items are handled
    at once: for a database a batch costs much, and each item in it little.

    Delivers once *quiet_turns* turns in a row brought no item, and at the latest when there are
    `MOST` items or the first item has waited `LONGEST_S`. An idle turn takes some microseconds.
    """

    deliver: Callable[[list[T]], None]
    quiet_turns: int
    _items: list[T] = field(factory=list)
    _before: int = 0
    _quiet: int = 0
    _by: float = 0.0

    def add(self, item: T) -> None:
        """Hold *item* back until more items arrive. Called from the event loop."""
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
        """Deliver the collected items now."""
        if self._items:
            items, self._items = self._items, []
            self.deliver(items)
