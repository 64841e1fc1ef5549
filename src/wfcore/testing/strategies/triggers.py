"""Hypothesis strategies for what starts a workflow, and the documents that say it."""

from collections.abc import Sequence

from hypothesis import strategies as st

from wfcore.model.json import Json, JsonObject
from wfcore.model.trigger import Chain, Missed, Schedule, TriggerKind, TriggerSpec
from wfcore.model.workflow import Concurrency, OnLimit
from wfcore.rules.definition.triggers import identity


def schedules() -> st.SearchStrategy[Schedule]:
    """Schedules at some time of some days, in some zone."""
    crons = st.sampled_from(("0 9 * * 1-5", "*/5 * * * *", "30 2 1 * *"))
    zones = st.sampled_from(("UTC", "Europe/Berlin", "America/New_York"))
    return st.builds(Schedule, crons, zones, st.none() | st.sampled_from(Missed))


def chains() -> st.SearchStrategy[Chain]:
    """Chains behind other workflows."""
    names = st.sampled_from(("Import orders", "wf_1", "ä ✓"))
    return st.builds(Chain, names, st.integers(0, 86_400), st.none() | st.integers(1, 1_000_000))


def trigger_specs() -> st.SearchStrategy[tuple[TriggerSpec, ...]]:
    """Triggers of one workflow, none of them twice."""
    return st.lists(schedules() | chains(), max_size=3, unique_by=identity).map(tuple)


def concurrencies(declared: Sequence[str]) -> st.SearchStrategy[Concurrency | None]:
    """A limit, for all or by the value of a declared variable; or none."""
    by_variable = (f'{{{{ variables["{name}"] }}}}' for name in declared)
    keys = st.sampled_from([None, "{{ 1 }}", *by_variable])
    return st.none() | st.builds(Concurrency, st.integers(1, 1_000), keys, st.sampled_from(OnLimit))


def trigger_written(spec: TriggerSpec) -> JsonObject:
    """A trigger as a definition says it."""
    written: dict[str, Json]
    if isinstance(spec, Schedule):
        written = {"kind": "SCHEDULE", "cron": spec.cron, "timezone": spec.timezone}
        return written if spec.missed is None else written | {"missed": spec.missed.value}
    kind = TriggerKind.DELAYED_COMPLETION.value
    written = {"kind": kind, "workflow": spec.workflow, "delaySeconds": spec.delay_seconds}
    return written if spec.max_runs is None else written | {"maxRuns": spec.max_runs}


def concurrency_written(concurrency: Concurrency) -> JsonObject:
    """A limit as a definition says it."""
    written: dict[str, Json] = {
        "limit": concurrency.limit,
        "onLimit": concurrency.on_limit.value,
    }
    return written if concurrency.key is None else written | {"key": concurrency.key}
