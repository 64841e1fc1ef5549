"""The overview: figures of the last hours, what fails, who is waited for, what comes next."""

from collections.abc import Mapping, Sequence
from math import ceil

from attrs import frozen
from starlette.responses import Response

from adapters_http.console.health import capacity
from adapters_http.console.hints import followed
from adapters_http.console.rendering import page
from adapters_http.request import Request
from wfcore.time import DAY, HOUR, MINUTE, SECOND, DurationMs
from wfcore.usecases.overview import Overview, SpanOfEnds, read_overview

_WIDE, _HIGH, _LEFT, _FOOT = 620, 150, 32, 20
_LINES = 4
"""The size of the picture of hours, in pixels, and the most lines across it."""
_SHOWN = 6
"""The most rows of each list."""


@frozen
class SpanBar:
    """An hour or a day in the picture: its place, and the heights of both ends in pixels."""

    of: SpanOfEnds
    x: float
    good: float
    bad: float


@frozen
class EndsChart:
    """
    The picture of executions by the hour or the day. `lines`: the places and numbers of its lines;
    `bar`: the width of a bar; `every`: how many bars share a label below.
    """

    bars: Sequence[SpanBar]
    lines: Sequence[tuple[float, int]]
    bar: int
    every: int
    width: int = _WIDE
    height: int = _HIGH
    left: int = _LEFT
    foot: int = _FOOT


def chart(found: Overview) -> EndsChart:
    """The picture of the ends of *found*."""
    most = max((one.ended + one.failed for one in found.spans), default=0)
    step = nice_step(max(most, 1))
    top = step * ceil(max(most, 1) / step)
    room = _HIGH - _FOOT - 8
    wide = (_WIDE - _LEFT) / len(found.spans)
    bars = [
        SpanBar(
            one,
            round(_LEFT + place * wide + 2, 1),
            round(one.ended / top * room, 1),
            round(max(one.failed / top * room, 3 if one.failed else 0), 1),
        )
        for place, one in enumerate(found.spans)
    ]
    lines = [(round(_HIGH - _FOOT - one / top * room, 1), one) for one in range(0, top + 1, step)]
    return EndsChart(bars, lines, round(wide - 4), ceil(len(bars) / 7))


@frozen
class DurationChart:
    """
    The picture of durations: the points of the lines of p50 and p95, with a dot for each span that
    has executions, and the places and labels of lines across.
    """

    p50: Sequence[tuple[float, float]]
    p95: Sequence[tuple[float, float]]
    lines: Sequence[tuple[float, DurationMs]]
    width: int = 302
    height: int = _HIGH
    left: int = 56
    foot: int = _FOOT


def duration_chart(found: Overview) -> DurationChart | None:
    """The picture of the durations of *found*; None without a completed execution."""
    known = [(place, one) for place, one in enumerate(found.spans) if one.p95 is not None]
    if not known:
        return None
    empty = DurationChart((), (), ())
    most = max(one.p95 or 0 for _, one in known)
    step = nice_duration(most)
    top = step * max(ceil(most / step), 1)
    room, wide = _HIGH - _FOOT - 8, empty.width - empty.left - 6

    def point(place: int, took: int) -> tuple[float, float]:
        x = empty.left + place / max(len(found.spans) - 1, 1) * wide
        return round(x, 1), round(_HIGH - _FOOT - took / top * room, 1)

    return DurationChart(
        [point(place, one.p50 or 0) for place, one in known],
        [point(place, one.p95 or 0) for place, one in known],
        [(point(0, at)[1], DurationMs(at)) for at in range(0, top + 1, step)],
    )


def nice_duration(most: int) -> int:
    """The distance of lines in a picture of durations up to *most* ms, in round units of time."""
    steps = (s for s in _STEPS if s * _LINES >= most)
    return next(steps, nice_step(most))


_STEPS = (
    *(10, 20, 50, 100, 200, 500),
    *(n * SECOND for n in (1, 2, 5, 10, 15, 30)),
    *(n * MINUTE for n in (1, 2, 5, 10, 15, 30)),
    *(n * HOUR for n in (1, 2, 4, 6, 12)),
    *(n * DAY for n in (1, 2, 5, 10, 20)),
)


def nice_step(most: int) -> int:
    """The distance of lines in a picture up to *most*: 1, 2 or 5 times a power of ten."""
    power = 1
    while True:
        for digit in (1, 2, 5):
            if digit * power * _LINES >= most:
                return digit * power
        power *= 10


async def show(request: Request) -> Response:
    """The overview of the reader, by the hour, or by the day."""
    found = await _read(request)
    return page(
        request,
        "overview.html",
        found=found,
        by_day=_by_day(request),
        chart=chart(found),
        durations=duration_chart(found),
        failures=found.failures[:_SHOWN],
        fires=found.fires[:_SHOWN],
        costs=found.costs[:_SHOWN],
        spent=sum(cost for _, cost in found.costs),
        capacity=[*capacity(await _gauges(request))],
        follows=_seen(found),
    )


def _by_day(request: Request) -> bool:
    return request.query("by") == "day"


async def _read(request: Request) -> Overview:
    return await read_overview(request.services, request.who, by_day=_by_day(request))


async def _gauges(request: Request) -> Mapping[str, float]:
    """The gauges of the server, for operators alone. AC-7."""
    gauges = request.context.config.gauges
    return await gauges() if gauges is not None and request.who.operator else {}


def _seen(found: Overview) -> object:
    return found.spans, found.waiting, [one.last for one in found.failures]


async def _snapshot(request: Request) -> object:
    return _seen(await _read(request))


live = followed(_snapshot)
