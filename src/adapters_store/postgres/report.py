"""
The report of `doctor` on the server: its version, the pooler in between, and wrong settings.

A pooler gives its clients process ids of its own. In session mode a client keeps one connection to
the server; in transaction mode a client gets any free connection, so the client either reaches
another server process with its next question, or finds that another client has its previous
process. Poolers choose the connection that was used last, or first, or any connection: several
questions in a row, and another client in a transaction, reveal each kind. Whether hints arrive is
found by a trial.
"""

import asyncio
from collections.abc import Callable
from enum import StrEnum

from attrs import frozen

from adapters_store.postgres.connection import Connection, Pool, lent, rows_of
from adapters_store.postgres.hints import PostgresHints
from adapters_store.postgres.migrate import migrations
from adapters_store.postgres.store import PostgresStore
from wfcore.time import EpochMs

OLDEST = 150_000
"""The oldest version of the server with which the tests have run."""
FAR_MS = 2_000
"""
The most milliseconds between the clocks of this machine and of the database; beyond that, people
see wrong times.
"""
HEARD_S = 10.0
"""The seconds after which a hint counts as lost."""
QUESTIONS = 4

ABOUT = """SELECT current_setting('server_version'), current_setting('server_version_num')::bigint,
    current_setting('synchronous_commit'), current_setting('fsync')"""
PROCESS = "SELECT pg_backend_pid()"


class Between(StrEnum):
    """The kinds of connection between this process and the server."""

    NOTHING = "connected directly"
    SESSION = "behind a pooler in session mode"
    TRANSACTION = "behind a pooler in transaction mode"


@frozen
class Report:
    """A sentence about the server, and the advice; None if no advice is needed."""

    detail: str
    cure: str | None


async def report(
    store: PostgresStore, wall: Callable[[], EpochMs], url: str, direct: str | None = None
) -> Report:
    """
    The report on *store*. *wall*: the clock of this machine. *url*: the URL of the store; *direct*:
    the URL at which hints are received, if it differs. Raises `StoreUnavailable`.
    """
    await store.ping()
    ahead = wall() - store.now()
    async with lent(store.pool) as connection:
        version, number, sync, fsync = (await rows_of(connection, ABOUT))[0]
    between = await between_here_and(store.pool)
    heard = await _is_heard(PostgresHints(store.pool, direct or url))
    detail = (
        f"PostgreSQL {version}, schema {migrations()[-1][0]}, writable; {between}; "
        f"hints are {'heard' if heard else 'not heard'}{' past it' if direct else ''}; "
        f"this machine's clock is {ahead / 1_000:+z.1f} s from its"
    )
    cure = _cure(number, sync, fsync, ahead)
    if cure is None and (not heard or (between is Between.TRANSACTION and direct is None)):
        cure = _unheard(between, direct)
    return Report(detail, cure)


def _cure(number: int, sync: str, fsync: str, ahead: int) -> str | None:
    """The advice for the gravest fault; None without a fault."""
    if fsync != "on" or sync == "off":
        return "set fsync and synchronous_commit to on: an answer now may be lost in a power cut"
    if number < OLDEST:
        return f"use PostgreSQL {OLDEST // 10_000} or newer: older ones are not tested"
    if abs(ahead) > FAR_MS:
        return "let an NTP service keep both clocks: work goes by its time, calendars by yours"
    return None


def _unheard(between: Between, direct: str | None) -> str:
    late = "what other servers store is found late"
    if direct is not None:
        return f"let WFCORE_STORE_DIRECT lead to the same database, past every pooler; {late}"
    if between is Between.NOTHING:
        return f"see whether the server lets you LISTEN and NOTIFY; {late}"
    return f"set WFCORE_STORE_DIRECT to a URL past the pooler; {late}"


async def between_here_and(pool: Pool) -> Between:
    """The kind of connection between *pool* and its server. Raises `StoreUnavailable`."""
    async with lent(pool) as one, lent(pool) as other:
        processes = {await _process(one) for _ in range(QUESTIONS)}
        async with other.transaction():
            held = await _process(other)
            if held not in processes:  # else there may be no other connection to the server
                processes.add(await _process(one))
        processes.add(await _process(one))
        if len(processes) > 1 or held in processes:
            return Between.TRANSACTION
        return Between.NOTHING if one.get_server_pid() in processes else Between.SESSION


async def _process(connection: Connection) -> int:
    """The server process that answers *connection* now."""
    return int(await connection.fetchval(PROCESS))


async def _is_heard(hints: PostgresHints) -> bool:
    """Whether a hint arrives in one trial."""
    listening = asyncio.create_task(hints.hear(lambda _: None))
    try:
        async with asyncio.timeout(HEARD_S):
            await hints.echo.wait()
    except TimeoutError:
        return False
    finally:
        listening.cancel()
        await asyncio.wait((listening,))
    return True
