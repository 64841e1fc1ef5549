"""Stores, counters and artifact files."""

from adapters_store.defaults import CACHE_BYTES, wall_clock
from adapters_store.opening import Opened, OpenOwn, open_store, storage_around
from adapters_store.urls import POSTGRES, database_of, servers_of

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
