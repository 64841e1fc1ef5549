"""
When a schedule fires: local times, daylight saving, missed instants.

A cron expression names local times, which a function of the caller computes: in the bundled server
`adapters_runtime.cron`. This module turns them into instants and decides which instants still
count.
"""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta, tzinfo

from attrs import frozen

from wfcore.model.trigger import Missed, Timer, Trigger
from wfcore.rules.execution.start import id_for
from wfcore.time import HOUR, EpochMs, later

LocalTimes = Callable[[datetime], datetime | None]
"""A function from a local time to the next local time of an expression; None: there is none."""

Following = Callable[[EpochMs], EpochMs | None]
"""A function from an instant to the next instant of a schedule; None: there is none."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def following(local_times: LocalTimes, zone: tzinfo, after: EpochMs) -> EpochMs | None:
    """
    The first instant after *after* at which one of *local_times* is reached in *zone*.

    A local time that does not exist counts at the next valid instant; a local time that repeats
    counts once, the first time. SH-2.
    """
    moment = _EPOCH + timedelta(milliseconds=after)
    local = local_times(moment.astimezone(zone).replace(tzinfo=None))
    while local is not None:
        reached = _instant(_reached(local, zone))
        if reached > after:
            return reached
        local = local_times(local)
    return None


def _reached(local: datetime, zone: tzinfo) -> datetime:
    """The moment (UTC) when clocks in *zone* first show *local*, or jump over it."""
    # Only where clocks jump over it does the second reading lie before the first.
    return _jump(_read(local, zone, fold=1), _read(local, zone, fold=0), zone)


def _read(local: datetime, zone: tzinfo, fold: int) -> datetime:
    return local.replace(tzinfo=zone, fold=fold).astimezone(UTC)


def _jump(before: datetime, after: datetime, zone: tzinfo) -> datetime:
    """
    The moment between the two at which the clocks of *zone* jump; *after* if they do not jump.
    """
    old = before.astimezone(zone).utcoffset()
    while after - before > timedelta.resolution:
        middle = before + (after - before) // 2
        if middle.astimezone(zone).utcoffset() == old:
            before = middle
        else:
            after = middle
    return after


def _instant(moment: datetime) -> EpochMs:
    return EpochMs((moment - _EPOCH) // timedelta(milliseconds=1))


@frozen
class Due:
    """
    The effect of a due schedule: the instant to start for (None: all due instants were missed), and
    the next instant (None: there is none).
    """

    start_for: EpochMs | None
    next_at: EpochMs | None


def due(at: EpochMs, now: EpochMs, grace_ms: int, missed: Missed, following: Following) -> Due:
    """
    The effect of a schedule that was due at *at*. It starts at most once, however many instants are
    due. SH-3, SH-4.

    An instant at most *grace_ms* in the past is on time; the latest instant on time stands for all.
    Earlier instants were missed.
    """
    latest = at if now - at <= grace_ms else following(later(now, -grace_ms - 1))
    if latest is None or latest > now:
        return Due(at if missed is Missed.ONCE else None, following(now))
    after = following(latest)
    while after is not None and after <= now:
        latest, after = after, following(after)
    return Due(latest, after)


MOST_BACKFILLED = 200
"""The most instants of one backfill. SH-11."""


def instants(following: Following, since: EpochMs, until: EpochMs) -> tuple[EpochMs, ...]:
    """
    The instants from *since* (included) to *until* (excluded), in order; at most one more than
    `MOST_BACKFILLED`, which shows that there are too many. SH-11.
    """
    found: list[EpochMs] = []
    at = following(later(since, -1))
    while at is not None and at < until and len(found) <= MOST_BACKFILLED:
        found.append(at)
        at = following(at)
    return tuple(found)


def start_id(trigger: Trigger, at: EpochMs) -> str:
    """The id of the execution that a schedule starts for one of its instants. SH-1, SH-11."""
    return id_for(f"{trigger.id}@{at}")


def timer_at(trigger: Trigger, at: EpochMs) -> Timer:
    """The timer row of one instant of a schedule. SH-1."""
    return Timer(f"{trigger.id}@{at}", trigger.id, at)


def planned_ahead(trigger: Trigger, now: EpochMs) -> bool:
    """
    Whether the next instant of a schedule was planned while the clock was far ahead: in that case a
    timestamp of the trigger is more than an hour ahead of *now*. If the clock steps back by less,
    the plan is kept, so that no local time fires twice. SH-9.
    """
    known = (trigger.created_at, trigger.last_run_at or 0, trigger.refused_at or 0)
    return max(known) > later(now, HOUR)
