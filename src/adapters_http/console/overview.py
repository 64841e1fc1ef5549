"""The overview: figures of the last hours, what fails, who is waited for, what comes next."""

from collections.abc import Mapping, Sequence
from math import ceil

from attrs import frozen
from starlette.responses import Response

from adapters_http.console.health import capacity
from adapters_http.console.hints import followed
from adapters_http.console.rendering import page
from adapters_http.request import Request
from wfcore.time import HOUR, EpochMs
from wfcore.usecases.overview import Overview, read_overview

_WIDE, _HIGH, _LEFT, _FOOT = 620, 150, 32, 20
_LINES = 4
"""The size of the picture of hours, in pixels, and the most lines across it."""
_SHOWN = 6
"""The most rows of each list."""


@frozen
class HourBar:
    """An hour in the picture: its place, and the heights of both ends in pixels."""

    at: EpochMs
    ended: int
    failed: int
    x: float
    good: float
    bad: float


@frozen
class HourChart:
    """The picture of executions by the hour. `lines`: the places and numbers of its lines."""

    bars: Sequence[HourBar]
    lines: Sequence[tuple[float, int]]
    width: int = _WIDE
    height: int = _HIGH
    left: int = _LEFT
    foot: int = _FOOT


def chart(found: Overview) -> HourChart:
    """The picture of the hours of *found*."""
    most = max((sum(hour) for hour in found.hours), default=0)
    step = nice_step(max(most, 1))
    top = step * ceil(max(most, 1) / step)
    room = _HIGH - _FOOT - 8
    wide = (_WIDE - _LEFT) / max(len(found.hours), 1)
    bars = [
        HourBar(
            EpochMs(found.since + place * HOUR),
            ended,
            failed,
            round(_LEFT + place * wide + 2, 1),
            round(ended / top * room, 1),
            round(max(failed / top * room, 3 if failed else 0), 1),
        )
        for place, (ended, failed) in enumerate(found.hours)
    ]
    lines = [(round(_HIGH - _FOOT - one / top * room, 1), one) for one in range(0, top + 1, step)]
    return HourChart(bars, lines)


def nice_step(most: int) -> int:
    """The distance of lines in a picture up to *most*: 1, 2 or 5 times a power of ten."""
    power = 1
    while True:
        for digit in (1, 2, 5):
            if digit * power * _LINES >= most:
                return digit * power
        power *= 10


async def show(request: Request) -> Response:
    """The overview of the reader."""
    found = await read_overview(request.services, request.who)
    return page(
        request,
        "overview.html",
        found=found,
        chart=chart(found),
        failures=found.failures[:_SHOWN],
        fires=found.fires[:_SHOWN],
        costs=found.costs[:_SHOWN],
        spent=sum(cost for _, cost in found.costs),
        capacity=[*capacity(await _gauges(request))],
        follows=_seen(found),
    )


async def _gauges(request: Request) -> Mapping[str, float]:
    """The gauges of the server, for operators alone. AC-7."""
    gauges = request.context.config.gauges
    return await gauges() if gauges is not None and request.who.operator else {}


def _seen(found: Overview) -> object:
    return found.hours, found.waiting, [one.last for one in found.failures]


async def _snapshot(request: Request) -> object:
    return _seen(await read_overview(request.services, request.who))


live = followed(_snapshot)
