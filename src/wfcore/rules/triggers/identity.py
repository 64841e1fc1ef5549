"""What makes a trigger the same one in another version of its definition."""

from wfcore.model.trigger import Schedule, TriggerSpec


def identity(spec: TriggerSpec) -> tuple[str, ...]:
    """What identifies a trigger across changes of its definition."""
    if isinstance(spec, Schedule):
        return spec.cron, spec.timezone
    return (spec.workflow,)
