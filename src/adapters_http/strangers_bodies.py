"""
The memory of bodies that arrive before their sender is known. LM-12.

The credentials of webhooks, decisions and logins are checked after the body is complete, because a
signature covers the body. Until then any client may hold a body on each connection, of the largest
size and for the longest time.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from attrs import Factory, define

from wfcore.errors import NotReady
from wfcore.rules.limits import MIB

MOST, MOST_OF_ONE = 64 * MIB, 16 * MIB


@define(eq=False)
class StrangersBodies:
    """Counters of the bytes that have arrived, in total and by client."""

    most: int = MOST
    most_of_one: int = MOST_OF_ONE
    _total: int = 0
    _by_client: Counter[str] = Factory(Counter)

    @contextmanager
    def arriving(self, client: str) -> Iterator[Callable[[int], None]]:
        """
        A context with a function that counts the bytes of a body of *client*; they count until the
        end of the block. The function raises `NotReady` if there would be too many bytes.
        """
        mine = 0

        def took(size: int) -> None:
            nonlocal mine
            if self._total + size > self.most or self._by_client[client] + size > self.most_of_one:
                raise NotReady("Too many request bodies are incomplete; try again in a moment")
            mine += size
            self._total += size
            self._by_client[client] += size

        try:
            yield took
        finally:
            self._total -= mine
            self._by_client[client] -= mine
            if not self._by_client[client]:
                del self._by_client[client]
