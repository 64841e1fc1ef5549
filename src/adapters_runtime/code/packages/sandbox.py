"""
The sandbox of installers: the sandbox of code steps, with the network. PK-11; decision 49.

An installer runs like a step: at the same level of isolation, with one writable folder that is
removed afterwards. It sees its own program and the operator's settings for it, but neither the data
folder nor the environment. When all of its processes are dead, its files are copied out one by one,
so that only the server writes to the copies.
"""

import asyncio
import errno
import os
import shutil
import stat
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path

from attrs import field, frozen

from adapters_runtime.code.outputs import fault_of
from adapters_runtime.code.packages.program import LIMIT_S, error_line
from adapters_runtime.sandbox.client import Ended, LaunchOrder, NotStarted, Spawner, uninterrupted
from adapters_runtime.sandbox.isolation.config import (
    LANDLOCK,
    NAMESPACE,
    STEP_DIR,
    UID,
    Profile,
    SandboxConfig,
)
from adapters_runtime.sandbox.isolation_level import Isolation, Level, find_level, folders_for
from adapters_runtime.sandbox.step_folders import Folders, StepFolder
from adapters_runtime.sandbox.workdir import FILE, FOLDER
from wfcore.errors import PackagesUnavailable

HERE = "\0here"
"""The placeholder of the installer's folder, where its files are, in arguments and settings."""

LARGEST = 2 << 30
_DISK, _INODES = 3 << 30, 400_000
_MEMORY, _PROCESSES = 4 << 30, 4_096
_OUTPUT = 1 << 20
_MOST_LEVELS = 100
_CHUNK = 1 << 20
_LIMITS = {
    "data": 3 << 30,
    "file": LARGEST,
    "processes": _PROCESSES,
    "open_files": 1_024,
    "core": 1,
}


@frozen
class Program:
    """
    An installer with its arguments and files.

    `argv[0]` is a path. `files` are in `HERE`. The installer starts in an empty folder below
    `HERE`, and the content of that folder is kept. `readable`: further paths that it needs, such as
    its interpreter. `brought`: folders of the operator, which are copied if the installer could not
    reach them.
    """

    name: str
    argv: tuple[str, ...]
    environment: Mapping[str, str] = field(repr=False)
    files: Mapping[str, bytes] = field(factory=dict, repr=False)
    readable: tuple[str, ...] = ()
    brought: tuple[str, ...] = ()


@frozen
class Sandbox:
    """
    The sandbox on this machine. *isolation*: the operator's settings for code steps. *root*: the
    folder with the folders of running installers.
    """

    isolation: Isolation
    root: Path

    @asynccontextmanager
    async def run(self, program: Program) -> AsyncIterator[int | None]:
        """
        Run *program* to its end, and yield a descriptor of the folder with its files, or None if
        there are none.

        Raises `PackagesUnavailable` with the installer's error, and `OSError`.
        """
        level = await self._level()
        folders = folders_for(level.name, self.root)
        try:
            ended = await self._run(program, level, folders)
            try:
                _require_success(program, ended)
                yield ended.artifacts
            finally:
                if ended.artifacts is not None:
                    os.close(ended.artifacts)
        finally:
            folders.close()

    async def _level(self) -> Level:
        self.root.mkdir(0o700, parents=True, exist_ok=True)
        level, least = await find_level(self.isolation.forced, self.root), self.isolation.least
        if level.is_below(least):
            raise PackagesUnavailable(
                f"installers run in the sandbox of code steps, which has the level {level.name!r} "
                f"here, below WFCORE_MIN_ISOLATION={least}; "
                "wfcore doctor says how to get a better one"
            )
        return level

    async def _run(self, program: Program, level: Level, folders: Folders) -> Ended:
        spawner = Spawner(self._config(level, folders))
        try:
            return await spawner.run(await self._order(program, level, folders), _silent)
        except NotStarted as problem:
            message = f"{program.name} could not be started: {problem}"
            raise OSError(problem.errno or errno.EAGAIN, message) from None
        finally:
            await spawner.close()

    def _config(self, level: Level, folders: Folders) -> SandboxConfig:
        return SandboxConfig(
            level.name,
            base=str(folders.own),
            disk=_DISK,
            inodes=_INODES,
            reads=self.isolation.reads,
            hidden=self.isolation.hidden,
            closed=self.isolation.closed,
        )

    async def _order(self, program: Program, level: Level, folders: Folders) -> LaunchOrder:
        folder = StepFolder.at(STEP_DIR) if level.name == NAMESPACE else folders.next()
        brought = {path: path for path in program.brought}
        if level.name in (UID, LANDLOCK):
            places = (folders.own / f"brought-{number}" for number in count())
            for path in brought:
                brought[path] = await uninterrupted(asyncio.to_thread(_bring, path, next(places)))

        def resolved(text: str) -> str:
            for path, place in brought.items():
                text = text.replace(path, place)
            return text.replace(HERE, folder.path)

        return LaunchOrder(
            argv=[resolved(one) for one in program.argv],
            env={
                **{name: resolved(value) for name, value in program.environment.items()},
                "HOME": folder.home,
                "TMPDIR": folder.tmp,
                "LANG": "C.UTF-8",
            },
            folder=folder.path,
            cwd=folder.artifacts,
            limits=_LIMITS,
            timeout_s=LIMIT_S,
            stdout_bytes=_OUTPUT,
            stderr_bytes=_OUTPUT,
            output_bytes=0,
            memory=_MEMORY,
            files={name: _filled(content, resolved) for name, content in program.files.items()},
            profile=Profile(network=True, readable=(*program.readable, *_seen(brought))),
        )


def _bring(path: str, place: Path) -> str:
    """Copy a folder to *place*, for another user or a process that may not list its parents."""
    place.mkdir(0o755)
    place.chmod(0o755)
    shutil.copytree(path, place / Path(path).name, symlinks=True)
    return str(place / Path(path).name)


def _seen(brought: Mapping[str, str]) -> list[str]:
    """The paths that the installer may read, and list, which Python needs for imports."""
    return [now if now == path else str(Path(now).parent) for path, now in brought.items()]


def _filled(content: bytes, resolved: Callable[[str], str]) -> bytes:
    """The content of a file with placeholders resolved. Only text files have placeholders."""
    return resolved(content.decode()).encode() if HERE.encode() in content else content


def _require_success(program: Program, ended: Ended) -> None:
    fault = fault_of(ended, LIMIT_S, _OUTPUT)
    if fault is None and ended.artifacts_trouble is None:
        return
    if ended.exit and not (ended.reason or ended.failure):
        output = (ended.stdout + b"\n" + ended.stderr).decode("utf-8", "replace")
        why = f"could not install them: {error_line(output, Path(STEP_DIR))}"
    else:
        why = str((fault and (fault.error or fault.postponed)) or ended.artifacts_trouble)
    raise PackagesUnavailable(f"{program.name} {why}")


def read(left: int | None, name: str) -> bytes:
    """The content of a file that an installer left. Raises `OSError`, `PackagesUnavailable`."""
    if left is None:
        raise PackagesUnavailable("the installer left nothing")
    with open(os.open(name, FILE, dir_fd=left), "rb", buffering=0) as file:
        facts = os.fstat(file.fileno())
        if not stat.S_ISREG(facts.st_mode) or facts.st_size > LARGEST >> 4:
            raise PackagesUnavailable(f"{name} is no file, or too large")
        return file.readall()


def copy(left: int | None, target: Path) -> None:
    """
    Copy the regular files and folders that an installer left to the new folder *target*, with their
    times, to which compiled files refer.

    Raises `OSError`, and `PackagesUnavailable` for other files, files with several names, or more
    than `LARGEST` bytes.
    """
    target.mkdir()
    if left is not None:
        _Copying().folder(os.dup(left), target, 0)


class _Copying:
    def __init__(self) -> None:
        self._bytes = 0

    def folder(self, source: int, target: Path, depth: int) -> None:
        if depth > _MOST_LEVELS:
            os.close(source)
            raise PackagesUnavailable(f"their folders are deeper than {_MOST_LEVELS}")
        try:
            for name in sorted(os.listdir(source)):
                mode = os.stat(name, dir_fd=source, follow_symlinks=False).st_mode
                if stat.S_ISDIR(mode):
                    (target / name).mkdir()
                    self.folder(os.open(name, FOLDER, dir_fd=source), target / name, depth + 1)
                else:
                    self._file(os.open(name, FILE, dir_fd=source), target / name)
        finally:
            os.close(source)

    def _file(self, source: int, target: Path) -> None:
        with open(source, "rb", buffering=0) as file, open(target, "xb", buffering=0) as copied:
            facts = os.fstat(source)
            if not stat.S_ISREG(facts.st_mode) or facts.st_nlink != 1:
                raise PackagesUnavailable(f"{target.name} is no regular file with one name")
            self._bytes += facts.st_size
            if self._bytes > LARGEST:
                raise PackagesUnavailable(f"they take more than {LARGEST >> 20:,} MiB")
            while chunk := file.read(_CHUNK):
                copied.write(chunk)
            os.fchmod(copied.fileno(), 0o755 if facts.st_mode & 0o100 else 0o644)
            os.utime(copied.fileno(), ns=(facts.st_mtime_ns, facts.st_mtime_ns))


async def _silent(stream: str, lines: str) -> None:
    raise AssertionError("an installer logs no lines")
