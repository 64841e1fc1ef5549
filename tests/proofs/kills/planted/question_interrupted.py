"""
What waits for people is given up with the steps that a lost worker was busy with. EX-11.

The fault: the server stops when an execution has both, a question and a step in flight.
"""

from collections.abc import Mapping
from typing import Any

from attrs import evolve

from tests.proofs.kills import faults
from wfcore.model.execution import Execution, StepStatus
from wfcore.rules.execution import fold, machine
from wfcore.rules.execution.fold_steps import Change, closed
from wfcore.time import EpochMs
from wfcore.usecases.executions import worker
from wfcore.usecases.executions.worker import Lease
from wfcore.usecases.services import Services


def plant() -> None:
    faults.expect()
    complete, lost = worker.complete_step, fold._worker_lost

    async def complete_step(services: Services, lease: Lease, *args: Any, **more: Any) -> Any:
        work = await complete(services, lease, *args, **more)
        async with services.store.view() as view:
            run = await view.get(Execution, lease.execution_id)
        if run is not None and run.asks and run.in_flight:
            faults.freeze("")
        return work

    def forgetful(run: Execution, fact: machine.WorkerLost, now: EpochMs) -> Change:
        change = lost(run, fact, now)
        results = {
            key: closed(result, StepStatus.INTERRUPTED, now, "The worker stopped")
            if result.status is StepStatus.AWAITING_APPROVAL
            else result
            for key, result in change.results.items()
        }
        return evolve(change, changes={**change.changes, "step_results": results})

    folds: Mapping[type, Any] = fold.FOLDS
    folds[machine.WorkerLost] = forgetful  # type: ignore[index]
    worker.complete_step = complete_step
