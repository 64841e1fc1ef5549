"""What the spawner's forks inherit of its signals."""

import subprocess
import sys

PROGRAM = """
import os, signal, socket
from adapters_runtime.sandbox import spawner
from adapters_runtime.sandbox.isolation.config import Profile

class Level:
    clone_flags = 0

def supervise(*_):
    child = os.fork()
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)  # SIGCHLD has come, before any wake-up pipe of its own

spawner.supervise = supervise
signal.signal(signal.SIGCHLD, lambda *_: None)
ours, theirs = socket.socketpair(type=socket.SOCK_SEQPACKET)
spawner_here = spawner._SpawnerLoop(theirs, Level())
spawner_here._fork(Profile())
ours.close()
spawner_here.run()
"""


def test_a_child_that_dies_early_is_no_bad_file_descriptor() -> None:
    """A supervisor whose child dies before it listens says nothing on the server's stderr."""
    ended = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=30
    )
    assert (ended.returncode, ended.stderr) == (0, "")
