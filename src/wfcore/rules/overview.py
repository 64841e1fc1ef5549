"""The figures of an overview: percentiles of durations, and failures that have the same cause."""

from collections import defaultdict
from collections.abc import Iterable, Sequence

from attrs import frozen

from wfcore.model.execution import Execution
from wfcore.rules.masking import mask_text, secret_values
from wfcore.time import DurationMs, EpochMs


@frozen
class FailureCause:
    """
    The failed executions of a workflow with the same step and the same first line of the error.
    `last`: the newest of them. `step`: empty if no step failed.
    """

    workflow_id: str
    workflow: str
    step: str
    line: str
    times: int
    last: str
    last_at: EpochMs


def failures(runs: Iterable[Execution]) -> Sequence[FailureCause]:
    """The failures of *runs*, which are ordered from the newest on; the most frequent first."""
    found = defaultdict[tuple[str, str, str], list[Execution]](list)
    for run in runs:
        step = (run.status_reason.step_name if run.status_reason else None) or ""
        found[run.workflow_id, step, first_line(run)].append(run)
    made = [
        FailureCause(
            id, same[0].workflow_name, step, line, len(same), same[0].id, same[0].accepted_at
        )
        for (id, step, line), same in found.items()
    ]
    return sorted(made, key=lambda one: -one.times)


def first_line(run: Execution) -> str:
    """The first line of the error of *run*, with its secrets masked. SC-1."""
    text = mask_text(run.error or "", secret_values(run))
    return next((line.strip() for line in text.splitlines() if line.strip()), "")


def percentile(lengths: Sequence[DurationMs], part: float) -> DurationMs | None:
    """The duration below which *part* of *lengths* are; None without any."""
    if not lengths:
        return None
    ordered = sorted(lengths)
    return ordered[min(int(len(ordered) * part), len(ordered) - 1)]
