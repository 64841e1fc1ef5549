"""Shared by the tests of the stores: an open SQLite store, and other processes."""

import sqlite3
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from adapters_store.sqlite.store import SqliteStore

Start = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    """A store on a new file."""
    store = await SqliteStore.open(tmp_path / "wfcore.db")
    yield store
    await store.close()


@pytest.fixture
def start() -> Iterator[Start]:
    """Start Python programs with arguments; whatever still runs at the end is killed."""
    running: list[subprocess.Popen[str]] = []

    def start(program: str, *arguments: object) -> "subprocess.Popen[str]":
        process = subprocess.Popen(
            [sys.executable, "-c", program, *map(str, arguments)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        running.append(process)
        return process

    yield start
    for process in running:
        process.kill()
        process.communicate()


def write_database(path: Path, *statements: str) -> None:
    """Make a database by hand."""
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        for statement in statements:
            database.execute(statement)


def pragma(path: Path, name: str) -> int:
    """A number from the file's header."""
    with closing(sqlite3.connect(path)) as database:
        return int(database.execute(f"PRAGMA {name}").fetchone()[0])
