"""
The Model Context Protocol at `/mcp`: agents list workflows as tools, start workflows and wait.

Each message is a request of its own: the server keeps no state between messages, so any server
behind a balancer answers, and a lost connection loses only the wait. A message is admitted like a
request to the API (`Auth.AGENT`: key, scope, quota, audit), and a tool calls the use cases of the
API. The official SDK implements the protocol; the first message imports it. Decision 212.
"""

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from adapters_http.agents import tools
from adapters_http.agents.tools import LONGEST_WAIT_S, TOOLS, WAIT_S
from adapters_http.dispatch import report
from adapters_http.errors import ErrorResponse, defect, response_to
from adapters_http.request import Request
from adapters_http.route import Auth, Route
from wfcore import __version__
from wfcore.errors import InvalidInput, NotFound, Unauthenticated
from wfcore.model.access import Scope as KeyScope
from wfcore.model.execution import Artifact, Execution
from wfcore.model.json import JsonObject
from wfcore.rules.auth.access import require_scope
from wfcore.rules.auth.signed_links import Keyring
from wfcore.rules.definition.values import known_or
from wfcore.rules.execution.machine import EXECUTION
from wfcore.rules.idempotency import check_idempotency_key
from wfcore.rules.limits import TRIGGER_BODY, WORKFLOW_PAGE
from wfcore.rules.numbers import check_numbers
from wfcore.rules.paging import page_request
from wfcore.time import EpochMs
from wfcore.usecases.artifacts import download_path, link, list_artifacts
from wfcore.usecases.executions import executions, gates, redriving, starting
from wfcore.usecases.executions.executions import rests, wait_until
from wfcore.usecases.executions.explaining import explain_execution
from wfcore.usecases.reading import outputs_of
from wfcore.usecases.signing import signing_keys
from wfcore.usecases.workflows import browsing
from wfcore.usecases.workflows.workflows import WorkflowRow, read_workflow
from wfcore.wire.common import WORKFLOWS, shown_of
from wfcore.wire.converter import plain, structured
from wfcore.wire.executions import redrive_plan_view
from wfcore.wire.requests import DefinitionChoice, GateBody, RedriveBody

if TYPE_CHECKING:
    from mcp.server.context import ServerRequestContext
    from mcp.server.lowlevel import Server
    from mcp_types import (
        CallToolRequestParams,
        CallToolResult,
        ListToolsResult,
        PaginatedRequestParams,
        Tool,
    )

    Context = ServerRequestContext[Any, Any]

IDEMPOTENCY = "wfcore/idempotencyKey"
"""
The name of the idempotency key in `_meta` of a call; the key works like the header
`Idempotency-Key`. IK-1.
"""

REFERENCE = "wfcore/reference"
"""The name of an execution's reference in `_meta` of a call. EX-38."""

INSTRUCTIONS = (
    "Each workflow is a tool. A call starts it and waits a little. If the state is `working` or "
    "`input_required`, call execution_status with the executionId until it is `completed`, `failed`"
    " or `cancelled`. People decide approvals; you cannot."
)


async def speak(request: Request) -> Response:
    """Answer one message of the protocol."""
    return _Answer(request)


class _Answer(Response):
    """The response of the SDK: JSON, or a stream of progress that ends with the result."""

    def __init__(self, request: Request) -> None:
        super().__init__()
        self._request = request

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                self.status_code = message["status"]
                known = {name for name, _ in message["headers"]} | {b"content-length"}
                more = [one for one in self.raw_headers if one[0] not in known]
                message = {**message, "headers": [*message["headers"], *more]}
            await send(message)

        unread = [self._request.raw]

        async def again() -> Message:
            if not unread:
                return await receive()
            return {"type": "http.request", "body": unread.pop(), "more_body": False}

        server = server_for(self._request)
        manager = StreamableHTTPSessionManager(
            server, stateless=True, max_request_body_size=TRIGGER_BODY
        )
        async with manager.run():
            await manager.handle_request(scope, again, with_headers)


def server_for(request: Request) -> "Server[Any]":
    """The SDK's server for the one message of *request*."""
    from mcp.server.lowlevel import Server
    from mcp.shared.exceptions import MCPError
    from mcp_types import INTERNAL_ERROR, INVALID_PARAMS

    async def list_tools(ctx: "Context", params: "PaginatedRequestParams | None") -> Any:
        try:
            return await _list_tools(request, params.cursor if params else None)
        except Exception as error:
            refused = _refused(request, error)
            code = INVALID_PARAMS if refused.status < 500 else INTERNAL_ERROR
            raise MCPError(code, refused.message) from None

    async def call_tool(ctx: "Context", params: "CallToolRequestParams") -> Any:
        return await _call_tool(request, ctx, params.name)

    return Server(
        "wfcore",
        version=__version__,
        instructions=INSTRUCTIONS,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        get_tool_input_schema=lambda name: None,
    )


def _may(request: Request, scope: KeyScope) -> bool:
    try:
        require_scope(request.who, scope)
    except Unauthenticated:
        return False
    return True


async def _list_tools(request: Request, cursor: str | None) -> "ListToolsResult":
    """A page of the tools: first the fixed tools, then the workflows by name. MC-1."""
    from mcp_types import ListToolsResult, Tool, ToolAnnotations

    fixed = () if cursor else [one for one in TOOLS if _may(request, one.scope)]
    shown = [
        Tool(
            name=one.name,
            description=one.about,
            input_schema=one.schema,
            output_schema=tools.RESULT,
            annotations=ToolAnnotations(read_only_hint=one.reads),
        )
        for one in fixed
    ]
    page = page_request(None, None, WORKFLOW_PAGE, cursor, WORKFLOWS)
    found = await browsing.list_startable(request.services, request.who, page)
    return ListToolsResult(
        tools=[*shown, *map(_tool, found.rows)], next_cursor=shown_of(found, WORKFLOWS)["next"]
    )


def _tool(one: WorkflowRow) -> "Tool":
    from mcp_types import Tool

    return Tool(
        name=tools.tool_name(one.workflow),
        title=one.workflow.name,
        description=one.definition.description or f"Start the workflow {one.workflow.name}.",
        input_schema=tools.input_schema(one.definition),
        output_schema=tools.RESULT,
    )


async def _call_tool(request: Request, ctx: "Context", name: str) -> "CallToolResult":
    """
    The result of a call. A refusal is a result that the model can read. MC-3. The arguments come
    from our own parser: for the parser of the SDK, `NaN` is a number.
    """
    params: Any = request.json["params"]
    given = params.get("arguments") or {}
    try:
        check_numbers("", given)
        found = await _perform(request, ctx, name, given)
        return _result(found, found["state"] == "failed" and "plan" not in found)
    except Exception as error:
        return _result({"error": _refused(request, error).message}, True)


def _refused(request: Request, error: Exception) -> ErrorResponse:
    """The response for *error*; only the log has the details of a defect."""
    refused = response_to(error, {})
    if refused is None:
        report(request, None, error)
    return refused or defect()


def _result(found: JsonObject, failed: bool) -> "CallToolResult":
    from mcp_types import CallToolResult, TextContent

    text = TextContent(text=json.dumps(found, ensure_ascii=False))
    structured = found if "state" in found else None
    return CallToolResult(content=[text], structured_content=structured, is_error=failed)


async def _perform(request: Request, ctx: "Context", name: str, given: JsonObject) -> JsonObject:
    fixed = next((one for one in TOOLS if one.name == name), None)
    if fixed is None:
        return await _start(request, ctx, name, given)
    require_scope(request.who, fixed.scope)
    _require_known(given, fixed.schema)
    if fixed.name == "ask_people":
        return await _ask(request, ctx, given)
    id = given["executionId"]
    if not isinstance(id, str):
        raise InvalidInput("executionId", "must be text")
    if fixed.name == "execution_cancel":
        run = await executions.cancel_execution(request.services, request.who, id, request.origin)
        return await _state_of(request, run)
    if fixed.name == "execution_redrive":
        return await _redrive(request, ctx, id, given)
    if fixed.name == "execution_start_again":
        return await _start_again(request, ctx, id, given)
    return await _follow(request, ctx, id, _wait_s(given), _is_over)


async def _redrive(request: Request, ctx: "Context", id: str, given: JsonObject) -> JsonObject:
    """The plan of a redrive, or with its digest the new execution. MC-5."""
    request.context.config.require_serving()
    body = structured(RedriveBody, {name: v for name, v in given.items() if name != "executionId"})
    newest = body.definition is DefinitionChoice.NEWEST
    wanted = redriving.Redrive(body.from_, newest, body.inputs, body.digest)
    services, who = request.services, request.who
    if body.digest is not None:
        started = await redriving.redrive(services, who, id, wanted, origin=request.origin)
        return await _follow(request, ctx, started.execution_id, WAIT_S)
    found = await redriving.preview_redrive(services, who, id, wanted)
    plan = redrive_plan_view(found.plan, found.digest, newest, found.revision)
    return {**tools.named(found.old), "plan": plain(plan)}


async def _start_again(request: Request, ctx: "Context", id: str, given: JsonObject) -> JsonObject:
    """An execution with the inputs of another one. EX-36."""
    request.context.config.require_serving()
    inputs = given.get("inputs", {})
    if not isinstance(inputs, dict):
        raise InvalidInput("inputs", "must be an object")
    run = await executions.read_execution(request.services, request.who, id, outputs=False)
    started = await starting.start_execution(
        request.services,
        request.who,
        run.workflow_id,
        inputs,
        like=id,
        idempotency=_idempotency(ctx),
        reference=_reference(ctx),
        origin=request.origin,
    )
    return await _follow(request, ctx, started.execution_id, WAIT_S)


def _require_known(given: JsonObject, schema: tools.Schema) -> None:
    """Raises `InvalidInput` for an argument that is undeclared or missing."""
    known = schema["properties"]
    for name in given:
        if name not in known:
            there = known_or(name, known) if known else "there are none"
            raise InvalidInput(name[:80], f"unknown argument; {there}")
    for name in schema["required"]:
        if name not in given:
            raise InvalidInput(name, "is required")


def _wait_s(given: JsonObject) -> int:
    seconds = given.get("waitSeconds", WAIT_S)
    if not (type(seconds) is int and 0 <= seconds <= LONGEST_WAIT_S):
        raise InvalidInput("waitSeconds", f"must be a number from 0 to {LONGEST_WAIT_S}")
    return seconds


async def _start(request: Request, ctx: "Context", name: str, given: JsonObject) -> JsonObject:
    workflow_id = await browsing.startable_by(request.services, request.who, _is_named(name))
    if workflow_id is None:
        raise NotFound("Tool")
    request.context.config.require_serving()
    found = await read_workflow(request.services, request.who, workflow_id)
    _require_known(given, tools.input_schema(found.definition))
    started = await starting.start_execution(
        request.services,
        request.who,
        workflow_id,
        given,
        idempotency=_idempotency(ctx),
        reference=_reference(ctx),
        origin=request.origin,
    )
    return await _follow(request, ctx, started.execution_id, WAIT_S)


def _reference(ctx: "Context") -> str | None:
    """The reference in `_meta`. Raises `InvalidInput`."""
    meta: Any = ctx.meta or {}
    given = meta.get(REFERENCE)
    if given is not None and not isinstance(given, str):
        raise InvalidInput(REFERENCE, "must be text")
    return given


def _is_named(name: str) -> Callable[[Any], bool]:
    return lambda workflow: tools.tool_name(workflow) == name


async def _ask(request: Request, ctx: "Context", given: JsonObject) -> JsonObject:
    request.context.config.require_serving()
    structured(GateBody, given)
    started = await gates.open_gate(
        request.services,
        request.who,
        given,
        idempotency=_idempotency(ctx),
        origin=request.origin,
    )
    return await _follow(request, ctx, started.execution_id, WAIT_S)


def _idempotency(ctx: "Context") -> str | None:
    """The key in `_meta`. Raises `InvalidInput`."""
    meta: Any = ctx.meta or {}
    key = meta.get(IDEMPOTENCY)
    if key is None:
        return None
    check_idempotency_key(IDEMPOTENCY, key if isinstance(key, str) else "")
    return str(key)


async def _follow(
    request: Request,
    ctx: "Context",
    id: str,
    wait_s: int,
    enough: Callable[[Execution, EpochMs], bool] = rests,
) -> JsonObject:
    """
    The state of the execution as soon as it is *enough*, or after *wait_s* seconds; progress is
    reported meanwhile. A client that leaves ends the wait, not the execution. MC-2.
    """
    if not _may(request, KeyScope.EXECUTION_READ):
        return tools.started_only(id)
    services, who, config = request.services, request.who, request.context.config
    until, reported = services.store.now() + wait_s * 1_000, -1

    def has_news(run: Execution, now: EpochMs) -> bool:
        return enough(run, now) or run.completed_steps != reported

    while True:
        left = until - services.store.now()
        run = await wait_until(
            has_news,
            services,
            who,
            id,
            left,
            leaving=lambda: config.ending,
            still=request.readmit,
        )
        if run.completed_steps != reported:
            reported = run.completed_steps
            await ctx.session.report_progress(reported, run.total_steps, run.status.value)
        elif left <= 0 or config.ending:
            return await _state_of(request, run)
        if enough(run, services.store.now()):
            return await _state_of(request, run)


def _is_over(run: Execution, now: EpochMs) -> bool:
    return run.status in EXECUTION.final


async def _state_of(request: Request, run: Execution) -> JsonObject:
    found = await explain_execution(request.services, request.who, run.id)
    approval_id = next((one.approval_id for one in found.lines if one.approval_id), None)
    shown = approval_id is not None and request.context.config.console
    url = f"{request.base_url}/approvals/{approval_id}" if shown else None
    run = await outputs_of(request.services, found.run, {None})
    return tools.result_of(
        run, [str(one.text) for one in found.lines], url, await _files_of(request, run)
    )


async def _files_of(request: Request, run: Execution) -> list[tools.Schema]:
    """The newest files of an execution that has ended, for a key that may read them. AR-1."""
    if run.status not in EXECUTION.final or not _may(request, KeyScope.ARTIFACT_READ):
        return []
    found = await list_artifacts(request.services, request.who, run.id)
    keys = await signing_keys(request.services)
    return [_file(request, keys, one) for one in found[: tools.MOST_FILES]]


def _file(request: Request, keys: Keyring, one: Artifact) -> tools.Schema:
    path = download_path(one.execution_id, one.id, link(request.services, keys, one.id))
    return {
        "step": one.step_name,
        "name": one.name,
        "size": one.size,
        "contentType": one.content_type,
        "downloadUrl": f"{request.base_url}{path}",
    }


AGENTS = (
    Route(
        "POST", "/mcp", Auth.AGENT, speak, "Speak the Model Context Protocol",
        KeyScope.WORKFLOW_EXECUTE,
    ),
)  # fmt: skip
"""The routes of a server with `HttpConfig.agents`."""
