"""
Executions: the list with its filters, and the hint that something of the account's changed. PG-6.

Everything that narrows the list is in its address. The list asks for a position instead of a page
number, so nothing is counted but what the links by status show.
"""

from asyncio import get_running_loop
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from datetime import UTC, date, datetime, timedelta
from hashlib import blake2b
from typing import Any
from urllib.parse import urlencode

from starlette.responses import Response, StreamingResponse

from adapters_http.console.rendering import behind, page, see_other
from adapters_http.console.words import STATUSES, count
from adapters_http.handlers.events import HEARTBEAT_S, LOOK_MS, UNBUFFERED
from adapters_http.request import Request
from wfcore.errors import WfError
from wfcore.model.execution import ExecutionStatus, TriggerSource
from wfcore.ports.records import ExecutionFilter
from wfcore.time import EpochMs
from wfcore.usecases.executions.browsing import (
    MOST_COUNTED,
    SHORTEST_END,
    TOP,
    count_executions,
    find_execution,
    newest_of,
    workflow_names,
)
from wfcore.usecases.executions.executions import list_executions, starter_names
from wfcore.wire.common import EXECUTIONS
from wfcore.wire.executions import execution_page

SIZE = 50
LOOKS = 3
"""How often a rest of at most half a second passes before the hints look again."""
FILTERS = ("workflow", "status", "source", "from", "to", "q")


async def show(request: Request) -> Response:
    """The list; a search that names one execution leads to it."""
    services, who = request.services, request.who
    mark = mark_of(await newest_of(services, who))
    asked = {name: (request.query(name) or "").strip() for name in FILTERS}
    found_id = await find_execution(services, who, asked["q"]) if asked["q"] else None
    if found_id is not None:
        return see_other(request, f"/executions/{found_id}")
    where, problem = _where(asked)
    position = behind(request, EXECUTIONS, SIZE, TOP)
    found = await list_executions(services, who, position, where)
    rows = execution_page(found, await starter_names(services, found.rows))
    counts = await count_executions(services, who, where)
    workflows = await workflow_names(services, who)
    return page(
        request,
        "executions.html",
        rows=rows.items,
        next=rows.next,
        later=position.after is not TOP,
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
        mark=mark,
    )  # fmt: skip


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


async def live(request: Request) -> Response:
    """Tells, without saying what, that executions or open approvals of the account changed."""
    return hints(request, lambda: newest_of(request.services, request.who))


def hints(request: Request, look: Callable[[], Awaitable[Mapping[str, object]]]) -> Response:
    """
    A stream with an event for each name under which *look* finds something else than before: first
    than when the page was made, whose `mark_of` is `after` or `Last-Event-ID`.
    """
    mark = request.header(b"last-event-id") or request.query("after")
    lines = _hints(request, look, mark)
    return StreamingResponse(lines, media_type="text/event-stream", headers=UNBUFFERED)


def mark_of(found: Mapping[str, object]) -> str:
    """What a page remembers of what was found before it was made."""
    return blake2b(repr(sorted(found.items())).encode(), digest_size=8).hexdigest()


async def _hints(
    request: Request, look: Callable[[], Awaitable[Mapping[str, object]]], mark: str | None
) -> AsyncIterator[bytes]:
    loop, config = get_running_loop(), request.context.config
    yield b"retry: 2000\n\n"
    seen, said = await look(), loop.time()
    grew = list(seen) if mark and mark != mark_of(seen) else []
    with request.services.wakeup.follow("") as rest:
        while not config.ending:
            for name in grew:
                event = f"id: {mark_of(seen)}\nevent: {name}\ndata:\n\n"
                yield event.encode()
                said = loop.time()
            for _ in range(LOOKS):
                await rest(LOOK_MS)
            try:
                await request.still()
                newest = await look()
            except WfError:
                return
            grew = [name for name in seen if seen[name] != newest[name]]
            seen = newest
            if loop.time() - said >= HEARTBEAT_S:
                yield b": still there\n\n"
                said = loop.time()
