"""
Hints for pages with a list: a stream that tells that something in it has changed, and never what.
PG-7.

What a page shows and what its stream looks at are the same rows with their versions, so that any
change of a shown row is told, whichever process made it, and on both databases. A counter for each
account would be a row that every transition writes.
"""

from asyncio import get_running_loop
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from math import ceil
from typing import Any

from starlette.responses import Response, StreamingResponse

from adapters_http.console.rendering import mark_of, waiting_for
from adapters_http.handlers.events import HEARTBEAT_S, LOOK_MS, UNBUFFERED
from adapters_http.request import Request
from wfcore.errors import WfError

Look = Callable[[Request], Awaitable[object]]
"""What a list shows now, in short: a value whose `repr` changes with it."""
LOOKS = 3
"""How often a rest of at most half a second passes before a stream looks again."""
REST_S, IDLE = 0.5, 20
"""Between two looks passes at least so many times what a look took: a list that is dear is late."""


def versions(rows: Iterable[Any]) -> object:
    """Records in short: whatever changes in one, its version does."""
    return [(one.id, one.version) for one in rows]


def followed(look: Look) -> Callable[[Request], Awaitable[Response]]:
    """The handler of the stream beside a list that shows what *look* finds."""

    async def live(request: Request) -> Response:
        return hints(request, lambda: look(request))

    return live


def hints(request: Request, look: Callable[[], Awaitable[object]]) -> Response:
    """
    A stream with an event whenever *look*, or how much waits for the reader, is not as before:
    first as when the page was made, whose `mark_of` is `seen` or `Last-Event-ID`.
    """
    mark = request.header(b"last-event-id") or request.query("seen")
    lines = _hints(request, look, mark)
    return StreamingResponse(lines, media_type="text/event-stream", headers=UNBUFFERED)


async def _hints(
    request: Request, look: Callable[[], Awaitable[object]], mark: str | None
) -> AsyncIterator[bytes]:
    loop, config = get_running_loop(), request.context.config
    yield b"retry: 2000\n\n"
    said = loop.time()
    with request.services.wakeup.follow("") as rest:
        while not config.ending:
            began = loop.time()
            try:
                now = mark_of(await look(), await waiting_for(request))
                took = loop.time() - began
                await request.still()
                if mark not in (None, "", now):
                    yield f"id: {now}\nevent: changed\ndata:\n\n".encode()
                    said = loop.time()
                mark = now
                if loop.time() - said >= HEARTBEAT_S:
                    yield b": still there\n\n"
                    said = loop.time()
                for _ in range(max(LOOKS, ceil(took * IDLE / REST_S))):
                    await rest(LOOK_MS)
                    await request.still()  # however long the list rests
            except WfError:
                return  # the reader comes back and is told why
