"""The typed client on an application of the same process."""

from adapters_http.app import HttpConfig, create_app
from http_world import World
from wfcore.model.approval import ApprovalStatus
from wfcore_client import AsyncClient


async def test_without_a_socket(world: World) -> None:
    """The client drives the application itself: no server, no port."""
    execution_id, approval_id = await world.paused()
    app = create_app(world.services, HttpConfig())
    async with AsyncClient.in_process(app, world.key.text) as client:
        view = await client.execution(execution_id)
        assert view.current_step is not None
        assert (await client.list_approvals(ApprovalStatus.PENDING)).total == 1
        assert (await client.reject(approval_id)).status is ApprovalStatus.REJECTED
