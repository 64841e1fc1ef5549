"""Environments: the packages that code steps import, installed once, used offline."""

from collections.abc import Awaitable, Callable, Collection
from typing import Protocol

from wfcore.errors import PackagesUnavailable
from wfcore.model.workflow import Needs


class Environments(Protocol):
    """
    One environment for each different `Needs`, kept between processes and restarts.

    An environment is there whole or not at all: what was cut off while it was being made is
    never found. Once there, it does not change; one that was damaged is made anew by `prepare`.
    """

    async def prepare(self, needs: Needs) -> Needs:
        """
        Install exactly what the lock of *needs* says, unless it is there and undamaged; without a
        lock, or with one that is for another platform, resolve the packages first. The same needs
        with the lock that holds. Of any number of callers at once, in any number of processes,
        one installs and all return when it is done.

        Raises `PackagesUnavailable` with the installer's words; nothing is left then, and the
        next call tries again.
        """

    def find(self, needs: Needs) -> str | None:
        """
        The path of what `prepare` made for needs with that lock; None where it is not, or no
        longer, there.
        """

    async def prune(self, in_use: Callable[[], Awaitable[Collection[Needs]]]) -> int:
        """
        Remove what has not been prepared or used for a while and is not among what *in_use*
        gives; how many went. It is asked only where something might go. What somebody
        prepares at the same time stays.
        """


class NoEnvironments:
    """An `Environments` for a service whose steps bring no packages."""

    async def prepare(self, needs: Needs) -> Needs:
        """Raises `PackagesUnavailable`."""
        raise PackagesUnavailable("packages cannot be installed here")

    def find(self, needs: Needs) -> str | None:
        """None."""
        return None

    async def prune(self, in_use: Callable[[], Awaitable[Collection[Needs]]]) -> int:
        """0."""
        return 0


NO_ENVIRONMENTS: Environments = NoEnvironments()
