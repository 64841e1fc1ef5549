"""One machine: a data folder, and servers on it that get killed one after the other."""

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from signal import SIGCONT, SIGKILL

from tests.proofs.kills.faults import FOLDER, Faults

SCRIPT = Path(__file__).with_name("server_process.py")
LATER_MS = 2 * 3_600_000
"""How far the clock of a server is ahead that serves later."""
GRACE_MS = 200
"""How long after its instant a schedule is on time."""
SETTINGS = {
    "WFCORE_INTERRUPTED_GRACE": "1h",
    "WFCORE_CONCURRENCY": "6",
    "WFCORE_ALLOW_PRIVATE_CALLBACKS": "1",
    "WFCORE_MISSED_RUNS": "once",
    "WFCORE_SCHEDULE_GRACE": f"{GRACE_MS}ms",
}
SHORT_LEASE = {"WFCORE_LEASE": "2s"}
"""So that a planted server that froze need not be waited for long."""
ROOT = Path(__file__).parents[3]


class Machine:
    """
    `url` is where the server of this round answers. *post*: the URL of a mail server.
    *plants* are bugs it shall have. *store*: the URL of a store that two servers share in each
    round; None: one server and a file.
    """

    def __init__(
        self, folder: Path, post: str, plants: Sequence[str] = (), store: str | None = None
    ) -> None:
        self.data = folder / "data"
        self.ledger = folder / "outside" / "ledger"
        self.ledger.parent.mkdir()
        self.ledger.touch()
        self.ledger.chmod(0o666)  # steps are nobody in particular
        self.faults = Faults(folder / "faults")
        self.url = ""
        self.store = store
        self._log = folder / "log"
        self._hold = self.ledger.with_name("ledger.hold")
        self._pids: list[int] = []
        env = {**os.environ, **SETTINGS, "PYTHONPATH": str(ROOT)}
        env |= {"WFCORE_DATA": str(self.data), "WFCORE_STEP_WRITES": str(self.ledger.parent)}
        env |= {FOLDER: str(self.faults.folder), **(SHORT_LEASE if plants or store else {})}
        env |= {"WFCORE_SMTP_URL": post, "WFCORE_MAIL_FROM": "wfcore@example.org"}
        env |= {"WFCORE_STORE": store} if store else {}
        self._servers = 2 if store else 1
        argv = [sys.executable, "-u", str(SCRIPT), *plants]
        with self._log.open("ab") as log:
            self._source = subprocess.Popen(
                argv, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log
            )

    def serve(self, later: bool = False) -> None:
        """
        Start the next server; it answers when this returns. The clock of one that serves *later*
        is beyond the grace of everything that was interrupted.
        """
        for _ in range(self._servers):
            self._serve(later)

    def _serve(self, later: bool) -> None:
        assert self._source.stdin
        assert self._source.stdout
        self._source.stdin.write(f"{LATER_MS if later else 0}\n".encode())
        self._source.stdin.flush()
        said = self._source.stdout.readline().decode().split()
        assert said, self._log.read_text()
        self._pids.append(int(said[0]))
        self.url = said[1]

    def kill(self, alone: bool = False) -> list[int]:
        """
        kill -9 for servers, and for their spawners unless they die *alone*. What is still alive
        a second later of all of them and their steps.
        """
        spawners = [child for pid in self._pids for child in _children(pid)]
        all = [*self._pids, *spawners]
        for pid in self._pids if alone else all:
            with suppress(ProcessLookupError):
                os.kill(pid, SIGKILL)
        self._pids.clear()
        deadline = time.monotonic() + 1
        while (alive := self._alive(all)) and time.monotonic() < deadline:
            time.sleep(0.005)
        self.release()
        return alive

    def hold(self) -> None:
        """Steps that begin from now on do not go on."""
        self._hold.touch()

    def release(self) -> None:
        """Steps go on again."""
        self._hold.unlink(missing_ok=True)

    def wake(self) -> None:
        """Let every server go on that is frozen."""
        for pid in self._pids:
            os.kill(pid, SIGCONT)

    def _alive(self, killed: Sequence[int]) -> list[int]:
        return [*self._steps(), *(pid for pid in killed if _state(pid) not in (b"", b"Z"))]

    def _steps(self) -> list[int]:
        """Processes with the ledger in their environment: steps, and what they started."""
        mark = f"WF_VAR_ledger={self.ledger}\0".encode()
        return [pid for pid in _processes() if mark in _read(pid, "environ")]

    def close(self) -> None:
        """End everything, what a planted bug left behind too."""
        self.kill()
        with self._source:
            self._source.kill()
        for pid in self._steps():
            with suppress(ProcessLookupError):
                os.kill(pid, SIGKILL)


def _processes() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def _children(parent: int) -> list[int]:
    return [pid for pid in _processes() if _parent(pid) == parent]


def _parent(pid: int) -> int:
    fields = _fields(pid)
    return int(fields[1]) if fields else 0


def _state(pid: int) -> bytes:
    fields = _fields(pid)
    return fields[0] if fields else b""


def _fields(pid: int) -> list[bytes]:
    """What `/proc` says of a process after its name: state, parent, ..."""
    return _read(pid, "stat").rpartition(b")")[2].split()


def _read(pid: int, name: str) -> bytes:
    try:
        return Path(f"/proc/{pid}/{name}").read_bytes()
    except OSError:
        return b""  # it is gone, or somebody else's
