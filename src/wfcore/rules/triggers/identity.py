"""The identity of a trigger across versions of its definition."""

from wfcore.model.trigger import Schedule, TriggerSpec


def identity(spec: TriggerSpec) -> tuple[str, ...]:
    """The value that stays the same for a trigger when its definition changes."""
    if isinstance(spec, Schedule):
        return spec.cron, spec.timezone
    return (spec.workflow,)
