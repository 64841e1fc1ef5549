"""
Running steps: what a step runner gets and what it gives back, and the packages that steps import.
Contract §4 and §5.
"""

from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import Protocol, TypeAlias

from attrs import field, frozen

from wfcore.errors import PackagesUnavailable
from wfcore.model.execution import RefusedFile, Usage
from wfcore.model.json import Json, JsonObject
from wfcore.model.workflow import AiStep, CodeStep, Language, Needs
from wfcore.rules.execution.budget import Allowance
from wfcore.rules.masking import NO_SECRETS, Secrets


@frozen
class StepJob:
    """
    One attempt of one code step, with all that its world holds.

    `argv` is the rendered `command` (empty for the other languages). `environment` are the
    `WF_VAR_*` and `WF_SECRET_*` values by full name; `context` is the content of the context file.
    `log`: whether output lines are wanted while it runs; else its end has them. `postponed`: how
    often this attempt was to begin before, and did not. `hidden`: what is to be masked in all that
    comes out of it. SC-6.
    """

    execution_id: str
    workflow_id: str
    step_name: str
    attempt: int
    fence: int
    step: CodeStep
    argv: tuple[str, ...]
    environment: Mapping[str, str] = field(repr=False)
    context: JsonObject = field(repr=False)
    log: bool = False
    postponed: int = 0
    hidden: Secrets = NO_SECRETS


@frozen
class AiJob:
    """
    One attempt of one AI step; `system` and `prompt` are rendered.

    `allowance`: the execution's budget and what was spent of it, None without one. `postponed` and
    `hidden` as of `StepJob`.
    """

    execution_id: str
    workflow_id: str
    step_name: str
    attempt: int
    fence: int
    step: AiStep
    system: str
    prompt: str
    allowance: Allowance | None = None
    log: bool = False
    postponed: int = 0
    hidden: Secrets = NO_SECRETS


Job: TypeAlias = StepJob | AiJob


@frozen
class LeftFile:
    """A file that a step left in its artifacts folder, already stored."""

    id: str
    name: str
    storage_key: str
    size: int
    content_type: str
    sha256: str
    previewable: bool


@frozen
class StepEnd:
    """
    How an attempt ended. `error` None: it went well and `output` counts.

    `timed_out`: it ran into its timeout. `permanent`: trying again cannot help (no such
    interpreter, too much output). When this exists, everything the step started is dead.
    `usage`: what the attempt consumed, whether it went well or not. `refused`: what it left
    beside its `files` and what is no artifact.

    `postponed`: nothing of the attempt has run, provably, because the machine lacked this to start
    it (no process, no descriptor, no space); it is begun again later, and the rest does not count.
    `lasting`: time alone does not cure that, so it is tried a bounded number of times. EX-27.

    `lines`: what it wrote, by stream, where nobody wanted it while it ran. EX-28.
    """

    output: Json = None
    error: str | None = None
    timed_out: bool = False
    permanent: bool = False
    files: tuple[LeftFile, ...] = ()
    refused: tuple[RefusedFile, ...] = ()
    usage: Usage | None = None
    postponed: str | None = None
    lasting: bool = False
    lines: tuple[tuple[str, str], ...] = field(default=(), eq=False)


@frozen
class LanguageState:
    """Whether a language can run here; `cure` says what to install when it cannot."""

    language: Language
    available: bool
    path: str | None = None
    version: str | None = None
    cure: str | None = None


Say = Callable[[str, str], Awaitable[None]]
"""Takes a stream name (`stdout`, `stderr` or `ai`) and some whole lines."""


class JobRunner(Protocol):
    """Runs whatever kind of job. Bounded concurrency is the caller's."""

    async def run(self, job: Job, say: Say) -> StepEnd:
        """
        Run one attempt to its end. Never raises for what the step did.

        May be cancelled; when it has returned or raised, nothing of the attempt goes on.
        """


class StepRunner(Protocol):
    """Runs code. Bounded concurrency is the caller's."""

    async def run(self, job: StepJob, say: Say) -> StepEnd:
        """
        Run one attempt to its end. Never raises for what the code did.

        May be cancelled; when it has returned or raised, every process that the step started
        is dead, whatever it did to hide, and its folder is gone.
        """

    def languages(self) -> Mapping[Language, LanguageState]:
        """What can run here."""

    async def close(self) -> None:
        """End everything that still runs."""


class Environments(Protocol):
    """
    One environment for each different `Needs`, kept between processes and restarts.

    An environment is there whole or not at all: what was cut off while it was being made is
    never found. Once there, it does not change; one that was damaged is made anew by `prepare`.
    """

    async def prepare(self, needs: Needs) -> Needs:
        """
        Install exactly what the lock of *needs* says, unless it is there and undamaged; without a
        lock, or with one that is for another platform, resolve the packages first. The same needs
        with the lock that holds. Of any number of callers at once, in any number of processes,
        one installs and all return when it is done.

        Raises `PackagesUnavailable` with the installer's words; nothing is left then, and the
        next call tries again.
        """

    def find(self, needs: Needs) -> str | None:
        """
        The path of what `prepare` made for needs with that lock; None where it is not, or no
        longer, there.
        """

    async def prune(self, in_use: Callable[[], Awaitable[Collection[Needs]]]) -> int:
        """
        Remove what has not been prepared or used for a while and is not among what *in_use*
        gives; how many went. It is asked only where something might go. What somebody
        prepares at the same time stays.
        """


class NoEnvironments:
    """An `Environments` for a service whose steps bring no packages."""

    async def prepare(self, needs: Needs) -> Needs:
        """Raises `PackagesUnavailable`."""
        raise PackagesUnavailable("packages cannot be installed here")

    def find(self, needs: Needs) -> str | None:
        """None."""
        return None

    async def prune(self, in_use: Callable[[], Awaitable[Collection[Needs]]]) -> int:
        """0."""
        return 0


NO_ENVIRONMENTS: Environments = NoEnvironments()
