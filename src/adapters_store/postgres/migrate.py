"""
The owner of a database and its schema, checked before anything is written.

The first schema is `schema.sql`; each migration after it is a numbered file in `migrations`. One
process at a time checks and migrates. All missing migrations run in one transaction, so that no
other program, even an older program, sees half of a schema.
"""

from pathlib import Path

from adapters_store.postgres.connection import Connection, Pool, lent
from adapters_store.sql.schema import Schema, require, texts_in
from wfcore.errors import StoreRefused

LOCK = 0x77666372
"""
`wfcr`: the advisory lock of the process that migrates; the files of SQLite have the same mark.
"""

SCHEMAS = "CREATE TABLE wfcore_schemas (number bigint PRIMARY KEY, at timestamptz NOT NULL)"
KNOWN = "SELECT to_regclass('wfcore_schemas') IS NOT NULL"
FOREIGN = """SELECT c.relname FROM pg_class c
    WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind IN ('r', 'p', 'v', 'm', 'f')
    ORDER BY 1 LIMIT 3"""


FOLDER = Path(__file__).parent


def migrations() -> list[tuple[int, str]]:
    """
    The number and text of the first schema (number 1) and of each migration after it, in order.
    """
    return texts_in(FOLDER)


async def prepare(pool: Pool, location: str, wanted: Schema = Schema.NEWEST) -> None:
    """
    Give the database the newest schema, as far as *wanted* allows. Raises `StoreRefused` (without
    any change) if the database has tables of another application or a newer schema;
    `StoreUnavailable`.
    """
    async with lent(pool) as connection, connection.transaction():
        await connection.execute(f"SELECT pg_advisory_xact_lock({LOCK})")
        schema = await _schema(connection, location)
        require(wanted, location, schema, migrations()[-1][0])
        if not schema and not await connection.fetchval(KNOWN):
            await connection.execute(SCHEMAS)
        for number, text in migrations():
            if number > schema:
                await connection.execute(text)
                await connection.execute("INSERT INTO wfcore_schemas VALUES ($1, now())", number)


async def _schema(connection: Connection, location: str) -> int:
    """The number of the newest migration that was made. Raises `StoreRefused`."""
    encoding = await connection.fetchval("SHOW server_encoding")
    if encoding != "UTF8":
        raise StoreRefused(
            f"{location} was left untouched: its encoding is {encoding}, "
            "which cannot hold all text; create it with ENCODING 'UTF8' TEMPLATE template0"
        )
    if not await connection.fetchval(KNOWN):
        strangers = [row[0] for row in await connection.fetch(FOREIGN)]
        if strangers:
            raise StoreRefused(
                f"{location} was left untouched: it has tables of another application "
                f"({', '.join(strangers)}); give wfcore a database of its own"
            )
        return 0
    schema = int(await connection.fetchval("SELECT coalesce(max(number), 0) FROM wfcore_schemas"))
    newest = migrations()[-1][0]
    if schema > newest:
        raise StoreRefused(
            f"{location} was left untouched: its schema {schema} is newer than this program's "
            f"{newest}; install the release that made it"
        )
    return schema
