"""
A cache of folders, each complete or absent.

A new folder is filled under a temporary name, and renamed when it is complete and flushed to disk.
A lock for each key, on a file beside the entry, keeps processes apart that create and remove the
entry; the operating system releases the lock of a dead process.
"""

import asyncio
import ctypes
import fcntl
import hashlib
import json
import os
import re
import stat
import time
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Any

from attrs import frozen

from adapters_runtime.sandbox.step_folders import remove_tree

_KEY = re.compile(r"[0-9a-f]{32}")
_ABOUT = "about.json"
_NEW, _OLD = ".new-", ".old-"
_POLL_S = 0.05
_TOUCH_S = 3_600.0


@frozen
class Entry:
    """
    A complete folder. `idle_s`: the time since its last use. `about["tree"]`: the digest of its
    content.
    """

    key: str
    about: Mapping[str, Any]
    bytes: int
    idle_s: float


class FolderCache:
    """The cache of folders at *root*, which several processes may share."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def path(self, key: str) -> Path:
        """The path of the entry *key*, whether it exists or not."""
        return self._root / key

    def find(self, key: str) -> Entry | None:
        """
        The entry *key*, or None if it does not exist. An entry that is found counts as used now.
        """
        entry = self._entry(key)
        if entry and entry.idle_s > _TOUCH_S:
            with suppress(OSError):
                os.utime(self.path(key) / _ABOUT)
        return entry

    def entries(self) -> Sequence[Entry]:
        """All entries, longest idle first."""
        found = []
        with suppress(FileNotFoundError):
            for name in os.listdir(self._root):
                if _KEY.fullmatch(name) and (entry := self._entry(name)):
                    found.append(entry)
        return sorted(found, key=lambda entry: -entry.idle_s)

    def _entry(self, key: str) -> Entry | None:
        path = self.path(key) / _ABOUT
        try:
            about = json.loads(path.read_bytes())
            return Entry(key, about, about["bytes"], time.time() - path.stat().st_mtime)
        except (OSError, ValueError, KeyError):
            return None

    def _is_whole(self, key: str) -> bool:
        """Whether the entry exists and is unchanged since it was created. PK-12."""
        entry = self.find(key)
        try:
            return entry is not None and entry.about.get("tree") == _tree(self.path(key))
        except OSError:
            return False

    @asynccontextmanager
    async def making(self, key: str) -> AsyncIterator[Path | None]:
        """
        A new folder to fill, or None if the entry exists. A damaged entry is removed first.

        The caller calls `complete` in the context. The folder becomes the entry at the end of the
        context, or is removed after an error.
        """
        self._root.mkdir(0o755, parents=True, exist_ok=True)
        async with self._locked(key):
            if await asyncio.to_thread(self._is_whole, key):
                yield None
                return
            await asyncio.to_thread(remove_tree, self.path(key))
            fresh = self._root / f"{_NEW}{key}"
            await asyncio.to_thread(remove_tree, fresh)  # left by a process that died
            fresh.mkdir(0o755)
            try:
                yield fresh
                fresh.rename(self.path(key))
                await asyncio.to_thread(_sync, self._root)
            finally:
                if fresh.exists():
                    await asyncio.to_thread(remove_tree, fresh)

    def complete(self, fresh: Path, about: Mapping[str, Any]) -> None:
        """Prepare a filled folder as an entry: count it, make it readable, flush it to disk."""
        size = _open(fresh)
        kept = {**about, "bytes": size, "tree": _tree(fresh)}
        (fresh / _ABOUT).write_text(json.dumps(kept), "utf-8")
        _sync(fresh)

    async def remove(self, key: str, idle_s: float) -> bool:
        """Remove an entry if it is idle for *idle_s* at least; returns whether it was removed."""
        with self._try_lock(key) as locked:
            entry = self._entry(key)
            if not locked or entry is None or entry.idle_s < idle_s:
                return False
            old = self._root / f"{_OLD}{key}"
            self.path(key).rename(old)
            await asyncio.to_thread(remove_tree, old)
        return True

    def remove_leftovers(self) -> None:
        """Remove the folders that dead processes were creating or removing."""
        with suppress(FileNotFoundError):
            for name in os.listdir(self._root):
                key = name[len(_NEW) :]
                if name.startswith((_NEW, _OLD)) and _KEY.fullmatch(key):
                    with self._try_lock(key) as locked:
                        if locked:
                            remove_tree(self._root / name)

    @asynccontextmanager
    async def _locked(self, key: str) -> AsyncIterator[None]:
        while True:
            with self._try_lock(key) as locked:
                if locked:
                    yield
                    return
            await asyncio.sleep(_POLL_S)

    @contextmanager
    def _try_lock(self, key: str) -> Iterator[bool]:
        path = self._root / f"{key}.lock"
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            if not _flock(fd) or not _is_at(fd, path):
                yield False
                return
            try:
                yield True
            finally:
                path.unlink()
        finally:
            os.close(fd)


def _flock(fd: int) -> bool:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _is_at(fd: int, path: Path) -> bool:
    """Whether the open file is still at *path*. An earlier holder may have removed the file."""
    try:
        return os.path.samestat(os.fstat(fd), path.stat())
    except FileNotFoundError:
        return False


def _open(folder: Path) -> int:
    """
    Let every user read *folder*, and only the server write; returns the number of bytes.

    Steps cannot write there, since they are confined or run as another user. Without the server's
    write permission nobody could remove a data folder.
    """
    size = 0
    for path, _, names in os.walk(folder, topdown=False):
        for name in names:
            file = os.path.join(path, name)
            found = os.lstat(file)
            if stat.S_ISREG(found.st_mode):
                size += found.st_size
                os.chmod(file, 0o755 if found.st_mode & 0o100 else 0o644)
        os.chmod(path, 0o755)  # noqa: S103 - steps may run as another user
    return size


def _tree(folder: Path) -> str:
    """A digest of names, types, modes and content in *folder*, without the record of the entry."""
    whole = hashlib.sha256()

    def note(path: str) -> None:
        facts = os.lstat(path)
        whole.update(f"{os.path.relpath(path, folder)}\0{facts.st_mode:o}\0".encode())
        if stat.S_ISREG(facts.st_mode):
            with open(path, "rb") as file:
                whole.update(hashlib.file_digest(file, "sha256").digest())

    def fail(trouble: OSError) -> None:
        raise trouble

    for path, folders, names in os.walk(folder, onerror=fail):
        folders.sort()
        for name in sorted((*folders, *names)):
            if (path, name) != (str(folder), _ABOUT):
                note(os.path.join(path, name))
    return whole.hexdigest()


def _sync(folder: Path) -> None:
    """Flush the whole file system of *folder* to disk."""
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        if ctypes.CDLL(None, use_errno=True).syncfs(fd):
            raise OSError(ctypes.get_errno(), "syncfs failed", str(folder))
    finally:
        os.close(fd)
