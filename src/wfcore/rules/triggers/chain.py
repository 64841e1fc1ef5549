"""
Chains: a workflow that starts some time after each end of another workflow.

A chain waits for a key, made from a workflow's id or from an owner and a workflow name. By name, a
workflow that was deleted and applied again is still the workflow that the chain waits for.
"""

from collections.abc import Iterable

from wfcore.model.execution import Execution
from wfcore.model.trigger import Chain, Timer, Trigger
from wfcore.time import SECOND, later

MAX_DEPTH = 20
"""The most links of a chain behind the execution that a person or program started. CH-4."""


def key_of_id(workflow_id: str) -> str:
    """The key of a chain that names its workflow by id."""
    return f"id:{workflow_id}"


def key_of_name(owner_id: str, name: str) -> str:
    """The key of a chain that names a workflow of the same owner."""
    return f"name:{owner_id}:{name}"


def keys_of(run: Execution) -> tuple[str, str]:
    """The keys under which chains may wait for this execution."""
    return key_of_id(run.workflow_id), key_of_name(run.workflow_owner_id, run.workflow_name)


def exhausted(trigger: Trigger) -> bool:
    """Whether a chain has started as many executions as its `maxRuns` allows. CH-3."""
    spec = trigger.spec
    return isinstance(spec, Chain) and spec.max_runs is not None and trigger.runs >= spec.max_runs


def timers_after(run: Execution, triggers: Iterable[Trigger]) -> tuple[Timer, ...]:
    """
    A timer for each chain that follows the end of *run*. The timer's id is derived from the
    execution, which ends once, so there is never a second one. CH-1, CH-6.
    """
    return tuple(
        Timer(
            f"{trigger.id}<{run.id}",
            trigger.id,
            later(run.completed_at or run.accepted_at, trigger.spec.delay_seconds * SECOND),
            cause=run.id,
            depth=run.chain_depth + 1,
        )
        for trigger in triggers
        if isinstance(trigger.spec, Chain)
        and run.status in trigger.spec.on
        and not exhausted(trigger)
    )
