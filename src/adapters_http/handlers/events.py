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
POLL_MS = 1_000
"""The time between polls without a hint: hints may be lost, or belong to another process."""
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
    sent_at = loop.time()
    with request.services.wakeup.follow(id) as rest:
        while True:
            try:
                await request.require_admitted()
                run, events = await read_events(request.services, request.who, id, after)
            except WfError:
                return  # the reader connects again with Last-Event-ID and gets the error
            for event in events:
                yield frame(event)
                after, sent_at = event.number, loop.time()
            ended = run.status in EXECUTION.final and (after >= run.events or not events)
            if ended or request.context.config.ending:  # without events, the rest is unreadable
                return
            if loop.time() - sent_at >= HEARTBEAT_S:
                yield b": still there\n\n"
                sent_at = loop.time()
            if not events:
                await rest(POLL_MS)


def frame(event: Event) -> bytes:
    """One event of the stream. JSON text has no line breaks, so it is one data line."""
    data = dump_json(plain(event_view(event)))
    return b"id: %d\nevent: %s\ndata: %s\n\n" % (event.number, event.kind.encode(), data)
