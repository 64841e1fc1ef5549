"""
The package environments of this machine, a folder for each set of packages. PK-3 to PK-6, PK-9,
PK-12.

The key of an environment is a digest of its lock, the interpreter's version and the platform. So
after an upgrade of the interpreter the packages are installed again, when the workflow is applied
or one of its steps runs. Decision 49.
"""

import asyncio
import hashlib
import json
import os
import platform
import secrets
import sysconfig
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path

from attrs import evolve, frozen

from adapters_runtime.code.languages import Interpreters
from adapters_runtime.code.packages.cache import Entry, FolderCache
from adapters_runtime.code.packages.installers import Installer, Npm, Pip
from adapters_runtime.code.packages.sandbox import Sandbox
from adapters_runtime.sandbox.isolation_level import Isolation
from adapters_runtime.sandbox.shortage import is_shortage
from wfcore.errors import PackagesUnavailable
from wfcore.model.workflow import Language, Needs
from wfcore.ports.runtime import LanguageState

KEEP_UNUSED_S = 7 * 86_400.0
SPARE_S = 3_600.0
MOST_UNUSED = 4 << 30
AT_ONCE = 4
"""The most installers at the same time: a new server may lack many environments."""
_FORMAT = 2


@frozen
class DiskUsage:
    """The number of environments, and their total size in bytes."""

    count: int
    bytes: int


@frozen
class InstallerState:
    """
    The name and version of an installer, or None if it is not installed. `cure`: how to install it.
    """

    version: str | None
    cure: str


class PackageEnvironments:
    """
    The `wfcore.ports.runtime.Environments` of pip and npm, below *root*.

    *environment*: the operator's environment, with the configuration of the installers.
    *interpreters* returns the interpreters of steps, which may take a moment. *builds*: see `Pip`.
    *pruned*: whether `prune` removes anything. *isolation*: the operator's settings for code steps,
    which apply to installers, too. *work*: the folder in which installers run.
    """

    def __init__(
        self,
        root: Path,
        environment: Mapping[str, str],
        interpreters: Callable[[], Interpreters] | None = None,
        *,
        builds: bool = False,
        pruned: bool = True,
        installers: Mapping[Language, Installer] | None = None,
        isolation: Isolation = Isolation(),  # noqa: B008 - frozen
        work: Path | None = None,
    ) -> None:
        self.root = root
        self._cache = FolderCache(root)
        path = environment.get("PATH") or os.defpath
        self._make_interpreters = interpreters or (lambda: Interpreters(path))
        self._pruned = pruned
        self._places = asyncio.Semaphore(AT_ONCE)
        self._sandbox = Sandbox(isolation, work or root / ".steps")
        self._installers: Mapping[Language, Installer] = installers or {
            Language.PYTHON: Pip(environment, builds),
            Language.JAVASCRIPT: Npm(environment),
        }

    async def prepare(self, needs: Needs) -> Needs:
        """Install the packages of *needs* if they are missing; returns *needs* with a lock."""
        with _as_unavailable():
            state = await self._available(needs.language)
            needs = await self._locked(needs, state)
            await self._make(needs, state)
        return needs

    async def restore(self, needs: Needs) -> str:
        """The folder of the modules, made from the lock if it does not exist."""
        with _as_unavailable(but=is_shortage):
            state = await self._available(needs.language)
            if needs.lock is None:
                raise PackagesUnavailable("they are not pinned; apply the workflow again")
            if not self._installers[needs.language].fits(needs.lock, state):
                raise PackagesUnavailable(
                    "they are pinned for another platform than this server's; run the step where "
                    "they fit, or apply the workflow here"
                )
            await self._make(needs, state)
        found = await asyncio.to_thread(self.find, needs)
        if found is None:
            raise PackagesUnavailable("they were removed while they were installed")
        return found

    async def _available(self, language: Language) -> LanguageState:
        state = await asyncio.to_thread(self._state, language)
        if not state.available:
            raise PackagesUnavailable(f"{language} cannot run here: {state.cure}")
        return state

    async def _make(self, needs: Needs, state: LanguageState) -> None:
        async with self._cache.making(_key(needs, state)) as fresh:
            if fresh is not None:
                async with self._places:
                    await self._fill(fresh, needs, needs.lock or "", state)

    async def _locked(self, needs: Needs, state: LanguageState) -> Needs:
        """
        *needs* with a lock: its own lock, the lock of an existing environment, or a new lock. PK-4.
        """
        installer = self._installers[needs.language]
        if needs.lock is not None and installer.fits(needs.lock, state):
            return needs
        for entry in reversed(await asyncio.to_thread(self._cache.entries)):
            lock, known = entry.about.get("lock"), entry.about.get("packages")
            same = (entry.about.get("language"), known) == (needs.language, [*needs.packages])
            if same and lock is not None and installer.fits(lock, state):
                return evolve(needs, lock=lock)
        return evolve(needs, lock=await installer.lock(self._sandbox, needs.packages, state))

    async def _fill(self, fresh: Path, needs: Needs, lock: str, state: LanguageState) -> None:
        installer = self._installers[needs.language]
        inner = fresh / secrets.token_hex(4)  # a path that no step has seen before
        await installer.install(self._sandbox, inner, needs.packages, lock, state)
        about = {
            "modules": f"{inner.name}/{installer.modules}",
            "language": needs.language.value,
            "packages": needs.packages,
            "interpreter": state.version,
            "installed": installer.installed(inner),
            "lock": lock,
        }
        await asyncio.to_thread(self._cache.complete, fresh, about)

    @cached_property
    def _interpreters(self) -> Interpreters:
        return self._make_interpreters()

    def _state(self, language: Language) -> LanguageState:
        return self._interpreters.find(language)

    def find(self, needs: Needs) -> str | None:
        """The folder of the modules, or None. May start the interpreter once, for its version."""
        state = self._state(needs.language)
        entry = self._cache.find(_key(needs, state)) if state.available else None
        return str(self._cache.path(entry.key) / entry.about["modules"]) if entry else None

    async def prune(self, in_use: Callable[[], Awaitable[Collection[Needs]]]) -> int:
        """
        Remove environments that no definition needs and that no step has used for a week, or sooner
        if the unused environments together exceed the size limit; returns how many were removed.
        """
        if not self._pruned:
            return 0
        await asyncio.to_thread(self._cache.remove_leftovers)
        idle = [one for one in await asyncio.to_thread(self._cache.entries) if one.idle_s > SPARE_S]
        if not idle or not _may_go(idle):
            return 0
        kept = await asyncio.to_thread(self._keys, await in_use())
        unused = [one for one in idle if kept is not None and one.key not in kept]
        return sum([await self._cache.remove(one.key, SPARE_S) for one in _may_go(unused)])

    def _keys(self, in_use: Collection[Needs]) -> set[str] | None:
        """The keys in use, or None if a missing interpreter makes them unknown."""
        states = {needs: self._state(needs.language) for needs in in_use}
        if not all(state.available for state in states.values()):
            return None
        return {_key(needs, state) for needs, state in states.items()}

    def usage(self) -> DiskUsage:
        """The number and size of all environments."""
        found = self._cache.entries()
        return DiskUsage(len(found), sum(one.bytes for one in found))

    async def tools(self) -> Sequence[InstallerState]:
        """The state of each installer, installed or not."""
        found = []
        for language, installer in self._installers.items():
            state = await asyncio.to_thread(self._state, language)
            version = await installer.version(state) if state.available else None
            found.append(InstallerState(version, installer.cure))
        return found


@contextmanager
def _as_unavailable(but: Callable[[int | None], bool] = lambda number: False) -> Iterator[None]:
    """
    Raise `PackagesUnavailable` for every error, except for errors of the system that *but* accepts.
    """
    try:
        yield
    except OSError as trouble:
        if but(trouble.errno):
            raise
        where = f"{trouble.filename}: " if trouble.filename else ""
        raise PackagesUnavailable(f"{where}{trouble.strerror or trouble}") from None
    except (ValueError, RecursionError) as mistake:
        raise PackagesUnavailable(f"what was resolved cannot be read: {mistake}") from None


def _may_go(idle: Collection[Entry]) -> list[Entry]:
    """The entries of *idle* over the time or size limit, longest idle first."""
    going, room = [], sum(one.bytes for one in idle)
    for one in idle:
        if one.idle_s > KEEP_UNUSED_S or room > MOST_UNUSED:
            going.append(one)
            room -= one.bytes
    return going


def _key(needs: Needs, state: LanguageState) -> str:
    machine = (sysconfig.get_platform(), *platform.libc_ver())
    whole = (_FORMAT, needs.language.value, needs.packages, state.version, machine, needs.lock)
    return hashlib.sha256(json.dumps(whole).encode()).hexdigest()[:32]
