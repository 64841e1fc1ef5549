"""A schedule goes on to its next instant after the start for this one, not with it. SH-1."""

from proof.planted.consumed_late import consume_late
from wfcore.model.trigger import Schedule


def plant() -> None:
    consume_late(Schedule)
