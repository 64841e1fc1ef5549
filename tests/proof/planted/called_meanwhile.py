"""The next attempt of a callback is due while the last one may still be under way. CB-3."""

from attrs import evolve

from wfcore.instants import DurationMs, EpochMs, later
from wfcore.model.callback import Callback
from wfcore.usecases import calling_back

SOON = DurationMs(100)


def plant() -> None:
    attempted = calling_back.attempted

    def impatient(callback: Callback, now: EpochMs) -> Callback:
        return evolve(attempted(callback, now), due_at=later(now, SOON))

    calling_back.attempted = impatient
