"""
The checks of redrives and of files that steps read. EX-35, FI-2.

A redrive may keep only results of the execution that it redrives, and only finished ones; kept
steps do not run, and the plan is the plan that its caller saw.
"""

from collections.abc import Iterator, Mapping

from wfcore.model.execution import Execution, StepResult, StepStatus
from wfcore.model.workflow import Definition
from wfcore.ports.runtime import AiJob, Job
from wfcore.rules.execution.scope import name_of
from wfcore.testing.simulator.expectations import Expectations
from wfcore.testing.simulator.identities import require

Results = Mapping[str, StepResult]


def kept_results(old: Execution, new: Execution, definition: Definition) -> Results:
    """
    The results that the redrive *new* of *old* keeps. Raises `Violation` for a result that *old*
    does not have, or that did not finish. EX-35.
    """
    kept = {key: one for key, one in new.step_results.items() if one.completed_at is not None}
    for key, result in kept.items():
        require(old.step_results.get(key) == result, "kept wrongly", f"{new.id}/{key}")
        name = name_of(key)
        tolerated = definition.step(name).continue_on_error
        finished = result.status in (StepStatus.COMPLETED, StepStatus.SKIPPED)
        finished = finished or (tolerated and result.status is StepStatus.FAILED)
        finished = finished or _is_within_tolerated(name, definition)
        require(finished, "kept wrongly", f"{new.id}/{key} is {result.status}")
    return kept


def _is_within_tolerated(name: str, definition: Definition) -> bool:
    """
    Whether a container around the step may fail: a failed container is kept whole, with the steps
    that it ended.
    """
    located = list(definition.located())
    (place,) = (path for path, step in located if step.name == name)
    return any(step.continue_on_error and place.startswith(f"{path}.") for path, step in located)


def reads_last_files(run: Execution, job: Job) -> None:
    """
    Raises `Violation` unless the step reads one file of each completed step, that of its last
    attempt. FI-2.
    """
    for folder in () if isinstance(job, AiJob) else job.files:
        result = run.step_results.get(folder.step)
        last = [] if result is None else [str(result.attempts)]
        names = list(folder.files)
        completed = result is not None and result.status is StepStatus.COMPLETED
        right = names == last if completed else names in ([], last)
        require(right, "wrong files", f"{run.id}/{job.step_name} of {folder.step}: {names}")


def broken_plans(runs: Mapping[str, Execution], expectations: Expectations) -> Iterator[str]:
    """The redriven steps that ran although the plan that the caller saw keeps them, in words."""
    for id, kept in expectations.kept.items():
        run = runs.get(id)
        old = run and run.redrive_of and runs.get(run.redrive_of)
        if not run or not old or run.put_aside != old.put_aside:
            continue  # people sent it back: what is kept runs again
        for key in kept:
            if run.step_results.get(key) != old.step_results.get(key):
                yield f"kept step ran: {id}/{key}"
