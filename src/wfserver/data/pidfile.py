"""Where the server of a data folder answers: noted when it does, for commands beside it."""

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
    """Something to note the URL with; the note goes when the server ends."""
    note = ServerNote(data / FILE)
    try:
        yield note
    finally:
        note.clear()


class ServerNote:
    """The note of this process, which one that it forks may write but not take away."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._pid = os.getpid()

    def here(self, url: str) -> None:
        """Write down that this process answers at *url*."""
        fresh = self._path.with_suffix(f".{self._pid}")
        fresh.write_text(json.dumps({"url": url, "pid": self._pid}) + "\n", "utf-8")
        fresh.replace(self._path)

    def clear(self) -> None:
        """Take the note away, unless another server wrote its own over it."""
        if os.getpid() == self._pid == _read(self._path).get("pid"):
            self._path.unlink(missing_ok=True)


def noted_url(data: Path) -> str | None:
    """Where a server of this data folder said that it answers. It may have been killed since."""
    url = _read(data / FILE).get("url")
    return url if isinstance(url, str) and _URL.fullmatch(url) else None


def is_serving(settings: "Settings") -> bool | None:
    """
    Whether a server works on this store: noted in the data folder, and alive.

    None: it cannot be known, because the store may have servers on other machines.
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
    """The address to put in front of paths: the public one, the running one, or the default."""
    own = f"http://{settings.host}:{settings.port}"
    return settings.public_url or noted_url(settings.data) or own


def _read(path: Path) -> dict[str, object]:
    """What is noted; nothing where the file is missing or says nothing that can be understood."""
    with suppress(OSError, ValueError, RecursionError):
        if path.is_file() and path.stat().st_size <= _MOST_BYTES:
            note = json.loads(path.read_text("utf-8"))
            if isinstance(note, dict):
                return note
    return {}
