"""
`wfcore mcp`: the tools of a server for agents that start tools as a process, such as on a desktop.

Nothing is decided here: each request on stdin goes to the server's `/mcp`, with the key in
`WFCORE_KEY`. Decision 212.
"""

import asyncio
import json
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import click

from wfcore.installed import install
from wfserver.errors import CommandFailed
from wfserver.terminal.invocation import Invocation
from wfserver.terminal.options import Command, pass_invocation
from wfserver.terminal.perform import KEY, URL

if TYPE_CHECKING:
    import httpx2
    from mcp import Client
    from mcp.server.lowlevel import Server

_LONGEST_S = 90.0
"""A timeout longer than any call, because calls that wait are answered earlier."""
_OURS = "wfcore/"
"""The prefix of names in `_meta` that the server reads, such as the idempotency key."""
_REFUSED = -32_000
"""The first error code that the protocol leaves to servers."""


@click.command("mcp", cls=Command)
@pass_invocation
def mcp_command(invocation: Invocation) -> None:
    """Offer the workflows of a server elsewhere to an agent, over stdin and stdout."""
    url, key = invocation.elsewhere, invocation.environment.get(KEY)
    if url is None or not key:
        raise click.UsageError(f"name the server with --url, and its key in {KEY}; see also {URL}")
    try:
        import mcp  # noqa: F401
    except ImportError:
        raise CommandFailed(f"wfcore mcp needs the extra mcp: {install('mcp')}") from None
    try:
        asyncio.run(_offer(f"{url}/mcp", key))
    except* (OSError, Exception) as group:
        raise CommandFailed(f"{url}/mcp does not answer as wanted: {_first(group)}") from None


def _first(group: BaseExceptionGroup[Any]) -> str:
    one: BaseException = group
    while isinstance(one, BaseExceptionGroup):
        one = one.exceptions[0]
    return str(one) or type(one).__name__


async def _offer(url: str, key: str) -> None:
    from mcp import Client
    from mcp.client.streamable_http import streamable_http_client
    from mcp.server.stdio import stdio_server

    async with _http(key) as http:
        there = Client(streamable_http_client(url, http_client=http), cache=None)
        async with there, stdio_server() as (reads, writes):
            print(f"wfcore mcp: at {url}", file=sys.stderr)
            server = _passing(there)
            await server.run(reads, writes, server.create_initialization_options())


def _http(key: str) -> "httpx2.AsyncClient":
    """
    A client that turns refusals, and a server that does not answer, into errors of the protocol: a
    restart of the server fails only the calls at that time, whereas the SDK by itself would end.
    """
    import httpx2

    def refused(status: int, says: str) -> httpx2.Response:
        error = {"code": _REFUSED, "message": says}
        return httpx2.Response(status, json={"jsonrpc": "2.0", "id": None, "error": error})

    class ErrorsAsMessages(httpx2.AsyncHTTPTransport):
        async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
            try:
                answer = await super().handle_async_request(request)
            except httpx2.TransportError as error:
                return refused(503, f"nobody answers at {request.url} ({error})")
            if answer.status_code >= 400:
                with suppress(ValueError):
                    says = json.loads(await answer.aread())
                    if isinstance(says, dict) and isinstance(says.get("error"), str):
                        return refused(answer.status_code, says["error"])
            return answer

    headers, transport = {"X-API-Key": key}, ErrorsAsMessages(trust_env=False)
    return httpx2.AsyncClient(
        headers=headers, timeout=_LONGEST_S, trust_env=False, transport=transport
    )


def _passing(there: "Client") -> "Server[Any]":
    """An MCP server that passes requests on to *there*, and progress back."""
    from mcp.server.lowlevel import Server

    async def list_tools(ctx: Any, params: Any) -> Any:
        return await there.list_tools(cursor=params.cursor if params else None)

    async def call_tool(ctx: Any, params: Any) -> Any:
        given = params.meta or {}
        ours: Any = {name: given[name] for name in given if name.startswith(_OURS)}
        return await there.call_tool(
            params.name,
            params.arguments,
            progress_callback=ctx.session.report_progress,
            meta=ours or None,
        )

    return Server(
        "wfcore",
        version=there.server_info.version if there.server_info else "",
        instructions=there.instructions,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )
