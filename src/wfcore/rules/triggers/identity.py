"""The identity of a trigger across versions of its definition."""

from wfcore.model.trigger import Chain, Schedule, TriggerSpec


def identity(spec: TriggerSpec) -> tuple[str, ...]:
    """The value that stays the same for a trigger when its definition changes."""
    if isinstance(spec, Schedule):
        return spec.cron, spec.timezone
    return (spec.workflow,)


def repeats(spec: TriggerSpec, other: TriggerSpec) -> bool:
    """
    Whether one cause would fire both: the same local time, or one end of one workflow. CH-6, SH-5.
    """
    if isinstance(spec, Chain) and isinstance(other, Chain) and {*spec.on}.isdisjoint(other.on):
        return False
    return identity(spec) == identity(other)
