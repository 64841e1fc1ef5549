"""
The contract of environments: a test class to inherit from. PK-3 to PK-6.

    class TestMyEnvironments(EnvironmentsContract):
        GOOD, OTHER, IMPOSSIBLE = …

        @pytest.fixture
        def environments(self): …

        def grow_old(self, environments): …
"""

import asyncio
from collections.abc import Collection

import pytest

from wfcore.errors import PackagesUnavailable
from wfcore.model.workflow import Needs
from wfcore.ports.environments import Environments
from wfcore.testing.contracts.awaited import Awaited


async def never_asked() -> Collection[Needs]:
    """Fails: there is nothing that might go."""
    raise AssertionError("asked what is in use, where nothing is idle")


class EnvironmentsContract(Awaited):
    """
    Subclasses give a fixture `environments` without any environment, name two needs that can be
    installed, and one that cannot (its first package is named in the failure), and say how
    what is there `grow_old`s.
    """

    GOOD: Needs
    OTHER: Needs
    IMPOSSIBLE: Needs

    def grow_old(self, environments: Environments) -> None:
        """Let everything that is there look as if nobody had used it for a year."""
        raise NotImplementedError(f"{type(self).__name__}.grow_old must age what is there")

    async def test_what_was_prepared_is_found(self, environments: Environments) -> None:
        """Before there is nothing, afterwards always the same place, another for other needs."""
        assert environments.find(self.GOOD) is None
        await environments.prepare(self.GOOD)
        place = environments.find(self.GOOD)
        assert place is not None
        await environments.prepare(self.GOOD)
        assert environments.find(self.GOOD) == place
        assert environments.find(self.OTHER) is None
        await environments.prepare(self.OTHER)
        assert environments.find(self.OTHER) not in (None, place)

    async def test_many_may_prepare_the_same_at_once(self, environments: Environments) -> None:
        """All return when it is there."""

        async def prepare() -> str | None:
            await environments.prepare(self.GOOD)
            return environments.find(self.GOOD)

        places = await asyncio.gather(*(prepare() for _ in range(6)))
        assert len(set(places)) == 1
        assert places[0] is not None

    async def test_what_cannot_be_installed_is_named(self, environments: Environments) -> None:
        """The words name what is missing, nothing is found, and the next call tries again."""
        name = self.IMPOSSIBLE.packages[0].partition("=")[0].partition("@")[0]
        for _ in range(2):
            with pytest.raises(PackagesUnavailable, match=name):
                await environments.prepare(self.IMPOSSIBLE)
            assert environments.find(self.IMPOSSIBLE) is None

    async def test_only_what_is_idle_and_unused_goes(self, environments: Environments) -> None:
        """What is in use stays however old, and what is fresh stays though nobody needs it."""
        await environments.prepare(self.GOOD)
        assert await environments.prune(never_asked) == 0
        self.grow_old(environments)
        await environments.prepare(self.OTHER)

        async def good_only() -> Collection[Needs]:
            return {self.GOOD}

        async def nothing() -> Collection[Needs]:
            return ()

        assert await environments.prune(good_only) == 0
        assert environments.find(self.GOOD) is not None  # which makes it young again
        self.grow_old(environments)
        await environments.prepare(self.OTHER)
        assert await environments.prune(nothing) == 1
        assert environments.find(self.GOOD) is None
        assert environments.find(self.OTHER) is not None
        await environments.prepare(self.GOOD)
        assert environments.find(self.GOOD) is not None
