"""Workflows with triggers: what the tests of chains and schedules begin with."""

from collections.abc import Sequence

from tests.wfcore.usecases.conftest import World
from wfcore.model.access import OPERATOR, Principal
from wfcore.model.event import AuditEntry
from wfcore.model.execution import Execution
from wfcore.model.page import PageRequest
from wfcore.model.trigger import Schedule, TriggerRow
from wfcore.ports.records import ExecutionFilter
from wfcore.time import HOUR, EpochMs
from wfcore.usecases.audit import auditing
from wfcore.usecases.executions import executions
from wfcore.usecases.workflows import workflows

PAGE = PageRequest(1, 200)
HOURLY = Schedule("0 * * * *")
STARTED_AT = 1_700_000_000_000
NEXT_HOUR = STARTED_AT - STARTED_AT % HOUR + HOUR


async def runs_of(world: World, workflow_id: str) -> Sequence[Execution]:
    """The executions of a workflow, oldest first."""
    found = await executions.list_executions(
        world.services, OPERATOR, PAGE, ExecutionFilter(workflow_id=workflow_id)
    )
    return found.rows[::-1]


async def shown(world: World, workflow_id: str) -> TriggerRow:
    """The only trigger of a workflow."""
    (one,) = (await workflows.read_workflow(world.services, OPERATOR, workflow_id)).triggers
    return one


async def complete(world: World, who: Principal, workflow_id: str) -> str:
    """Start the workflow of one step and run it to its end."""
    run_id = await world.start(who, workflow_id)
    await run_one(world)
    return run_id


async def run_one(world: World) -> None:
    lease, (job,) = await world.take()
    await world.finish(lease, job.step_name)


async def skipped(world: World) -> list[AuditEntry]:
    entries = await auditing.read_audit(world.services, EpochMs(0), None, 1_000)
    return [entry for entry in entries if entry.event == "trigger.fire"]


def to(world: World, at: int) -> None:
    world.clock.advance(at - world.clock.now())
