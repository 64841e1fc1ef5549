"""What all programs say things with, so that it can be seen what was done, and how often."""

import os
import signal
from pathlib import Path


def say(text: str) -> None:
    """Write *text* down; the process is killed before, if that is what the run is for."""
    if os.environ.get("KILLED_BEFORE") == text:
        os.kill(os.getpid(), signal.SIGKILL)
    with Path("said.txt").open("a") as said:
        said.write(f"{text}\n")
