"""When schedules fire: against a search of every minute, over the jumps of many zones."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from zoneinfo import ZoneInfo

import pytest
from attrs import frozen
from hypothesis import given
from hypothesis import strategies as st

from adapters_runtime.cron import CronCalendar
from wfcore.model.trigger import Missed
from wfcore.rules.triggers.schedule import Following, due, following, planned_ahead
from wfcore.testing import builders
from wfcore.time import DAY, HOUR, MINUTE, EpochMs

MINUTES = timedelta(minutes=1)
ZONES = {
    "UTC": ["2024-03-31", "2023-12-31"],
    "Europe/Berlin": ["2024-03-31", "2024-10-27", "2024-07-01"],
    "America/New_York": ["2024-03-10", "2024-11-03"],
    "America/Sao_Paulo": ["2018-11-04", "2018-02-18"],
    "Australia/Lord_Howe": ["2024-10-06", "2024-04-07"],
    "Antarctica/Troll": ["2024-03-31", "2024-10-27"],
    "Africa/Casablanca": ["2024-03-10", "2024-04-14"],
    "Asia/Kathmandu": ["2024-01-01"],
    "Pacific/Apia": ["2011-12-30"],
}
"""Days on which clocks jump: forward, back, at midnight, by half an hour, by a whole day."""


@frozen
class Cron:
    """Minutes and hours of every day; None: all."""

    minutes: frozenset[int] | None
    hours: frozenset[int] | None

    def __str__(self) -> str:
        return f"{_written(self.minutes)} {_written(self.hours)} * * *"

    def names(self, local: datetime) -> bool:
        return local.minute in (self.minutes or range(60)) and local.hour in (
            self.hours or range(24)
        )


def _written(numbers: frozenset[int] | None) -> str:
    return "*" if numbers is None else ",".join(map(str, sorted(numbers)))


def crons() -> st.SearchStrategy[Cron]:
    minutes = st.none() | st.frozensets(st.sampled_from((0, 1, 15, 29, 30, 59)), min_size=1)
    hours = st.none() | st.frozensets(st.integers(0, 23), min_size=1, max_size=5)
    return st.builds(Cron, minutes, hours)


@st.composite
def days(draw: st.DrawFn) -> tuple[str, datetime]:
    """A zone, and a moment not long before its clocks jump."""
    zone = draw(st.sampled_from(sorted(ZONES)))
    day = datetime.fromisoformat(draw(st.sampled_from(ZONES[zone]))).replace(tzinfo=UTC)
    return zone, day - timedelta(minutes=draw(st.integers(0, 30 * 60)))


def searched(cron: Cron, zone: str, start: datetime, length: timedelta) -> list[datetime]:
    """Every minute looked at: clocks show a named time for the first time, or jump over one."""
    info = ZoneInfo(zone)
    shown = start - timedelta(hours=26)
    before = shown.astimezone(info).replace(tzinfo=None)
    latest, found = before, []
    while shown < start + length:
        shown += MINUTES
        local = shown.astimezone(info).replace(tzinfo=None, fold=0)
        jumped_over = [before + n * MINUTES for n in range(1, (local - before) // MINUTES)]
        is_first = local > latest
        if any(map(cron.names, jumped_over)) or (is_first and cron.names(local)):
            found.append(shown)
        before, latest = local, max(latest, local)
    return [at for at in found if start < at <= start + length]


def computed(cron: Cron, zone: str, start: datetime, length: timedelta) -> Iterator[datetime]:
    at: EpochMs | None = EpochMs(int(start.timestamp()) * 1_000)
    find = finder(str(cron), zone)
    while (at := find(at)) is not None:
        moment = datetime.fromtimestamp(at / 1_000, UTC)
        if moment > start + length:
            return
        yield moment


def finder(cron: str, zone: str) -> Following:
    calendar = CronCalendar()
    return partial(following, partial(calendar.next_local, cron), calendar.zone(zone))


@given(crons(), days())
def test_a_schedule_fires_when_clocks_show_or_skip_a_named_time(cron: Cron, day) -> None:
    """What does not exist fires at the next valid instant, what repeats fires once. SH-2."""
    length = timedelta(hours=52)
    assert list(computed(cron, *day, length)) == searched(cron, *day, length)


@pytest.mark.parametrize(
    ("cron", "zone", "after", "fires"),
    [
        ("30 2 * * *", "Europe/Berlin", "2024-03-30T12:00Z", ["03-31T01:00", "04-01T00:30"]),
        ("30 2 * * *", "Europe/Berlin", "2024-10-26T12:00Z", ["10-27T00:30", "10-28T01:30"]),
        ("10 2 * * *", "Europe/Berlin", "2024-03-30T12:00Z", ["03-31T01:00", "04-01T00:10"]),
        ("*/30 * * * *", "Europe/Berlin", "2024-10-27T01:10Z", ["10-27T02:00", "10-27T02:30"]),
        ("0 0 * * *", "America/Sao_Paulo", "2018-11-03T12:00Z", ["11-04T03:00", "11-05T02:00"]),
        ("0 12 30 12 *", "Pacific/Apia", "2011-12-01T00:00Z", ["12-30T10:00", "12-29T22:00"]),
        ("0 9 * * 1-5", "Europe/Berlin", "2024-07-05T08:00Z", ["07-08T07:00", "07-09T07:00"]),
    ],
)
def test_days_on_which_clocks_jump(cron: str, zone: str, after: str, fires: list[str]) -> None:
    """Named days: a gap, a repeated hour, a gap at midnight, a day that never was. SH-2."""
    at = EpochMs(int(datetime.fromisoformat(after).timestamp()) * 1_000)
    find, found = finder(cron, zone), []
    for _ in fires:
        at = find(at) or pytest.fail("never")
        assert at % MINUTE == 0
        found.append(f"{datetime.fromtimestamp(at / 1_000, UTC):%m-%dT%H:%M}")
    assert found == fires


@given(crons(), days(), st.integers(0, DAY))
def test_the_next_instant_is_later_and_nothing_lies_between(cron: Cron, day, by: int) -> None:
    """From any instant, on the second or not, the next one is the first after it. SH-2."""
    find = finder(str(cron), day[0])
    start = EpochMs(int(day[1].timestamp()) * 1_000 + by)
    first = find(start)
    assert first is not None
    assert first > start
    assert find(EpochMs(first - 1)) == first


@pytest.mark.parametrize("fold", [0, 1])
def test_a_time_that_repeats_is_its_first_whichever_is_named(fold: int) -> None:
    """Whether a function names the first or the second 2:30 of a day, the first is meant. SH-2."""
    named, asked = datetime(2024, 10, 27, 2, 30, fold=fold), []

    def once(local: datetime) -> datetime | None:
        asked.append(local)
        return named if local < named else None

    start = datetime(2024, 10, 26, 12, 0, 0, 7_000, UTC)
    found = following(once, ZoneInfo("Europe/Berlin"), EpochMs(int(start.timestamp() * 1_000)))
    assert found == datetime(2024, 10, 27, 0, 30, tzinfo=UTC).timestamp() * 1_000
    assert isinstance(found, int)
    assert asked == [datetime(2024, 10, 26, 14, 0, 0, 7_000)]
    assert following(once, ZoneInfo("Europe/Berlin"), found) is None


def test_an_expression_that_comes_to_an_end_is_over() -> None:
    """A function that names no further time means that nothing fires any more."""
    assert following(lambda local: None, UTC, EpochMs(0)) is None


# What was missed


def every(ms: int) -> Following:
    return lambda after: EpochMs(after - after % ms + ms)


steps = st.sampled_from((MINUTE, 5 * MINUTE, HOUR, DAY))
graces = st.sampled_from((0, MINUTE, 10 * MINUTE))


nearly = st.sampled_from((-1, 0, 1, MINUTE, 10 * MINUTE, 10 * MINUTE + 1))


@given(steps, st.integers(0, 100), st.integers(0, 50), nearly, graces, st.sampled_from(Missed))
def test_what_is_due_starts_at_most_once(
    step: int, first: int, later: int, by: int, grace: int, missed: Missed
) -> None:
    """
    However much piled up: one start at most, for the latest instant on time, else as the
    setting says; and the next one is the first after now. SH-3, SH-4.
    """
    at = EpochMs(first * step)
    now = EpochMs(max(at, at + later * step + by))
    found = due(at, now, grace, missed, every(step))
    assert found.next_at == every(step)(now)
    latest = now - now % step
    if now - latest <= grace:
        assert found.start_for == latest
    else:
        assert found.start_for == (at if missed is Missed.ONCE else None)


def test_a_schedule_without_a_next_instant_still_fires_for_its_last() -> None:
    """The last instant of all counts like every other. SH-3."""
    found = due(EpochMs(5), EpochMs(15), 10, Missed.SKIP, lambda after: None)
    assert (found.start_for, found.next_at) == (5, None)
    assert due(EpochMs(5), EpochMs(16), 10, Missed.SKIP, lambda after: None).start_for is None
    assert due(EpochMs(5), EpochMs(60), 10, Missed.ONCE, lambda after: None).start_for == 5


@pytest.mark.parametrize("entry", ["created_at", "last_run_at", "refused_at"])
def test_a_plan_from_a_clock_that_was_far_ahead_is_given_up(entry: str) -> None:
    """SH-9: whatever the trigger has an entry of; after a step back of an hour the plan stays."""
    for ahead, given_up in ((0, False), (HOUR, False), (HOUR + 1, True)):
        trigger = builders.trigger(**{entry: EpochMs(builders.NOW + ahead)})
        assert planned_ahead(trigger, builders.NOW) == given_up
