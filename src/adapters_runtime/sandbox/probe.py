"""
The probe: what a step can see and do, tried in the step's own process just before its program.

The results choose the level of isolation, not the features that the machine claims to support. A
probe passes through the same code as every step. Standard library only.
"""

import marshal
import os
import socket
from collections.abc import Callable
from typing import Any

from adapters_runtime.sandbox.isolation import syscalls


def report(canary: dict[str, Any], uncounted: str | None) -> None:
    """
    Write to stdout what is visible of the *canary* (a file, a port and a process of the server).

    *uncounted*: why no control group counts memory, which is passed on.
    """
    status = _status()
    seen = {
        "file": _works(lambda: os.close(os.open(canary["file"], os.O_RDONLY))),
        "process": _works(lambda: os.kill(canary["process"], 0)),
        "port": _works(lambda: _connect(canary["port"])),
        "root": _works(lambda: os.listdir("/root")) or _works(lambda: os.listdir("/var/lib")),
        "new namespaces": _works(lambda: syscalls.unshare(syscalls.NEW_USER)),
        "privileges": status.get("NoNewPrivs") != "1" or int(status.get("CapPrm", "1"), 16) != 0,
        "all system calls": status.get("Seccomp") != "2",
        "user": os.getuid(),
        "process number": os.getpid(),
        "disk": _size_of_folder(),
        "uncounted": uncounted,
    }
    os.write(1, marshal.dumps(seen))


def _works(act: Callable[[], object]) -> bool:
    try:
        act()
    except OSError:
        return False
    return True


def _connect(port: int) -> None:
    with socket.socket() as tried:
        tried.settimeout(1)
        tried.connect(("127.0.0.1", port))


def _size_of_folder() -> int:
    facts = os.statvfs(".")
    return facts.f_blocks * facts.f_frsize


def _status() -> dict[str, str]:
    try:
        with open("/proc/self/status") as status:
            pairs = (line.split(":", 1) for line in status)
            return {name: value.strip() for name, value in pairs}
    except OSError:
        return {}
