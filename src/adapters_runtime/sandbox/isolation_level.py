"""
The level of isolation of steps on this machine: the strongest whose probe step is confined.

For each level, the strongest first, a spawner runs a probe step in the usual way. The probe tries
to reach a file, a port and a process of the server, and the level counts only if the probe cannot.
That takes some tens of milliseconds, once per process.
"""

import asyncio
import errno
import hashlib
import marshal
import os
import secrets
import shutil
import socket
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from attrs import frozen

from adapters_runtime.sandbox.client import LaunchOrder, NotStarted, Spawner
from adapters_runtime.sandbox.isolation.config import (
    LADDER,
    LANDLOCK,
    NAMESPACE,
    PROCESS,
    STEP_DIR,
    UID,
    SandboxConfig,
)
from adapters_runtime.sandbox.shortage import describe
from adapters_runtime.sandbox.step_folders import Folders, StepFolder

_PROBE_S = 10.0
_LIMITS = {"core": 1}
_PASSING = (errno.EMFILE, errno.ENFILE, errno.EAGAIN, errno.ENOMEM)
"""
Errors that pass, and so prove nothing about a level. Not ENOSPC, by which a kernel refuses
namespaces.
"""

_SEEN = {
    "file": "the probe could read a file of the server's",
    "port": "the probe could connect to a port of the server's",
    "process": "the probe could signal the server",
    "root": "the probe could list folders that are none of its business",
    "new namespaces": "the probe could make new namespaces",
    "privileges": "the probe kept privileges",
    "all system calls": "no system call is refused",
}
_UNSEEN = {
    NAMESPACE: tuple(_SEEN),
    UID: tuple(_SEEN),
    LANDLOCK: tuple(name for name in _SEEN if name != "process"),
    PROCESS: (),
}


@frozen
class Isolation:
    """
    The operator's settings for isolation.

    *forced*: the only level to use. *minimum*: the lowest level at which a step is run. *reads*,
    *writes*: paths that every step may see, or change. *hidden*: paths that no step sees. *closed*:
    ports that steps with network access cannot reach. *reserved*: ports that steps with network
    access cannot take (`SandboxConfig`).
    """

    forced: str | None = None
    minimum: str | None = None
    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()
    closed: tuple[tuple[str, int], ...] = ()
    reserved: tuple[int, ...] = ()

    @property
    def least(self) -> str:
        """
        The lowest level at which steps are run. An operator who forces a level accepts it.

        A server that is root runs no step as root unless forced: what root does to an inode, such
        as making a set-user-ID program, has consequences that no other user's changes have.
        """
        accepted = self.forced if self.forced in LADDER[2:] else None
        return self.minimum or accepted or (UID if os.geteuid() == 0 else LANDLOCK)


@frozen
class Level:
    """
    The level in use.

    *missed*: why each stronger level cannot be used, by name. *uncounted*: why no control group
    counts what steps use, or None if one does.
    """

    name: str
    missed: Mapping[str, str]
    uncounted: str | None = None

    def is_below(self, other: str) -> bool:
        return LADDER.index(self.name) > LADDER.index(other)


_found: dict[str | None, Level] = {}


async def find_level(forced: str | None, root: Path) -> Level:
    """
    The strongest level that can be used on this machine, or *forced* if that level can be used.
    CS-8.

    *root* is a folder of the server. The result is cached.
    """
    if forced not in _found:
        _found[forced] = await _find(forced, root)
    return _found[forced]


async def _find(forced: str | None, root: Path) -> Level:
    missed: dict[str, str] = {}
    for name in LADDER if forced is None else (forced,):
        found = await _try(name, root)
        if not isinstance(found, str):
            return Level(name, missed, found["uncounted"])
        missed[name] = found
    return Level(PROCESS, missed, "its probe failed")


async def _try(name: str, root: Path) -> str | Mapping[str, Any]:
    """
    What a step sees at the level *name*, or, as text, why this machine cannot confine a step at
    that level.

    Raises `NotStarted` or `OSError` if the machine lacks the means for a probe: a temporary
    shortage of processes must not lower the level for good.
    """
    folders = folders_for(name, root)
    spawner = Spawner(SandboxConfig(name, base=str(folders.own), disk=1 << 20))
    try:
        with _canary(folders.own) as canary:
            folder = StepFolder.at(STEP_DIR) if name == NAMESPACE else folders.next()
            ended = await spawner.run(_probe(folder, canary), _silent)
    except (NotStarted, OSError) as trouble:
        if trouble.errno in _PASSING:
            raise
        return str(trouble)
    finally:
        await spawner.close()
        folders.close()
    if ended.unready and ended.errno in _PASSING:
        raise NotStarted(describe(ended.errno, ended.failure or ""), ended.errno)
    if ended.failure or ended.exit != 0:
        return ended.failure or f"a probe ended with status {ended.exit}"
    seen = marshal.loads(ended.stdout)  # noqa: S302 - from our own probe
    return _fault(name, seen) or seen


def _probe(folder: StepFolder, canary: dict[str, Any]) -> LaunchOrder:
    shell = shutil.which("sh", path="/bin:/usr/bin") or "/bin/sh"
    return LaunchOrder(
        argv=[shell, "-c", ":"],
        env={},
        folder=folder.path,
        cwd=folder.work,
        limits=_LIMITS,
        timeout_s=_PROBE_S,
        stdout_bytes=65_536,
        stderr_bytes=65_536,
        output_bytes=65_536,
        memory=1 << 30,
        canary=canary,
    )


@contextmanager
def _canary(folder: Path) -> Iterator[dict[str, Any]]:
    file = folder / "canary"
    file.write_text(secrets.token_hex())
    with closing(socket.create_server(("127.0.0.1", 0))) as port:
        yield {"file": str(file), "process": os.getpid(), "port": port.getsockname()[1]}
    file.unlink()


def _fault(name: str, seen: Mapping[str, Any]) -> str | None:
    faults = [text for fact, text in _SEEN.items() if fact in _UNSEEN[name] and seen[fact]]
    if name == NAMESPACE and (seen["process number"] > 3 or seen["disk"] > 1 << 21):
        faults.append("the probe was not in namespaces of its own")
    if name == UID and seen["user"] == os.geteuid():
        faults.append("the probe was the server's own user")
    return "; ".join(faults) or None


def folders_for(level: str, root: Path) -> Folders:
    """The folders for steps of *level*: below *root* if steps can reach it. Raises `OSError`."""
    return Folders(_common_root(root), passable=True) if level == UID else Folders(root)


def _common_root(root: Path) -> Path:
    """A folder that other users can reach."""
    digest = hashlib.sha256(str(root.absolute()).encode()).hexdigest()
    name = f"wfcore-steps-{os.geteuid()}-{digest[:16]}"
    shared = Path(os.environ.get("TMPDIR") or "/tmp") / name  # noqa: S108 - checked below
    shared.mkdir(0o711, exist_ok=True)
    facts = shared.lstat()
    if facts.st_uid != os.geteuid() or not shared.is_dir() or shared.is_symlink():
        raise OSError(17, f"{shared} is somebody else's")
    shared.chmod(0o711)
    return shared


async def _silent(stream: str, lines: str) -> None:
    raise AssertionError("a probe logs no lines")


def find_level_now(forced: str | None, root: Path) -> Level:
    """`find_level` for callers without a running event loop."""
    return asyncio.run(find_level(forced, root))
