"""Webhook statistics: how answers are counted and shown. Contract §6."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from attrs import frozen

from wfcore.model.webhook import ACCEPTED, Tally
from wfcore.time import EpochMs


def utc_date(at: EpochMs) -> str:
    """The UTC date (`YYYY-MM-DD`) of an instant."""
    return datetime.fromtimestamp(at / 1_000, UTC).date().isoformat()


@frozen
class Day:
    date: str
    accepted: int
    rejected: int


@frozen
class Stats:
    """The answers of a webhook so far. `rejected`: counts by HTTP status."""

    total: int
    accepted: int
    rejected: Mapping[str, int]
    last_triggered_at: EpochMs | None
    daily: tuple[Day, ...]


def stats(tallies: Sequence[Tally]) -> Stats:
    """The sum of one webhook's tallies; days in order. WH-9."""
    rejected: dict[str, int] = {}
    days: dict[str, Day] = {}
    for tally in sorted(tallies, key=lambda one: (one.date, one.status)):
        good = tally.count if tally.status == ACCEPTED else 0
        bad = tally.count - good
        if bad:
            rejected[str(tally.status)] = rejected.get(str(tally.status), 0) + bad
        day = days.get(tally.date, Day(tally.date, 0, 0))
        days[tally.date] = Day(tally.date, day.accepted + good, day.rejected + bad)
    accepted = sum(day.accepted for day in days.values())
    times = [tally.last_at for tally in tallies if tally.status == ACCEPTED]
    return Stats(
        total=accepted + sum(rejected.values()),
        accepted=accepted,
        rejected=rejected,
        last_triggered_at=max(times, default=None),
        daily=tuple(days.values()),
    )
