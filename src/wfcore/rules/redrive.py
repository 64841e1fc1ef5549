"""Starting again where an execution stopped: which results are kept. EX-17, contract §2."""

from collections.abc import Mapping

from wfcore.errors import NotFound
from wfcore.model.execution import Execution, ExecutionStatus, StepResult, StepStatus
from wfcore.model.workflow import Definition

FROM = frozenset({ExecutionStatus.FAILED, ExecutionStatus.CANCELLED, ExecutionStatus.INTERRUPTED})


def kept_results(run: Execution, definition: Definition) -> Mapping[str, StepResult]:
    """
    The results of the finished steps before the first unfinished one.

    Raises `NotFound` where *run* is in a state that cannot be redriven.
    """
    if run.status not in FROM:
        raise NotFound("Execution")
    kept: dict[str, StepResult] = {}
    for step in definition.steps:
        result = run.step_results.get(step.name)
        if result is None or not _finished(result, step.continue_on_error):
            break
        kept[step.name] = result
    return kept


def _finished(result: StepResult, tolerated: bool) -> bool:
    if result.status is StepStatus.FAILED:
        return tolerated
    return result.status in (StepStatus.COMPLETED, StepStatus.SKIPPED)
