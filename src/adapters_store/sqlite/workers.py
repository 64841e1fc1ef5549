"""
The living workers: each worker locks a file, and the operating system releases the lock when the
process ends.

A worker whose file is missing, or can be locked by another process, has ended.
"""

import fcntl
import os
from collections.abc import Collection, Sequence
from pathlib import Path
from urllib.parse import quote

from attrs import field, frozen

from adapters_store.private_folder import alone
from wfcore.errors import StoreUnavailable


@frozen(eq=False)
class Workers:
    """The folder of lock files, and the locks that this process holds."""

    folder: Path
    held: dict[str, int] = field(factory=dict)

    def enlist(self, worker: str) -> None:
        """
        Hold the lock of *worker* until `release`; the files of ended workers are removed.

        One process at a time enlists: a file that another process has created but not yet locked
        would count as the file of an ended worker. Raises `StoreUnavailable`.
        """
        if worker in self.held:
            return
        try:
            with alone(self.folder):
                self._remove_ended()
                while (lock := self._locked(worker)) is None:
                    pass
        except OSError as error:
            raise StoreUnavailable(detail=f"worker lock: {error}") from error
        self.held[worker] = lock

    def _remove_ended(self) -> None:
        """
        Remove the files of ended workers. No execution names most of these workers, so no query
        asks for them.
        """
        mine = {self._path(worker) for worker in self.held}
        for path in self.folder.glob("*.lock"):
            if path not in mine:
                _remove_if_ended(path)

    def _locked(self, worker: str) -> int | None:
        """
        The descriptor of the locked file; None if the file was removed between opening and locking.
        """
        path = self._path(worker)
        descriptor = os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.fstat(descriptor).st_nlink:
                return descriptor
        except OSError:
            os.close(descriptor)
            raise
        os.close(descriptor)
        return None

    def ended(self, workers: Collection[str]) -> Sequence[str]:
        """The workers of *workers* whose process has ended; their lock files are removed."""
        return [
            worker
            for worker in workers
            if worker not in self.held and _remove_if_ended(self._path(worker))
        ]

    def release(self) -> None:
        """Release every lock and remove the lock files."""
        while self.held:
            worker, descriptor = self.held.popitem()
            self._path(worker).unlink(missing_ok=True)
            os.close(descriptor)

    def _path(self, worker: str) -> Path:
        return self.folder / f"{quote(worker, safe='')}.lock"


def _remove_if_ended(path: Path) -> bool:
    """
    Remove the file of a worker if its process has ended. Returns whether the process has ended.
    """
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        return True
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        path.unlink(missing_ok=True)
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return True
