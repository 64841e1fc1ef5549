"""The typed client on an application of the same process."""

from pathlib import Path

import pytest
from attrs import evolve
from starlette.applications import Starlette
from starlette.routing import Mount

from adapters_http.app import HttpConfig, create_app
from http_world import World, serving
from wfcore.model.approval import ApprovalStatus
from wfcore_client import ApiError, AsyncClient, Unreachable


async def test_without_a_socket(world: World) -> None:
    """The client drives the application itself: no server, no port."""
    execution_id, approval_id = await world.paused()
    app = create_app(world.services, HttpConfig())
    async with AsyncClient.in_process(app, world.key.text) as client:
        view = await client.execution(execution_id)
        assert view.current_step is not None
        assert (await client.list_approvals(ApprovalStatus.PENDING)).total == 1
        assert (await client.reject(approval_id)).status is ApprovalStatus.REJECTED


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
                await client.download(evolve(artifact, download_url=elsewhere), tmp_path / "x")
