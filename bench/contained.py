"""
What contained steps cost the machine: CPU time by process, with bubblewrap's in the same run.

CPU time is counted by the kernel for the processes concerned, so other load disturbs it little.
"""

import asyncio
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from attrs import evolve, frozen

from adapters_runtime.code.languages import recipes_on
from adapters_runtime.sandbox.client import PROGRAM
from adapters_runtime.sandbox.process_tree import children_of
from bench.spawn import AT_ONCE, REFILL_S, SOURCES, a_runner, a_step, job_of
from wfcore.model.workflow import Language, Runtime

KINDS: tuple[tuple[Language, Runtime | None], ...] = (
    (Language.BASH, None),
    (Language.PYTHON, None),
    (Language.JAVASCRIPT, Runtime.NODE),
    (Language.JAVASCRIPT, Runtime.BUN),
)
_COUNTS = """
import ctypes, os, resource, sys
ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # whatever it leaves is ours to wait for, and counted
for _ in range(int(sys.argv[1])):
    quiet = [(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)]
    path = {"PATH": "/usr/bin:/bin"}
    first = os.posix_spawn(sys.argv[2], sys.argv[2:], path, file_actions=quiet)
    try:
        while True:
            pid, status = os.wait()
            if pid == first and status:
                sys.exit("it failed")
    except ChildProcessError:
        pass
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print((used.ru_utime + used.ru_stime) * 1_000 / int(sys.argv[1]))
"""
_FORKS = """
import os, resource, sys
os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
for _ in range(int(sys.argv[1])):
    if not os.fork():
        with open(sys.argv[2]) as program:
            exec(compile(program.read(), "main.py", "exec"), {"__name__": "__main__"})
        sys.stdout.flush()
        os._exit(0)  # without the teardown that ends a step
    if os.wait()[1]:
        sys.exit("it failed")
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print((used.ru_utime + used.ru_stime) * 1_000 / int(sys.argv[1]), file=sys.stderr)
"""
_BOX = (
    *("--unshare-all", "--die-with-parent", "--new-session", "--cap-drop", "ALL"),
    *("--ro-bind", "/usr", "/usr", "--symlink", "usr/bin", "/bin"),
    *("--symlink", "usr/lib", "/lib", "--symlink", "usr/lib64", "/lib64"),
    *("--proc", "/proc", "--dev", "/dev", "--tmpfs", "/step", "--chdir", "/step"),
)
"""The namespaces of a step; without its Landlock, filter, control groups and limits."""


@frozen
class Cost:
    """
    Of a contained step: how many a second, and CPU time in ms, in the server and in all processes
    below it.
    """

    per_second: float
    server_ms: float
    below_ms: float


async def cost(language: Language, runtime: Runtime | None, count: int) -> Cost | None:
    """Of *count* steps, several at once; None where they cannot run."""
    with tempfile.TemporaryDirectory() as folder:
        async with a_runner(Path(folder)) as runner:
            state = runner.languages()[language]
            if not state.available or (runtime and runtime not in state.runtimes):
                return None
            job = job_of(runner, language)
            job = evolve(job, step=evolve(job.step, runtime=runtime))
            places = asyncio.Semaphore(AT_ONCE)

            async def step() -> None:
                async with places:
                    await a_step(runner, job)

            async def steps(many: int) -> None:
                await asyncio.gather(*(step() for _ in range(many)))
                await asyncio.sleep(REFILL_S)  # the next are made ready, which counts for the last

            await steps(AT_ONCE)
            spawner = runner.spawner_pid or 0
            below, server, begun = _cpu_ms(spawner), time.process_time(), time.perf_counter()
            await steps(count)
            taken = time.perf_counter() - begun - REFILL_S
            server_ms = (time.process_time() - server) * 1_000
            return Cost(count / taken, server_ms / count, (_cpu_ms(spawner) - below) / count)


def _cpu_ms(pid: int) -> float:
    """What a process and all below it have used, and those below it that have ended."""
    facts = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    own = sum(map(int, facts[11:15])) * 1_000 / os.sysconf("SC_CLK_TCK")
    return own + sum(map(_cpu_ms, children_of(pid)))


def bubblewrap_ms(count: int) -> float | None:
    """CPU time of Bash in bubblewrap; None where that is not installed."""
    program = shutil.which("bwrap")
    return None if program is None else _spawned_ms(count, program, *_BOX, "bash", "-c", "echo 1")


def bash_ms(count: int) -> float:
    """CPU time of a bare Bash with the same program as a step."""
    return _spawned_ms(count, shutil.which("bash") or "bash", "-c", SOURCES[Language.BASH])


def fork_ms(count: int) -> float:
    """CPU time of a forked interpreter that runs the same program as a step."""
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder, "main.py")
        program.write_text(SOURCES[Language.PYTHON])
        counting = [PROGRAM, "-I", "-c", _FORKS, str(count), str(program)]
        ended = subprocess.run(counting, check=True, capture_output=True, text=True)
    return float(ended.stderr)


def bun_ms(count: int) -> tuple[float, float | None] | None:
    """
    CPU time of a bare Bun with the same program as a step, and of one in bubblewrap; None where
    they are not installed.
    """
    recipe = recipes_on(Runtime.BUN)[Language.JAVASCRIPT]
    program = next(filter(os.path.exists, recipe.candidates(os.environ["PATH"])), None)
    if program is None:
        return None
    with tempfile.TemporaryDirectory() as folder:
        for name, text in {
            **recipe.more_files,
            recipe.file: SOURCES[Language.JAVASCRIPT],
        }.items():
            Path(folder, name).write_text(text)
        argv = program, *recipe.arguments(folder, "", live=False)
        bare, box = _spawned_ms(count, *argv), shutil.which("bwrap")
        shown = (part for path in (program, folder) for part in ("--ro-bind", path, path))
        return bare, box and _spawned_ms(count, box, *_BOX, *shown, *argv)


def _spawned_ms(count: int, *argv: str) -> float:
    counting = [sys.executable, "-c", _COUNTS, str(count), *argv]
    return float(subprocess.run(counting, check=True, capture_output=True, text=True).stdout)
