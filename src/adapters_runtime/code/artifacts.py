"""
The collection of the files that a step left in its artifacts folder.

All processes of the step are dead by then, but hostile code may have made the tree. So every folder
and file is opened relative to its parent without following links, and only regular files with one
name count. Names are only labels: the store places content by id.
"""

import asyncio
import math
import mimetypes
import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from typing import Any, BinaryIO

from attrs import define, field

from adapters_runtime.sandbox.workdir import FILE, FOLDER
from wfcore.errors import StoreUnavailable
from wfcore.model.execution import RefusedFile
from wfcore.ports.files import ArtifactFiles
from wfcore.ports.runtime import LeftFile
from wfcore.rules.execution.given_files import unlike
from wfcore.rules.masking import NO_SECRETS, Secrets, mask_text
from wfcore.rules.visible import visible_name

_MOST_LEVELS = 32
_MOST_FOLDERS = 2_000
_MOST_ENTRIES = 200_000
MOST_NAMED = 50
_UNKNOWN = "application/octet-stream"
_PREVIEWED = frozenset(
    {
        *("text/plain", "text/csv", "text/markdown", "application/json", "application/pdf"),
        *("image/png", "image/jpeg", "image/gif", "image/webp", "image/bmp", "image/avif"),
    }
)  # not image/svg+xml: it can hold scripts
_MORE_TYPES = {
    ".avif": "image/avif",
    ".csv": "text/csv",
    ".js": "text/javascript",
    ".log": "text/plain",
    ".md": "text/markdown",
    ".webp": "image/webp",
    ".yaml": "application/yaml",
    ".yml": "application/yaml",
}

_KINDS = {
    stat.S_IFLNK: "a link",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}

Parts = tuple[str, ...]


class UnusableArtifact(Exception):
    """Raised for a file that cannot be used; the message tells the author why."""


@define
class CollectedFiles:
    """
    The files that a step left: the sorted paths of `files` that qualify, and the `refused` files.

    `fault`: the limit that was exceeded, which fails the step. `hidden`: secrets, which are masked
    in names.
    """

    files: list[Parts] = field(factory=list)
    refused: list[RefusedFile] = field(factory=list)
    fault: str | None = None
    unnamed: int = 0
    hidden: Secrets = NO_SECRETS

    def refuse(self, path: Parts, reason: str) -> None:
        """Add a file that does not qualify: by name, or beyond `MOST_NAMED` only counted."""
        if len(self.refused) < MOST_NAMED:
            self.refused.append(RefusedFile(label(path, self.hidden), reason))
        else:
            self.unnamed += 1

    def all_refused(self) -> tuple[RefusedFile, ...]:
        """
        The files that do not qualify: `MOST_NAMED` by name, and the number of the other files.
        """
        rest = [RefusedFile(f"{self.unnamed:,} more", "not named")] if self.unnamed else []
        return (*self.refused, *rest)

    def names(self) -> Mapping[Parts, str]:
        """The display name of each file; names that would be equal get a number. CS-13."""
        found: dict[Parts, str] = {}
        taken: set[str] = set()
        for path in self.files:
            found[path] = name = unlike(taken, label(path, self.hidden))
            taken.add(name)
        return found


def find(
    folder: int,
    most_files: int,
    most_bytes: int,
    hidden: Secrets = NO_SECRETS,
    most_in_all: float = math.inf,
) -> CollectedFiles:
    """
    The files below *folder*. Only regular files with one name qualify. CS-10.

    A file that is too large, a file too many, or a file that makes the total exceed *most_in_all*
    bytes is a fault; the other files are kept. Sizes include holes, since a copy fills them.
    """
    walk = _FolderWalk(folder, most_bytes, hidden)
    walk.go()
    found = walk.found
    found.files.sort()
    for path in found.files[most_files:]:
        found.fault = f"more than {most_files} artifacts"
        found.refuse(path, f"one more than {most_files}")
    del found.files[most_files:]
    _fit(found, walk.sizes, most_in_all)
    return found


def _fit(found: CollectedFiles, sizes: Mapping[Parts, int], room: float) -> None:
    limit = f"{room:,.0f} bytes in all"
    for path in (*found.files,):
        if sizes[path] <= room:
            room -= sizes[path]
        else:
            found.files.remove(path)
            found.fault = f"artifacts of more than {limit}"
            found.refuse(path, f"beyond {limit}")


class _FolderWalk:
    """A walk through all folders, up to the limits."""

    def __init__(self, folder: int, most_bytes: int, hidden: Secrets) -> None:
        self.found = CollectedFiles(hidden=hidden)
        self.sizes: dict[Parts, int] = {}
        self._folder = folder
        self._most_bytes = most_bytes
        self._waiting: list[Parts] = [()]
        self._folders = 1
        self._entries = 0

    def go(self) -> None:
        while self._waiting and self._entries < _MOST_ENTRIES:
            parts = self._waiting.pop()
            try:
                self._read_folder(parts)
            except UnusableArtifact as problem:
                self.found.refuse(parts, str(problem))
        for parts in self._waiting:
            self.found.refuse(parts, f"behind {_MOST_ENTRIES:,} others")

    def _read_folder(self, parts: Parts) -> None:
        for name, facts in _list(self._folder, parts):
            self._entries += 1
            if self._entries > _MOST_ENTRIES:
                self.found.refuse((*parts, name), f"behind {_MOST_ENTRIES:,} others")
            elif reason := _reason_against(facts):
                self.found.refuse((*parts, name), reason)
            elif stat.S_ISDIR(facts.st_mode):
                self._visit_later((*parts, name))
            else:
                self._take((*parts, name), facts.st_size)

    def _visit_later(self, path: Parts) -> None:
        if len(path) > _MOST_LEVELS:
            self.found.refuse(path, f"nested deeper than {_MOST_LEVELS} folders")
        elif self._folders == _MOST_FOLDERS:
            self.found.refuse(path, f"one more than {_MOST_FOLDERS:,} folders")
        else:
            self._folders += 1
            self._waiting.append(path)

    def _take(self, path: Parts, size: int) -> None:
        if size > self._most_bytes:
            name, why = label(path, self.found.hidden), f"larger than {self._most_bytes:,} bytes"
            self.found.fault = f"artifact {name} is {why}"
            self.found.refuse(path, why)
        else:
            self.found.files.append(path)
            self.sizes[path] = size


def _reason_against(facts: os.stat_result) -> str | None:
    """Why an entry can be no artifact, or None for a folder or a regular file with one name."""
    kind = stat.S_IFMT(facts.st_mode)
    if kind in (stat.S_IFREG, stat.S_IFDIR):
        several = kind == stat.S_IFREG and facts.st_nlink != 1
        return "a file with several names" if several else None
    return _KINDS.get(kind, "no regular file")


PAUSES_S = (1.0, 2.0, 4.0, 8.0, 15.0)
"""
The pauses before further attempts to store a file. The pauses do not count towards the step's time.
"""


async def store_patiently(files: ArtifactFiles, *about: Any) -> LeftFile:
    """Call `store`, and again while the artifact store is unavailable for a moment. CS-15."""
    for pause_s in PAUSES_S:
        try:
            return await store(files, *about)
        except StoreUnavailable:
            await asyncio.sleep(pause_s)
    return await store(files, *about)


async def store(
    files: ArtifactFiles,
    execution_id: str,
    artifact_id: str,
    folder: int,
    path: Parts,
    name: str,
) -> LeftFile:
    """
    Store one file that `find` found, under a *name* with secrets masked.

    Raises `UnusableArtifact`, `StoreUnavailable`.
    """
    with _opened(folder, path) as content:
        stored = await files.store(execution_id, artifact_id, content, name)
    content_type = content_type_of(path[-1])
    return LeftFile(
        id=artifact_id,
        name=name,
        storage_key=stored.storage_key,
        size=stored.size,
        sha256=stored.sha256,
        content_type=content_type,
        previewable=is_previewable(content_type),
    )


def content_type_of(name: str) -> str:
    """The content type for a file name, from tables that are the same on every machine."""
    kind, encoding = _types().guess_type(name)
    return kind if kind and not encoding else _UNKNOWN


def is_previewable(content_type: str) -> bool:
    """Whether a browser may show content of this type: images and plain documents."""
    return content_type in _PREVIEWED


def label(path: Parts, hidden: Secrets = NO_SECRETS) -> str:
    """
    A relative path as text that can be shown. CS-13.

    Blanks and joiners stay; controls, changes of direction and invalid UTF-8 are replaced; secrets
    in *hidden* are masked.
    """
    text = "/".join(path).encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    text = mask_text(text, hidden)  # before control characters, also of secrets, are replaced
    return visible_name(text)


@cache
def _types() -> mimetypes.MimeTypes:
    """The table of a thousand types, made with the first artifact."""
    types = mimetypes.MimeTypes()
    for suffix, kind in _MORE_TYPES.items():
        types.add_type(kind, suffix)
    return types


def _list(folder: int, parts: Parts) -> Iterator[tuple[str, os.stat_result]]:
    fd = _open_below(folder, parts, FOLDER)
    try:
        with os.scandir(fd) as entries:
            for entry in entries:
                yield entry.name, entry.stat(follow_symlinks=False)
    except OSError as problem:
        raise UnusableArtifact(f"it cannot be read: {problem.strerror}") from None
    finally:
        os.close(fd)


@contextmanager
def _opened(folder: int, path: Parts) -> Iterator[BinaryIO]:
    with open(_open_below(folder, path, FILE), "rb") as content:
        yield content


def _open_below(folder: int, parts: Parts, flags: int) -> int:
    """Open *parts* below *folder*, each relative to the part before, without following links."""
    try:
        fd = os.dup(folder)
        for depth, name in enumerate(parts, 1):
            parent = fd
            try:
                fd = os.open(name, flags if depth == len(parts) else FOLDER, dir_fd=parent)
            finally:
                os.close(parent)
    except OSError as problem:
        raise UnusableArtifact(f"it cannot be read: {problem.strerror}") from None
    return fd
