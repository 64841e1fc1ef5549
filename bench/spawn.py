"""
What a step costs beyond its program: starts, throughput, and what waiting interpreters hold.

One run measures, interleaved on the same machine: a bare spawn of an interpreter (posix_spawn with
a wait) and the same program as a step through `CodeStepRunner`, contained as everywhere. Between
two measurements the pools may fill, as between steps that do not follow one another at once.

    python -m bench.spawn [rounds]
"""

import asyncio
import os
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from attrs import evolve, frozen

from adapters_runtime.code.languages import LANGUAGES
from adapters_runtime.code.runner import CodeStepRunner
from adapters_runtime.code.typescript import without_types
from adapters_runtime.sandbox.pool import LARGE_IDLE_S
from wfcore.model.workflow import CodeStep, Language
from wfcore.ports.files import StoredFile
from wfcore.ports.runtime import StepJob

SOURCES = {
    Language.BASH: "echo 1",
    Language.LUA: "print(1)",
    Language.PYTHON: "print(1)",
    Language.JAVASCRIPT: "console.log(1)",
    Language.TYPESCRIPT: "const one: number = 1; console.log(one)",
    Language.RUBY: "puts 1",
}
ENVIRONMENT = {"PATH": os.environ.get("PATH", ""), "LANG": "C.UTF-8"}
AT_ONCE = 8
REFILL_S = 0.25
"""How long a pool may take to fill before the next measurement."""
PAUSE_S = 0.05
"""The same where steps of one language follow one another."""


class _NoFiles:
    """The steps here leave no artifacts."""

    async def store(self, execution_id: str, artifact_id: str, content: BinaryIO) -> StoredFile:
        raise AssertionError("no artifacts here")

    def read(self, storage_key: str, start: int, end: int) -> AsyncIterator[bytes]:
        raise AssertionError("no artifacts here")

    async def delete_execution(self, execution_id: str) -> None:
        pass


@frozen
class Start:
    """Medians in ms: a bare spawn of the interpreter, and a step in it."""

    bare_ms: float
    step_ms: float


@frozen
class Measured:
    """
    `steps` and `spawns`: how many Python programs a second, eight at once. `waiting_mb`: what
    the spawner and waiting interpreters hold when every language was just used, `idle_mb` half a
    minute later; what of programs on disk they have mapped counts, too.
    """

    level: str
    starts: Mapping[Language, Start]
    steps: float
    spawns: float
    waiting_mb: float
    idle_mb: float


async def measure(rounds: int = 30) -> Measured:
    """Everything, at the level of isolation that this machine gives."""
    with tempfile.TemporaryDirectory() as folder:
        async with a_runner(Path(folder)) as runner:
            starts = {
                language: await _start(runner, Path(folder), language, rounds)
                for language in SOURCES
                if runner.languages()[language].available
            }
            waiting = _held_mb(runner.spawner_pid or 0)
            steps, spawns = await _throughput(runner, Path(folder), rounds * 8)
            await asyncio.sleep(LARGE_IDLE_S + 1)
            idle = _held_mb(runner.spawner_pid or 0)
            return Measured((await runner.level()).name, starts, steps, spawns, waiting, idle)


async def step_ms(language: Language, rounds: int) -> float:
    """What a step takes at this moment, by itself: the median."""
    with tempfile.TemporaryDirectory() as folder:
        async with a_runner(Path(folder)) as runner:
            job = job_of(runner, language)
            await a_step(runner, job)
            taken = []
            for _ in range(rounds):
                await asyncio.sleep(PAUSE_S)
                taken.append(await _ms(a_step(runner, job)))
            return statistics.median(taken)


@asynccontextmanager
async def a_runner(folder: Path) -> AsyncIterator[CodeStepRunner]:
    runner = CodeStepRunner(folder / "steps", _NoFiles(), lambda: "art")
    try:
        yield runner
    finally:
        await runner.close()


async def _start(runner: CodeStepRunner, folder: Path, language: Language, rounds: int) -> Start:
    argv, job = _program(runner, folder, language), job_of(runner, language)
    await a_step(runner, job)
    bare, step = [], []
    for _ in range(rounds):
        await asyncio.sleep(REFILL_S)
        step.append(await _ms(a_step(runner, job)))
        bare.append(await _ms(asyncio.to_thread(_spawn, argv)))
    return Start(statistics.median(bare), statistics.median(step))


def _program(runner: CodeStepRunner, folder: Path, language: Language) -> list[str]:
    """The same program for a bare spawn, with the same options."""
    recipe, state = LANGUAGES[language], runner.languages()[language]
    for name, text in {**recipe.more_files, recipe.file: SOURCES[language]}.items():
        (folder / name).write_text(text)
    return [state.path or "", *recipe.arguments(str(folder), state.version or "", live=False)]


def job_of(runner: CodeStepRunner, language: Language) -> StepJob:
    """As a workflow that was applied has it: TypeScript without its types."""
    step = CodeStep("step", language, SOURCES[language])
    if language is Language.TYPESCRIPT:
        node = runner.languages()[language].path or ""
        step = evolve(step, javascript=without_types([step.source], node)[0].text)
    return StepJob("exec", "wf", "step", 1, 1, step, (), {}, {})


async def a_step(runner: CodeStepRunner, job: StepJob) -> None:
    end = await runner.run(job, _silent)
    if end.output != 1:
        raise RuntimeError(f"a step went wrong: {end}")


async def _ms(work: object) -> float:
    begin = time.perf_counter()
    await work  # type: ignore[misc]
    return (time.perf_counter() - begin) * 1_000


async def _throughput(runner: CodeStepRunner, folder: Path, count: int) -> tuple[float, float]:
    """Python steps and bare Python spawns a second, in turns of which the better one counts."""
    argv, job = _program(runner, folder, Language.PYTHON), job_of(runner, Language.PYTHON)
    places = asyncio.Semaphore(AT_ONCE)

    async def step() -> None:
        async with places:
            await a_step(runner, job)

    async def spawn() -> None:
        async with places:
            await asyncio.to_thread(_spawn, argv)

    async def rate(one: object, many: int) -> float:
        begin = time.perf_counter()
        await asyncio.gather(*(one() for _ in range(many)))  # type: ignore[operator]
        return many / (time.perf_counter() - begin)

    rates = [(await rate(step, count), await rate(spawn, count // 3)) for _ in range(3)]
    return max(step for step, _ in rates), max(spawn for _, spawn in rates)


def _spawn(argv: Sequence[str]) -> None:
    read_end, write_end = os.pipe()
    actions = [(os.POSIX_SPAWN_DUP2, write_end, 1)]
    pid = os.posix_spawn(argv[0], argv, ENVIRONMENT, file_actions=actions)
    os.close(write_end)
    with open(read_end, "rb") as output:
        if output.read() != b"1\n":
            raise RuntimeError(f"{argv} went wrong")
    os.waitpid(pid, 0)


def _held_mb(root: int) -> float:
    """What the spawner and all that waits below it hold, shared pages in parts."""
    pids, total = [root], 0
    while pids:
        pid = pids.pop()
        with suppress(OSError):
            children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
            pids += map(int, children)
            rollup = Path(f"/proc/{pid}/smaps_rollup").read_text()
            total += next(int(line.split()[1]) for line in rollup.splitlines() if "Pss:" in line)
    return total / 1_024


async def _silent(stream: str, lines: str) -> None:
    pass


def main() -> None:
    """Measure on asyncio's own loop and print one line per figure."""
    found = asyncio.run(measure(int(sys.argv[1]) if len(sys.argv) > 1 else 30))
    for language, start in found.starts.items():
        over = start.step_ms - start.bare_ms
        ratio = start.step_ms / start.bare_ms
        print(
            f"{language:12} bare {start.bare_ms:7.2f} ms  step {start.step_ms:7.2f} ms"
            f"  {over:+7.2f} ms  {ratio:5.2f}"
        )
    print(f"python       {found.spawns:.0f} spawns/s  {found.steps:.0f} steps/s", end="")
    print(f"  {found.steps / found.spawns:.2f}")
    print(f"idle pools   {found.idle_mb:.1f} MB, just used {found.waiting_mb:.1f} MB", end="")
    print(f", level {found.level}")


if __name__ == "__main__":
    main()
