"""Who gives a database its schema: servers and `wfcore migrate`, not those who look. ST-6."""

from enum import Enum, auto
from pathlib import Path

from wfcore.errors import StoreRefused


class Schema(Enum):
    """
    What opening a store does to its schema. NEWEST: makes and migrates it. PRESENT: makes it where
    there is nothing, and refuses an older one. AS_IS: refuses both.
    """

    NEWEST = auto()
    PRESENT = auto()
    AS_IS = auto()


class Unmade(StoreRefused):
    """There is nothing yet."""


class OlderSchema(StoreRefused):
    """The schema is of an older version: other programs may work with it."""


def require(schema: Schema, location: str, found: int, newest: int) -> None:
    """Raises `Unmade` or `OlderSchema` where *schema* lets nobody change what was *found*."""
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
