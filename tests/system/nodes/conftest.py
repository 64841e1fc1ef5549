"""Several nodes on one PostgreSQL database: each as a process would have it, all in this one."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve, frozen

from tests.support.postgres_server import emptied
from wfcore import Principal, Services, apply_workflow, ensure_account, start_execution
from wfcore.model.access import OPERATOR
from wfcore.ports.system import Clock
from wfcore.rules.definition.written import read_definition
from wfcore.time import HOUR
from wfcore.usecases.executions.executions import wait_for_rest
from wfserver.compose import open_system
from wfserver.settings.record import settings_from

NEVER = {"poll_ms": HOUR, "sweep_ms": HOUR}
"""The policy of a node that finds nothing by looking."""
LONG_MS = 60_000


@frozen
class Node:
    """Services of one node, and somebody who uses it."""

    services: Services
    ann: Principal

    async def start(self, *steps: Any) -> str:
        """Accept an execution of these steps; its id."""
        flow = read_definition({"name": "Flow", "steps": steps})
        workflow = await apply_workflow(self.services, self.ann.account.id, flow)
        return (await start_execution(self.services, self.ann, workflow.id, {})).execution_id

    async def rests(self, execution_id: str) -> str:
        """Wait until it rests; its status."""
        run = await wait_for_rest(self.services, OPERATOR, execution_id, LONG_MS)
        return run.status.value


def command(function: str, step: str | None = None, **more: Any) -> dict[str, Any]:
    """A code step that calls a function."""
    about = {"kind": "code", "language": "command", "command": [function]}
    return {"name": step or function, **about, **more}


@asynccontextmanager
async def opened(
    url: str, data: Path, clock: Clock | None = None, direct: str | None = None, **policy: Any
) -> AsyncIterator[Node]:
    """
    A node on the database at *url*, which hears hints at *direct*; keyword arguments are of its
    policy.
    """
    env = {"WFCORE_STORE_DIRECT": direct} if direct else {}
    settings = settings_from(env, data=str(data), store=url)
    settings = evolve(settings, policy=evolve(settings.policy, **policy))
    async with open_system(settings, **({"clock": clock} if clock else {})) as system:
        account = await ensure_account(system.services, "ann@example.org")
        yield Node(system.services, Principal(account))


AddNode = Callable[..., Awaitable[Node]]


@pytest.fixture
async def node(database: str, tmp_path: Path) -> AsyncIterator[AddNode]:
    """Makes nodes on an empty database; keyword arguments are of its policy."""
    url = await emptied(database)
    async with AsyncExitStack() as open_nodes:

        async def add(**policy: Any) -> Node:
            return await open_nodes.enter_async_context(opened(url, tmp_path / "shared", **policy))

        yield add
