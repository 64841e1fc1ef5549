"""A real server: a process of its own, a data folder, a socket on a free port."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from random import SystemRandom
from typing import TypeVar

T = TypeVar("T")
SERVE = (sys.executable, "-m", "wfserver", "serve")
PATIENCE_S = 60
"""How long to wait for what comes at once: a machine may have much else to do."""


class Server:
    """
    A server process that answers at `url`. What it prints is in `log`. Steps and tests meet in
    the folder `shared`.
    """

    def __init__(
        self, data: Path, settings: Mapping[str, str] | None = None, port: int = 0
    ) -> None:
        self.data = data
        self.log = data.with_suffix(".log")
        self.shared = shared(data.parent)
        env = {**os.environ, "WFCORE_DATA": str(data), "WFCORE_STEP_WRITES": str(self.shared)}
        env |= settings or {}
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                (*SERVE, "--port", str(port)),
                env=env,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
        assert self.process.stdout
        self.url = self.process.stdout.readline().rpartition(" ")[2].strip()
        if not self.url:
            self.kill()
            raise RuntimeError(self.log.read_text())

    def terminate(self) -> int:
        """SIGTERM, as an init system does; the exit status once it has ended."""
        self.process.send_signal(signal.SIGTERM)
        return self.ended()

    def kill(self) -> None:
        """kill -9: nothing is said, nothing is finished."""
        self.process.kill()
        self.ended()

    def ended(self, within_s: float = PATIENCE_S) -> int:
        """Its exit status, waited for."""
        status = self.process.wait(within_s)
        assert self.process.stdout
        self.process.stdout.close()
        return status


def free_port() -> int:
    """
    A port to tell a program of: none of those that the kernel hands out to whoever asks for any, so
    that nobody else has it meanwhile.
    """
    while True:
        port = SystemRandom().randrange(10_000, 32_000)
        with socket.socket() as tried, suppress(OSError):
            tried.bind(("127.0.0.1", port))
            return port


def hourly() -> str:
    """A cron expression for once an hour, half an hour away from now: no test is at work then."""
    return f"{(datetime.now(UTC).minute + 30) % 60} * * * *"


def shared(folder: Path) -> Path:
    """A folder that steps may write to, whoever they are, made in *folder*."""
    made = folder / "shared"
    made.mkdir(exist_ok=True)
    made.chmod(0o777)
    return made


def ledger(folder: Path) -> Path:
    """An empty file that steps may write to, whoever they are, made in a `shared` folder."""
    made = folder / "ledger"
    made.touch()
    made.chmod(0o666)
    return made


def until(holds: Callable[[], T], within_s: float = PATIENCE_S, what: str = "") -> T:
    """What *holds* gives, as soon as it is true. Fails where it is not in time."""
    deadline = time.monotonic() + within_s
    while not (found := holds()):
        assert time.monotonic() < deadline, f"not within {within_s} s: {what or holds}"
        time.sleep(0.01)
    return found
