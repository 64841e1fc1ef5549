"""
Stores, counters and artifact files, and the one call that opens them.

An installed package brings a store of its own by an entry point of the group `wfcore.stores`, whose
name is the scheme of its URLs:

    [project.entry-points."wfcore.stores"]
    myscheme = "my_package:open"

It is called as `await open(url, data_dir, sealer, now)` and gives an `Opened`. Decision 107.
"""

import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING

from attrs import frozen

from adapters_store.files import LocalFiles
from wfcore.errors import InvalidInput
from wfcore.ports.counters import Counters
from wfcore.ports.files import ArtifactFiles
from wfcore.ports.store import Store
from wfcore.ports.system import Sealer
from wfcore.time import EpochMs, Now

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint, EntryPoints

__all__ = [
    "CACHE_BYTES",
    "POSTGRES",
    "OpenOwn",
    "Opened",
    "database_of",
    "open_store",
    "storage_around",
    "wall_clock",
]

SQLITE = "sqlite:///"
POSTGRES = ("postgresql://", "postgres://")
GROUP = "wfcore.stores"
CACHE_BYTES = 16 << 20
"""What decoded records may take up in memory, unless a setting says otherwise."""


@frozen
class Opened:
    """
    The store, counters and files, with a description of where they are. `store` and `counters` must
    be closed.
    """

    store: Store
    counters: Counters
    files: ArtifactFiles
    location: str


def wall_clock() -> EpochMs:
    """The time of a store that was given no clock: it jumps when the machine's clock is set."""
    return EpochMs(time.time_ns() // 1_000_000)


OpenOwn = Callable[[str, Path, Sealer | None, Now], Awaitable[Opened]]
"""What an entry point of the group `wfcore.stores` is: it opens the store at a URL."""


async def open_store(
    url: str | None,
    data_dir: Path,
    cache_bytes: int = CACHE_BYTES,
    sealer: Sealer | None = None,
    now: Now = wall_clock,
) -> Opened:
    """
    Open the store at *url* (None: SQLite in *data_dir*); counters and artifacts in *data_dir*.
    *sealer*: what encrypts contents in a file; None: they are stored in clear. *now* tells the
    store's time, see `Store.now`: `Clock.service_now` of a service. A URL of another scheme is
    opened by the installed package that offers it.

    Raises `ValueError` for a URL that names no store, `StoreRefused` for a file that is not
    ours to use, `StoreUnavailable`.
    """
    files = LocalFiles(data_dir / "artifacts")
    if url == "memory:":
        from adapters_store.memory import MemoryCounters, MemoryStore

        return Opened(MemoryStore(now=now), MemoryCounters(), files, "memory")
    own = _installed(url)
    if own is not None:
        open_own: OpenOwn = own.load()
        return await open_own(str(url), data_dir, sealer, now)
    if _is_postgres(url):
        return await _open_postgres(str(url), files, cache_bytes, sealer)
    # Apart: the memory store needs nothing but the core, and the drivers are the server extra's.
    from adapters_store.counters import SqliteCounters
    from adapters_store.sqlite.store import SqliteStore

    path = _path_of(url, data_dir)
    store = await SqliteStore.open(path, data_dir, cache_bytes, sealer, now)
    try:
        counters = await SqliteCounters.open(data_dir / "counters.db")
    except BaseException:
        await store.close()
        raise
    return Opened(store, counters, files, str(path))


def _is_postgres(url: str | None) -> bool:
    return (url or "").startswith(POSTGRES)


async def _open_postgres(
    url: str, files: ArtifactFiles, cache_bytes: int, sealer: Sealer | None
) -> Opened:
    """Store and counters in one database, whose clock tells the time of both."""
    try:
        from adapters_store.postgres.counters import PostgresCounters
        from adapters_store.postgres.store import PostgresStore
    except ModuleNotFoundError as error:
        if error.name != "asyncpg":
            raise
        raise ValueError("postgresql:// needs a driver: pip install 'wfcore[postgres]'") from None
    store = await PostgresStore.open(url, cache_bytes, sealer)
    try:
        counters = await PostgresCounters.open(url)
    except BaseException:
        await store.close()
        raise
    return Opened(store, counters, files, store.location)


async def storage_around(store: Store, data_dir: Path) -> Opened:
    """A store that is open already, with counters and artifacts in *data_dir*."""
    from adapters_store.counters import SqliteCounters

    counters = await SqliteCounters.open(data_dir / "counters.db")
    files = LocalFiles(data_dir / "artifacts")
    return Opened(store, counters, files, type(store).__name__)


def _installed(url: str | None) -> "EntryPoint | None":
    """
    What an installed package offers for the scheme of *url*; None if nothing, or if the scheme is
    ours.
    """
    scheme, there, _ = (url or "").partition("://")
    if not there or scheme == "sqlite" or _is_postgres(url):
        return None
    return next((one for one in _offered() if one.name == scheme), None)


def _offered() -> "EntryPoints":
    from importlib.metadata import entry_points  # slow to load, and for few

    return entry_points(group=GROUP)


def database_of(url: str | None, data_dir: Path) -> Path | None:
    """The file of the store at *url*; None if it has none. Raises `InvalidInput`."""
    try:
        has_none = url == "memory:" or _is_postgres(url) or _installed(url) is not None
        return None if has_none else _path_of(url, data_dir)
    except ValueError as error:
        raise InvalidInput("--store", str(error)) from None


def _path_of(url: str | None, data_dir: Path) -> Path:
    if url is None:
        return data_dir / "wfcore.db"
    if url.startswith(SQLITE) and len(url) > len(SQLITE):
        return Path(url.removeprefix(SQLITE))
    own = "".join(f", {one.name}://…" for one in _offered())
    ours = "sqlite:///PATH (sqlite:////PATH from the root), postgresql://…"
    raise ValueError(f"{url!r} names no store; use {ours}{own} or memory:")
