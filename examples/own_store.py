"""
A store of your own: one file that only grows, for a service in one process.

`wfcore.memory` knows everything that a store must about records, races and claims; what it
lacks is a medium. This one brings a journal. Each commit is one frame (length, checksum,
changes), flushed before anybody is told. At the next start the frames are read again; a frame
that a power cut tore apart is the end. Put a bucket, a replicated log or your own database in
its place, and run the contract suite.

The frames are pickles: whoever can write the file can run code here, so its folder is private.
"""

import asyncio
import fcntl
import os
import pickle
import time
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

from wfcore.errors import StoreRefused, StoreUnavailable
from wfcore.memory import Disk, MemoryStore
from wfcore.time import EpochMs, Now

R = TypeVar("R")
HEAD = b"wfcore journal 1\n"
NUMBER = 4
WASTE = 4
"""A journal so many times longer than its content is written anew."""


class JournalStore(MemoryStore):
    """Satisfies `wfcore.Store` over one file. Open it with `open_journal`."""

    def __init__(self, journal: "Journal", now: Now) -> None:
        super().__init__(journal.gate, journal, now=now)
        self._journal = journal
        runs = journal.tables["execution"].values()
        self.ended |= {run.worker for run in runs if run.worker}  # of an earlier process

    async def backup(self, path: str) -> None:
        """Write a journal with the present content to *path*: no part of the port."""
        await self._journal.gate("backup", path, lambda: self._journal.copy(Path(path)))

    async def close(self) -> None:
        """Give the file back. Safe to call twice."""
        self._journal.close()


def wall_clock() -> EpochMs:
    """For a store that nobody gives a clock; a service gives it `Clock.service_now`."""
    return EpochMs(time.time_ns() // 1_000_000)


def open_journal(path: Path, now: Now = wall_clock) -> JournalStore:
    """
    The store in *path*, which is made if there is none; *now* tells its time.

    Raises `StoreRefused` for a file that is none of ours or that another process uses.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    return JournalStore(Journal(path), now)


class Journal(Disk):
    """Tables in memory, whose changes are written down before they are made."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._path = path
        self._file = _taken(path)
        try:
            self._end = self._read()
        except BaseException:
            self._file.close()
            raise
        if self._end > WASTE * len(self._whole()) + len(HEAD):
            self._write_anew()

    async def gate(
        self, name: str, about: object, apply: Callable[[], R], *, writes: bool = False
    ) -> R:
        """Others run first; then *apply*, which nothing interrupts."""
        await asyncio.sleep(0)
        if self._file.closed:
            raise StoreUnavailable(detail="the store is closed")
        return apply()

    def settle(self, changes: Any) -> None:
        """Write *changes* down, flush them, then make them. Raises `StoreUnavailable`."""
        try:
            written = _append(self._file, self._end, changes)
        except OSError as error:
            raise StoreUnavailable(detail=f"{self._path}: {error}") from error
        self._end += written
        super().settle(changes)

    def _read(self) -> int:
        """Make every change that is whole; where the next frame goes."""
        text = self._file.read()
        if text and not text.startswith(HEAD):
            raise StoreRefused(f"{self._path} is no journal of wfcore")
        if not text:
            self._file.write(HEAD)
            return len(HEAD)
        at = len(HEAD)
        while (payload := _frame(text, at)) is not None:
            super().settle(pickle.loads(payload))  # noqa: S301
            at += 2 * NUMBER + len(payload)
        return at

    def _whole(self) -> bytes:
        return _framed({name: rows for name, rows in self.tables.items() if rows})

    def _write_anew(self) -> None:
        fresh = self._path.with_suffix(".new")
        self.copy(fresh)
        self._file.close()
        os.replace(fresh, self._path)
        self._file = _taken(self._path)
        self._end = len(self._file.read())

    def copy(self, path: Path) -> None:
        """The present content as a journal of one frame."""
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(HEAD + self._whole())
            file.flush()
            os.fsync(file.fileno())

    def close(self) -> None:
        self._file.close()


def _taken(path: Path) -> BinaryIO:
    """The file, open for us alone."""
    file = os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT, 0o600), "r+b", buffering=0)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        file.close()
        raise StoreRefused(f"{path} is in use by another process") from None
    return file


def _append(file: BinaryIO, at: int, changes: Any) -> int:
    """Write one frame at *at*, over what a failed attempt may have left; its length."""
    frame = _framed(changes)
    file.seek(at)
    file.truncate()
    rest = frame
    while rest:
        rest = rest[file.write(rest) :]
    os.fdatasync(file.fileno())
    return len(frame)


def _framed(changes: Any) -> bytes:
    payload = pickle.dumps(changes)
    return _number(len(payload)) + _number(zlib.crc32(payload)) + payload


def _frame(text: bytes, at: int) -> bytes | None:
    """The payload of the frame at *at*; None: it is not whole."""
    length, checksum = (
        int.from_bytes(text[at + n * NUMBER : at + (n + 1) * NUMBER]) for n in (0, 1)
    )
    payload = text[at + 2 * NUMBER : at + 2 * NUMBER + length]
    whole = len(payload) == length and length > 0 and zlib.crc32(payload) == checksum
    return payload if whole else None


def _number(value: int) -> bytes:
    return value.to_bytes(NUMBER)
