"""
The packages of steps, installed according to the configuration of this user's pip and npm.

The installer is loaded at its first use, because most commands need no packages.
"""

import os
import tempfile
from collections.abc import Awaitable, Callable, Collection
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from attrs import define

from wfcore.model.workflow import Needs

if TYPE_CHECKING:
    from adapters_runtime.code.languages import Interpreters
    from adapters_runtime.code.packages.environments import PackageEnvironments
    from wfserver.settings.record import Settings


@define(eq=False, slots=False)
class LazyEnvironments:
    """An `Environments` of the core over *folder*; *settings* are read at the first use."""

    folder: Path
    settings: "Callable[[], Settings]"

    @cached_property
    def here(self) -> "PackageEnvironments":
        """The environments themselves, loaded at the first use."""
        from adapters_runtime.code.packages.environments import PackageEnvironments
        from wfserver.settings.isolation import step_isolation

        settings = self.settings()
        return PackageEnvironments(
            self.folder,
            os.environ,
            lambda: _interpreters(settings),
            builds=settings.build_packages,
            pruned=settings.prune_packages,
            isolation=step_isolation(settings, settings.port),
            work=settings.data / "steps",
        )

    async def prepare(self, needs: Needs) -> Needs:
        """See `Environments.prepare`."""
        return await self.here.prepare(needs)

    def find(self, needs: Needs) -> str | None:
        """See `Environments.find`."""
        return self.here.find(needs)

    async def restore(self, needs: Needs) -> str:
        """See `Environments.restore`."""
        return await self.here.restore(needs)

    async def prune(self, in_use: Callable[[], Awaitable[Collection[Needs]]]) -> int:
        """See `Environments.prune`. If no package was ever installed, nothing is loaded."""
        if not self.folder.exists():
            return 0
        return await self.here.prune(in_use)


def _interpreters(settings: "Settings") -> "Interpreters":
    """
    The interpreters for steps. If steps run as users of their own: only interpreters that every
    user may run.
    """
    from adapters_runtime.code.languages import Interpreters
    from adapters_runtime.sandbox.isolation.config import UID
    from adapters_runtime.sandbox.isolation_level import find_level_now

    public = False
    if os.geteuid() == 0:
        with tempfile.TemporaryDirectory() as folder:
            level = find_level_now(settings.steps.isolation, Path(folder, "steps"))
            public = level.name == UID
    return Interpreters(os.environ.get("PATH") or os.defpath, public)
