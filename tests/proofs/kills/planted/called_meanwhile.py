"""The next attempt of a callback is due while the last one may still be under way. CB-3."""

from attrs import evolve

from wfcore.model.execution import Callback
from wfcore.time import DurationMs, EpochMs, later
from wfcore.usecases.executions import callbacks

SOON = DurationMs(100)


def plant() -> None:
    attempted = callbacks.attempted

    def impatient(callback: Callback, now: EpochMs) -> Callback:
        return evolve(attempted(callback, now), due_at=later(now, SOON))

    callbacks.attempted = impatient
