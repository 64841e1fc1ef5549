"""
Where the servers of the kill loop come from: everything imported once, with a planted bug or none.

For each line on stdin a server is forked, which says its process id and its URL on stdout, and
an empty line if it ends by itself.
"""

import importlib
import os
import signal
import sys

from wfserver.serve import ServerInfo, run
from wfserver.settings import settings_from


def say(info: ServerInfo) -> None:
    print(os.getpid(), info.url, flush=True)


def serve() -> None:
    """What a process of its own would do from here on."""
    os.dup2(os.open(os.devnull, os.O_RDONLY), sys.stdin.fileno())
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    run(settings_from(port=0), say)


signal.signal(signal.SIGCHLD, signal.SIG_IGN)
for name in sys.argv[1:]:
    importlib.import_module(f"proof.planted.{name}").plant()
while sys.stdin.readline():
    if os.fork() == 0:
        try:
            serve()
        finally:
            print(flush=True)
        break
