"""Shared by the tests of the stores: an open SQLite store, and other processes."""

import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest

from adapters_store.sqlite import SqliteStore

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
