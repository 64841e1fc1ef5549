"""Published migrations are history: files of that schema exist, so their text never changes."""

import hashlib
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from adapters_store.postgres import migrate as postgres_migrate
from adapters_store.sqlite import migrate

DATABASES = {"sqlite": migrate, "postgres": postgres_migrate}
PUBLISHED = {
    "sqlite": {
        1: "9569388feabb90a7cb2b09b13ad7ab10040a4eb9ef7267c1f4a4551a12012424",
    },
    "postgres": {
        1: "ff160030461d5c358534e07ac8bff4963f2879b4c56a7638583f47940a223dd7",
    },
}
"""
The SHA-256 of each migration by its number, written down when it lands. The first is `schema.sql`,
which may still change until the first release.
"""


def digests(database: str) -> dict[int, str]:
    """The SHA-256 of every migration there is, by its number."""
    return {
        number: hashlib.sha256(text.encode()).hexdigest()
        for number, text in DATABASES[database].migrations()
    }


@pytest.mark.parametrize("database", DATABASES)
def test_a_published_migration_never_changes(database: str) -> None:
    """A database that has run a migration does not run it again, so a changed text misses it."""
    found, published = digests(database), PUBLISHED[database]
    changed = [number for number, digest in published.items() if found.get(number) != digest]
    assert not changed, f"migrations {changed} are published: restore them and add a new one"


@pytest.mark.parametrize("database", DATABASES)
def test_every_migration_has_its_digest(database: str) -> None:
    """A migration that is not written down could change without anybody noticing."""
    new = {n: text for n, text in digests(database).items() if n not in PUBLISHED[database]}
    lines = "".join(f'\n    {number}: "{digest}",' for number, digest in new.items())
    assert not new, f"add to PUBLISHED[{database!r}] in {Path(__file__).name}:{lines}"


@pytest.mark.parametrize("database", DATABASES)
def test_migrations_are_numbered_without_gaps(database: str) -> None:
    """Two migrations of one number, or one that comes late, would be skipped in some databases."""
    numbers = [number for number, _ in DATABASES[database].migrations()]
    assert numbers == list(range(1, len(numbers) + 1))


def test_a_migration_follows_the_first_schema(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file of the first schema gets each later migration once, and keeps what it holds."""
    path, folder = tmp_path / "wfcore.db", tmp_path / "texts"
    migrate.prepare(path)
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("INSERT INTO nodes VALUES ('w', 1, '{}')")
    (folder / "migrations").mkdir(parents=True)
    shutil.copy(migrate.FOLDER / "schema.sql", folder)
    text = "ALTER TABLE nodes ADD COLUMN host TEXT;\nUPDATE nodes SET host = 'here';\n"
    (folder / "migrations" / "0002_hosts.sql").write_text(text)
    monkeypatch.setattr(migrate, "FOLDER", folder)
    for _ in range(2):
        migrate.prepare(path)
        with closing(sqlite3.connect(path)) as database:
            assert database.execute("SELECT * FROM nodes").fetchall() == [("w", 1, "{}", "here")]
            assert database.execute("PRAGMA user_version").fetchone() == (2,)
