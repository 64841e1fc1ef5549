"""
Where the servers of a chaos run come from: everything imported once, then forked for each.

For each line on stdin, a JSON object, a server process is started and its id printed. `env`: its
settings. `log`: where it writes. `clock`: a file that says by how many milliseconds its clock is
wrong, at any moment. `policy`: what is hastened, so that seconds do for minutes. `plants`:
functions of `chaos.planted` to call before it serves. It is `wfcore serve` in every other respect.
"""

import json
import mmap
import os
import signal
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import asyncpg  # noqa: F401 - loaded before the fork, as are those below
import nats  # noqa: F401
import obstore  # noqa: F401
from attrs import evolve

import wfserver.commands.serve
import wfserver.serving.server  # noqa: F401
from adapters_runtime.system import SystemClock
from tests.proofs.chaos import planted
from wfserver.cli import main
from wfserver.serving import serve as serving


def skewed(file: Path) -> None:
    """Let the clock of this process be wrong by as much as *file* says now."""
    with file.open("rb") as opened:
        ahead = mmap.mmap(opened.fileno(), 8, prot=mmap.PROT_READ)
    wall, told, seconds = SystemClock._wall, time.time_ns, time.time

    def ms() -> int:
        return int.from_bytes(ahead[:8], "little", signed=True)

    SystemClock._wall = lambda self: wall(self) + ms()  # type: ignore[method-assign]
    time.time_ns = lambda: told() + ms() * 1_000_000
    time.time = lambda: seconds() + ms() / 1_000


def hastened(policy: Mapping[str, int]) -> None:
    """Let the server follow *policy* where no setting says so."""
    opened = serving.open_system

    def open_system(settings: Any, **parts: Any) -> Any:
        return opened(evolve(settings, policy=evolve(settings.policy, **policy)), **parts)

    serving.open_system = open_system


def serve(told: Mapping[str, Any]) -> int:
    """What a process of its own would do from here on; its exit status."""
    log = os.open(told["log"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    for number, file in ((0, os.open(os.devnull, os.O_RDONLY)), (1, log), (2, log)):
        os.dup2(file, number)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.environ.update(told["env"])
    for name in told["plants"]:
        getattr(planted, name)()
    hastened(told["policy"])
    skewed(Path(told["clock"]))
    return main(["serve", "--port", "0"])


if __name__ == "__main__":
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while line := sys.stdin.readline():
        pid = os.fork()
        if pid == 0:
            status = 1
            try:
                status = serve(json.loads(line))
            finally:
                os._exit(status)
        print(pid, flush=True)
