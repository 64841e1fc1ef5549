"""Agents of two frameworks, as the page on agents shows them, against a model on this machine."""

import asyncio
import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

from adapters_http.app import HttpConfig
from tests.support.http_world import World, a_world, review
from tests.support.model_server import Line, a_model_server
from wfcore.model.access import Scope

ROOT = Path(__file__).parents[3]
PYTHON = ROOT / ".venv-agents" / "bin" / "python"
PAGE = (ROOT / "docs" / "howto" / "agents.md").read_text()
PROGRAMS = re.findall(r"^```python\n(.*?)^```", PAGE, re.M | re.S)
SAYS = "Ann must decide first."

if not PYTHON.exists():
    pytest.skip("no .venv-agents; make clients makes it", allow_module_level=True)


def completion(message: dict[str, Any]) -> bytes:
    """An answer of the chat completions protocol."""
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    if "tool_calls" in message:
        choice["finish_reason"] = "tool_calls"
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    body = {"id": "c1", "object": "chat.completion", "created": 1, "model": "gpt-5-mini"}
    return json.dumps({**body, "choices": [choice], "usage": usage}).encode()


def asks_for_the_workflow(line: Line) -> None:
    """The model calls the tool of the workflow, as it was offered it."""
    offered = [tool["function"]["name"] for tool in line.asked.body["tools"]]
    (name,) = [one for one in offered if one.startswith("pay_refunds_")]
    call = {"id": "call_1", "type": "function", "function": {"name": name, "arguments": "{}"}}
    line.send(
        body=completion({"role": "assistant", "content": None, "tool_calls": [call]}),
    )


def tells_what_it_read(line: Line) -> None:
    """The model has the tool's result before it, and says a word about it."""
    line.send(body=completion({"role": "assistant", "content": SAYS}))


@pytest.mark.parametrize("program", PROGRAMS, ids=["pydantic-ai", "openai-agents"])
async def test_an_agent_starts_a_workflow_and_learns_that_people_decide(
    program: str, tmp_path: Path
) -> None:
    """The framework finds the tool, calls it, and gives its model the state of the execution."""
    async with a_world(tmp_path, HttpConfig(agents=True)) as world:
        await world.workflow(review(), name="Pay refunds")
        said, read = await run(world, program)
        found = (await world.get("/api/v1/executions")).json()["items"]
    assert said.strip() == SAYS
    assert "input_required" in read
    assert [one["status"] for one in found] == ["AWAITING_APPROVAL"]
    assert found[0]["executionId"] in read


async def run(world: World, program: str) -> tuple[str, str]:
    """What the program says, and what its model was told of the tool."""
    key = await world.new_key(None, Scope.WORKFLOW_EXECUTE, Scope.EXECUTION_READ)
    with a_model_server() as model:
        model.will(asks_for_the_workflow, tells_what_it_read)
        environment = {
            **os.environ,
            "WFCORE_URL": world.url,
            "WFCORE_KEY": key.text,
            "OPENAI_BASE_URL": model.openai,
            "OPENAI_API_KEY": "sk-local",
        }
        process = await asyncio.create_subprocess_exec(
            PYTHON, "-c", program, env=environment, stdout=-1, stderr=-1
        )
        said, complaint = await asyncio.wait_for(process.communicate(), 120)
        assert process.returncode == 0, complaint.decode()
        return said.decode(), json.dumps(model.asked[-1].body["messages"][-1])
