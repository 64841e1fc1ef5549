"""
Running steps: what a step runner receives and returns, and the packages that steps import.
"""

from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import Protocol, TypeAlias

from attrs import field, frozen

from wfcore.errors import PackagesUnavailable
from wfcore.model.execution import RefusedFile, Usage
from wfcore.model.json import Json, JsonObject
from wfcore.model.workflow import AiStep, CodeStep, Language, Needs, Runtime
from wfcore.rules.execution.budget import Allowance
from wfcore.rules.masking import NO_SECRETS, Secrets


@frozen
class StepJob:
    """
    One attempt of one code step, with everything the step can see.

    `argv` is the rendered `command` (empty for the other languages). `environment`: the `WF_VAR_*`
    and `WF_SECRET_*` values by full name; `context`: the content of the context file. `log`:
    whether output lines are wanted while the step runs; otherwise they are part of the result.
    `monitored`: whether each is to be an event at once.
    `postponed`: how often this attempt was to begin and could not. `hidden`: the secrets to mask in
    all its output; `hidden_in_names`: these and the secret variables, to mask in the names of what
    it leaves. SC-1, SC-6.
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
    monitored: bool = False
    postponed: int = 0
    hidden: Secrets = NO_SECRETS
    hidden_in_names: Secrets = NO_SECRETS


@frozen
class AiJob:
    """
    One attempt of one AI step; `system` and `prompt` are rendered.

    `allowance`: the execution's budget and what has been used of it; None without a budget.
    `postponed` and `hidden` as in `StepJob`. `traceparent`: of the attempt's span, if there is one.
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
    traceparent: str | None = None


Job: TypeAlias = StepJob | AiJob


@frozen
class LeftFile:
    """A file that a step left in its artifacts folder; its content is already stored."""

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
    How an attempt ended. `error` None: it succeeded, and `output` is JSON whose integers fit 64
    bits: larger ones would be doubles once they were stored and read.

    `timed_out`: it reached its timeout. `permanent`: retrying cannot help (no such interpreter, too
    much output). Once this exists, every process that the step started is dead. `usage`: what the
    attempt consumed, successful or not. `refused`: what was found beside its `files` and is not an
    artifact.

    `postponed`: nothing of the attempt has run, because the machine lacked the named resource (no
    process, no descriptor, no space); the attempt begins again later, and the other fields do not
    count. `lasting`: waiting alone does not help, so the number of tries is limited. `alone`: what
    was lacking concerns this step and not the machine, which can start others. EX-27.

    `lines`: its output by stream, if nobody wanted it while the step ran. EX-28. `size`: the
    characters of JSON of a large `output`, if the runner counted them aside of the event loop; else
    None, and they are counted when the end is recorded.
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
    alone: bool = False
    lines: tuple[tuple[str, str], ...] = field(default=(), eq=False)
    size: int | None = field(default=None, eq=False)


@frozen
class LanguageState:
    """
    Whether a language can run here; if not, `cure` says what to install. `runtimes`: those that a
    step in it may name here.
    """

    language: Language
    available: bool
    path: str | None = None
    version: str | None = None
    cure: str | None = None
    runtimes: tuple[Runtime, ...] = ()


Say = Callable[[str, str], Awaitable[None]]
"""Takes a stream name (`stdout`, `stderr` or `ai`) and some whole lines."""


class JobRunner(Protocol):
    """Runs jobs of any kind. The caller limits concurrency."""

    async def run(self, job: Job, say: Say) -> StepEnd:
        """
        Run one attempt to its end. Never raises for what the step did.

        May be cancelled; once this has returned or raised, nothing of the attempt is running.
        """


class StepRunner(Protocol):
    """Runs code. The caller limits concurrency."""

    async def run(self, job: StepJob, say: Say) -> StepEnd:
        """
        Run one attempt to its end. Never raises for what the code did.

        May be cancelled; once this has returned or raised, every process that the step started is
        dead, however it tried to hide, and its folder is deleted.
        """

    def languages(self) -> Mapping[Language, LanguageState]:
        """Which languages can run here."""

    async def close(self) -> None:
        """End everything that is still running."""


class Environments(Protocol):
    """
    One environment per distinct `Needs`, shared by processes and kept across restarts.

    An environment is complete or absent: a partly installed one is never found. It does not change
    once it exists; `prepare` rebuilds one that was damaged.
    """

    async def prepare(self, needs: Needs) -> Needs:
        """
        Install exactly what the lock of *needs* lists, unless that is already installed and intact;
        without a lock, or with a lock for another platform, resolve the packages first. Returns
        *needs* with the valid lock. Of any number of concurrent callers, in any number of
        processes, one installs, and all return when it is done.

        Raises `PackagesUnavailable` with the installer's message; nothing is left behind then, and
        the next call tries again.
        """

    def find(self, needs: Needs) -> str | None:
        """
        The path of the environment that `prepare` made for needs with that lock; None if it does
        not exist (any more).
        """

    async def restore(self, needs: Needs) -> str:
        """
        The path of the environment for needs that were prepared here or elsewhere: if it does not
        exist, exactly what the lock lists is installed first, once, as by `prepare`. Nothing is
        ever resolved.

        Raises `PackagesUnavailable`, also without a lock or with one for another platform, and
        `OSError` where the machine lacks something now; nothing is left behind then.
        """

    async def prune(self, in_use: Callable[[], Awaitable[Collection[Needs]]]) -> int:
        """
        Remove environments that have not been prepared or used for a while and are not in what
        *in_use* returns; returns their number. *in_use* is called only if something could be
        removed. Environments that are being prepared at the same time stay.
        """


class NoEnvironments:
    """The `Environments` of a service whose steps may not use packages."""

    async def prepare(self, needs: Needs) -> Needs:
        """Raises `PackagesUnavailable`."""
        raise PackagesUnavailable("packages cannot be installed here")

    def find(self, needs: Needs) -> str | None:
        """None."""
        return None

    async def restore(self, needs: Needs) -> str:
        """Raises `PackagesUnavailable`."""
        raise PackagesUnavailable("packages cannot be installed here")

    async def prune(self, in_use: Callable[[], Awaitable[Collection[Needs]]]) -> int:
        """0."""
        return 0


NO_ENVIRONMENTS: Environments = NoEnvironments()
