"""Steps are ordinary children, which nothing ends when the server is killed. CS-7."""

import asyncio
import os
from typing import Any

from adapters_runtime.code.runner import CodeStepRunner
from wfcore.ports.runtime import StepEnd, StepJob


def plant() -> None:
    async def run(self: CodeStepRunner, job: StepJob, say: Any) -> StepEnd:
        environment = {
            **job.environment,
            "PATH": os.environ["PATH"],
            "WF_EXECUTION_ID": job.execution_id,
            "WF_STEP_NAME": job.step_name,
            "WF_ATTEMPT": str(job.attempt),
            "WF_CONTEXT": os.devnull,
            "WF_ARTIFACTS": os.devnull,
        }
        process = await asyncio.create_subprocess_exec(
            "bash", "-c", job.step.source, env=environment, start_new_session=True
        )
        return StepEnd(error=None if await process.wait() == 0 else "failed")

    CodeStepRunner.run = run  # type: ignore[method-assign]
