"""The schema of a database: servers and `wfcore migrate` make it, no other command. ST-6."""

from enum import Enum, auto
from pathlib import Path

from wfcore.errors import StoreRefused


class Schema(Enum):
    """
    The change of schema that opening a store may make. NEWEST: make and migrate it. PRESENT: make
    it where there is nothing, and refuse an older one. AS_IS: refuse both.
    """

    NEWEST = auto()
    PRESENT = auto()
    AS_IS = auto()


class Unmade(StoreRefused):
    """The database is still empty."""


class OlderSchema(StoreRefused):
    """The schema is of an older version: other programs may work with it."""


def require(schema: Schema, location: str, found: int, newest: int) -> None:
    """Raises `Unmade` or `OlderSchema` if *schema* forbids to change the schema *found*."""
    if schema is Schema.AS_IS and not found:
        raise Unmade(f"{location} is empty; the first start makes what it needs")
    if schema is not Schema.NEWEST and 0 < found < newest:
        raise OlderSchema(
            f"{location} has schema {found} of an older version, not {newest}: "
            "run `wfcore migrate` when no older server works on it"
        )


def texts_in(folder: Path) -> list[tuple[int, str]]:
    """
    Number and text of `schema.sql`, which is 1, and of each file `migrations/NNNN_title.sql`, in
    order.
    """
    later = sorted((folder / "migrations").glob("*.sql"))
    files = [(1, folder / "schema.sql"), *((int(path.name[:4]), path) for path in later)]
    return [(number, path.read_text("utf-8")) for number, path in files]
