"""
The page of one execution: explanation, picture of the flow, steps, and details of one step.

Picture and steps come from the definition that the execution runs by, not from a later version. The
page of a step is the same page with the details of that step. XP-1, XP-3, XP-4.
"""

from asyncio import get_running_loop
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

from starlette.responses import Response, StreamingResponse

from adapters_http.console.history import entries, outermost
from adapters_http.console.log import log_of
from adapters_http.console.paths import number_in
from adapters_http.console.pictures import picture_of
from adapters_http.console.rendering import page
from adapters_http.console.sentences import sentences
from adapters_http.console.step import step_details
from adapters_http.console.values import DisplayedValue, display
from adapters_http.downloads import output_response
from adapters_http.handlers.events import HEARTBEAT_S, POLL_MS, UNBUFFERED
from adapters_http.json_text import dump_json
from adapters_http.params import last_event_id
from adapters_http.request import Request
from wfcore.errors import WfError
from wfcore.model.execution import Execution, ExecutionStatus
from wfcore.model.page import NEWEST, PageRequest
from wfcore.ports.records import ExecutionFilter
from wfcore.rules.execution.machine import EXECUTION
from wfcore.rules.masking import secret_values
from wfcore.usecases.executions.browsing import read_whole
from wfcore.usecases.executions.executions import (
    list_executions,
    read_events,
    read_execution,
    read_logs,
    read_result,
)
from wfcore.usecases.reading import outputs_of
from wfcore.wire.converter import plain
from wfcore.wire.events import event_view
from wfcore.wire.executions import callback_state_view, execution_row, inputs_of, result_view

EVENTS = 50
"""The most events on a page."""


async def show(request: Request) -> Response:
    """The page, with the details of a step if the address names a step."""
    whole = await read_whole(request.services, request.who, request.params["id"])
    run, at = whole.run, whole.explained.at
    picture = picture_of(whole)
    failed = _failed_step(run)
    rows = picture.by_name if picture else {}
    details = await step_details(request, whole, rows, failed)
    secrets = secret_values(run)
    before, narrowed = await _earlier(request, run), request.query("log") != "all"
    history = await _history(request, run)
    return page(
        request,
        "execution.html",
        run=run,
        row=execution_row(run, whole.names),
        at=at,
        picture=picture,
        lines=sentences(request, whole),
        ended=run.status in EXECUTION.final,
        cancels=run.status not in EXECUTION.final,
        redrives=whole.redrives,
        redriven_as=whole.redriven_as,
        children=whole.children,
        callback=callback_state_view(run, whole.callback) if whole.callback else None,
        artifacts=whole.artifacts,
        inputs=_pieces(inputs_of(run, secrets)),
        details=details,
        log=await log_of(request, whole, details.key if details and narrowed else None),
        history=entries(history, outermost(whole.definition)),
        newest=history[-1].number if history else 0,
        oldest=history[0].number if history else 0,
        result=await _result(request, run),
        failed=failed,
        before=run.redrive_of or (before.id if before else None),
        last_good=before if before and failed and before.status in _GOOD else None,
        base_url=request.base_url,
        started_before=request.query("started") == "before",
    )


def _failed_step(run: Execution) -> str | None:
    """The failed step, for the title."""
    failed = run.status is ExecutionStatus.FAILED
    return run.status_reason.step_name if failed and run.status_reason else None


_GOOD = (ExecutionStatus.COMPLETED,)


async def _earlier(request: Request, run: Execution) -> Execution | None:
    """
    The execution of the workflow before *run*, to compare with: of a failed one, the last one that
    completed, if there is one.
    """
    good = _GOOD if run.status is ExecutionStatus.FAILED else ()
    for statuses in dict.fromkeys((good, ())):
        where = ExecutionFilter(
            workflow_id=run.workflow_id, until=run.accepted_at, statuses=statuses
        )
        newest = PageRequest(size=1, after=NEWEST)
        found = await list_executions(request.services, request.who, newest, where)
        if found.rows:
            return found.rows[0]
    return None


async def _result(request: Request, run: Execution) -> DisplayedValue | None:
    if run.status is not ExecutionStatus.COMPLETED:
        return None
    run = await outputs_of(request.services, run, {None})
    return display(result_view(run, outputs=False).output)


async def _history(request: Request, run: Execution) -> Sequence[Any]:
    """The last events, or the events after the number in the address."""
    text = request.query("events")
    after = number_in(text) if text else max(run.events - EVENTS, 0)
    services, who = request.services, request.who
    _, found = await read_events(services, who, run.id, after, EVENTS)
    return [event_view(one) for one in found]


def _pieces(inputs: Mapping[str, Any]) -> Sequence[tuple[str, str]]:
    """The inputs as JSON, one line for each input."""
    texts = ((name, dump_json(plain(value))) for name, value in inputs.items())
    return [(name, text.decode("utf-8", "replace")) for name, text in texts]


async def output(request: Request) -> Response:
    """The result as a file."""
    services, who, id = request.services, request.who, request.params["id"]
    run = await read_result(services, who, id, outputs=False)
    return output_response(run.id, plain(result_view(run, outputs=False).output))


async def live(request: Request) -> Response:
    """A stream of hints that the execution has changed, each with the number of the last event."""
    after = max(last_event_id(request), number_in(request.query("seen")))
    lines = request.query("lines")
    await read_execution(request.services, request.who, request.params["id"], outputs=False)
    return StreamingResponse(
        _changes(request, after, number_in(lines) if lines else None),
        media_type="text/event-stream",
        headers=UNBUFFERED,
    )


async def _changes(request: Request, seen: int, lines: int | None) -> AsyncIterator[bytes]:
    """The hints after event *seen*. *lines*: the last output line on the page; None: no lines."""
    loop, id, config = get_running_loop(), request.params["id"], request.context.config
    yield b"retry: 2000\n\n"
    sent_at = loop.time()
    with request.services.wakeup.follow(id) as rest:
        while not config.ending:
            try:
                await request.require_admitted()
                run, more, last = await _grown(request, id, lines)
            except WfError:
                return  # the reader connects again and gets the error
            if run.events > seen or more:
                lines = last
                yield b"id: %d\nevent: changed\ndata:\n\n" % run.events
                seen, sent_at = run.events, loop.time()
            if run.status in EXECUTION.final:
                yield b"id: %d\nevent: end\ndata:\n\n" % run.events
                return
            if loop.time() - sent_at >= HEARTBEAT_S:
                yield b": still there\n\n"
                sent_at = loop.time()
            await rest(POLL_MS)


async def _grown(
    request: Request, id: str, lines: int | None
) -> tuple[Execution, bool, int | None]:
    """
    The execution, whether there are output lines after *lines*, and the number of the last such
    line.
    """
    if lines is None:
        run = await read_execution(request.services, request.who, id, outputs=False)
        return run, False, None
    run, found, last = await read_logs(request.services, request.who, id, lines)
    return run, bool(found), last
