"""One machine: a data folder, a server on it that gets killed, and the next one standing by."""

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from signal import SIGKILL

SCRIPT = Path(__file__).with_name("server_process.py")
SETTINGS = {"WFCORE_INTERRUPTED_GRACE": "1h", "WFCORE_CONCURRENCY": "6"}
TESTS = Path(__file__).parents[1]


class Machine:
    """`url` is where the server of this round answers. *plants* are bugs it shall have."""

    def __init__(self, folder: Path, plants: Sequence[str] = ()) -> None:
        self.data = folder / "data"
        self.ledger = folder / "ledger"
        self.log = folder / "log"
        self.url = ""
        self._argv = [sys.executable, str(SCRIPT), *plants]
        self._next = self._stand_by()
        self._server: subprocess.Popen[str] | None = None

    def _stand_by(self) -> "subprocess.Popen[str]":
        """A process with everything imported, which serves at a word."""
        env = {**os.environ, **SETTINGS, "WFCORE_DATA": str(self.data), "PYTHONPATH": str(TESTS)}
        pipe = subprocess.PIPE
        with self.log.open("ab") as log:
            return subprocess.Popen(
                self._argv, env=env, stdin=pipe, stdout=pipe, stderr=log, text=True
            )

    def serve(self) -> None:
        """Begin a round."""
        self._server, self._next = self._next, self._stand_by()
        assert self._server.stdin
        assert self._server.stdout
        self._server.stdin.write("serve\n")
        self._server.stdin.flush()
        self.url = self._server.stdout.readline().strip()
        assert self.url, self.log.read_text()

    def kill(self) -> list[int]:
        """
        kill -9 for server and spawner. What is still alive a second later of their steps.
        """
        assert self._server
        children = _children(self._server.pid)
        for pid in (self._server.pid, *children):
            os.kill(pid, SIGKILL)
        _reap(self._server)
        self._server = None
        deadline = time.monotonic() + 1
        while (alive := self._steps()) and time.monotonic() < deadline:
            time.sleep(0.005)
        return alive

    def _steps(self) -> list[int]:
        """Processes with the ledger in their environment: steps, and what they started."""
        mark = f"WF_VAR_ledger={self.ledger}".encode()
        return [pid for pid in _processes() if mark in _read(pid, "environ")]

    def close(self) -> None:
        """End everything, what a planted bug left behind too."""
        for process in (self._server, self._next):
            if process is not None:
                process.kill()
                _reap(process)
        for pid in self._steps():
            os.kill(pid, SIGKILL)


def _reap(process: "subprocess.Popen[str]") -> None:
    process.wait()
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            pipe.close()


def _processes() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def _children(parent: int) -> list[int]:
    return [pid for pid in _processes() if _parent(pid) == parent]


def _parent(pid: int) -> int:
    fields = _read(pid, "stat").rpartition(b")")[2].split()
    return int(fields[1]) if fields else 0


def _read(pid: int, name: str) -> bytes:
    try:
        return Path(f"/proc/{pid}/{name}").read_bytes()
    except OSError:
        return b""  # it is gone, or somebody else's
