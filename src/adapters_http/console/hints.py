"""
Hints for pages with a list: a stream of events whose only content is that the list has changed.
PG-7.

The page and its stream read the same rows with their versions, so that each change of a row causes
a hint, whichever process made the change, and on both databases. A counter for each account would
be a row that every transition writes.
"""

from asyncio import get_running_loop
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from math import ceil
from typing import Any

from starlette.responses import Response, StreamingResponse

from adapters_http.console.rendering import mark_of, waiting_for
from adapters_http.handlers.events import HEARTBEAT_S, POLL_MS, UNBUFFERED
from adapters_http.request import Request
from wfcore.errors import WfError

Snapshot = Callable[[Request], Awaitable[object]]
"""
A function that returns the present content of a list in short: a value whose `repr` changes with
the content.
"""
RESTS = 3
"""The number of rests, of at most half a second each, between two polls."""
REST_S, IDLE = 0.5, 20
"""
The length of a rest in seconds, and the factor `IDLE`: between two polls there is at least `IDLE`
times the duration of a poll.
"""


def versions(rows: Iterable[Any]) -> object:
    """Records in short: any change of a record changes its version."""
    return [(one.id, one.version) for one in rows]


def followed(snapshot: Snapshot) -> Callable[[Request], Awaitable[Response]]:
    """The handler of the stream for a list whose content *snapshot* returns."""

    async def live(request: Request) -> Response:
        return hints(request, lambda: snapshot(request))

    return live


def hints(request: Request, snapshot: Callable[[], Awaitable[object]]) -> Response:
    """
    A stream with an event whenever *snapshot*, or the number of approvals that wait for the reader,
    has changed. The first comparison is with the page: its `mark_of` is `seen` or `Last-Event-ID`.
    """
    mark = request.header(b"last-event-id") or request.query("seen")
    lines = _hints(request, snapshot, mark)
    return StreamingResponse(lines, media_type="text/event-stream", headers=UNBUFFERED)


async def _hints(
    request: Request, snapshot: Callable[[], Awaitable[object]], mark: str | None
) -> AsyncIterator[bytes]:
    loop, config = get_running_loop(), request.context.config
    yield b"retry: 2000\n\n"
    sent_at = loop.time()
    with request.services.wakeup.follow("") as rest:
        while not config.ending:
            began = loop.time()
            try:
                now = mark_of(await snapshot(), await waiting_for(request))
                took = loop.time() - began
                await request.require_admitted()
                if mark not in (None, "", now):
                    yield f"id: {now}\nevent: changed\ndata:\n\n".encode()
                    sent_at = loop.time()
                mark = now
                if loop.time() - sent_at >= HEARTBEAT_S:
                    yield b": still there\n\n"
                    sent_at = loop.time()
                for _ in range(max(RESTS, ceil(took * IDLE / REST_S))):
                    await rest(POLL_MS)
                    await request.require_admitted()  # also during a long rest
            except WfError:
                return  # the reader connects again and gets the error
