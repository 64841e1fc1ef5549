"""
The simulated step runner, and the ledger: the only judge of what was started.

What a step does stands in its source, or in the prompt of an AI step: `ok 400` ends well after
400 ms, `fail 10` badly, `flaky 2 50` badly twice and then well, `slow 90000` runs into its
timeout, `chatty 300` says something on the way; `held 2 500` cannot be started twice, each time
there is an attempt, and then ends well.
"""

from collections import Counter
from collections.abc import Mapping
from typing import Protocol

from attrs import evolve

from wfcore.model.execution import Usage
from wfcore.model.workflow import Language
from wfcore.ports.runtime import AiJob, Job, LanguageState, Say, StepEnd
from wfcore.testing.simulator.calls import SimSchedulingPoint, sleep
from wfcore.testing.simulator.scheduler import Violation

USED = Usage(10, 5, "0.015")
"""The usage of each attempt of an AI step."""

Attempt = tuple[str, str, int]
"""An execution, a step of it, and the number of the attempt."""


class StepObserver(Protocol):
    """Looks on when a step starts."""

    def started(self, job: Job) -> None:
        """Raises `Violation` where this must not happen."""


class StartedAttempts:
    """Which attempts were started, and which of them still run."""

    def __init__(self) -> None:
        self.started: Counter[Attempt] = Counter()
        self.running: set[Attempt] = set()

    def start(self, attempt: Attempt) -> None:
        """Write it down. Raises `Violation` where it was started before."""
        self.started[attempt] += 1
        if self.started[attempt] > 1:
            raise Violation(f"started twice: {attempt}")
        self.running.add(attempt)

    def end(self, attempt: Attempt) -> None:
        """Note that *attempt* has ended."""
        self.running.discard(attempt)


def _told(job: Job) -> list[str]:
    """The deed of the step: a verb and its numbers."""
    told = job.prompt if isinstance(job, AiJob) else job.step.source
    return (told or "ok 0").split()


class SimRunner:
    """Satisfies `StepRunner` and `JobRunner` of `wfcore.ports.runtime` for one process."""

    def __init__(self, ledger: StartedAttempts, judge: StepObserver, worker: str) -> None:
        self._ledger = ledger
        self._judge = judge
        self._worker = worker
        self._spawn = SimSchedulingPoint(store=False)

    async def run(self, job: Job, say: Say) -> StepEnd:
        """Do what the source says; what is cut short is out of `running` all the same."""
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
        if verb == "fail" or (verb == "flaky" and job.attempt <= int(numbers[0])):
            return StepEnd(error=f"attempt {job.attempt} failed")
        return StepEnd({"attempt": job.attempt, "fence": job.fence, "by": self._worker})

    def languages(self) -> Mapping[Language, LanguageState]:
        """Every language is available."""
        return {language: LanguageState(language, True) for language in Language}

    async def close(self) -> None:
        """Nothing to do: a step ends with its task."""
