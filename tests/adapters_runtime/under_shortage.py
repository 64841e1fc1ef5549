"""Runs steps while the machine lacks something, and says how each went; see `test_shortage`."""

import asyncio
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from adapters_runtime.code.runner import CodeStepRunner
from adapters_runtime.sandbox.isolation.config import PROCESS
from adapters_runtime.sandbox.isolation_level import Isolation
from wfcore.model.workflow import Language
from wfcore.testing.contracts.steps import job, silent
from wfcore.testing.fakes_running import DictFiles

SPARES = 8
"""As many steps may still find a process that was made before."""

Undo = Callable[[], None]


def take_processes(pid: int, _: Path) -> Undo:
    """The spawner may start none."""
    before = resource.prlimit(pid, resource.RLIMIT_NPROC)
    resource.prlimit(pid, resource.RLIMIT_NPROC, (0, before[1]))
    return lambda: resource.prlimit(pid, resource.RLIMIT_NPROC, before) and None


def take_space(_: int, root: Path) -> Undo:
    """The disk is full to the last byte."""
    full = root.parent / "full"
    with full.open("wb", buffering=0) as file:
        try:
            while file.write(bytes(4_096)):
                pass
        except OSError:
            pass
    return full.unlink


def take_inodes(_: int, root: Path) -> Undo:
    """No more files fit on the disk."""
    made: list[Path] = []
    try:
        while True:
            made.append(root.parent / f"file-{len(made)}")
            made[-1].touch()
    except OSError:
        made.pop()
    return lambda: [one.unlink() for one in made] and None


async def main(lacking: str, root: Path) -> None:
    """A step while all is there, one while something lacks, one afterwards."""
    files = DictFiles()
    runner = CodeStepRunner(root, files, lambda: "art", isolation=Isolation(forced=PROCESS))
    try:
        await play(runner, TAKES[lacking], root)
    finally:
        await runner.close()


TAKES = {"processes": take_processes, "space": take_space, "inodes": take_inodes}


async def play(runner: CodeStepRunner, take: Callable[[int, Path], Undo], root: Path) -> None:
    end = await runner.run(job("echo 1", Language.BASH), silent)
    print("ran" if end.output == 1 else end)
    undo = take(runner.spawner_pid or 0, root)
    for _ in range(SPARES):
        end = await runner.run(job("echo 1", Language.BASH), silent)
        if end.output != 1:
            break
    print((end.postponed or str(end)).partition(" (")[0])
    undo()
    for _ in range(SPARES):  # spares that were made meanwhile have failed to become ready
        end = await runner.run(job("echo 1", Language.BASH), silent)
        if end.postponed is None:
            break
    print("ran" if end.output == 1 else end)


if __name__ == "__main__":
    lacking, place = sys.argv[1], Path(sys.argv[2])
    if lacking != "processes":
        place.mkdir()
        options = "size=256k" if lacking == "space" else "size=4m,nr_inodes=40"
        subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(place)], check=True)
        place /= "steps"
    asyncio.run(main(lacking, place))
