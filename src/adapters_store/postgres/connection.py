"""
The only module that knows the driver: connections, errors of the driver, and the form of
statements.

Nothing relies on the state of a session (advisory locks belong to transactions, and there is no
`SET`), so the store works behind a pooler that changes the server connection between transactions.
"""

import asyncio
import re
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import cache
from itertools import count
from typing import Any, TypeAlias

import asyncpg

from adapters_store.postgres.greeting import ClearTextRefused, connected
from wfcore.errors import Stale, StoreClosed, StoreRefused, StoreUnavailable

Connection: TypeAlias = Any
Pool: TypeAlias = Any
"""A pool of the driver, which has no types for its own classes."""

DriverError = (
    asyncpg.PostgresError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
    OSError,
    TimeoutError,
)
NOT_RUN = "WF001"
"""The code with which `wfcore_require` ends a statement that wrote fewer rows than required."""
CLASHES = (asyncpg.DeadlockDetectedError, asyncpg.SerializationError)
"""
The errors of a transaction that the server ended because several transactions blocked each other.
"""
LOST_RACES = (*CLASHES, asyncpg.UniqueViolationError, asyncpg.CardinalityViolationError)
"""
The errors of a transaction that was slower than another transaction, or that wanted the same rows
in another order. A new read may succeed.
"""

CONNECT_S = 4.5
"""
The most seconds to wait for a connection and its first answer: every caller has an answer within 5
s.
"""
STATEMENT_S = 30.0
WHOLE_S = 3_600.0
"""The most seconds for a statement that reads a whole table while an operator waits."""
CONNECTIONS = 10
IDLE_S = 300.0
APPLICATION = "wfcore"


async def open_pool(url: str, connections: int = CONNECTIONS) -> Pool:
    """
    A pool of connections to *url*; the first connection is opened before this returns. Raises
    `StoreUnavailable`, `StoreRefused` if the server does not let us in, and `ValueError` for an
    invalid URL.

    The pool has no minimum size: a lost connection is replaced when a caller needs one, and that
    caller gets the error. With a minimum size, the driver would reconnect unasked and log a
    traceback each time.
    """
    try:
        with unavailable_on_error():
            pool = await asyncpg.create_pool(
                url,
                connect=connected,
                min_size=0,
                max_size=connections,
                max_inactive_connection_lifetime=IDLE_S,
                timeout=CONNECT_S,
                command_timeout=STATEMENT_S,
                server_settings={"application_name": APPLICATION},
                reset=_reset,
            )
            try:
                async with asyncio.timeout(CONNECT_S):
                    connection = await pool.acquire()
                    await connection.fetchval("SELECT 1")  # a pooler lets us in without a server
                await pool.release(connection)
            except BaseException:
                pool.terminate()
                raise
            return pool
    except StoreUnavailable as refusal:
        if isinstance(refusal.__cause__, _NO_ENTRY):
            raise StoreRefused(f"{location_of(url)}: {refusal.__cause__}") from None
        raise


_NO_ENTRY = (
    ClearTextRefused,
    asyncpg.InvalidAuthorizationSpecificationError,
    asyncpg.InvalidPasswordError,
    asyncpg.InvalidCatalogNameError,
)


async def _reset(connection: Connection) -> None:
    """Undo a transaction that was left behind; sessions have no other state."""
    if connection.is_in_transaction():
        await connection.reset()


@asynccontextmanager
async def lent(pool: Pool) -> AsyncIterator[Connection]:
    """
    A connection for one caller. Every error of the driver becomes an error of the core. Raises
    `Stale`, `StoreUnavailable`.
    """
    if pool.is_closing():
        raise StoreClosed()
    with unavailable_on_error():
        async with asyncio.timeout(CONNECT_S):
            connection = await pool.acquire()
        try:
            yield connection
        finally:
            await pool.release(connection)


@contextmanager
def unavailable_on_error() -> Iterator[None]:
    """Turn every error of the driver into `Stale` or `StoreUnavailable`."""
    try:
        yield
    except LOST_RACES as error:
        raise Stale(kind=error.table_name or type(error).__name__) from error
    except DriverError as error:
        if getattr(error, "sqlstate", None) == NOT_RUN:
            raise Stale(kind=str(error)) from error
        raise StoreUnavailable(detail=detail_of(error)) from error


def detail_of(error: BaseException) -> str:
    """The part of a driver error that helps an operator; never stored content."""
    if isinstance(error, asyncpg.PostgresError):  # its text may quote values
        return f"{type(error).__name__} ({error.sqlstate}): {_first_line(error)}"
    if isinstance(error, TimeoutError) and not str(error):
        return "the database does not answer"
    return f"{type(error).__name__}: {error}"


def _first_line(error: asyncpg.PostgresError) -> str:
    return str(error.args[0]).splitlines()[0] if error.args else ""


def location_of(url: str) -> str:
    """The URL without its secrets."""
    return re.sub(r"(?<=[?&])(password|sslpassword)=[^&]*", r"\1=***", _PASSWORD.sub("//\\1@", url))


_PASSWORD = re.compile(r"//([^:@/]*):[^/?#]*@")


@cache
def numbered(sql: str) -> str:
    """
    A shared statement in the SQL of PostgreSQL: `$1`, `$2`, … for question marks, `string_agg` for
    `group_concat`, and no hint at an index.
    """
    marks = count(1)
    text = _HINT.sub("", _MARK.sub(lambda _: f"${next(marks)}", sql))
    return text.replace("group_concat(", "string_agg(").replace(" IN ()", " IN (NULL)")


_HINT = re.compile(r" INDEXED BY \w+")
_MARK = re.compile(r"\?")


async def rows_of(connection: Connection, sql: str, *values: Any) -> list[tuple[Any, ...]]:
    """
    All rows of a statement as tuples. Tuples compare by their values; the records of the driver do
    not.
    """
    return [tuple(row) for row in await connection.fetch(numbered(sql), *values)]


async def close_pool(pool: Pool) -> None:
    """Close every connection; a lent connection is closed as soon as it is returned."""
    try:
        async with asyncio.timeout(CONNECT_S):
            await pool.close()
    except (*DriverError, TimeoutError):
        pool.terminate()
