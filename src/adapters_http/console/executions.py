"""
The list of executions with its filters, and the hints that the list has changed. PG-6.

All filters are in the address. The list uses positions instead of page numbers, so that only the
executions by status are counted.
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any
from urllib.parse import parse_qsl, urlencode

from attrs import evolve, frozen
from starlette.responses import Response

from adapters_http.console.formats import count
from adapters_http.console.forms import ViewForm
from adapters_http.console.hints import followed, versions
from adapters_http.console.paths import day_in, see_other
from adapters_http.console.positions import behind
from adapters_http.console.rendering import page
from adapters_http.console.words import STATUSES
from adapters_http.request import Request
from wfcore.model.access import Principal, SavedView
from wfcore.model.execution import Execution, ExecutionStatus, TriggerSource
from wfcore.model.page import NEWEST, PageCursor, PageRequest
from wfcore.ports.records import ExecutionFilter
from wfcore.rules.limits import VIEWS_PER_ACCOUNT
from wfcore.time import HOUR, EpochMs
from wfcore.usecases.accounts.preferences import forget_view, save_view
from wfcore.usecases.executions.browsing import (
    MOST_COUNTED,
    SHORTEST_END,
    count_executions,
    find_execution,
    workflow_names,
)
from wfcore.usecases.executions.executions import list_executions
from wfcore.usecases.executions.searching import RecentHours, recent_hours, search_executions
from wfcore.usecases.services import Services
from wfcore.usecases.starter_names import starter_names
from wfcore.wire.common import EXECUTIONS
from wfcore.wire.executions import execution_page

SIZE = 50
FILTERS = ("workflow", "status", "source", "from", "to", "span", "q")
SORT = "sort"
_OLDEST = "oldest"
SPAN = 3 * HOUR
"""The length in ms of the part of the two days that one bar stands for."""
_TOP = PageCursor(-1, "")
"""The cursor before every row of a list with the oldest first."""


async def show(request: Request) -> Response:
    """The list; a search for the id of an execution leads to its page."""
    services, who = request.services, request.who
    filters = _filters(request)
    found_id = await find_execution(services, who, filters["q"]) if filters["q"] else None
    if found_id is not None:
        return see_other(request, f"/executions/{found_id}")
    where, problem, words = await _searched(request, filters)
    top = _TOP if where.oldest_first else NEWEST
    position = behind(request, EXECUTIONS, SIZE, top)
    if words:
        found = await search_executions(services, who, position, where, words)
    else:
        found = await list_executions(services, who, position, where)
    rows = execution_page(found, await starter_names(services, found.rows))
    counts = await count_executions(services, who, where)
    workflows = await workflow_names(services, who)
    return page(
        request,
        "executions.html",
        rows=rows.items,
        next=rows.next,
        later=position.after is not top,
        filters=filters,
        problem=problem,
        narrowed=any(value for name, value in filters.items() if name != SORT),
        counts=[(status, _link(filters, status), _shown(counts, status)) for status in STATUSES
                if status in counts],
        query=_query(filters),
        query_with=lambda **other: _query({**filters, **other}),
        strip=bars_of(await recent_hours(services, who, where.workflow_id), filters["span"]),
        views=who.account.views,
        view=next((one for one in who.account.views if one.query == _query(filters)), None),
        most_views=VIEWS_PER_ACCOUNT,
        text=words,
        workflows=workflows,
        first=workflows[0] if workflows else None,
        base_url=request.base_url,
        follows=_seen(() if words else found.rows, counts),
    )  # fmt: skip


def _filters(request: Request) -> Mapping[str, str]:
    return {name: (request.query(name) or "").strip() for name in (*FILTERS, SORT)}


def _seen(rows: Sequence[Execution], counts: Mapping[ExecutionStatus, int]) -> object:
    return versions(rows), sorted(counts.items())


async def snapshot(
    services: Services, who: Principal, position: PageRequest, where: ExecutionFilter
) -> object:
    """A short form of a page of the list, for comparison."""
    found = await list_executions(services, who, position, where)
    return _seen(found.rows, await count_executions(services, who, where))


async def _snapshot(request: Request) -> object:
    where, _problem, words = await _searched(request, _filters(request))
    position = behind(request, EXECUTIONS, SIZE, _TOP if where.oldest_first else NEWEST)
    if words:
        return _seen((), await count_executions(request.services, request.who, where))
    return await snapshot(request.services, request.who, position, where)


live = followed(_snapshot)


def _shown(counts: Mapping[ExecutionStatus, int], status: str) -> str:
    return count(counts[ExecutionStatus(status)], MOST_COUNTED)


def _query(filters: Mapping[str, str]) -> str:
    return urlencode({name: value for name, value in filters.items() if value})


def _link(filters: Mapping[str, str], status: str) -> str:
    """The query string of the same list with another status."""
    return _query({**filters, "status": status})


async def _searched(
    request: Request, filters: Mapping[str, str]
) -> tuple[ExecutionFilter, str | None, str]:
    """
    As `_where`; a search text that is a reference or the end of an id narrows the list to it.
    EX-38. Any other text is returned, to be searched in names and inputs.
    """
    where, problem = _where(filters)
    text = filters["q"]
    if not text:
        return where, problem, ""
    exact = [evolve(where, reference=text)]
    if len(text.removeprefix("…")) >= SHORTEST_END:
        exact.append(evolve(where, id_end=text.removeprefix("…")))
    for one in exact:
        if (await list_executions(request.services, request.who, _FIRST, one)).rows:
            return one, problem, ""
    return where, problem, text


_FIRST = PageRequest(size=1, after=NEWEST)


def _where(filters: Mapping[str, str]) -> tuple[ExecutionFilter, str | None]:
    """
    The filter, and the name of a malformed field, or None. People type addresses of pages, so a
    malformed field is ignored, and the page names the field.
    """
    bad = [name for name, read in _READ.items() if filters[name] and read(filters[name]) is None]
    read: dict[str, Any] = {name: _READ[name](filters[name]) for name in _READ if filters[name]}
    begin = read.get("span")
    where = ExecutionFilter(
        workflow_id=filters["workflow"] or None,
        statuses=read.get("status") or (),
        sources=read.get("source") or (),
        since=read.get("from") if begin is None else begin,
        until=read.get("to") if begin is None else begin + SPAN,
        oldest_first=filters[SORT] == _OLDEST,
    )
    return where, bad[0] if bad else None


def _statuses(text: str) -> tuple[ExecutionStatus, ...] | None:
    return (ExecutionStatus(text),) if text in set(ExecutionStatus) else None


def _sources(text: str) -> tuple[TriggerSource, ...] | None:
    return (TriggerSource(text),) if text in set(TriggerSource) else None


def _span(text: str) -> EpochMs | None:
    """The beginning of a part of a day, as `2026-11-28T06`, in UTC."""
    try:
        return EpochMs(int(datetime.strptime(text, "%Y-%m-%dT%H%z").timestamp()) * 1_000)
    except (ValueError, OverflowError):
        return None


@frozen
class StripBar:
    """
    A part of the two days in the picture. `link`: its filter in the address. `good`, `bad`: the
    heights of both ends in pixels.
    """

    at: EpochMs
    link: str
    ended: int
    failed: int
    good: float
    bad: float


def bars_of(found: RecentHours, chosen: str) -> Sequence[StripBar]:
    """The bars of the two days; the bar of *chosen* clears the filter."""
    width = SPAN // HOUR
    first = -(found.since // HOUR) % width
    parts = [found.hours[at : at + width] for at in range(first, len(found.hours), width)]
    counts = [(sum(a for a, _ in part), sum(b for _, b in part)) for part in parts]
    most = max(map(sum, counts), default=0) or 1
    made = list[StripBar]()
    for place, (ended, failed) in enumerate(counts):
        at = EpochMs(found.since + first * HOUR + place * SPAN)
        link = datetime.fromtimestamp(at / 1_000, UTC).strftime("%Y-%m-%dT%HZ")
        heights = [max(one / most * _HIGH, 2 if one else 0) for one in (ended, failed)]
        made.append(StripBar(at, "" if link == chosen else link, ended, failed, *heights))
    return made


_HIGH = 32
"""The height in pixels of the highest bar."""


async def save(request: Request) -> Response:
    """Keep the filters of the address under a name, or drop the name."""
    form: ViewForm = request.body
    if form.forget:
        await forget_view(request.services, request.who, form.forget)
        return see_other(request, "/executions")
    read = dict(parse_qsl(form.query))
    query = urlencode({name: read[name] for name in FILTERS if read.get(name)})
    await save_view(request.services, request.who, SavedView(form.name.strip(), query))
    return see_other(request, f"/executions?{query}")


_READ: Mapping[str, Any] = {
    "status": _statuses,
    "source": _sources,
    "from": day_in,
    "to": partial(day_in, after=1),
    "span": _span,
}
