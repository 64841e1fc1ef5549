"""
Recovery does not look at `onInterrupt`. EX-25.

The fault: the server stops in a step that must not begin again, of an execution that the service
resumes unless its author refuses.
"""

from tests.proofs.kills import faults
from tests.proofs.kills.flows import NEVER_AGAIN
from wfcore.model.execution import Execution
from wfcore.rules.execution import interruption


def plant() -> None:
    def is_refused(run: Execution) -> bool:
        return run.workflow_name in NEVER_AGAIN and run.root_trigger in interruption.RESUMABLE

    interruption._refused = lambda run, definition: None
    faults.freeze_in_first_step(is_refused)
