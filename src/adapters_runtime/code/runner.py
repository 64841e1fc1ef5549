"""
The runner of code steps.

Each attempt has its own folder and its own process tree. When `run` returns or raises, the tree is
dead and the folder is gone.
"""

import asyncio
import math
import os
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from functools import partial
from pathlib import Path
from typing import TypeVar

from attrs import evolve, frozen

from adapters_runtime.code import artifacts, outputs
from adapters_runtime.code import environment as step_environment
from adapters_runtime.code.artifacts import UnusableArtifact
from adapters_runtime.code.environment import CannotRun, PackageFolders
from adapters_runtime.code.given_files import GivenFiles
from adapters_runtime.code.languages import (
    Interpreters,
    finds_module_types,
    needed_by,
    recipes_on,
)
from adapters_runtime.sandbox.client import (
    PROGRAM,
    Ended,
    LaunchOrder,
    NotStarted,
    Spawner,
    uninterrupted,
)
from adapters_runtime.sandbox.isolation.config import (
    NAMESPACE,
    PROCESS,
    STEP_DIR,
    UID,
    Prestart,
    Profile,
    SandboxConfig,
)
from adapters_runtime.sandbox.isolation_level import Isolation, Level, find_level, folders_for
from adapters_runtime.sandbox.step_folders import Folders, StepFolder
from wfcore.errors import PackagesUnavailable, StoreUnavailable
from wfcore.model.workflow import CodeStep, Language, Runtime
from wfcore.ports.files import ArtifactFiles
from wfcore.ports.runtime import (
    NO_ENVIRONMENTS,
    Environments,
    LanguageState,
    LeftFile,
    Say,
    StepEnd,
    StepJob,
)
from wfcore.rules.execution.given_files import FilesUnavailable, folder_of
from wfcore.rules.limits import ARTIFACT_BYTES, ARTIFACTS_PER_EXECUTION, FILES_BYTES

_FILE_THREADS = 4
_MAY_NOT_LISTEN = (
    "listen is refused: at the isolation level process nothing keeps a step from the server's own "
    "ports; wfcore doctor says how to get a better level"
)
_ENCODING = ("LANG", "TZ")
_LITTLE = 65_536
"""Outputs of up to this many bytes are parsed in the event loop instead of a thread."""

T = TypeVar("T")


@frozen
class StepLimits:
    """
    The limits of one step, in bytes except for the counts.

    `memory` limits each process, and all of them together. `processes` includes threads; if steps
    run as the server's own user, the operating system counts all processes of that user, so
    `processes_of_user` is the limit then, and root has none. `disk` and `inodes`: the size of the
    step's folder if it is a file system of its own. `signals`: how many signals may be pending,
    including timers that send signals, if the kernel counts them for the step alone. `fetched`: the
    bytes of fetched files that are kept for further steps.
    """

    memory: int = 1 << 30
    processes: int = 256
    processes_of_user: int = 4_096
    file: int = 1 << 30
    disk: int = 512 << 20
    inodes: int = 16_384
    open_files: int = 1_024
    signals: int = 1_024
    stdout: int = 1_048_576
    stderr: int = 65_536
    output: int = 4 * 1_048_576
    artifact: int = ARTIFACT_BYTES
    artifacts: int = ARTIFACTS_PER_EXECUTION
    fetched: int = FILES_BYTES

    def of_process(self, level: str) -> dict[str, int]:
        """The limits that the kernel enforces, by their name in a job."""
        counted_alone = level in (NAMESPACE, UID)
        own_signals = {"signals": self.signals} if counted_alone else {}
        return {
            **own_signals,
            "data": self.memory,
            "processes": self.processes if counted_alone else self.processes_of_user,
            "file": self.file,
            "open_files": self.open_files,
            "core": 1,  # 0 would still start a program of the system's that takes core dumps
        }


@frozen
class _Setup:
    """The parts that run steps, once the level is known."""

    level: Level
    folders: Folders
    spawner: Spawner
    interpreters: Interpreters
    packages: PackageFolders
    given: GivenFiles
    given_folders: Folders


class CodeStepRunner:
    """
    The `StepRunner` for this machine.

    *root* contains the folders of steps. PATH, LANG and TZ are taken from *environment*, by default
    the process's own. The first step or the first call of `level` determines the level of
    isolation. *environments*: the packages of steps. *warm*: whether to start interpreters in
    advance. *javascript*: the default runtime of JavaScript and TypeScript.
    """

    def __init__(
        self,
        root: Path,
        files: ArtifactFiles,
        new_artifact_id: Callable[[], str],
        limits: StepLimits = StepLimits(),
        environment: Mapping[str, str] | None = None,
        isolation: Isolation = Isolation(),  # noqa: B008 - frozen
        environments: Environments = NO_ENVIRONMENTS,
        warm: bool = True,
        javascript: Runtime = Runtime.NODE,
    ) -> None:
        self._root = root.absolute()
        environment = os.environ if environment is None else environment
        self._passed_on = step_environment.passed_on(environment)
        self._files = files
        self._new_artifact_id = new_artifact_id
        self._limits = limits
        self._isolation = isolation
        self._environments = environments
        self._warm = warm
        self._javascript = javascript
        self._interpreters = self._find_interpreters()
        self._threads = ThreadPoolExecutor(_FILE_THREADS, "step-files")
        self._running: set[asyncio.Future[None]] = set()
        self._starting: asyncio.Task[_Setup] | None = None
        self._closed = False
        Folders(self._root).close()  # which removes the folders of dead servers

    async def level(self) -> Level:
        """The level of isolation of steps."""
        return (await self._setup()).level

    @property
    def spawner_pid(self) -> int | None:
        """The process id of the spawner, or None before its start."""
        task = self._starting
        known = task is not None and task.done() and not _failed(task)
        return task.result().spawner.pid if known and task is not None else None

    async def run(self, job: StepJob, say: Say) -> StepEnd:
        """Run one attempt to its end; see `StepRunner`."""
        if self._closed:
            raise RuntimeError("this runner is closed")
        ended = asyncio.get_running_loop().create_future()
        self._running.add(ended)
        try:
            setup = await self._setup()
            if setup.level.is_below(self._isolation.least):
                return StepEnd(error=_refusal(setup.level, self._isolation.least), permanent=True)
            if job.step.listen and setup.level.name == PROCESS:
                return StepEnd(error=_MAY_NOT_LISTEN, permanent=True)
            return await self._run_on(setup, job, say)
        except CannotRun as problem:
            return StepEnd(error=str(problem), permanent=True)
        except NotStarted as problem:
            return StepEnd(postponed=str(problem))
        except FilesUnavailable as refusal:
            return StepEnd(error=str(refusal), permanent=True)
        except StoreUnavailable as problem:
            reason = f"its files cannot be fetched: {problem}"
            return StepEnd(postponed=reason, lasting=True, alone=True)
        except PackagesUnavailable as refusal:
            reason = f"its packages cannot be installed here: {refusal}"
            return StepEnd(postponed=reason, lasting=True, alone=True)
        except OSError as problem:
            return StepEnd(error=f"what it left could not be read: {problem}")
        finally:
            self._running.discard(ended)
            ended.set_result(None)

    def languages(self) -> Mapping[Language, LanguageState]:
        """The state of each language. The first call starts each interpreter once."""
        return self._interpreters.states()

    async def close(self) -> None:
        """
        End all running steps, then the spawner, and remove this process's folders.

        Safe to call twice.
        """
        self._closed = True
        started = self._starting and not _failed(self._starting)
        setup = await uninterrupted(self._starting) if started and self._starting else None
        if setup:
            setup.packages.close()
            await setup.spawner.close()
        if self._running:
            await asyncio.wait(self._running)
        self._threads.shutdown()
        if setup:
            setup.given.close()
            setup.given_folders.close()
            setup.folders.close()

    async def _setup(self) -> _Setup:
        """The parts that run steps. If their preparation failed, the next step tries again."""
        if self._starting is None or _failed(self._starting):
            self._starting = asyncio.ensure_future(self._start())
        with _before_anything_runs():
            return await asyncio.shield(self._starting)

    async def _start(self) -> _Setup:
        isolation, limits = self._isolation, self._limits
        level = await find_level(isolation.forced, self._root)
        folders = folders_for(level.name, self._root)
        if level.name == UID:
            self._interpreters = self._find_interpreters(public=True)
        config = SandboxConfig(
            level.name,
            base=str(folders.own),
            disk=limits.disk,
            inodes=limits.inodes,
            reads=isolation.reads,
            writes=isolation.writes,
            hidden=isolation.hidden,
            closed=isolation.closed,
            reserved=isolation.reserved,
            memory=limits.memory,
            processes=limits.processes,
        )
        copies = folders.own / "packages" if level.name == UID else None
        packages = PackageFolders(self._environments, copies)
        encodings = {name: self._passed_on[name] for name in _ENCODING if name in self._passed_on}
        spawner = Spawner(config, encodings)
        # The spawner of namespaces covers the folder of steps.
        trees = Folders(self._root) if level.name == NAMESPACE else folders
        given = GivenFiles(self._files, trees.own, level.name, self._in_thread, limits.fetched)
        return _Setup(level, folders, spawner, self._interpreters, packages, given, trees)

    def _find_interpreters(self, public: bool = False) -> Interpreters:
        return Interpreters(self._passed_on["PATH"], public, self._javascript)

    async def _run_on(self, setup: _Setup, job: StepJob, say: Say) -> StepEnd:
        is_namespaced = setup.level.name == NAMESPACE
        folder = StepFolder.at(STEP_DIR) if is_namespaced else setup.folders.next()
        try:
            async with self._given(setup, job) as tree:
                with _before_anything_runs():
                    order = await self._order(setup, folder, job, tree)
                ended = await setup.spawner.run(order, say)
            end = await self._outcome(ended, order.timeout_s, job)
            return end if job.log else evolve(end, lines=outputs.lines_of(ended))
        finally:
            if not is_namespaced and not folder.remove_if_plain():
                await uninterrupted(self._in_thread(folder.remove))

    @asynccontextmanager
    async def _given(self, setup: _Setup, job: StepJob) -> AsyncIterator[str | None]:
        """The tree of the files that the step reads; None if it reads none. FI-4."""
        if not job.step.files:
            yield None
            return
        async with AsyncExitStack() as stack:
            with _before_anything_runs():
                tree = await stack.enter_async_context(setup.given.tree(job.files))
            yield tree

    async def _order(
        self, setup: _Setup, folder: StepFolder, job: StepJob, tree: str | None
    ) -> LaunchOrder:
        limits = self._limits
        job = await self._without_types(self._with_runtime(job))
        argv = await self._argv(folder, job)
        modules = await setup.packages.path(needs) if (needs := job.step.needs) else None
        of_process = limits.of_process(setup.level.name)
        prestart = self._prestart(job.step, of_process) if self._warm else None
        return LaunchOrder(
            argv=argv,
            env=step_environment.variables(folder, job, self._passed_on, modules, argv),
            folder=folder.path,
            cwd=folder.work,
            limits=of_process,
            timeout_s=job.step.timeout_ms / 1_000,
            stdout_bytes=limits.stdout,
            stderr_bytes=limits.stderr,
            output_bytes=limits.output,
            memory=limits.memory,
            files=step_environment.files(job),
            context=step_environment.context(job, folder),
            links=step_environment.links(job, modules),
            given=tree,
            profile=Profile(
                job.step.network,
                (*needed_by(argv[0]), *([modules] if modules else ())),
                prestart,
                job.step.listen.value if job.step.listen else "",
            ),
            inside=self._warm and job.step.language is Language.PYTHON and argv[0] == PROGRAM,
            log=job.log,
        )

    def _with_runtime(self, job: StepJob) -> StepJob:
        """*job* with its step's runtime filled in."""
        step = job.step
        runtime = self._interpreters.runtime_of(step.language, step.runtime)
        return job if runtime is step.runtime else evolve(job, step=evolve(step, runtime=runtime))

    async def _without_types(self, job: StepJob) -> StepJob:
        """*job* with the JavaScript that was compiled in advance, if this Node can run that."""
        step = job.step
        if step.javascript is None or step.runtime is not Runtime.NODE:
            return job
        plain = evolve(step, language=Language.JAVASCRIPT, source=step.javascript)
        knows = finds_module_types(await self._interpreter(plain))
        return evolve(job, step=plain) if knows else job

    def _prestart(self, step: CodeStep, limits: Mapping[str, int]) -> Prestart | None:
        """The start of the step's interpreter in advance, or None if that is impossible."""
        state = self._interpreters.known(step.language, step.runtime)
        recipe = recipes_on(step.runtime).get(step.language)
        if recipe is None or recipe.boot is None or state is None or state.path is None:
            return None
        waiting = recipe.waiting(state.path, state.version or "")
        return Prestart(waiting, tuple(self._passed_on.items()), tuple(limits.items()))

    async def _argv(self, folder: StepFolder, job: StepJob) -> list[str]:
        if job.step.language is Language.COMMAND:
            return step_environment.command(job.argv, self._passed_on["PATH"])
        return step_environment.interpreted(folder, job, await self._interpreter(job.step))

    async def _interpreter(self, step: CodeStep) -> LanguageState:
        wanted = step.language, step.runtime
        if state := self._interpreters.known(*wanted):
            return state
        return await self._in_thread(partial(self._interpreters.find, *wanted))

    async def _outcome(self, ended: Ended, timeout_s: float, job: StepJob) -> StepEnd:
        """
        The end of the attempt, with artifacts stored, or with the error that prevented storing.
        """
        if len(ended.stdout) + len(ended.output or b"") + len(ended.state or b"") <= _LITTLE:
            end = self._judge(ended, timeout_s)
        else:
            end = await self._in_thread(lambda: outputs.counted(self._judge(ended, timeout_s)))
        if ended.artifacts is None:
            return end
        try:
            return await self._with_artifacts(end, ended.artifacts, job)
        except StoreUnavailable as problem:
            return _unless_failed(end, f"its artifacts were not kept: {problem}", permanent=False)
        finally:
            await uninterrupted(self._in_thread(partial(os.close, ended.artifacts)))

    def _judge(self, ended: Ended, timeout_s: float) -> StepEnd:
        """The end of the attempt without artifacts."""
        end = outputs.fault_of(ended, timeout_s, self._limits.stdout)
        if end:
            return end
        if ended.artifacts_trouble:
            return StepEnd(error=ended.artifacts_trouble, permanent=True)
        try:
            return StepEnd(outputs.output_of(ended), state=outputs.state_of(ended))
        except outputs.UnusableOutput as problem:
            return StepEnd(error=str(problem), permanent=True)

    async def _with_artifacts(self, end: StepEnd, folder: int, job: StepJob) -> StepEnd:
        """*end* with its files stored, and the other files refused by name. CS-10."""
        most = self._limits.artifacts, self._limits.artifact
        is_limited = (await self._setup()).level.name == NAMESPACE
        in_all = self._limits.disk if is_limited else math.inf
        find = partial(artifacts.find, folder, *most, job.hidden_in_names, in_all)
        found = await self._in_thread(find)
        stored: list[LeftFile] = []
        for path, name in found.names().items():
            id = self._new_artifact_id()
            try:
                about = (job.execution_id, id, folder, path, name)
                file = await artifacts.store_patiently(self._files, *about)
            except UnusableArtifact as problem:
                found.refuse(path, str(problem))
            else:
                stored.append(file)
        if job.is_read:
            setup = await self._setup()
            await setup.given.prepare(folder_of(job.step_name, stored))
        if found.fault:
            end = _unless_failed(end, found.fault, permanent=True)
        return evolve(end, files=tuple(stored), refused=found.all_refused())

    async def _in_thread(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)


@contextmanager
def _before_anything_runs() -> Iterator[None]:
    """Raise `NotStarted` for errors of the system, since nothing of the step has run. EX-27."""
    try:
        yield
    except OSError as trouble:
        raise NotStarted.of(trouble) from trouble


def _failed(task: "asyncio.Task[_Setup]") -> bool:
    return task.done() and (task.cancelled() or task.exception() is not None)


def _refusal(level: Level, least: str) -> str:
    """The error of every step on a machine whose level is too low. CS-9."""
    return (
        f"code steps are refused: this machine gives them the isolation level {level.name!r}, "
        f"which is below WFCORE_MIN_ISOLATION={least}; wfcore doctor says how to get a better one"
    )


def _unless_failed(end: StepEnd, error: str, permanent: bool) -> StepEnd:
    """*end* if it has an error already, otherwise a failure with *error*."""
    return end if end.error else StepEnd(error=error, permanent=permanent)
