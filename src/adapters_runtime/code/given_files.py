"""
The files that a step reads, laid out as a tree: a folder for each earlier step. FI-1 to FI-5.

At the level `namespace` the step sees the tree through a read-only mount, so the tree consists of
hard links to the stored files, and steps that read the same files share one tree. A tree is kept
for a while after its last step. The tree of a step that later steps read is made when that step
ends: 200 links take longer than a short step starts.

At the other levels the tree is moved into the step's folder. A step with a user of its own cannot
change files of the server's user, so links do there as well. A step with the server's user could,
so it gets copies.

Content of a bucket is fetched once, and kept while there is room.
"""

import asyncio
import hashlib
import os
import shutil
import stat
from collections import Counter
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial
from itertools import count
from pathlib import Path
from typing import Protocol, TypeVar

from attrs import define

from adapters_runtime.sandbox.isolation.config import LANDLOCK, NAMESPACE, PROCESS
from adapters_runtime.sandbox.step_folders import remove_tree
from wfcore.errors import NotFound, StoreUnavailable
from wfcore.ports.files import ArtifactFiles
from wfcore.rules.execution.given_files import FileContent, FilesUnavailable, GivenFolder

KEPT_S = 60.0
"""The time that a tree is kept after its last step."""
_FETCHES_AT_ONCE = 8
_READABLE = 0o444
_ENTERED = 0o555
_OWN = 0o755

T = TypeVar("T")


class InThread(Protocol):
    """Runs a function in a thread."""

    async def __call__(self, work: Callable[[], T]) -> T: ...


@define(eq=False)
class _Tree:
    path: str
    making: "asyncio.Future[None]"
    users: int = 0
    removal: asyncio.TimerHandle | None = None


class GivenFiles:
    """
    The trees for the steps of one runner at the isolation level *level*, in *folder*.

    *kept_bytes*: the size of the fetched content that is kept.
    """

    def __init__(
        self,
        files: ArtifactFiles,
        folder: Path,
        level: str,
        in_thread: InThread,
        kept_bytes: int,
    ) -> None:
        self._files = files
        self._folder = folder
        self._in_thread = in_thread
        self._fetched = _FetchedFiles(files, folder, in_thread, kept_bytes)
        self._is_shared = level == NAMESPACE
        self._copies = level in (LANDLOCK, PROCESS)
        self._is_public = os.geteuid() == 0 and not self._copies
        self._numbers = count(1)
        self._trees: dict[object, _Tree] = {}

    async def prepare(self, folder: GivenFolder[FileContent]) -> None:
        """Make the tree of *folder* now if later steps can share it."""
        is_local = all(self._files.local_path(one.storage_key) for one in folder.files.values())
        if self._is_shared and folder.files and is_local:
            with suppress(FilesUnavailable, StoreUnavailable, OSError):
                async with self.tree((folder,)):
                    """Kept for a while."""

    @asynccontextmanager
    async def tree(self, folders: Sequence[GivenFolder[FileContent]]) -> AsyncIterator[str]:
        """
        The path of a tree of *folders*, which nobody changes in the meantime; at levels other than
        `namespace` the caller moves it away. Raises `FilesUnavailable`, `StoreUnavailable`,
        `OSError`.
        """
        key = _key_of(folders) if self._is_shared else object()
        tree = self._trees.get(key) or self._begin(key, folders)
        tree.users += 1
        if tree.removal:
            tree.removal.cancel()
        try:
            await asyncio.shield(tree.making)
            yield tree.path
        finally:
            tree.users -= 1
            if not tree.users:
                self._release(key, tree)

    def close(self) -> None:
        """Remove no more trees; the caller removes the folder."""
        for tree in self._trees.values():
            if tree.removal:
                tree.removal.cancel()
        self._trees.clear()

    def _begin(self, key: object, folders: Sequence[GivenFolder[FileContent]]) -> _Tree:
        path = str(self._folder / f"files-{next(self._numbers)}")
        tree = self._trees[key] = _Tree(path, _started(self._make(path, folders)))
        return tree

    def _release(self, key: object, tree: _Tree) -> None:
        loop = asyncio.get_running_loop()
        if self._is_shared and _has_succeeded(tree.making):
            tree.removal = loop.call_later(KEPT_S, self._remove, key, tree)
        else:
            self._remove(key, tree)

    def _remove(self, key: object, tree: _Tree) -> None:
        self._trees.pop(key, None)
        if os.path.lexists(tree.path):
            _started(self._in_thread(partial(remove_tree, Path(tree.path))))

    async def _make(self, path: str, folders: Sequence[GivenFolder[FileContent]]) -> None:
        placed = {f"{one.step}/{at}": file for one in folders for at, file in one.files.items()}
        async with self._fetched.held(placed.values()):
            found = await asyncio.gather(*(self._source(at, file) for at, file in placed.items()))
            sources = dict(zip(placed, found, strict=True))
            names = [one.step for one in folders]
            await self._in_thread(partial(self._lay_out, path, names, sources))

    async def _source(self, place: str, file: FileContent) -> str:
        try:
            return self._files.local_path(file.storage_key) or await self._fetched.path(file)
        except NotFound:
            raise _gone(place) from None

    def _lay_out(self, tree: str, folders: Iterable[str], sources: Mapping[str, str]) -> None:
        os.mkdir(tree)
        os.chmod(tree, _OWN)  # not read-only: a folder that is moved must be writable
        made = {f"{tree}/{folder}" for folder in folders}
        for place in sources:
            above = f"{tree}/{place}".rpartition("/")[0]
            while above not in made and above != tree:
                made.add(above)
                above = above.rpartition("/")[0]
        for folder in sorted(made):
            os.mkdir(folder)
        for place, source in sources.items():
            try:
                self._place(source, f"{tree}/{place}")
            except FileNotFoundError:
                raise _gone(place) from None
        for folder in made:
            os.chmod(folder, _ENTERED)

    def _place(self, source: str, target: str) -> None:
        if not self._copies:
            try:
                os.link(source, target, follow_symlinks=False)
                if self._is_public and stat.S_IMODE(os.lstat(target).st_mode) != _READABLE:
                    os.chmod(target, _READABLE)  # of the stored file, whose folder is private
                return
            except FileNotFoundError:
                raise
            except OSError:  # on another file system, say
                with suppress(FileNotFoundError):
                    os.unlink(target)
        shutil.copyfile(source, target)
        os.chmod(target, _READABLE)


def _key_of(folders: Sequence[GivenFolder[FileContent]]) -> object:
    return tuple(
        (one.step, *((path, file.storage_key) for path, file in one.files.items()))
        for one in folders
    )


def _has_succeeded(work: "asyncio.Future[T]") -> bool:
    return work.done() and not work.cancelled() and work.exception() is None


def _gone(place: str) -> FilesUnavailable:
    return FilesUnavailable(f"{place} is gone")


def _started(work: Coroutine[object, object, T]) -> "asyncio.Task[T]":
    """*work* as a task whose failure may stay unread: its callers may be cancelled."""
    task = asyncio.ensure_future(work)
    task.add_done_callback(lambda done: done.cancelled() or done.exception())
    return task


@define(eq=False)
class _Fetched:
    path: "asyncio.Future[str]"
    size: int


class _FetchedFiles:
    """Content from another machine, as files in *folder* of about *most* bytes in all."""

    def __init__(self, files: ArtifactFiles, folder: Path, in_thread: InThread, most: int) -> None:
        self._files = files
        self._folder = folder
        self._in_thread = in_thread
        self._most = most
        self._numbers = count(1)
        self._places = asyncio.Semaphore(_FETCHES_AT_ONCE)
        self._known: dict[str, _Fetched] = {}
        self._held: Counter[str] = Counter()

    @asynccontextmanager
    async def held(self, files: Iterable[FileContent]) -> AsyncIterator[None]:
        """A context in which the fetched ones of *files* stay."""
        keys = [one.storage_key for one in files]
        self._held.update(keys)
        try:
            yield
        finally:
            self._held.subtract(keys)
            self._held += Counter()
            await self._make_room()

    async def path(self, file: FileContent) -> str:
        """
        The path of the content, fetched at its first use. Raises `NotFound`, `FilesUnavailable`,
        `StoreUnavailable`, `OSError`.
        """
        key = file.storage_key
        fetched = self._known.pop(key, None) or _Fetched(_started(self._fetch(file)), file.size)
        self._known[key] = fetched  # the latest used is last
        try:
            return await asyncio.shield(fetched.path)
        except (NotFound, FilesUnavailable, StoreUnavailable, OSError):
            self._known.pop(key, None)
            raise

    async def _fetch(self, file: FileContent) -> str:
        path = self._folder / f"fetched-{next(self._numbers)}"
        async with self._places:
            try:
                digest = await self._copied(file, path)
            except BaseException:
                path.unlink(missing_ok=True)
                raise
        if digest != file.sha256:
            path.unlink()
            raise FilesUnavailable(f"{file.name} is not as it was stored")
        return str(path)

    async def _copied(self, file: FileContent, path: Path) -> str:
        """Copy the content to a new file at *path*; returns the SHA-256."""
        digest = hashlib.sha256()
        with path.open("xb") as copy:

            def append(chunk: bytes) -> None:
                copy.write(chunk)
                digest.update(chunk)

            async for chunk in self._files.read(file.storage_key, 0, file.size):
                await self._in_thread(partial(append, chunk))
        return digest.hexdigest()

    async def _make_room(self) -> None:
        left = sum(one.size for one in self._known.values()) - self._most
        for key, one in list(self._known.items()):
            if left > 0 and not self._held[key] and _has_succeeded(one.path):
                del self._known[key]
                left -= one.size
                await self._in_thread(partial(os.unlink, one.path.result()))
