"""Stores, counters and artifact files, and the one call that opens them."""

import time
from pathlib import Path

from attrs import frozen

from adapters_store.files import LocalFiles
from wfcore.errors import InvalidInput
from wfcore.ports.counters import Counters
from wfcore.ports.files import ArtifactFiles
from wfcore.ports.store import Store
from wfcore.ports.system import Sealer
from wfcore.time import EpochMs, Now

__all__ = ["CACHE_BYTES", "Opened", "database_of", "open_store", "wall_clock"]

SQLITE = "sqlite:///"
CACHE_BYTES = 16 << 20
"""What decoded records may take up in memory, unless a setting says otherwise."""


@frozen
class Opened:
    """What keeps everything, and in words where. `store` and `counters` are to be closed."""

    store: Store
    counters: Counters
    files: ArtifactFiles
    location: str


def wall_clock() -> EpochMs:
    """The time of a store that nobody gives a clock: it jumps where the machine's is set."""
    return EpochMs(time.time_ns() // 1_000_000)


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
    store's time, see `Store.now`: `Clock.service_now` of a service.

    Raises `ValueError` for a URL that names no store, `StoreRefused` for a file that is not
    ours to use, `StoreUnavailable`.
    """
    files = LocalFiles(data_dir / "artifacts")
    if url == "memory:":
        from adapters_store.memory import MemoryCounters, MemoryStore

        return Opened(MemoryStore(now=now), MemoryCounters(), files, "memory")
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


def database_of(url: str | None, data_dir: Path) -> Path | None:
    """The file of the store at *url*; None: it has none. Raises `InvalidInput`."""
    try:
        return None if url == "memory:" else _path_of(url, data_dir)
    except ValueError as error:
        raise InvalidInput("--store", str(error)) from None


def _path_of(url: str | None, data_dir: Path) -> Path:
    if url is None:
        return data_dir / "wfcore.db"
    if url.startswith(SQLITE) and len(url) > len(SQLITE):
        return Path(url.removeprefix(SQLITE))
    raise ValueError(
        f"{url!r} names no store; use sqlite:///PATH (sqlite:////PATH from the root) or memory:"
    )
