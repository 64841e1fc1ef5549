"""
The owner of a file and its schema, checked before anything is written.

Only the header and the schema are read, so that the cost of a start does not depend on the size of
the database; `wfcore check` reads everything.

The first schema is `schema.sql`; each migration after it is a numbered file in `migrations`. Each
migration runs in a transaction of its own, which also sets its number (`user_version`).
"""

from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path

from adapters_store.sql.schema import Schema, require, texts_in
from adapters_store.sqlite.connection import (
    Connection,
    DriverError,
    connect,
    create_private,
    is_complete,
    speaks_of_damage,
    unavailable_on_error,
)
from adapters_store.sqlite.database_file import (
    LOG,
    NOTE,
    noted_commit,
    require_new,
    require_no_broken_restore,
)
from wfcore.errors import StoreRefused

APPLICATION_ID = 0x77666372
"""`wfcr`: the mark of our database files."""

FOLDER = Path(__file__).parent


def migrations() -> list[tuple[int, str]]:
    """
    The number and text of the first schema (number 1) and of each migration after it, in order.
    """
    return texts_in(FOLDER)


def prepare(path: Path, data: Path | None = None, schema: Schema = Schema.NEWEST) -> None:
    """
    Make *path* a database of the newest schema, as far as *schema* allows. *data*: the folder of
    the other files of the service; None: the folder of *path*.

    Raises `StoreRefused` (without any change) if the file is foreign, damaged or newer, has lost
    commits, or is missing although there was a service; `StoreUnavailable` if the file cannot be
    written now.
    """
    data = data or path.parent
    require_no_broken_restore(data)
    noted = noted_commit(path)
    if path.exists() and path.stat().st_size:
        inspect(path)
        _refuse(path, partial(_loss, path=path, data=data, noted=noted))
        with unavailable_on_error(), closing(connect(path, "ro")) as connection:
            found = _pragma(connection, "user_version")
        require(schema, str(path), found, migrations()[-1][0])
    else:
        require_new(path, data)
        require(schema, str(path), 0, migrations()[-1][0])
        create_private(path)
    with unavailable_on_error(), closing(connect(path)) as connection:
        known = _pragma(connection, "user_version")
        if not known:
            connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
        connection.execute("PRAGMA journal_mode = WAL")
        for number, text in migrations():
            if number > known:
                _migrate(connection, number, text)


def inspect(path: Path) -> None:
    """Raises `StoreRefused` if *path* is foreign, damaged or newer; `StoreUnavailable`."""
    _refuse(path, _refusal)


def require_whole(path: Path) -> None:
    """Read all of *path*. Raises `StoreRefused` if the file is damaged, `StoreUnavailable`."""
    _refuse(path, _damage)


def _refuse(path: Path, reason: Callable[[Connection], str | None]) -> None:
    with unavailable_on_error(), closing(connect(path, "ro")) as connection:
        try:
            refusal = reason(connection)
        except DriverError as error:
            if not speaks_of_damage(error):
                raise
            refusal = f"it is damaged or no SQLite database ({error})"
    if refusal:
        raise StoreRefused(f"{path} was left untouched: {refusal}")


def _loss(connection: Connection, path: Path, data: Path, noted: int) -> str | None:
    """
    The evidence of lost commits, or None. Raises `StoreRefused` if *path* is blank beside other
    data.
    """
    if not _pragma(connection, "user_version"):
        require_new(path, data)
        return None
    commit = connection.execute("SELECT beats FROM pulse").fetchone()[0]
    if commit >= noted:
        return None
    return (
        f"it ends with commit {commit}, but commit {noted} was made: its log {path.name}{LOG} was "
        "lost, or an older copy was put in its place. Put the right files back, or restore a "
        "backup into an empty folder; to go on without what is missing, delete "
        f"{path.name}{NOTE}"
    )


def _damage(connection: Connection) -> str | None:
    check = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
    return None if check == "ok" else f"it is damaged ({check})"


def _refusal(connection: Connection) -> str | None:
    owner = _pragma(connection, "application_id")
    tables = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
    if owner != APPLICATION_ID and (owner or tables):
        return f"it belongs to another application (application_id {owner:#x})"
    schema, newest = _pragma(connection, "user_version"), migrations()[-1][0]
    if schema > newest:
        return f"its schema {schema} is newer than this program's {newest}"
    return None


def _pragma(connection: Connection, name: str) -> int:
    return int(connection.execute(f"PRAGMA {name}").fetchone()[0])


def _migrate(connection: Connection, number: int, text: str) -> None:
    connection.execute("BEGIN IMMEDIATE")
    try:
        if _pragma(connection, "user_version") < number:
            for statement in _statements(text):
                connection.execute(statement)
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            connection.execute(f"PRAGMA user_version = {number}")
        connection.execute("COMMIT")
    except DriverError:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _statements(text: str) -> Iterator[str]:
    statement = ""
    for line in text.splitlines(keepends=True):
        statement += line
        if is_complete(statement):
            yield statement
            statement = ""
