"""
The one call that opens a store with its counters and artifact files.

An installed package offers a store of its own as an entry point of the group `wfcore.stores`. The
name of the entry point is the scheme of the store's URLs:

    [project.entry-points."wfcore.stores"]
    myscheme = "my_package:open"

The function is called as `await open(url, data_dir, sealer, now)`. It returns a `Store`, which is
used with counters and files in *data_dir*, or an `Opened` with counters and files of its own. A
dotted name in a setting would not do: any text in the environment would name code to run.
"""

from collections.abc import Awaitable, Callable
from pathlib import Path

from attrs import frozen

from adapters_store.defaults import CACHE_BYTES, wall_clock
from adapters_store.files import LocalFiles
from adapters_store.sql.schema import Schema
from adapters_store.urls import installed_for, is_postgres, path_of
from wfcore.installed import install
from wfcore.ports.counters import Counters
from wfcore.ports.files import ArtifactFiles
from wfcore.ports.hints import Hints
from wfcore.ports.store import Store
from wfcore.ports.system import Sealer
from wfcore.time import Now


@frozen
class Opened:
    """
    A store with its counters and artifact files. `store` and `counters` must be closed. `location`:
    a description of where the store is. `hints`: the hints from and to other processes on the
    store; without hints, changes by other processes are found by polling. `has_clock`: the store
    has a clock of its own, the same for all machines.
    """

    store: Store
    counters: Counters
    files: ArtifactFiles
    location: str
    hints: Hints | None = None
    has_clock: bool = False


OpenOwn = Callable[[str, Path, Sealer | None, Now], Awaitable[Opened | Store]]
"""
The type of an entry point of the group `wfcore.stores`: a function that opens the store at a URL.
"""


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
    Open the store at *url* (None: SQLite in *data_dir*) with its counters and its artifacts, which
    are in *data_dir*. The counters of a PostgreSQL store are in the same database, the counters of
    a store in memory are in memory; other counters are in *data_dir*. *sealer* encrypts contents in
    a file; without a sealer contents are stored in clear. *now* gives the time of the store, see
    `Store.now`; a service passes `Clock.service_now`. *direct*: the URL at which hints of other
    processes are received, past a pooler (None: *url*). *schema*: whether the schema is created and
    migrated. A URL of another scheme is opened by the installed package that offers that scheme.

    Raises `ValueError` for a URL that names no store, `StoreRefused` for a file that is not ours to
    use, `StoreUnavailable`.
    """
    files = LocalFiles(data_dir / "artifacts")
    if url == "memory:":
        from adapters_store.memory import MemoryCounters, MemoryStore

        return Opened(MemoryStore(now=now), MemoryCounters(), files, "memory")
    own = installed_for(url)
    if own is not None:
        open_own: OpenOwn = own.load()
        opened = await open_own(str(url), data_dir, sealer, now)
        return opened if isinstance(opened, Opened) else await _with_counters(opened, data_dir)
    if is_postgres(url):
        return await _open_postgres(str(url), files, cache_bytes, sealer, direct, schema)
    # Apart: the memory store needs nothing but the core, and the drivers are the server extra's.
    from adapters_store.sqlite.counters import SqliteCounters
    from adapters_store.sqlite.store import SqliteStore

    path = path_of(url, data_dir)
    store = await SqliteStore.open(path, data_dir, cache_bytes, sealer, now, schema)
    try:
        counters = await SqliteCounters.open(data_dir / "counters.db")
    except BaseException:
        await store.close()
        raise
    return Opened(store, counters, files, str(path))


async def _open_postgres(
    url: str,
    files: ArtifactFiles,
    cache_bytes: int,
    sealer: Sealer | None,
    direct: str | None,
    schema: Schema,
) -> Opened:
    """Open a store and counters in one database; the clock of the database is the clock of both."""
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
    """An open store with counters and artifacts in *data_dir*."""
    from adapters_store.sqlite.counters import SqliteCounters

    counters = await SqliteCounters.open(data_dir / "counters.db")
    files = LocalFiles(data_dir / "artifacts")
    return Opened(store, counters, files, type(store).__name__)


async def _with_counters(store: Store, data_dir: Path) -> Opened:
    """`storage_around` for *store*; closes *store* if that fails."""
    try:
        return await storage_around(store, data_dir)
    except BaseException:
        await store.close()
        raise
