"""
The simulated step runner, and the record of the attempts that it started.

The source of a step, or the prompt of an AI step, says what the step does: `ok 400` succeeds after
400 ms; `fail 10` fails after 10 ms; `flaky 2 50` fails twice and then succeeds; `slow 90000`
reaches its timeout; `chatty 300` prints a line; `counts 300` counts in the workflow's state;
`leaves 2 50` leaves a file in each attempt, fails twice and then succeeds; `held 2 500` postpones
each attempt twice and then succeeds.
"""

from collections import Counter
from collections.abc import Mapping
from typing import Any, Protocol

from attrs import evolve

from wfcore.model.execution import Usage
from wfcore.model.json import Json, JsonObject
from wfcore.model.workflow import Language
from wfcore.ports.runtime import AiJob, Job, LanguageState, LeftFile, Say, StepEnd
from wfcore.testing.simulator.calls import SimSchedulingPoint, sleep
from wfcore.testing.simulator.scheduler import Violation

USED = Usage(10, 5, "0.015")
"""The usage of each attempt of an AI step."""

COUNTED = "counted"
"""The field in the output of a step that wrote state: the attempt, as in the state."""

Attempt = tuple[str, str, int]
"""The id of an execution, the name of a step, and the number of an attempt."""


class StepObserver(Protocol):
    """An observer of each step that starts."""

    def started(self, job: Job) -> None:
        """Raise `Violation` if the step of *job* must not start."""


class StartedAttempts:
    """The attempts that were started, and the attempts that still run."""

    def __init__(self) -> None:
        self.started: Counter[Attempt] = Counter()
        self.running: set[Attempt] = set()

    def start(self, attempt: Attempt) -> None:
        """Note that *attempt* has started. Raises `Violation` if *attempt* was started before."""
        self.started[attempt] += 1
        if self.started[attempt] > 1:
            raise Violation(f"started twice: {attempt}")
        self.running.add(attempt)

    def end(self, attempt: Attempt) -> None:
        """Note that *attempt* has ended."""
        self.running.discard(attempt)


def _told(job: Job) -> list[str]:
    """The action of the step: a verb and its numbers."""
    told = job.prompt if isinstance(job, AiJob) else job.step.source
    return (told or "ok 0").split()


def end_of(job: Job, worker: str) -> StepEnd:
    """The end of an attempt that *worker* ran in time."""
    verb, *numbers = _told(job)
    files = (_left_by(job),) if verb == "leaves" else ()
    if verb == "fail" or (verb in ("flaky", "leaves") and job.attempt <= int(numbers[0])):
        return StepEnd(error=f"attempt {job.attempt} failed", files=files)
    output: JsonObject = {"attempt": job.attempt, "fence": job.fence, "by": worker}
    if verb != "counts" or isinstance(job, AiJob):
        return StepEnd(output, files=files)
    seen: Any = job.context["state"]
    last: list[Json] = [job.execution_id, job.step_name, job.attempt]
    return StepEnd({**output, COUNTED: last}, state={"count": seen["count"] + 1, "last": last})


def _left_by(job: Job) -> LeftFile:
    """The file that an attempt leaves, with the attempt's number as its name."""
    id = f"art_{job.execution_id}_{job.step_name}_{job.attempt}"
    return LeftFile(id, str(job.attempt), id, 0, "text/plain", "0" * 64, False)


class SimRunner:
    """Implements `StepRunner` and `JobRunner` of `wfcore.ports.runtime` for one process."""

    def __init__(self, ledger: StartedAttempts, judge: StepObserver, worker: str) -> None:
        self._ledger = ledger
        self._judge = judge
        self._worker = worker
        self._spawn = SimSchedulingPoint(store=False)

    async def run(self, job: Job, say: Say) -> StepEnd:
        """Do what the source says. A cancelled attempt is no longer in `running`, either."""
        attempt = (job.execution_id, job.step_name, job.attempt)
        verb, *numbers = _told(job)
        if verb == "held" and job.postponed < int(numbers[0]):
            return StepEnd(postponed="no process was left")

        def start() -> None:
            self._judge.started(job)
            self._ledger.start(attempt)

        try:
            await self._spawn("start step", f"{attempt} fence {job.fence}", start, writes=True)
            return await self._played(job, say)
        finally:
            self._ledger.end(attempt)

    async def _played(self, job: Job, say: Say) -> StepEnd:
        end = await self._as_told(job, say)
        return evolve(end, usage=USED) if isinstance(job, AiJob) else end

    async def _as_told(self, job: Job, say: Say) -> StepEnd:
        verb, *numbers = _told(job)
        ms = int(numbers[-1])
        if verb == "chatty":
            await say("stdout", "working\n")
        if ms >= job.step.timeout_ms:
            await sleep(job.step.timeout_ms)
            return StepEnd(error="took too long", timed_out=True)
        await sleep(ms)
        return end_of(job, self._worker)

    def languages(self) -> Mapping[Language, LanguageState]:
        """Every language is available."""
        return {language: LanguageState(language, True) for language in Language}

    async def close(self) -> None:
        """Do nothing: a step ends with its task."""
