"""
What the engine adds to the start of a step.

One run measures, interleaved on the same machine: a bare spawn of an interpreter (asyncio's
subprocess, and posix_spawn with a wait) and the same program as a step through `CodeStepRunner`.

    python bench/spawn.py [rounds]
"""

import asyncio
import os
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import BinaryIO

from adapters_runtime.code_step import CodeStepRunner
from wfcore.model.workflow import CodeStep, Language
from wfcore.ports.files import StoredFile
from wfcore.ports.runtime import StepJob

SOURCES = {Language.BASH: "echo 1", Language.PYTHON: "print(1)"}
ENVIRONMENT = {"PATH": os.environ.get("PATH", ""), "LANG": "C.UTF-8"}


class _NoFiles:
    """The steps here leave no artifacts."""

    async def store(self, execution_id: str, artifact_id: str, content: BinaryIO) -> StoredFile:
        raise AssertionError("no artifacts here")

    def read(self, storage_key: str, start: int, end: int) -> AsyncIterator[bytes]:
        raise AssertionError("no artifacts here")

    async def delete_execution(self, execution_id: str) -> None:
        pass


async def measure(rounds: int = 60) -> dict[str, float]:
    """The median in ms of each way to run each program, and `…_overhead` over the bare spawn."""
    medians: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as folder:
        runner = CodeStepRunner(Path(folder, "steps"), _NoFiles(), lambda: "art")
        try:
            for language, source in SOURCES.items():
                medians |= await _measure_language(runner, Path(folder), language, source, rounds)
        finally:
            await runner.close()
    return medians


async def _measure_language(
    runner: CodeStepRunner, folder: Path, language: Language, source: str, rounds: int
) -> dict[str, float]:
    program = runner.languages()[language].path or ""
    script = folder / f"script.{language}"
    script.write_text(source)
    argv = [program, *(["-I"] if language is Language.PYTHON else []), str(script)]
    job = StepJob("exec", "wf", "step", 1, 1, CodeStep("step", language, source), (), {}, {})
    ways: dict[str, Callable[[], Awaitable[object]]] = {
        "asyncio": lambda: _bare_asyncio(argv),
        "posix_spawn": lambda: asyncio.to_thread(_bare_spawn, argv),
        "step": lambda: runner.run(job, _silent),
    }
    took = await _interleaved(ways, rounds)
    medians = {f"{language}_{way}": statistics.median(times) for way, times in took.items()}
    medians[f"{language}_overhead"] = (
        medians[f"{language}_step"] - medians[f"{language}_posix_spawn"]
    )
    return medians


async def _interleaved(
    ways: dict[str, Callable[[], Awaitable[object]]], rounds: int
) -> dict[str, list[float]]:
    took: dict[str, list[float]] = {way: [] for way in ways}
    for _ in range(rounds):
        for way, run in ways.items():
            start = time.perf_counter()
            await run()
            took[way].append((time.perf_counter() - start) * 1_000)
    return took


async def _bare_asyncio(argv: list[str]) -> bytes:
    process = await asyncio.create_subprocess_exec(
        *argv,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=ENVIRONMENT,
    )
    return (await process.communicate())[0]


def _bare_spawn(argv: list[str]) -> bytes:
    read_end, write_end = os.pipe()
    actions = [(os.POSIX_SPAWN_DUP2, write_end, 1)]
    pid = os.posix_spawn(argv[0], argv, ENVIRONMENT, file_actions=actions)
    os.close(write_end)
    with open(read_end, "rb") as output:
        data = output.read()
    os.waitpid(pid, 0)
    return data


async def _silent(stream: str, lines: str) -> None:
    pass


def main() -> None:
    """Measure on asyncio's own loop and print one line per figure."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 60
    for name, median in asyncio.run(measure(rounds)).items():
        print(f"{name:24} {median:8.2f} ms")


if __name__ == "__main__":
    main()
