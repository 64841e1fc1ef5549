"""
The note in a data folder: the process that serves the folder, and its URL, for commands beside it.
"""

import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from wfserver.settings.record import Settings

FILE = "server.json"
_MOST_BYTES = 4_096
_LARGEST_PID = 2**31 - 1
_URL = re.compile(r"https?://[!-~]+")


@contextmanager
def server_note(data: Path) -> Iterator["ServerNote"]:
    """A `ServerNote` that is removed on leaving."""
    note = ServerNote(data / FILE)
    try:
        yield note
    finally:
        note.clear()


class ServerNote:
    """The note of this process. A forked child may write the note but does not remove it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._pid = os.getpid()

    def here(self, url: str) -> None:
        """Write that this process answers at *url*."""
        fresh = self._path.with_suffix(f".{self._pid}")
        fresh.write_text(json.dumps({"url": url, "pid": self._pid}) + "\n", "utf-8")
        fresh.replace(self._path)

    def clear(self) -> None:
        """Remove the note, unless another server has replaced it."""
        if os.getpid() == self._pid == _read(self._path).get("pid"):
            self._path.unlink(missing_ok=True)


def noted_url(data: Path) -> str | None:
    """The URL in the note; None: there is none. The server may have been killed since."""
    url = _read(data / FILE).get("url")
    return url if isinstance(url, str) and _URL.fullmatch(url) else None


def is_serving(settings: "Settings") -> bool | None:
    """
    Whether a server works on this store: the process in the data folder's note is alive.

    None: unknown, because the store may have servers on other machines.
    """
    pid = _read(settings.data / FILE).get("pid")
    if type(pid) is int and 0 < pid <= _LARGEST_PID and _alive(pid):
        return True
    shared = settings.store is not None and not settings.store.startswith("sqlite:")
    return None if shared else False


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def base_url(settings: "Settings") -> str:
    """The address before paths: the public URL, the running server's URL, or the default URL."""
    own = f"http://{settings.host}:{settings.port}"
    return settings.public_url or noted_url(settings.data) or own


def _read(path: Path) -> dict[str, object]:
    """The note; empty if the file is missing or cannot be read."""
    with suppress(OSError, ValueError, RecursionError):
        if path.is_file() and path.stat().st_size <= _MOST_BYTES:
            note = json.loads(path.read_text("utf-8"))
            if isinstance(note, dict):
                return note
    return {}
