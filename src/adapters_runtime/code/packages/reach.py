"""Packages for steps that run as another user, who may not pass through the data folder."""

import asyncio
import shutil
from pathlib import Path

from adapters_runtime.sandbox.client import uninterrupted


class Reach:
    """
    Where steps find installed packages: in place, or copied at first use to the folder *copies*
    that every user can reach.
    """

    def __init__(self, copies: Path | None = None) -> None:
        self._copies = copies
        self._made: dict[str, asyncio.Future[str]] = {}

    async def path(self, modules: str) -> str:
        """What a step is told instead of *modules*. Raises `OSError`."""
        if self._copies is None:
            return modules
        if modules not in self._made:
            copying = asyncio.to_thread(_copy, modules, self._copies / str(len(self._made)))
            self._made[modules] = asyncio.ensure_future(copying)
        try:
            return await uninterrupted(self._made[modules])
        except OSError:
            self._made.pop(modules, None)
            raise


def _copy(modules: str, place: Path) -> str:
    place.parent.mkdir(0o711, exist_ok=True)
    place.parent.chmod(0o711)
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(0o711)
    place.chmod(0o711)
    copy = place / Path(modules).name
    shutil.copytree(modules, copy, symlinks=True)
    return str(copy)
