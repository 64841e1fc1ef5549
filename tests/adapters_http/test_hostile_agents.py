"""What arrives at `/mcp` and is no honest message, over a real socket. MC-3, MC-4, LM-3."""

import asyncio
import importlib.util
import re
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any
from unittest.mock import Mock

import pytest

from adapters_http.app import HttpConfig
from tests.support.distribution import missing
from tests.support.http_world import World
from wfcore.model.access import OPERATOR, Scope
from wfcore.model.workflow import DataStep, Variable, VariableType
from wfcore.usecases.accounts import keys
from wfcore.usecases.workflows import browsing

AGENT = {*Scope.ordinary()} - {Scope.APPROVAL_RESPOND}
LONG_S = 120
ACCEPT = {"Accept": "application/json, text/event-stream"}

if importlib.util.find_spec("mcp") is None:
    missing("no mcp: pip install 'wfcore[mcp]'")


@pytest.fixture
def config() -> HttpConfig:
    return HttpConfig(agents=True, console=True)


async def spoken(world: World, method: str, params: str) -> Any:
    """The answer to a message whose `params` are *params* as they stand, which need not be JSON."""
    key = (await world.new_key(None, *AGENT)).text
    text = f'{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{params}}}'
    headers = {"Content-Type": "application/json", **ACCEPT, "X-API-Key": key}
    return await world.http.post("/mcp", content=text, headers=headers)


async def called(world: World, name: str, arguments: str) -> Any:
    """The answer to a call of a tool with *arguments* as they stand."""
    return await spoken(world, "tools/call", f'{{"name":"{name}","arguments":{arguments}}}')


async def test_messages_are_read_as_strictly_as_other_bodies(world: World) -> None:
    """No NaN, infinity, half a character or tower of brackets gets into an execution. LM-3."""
    variables = {"o": Variable("o", VariableType.OBJECT)}
    await world.workflow(DataStep("o", "{{ variables.o }}"), name="Any", variables=variables)
    listed = await spoken(world, "tools/list", "{}")
    (name,) = set(re.findall(r'"name":"(any_\w+)"', listed.text))
    for value in ("NaN", "-Infinity", r'"\ud800"', "[" * 70 + "]" * 70):
        answer = await called(world, name, f'{{"o":{{"x":{value}}}}}')
        assert (answer.status_code, answer.json()["error"][:6]) == (400, "body: "), value
    for value, path in (
        (str(10**29), "o.x"),
        ("[[-9223372036854775809]]", "o.x[0][0]"),
        ("1e999", "o.x"),
    ):
        answer = await called(world, name, f'{{"o":{{"x":{value}}}}}')
        assert f'{{\\"error\\": \\"{path}: the number ' in answer.text, answer.text
    assert (await world.get("/api/v1/executions")).json()["total"] == 0


async def test_a_question_is_refused_by_field(world: World) -> None:
    """What people are asked has the shape that the API demands, and nothing fails inside. MC-3."""
    for arguments, field in (
        ('"groups":"abc"', "groups"),
        ('"groups":[1]', "groups[0]"),
        ('"groups":null', "groups"),
        ('"groups":[{"name":"a"}]', "groups[0].rows"),
        ('"groups":[{"name":"a","rows":[1]}]', "groups[0].rows[0]"),
        ('"timeout":"1h"', "timeout"),
    ):
        answer = await called(world, "ask_people", f'{{"message":"?",{arguments}}}')
        assert f'{{\\"error\\": \\"{field}: ' in answer.text, answer.text


async def test_a_refused_list_says_why_and_a_defect_nothing(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A cursor of another list is the caller's mistake; what fails inside is not described."""
    refused = await spoken(world, "tools/list", '{"cursor":"x"}')
    assert '"code":-32602,"message":"after: must be' in refused.text
    secret = RuntimeError("postgres://user:hunter2@db")
    monkeypatch.setattr(browsing, "list_startable", Mock(side_effect=secret))
    failed = await spoken(world, "tools/list", "{}")
    assert '"code":-32603,"message":"Internal error"' in failed.text


class Relay:
    """Between a client and the server at *port*; while it is `down`, every connection ends."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.down = False
        self.open: set[asyncio.StreamWriter] = set()

    async def came(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.open.add(writer)
        try:
            if not self.down:
                there, back = await asyncio.open_connection("127.0.0.1", self.port)
                self.open.add(back)
                await asyncio.gather(self.pass_on(reader, back), self.pass_on(there, writer))
        finally:
            writer.close()

    async def pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):
            while data := await reader.read(65_536):
                writer.write(data)
        writer.close()

    def take_down(self) -> None:
        self.down = True
        for one in self.open:
            one.close()


@asynccontextmanager
async def relayed(world: World) -> AsyncIterator[tuple[Relay, str]]:
    """A relay to the server, and the URL by which clients reach it."""
    relay = Relay(int(world.url.rpartition(":")[2]))
    async with await asyncio.start_server(relay.came, "127.0.0.1") as server:
        yield relay, f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        relay.take_down()


async def test_a_desktop_agent_outlives_a_server_that_starts_again(world: World) -> None:
    """While nobody answers its calls fail in words; the same process goes on afterwards."""
    from mcp import Client, StdioServerParameters
    from mcp.shared.exceptions import MCPError

    key = await world.new_key(None, *AGENT)
    async with asyncio.timeout(LONG_S), relayed(world) as (relay, url):
        environment = {"WFCORE_URL": url, "WFCORE_KEY": key.text}
        command = StdioServerParameters(
            command=sys.executable, args=["-m", "wfserver", "mcp"], env=environment
        )
        async with Client(command, cache=None) as client:
            before = await client.list_tools()
            relay.take_down()
            with pytest.raises(MCPError, match=f"nobody answers at {url}/mcp"):
                await client.list_tools()
            with pytest.raises(MCPError, match="nobody answers"):
                await client.call_tool("execution_status", {"executionId": "exec_1"})
            relay.down = False
            assert (await client.list_tools()).tools == before.tools
            await keys.revoke_key(world.services, OPERATOR, key.key.id)
            with pytest.raises(MCPError, match="Unauthorized"):
                await client.list_tools()
