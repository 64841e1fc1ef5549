"""
How soon a step begins that reads 200 files of 1 MB, beside one that reads none.

In one execution, a step leaves the files; then steps with them and without take turns. A step
begins when its program writes down the time, counted from the recorded end of the step before it.
"""

import asyncio
import statistics
from collections.abc import Sequence
from pathlib import Path

from wfcore.model.access import Principal, Tier
from wfcore.model.execution import Execution, ExecutionStatus
from wfcore.model.workflow import CodeStep, Definition, Language, Step
from wfcore.rules.limits import ARTIFACTS_PER_EXECUTION, MIB
from wfcore.time import MINUTE
from wfcore.usecases.accounts.accounts import create_account
from wfcore.usecases.executions.executions import wait_for_rest
from wfcore.usecases.executions.starting import start_execution
from wfcore.usecases.workflows.workflows import apply_workflow
from wfserver.compose import open_system
from wfserver.serving.engine import engine, runner_of
from wfserver.settings.record import settings_from

ROUNDS = 15
LEAVE = f"""
cd "$WF_ARTIFACTS"
for number in $(seq {ARTIFACTS_PER_EXECUTION}); do head -c {MIB} /dev/zero > "$number"; done
"""
BEGIN = 'echo "$EPOCHREALTIME"'


def begins_ms(folder: Path) -> tuple[float, float]:
    """Medians in ms: with the files, and without."""
    run = asyncio.run(_run(folder))
    return _median_ms(run, _names("with")), _median_ms(run, _names("without"))


def _names(kind: str) -> Sequence[str]:
    return [f"{kind}_{number}" for number in range(ROUNDS)]


def _steps() -> Sequence[Step]:
    leave = CodeStep("leave", Language.BASH, LEAVE, timeout_ms=MINUTE)
    first = CodeStep("first", Language.BASH, BEGIN)  # after which a sandbox waits, as usual
    turns = [
        CodeStep(name, Language.BASH, BEGIN, files=files)
        for pair in zip(_names("without"), _names("with"), strict=True)
        for name, files in zip(pair, ((), ("leave",)), strict=True)
    ]
    return leave, first, *turns


async def _run(folder: Path) -> Execution:
    async with open_system(settings_from({}, data=str(folder))) as system:
        services = system.services
        who = Principal(await create_account(services, "ann@example.org", Tier.ENTERPRISE))
        definition = Definition("given", tuple(_steps()))
        workflow = await apply_workflow(services, who.account.id, definition)
        async with engine(system, runner_of(system)):
            started = await start_execution(services, who, workflow.id, {})
            run = await wait_for_rest(services, who, started.execution_id, 10 * MINUTE)
        if run.status is not ExecutionStatus.COMPLETED:
            raise RuntimeError(f"the steps went wrong: {run.error}")
        return run


def _median_ms(run: Execution, names: Sequence[str]) -> float:
    keys, results = list(run.step_results), run.step_results
    ended = (results[keys[keys.index(name) - 1]].completed_at or 0 for name in names)
    begun = (float(str(results[name].output)) * 1_000 for name in names)
    return statistics.median(later - at for later, at in zip(begun, ended, strict=True))
