"""
The private folders of steps: their creation, and their removal whatever they contain.

Each server process holds a lock on a folder of its own below the root. The lock ends with the
process, so the next server to start recognizes and removes the folders of dead processes.
"""

import fcntl
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path

from attrs import frozen

from adapters_runtime.sandbox.isolation.config import CONTEXT, FILES, FOLDERS, OUTPUT, STATE
from adapters_runtime.sandbox.workdir import FOLDER

_PRIVATE = 0o700
_PASSABLE = 0o711
_PLAIN = 16


@frozen
class StepFolder:
    """
    The folder of one attempt, at the path that the attempt sees. The supervisor creates it.

    Paths are text, because they go into environments. `work`, the current folder of the step, is
    empty at the start.
    """

    path: str
    work: str
    home: str
    tmp: str
    artifacts: str
    context: str
    output: str
    state: str
    files: str

    @classmethod
    def at(cls, path: str) -> "StepFolder":
        """The folder at *path*, not created yet."""
        return cls(path, *(f"{path}/{name}" for name in (*FOLDERS, CONTEXT, OUTPUT, STATE, FILES)))

    def remove_if_plain(self) -> bool:
        """
        Remove the folder if it contains hardly more than at the start; returns whether it is gone.

        For most steps this takes less time than a start of a thread.
        """
        try:
            with os.scandir(self.path) as entries:
                found = [entry for entry, _ in zip(entries, range(_PLAIN + 1), strict=False)]
            if len(found) > _PLAIN:
                return False
            for entry in found:
                remove = os.rmdir if entry.is_dir(follow_symlinks=False) else os.unlink
                remove(entry.path)
            os.rmdir(self.path)
        except FileNotFoundError:
            return not os.path.lexists(self.path)
        except OSError:
            return False
        return True

    def remove(self) -> None:
        """Remove the folder with everything in it."""
        remove_tree(Path(self.path))


class Folders:
    """
    The folder of this process below *root*, with the folders of its steps.

    *passable*: other users may pass through it to names that they know.
    """

    def __init__(self, root: Path, passable: bool = False) -> None:
        root.mkdir(_PRIVATE, parents=True, exist_ok=True)
        self._numbers = count(1)
        with _locked(root):
            _remove_leftovers(root)
            self._own = _unused(root)
            self._own.mkdir(_PRIVATE)
            self._own.chmod(_PASSABLE if passable else _PRIVATE)
            self._lock = os.open(self._own, FOLDER)
            fcntl.flock(self._lock, fcntl.LOCK_EX)

    @property
    def own(self) -> Path:
        """The folder of this process."""
        return self._own

    def next(self) -> StepFolder:
        """The folder for the next step, not created yet."""
        return StepFolder.at(f"{self._own}/{next(self._numbers)}")

    def close(self) -> None:
        """Remove this process's folder. Safe to call twice."""
        if self._lock >= 0:
            remove_tree(self._own)
            os.close(self._lock)
            self._lock = -1


def remove_tree(path: Path) -> None:
    """
    Remove *path* with everything below it, as far as permissions allow. Links are never followed.

    Each folder inside is moved to the top before it is emptied, so two descriptors and short names
    are enough for any depth.
    """
    with suppress(OSError):  # what cannot be removed (a mount, say) is tried at the next start
        if not stat.S_ISDIR(os.lstat(path).st_mode):
            path.unlink()
            return
        os.chmod(path, _PRIVATE)
        top = os.open(path, FOLDER)
        try:
            _empty(top)
        finally:
            os.close(top)
        path.rmdir()


def _empty(top: int) -> None:
    token = secrets.token_hex(8)  # for names that cannot exist in there
    new_names = (f".{token}-{number}" for number in count())
    waiting = _empty_one(top, top, new_names)
    while waiting:
        name = waiting.pop()
        with suppress(OSError):
            folder = os.open(name, FOLDER, dir_fd=top)
            try:
                waiting += _empty_one(folder, top, new_names)
            finally:
                os.close(folder)
            os.rmdir(name, dir_fd=top)


def _empty_one(folder: int, top: int, new_names: Iterator[str]) -> list[str]:
    """
    Remove the content of *folder*, but move its non-empty subfolders to *top*.

    Returns the names of the moved subfolders.
    """
    moved: list[str] = []
    with os.scandir(folder) as entries:
        found = list(entries)
    for entry in found:
        with suppress(OSError):
            if not entry.is_dir(follow_symlinks=False):
                os.unlink(entry.name, dir_fd=folder)
            elif not _remove_if_empty(entry.name, folder):
                os.chmod(entry.name, _PRIVATE, dir_fd=folder)
                new_name = next(new_names)
                os.rename(entry.name, new_name, src_dir_fd=folder, dst_dir_fd=top)
                moved.append(new_name)
    return moved


def _remove_if_empty(name: str, folder: int) -> bool:
    try:
        os.rmdir(name, dir_fd=folder)
    except OSError:
        return False
    return True


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    fd = os.open(folder, FOLDER)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        os.close(fd)


def _unused(root: Path) -> Path:
    names = (root / f"{os.getpid()}-{number}" for number in count())
    return next(path for path in names if not path.exists())


def _remove_leftovers(root: Path) -> None:
    for entry in os.scandir(root):
        if entry.is_dir(follow_symlinks=False) and _is_abandoned(entry.path):
            remove_tree(Path(entry.path))


def _is_abandoned(path: str) -> bool:
    """Whether nobody holds the lock on the folder."""
    fd = os.open(path, FOLDER)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    finally:
        os.close(fd)
    return True
