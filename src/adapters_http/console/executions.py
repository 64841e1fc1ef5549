"""
The list of executions with its filters, and the hints that the list has changed. PG-6.

All filters are in the address. The list uses positions instead of page numbers, so that only the
executions by status are counted.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any
from urllib.parse import urlencode

from attrs import evolve
from starlette.responses import Response

from adapters_http.console.formats import count
from adapters_http.console.hints import followed, versions
from adapters_http.console.paths import day_in, see_other
from adapters_http.console.positions import behind
from adapters_http.console.rendering import page
from adapters_http.console.words import STATUSES
from adapters_http.request import Request
from wfcore.model.access import Principal
from wfcore.model.execution import Execution, ExecutionStatus, TriggerSource
from wfcore.model.page import NEWEST, PageRequest
from wfcore.ports.records import ExecutionFilter
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
    """The list; a search for the id of an execution leads to its page."""
    services, who = request.services, request.who
    filters = _filters(request)
    found_id = await find_execution(services, who, filters["q"]) if filters["q"] else None
    if found_id is not None:
        return see_other(request, f"/executions/{found_id}")
    where, problem = await _searched(request, filters)
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
        filters=filters,
        problem=problem,
        narrowed=any(filters.values()),
        counts=[(status, _link(filters, status), _shown(counts, status)) for status in STATUSES
                if status in counts],
        all_link=_link(filters, ""),
        query=_query(filters),
        workflows=workflows,
        first=workflows[0] if workflows else None,
        base_url=request.base_url,
        follows=_seen(found.rows, counts),
    )  # fmt: skip


def _filters(request: Request) -> Mapping[str, str]:
    return {name: (request.query(name) or "").strip() for name in FILTERS}


def _seen(rows: Sequence[Execution], counts: Mapping[ExecutionStatus, int]) -> object:
    return versions(rows), sorted(counts.items())


async def snapshot(
    services: Services, who: Principal, position: PageRequest, where: ExecutionFilter
) -> object:
    """A short form of a page of the list, for comparison."""
    found = await list_executions(services, who, position, where)
    return _seen(found.rows, await count_executions(services, who, where))


async def _snapshot(request: Request) -> object:
    where, _problem = await _searched(request, _filters(request))
    position = behind(request, EXECUTIONS, SIZE, NEWEST)
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
) -> tuple[ExecutionFilter, str | None]:
    """As `_where`; a search text that is a reference narrows the list to it. EX-38."""
    where, problem = _where(filters)
    if filters["q"]:
        referred = evolve(where, id_end=None, reference=filters["q"])
        if (await list_executions(request.services, request.who, _FIRST, referred)).rows:
            return referred, None if problem == "q" else problem
    return where, problem


_FIRST = PageRequest(size=1, after=NEWEST)


def _where(filters: Mapping[str, str]) -> tuple[ExecutionFilter, str | None]:
    """
    The filter, and the name of a malformed field, or None. People type addresses of pages, so a
    malformed field is ignored, and the page names the field.
    """
    bad = [name for name, read in _READ.items() if filters[name] and read(filters[name]) is None]
    read: dict[str, Any] = {name: _READ[name](filters[name]) for name in _READ if filters[name]}
    where = ExecutionFilter(
        workflow_id=filters["workflow"] or None,
        statuses=read.get("status") or (),
        sources=read.get("source") or (),
        since=read.get("from"),
        until=read.get("to"),
        id_end=filters["q"].removeprefix("…") or None,
    )
    return where, bad[0] if bad else None


def _statuses(text: str) -> tuple[ExecutionStatus, ...] | None:
    return (ExecutionStatus(text),) if text in set(ExecutionStatus) else None


def _sources(text: str) -> tuple[TriggerSource, ...] | None:
    return (TriggerSource(text),) if text in set(TriggerSource) else None


def _end(text: str) -> str | None:
    return text if len(text.removeprefix("…")) >= SHORTEST_END else None


_READ: Mapping[str, Any] = {
    "status": _statuses,
    "source": _sources,
    "from": day_in,
    "to": partial(day_in, after=1),
    "q": _end,
}
