"""
Executions: the list with its filters, and the hint that what it shows has changed. PG-6.

Everything that narrows the list is in its address. The list asks for a position instead of a page
number, so nothing is counted but what the links by status show.
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Any
from urllib.parse import urlencode

from starlette.responses import Response

from adapters_http.console.formats import count
from adapters_http.console.hints import followed, versions
from adapters_http.console.paths import see_other
from adapters_http.console.positions import behind
from adapters_http.console.rendering import page
from adapters_http.console.words import STATUSES
from adapters_http.request import Request
from wfcore.model.access import Principal
from wfcore.model.execution import Execution, ExecutionStatus, TriggerSource
from wfcore.model.page import NEWEST, PageRequest
from wfcore.ports.records import ExecutionFilter
from wfcore.time import EpochMs
from wfcore.usecases.executions.browsing import (
    MOST_COUNTED,
    SHORTEST_END,
    count_executions,
    find_execution,
    workflow_names,
)
from wfcore.usecases.executions.executions import list_executions
from wfcore.usecases.services import Services
from wfcore.usecases.starter_names import starter_names
from wfcore.wire.common import EXECUTIONS
from wfcore.wire.executions import execution_page

SIZE = 50
FILTERS = ("workflow", "status", "source", "from", "to", "q")


async def show(request: Request) -> Response:
    """The list; a search that names one execution leads to it."""
    services, who = request.services, request.who
    asked = _asked(request)
    found_id = await find_execution(services, who, asked["q"]) if asked["q"] else None
    if found_id is not None:
        return see_other(request, f"/executions/{found_id}")
    where, problem = _where(asked)
    position = behind(request, EXECUTIONS, SIZE, NEWEST)
    found = await list_executions(services, who, position, where)
    rows = execution_page(found, await starter_names(services, found.rows))
    counts = await count_executions(services, who, where)
    workflows = await workflow_names(services, who)
    return page(
        request,
        "executions.html",
        rows=rows.items,
        next=rows.next,
        later=position.after is not NEWEST,
        asked=asked,
        problem=problem,
        narrowed=any(asked.values()),
        counts=[(status, _link(asked, status), _shown(counts, status)) for status in STATUSES
                if status in counts],
        all_link=_link(asked, ""),
        query=_query(asked),
        workflows=workflows,
        first=workflows[0] if workflows else None,
        base_url=request.base_url,
        follows=_seen(found.rows, counts),
    )  # fmt: skip


def _asked(request: Request) -> Mapping[str, str]:
    return {name: (request.query(name) or "").strip() for name in FILTERS}


def _seen(rows: Sequence[Execution], counts: Mapping[ExecutionStatus, int]) -> object:
    return versions(rows), sorted(counts.items())


async def look(
    services: Services, who: Principal, position: PageRequest, where: ExecutionFilter
) -> object:
    """What a page of the list shows, in short."""
    found = await list_executions(services, who, position, where)
    return _seen(found.rows, await count_executions(services, who, where))


async def _look(request: Request) -> object:
    where, _problem = _where(_asked(request))
    position = behind(request, EXECUTIONS, SIZE, NEWEST)
    return await look(request.services, request.who, position, where)


live = followed(_look)


def _shown(counts: Mapping[ExecutionStatus, int], status: str) -> str:
    return count(counts[ExecutionStatus(status)], MOST_COUNTED)


def _query(asked: Mapping[str, str]) -> str:
    return urlencode({name: value for name, value in asked.items() if value})


def _link(asked: Mapping[str, str], status: str) -> str:
    """The query of the same list with another status."""
    return _query({**asked, "status": status})


def _where(asked: Mapping[str, str]) -> tuple[ExecutionFilter, str | None]:
    """
    The filter, and the name of a field that says nothing: addresses of pages are typed by people,
    so that it is left out, and the page says so.
    """
    bad = [name for name, read in _READ.items() if asked[name] and read(asked[name]) is None]
    read: dict[str, Any] = {name: _READ[name](asked[name]) for name in _READ if asked[name]}
    where = ExecutionFilter(
        workflow_id=asked["workflow"] or None,
        statuses=read.get("status") or (),
        sources=read.get("source") or (),
        since=read.get("from"),
        until=_next_day(read.get("to")),
        id_end=asked["q"].removeprefix("…") or None,
    )
    return where, bad[0] if bad else None


def _day(text: str) -> EpochMs | None:
    try:
        at = datetime.combine(date.fromisoformat(text), datetime.min.time(), UTC)
    except ValueError:
        return None
    return EpochMs(max(int(at.timestamp() * 1_000), 0))


def _next_day(at: EpochMs | None) -> EpochMs | None:
    """`to` is the last day that is shown."""
    return None if at is None else EpochMs(at + int(timedelta(days=1).total_seconds() * 1_000))


def _statuses(text: str) -> tuple[ExecutionStatus, ...] | None:
    return (ExecutionStatus(text),) if text in set(ExecutionStatus) else None


def _sources(text: str) -> tuple[TriggerSource, ...] | None:
    return (TriggerSource(text),) if text in set(TriggerSource) else None


def _end(text: str) -> str | None:
    return text if len(text.removeprefix("…")) >= SHORTEST_END else None


_READ: Mapping[str, Any] = {
    "status": _statuses,
    "source": _sources,
    "from": _day,
    "to": _day,
    "q": _end,
}
