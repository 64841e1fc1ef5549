"""
Recovery asks what started a child, and not what started the root of its family. EX-24.

The fault: the server stops in a step of a child whose family it must not resume.
"""

from tests.proofs.kills import faults
from wfcore.model.execution import Execution, TriggerSource
from wfcore.rules.execution.interruption import RESUMABLE


def plant() -> None:
    def is_callers(run: Execution) -> bool:
        root = run.root_source or run.trigger_source
        return run.parent_id is not None and root not in RESUMABLE

    def asked(run: Execution) -> TriggerSource:
        by_parent = run.trigger_source is TriggerSource.WORKFLOW
        return TriggerSource.MANUAL if by_parent else run.trigger_source

    faults.freeze_in_first_step(is_callers)
    Execution.root_trigger = property(asked)  # type: ignore[assignment, method-assign]
