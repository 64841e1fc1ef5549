"""
The services of a compose file or of manifests, as processes of this machine.

What a container would have of its own is replaced: its folders by folders of the test, its port by
a free one, and the names of others by where they are.
"""

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml
from attrs import define, field

from tests.system.deploy.containerfile import HERE, lines_of
from tests.wfserver.conftest import environment

IMAGE = dict(lines_of())
READY_S = 60


def compose(variables: Mapping[str, str]) -> dict[str, Any]:
    """The compose file, its `${NAME:?}` replaced."""
    text = (HERE / "deploy" / "compose" / "compose.yaml").read_text()
    comments, _, rest = text.partition("\nname:")
    assert comments.startswith("#")
    found = re.sub(r"\$\{(\w+):\?\}", lambda name: variables[name[1]], f"name:{rest}")
    assert "${" not in found
    return dict(yaml.safe_load(found))


def manifests() -> list[dict[str, Any]]:
    """Every object of the manifests."""
    text = (HERE / "deploy" / "kubernetes" / "wfcore.yaml").read_text()
    return list(yaml.safe_load(text)["items"])


@define
class Server:
    """A container of our image: what it runs as a process, with *arguments* and *env*."""

    arguments: Sequence[str]
    env: Mapping[str, str]
    folder: Path
    process: "subprocess.Popen[bytes] | None" = field(default=None, repr=False)

    @property
    def environ(self) -> dict[str, str]:
        """That of the image, what it was given, and where this test has its folders."""
        image = dict(word.split("=", 1) for word in shlex.split(IMAGE["ENV"]))
        here = {"WFCORE_DATA": str(self.folder), "WFCORE_HOST": "127.0.0.1"}
        return environment() | {**image, "PATH": environment()["PATH"], **self.env, **here}

    def command(self, *arguments: str) -> "subprocess.CompletedProcess[str]":
        """`exec`: a command of the image in this container."""
        line = [sys.executable, "-m", "wfserver", *arguments]
        done = subprocess.run(line, env=self.environ, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        return done

    def start(self) -> None:
        """Run the entry point of the image."""
        assert json.loads(IMAGE["ENTRYPOINT"])[-1] == "wfcore"
        line = [sys.executable, "-m", "wfserver", *self.arguments, "--port", "0"]
        with (self.folder.parent / f"{self.folder.name}.log").open("w") as log:
            self.process = subprocess.Popen(
                line, env=self.environ, stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )

    def ready(self) -> str:
        """Wait until it says that it answers; its address, whatever its public one is."""
        assert self.process is not None
        note, deadline = self.folder / "server.json", time.monotonic() + READY_S
        while not note.exists():
            assert self.process.poll() is None, self.said
            assert time.monotonic() < deadline, self.said
            time.sleep(0.05)
        return f"http://127.0.0.1:{_port(self.process.pid)}"

    def healthy(self) -> None:
        """The image's own healthcheck says so."""
        port = self.ready().rsplit(":", 1)[1]
        check = json.loads(IMAGE["HEALTHCHECK"][IMAGE["HEALTHCHECK"].index("[") :])
        check[0] = sys.executable
        subprocess.run(check, env={"WFCORE_PORT": port}, check=True, timeout=30)

    @property
    def said(self) -> str:
        return (self.folder.parent / f"{self.folder.name}.log").read_text()

    def stop(self, grace_s: float) -> int:
        """SIGTERM; its exit status, which comes within the grace."""
        assert self.process is not None
        self.process.send_signal(signal.Signals[IMAGE["STOPSIGNAL"]])
        try:
            return self.process.wait(grace_s)
        finally:
            self.process.kill()
            self.process.wait()


def _port(pid: int) -> int:
    """Where a process listens, as the kernel says."""
    links = {os.readlink(path) for path in Path(f"/proc/{pid}/fd").iterdir() if path.is_symlink()}
    rows = [line.split() for line in Path(f"/proc/{pid}/net/tcp").read_text().splitlines()[1:]]
    listening = "0A"
    (found,) = (row[1] for row in rows if row[3] == listening and f"socket:[{row[9]}]" in links)
    return int(found.split(":")[1], 16)
