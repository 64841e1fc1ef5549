"""
Runs code steps: a private folder, a process tree, and what came out of it. Contract §5.

Each attempt lives in a folder of its own and in a process tree of its own. When `run` returns or
raises, the tree is dead and the folder is gone.
"""

import asyncio
import os
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import TypeVar

from attrs import evolve, frozen

from adapters_runtime import artifacts, outputs, world
from adapters_runtime.artifacts import UnusableArtifacts
from adapters_runtime.folders import Folders, StepFolder
from adapters_runtime.languages import Interpreters
from adapters_runtime.process import Ended, NotStarted, Order, Spawner, uninterrupted
from adapters_runtime.world import CannotRun
from wfcore.errors import StoreUnavailable
from wfcore.model.workflow import Language
from wfcore.ports.files import ArtifactFiles
from wfcore.ports.runtime import LanguageState, LeftFile, Say, StepEnd, StepJob

_FILE_THREADS = 4
_LITTLE = 65_536
"""Up to so many bytes are read and written where the event loop is."""

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

    def of_process(self) -> dict[str, int]:
        """The limits that the kernel holds, by their name in a job."""
        return {
            "data": self.memory,
            "processes": self.processes,
            "file": self.file,
            "open_files": self.open_files,
            "core": 0,
        }


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
        self._passed_on = world.passed_on(os.environ if environment is None else environment)
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
        except CannotRun as problem:
            return StepEnd(error=str(problem), permanent=True)
        except NotStarted as problem:
            return StepEnd(error=f"could not be started: {problem}")
        finally:
            try:
                if not folder.remove_if_plain():
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
        self._threads.shutdown()
        self._folders.close()

    async def _run_in(self, folder: StepFolder, job: StepJob, say: Say) -> StepEnd:
        order = await self._order(folder, job)
        made = self._made(folder, job)
        try:
            ended = await self._spawner.run(order, made, say)
        finally:
            if not made.done():
                await uninterrupted(asyncio.wait({made}))
        judge = partial(self._judge, folder, ended, order.timeout_s)
        if len(ended.stdout) <= _LITTLE and folder.is_bare(_LITTLE):
            end, left = judge()
        else:
            end, left = await self._in_thread(judge)
        if not left:
            return end
        try:
            return evolve(end, files=await self._store(left, folder, job))
        except (UnusableArtifacts, StoreUnavailable) as problem:
            return _unless_failed(end, f"its artifacts were not kept: {problem}", permanent=False)

    def _made(self, folder: StepFolder, job: StepJob) -> asyncio.Future[None]:
        """
        The folder in the making. What is quickly done is done here: a thread would take longer
        to take over than to do it.
        """
        files = world.files(folder, job)
        if sum(map(len, files.values())) > _LITTLE:
            return asyncio.ensure_future(self._in_thread(partial(_make, folder, files)))
        made = asyncio.get_running_loop().create_future()
        try:
            _make(folder, files)
        except NotStarted as trouble:
            made.set_exception(trouble)
        else:
            made.set_result(None)
        return made

    async def _order(self, folder: StepFolder, job: StepJob) -> Order:
        argv = await self._argv(folder, job)
        return Order(
            argv=argv,
            env=world.variables(folder, job, self._passed_on),
            cwd=folder.work,
            limits=self._limits.of_process(),
            timeout_s=job.step.timeout_ms / 1_000,
            stdout_bytes=self._limits.stdout,
            stderr_bytes=self._limits.stderr,
            log=job.log,
        )

    async def _argv(self, folder: StepFolder, job: StepJob) -> list[str]:
        language = job.step.language
        if language is Language.COMMAND:
            return world.command(job.argv, self._passed_on["PATH"])
        state = self._interpreters.known(language)
        if state is None:
            state = await self._in_thread(partial(self._interpreters.find, language))
        return world.interpreted(folder, job, state)

    def _judge(
        self, folder: StepFolder, ended: Ended, timeout_s: float
    ) -> tuple[StepEnd, list[artifacts.Parts]]:
        """How the attempt ended, and which files it left."""
        limits = self._limits
        end = outputs.fault_of(ended, timeout_s, limits.stdout)
        left: list[artifacts.Parts] = []
        try:
            if end is None:
                end = StepEnd(outputs.output_of(folder.output, ended.stdout, limits.output))
            left = artifacts.find(folder.artifacts, limits.artifacts, limits.artifact)
        except (outputs.UnusableOutput, UnusableArtifacts) as problem:
            end = _unless_failed(end, str(problem), permanent=True)
        return end, left

    async def _store(
        self, left: list[artifacts.Parts], folder: StepFolder, job: StepJob
    ) -> tuple[LeftFile, ...]:
        stored = []
        for path in left:
            id = self._new_artifact_id()
            stored.append(
                await artifacts.store(self._files, job.execution_id, id, folder.artifacts, path)
            )
        return tuple(stored)

    async def _in_thread(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)


def _make(folder: StepFolder, files: Mapping[str, bytes]) -> None:
    try:
        folder.make(files)
    except OSError as trouble:
        raise NotStarted(f"no folder for it: {trouble.strerror}") from trouble


def _unless_failed(end: StepEnd | None, error: str, permanent: bool) -> StepEnd:
    """The first error counts: *end*, if it has one already, else a new failure."""
    return end if end and end.error else StepEnd(error=error, permanent=permanent)
