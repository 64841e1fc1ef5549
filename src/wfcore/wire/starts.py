"""How the wire shows what starts a workflow by itself. Contract §4, §8."""

from collections.abc import Mapping
from typing import Any

from attrs import define, field

from wfcore.model.trigger import (
    Refusal,
    Schedule,
    Shown,
    TriggerKind,
    TriggerSpec,
    TriggerState,
)
from wfcore.model.workflow import Concurrency, OnLimit


@define(eq=False, kw_only=True)
class StarterView:
    """Whose execution it is, and by which key, webhook or trigger it was started."""

    account_id: str
    email: str | None
    key_id: str | None = field(default=None, metadata={"absent": True})
    key_name: str | None = field(default=None, metadata={"absent": True})
    webhook_id: str | None = field(default=None, metadata={"absent": True})
    trigger_id: str | None = field(default=None, metadata={"absent": True})


@define(eq=False)
class WorkflowTriggerView:
    """
    A trigger. `definition` is what the workflow's definition says of it; `reason` says in words
    why it is not ACTIVE. `lastRefusal`: why it started nothing the last time it did not.
    """

    id: str
    kind: TriggerKind
    definition: Mapping[str, Any]
    state: TriggerState
    reason: str | None
    next_run_at: int | None
    last_run_at: int | None
    runs: int
    last_refusal: Refusal | None
    last_refused_at: int | None


@define(eq=False)
class ConcurrencyView:
    """How many executions may run at once, of all or of each value of `key`."""

    limit: int
    key: str | None
    on_limit: OnLimit


def trigger_view(shown: Shown) -> WorkflowTriggerView:
    """A trigger, and how it stands."""
    trigger, standing = shown.trigger, shown.standing
    return WorkflowTriggerView(
        id=trigger.id,
        kind=trigger.kind,
        definition=_written(trigger.spec),
        state=standing.state,
        reason=standing.why,
        next_run_at=standing.next_at,
        last_run_at=trigger.last_run_at,
        runs=trigger.runs,
        last_refusal=trigger.refusal,
        last_refused_at=trigger.refused_at,
    )


def _written(spec: TriggerSpec) -> dict[str, Any]:
    """A trigger as definitions write it, defaults included."""
    if isinstance(spec, Schedule):
        return {
            "kind": TriggerKind.SCHEDULE,
            "cron": spec.cron,
            "timezone": spec.timezone,
            "missed": spec.missed,
        }
    return {
        "kind": TriggerKind.DELAYED_COMPLETION,
        "workflow": spec.workflow,
        "delaySeconds": spec.delay_seconds,
        "maxRuns": spec.max_runs,
    }


def concurrency_view(concurrency: Concurrency | None) -> ConcurrencyView | None:
    """The limit, where there is one."""
    if concurrency is None:
        return None
    return ConcurrencyView(concurrency.limit, concurrency.key, concurrency.on_limit)
