"""The ports that run steps: the jobs and results of a step runner, and the packages of steps."""

import json
from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import Protocol, TypeAlias, cast

from attrs import field, frozen

from wfcore.errors import PackagesUnavailable
from wfcore.model.execution import Artifact, RefusedFile, Usage
from wfcore.model.json import Json, JsonObject
from wfcore.model.workflow import AiStep, CodeStep, Language, Needs, Runtime
from wfcore.rules.execution.budget import Allowance
from wfcore.rules.execution.given_files import GivenFolder
from wfcore.rules.masking import NO_SECRETS, Secrets


@frozen
class StepJob:
    """
    One attempt of one code step, with everything the step can see.

    `argv`: the rendered `command` (empty for the other languages). `environment`: the `WF_VAR_*`
    and `WF_SECRET_*` values by full name. `names`, which are given as `context`: the content of the
    context file, in which some outputs are unread; `outputs`: these outputs as JSON text, by the
    name of the step. `log`: whether output lines are wanted while the step runs; otherwise they are
    part of the result. `monitored`: whether each line becomes an event at once.

    `postponed`: how often this attempt could not begin. `hidden`: the secrets to mask in all output
    of the step; `hidden_in_names`: these secrets and the secret variables, to mask in the names of
    files that the step leaves. SC-1, SC-6.

    `files`: the files of earlier steps that the step reads, a folder for each step; a runner gives
    a copy or a read-only view, and adds `files` to the context. `is_read`: whether later steps read
    the files of this step. FI-1 to FI-4.
    """

    execution_id: str
    workflow_id: str
    step_name: str
    attempt: int
    fence: int
    step: CodeStep
    argv: tuple[str, ...]
    environment: Mapping[str, str] = field(repr=False)
    names: JsonObject = field(repr=False, alias="context")
    log: bool = False
    monitored: bool = False
    postponed: int = 0
    hidden: Secrets = NO_SECRETS
    hidden_in_names: Secrets = NO_SECRETS
    files: tuple[GivenFolder[Artifact], ...] = ()
    is_read: bool = False
    outputs: Mapping[str, bytes] = field(factory=dict, repr=False)

    @property
    def context(self) -> JsonObject:
        """The content of the context file. Each call decodes the `outputs` again. ST-7."""
        if not self.outputs:
            return self.names
        steps = dict(cast("Mapping[str, JsonObject]", self.names["steps"]))
        for name, text in self.outputs.items():
            steps[name] = {"status": steps[name]["status"], "output": json.loads(text)}
        return {**self.names, "steps": steps}


@frozen
class AiJob:
    """
    One attempt of one AI step; `system` and `prompt` are rendered.

    `allowance`: the execution's budget and the usage so far; None without a budget. `postponed` and
    `hidden` as in `StepJob`. `traceparent`: the span of the attempt, if there is one.
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
    The end of an attempt. `error` None: the attempt succeeded, and `output` is JSON whose integers
    fit 64 bits: larger integers would become doubles when stored and read.

    `timed_out`: the attempt reached its timeout. `permanent`: retrying cannot help (no such
    interpreter, too much output). Once a `StepEnd` exists, every process that the step started is
    dead. `usage`: the usage of the attempt, successful or not. `model`: the model that answered, if
    the step may ask several. `refused`: files beside `files` that are not artifacts. `state`: the
    object that a successful attempt wrote for the workflow's state. SV-3.

    `postponed`: the resource that the machine lacked (process, descriptor, space). In that case
    nothing of the attempt ran; the attempt begins again later, and the other fields do not count.
    `lasting`: waiting alone does not help, so the number of tries is limited. `alone`: the shortage
    concerns only this step; the machine can start other steps. EX-27.

    `lines`: the output by stream, if nobody followed the output while the step ran. EX-28. `size`:
    the characters of JSON of a large `output`, if the runner counted them outside the event loop;
    None: they are counted when the end is recorded.
    """

    output: Json = None
    error: str | None = None
    timed_out: bool = False
    permanent: bool = False
    files: tuple[LeftFile, ...] = ()
    refused: tuple[RefusedFile, ...] = ()
    usage: Usage | None = None
    model: str | None = None
    state: JsonObject | None = field(default=None, repr=False)
    postponed: str | None = None
    lasting: bool = False
    alone: bool = False
    lines: tuple[tuple[str, str], ...] = field(default=(), eq=False)
    size: int | None = field(default=None, eq=False)


@frozen
class LanguageState:
    """
    Whether a language can run here; if not, `cure` says what to install. `runtimes`: the runtimes
    that a step in this language may name here.
    """

    language: Language
    available: bool
    path: str | None = None
    version: str | None = None
    cure: str | None = None
    runtimes: tuple[Runtime, ...] = ()


Say = Callable[[str, str], Awaitable[None]]
"""A function that takes a stream name (`stdout`, `stderr` or `ai`) and some whole lines."""


class JobRunner(Protocol):
    """Runs jobs of any kind. The caller limits concurrency."""

    async def run(self, job: Job, say: Say) -> StepEnd:
        """
        Run one attempt to its end. Never raises for errors of the step.

        A call may be cancelled. Once the call has returned or raised, nothing of the attempt is
        running.
        """


class StepRunner(Protocol):
    """Runs code. The caller limits concurrency."""

    async def run(self, job: StepJob, say: Say) -> StepEnd:
        """
        Run one attempt to its end. Never raises for errors of the code.

        A call may be cancelled. Once the call has returned or raised, every process that the step
        started is dead, however well hidden, and the step's folder is deleted.
        """

    def languages(self) -> Mapping[Language, LanguageState]:
        """The state of each language here."""

    async def close(self) -> None:
        """End all running steps."""


class Environments(Protocol):
    """
    One environment per distinct `Needs`, shared by processes and kept across restarts.

    An environment is complete or absent: a partly installed environment is never found. An existing
    environment does not change; `prepare` rebuilds a damaged environment.
    """

    async def prepare(self, needs: Needs) -> Needs:
        """
        Install exactly the packages in the lock of *needs*, unless they are already installed and
        intact; without a lock, or with a lock for another platform, resolve the packages first.
        Returns *needs* with the valid lock. Of any number of concurrent callers, in any number of
        processes, one caller installs, and all return once the installation is complete.

        Raises `PackagesUnavailable` with the installer's message; then nothing is left behind, and
        the next call tries again.
        """

    def find(self, needs: Needs) -> str | None:
        """
        The path of the environment that `prepare` made for needs with that lock; None if there is
        no such environment now.
        """

    async def restore(self, needs: Needs) -> str:
        """
        The path of the environment for needs that were prepared here or elsewhere. A missing
        environment is first installed exactly from the lock, once, as by `prepare`. Nothing is ever
        resolved.

        Raises `PackagesUnavailable`, also for a missing lock or a lock for another platform, and
        `OSError` if the machine lacks a resource now; then nothing is left behind.
        """

    async def prune(self, in_use: Callable[[], Awaitable[Collection[Needs]]]) -> int:
        """
        Remove environments that have not been prepared or used for a while and are absent from the
        result of *in_use*; returns the number removed. *in_use* is called only if something could
        be removed. Environments that are being prepared at the same time stay.
        """


class NoEnvironments:
    """The `Environments` of a service whose steps may not use packages."""

    async def prepare(self, needs: Needs) -> Needs:
        """Raises `PackagesUnavailable`."""
        raise PackagesUnavailable("packages cannot be installed here")

    def find(self, needs: Needs) -> str | None:
        """Returns None."""
        return None

    async def restore(self, needs: Needs) -> str:
        """Raises `PackagesUnavailable`."""
        raise PackagesUnavailable("packages cannot be installed here")

    async def prune(self, in_use: Callable[[], Awaitable[Collection[Needs]]]) -> int:
        """Returns 0."""
        return 0


NO_ENVIRONMENTS: Environments = NoEnvironments()
