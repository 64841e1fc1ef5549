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
from wfcore.ports.runtime import Environments
from wfcore.testing.contracts.awaited import Awaited


async def never_asked() -> Collection[Needs]:
    """Fail the test: nothing could have been removed."""
    raise AssertionError("asked what is in use, where nothing is idle")


class EnvironmentsContract(Awaited):
    """
    The promises of `wfcore.ports.runtime.Environments`.

    Subclasses provide a fixture `environments` without any environment, name two installable needs
    and one impossible need (the error names the first package of the impossible need), and
    implement `grow_old`.
    """

    GOOD: Needs
    OTHER: Needs
    IMPOSSIBLE: Needs

    def grow_old(self, environments: Environments) -> None:
        """Make all environments look unused for a year."""
        raise NotImplementedError(f"{type(self).__name__}.grow_old must age what is there")

    async def test_what_was_prepared_is_found(self, environments: Environments) -> None:
        """
        An environment is found once it is prepared, always at the same path. Other needs get
        another path.
        """
        assert environments.find(self.GOOD) is None
        good = await environments.prepare(self.GOOD)
        place = environments.find(good)
        assert place is not None
        assert await environments.prepare(good) == good
        assert environments.find(good) == place
        other = await environments.prepare(self.OTHER)
        assert environments.find(other) not in (None, place)

    async def test_the_lock_is_given_and_kept(self, environments: Environments) -> None:
        """
        Needs come back with a lock, equal needs with an equal lock. An existing lock is kept. PK-9.
        """
        good = await environments.prepare(self.GOOD)
        assert good.lock is not None
        assert (good.language, good.packages) == (self.GOOD.language, self.GOOD.packages)
        assert await environments.prepare(self.GOOD) == good
        assert await environments.prepare(good) == good

    async def test_many_may_prepare_the_same_at_once(self, environments: Environments) -> None:
        """All callers that prepare the same environment at once return when it is installed."""

        async def prepare() -> str | None:
            return environments.find(await environments.prepare(self.GOOD))

        places = await asyncio.gather(*(prepare() for _ in range(6)))
        assert len(set(places)) == 1
        assert places[0] is not None

    async def test_what_is_gone_is_restored(self, environments: Environments) -> None:
        """
        Any number of processes can restore a missing environment at once, from the lock alone. An
        existing environment is left unchanged. PK-5.
        """
        good = await environments.prepare(self.GOOD)
        place = environments.find(good)
        assert await environments.restore(good) == place
        await self.remove_all(environments)
        places = await asyncio.gather(*(environments.restore(good) for _ in range(6)))
        assert set(places) == {environments.find(good)}

    async def test_what_is_not_pinned_is_not_restored(self, environments: Environments) -> None:
        """An environment without a lock is not restored: a step resolves no versions. PK-9."""
        with pytest.raises(PackagesUnavailable):
            await environments.restore(self.GOOD)
        good = await environments.prepare(self.GOOD)
        assert await environments.restore(good) == environments.find(good)

    async def remove_all(self, environments: Environments) -> None:
        """Prune all environments, as if they had been unused for a year."""

        async def nothing() -> Collection[Needs]:
            return ()

        self.grow_old(environments)
        assert await environments.prune(nothing)

    async def test_what_cannot_be_installed_is_named(self, environments: Environments) -> None:
        """
        The error names the missing package, no environment is found, and the next call tries again.
        """
        name = self.IMPOSSIBLE.packages[0].partition("=")[0].partition("@")[0]
        for _ in range(2):
            with pytest.raises(PackagesUnavailable, match=name):
                await environments.prepare(self.IMPOSSIBLE)
            assert environments.find(self.IMPOSSIBLE) is None

    async def test_only_what_is_idle_and_unused_goes(self, environments: Environments) -> None:
        """An environment in use stays even if old; a recent environment stays even if unused."""
        good = await environments.prepare(self.GOOD)
        assert await environments.prune(never_asked) == 0
        self.grow_old(environments)
        await environments.prepare(self.OTHER)

        async def good_only() -> Collection[Needs]:
            return {good}

        async def nothing() -> Collection[Needs]:
            return ()

        assert await environments.prune(good_only) == 0
        assert environments.find(good) is not None  # which makes it young again
        self.grow_old(environments)
        other = await environments.prepare(self.OTHER)
        assert await environments.prune(nothing) == 1
        assert environments.find(good) is None
        assert environments.find(other) is not None
        await environments.prepare(good)
        assert environments.find(good) is not None
