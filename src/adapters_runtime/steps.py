"""Runs every kind of job: each by the runner that is for it."""

from adapters_runtime.ai.runner import AiStepRunner
from wfcore.ports.runtime import AiJob, Job, Say, StepEnd, StepRunner


class StepRunners:
    """`JobRunner` over one runner for each kind of step."""

    def __init__(self, code: StepRunner, ai: AiStepRunner) -> None:
        self._code = code
        self._ai = ai

    async def run(self, job: Job, say: Say) -> StepEnd:
        """Run one attempt to its end; see `JobRunner`."""
        if isinstance(job, AiJob):
            return await self._ai.run(job, say)
        return await self._code.run(job, say)
