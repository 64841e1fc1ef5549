"""Whoever worked on an execution once may write to it for ever. EX-16."""

from wfcore.model.execution import Execution
from wfcore.model.workflow import Definition
from wfcore.ports.store import Unit
from wfcore.usecases import running
from wfcore.usecases._looking import definition_of
from wfcore.usecases.running import Lease


def plant() -> None:
    async def held(unit: Unit, lease: Lease) -> tuple[Execution, Definition]:
        run = await unit.executions.get(lease.execution_id)
        assert run is not None
        return run, await definition_of(unit, run.workflow_id, run.revision)

    running._held = held
