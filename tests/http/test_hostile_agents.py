"""What arrives at `/mcp` and is no honest message, over a real socket. MC-3, MC-4, LM-3."""

import importlib.util
import re
from typing import Any
from unittest.mock import Mock

import pytest

from adapters_http.app import HttpConfig
from distribution import missing
from http_world import World
from wfcore.model.access import Scope
from wfcore.model.workflow import DataStep, Variable, VariableType
from wfcore.usecases.workflows import browsing

AGENT = {*Scope.ordinary()} - {Scope.APPROVAL_RESPOND}
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
    for value in ("NaN", "-Infinity", "1e999", r'"\ud800"', "[" * 70 + "]" * 70):
        answer = await called(world, name, f'{{"o":{{"x":{value}}}}}')
        assert (answer.status_code, answer.json()["error"][:6]) == (400, "body: "), value
    assert (await world.get("/api/v1/executions")).json()["total"] == 0
    answer = await called(world, name, f'{{"o":{{"x":{10**29}}}}}')
    assert (answer.status_code, r"\"x\": 1e+29" in answer.text) == (200, True)


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
