"""The way from a port to the memory behind it: where others may run, and things go wrong."""

from collections.abc import Callable
from typing import Protocol, TypeVar

R = TypeVar("R")


class Gate(Protocol):
    """Lets one thing through after the other."""

    async def __call__(
        self, name: str, about: object, apply: Callable[[], R], *, writes: bool = False
    ) -> R:
        """
        Carry out *apply* in one step that nothing interrupts, when its turn comes; its result.

        *name* and *about* say in words what it is; *writes*: something lasting changes.
        """
