"""
A schedule goes on to its next instant after the start for this one, not with it. SH-1.

What it starts has an id by chance, too: an id that follows from the instant makes it good.
"""

from tests.proofs.kills.planted.consumed_late import consume_late
from wfcore.model.trigger import Schedule
from wfcore.usecases.workflows import firing


def plant() -> None:
    consume_late(Schedule)
    firing.start_id = lambda trigger, at: None  # type: ignore[assignment,return-value]
