"""
Where the servers of the kill loop come from: everything imported once, with a planted bug or none.

For each line on stdin a server is forked, which says its process id and its URL on stdout, and
an empty line if it ends by itself. The line says how far its clock is ahead, in ms.
"""

import importlib
import os
import signal
import sys

from adapters_runtime.cron import CronCalendar
from adapters_runtime.system import SystemClock
from tests.proofs.kills.often import Often
from wfserver.serving.serve import ServerInfo, run
from wfserver.settings.record import settings_from


def say(info: ServerInfo) -> None:
    print(os.getpid(), info.url, flush=True)


def serve(ahead_ms: int) -> None:
    """What a process of its own would do from here on."""
    wall, steady = SystemClock._wall, SystemClock._steady
    # Both: time went on while nobody ran; the wall clock alone would be a jump.
    SystemClock._wall = lambda self: wall(self) + ahead_ms  # type: ignore[method-assign]
    SystemClock._steady = lambda self: steady(self) + ahead_ms  # type: ignore[method-assign]
    os.dup2(os.open(os.devnull, os.O_RDONLY), sys.stdin.fileno())
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    run(settings_from(port=0), say)


CronCalendar.next_local = Often.next_local  # type: ignore[method-assign]
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
for name in sys.argv[1:]:
    importlib.import_module(f"tests.proofs.kills.planted.{name}").plant()
while asked := sys.stdin.readline():
    if os.fork() == 0:
        try:
            serve(int(asked))
        finally:
            print(flush=True)
        break
