"""The typed client on an application of the same process."""

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest
from starlette.applications import Starlette
from starlette.routing import Mount

from adapters_http.app import HttpConfig, create_app
from tests.support.http_world import World, serving
from wfcore_client import ApiError, AsyncClient, Unreachable
from wfcore_client.shapes import ApprovalStatus, EventKind


async def test_without_a_socket(world: World) -> None:
    """The client drives the application itself: no server, no port."""
    execution_id, approval_id = await world.paused()
    app = create_app(world.services, HttpConfig())
    async with AsyncClient.in_process(app, world.key.text) as client:
        view = await client.execution(execution_id)
        assert view.current_step is not None
        assert (await client.list_approvals(ApprovalStatus.PENDING)).total == 1
        assert (await client.reject(approval_id)).status is ApprovalStatus.REJECTED


async def test_events_come_while_the_execution_waits(world: World) -> None:
    """A stream in process is a stream: what has happened is told before the end."""
    execution_id, approval_id = await world.paused()
    app = create_app(world.services, HttpConfig())
    async with AsyncClient.in_process(app, world.key.text) as client:
        events = client.events(execution_id)
        async with asyncio.timeout(60):
            while (await anext(events)).kind != EventKind.APPROVAL_CREATED:
                pass
        await client.reject(approval_id)
        assert [event.kind async for event in events][-1] == EventKind.EXECUTION_CANCELLED


async def test_a_stream_can_be_left(world: World) -> None:
    """Leaving a stream ends the request; the client goes on."""
    execution_id, _ = await world.paused()
    app = create_app(world.services, HttpConfig())
    before = asyncio.all_tasks()
    async with AsyncClient.in_process(app, world.key.text) as client:
        events = client.events(execution_id)
        assert (await anext(events)).number == 1
        await events.aclose()
        assert (await client.execution(execution_id)).current_step == "review"
    assert asyncio.all_tasks() == before


async def test_outputs_are_left_out_and_read_one_by_one(world: World) -> None:
    """Without outputs the rest of the view is the same; a step's own result has its output."""
    id = await world.finished({"rows": [1, 2]})
    app = create_app(world.services, HttpConfig())
    async with AsyncClient.in_process(app, world.key.text) as client:
        for view in (
            await client.execution(id, outputs=False),
            await client.result(id, outputs=False),
        ):
            assert view.step_results["fetch"].output is None
            assert view.step_results["fetch"].duration is not None
        assert (await client.step(id, "fetch")).output == {"rows": [1, 2]}


async def test_below_a_mount_downloads_are_found(world: World, tmp_path: Path) -> None:
    """A download's path is whole, the mount's included; and it never leads to another host."""
    execution_id, _ = await world.with_artifact()
    outer = Starlette(routes=[Mount("/flows", app=create_app(world.services, HttpConfig()))])
    async with serving(outer) as url, AsyncClient(f"{url}/flows", world.key.text) as client:
        (artifact,) = (await client.list_artifacts(execution_id)).artifacts
        assert artifact.download_url.startswith("/flows/api/")
        kept = await client.download(artifact, tmp_path / "kept")
        assert kept.read_bytes() == b"hello"
        for elsewhere in ("https://example.org/x", "//example.org/x"):
            with pytest.raises((ApiError, Unreachable)):
                await client.download(replace(artifact, download_url=elsewhere), tmp_path / "x")
