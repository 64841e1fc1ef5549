"""
Collecting the files that a step left in its artifacts folder. Contract §5, reliability 14.

Called when everything the step started is dead. The tree is still what hostile code made of it:
every folder and file is opened relative to its parent without following links, and only regular
files with one name count. Names are labels; where content goes, the store decides by id.
"""

import mimetypes
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO

from adapters_runtime.leavings import FILE, FOLDER
from wfcore.ports.files import ArtifactFiles
from wfcore.ports.runtime import LeftFile

_MOST_LEVELS = 32
_MOSTFOLDERS = 2_000
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

Parts = tuple[str, ...]


class UnusableArtifacts(Exception):
    """What was left breaks a limit or cannot be read; the text says what, for the author."""


def find(folder: int, most_files: int, most_bytes: int) -> list[Parts]:
    """
    The regular files with one name below *folder*, as relative paths in parts, sorted.

    Raises `UnusableArtifacts` at the first limit that is broken.
    """
    found: list[Parts] = []
    waiting: list[Parts] = [()]
    folders = 0
    while waiting:
        folders += 1
        if folders > _MOSTFOLDERS:
            raise UnusableArtifacts(f"more than {_MOSTFOLDERS:,} folders of artifacts")
        parts = waiting.pop()
        for name, facts in _list(folder, parts):
            path = (*parts, name)
            if stat.S_ISDIR(facts.st_mode):
                waiting.append(_not_too_deep(path))
            elif stat.S_ISREG(facts.st_mode) and facts.st_nlink == 1:
                if facts.st_size > most_bytes:
                    raise UnusableArtifacts(
                        f"artifact {label(path)} is larger than {most_bytes:,} bytes"
                    )
                if len(found) == most_files:
                    raise UnusableArtifacts(f"more than {most_files} artifacts")
                found.append(path)
    return sorted(found)


async def store(
    files: ArtifactFiles, execution_id: str, artifact_id: str, folder: int, path: Parts
) -> LeftFile:
    """Store one file that `find` found. Raises `UnusableArtifacts`, `StoreUnavailable`."""
    with _opened(folder, path) as content:
        stored = await files.store(execution_id, artifact_id, content)
    content_type = content_type_of(path[-1])
    return LeftFile(
        id=artifact_id,
        name=label(path),
        storage_key=stored.storage_key,
        size=stored.size,
        sha256=stored.sha256,
        content_type=content_type,
        previewable=is_previewable(content_type),
    )


def content_type_of(name: str) -> str:
    """What a file of that name holds, from tables of our own: the same on every machine."""
    kind, encoding = _types.guess_type(name)
    return kind if kind and not encoding else _UNKNOWN


def is_previewable(content_type: str) -> bool:
    """Whether a browser may show it: pictures and plain documents."""
    return content_type in _PREVIEWED


def label(path: Parts) -> str:
    """A relative path as text that can be shown: no control characters, no broken UTF-8."""
    text = "/".join(path).encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    return "".join(ch if ch.isprintable() else "\N{REPLACEMENT CHARACTER}" for ch in text)


def _own_types() -> mimetypes.MimeTypes:
    types = mimetypes.MimeTypes()
    for suffix, kind in _MORE_TYPES.items():
        types.add_type(kind, suffix)
    return types


_types = _own_types()


def _not_too_deep(path: Parts) -> Parts:
    if len(path) > _MOST_LEVELS:
        raise UnusableArtifacts(f"folders of artifacts nested deeper than {_MOST_LEVELS}")
    return path


def _list(folder: int, parts: Parts) -> Iterator[tuple[str, os.stat_result]]:
    fd = _open_below(folder, parts, FOLDER)
    try:
        for name in os.listdir(fd):
            yield name, os.lstat(name, dir_fd=fd)
    except OSError as problem:
        raise _unreadable(parts, problem) from None
    finally:
        os.close(fd)


@contextmanager
def _opened(folder: int, path: Parts) -> Iterator[BinaryIO]:
    with open(_open_below(folder, path, FILE), "rb") as content:
        yield content


def _open_below(folder: int, parts: Parts, flags: int) -> int:
    """Open *parts* below *folder*, each step relative to the last and through no link."""
    try:
        fd = os.dup(folder)
        for depth, name in enumerate(parts, 1):
            parent = fd
            try:
                fd = os.open(name, flags if depth == len(parts) else FOLDER, dir_fd=parent)
            finally:
                os.close(parent)
    except OSError as problem:
        raise _unreadable(parts, problem) from None
    return fd


def _unreadable(path: Parts, problem: OSError) -> UnusableArtifacts:
    what = f"artifact {label(path)}" if path else "the folder of artifacts"
    return UnusableArtifacts(f"{what} cannot be read: {problem.strerror}")
