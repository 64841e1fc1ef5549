"""Retention beside starts: how fast what has ended long ago goes, and what starts notice of it."""

import sqlite3
import time
from contextlib import closing
from pathlib import Path

from attrs import frozen

from bench import http
from bench.fill import DATABASE, fill
from bench.load import Load, load
from bench.servers import Server

CLIENTS = 8
SHORT, LONG = 20_000, 500_000
MOST_S = 900
MOST_SHRINKING_S = 120
KEPT = 6 << 20
"""Bytes of unused room that stay: 4 MB, up to a piece of 1 MB, and what just went."""
AGE_MS = 200 * 86_400_000


@frozen
class Retained:
    """
    Executions deleted a second, the 99th percentiles of starts in ms, the file's size, and how many
    seconds beside the load it took to give room back.
    """

    per_second: float
    usual_ms: float
    beside_ms: float
    bytes_before: int
    bytes_after: int
    shrinking_s: float


def filled(data: Path, seeded: http.Seeded, wanted: int) -> None:
    """Let an execution end, and make *wanted* copies of it, 200 days older."""
    with http.whole(data) as server:
        http.executions(server, seeded, "bash-1", 1, 0.2)
    with closing(sqlite3.connect(data / DATABASE)) as connection:
        sql = "SELECT id FROM executions WHERE completed_at IS NOT NULL LIMIT 1"
        (model,) = connection.execute(sql).fetchone()
    fill(data, [model], wanted, round(time.time() * 1_000) - AGE_MS)


def measured(data: Path, seeded: http.Seeded, wanted: int, seconds: float) -> Retained:
    """The *wanted* old executions go while clients start others; first without, to compare."""
    database = data / DATABASE
    before = database.stat().st_size
    with http.whole(data, WFCORE_KEEP_EXECUTIONS="365d") as server:
        usual = _starts(server, seeded, seconds)
    with http.whole(data) as server:
        began, latencies = time.perf_counter(), list[float]()
        while there := _left(database):
            latencies += _starts(server, seeded, seconds).latencies
            if time.perf_counter() - began > MOST_S:
                break
        took = time.perf_counter() - began
        while _unused(database) > KEPT and time.perf_counter() - began - took < MOST_SHRINKING_S:
            latencies += _starts(server, seeded, seconds / 4).latencies
        shrinking_s = time.perf_counter() - began - took
        after = database.stat().st_size
    latencies.sort()
    return Retained(
        (wanted - there) / took,
        usual.percentile(0.99),
        latencies[int(len(latencies) * 0.99)],
        before,
        after,
        shrinking_s,
    )


def _left(database: Path) -> int:
    """Executions that are stored and over their time."""
    with closing(sqlite3.connect(database)) as connection:
        sql = "SELECT count(*) FROM executions WHERE completed_at < ?"
        before = time.time() * 1_000 - AGE_MS / 2
        return int(connection.execute(sql, (before,)).fetchone()[0])


def _unused(database: Path) -> int:
    """Bytes of the file that hold nothing, in the database or behind its end."""
    with closing(sqlite3.connect(database)) as connection:
        size, pages, free = (
            connection.execute(f"PRAGMA {name}").fetchone()[0]
            for name in ("page_size", "page_count", "freelist_count")
        )
        return max(free * size, database.stat().st_size - (pages - free) * size)


def _starts(server: Server, seeded: http.Seeded, seconds: float) -> Load:
    return load(server.port, CLIENTS, seconds, http.starts(seeded))
