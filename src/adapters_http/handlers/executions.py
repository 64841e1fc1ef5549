"""Executions: reading and cancelling. Spec: v1 endpoints, executions."""

from collections.abc import Callable
from functools import partial
from typing import Any

from adapters_http.downloads import output_response
from adapters_http.json_text import dump_json
from adapters_http.params import (
    enum_values,
    event_number,
    oldest_first,
    page,
    span,
    wait_ms,
    with_outputs,
)
from adapters_http.request import Request
from adapters_http.responses import LARGE_RESPONSE
from wfcore.errors import InvalidInput
from wfcore.model.execution import Execution, ExecutionStatus, TriggerSource
from wfcore.ports.records import ExecutionFilter
from wfcore.rules.limits import WORKFLOW_PAGE
from wfcore.usecases.executions import executions
from wfcore.usecases.executions.browsing import MOST_COUNTED, SHORTEST_END, count_executions
from wfcore.usecases.executions.callbacks import read_callback
from wfcore.usecases.executions.executions import wait_for_rest
from wfcore.usecases.executions.explaining import explain_execution
from wfcore.usecases.reading import outputs_of
from wfcore.usecases.starter_names import starter_names
from wfcore.wire.common import EXECUTIONS
from wfcore.wire.converter import plain
from wfcore.wire.events import ExplanationView, LogPage, explanation_view, log_view
from wfcore.wire.executions import (
    CallbackStateView,
    ExecutionCounts,
    ExecutionPage,
    ResultView,
    StatusView,
    callback_state_view,
    execution_counts,
    execution_page,
    result_view,
    status_view,
    step_view,
)
from wfcore.wire.workflows import DefinitionView, definition_view


async def list_all(request: Request) -> ExecutionPage:
    """The caller's executions, newest first."""
    found = await executions.list_executions(
        request.services,
        request.who,
        page(request, WORKFLOW_PAGE, EXECUTIONS),
        _filter(request),
    )
    return execution_page(found, await starter_names(request.services, found.rows))


async def counts(request: Request) -> ExecutionCounts:
    """How many of the list there are in each status."""
    found = await count_executions(request.services, request.who, _filter(request))
    return execution_counts(found, MOST_COUNTED)


def _id_end(request: Request) -> str | None:
    """The end of an id. Raises `InvalidInput`."""
    text = request.query("idEnd")
    if text and len(text) < SHORTEST_END:
        raise InvalidInput("idEnd", f"must have at least {SHORTEST_END} characters")
    return text or None


def _filter(request: Request) -> ExecutionFilter:
    since, until = span(request)
    return ExecutionFilter(
        workflow_id=request.query("workflowId") or None,
        statuses=enum_values(request, "status", ExecutionStatus),
        sources=enum_values(request, "triggerSource", TriggerSource),
        since=since,
        until=until,
        oldest_first=oldest_first(request, "startedAt"),
        id_end=_id_end(request),
        reference=request.query("reference") or None,
    )


async def read(request: Request) -> object:
    """The status view; with `wait`, as soon as the execution rests."""
    wait, outputs = wait_ms(request), with_outputs(request)
    if wait is None:
        run = await _head(request)
    else:
        run = await rested(request, request.params["id"], wait)
    return await _status_answer(request, run, outputs)


async def rested(request: Request, execution_id: str, wait: int) -> Execution:
    """
    The execution as soon as it rests, at the latest after *wait* milliseconds or when this server
    stops. Large outputs may be missing.

    Raises `NotFound`.
    """
    config = request.context.config
    return await wait_for_rest(
        request.services,
        request.who,
        execution_id,
        wait,
        leaving=lambda: config.ending,
        still=request.readmit,
        outputs=False,
    )


async def _head(request: Request) -> Execution:
    services, who, id = request.services, request.who, request.params["id"]
    return await executions.read_execution(services, who, id, outputs=False)


async def _status_answer(request: Request, run: Execution, outputs: bool) -> object:
    """The status view of *run*; reads its outputs only if they are shown."""
    if not outputs:
        return _without_outputs(await _status(request, run, outputs=False))
    answers, state = request.context.responses, (run.version, await _redriven_as(request, run))
    if (known := answers.known(run.id, state)) is not None:
        return known
    run = await outputs_of(request.services, run)
    names = await starter_names(request.services, [run])
    redriven_as = await _redriven_as(request, run)
    state = run.version, redriven_as
    view = partial(status_view, run, names, redriven_as)
    return answers.keep(run.id, state, await _encoded(request, run, view))


async def _encoded(request: Request, run: Execution, view: Callable[[], object]) -> bytes:
    """The JSON of a view of *run*, made outside of the event loop if large or masked."""

    def encode() -> bytes:
        return dump_json(plain(view()))

    takes_long = run.secrets or run.outputs_size > LARGE_RESPONSE
    return await request.services.offload(encode) if takes_long else encode()


async def _status(request: Request, run: Execution, *, outputs: bool) -> StatusView:
    names = await starter_names(request.services, [run])
    return status_view(run, names, await _redriven_as(request, run), outputs=outputs)


async def _redriven_as(request: Request, run: Execution) -> str | None:
    return await executions.redriven_as(request.services, run)


async def definition(request: Request) -> DefinitionView:
    """The definition that an execution runs by."""
    found = await executions.read_execution_definition(
        request.services, request.who, request.params["id"]
    )
    return definition_view(*found)


async def callback(request: Request) -> CallbackStateView:
    """What became of the callback of an execution."""
    return callback_state_view(
        *await read_callback(request.services, request.who, request.params["id"])
    )


async def result(request: Request) -> object:
    """The result of an ended execution; with `wait`, as soon as there is one."""
    wait, outputs = wait_ms(request), with_outputs(request)
    if wait is not None:
        await rested(request, request.params["id"], wait)
    services, who, id = request.services, request.who, request.params["id"]
    run = await executions.read_result(services, who, id, outputs=outputs)
    if not outputs:
        return _without_outputs(result_view(run, outputs=False))
    return await _encoded(request, run, partial(result_view, run))


def _without_outputs(view: StatusView | ResultView) -> Any:
    """*view* without the outputs of steps, usually its largest part."""
    answer: Any = plain(view)
    for step in (*answer["stepResults"].values(), *answer["earlierResults"].values()):
        del step["output"]
    return answer


async def step(request: Request) -> object:
    """The result of one step; with `download` its output as a file."""
    key = request.params["key"]
    run = await outputs_of(request.services, await _head(request), {key})
    if request.query("download") is None:
        return await _encoded(request, run, partial(step_view, run, key))
    return await request.services.offload(lambda: output_response(key, step_view(run, key).output))


STREAMS = ("stdout", "stderr")


async def logs(request: Request) -> LogPage:
    """Output lines of an execution, however it was started."""
    stream = request.query("stream") or None
    if stream not in (None, *STREAMS):
        raise InvalidInput("stream", f"must be one of {', '.join(STREAMS)}")
    _, found, next = await executions.read_logs(
        request.services,
        request.who,
        request.params["id"],
        event_number("after", request.query("after")),
        request.query("step") or None,
        stream=stream,
        search=request.query("search") or None,
    )
    return LogPage([log_view(event) for event in found], next)


async def explain(request: Request) -> ExplanationView:
    """Why nothing is happening, or what happens next."""
    found = await explain_execution(request.services, request.who, request.params["id"])
    return explanation_view(found.run, found.at, found.lines)


async def cancel(request: Request) -> object:
    """End an execution at once."""
    id, outputs = request.params["id"], with_outputs(request)
    await executions.cancel_execution(request.services, request.who, id, request.origin)
    return await _status_answer(request, await _head(request), outputs)
