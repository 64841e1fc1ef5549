"""
Stores, counters and artifact files, and the one call that opens them.

An installed package brings a store of its own by an entry point of the group `wfcore.stores`, whose
name is the scheme of its URLs:

    [project.entry-points."wfcore.stores"]
    myscheme = "my_package:open"

It is called as `await open(url, data_dir, sealer, now)` and gives a `Store`, which is used with
counters and files in *data_dir*, or an `Opened` with its own. Decision 107.
"""

import os
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, urlsplit

from attrs import frozen

from adapters_store.files import LocalFiles
from adapters_store.schema import Schema
from wfcore.errors import InvalidInput
from wfcore.installed import install
from wfcore.ports.counters import Counters
from wfcore.ports.dispatch import Hints
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
    "servers_of",
    "storage_around",
    "wall_clock",
]

SQLITE = "sqlite:///"
POSTGRES = ("postgresql://", "postgres://")
GROUP = "wfcore.stores"
CACHE_BYTES = 24 << 20
"""What decoded records may take up in memory, unless a setting says otherwise."""


@frozen
class Opened:
    """
    The store, counters and files, with a description of where they are. `store` and `counters` must
    be closed. `hints`: to the other processes on the store; None: they are found out by polling.
    `has_clock`: the store tells a time of its own, the same to all machines.
    """

    store: Store
    counters: Counters
    files: ArtifactFiles
    location: str
    hints: Hints | None = None
    has_clock: bool = False


def wall_clock() -> EpochMs:
    """The time of a store that was given no clock: it jumps when the machine's clock is set."""
    return EpochMs(time.time_ns() // 1_000_000)


OpenOwn = Callable[[str, Path, Sealer | None, Now], Awaitable[Opened | Store]]
"""What an entry point of the group `wfcore.stores` is: it opens the store at a URL."""


async def open_store(
    url: str | None,
    data_dir: Path,
    cache_bytes: int = CACHE_BYTES,
    sealer: Sealer | None = None,
    now: Now = wall_clock,
    direct: str | None = None,
    schema: Schema = Schema.NEWEST,
) -> Opened:
    """
    Open the store at *url* (None: SQLite in *data_dir*); counters and artifacts in *data_dir*.
    *sealer*: what encrypts contents in a file; None: they are stored in clear. *now* tells the
    store's time, see `Store.now`: `Clock.service_now` of a service. *direct*: where hints of other
    processes are listened to, past a pooler (None: at *url*). *schema*: whether it is made
    and migrated. A URL of another scheme is opened by
    the installed package that offers it.

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
        opened = await open_own(str(url), data_dir, sealer, now)
        return opened if isinstance(opened, Opened) else await _with_counters(opened, data_dir)
    if _is_postgres(url):
        return await _open_postgres(str(url), files, cache_bytes, sealer, direct, schema)
    # Apart: the memory store needs nothing but the core, and the drivers are the server extra's.
    from adapters_store.counters import SqliteCounters
    from adapters_store.sqlite.store import SqliteStore

    path = _path_of(url, data_dir)
    store = await SqliteStore.open(path, data_dir, cache_bytes, sealer, now, schema)
    try:
        counters = await SqliteCounters.open(data_dir / "counters.db")
    except BaseException:
        await store.close()
        raise
    return Opened(store, counters, files, str(path))


def _is_postgres(url: str | None) -> bool:
    return (url or "").startswith(POSTGRES)


def servers_of(url: str) -> list[tuple[str, int]]:
    """
    Hosts and ports to which a PostgreSQL URL leads, as its driver reads it; "" is this machine. Of
    a Unix socket none. Raises `ValueError`, which does not repeat it.
    """
    try:
        parts = urlsplit(url)
        said = dict(parse_qsl(parts.query))
        named = parts.netloc.rpartition("@")[2] or said.get("host") or os.environ.get("PGHOST", "")
        ports = (said.get("port") or os.environ.get("PGPORT") or "5432").split(",")
        hosts = [urlsplit(f"//{one}") for one in named.split(",")]
        each = zip(hosts, ports if len(ports) > 1 else ports * len(hosts), strict=True)
        found = [(host.hostname or "", host.port or int(port), host.path) for host, port in each]
    except ValueError:
        raise ValueError(
            "is not a valid URL; percent-encode / ? # @ : and [ ] in a user or password"
        ) from None
    return [(host, port) for host, port, socket in found if not socket]


async def _open_postgres(
    url: str,
    files: ArtifactFiles,
    cache_bytes: int,
    sealer: Sealer | None,
    direct: str | None,
    schema: Schema,
) -> Opened:
    """Store and counters in one database, whose clock tells the time of both."""
    try:
        from adapters_store.postgres.counters import PostgresCounters
        from adapters_store.postgres.hints import PostgresHints
        from adapters_store.postgres.store import PostgresStore
    except ModuleNotFoundError as error:
        if error.name != "asyncpg":
            raise
        raise ValueError(f"postgresql:// needs a driver: {install('postgres')}") from None
    store = await PostgresStore.open(url, cache_bytes, sealer, schema)
    try:
        counters = await PostgresCounters.open(url)
    except BaseException:
        await store.close()
        raise
    hints = PostgresHints(store.pool, direct or url)
    return Opened(store, counters, files, store.location, hints, has_clock=True)


async def storage_around(store: Store, data_dir: Path) -> Opened:
    """A store that is open already, with counters and artifacts in *data_dir*."""
    from adapters_store.counters import SqliteCounters

    counters = await SqliteCounters.open(data_dir / "counters.db")
    files = LocalFiles(data_dir / "artifacts")
    return Opened(store, counters, files, type(store).__name__)


async def _with_counters(store: Store, data_dir: Path) -> Opened:
    """`storage_around` a store that was opened here: if that fails, nobody else closes it."""
    try:
        return await storage_around(store, data_dir)
    except BaseException:
        await store.close()
        raise


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
    shown = f"{url.partition('://')[0]}://…" if "@" in url else url
    raise ValueError(f"{shown!r} names no store; use {ours}{own} or memory:")
