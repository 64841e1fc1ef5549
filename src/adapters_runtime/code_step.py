"""
Runs code steps: a private folder, a process tree, and what came out of it. Contract §5.

Each attempt lives in a folder that nobody else sees and in a process tree of its own. When `run`
returns or raises, the tree is dead and the folder is gone.
"""

import asyncio
import json
import os
import shutil
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import TypeVar

import orjson
from attrs import evolve, frozen

from adapters_runtime import artifacts, outputs
from adapters_runtime.artifacts import UnusableArtifacts
from adapters_runtime.folders import Folders, StepFolder
from adapters_runtime.languages import LANGUAGES, Interpreters
from adapters_runtime.process import Ended, Order, Spawner, uninterrupted
from wfcore.errors import StoreUnavailable
from wfcore.model.json import JsonObject
from wfcore.model.workflow import Language
from wfcore.ports.files import ArtifactFiles
from wfcore.ports.runtime import LanguageState, LeftFile, Say, StepEnd, StepJob

_DEFAULT_PATH = "/usr/local/bin:/usr/bin:/bin"
_LONGEST_VALUE = 131_071  # the kernel's, for one environment variable
_FILE_THREADS = 4

T = TypeVar("T")


@frozen
class StepLimits:
    """
    What one step may use. Bytes, except for the counts.

    `processes`: the operating system counts all processes of the server's user, and does not
    hold it against root.
    """

    memory: int = 1 << 30
    processes: int = 4_096
    file: int = 1 << 30
    open_files: int = 1_024
    stdout: int = 1_048_576
    stderr: int = 65_536
    output: int = 4 * 1_048_576
    artifact: int = 104_857_600
    artifacts: int = 200

    def of_process(self) -> Mapping[str, int]:
        return {
            "data": self.memory,
            "processes": self.processes,
            "file": self.file,
            "open_files": self.open_files,
            "core": 0,
        }


class _CannotRun(Exception):
    """The attempt cannot even start, now or later; the text says why."""


class CodeStepRunner:
    """
    The `StepRunner` for this machine.

    *root* holds the folders of steps; *environment* is where PATH, LANG and TZ come from, by
    default the process's own.
    """

    def __init__(
        self,
        root: Path,
        files: ArtifactFiles,
        new_artifact_id: Callable[[], str],
        limits: StepLimits = StepLimits(),
        environment: Mapping[str, str] | None = None,
    ) -> None:
        environment = os.environ if environment is None else environment
        self._passed_on = {
            "PATH": environment.get("PATH") or _DEFAULT_PATH,
            "LANG": environment.get("LANG") or "C.UTF-8",
        }
        if zone := environment.get("TZ"):
            self._passed_on["TZ"] = zone
        self._files = files
        self._new_artifact_id = new_artifact_id
        self._limits = limits
        self._folders = Folders(root.absolute())
        self._spawner = Spawner()
        self._interpreters = Interpreters(self._passed_on["PATH"])
        self._threads = ThreadPoolExecutor(_FILE_THREADS, "step-files")
        self._running: set[asyncio.Future[None]] = set()

    async def run(self, job: StepJob, say: Say) -> StepEnd:
        """Run one attempt to its end; see `StepRunner`."""
        over = asyncio.get_running_loop().create_future()
        self._running.add(over)
        folder = self._folders.next()
        try:
            return await self._run_in(folder, job, say)
        except _CannotRun as problem:
            return StepEnd(error=str(problem), permanent=True)
        finally:
            try:
                await uninterrupted(self._in_thread(folder.remove))
            finally:
                self._running.discard(over)
                over.set_result(None)

    def languages(self) -> Mapping[Language, LanguageState]:
        """What can run here. The first call starts each interpreter once."""
        return self._interpreters.states()

    async def close(self) -> None:
        """End everything that still runs, then the spawner; remove this process's folders."""
        await self._spawner.close()
        if self._running:
            await asyncio.wait(self._running)
        await self._in_thread(self._folders.close)
        self._threads.shutdown()

    async def _run_in(self, folder: StepFolder, job: StepJob, say: Say) -> StepEnd:
        order = await self._order(folder, job)
        await uninterrupted(self._in_thread(lambda: folder.make(_files_of(folder, job))))
        ended = await self._spawner.run(order, say)
        end, left = await self._in_thread(partial(self._judge, folder, ended, order.timeout_s))
        if not left:
            return end
        try:
            return evolve(end, files=await self._store(left, folder, job))
        except (UnusableArtifacts, StoreUnavailable) as problem:
            return _unless_failed(end, f"its artifacts were not kept: {problem}", permanent=False)

    async def _order(self, folder: StepFolder, job: StepJob) -> Order:
        path, argv = await self._program(folder, job)
        return Order(
            path=path,
            argv=(path, *argv),
            env=_checked(self._environment(folder, job)),
            cwd=str(folder.work),
            limits=self._limits.of_process(),
            timeout_s=job.step.timeout_ms / 1_000,
            stdout_bytes=self._limits.stdout,
            stderr_bytes=self._limits.stderr,
            log=job.log,
        )

    async def _program(self, folder: StepFolder, job: StepJob) -> tuple[str, list[str]]:
        """What is executed, and with which arguments. Raises `_CannotRun`."""
        language = job.step.language
        if language is Language.COMMAND:
            return self._command(job.argv)
        state = self._interpreters.known(language)
        if state is None:
            state = await self._in_thread(partial(self._interpreters.find, language))
        if state.path is None:
            raise _CannotRun(f"{language} cannot run here; to install it: {state.cure}")
        recipe = LANGUAGES[language]
        return state.path, recipe.arguments(folder.path, state.version or "", live=job.log)

    def _command(self, argv: tuple[str, ...]) -> tuple[str, list[str]]:
        if not argv:
            raise _CannotRun("the command is empty")
        if any("\0" in argument for argument in argv):
            raise _CannotRun("an argument of the command contains a NUL character")
        program = shutil.which(argv[0], path=self._passed_on["PATH"])
        if program is None:
            raise _CannotRun(f"the command {argv[0]!r} was not found on PATH")
        return program, list(argv[1:])

    def _environment(self, folder: StepFolder, job: StepJob) -> dict[str, str]:
        return {
            **job.environment,
            **self._passed_on,
            "HOME": str(folder.home),
            "TMPDIR": str(folder.tmp),
            "WF_CONTEXT": str(folder.context),
            "WF_OUTPUT": str(folder.output),
            "WF_ARTIFACTS": str(folder.artifacts),
            "WF_EXECUTION_ID": job.execution_id,
            "WF_STEP_NAME": job.step_name,
            "WF_ATTEMPT": str(job.attempt),
        }

    def _judge(
        self, folder: StepFolder, ended: Ended, timeout_s: float
    ) -> tuple[StepEnd, list[artifacts.Parts]]:
        """How the attempt ended, and which files it left."""
        limits = self._limits
        end = outputs.fault_of(ended, timeout_s, limits.stdout)
        try:
            if end is None:
                end = StepEnd(outputs.output_of(folder.output, ended.stdout, limits.output))
            return end, artifacts.find(folder.artifacts, limits.artifacts, limits.artifact)
        except (outputs.UnusableOutput, UnusableArtifacts) as problem:
            return _unless_failed(end, str(problem), permanent=True), []

    async def _store(
        self, left: list[artifacts.Parts], folder: StepFolder, job: StepJob
    ) -> tuple[LeftFile, ...]:
        return tuple(
            [
                await artifacts.store(
                    self._files, job.execution_id, self._new_artifact_id(), folder.artifacts, path
                )
                for path in left
            ]
        )

    async def _in_thread(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)


def _files_of(folder: StepFolder, job: StepJob) -> dict[Path, bytes]:
    files = {folder.context: _as_json(job.context)}
    recipe = LANGUAGES.get(job.step.language)
    if recipe:
        files[folder.path / recipe.file] = job.step.source.encode("utf-8", "surrogatepass")
        for name, text in recipe.more_files.items():
            files[folder.path / name] = text.encode()
    return files


def _as_json(context: JsonObject) -> bytes:
    try:
        return orjson.dumps(context)
    except TypeError:  # an integer beyond 64 bits, half a character
        return json.dumps(context).encode()


def _checked(environment: dict[str, str]) -> dict[str, str]:
    """*environment*, if the kernel would take it. Raises `_CannotRun`, naming the variable."""
    for name, value in environment.items():
        if "\0" in value:
            raise _CannotRun(f"the value of {name} contains a NUL character")
        if len(name) + 1 + len(value.encode("utf-8", "surrogatepass")) > _LONGEST_VALUE:
            raise _CannotRun(f"the value of {name} is too long for an environment variable")
    return environment


def _unless_failed(end: StepEnd | None, error: str, permanent: bool) -> StepEnd:
    """The first error counts: *end*, if it has one already, else a new failure."""
    return end if end and end.error else StepEnd(error=error, permanent=permanent)
