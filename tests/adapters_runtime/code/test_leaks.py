"""After many steps there is nothing more than before: `LEAK_STEPS=1000` says how many."""

import asyncio
import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from adapters_runtime.code.runner import CodeStepRunner
from adapters_runtime.sandbox.isolation.config import LANDLOCK
from adapters_runtime.sandbox.isolation_level import Isolation
from wfcore.model.workflow import Language
from wfcore.testing.contracts.steps import job, silent, until

STEPS = int(os.environ.get("LEAK_STEPS", "400"))
AT_ONCE = 16
ROUND = (
    ("true", Language.BASH),
    ("echo x > $WF_ARTIFACTS/a", Language.BASH),
    ("setsid sleep 600 & exit 1", Language.BASH),
    ("true", Language.BASH),
    ("import os; os.fork() or os.setsid(); open('left', 'w').close()", Language.PYTHON),
)
MOST_SUPERVISORS = 2 * AT_ONCE
SETTLED_AFTER = 100
MEMORY_KB = 4_096
"""What a process may grow by in between: an allocator's pages, not a leak of 5 KB a step."""


async def _steps(runner: CodeStepRunner, number: int) -> None:
    places = asyncio.Semaphore(AT_ONCE)

    async def one(which: int) -> None:
        source, language = ROUND[which % len(ROUND)]
        async with places:
            end = await runner.run(job(source, language), silent)
        assert (end.error is None) == ("exit 1" not in source), end.error

    await asyncio.gather(*(one(which) for which in range(number)))


async def _facts(spawner: int) -> Mapping[str, int]:
    """What there is of the server and of the spawner once all is quiet."""
    quiet: list[int] = []

    def is_quiet() -> bool:
        quiet.append(len(_children(spawner)))
        return quiet[-25:].count(quiet[-1]) == 25

    await until(is_quiet, within_s=60)
    supervisors = _children(spawner)
    assert len(supervisors) <= MOST_SUPERVISORS
    below = [*supervisors, *(init for one in supervisors for init in _children(one))]
    return {
        "descriptors of the server": len(os.listdir("/proc/self/fd")),
        "those of the spawner but the supervisors'": _descriptors(spawner) - len(supervisors),
        "most of a process below it": max(map(_descriptors, below)),
        "mounts": _mounts(),
    }


@pytest.mark.parametrize(("number", "forced"), [(STEPS, None), (STEPS // 2, LANDLOCK)])
async def test_nothing_accumulates(
    tmp_path: Path, files: object, number: int, forced: str | None
) -> None:
    """
    No process, folder, descriptor or mount more after so many steps than after the first, and
    hardly more memory: at the best level there is, and where folders are on disk. CS-7.
    """
    isolation = Isolation(forced=forced, minimum="process")
    runner = CodeStepRunner(tmp_path / "steps", files, lambda: "art", isolation=isolation)
    try:
        await _steps(runner, SETTLED_AFTER)
        spawner = runner.spawner_pid
        assert spawner
        before, memory = await _facts(spawner), _memory_kb(spawner)
        held = max(map(_memory_kb, _children(spawner)))
        await _steps(runner, number - SETTLED_AFTER)
        assert await _facts(spawner) == before
        assert _memory_kb(spawner) - memory < MEMORY_KB
        assert max(map(_memory_kb, _children(spawner))) - held < MEMORY_KB
        left = [path for own in (tmp_path / "steps").iterdir() for path in own.iterdir()]
        assert [path for path in left if not path.name.startswith("prestart-")] == []
    finally:
        await runner.close()
    assert list((tmp_path / "steps").iterdir()) == []


def _children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def _descriptors(pid: int) -> int:
    return len(os.listdir(f"/proc/{pid}/fd"))


def _mounts() -> int:
    return Path("/proc/self/mountinfo").read_text().count("\n")


def _memory_kb(pid: int) -> int:
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("RssAnon:")[2].split()[0])
