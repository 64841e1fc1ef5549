"""An execution's event log as server-sent events."""

from asyncio import get_running_loop
from collections.abc import AsyncIterator

from starlette.responses import Response, StreamingResponse

from adapters_http.json_text import dump_json
from adapters_http.params import last_event_id
from adapters_http.request import Request
from wfcore.errors import WfError
from wfcore.model.event import Event
from wfcore.rules.execution.machine import EXECUTION
from wfcore.usecases.executions.executions import read_events
from wfcore.wire.converter import plain
from wfcore.wire.events import event_view

HEARTBEAT_S = 15.0
LOOK_MS = 1_000
"""How often to look without a hint: it may be lost, or be another process's."""
_MEDIA = "text/event-stream"


async def follow(request: Request) -> Response:
    """
    The events after `Last-Event-ID`, then new ones as they come, until the terminal one.

    A client that has seen the terminal event gets 204, which tells an `EventSource` to stop.
    """
    after = last_event_id(request)
    run, events = await read_events(request.services, request.who, request.params["id"], after)
    if run.status in EXECUTION.final and not events:
        return Response(status_code=204)
    if request.method == "HEAD":
        return Response(media_type=_MEDIA)
    return StreamingResponse(_lines(request, after), media_type=_MEDIA, headers=UNBUFFERED)


UNBUFFERED = {"X-Accel-Buffering": "no"}


async def _lines(request: Request, after: int) -> AsyncIterator[bytes]:
    loop, id = get_running_loop(), request.params["id"]
    yield b"retry: 2000\n\n"
    said = loop.time()
    with request.services.wakeup.follow(id) as rest:
        while True:
            try:
                await request.still()
                run, events = await read_events(request.services, request.who, id, after)
            except WfError:
                return  # the reader comes back with Last-Event-ID and is told why
            for event in events:
                yield frame(event)
                after, said = event.number, loop.time()
            ended = run.status in EXECUTION.final and (after >= run.events or not events)
            if ended or request.context.config.ending:  # not events: what is left cannot be read
                return
            if loop.time() - said >= HEARTBEAT_S:
                yield b": still there\n\n"
                said = loop.time()
            if not events:
                await rest(LOOK_MS)


def frame(event: Event) -> bytes:
    """One event of the stream. JSON text has no line breaks, so it is one data line."""
    data = dump_json(plain(event_view(event)))
    return b"id: %d\nevent: %s\ndata: %s\n\n" % (event.number, event.kind.encode(), data)
