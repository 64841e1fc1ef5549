"""The schema of a database, which only servers and `wfcore migrate` create or change. ST-6."""

from enum import Enum, auto
from pathlib import Path

from wfcore.errors import StoreRefused


class Schema(Enum):
    """
    The change of schema that is allowed when a store is opened. NEWEST: create the schema, or
    migrate an older schema. PRESENT: create the schema in an empty database, but refuse an older
    schema. AS_IS: refuse both.
    """

    NEWEST = auto()
    PRESENT = auto()
    AS_IS = auto()


class Unmade(StoreRefused):
    """Raised if the database is still empty."""


class OlderSchema(StoreRefused):
    """Raised for a schema of an older version: other programs may work with that schema."""


def require(schema: Schema, location: str, found: int, newest: int) -> None:
    """Raises `Unmade` or `OlderSchema` if *schema* forbids changing the schema *found*."""
    if schema is Schema.AS_IS and not found:
        raise Unmade(f"{location} is empty; the first start makes what it needs")
    if schema is not Schema.NEWEST and 0 < found < newest:
        raise OlderSchema(
            f"{location} has schema {found} of an older version, not {newest}: "
            "run `wfcore migrate` when no older server works on it"
        )


def texts_in(folder: Path) -> list[tuple[int, str]]:
    """
    The number and text of `schema.sql` (number 1) and of each file `migrations/NNNN_title.sql`, in
    order.
    """
    later = sorted((folder / "migrations").glob("*.sql"))
    files = [(1, folder / "schema.sql"), *((int(path.name[:4]), path) for path in later)]
    return [(number, path.read_text("utf-8")) for number, path in files]
