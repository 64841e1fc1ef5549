"""The code step runner of a process, as the settings want it, from its start to its end."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from adapters_runtime.code_step import CodeStepRunner, StepLimits
from wfserver.compose import System
from wfserver.isolation import step_isolation


@asynccontextmanager
async def code_steps(system: System, port: int | None = None) -> AsyncIterator[CodeStepRunner]:
    """
    The runner of code steps; its folders lie in the data folder. On leaving it is closed.

    *port*: where the server listens, which no step reaches.
    """
    runner = _new_runner(system, port)
    try:
        yield runner
    finally:
        await runner.close()


def _new_runner(system: System, port: int | None) -> CodeStepRunner:
    def new_artifact_id() -> str:
        return system.services.ids.new("art", system.services.clock.now())

    settings = system.settings
    steps = settings.steps
    return CodeStepRunner(
        settings.data / "steps",
        system.services.files,
        new_artifact_id,
        StepLimits(
            memory=steps.memory, processes=steps.processes, disk=steps.disk, inodes=steps.files
        ),
        isolation=step_isolation(settings, port),
        environments=system.services.environments,
        warm=steps.warm,
    )
