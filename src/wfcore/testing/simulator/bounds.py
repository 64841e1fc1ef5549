"""
The bounds of steps: how many branches are open, and how soon the next attempt may start.

Each bound is computed from the definition alone, without the rules of the core. FL-3, DF-9.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from wfcore.model.event import Event, EventKind
from wfcore.model.execution import Execution, StepResult, StepStatus
from wfcore.model.workflow import Definition, LoopStep, ParallelStep, Step
from wfcore.testing.simulator.identities import require
from wfcore.time import DAY

OPEN = frozenset({StepStatus.RUNNING, StepStatus.AWAITING_APPROVAL})
Branch = tuple[Sequence[Step], str]
"""The steps of a branch or a round, and the prefix of the keys of these steps."""


def few_branches(run: Execution, definition: Definition) -> None:
    """Raise `Violation` if more branches or rounds of a step are open than `maxParallel`."""
    for key, result in run.step_results.items():
        step = definition.step(key.rpartition(".")[2])
        if result.status is not StepStatus.RUNNING or not isinstance(step, ParallelStep | LoopStep):
            continue
        branches = list(_branches(key, step, result))
        count = sum(_is_open(branch, run.step_results) for branch in branches)
        most = step.max_parallel or len(branches)
        require(count <= most, "too many branches", f"{run.id}/{key} {count} of {most}")


def late_retries(before: Execution, events: Sequence[Event], definition: Definition) -> None:
    """Raise `Violation` if an attempt is due, or starts, before the wait of `retry` is over."""
    for event in events:
        key = str(event.data.get("step"))
        old = before.step_results.get(key)
        if event.kind is EventKind.STEP_STARTED and old is not None and old.retry_at is not None:
            early = old.retry_at - event.at
            require(early <= 0, "retried early", f"{before.id}/{key} by {early} ms")
        if event.kind is EventKind.STEP_RETRYING:
            step: Any = definition.step(key.rpartition(".")[2])
            tries = old.tries if old is not None else 1
            wait = min(int(step.retry.delay_ms * step.retry.backoff ** (tries - 1)), DAY)
            early = wait - (int(str(event.data["retryAt"])) - event.at)
            require(early <= 0, "retried early", f"{before.id}/{key} by {early} ms")


def _branches(key: str, step: ParallelStep | LoopStep, result: StepResult) -> Iterator[Branch]:
    if isinstance(step, ParallelStep):
        prefix = key.removesuffix(step.name)
        yield from ((branch.steps, prefix) for branch in step.branches)
    elif isinstance(result.items, list | tuple):
        yield from ((step.steps, f"{key}.{at}.") for at in range(len(result.items)))


def _is_open(branch: Branch, results: Mapping[str, StepResult]) -> bool:
    """Whether the first step of the branch has begun and the last step has not ended."""
    steps, prefix = branch
    last = results.get(prefix + steps[-1].name)
    return prefix + steps[0].name in results and (last is None or last.status in OPEN)
