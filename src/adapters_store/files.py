"""
The content of artifacts in a local folder: `<root>/<execution>/<artifact>`.

A file gets its name only when it is complete and on disk; links are never followed.
"""

import asyncio
import hashlib
import os
import re
import shutil
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from adapters_store.private_folder import flush_folder, make_private
from wfcore.errors import NotFound, StoreUnavailable
from wfcore.ports.files import FoundFile, StoredFile
from wfcore.time import EpochMs

CHUNK = 64 * 1024

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,127}")


class LocalFiles:
    """Implements `wfcore.ports.files.ArtifactFiles` under *root*, which is created when needed."""

    def __init__(self, root: Path) -> None:
        self.root = root

    async def store(
        self, execution_id: str, artifact_id: str, content: BinaryIO, name: str = ""
    ) -> StoredFile:
        """
        Copy *content* durably to the file of the artifact; *name* is not kept. Raises
        `StoreUnavailable`.
        """
        return await asyncio.to_thread(self._store, execution_id, artifact_id, content)

    async def copy(self, storage_key: str, execution_id: str, artifact_id: str) -> str:
        """
        Give the file at *storage_key* a second name; returns the new storage key. Raises
        `NotFound`, `StoreUnavailable`.
        """
        return await asyncio.to_thread(self._copy, storage_key, execution_id, artifact_id)

    def local_path(self, storage_key: str) -> str:
        """The path of the file. Raises `NotFound`."""
        return str(self._path(storage_key))

    async def read(self, storage_key: str, start: int, end: int) -> AsyncIterator[bytes]:
        """The bytes [*start*, *end*) in chunks of 64 KiB. Raises `NotFound`."""
        descriptor = await asyncio.to_thread(self._open, storage_key)
        try:
            while start < end:
                size = min(CHUNK, end - start)
                chunk = await asyncio.to_thread(os.pread, descriptor, size, start)
                if not chunk:
                    return
                start += len(chunk)
                yield chunk
        finally:
            os.close(descriptor)

    async def delete_executions(self, *execution_ids: str) -> None:
        """Delete every file of these executions, durably. Raises `StoreUnavailable`."""
        await asyncio.to_thread(self._delete, [self.root / _checked(id) for id in execution_ids])

    async def find_all(self) -> AsyncIterator[FoundFile]:
        """Every file, folder by folder. Raises `StoreUnavailable`."""
        for folder in await asyncio.to_thread(_entries, self.root):
            for found in await asyncio.to_thread(_files_in, folder):
                yield found

    async def direct_url(self, storage_key: str) -> str | None:
        """Returns None: a file has no URL."""
        return None

    def _store(self, execution_id: str, artifact_id: str, content: BinaryIO) -> StoredFile:
        folder = self.root / _checked(execution_id)
        part = folder / f".{_checked(artifact_id)}.part"
        try:
            make_private(folder)
            size, sha256 = _copy(content, part)
            part.replace(folder / artifact_id)
            flush_folder(folder)
            flush_folder(self.root)
        except OSError as error:
            with suppress(OSError):  # it may not be there, nor its folder
                part.unlink()
            raise StoreUnavailable(detail=f"artifact: {error}") from error
        return StoredFile(f"{execution_id}/{artifact_id}", size, sha256)

    def _copy(self, storage_key: str, execution_id: str, artifact_id: str) -> str:
        source, folder = self._path(storage_key), self.root / _checked(execution_id)
        part = folder / f".{_checked(artifact_id)}.part"
        try:
            make_private(folder)
            part.unlink(missing_ok=True)
            os.link(source, part, follow_symlinks=False)
            part.replace(folder / artifact_id)
            part.unlink(missing_ok=True)  # `rename` leaves two names of one file as they are
            flush_folder(folder)
            flush_folder(self.root)
        except FileNotFoundError as error:
            raise NotFound("artifact") from error
        except OSError as error:
            raise StoreUnavailable(detail=f"artifact: {error}") from error
        return f"{execution_id}/{artifact_id}"

    def _path(self, storage_key: str) -> Path:
        execution_id, _, artifact_id = storage_key.partition("/")
        return self.root / _checked(execution_id) / _checked(artifact_id)

    def _open(self, storage_key: str) -> int:
        path = self._path(storage_key)
        try:
            return os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except FileNotFoundError as error:
            raise NotFound("artifact") from error
        except OSError as error:
            raise StoreUnavailable(detail=f"artifact: {error}") from error

    def _delete(self, folders: Sequence[Path]) -> None:
        try:
            there = [folder for folder in folders if os.path.lexists(folder)]
            for folder in there:
                with suppress(FileNotFoundError):  # another process deletes the same
                    shutil.rmtree(folder)
            if there:
                flush_folder(self.root)
        except OSError as error:
            raise StoreUnavailable(detail=f"artifact: {error}") from error


def _checked(name: str) -> str:
    """*name*, if it is a plain file name. Raises `NotFound`."""
    if not _NAME.fullmatch(name):
        raise NotFound("artifact")
    return name


def _entries(folder: Path) -> Sequence[Path]:
    """The entries of *folder* in order. Raises `StoreUnavailable`."""
    try:
        return sorted(folder.iterdir())
    except (FileNotFoundError, NotADirectoryError):
        return ()
    except OSError as error:
        raise StoreUnavailable(detail=f"artifact: {error}") from error


def _files_in(folder: Path) -> Sequence[FoundFile]:
    """
    The files of one execution, without `.part` files. A folder whose name is not a plain file name
    has no files.
    """
    if not _NAME.fullmatch(folder.name):
        return ()
    found = []
    for path in _entries(folder):
        with suppress(FileNotFoundError):  # retention is at it, too
            if _NAME.fullmatch(path.name):
                at = EpochMs(path.lstat().st_mtime_ns // 1_000_000)
                found.append(FoundFile(f"{folder.name}/{path.name}", at))
    return found


def _copy(content: BinaryIO, path: Path) -> tuple[int, str]:
    """Copy *content* to a new file at *path*; returns the size and the SHA-256."""
    path.unlink(missing_ok=True)
    digest, size = hashlib.sha256(), 0
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with open(os.open(path, flags, 0o600), "wb", buffering=0) as file:
        while chunk := content.read(CHUNK):
            digest.update(chunk)
            size += file.write(chunk)
        os.fsync(file.fileno())
    return size, digest.hexdigest()
